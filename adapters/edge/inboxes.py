"""The inbox of an app as it is declared: a path, what is wrong with it, and the package that draws it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Final

from ...kernel.errors import Fault, fault
from ..http.inbox_page import Inbox
from .confirming import Desk
from .extras import require

MISPLACED: Final = ("api", ".well-known")
_FILES: Final = files(__name__.rpartition(".")[0])


def inbox_of(path: str | None, title: str, desk: Desk | None) -> Inbox | None:
    """Return the pages on which people decide. Raises: ExtraMissing, where nothing can draw them."""
    if path is None or desk is None:
        return None
    require("jinja2", "nonsuch[inbox]", "Jinja2")
    style = _FILES.joinpath("inbox.css").read_bytes()
    return Inbox("/" + path.strip("/"), title, desk.path, _draw(), style)


def inbox_faults(path: str | None, mcp: str, desk: Desk | None, *, sessions: bool) -> Iterator[Fault]:
    """Yield what is wrong with where the pages are to be, and with who could come there."""
    if path is None:
        return
    code, parts = "X_DECLARATION_INVALID", path.strip("/").split("/")
    if desk is None:
        cause = f"`inbox` at `{path}` has nothing to decide"
        yield fault(code, cause, "give `confirmations`, or leave `inbox` out")
    if not sessions:
        cause = f"nobody can come to the `inbox` at `{path}`: a browser sends no token"
        yield fault(code, cause, "give `resolve_principal`, which says whose a session is")
    if not all(parts) or parts[0] in MISPLACED or parts == mcp.strip("/").split("/"):
        cause = f"`inbox` cannot be at `{path}`: something else is there"
        yield fault(code, cause, "give it a path of its own, as `/confirmations`")


@cache
def _draw() -> Callable[[Mapping[str, object]], str]:
    from jinja2 import Environment, StrictUndefined

    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters["when"] = _when
    return made.from_string(_FILES.joinpath("inbox.html.j2").read_text("utf-8")).render


def _when(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
