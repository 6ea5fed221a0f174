"""The pages on which people decide: rows and arguments to HTML. Decides nothing and reads nothing.

No script and nothing from elsewhere: a page works by links and forms alone, and its style sheet is ours.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from pydantic_core import to_json

from ...kernel.confirmation import Confirmation, Status
from ...kernel.errors import Refusal
from ...kernel.strict_json import Json
from ..wire import Reply
from .plain_text import alphabets, pieces, segments

if TYPE_CHECKING:
    from jinja2 import Environment

HTML: Final = "text/html; charset=utf-8"
CSS: Final = "text/css; charset=utf-8"
# Content Security Policy 3: the style sheet and forms of this origin, in no frame, and nothing else
_HEADERS: Final = (
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "same-origin"),  # under `no-referrer` a form has the origin `null`
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cache-control", "no-store"),
)
_FILES: Final = files(__name__.rpartition(".")[0])
_STATUS: Final[Mapping[Status, str]] = {
    "pending": "waits for a person",
    "approved": "approved, has not run yet",
    "rejected": "rejected",
    "running": "approved, runs now",
    "ran": "approved, has run",
    "refused": "rejected, and the agent was told",
    "expired": "nobody decided in time",
    "interrupted": "approved, and its run was interrupted",
}


@dataclass(frozen=True, slots=True)
class Inbox:
    """Where the pages are, how they are titled, and the path of the action that decides.

    ``path`` starts with a slash and ends without one.
    """

    path: str
    title: str
    decides: str

    def home(self, path: str) -> str:
        """Return the address of the first page as seen from a path below it.

        Links are relative: before them stands whatever prefix the host has put there.
        """
        below = path.removeprefix(self.path).count("/")
        return "../" * below + self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Looking:
    """Who looks at a page, from where, and when (seconds since 1970)."""

    inbox: Inbox
    path: str
    at: float
    who: str = ""

    @property
    def now(self) -> datetime:
        """The time of the request."""
        return datetime.fromtimestamp(self.at, UTC)


def listed(seen: Looking, waiting: Iterable[Confirmation], ended: Iterable[Confirmation]) -> Reply:
    """Return the page of what waits for a person, and of what was decided."""
    rows = {"waiting": waiting, "ended": ended}
    return _page(200, "list", seen, **{name: [_row(each, seen.now) for each in rows[name]] for name in rows})


def shown(seen: Looking, told: Mapping[str, Json], said: Refusal | None = None, status: int = 200) -> Reply:
    """Return the page of one confirmation with its exact arguments; ``said`` is why it was not decided."""
    arguments = told.get("arguments")
    return _page(
        status,
        "one",
        seen,
        said=said,
        told={key: pieces(str(value)) for key, value in told.items() if value is not None},
        state=_STATUS[_status(told)],
        open=told["status"] == "pending",
        left=_left(datetime.fromisoformat(str(told["expiresAt"])), seen.now),
        segments=segments(arguments),
        mixed=alphabets(arguments),
        carried=base64.b64encode(to_json(arguments)).decode(),
    )


def refused(seen: Looking, status: int, said: Refusal, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """Return a page that says what is wrong and what to do."""
    return _page(status, "wrong", seen, headers, said=said)


def style() -> Reply:
    """Return the style sheet."""
    css = _FILES.joinpath("inbox.css").read_bytes()
    kept = (("cache-control", "max-age=3600"), ("x-content-type-options", "nosniff"))
    return Reply(200, css, kept, CSS)


def _status(told: Mapping[str, Json]) -> Status:
    return next(each for each in _STATUS if each == told["status"])


def _row(row: Confirmation, now: datetime) -> dict[str, object]:
    status = row.status_at(now)
    return {
        "ident": row.ident,
        "tool": pieces(row.tool),
        "actor": pieces(row.actor),
        "person": None if row.person is None else pieces(row.person),
        "left": _left(row.expires, now),
        "state": _STATUS[status],
        "by": None if row.decided_by is None else pieces(row.decided_by),
        "at": row.decided_at or row.expires,
    }


def _left(expires: datetime, now: datetime) -> str:
    """Return how long there is, in words; the time itself stands beside it."""
    seconds = int((expires - now).total_seconds())
    if seconds <= 0:
        return "none"
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = seconds // size
        if count:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a minute"


def _page(
    status: int, name: str, seen: Looking, headers: tuple[tuple[str, str], ...] = (), /, **told: object
) -> Reply:
    inbox = seen.inbox
    given = {"page": name, "title": inbox.title, "home": inbox.home(seen.path), "who": pieces(seen.who)}
    text = _templates().get_template("inbox.html.j2").render({**given, **told})
    return Reply(status, text.encode(), (*headers, *_HEADERS), HTML)


@cache
def _templates() -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined

    source = _FILES.joinpath("inbox.html.j2").read_text("utf-8")
    found = Environment(
        loader=DictLoader({"inbox.html.j2": source}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["when"] = _when
    return found


def _when(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
