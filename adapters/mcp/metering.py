"""One request, one bucket: its class, and the refusal of a caller whose allowance is spent.

The class of a call comes of what the caller sees, so that hidden and absent names bill alike.
"""

from __future__ import annotations

from ...kernel.catalog import Entry
from ...kernel.errors import refused
from ...kernel.meter import RateClass
from ...kernel.model import Principal
from ...kernel.steps import Steps
from ..wire import Reply, metered
from . import envelope
from .endpoint import McpServer, Request
from .envelope import Id
from .revisions import INTERNAL_ERROR, INVALID_REQUEST, Revision


def class_of(entry: Entry | None) -> RateClass:
    """Return what a call costs: a write if it is destructive, or if nobody knows what it is."""
    return "read" if entry is not None and not entry.destructive else "write"


def over(server: McpServer, kind: RateClass, who: Principal) -> Steps[tuple[int, str] | None]:
    """Count a request. ``None`` lets it pass; else how many seconds to wait, and the code that says why."""
    verdict = yield from metered(server.door, kind, who)
    if verdict is None:
        return 1, "X_RATE_STORE_FAILED"
    return None if verdict.passes else (verdict.retry_after, "X_MCP_RATE_LIMITED")


def limited(request: Request, kind: RateClass) -> Steps[Reply | None]:
    """Count a request, and return its refusal if it must not pass."""
    held = (yield from over(request.server, kind, request.who)) if request.meters else None
    return None if held is None else spent(request.server, request.id, request.message.revision, held)


def spent(server: McpServer, ident: Id | None, revision: Revision, held: tuple[int, str]) -> Reply:
    """Return the refusal: 429 (RFC 6585 4) or 503, when to come again, and never whose bucket it was."""
    seconds, code = held
    known = code == "X_MCP_RATE_LIMITED"
    told = refused(code, server.audience)
    reply = envelope.refusal(
        ident, revision, INVALID_REQUEST if known else INTERNAL_ERROR, told, status=429 if known else 503
    )
    return Reply(reply.status, reply.body, (("retry-after", str(seconds)),))
