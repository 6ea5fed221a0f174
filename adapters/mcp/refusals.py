"""Outcome -> MCP result or error, in the caller's revision.

Hidden is an error that names nothing; scope is an error that names the scope; everything after
the arguments gate is a result that the model reads.
"""

from __future__ import annotations

from typing import Final, assert_never

from pydantic_core import to_json

from ...kernel.audit import MAX_NAME_CHARS
from ...kernel.catalog import Entry
from ...kernel.errors import Refusal, refusal, refused
from ...kernel.model import (
    Begun,
    Failed,
    Hidden,
    InputRequired,
    InvalidArguments,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    ScopeDenied,
    Unconfirmed,
    Unfit,
)
from ...kernel.strict_json import Json
from ..authentication import challenge
from ..wire import Reply
from . import envelope
from .endpoint import Request
from .envelope import result
from .revisions import (
    CAPABILITY_MISSING,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
)

_OURS: Final = frozenset(
    {"X_INTERNAL", "X_OUTPUT_INVALID", "X_INTERRUPTED", "X_PROMPT_CHANGED", "X_MCP_ROUND_TOO_LONG"}
)
_HINT: Final = "call tools/list to read the catalog this caller may use"


def answer(request: Request, name: str, entry: Entry | None, outcome: Outcome) -> Reply:
    """Return the reply to ``tools/call``."""
    match outcome:
        case Ok(json):
            return result(request.id, _accepted(entry, json, request.tail()))
        case Hidden():
            return unknown_tool(request, name)
        case InvalidArguments() | Unconfirmed() | PolicyDenied() | PolicyError() | Failed():
            return result(request.id, _told(refusal(outcome, name, request.server.audience), request.tail()))
        case ScopeDenied() | Unfit() | InputRequired() | Begun():
            return refuse(request, name, outcome)
        case _:
            assert_never(outcome)


def refuse(request: Request, name: str, outcome: Outcome) -> Reply:
    """Return a refusal as a JSON-RPC error: for what has no result that a model would read."""
    match outcome:
        case ScopeDenied(scope):
            return _scope(request, scope, refusal(outcome, name, request.server.audience))
        case Unfit():
            return _unfit(request, name, outcome)
        case InvalidArguments():
            return _error(request, INVALID_PARAMS, refusal(outcome, name, request.server.audience))
        case PolicyDenied() | PolicyError():
            return _error(request, INVALID_REQUEST, refusal(outcome, name, request.server.audience))
        case Failed(code):
            found = INTERNAL_ERROR if code in _OURS else INVALID_PARAMS
            return _error(request, found, refusal(outcome, name, request.server.audience))
        case (
            Ok() | Hidden() | InputRequired() | Begun() | Unconfirmed()
        ):  # no resource or prompt is confirmed
            return internal(request)
        case _:
            assert_never(outcome)


def internal(request: Request) -> Reply:
    """Return the answer to what went wrong here."""
    return _error(request, INTERNAL_ERROR, refused("X_INTERNAL", request.server.audience))


def _error(request: Request, code: int, told: Refusal, status: int = 200) -> Reply:
    return envelope.refusal(request.id, request.message.revision, code, told, status=status)


def unknown_tool(request: Request, name: str) -> Reply:
    """Return the one answer for a name outside the caller's view: it knows the name that was sent."""
    shown = name if len(name) <= MAX_NAME_CHARS else name[:MAX_NAME_CHARS] + "..."
    code = request.message.revision.unknown_tool
    return request.error(code, f"tool not found: {shown} - {_HINT}")


def _unfit(request: Request, name: str, outcome: Unfit) -> Reply:
    told = refusal(outcome, name, request.server.audience)
    if not outcome.needs:
        return _error(request, HEADER_MISMATCH, told, status=400)
    needs: dict[str, Json] = {}
    for kind, _, mode in (each.partition(".") for each in outcome.needs):
        needs.setdefault(kind, {mode: {}} if mode else {})
    data: Json = {"code": told.code, "fix": told.fix, "requiredCapabilities": needs}
    return request.error(CAPABILITY_MISSING, told.cause, data, status=400)


def _scope(request: Request, scope: str, told: Refusal) -> Reply:
    """Name the scope. Clients of the older revisions ask for exactly what a challenge names, so there it
    names what they hold too (2025-11-25, authorization); the newest ones add up themselves.
    """
    data: Json = {"code": told.code, "scope": scope, "fix": told.fix}
    protected = request.server.protected
    status = 403 if protected is not None else request.message.revision.scope_status
    reply = request.error(INVALID_REQUEST, told.cause, data, status=status)
    if status != 403:
        return reply
    wanted = scope if request.modern else " ".join(sorted({*(request.who.scopes or ()), scope}))
    needed = {"error": "insufficient_scope", "scope": wanted, "error_description": told.fix}
    where = {} if protected is None else {"resource_metadata": protected.metadata_url(request.head)}
    return Reply(reply.status, reply.body, (challenge({**needed, **where}),))


def _accepted(entry: Entry | None, json: bytes, meta: bytes) -> bytes:
    if entry is not None and entry.output.wrapped:
        json = b'{"rows":%b}' % json
    body = b'{"content":%b' % _blocks(entry, json)
    if entry is not None and entry.output.document is not None:
        body += b',"structuredContent":%b' % json
    return body + meta + b"}"


def _blocks(entry: Entry | None, json: bytes) -> bytes:
    """Words are sent as they are, content blocks as themselves, any other answer as compact JSON."""
    form = "value" if entry is None else entry.output.form
    if form == "content":
        return json if json.startswith(b"[") else b"[%b]" % json
    text = json if form in ("text", "blob") else to_json(json.decode())
    return b'[{"type":"text","text":%b}]' % text


def _told(told: Refusal, meta: bytes) -> bytes:
    """A refusal that the model reads; no structuredContent, which clients would hold to the output schema."""
    text = to_json(f"{told.code}: {told.cause}\nfix: {told.fix}")
    return b'{"content":[{"type":"text","text":%b}],"isError":true%b}' % (text, meta)
