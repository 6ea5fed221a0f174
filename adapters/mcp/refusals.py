"""Outcome -> MCP result or error, in the caller's revision.

Hidden is an error that names nothing; scope is an error that names the scope; everything after
the arguments gate is a result that the model reads.
"""

from __future__ import annotations

from typing import Final, assert_never

from pydantic_core import to_json

from ...kernel.audit import MAX_NAME_CHARS
from ...kernel.catalog import Entry
from ...kernel.errors import ErrorAudience, Refusal, refusal
from ...kernel.model import (
    Failed,
    Hidden,
    InvalidArguments,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    ScopeDenied,
)
from ...kernel.strict_json import Json
from ..wire import REALM, Reply
from .envelope import Id, error, result
from .revisions import INVALID_REQUEST, Revision

_HINT: Final = "call tools/list to read the catalog this caller may use"


def answer(
    ident: Id,
    revision: Revision,
    name: str,
    entry: Entry | None,
    outcome: Outcome,
    audience: ErrorAudience,
    meta: bytes,
) -> Reply:
    """Return the reply to ``tools/call``."""
    match outcome:
        case Ok(json):
            return result(ident, _accepted(entry, json, meta))
        case Hidden():
            return unknown_tool(ident, revision, name)
        case ScopeDenied(scope):
            return _scope(ident, revision, scope, refusal(outcome, name, audience))
        case InvalidArguments() | PolicyDenied() | PolicyError() | Failed():
            return result(ident, _told(refusal(outcome, name, audience), meta))
        case _:
            assert_never(outcome)


def unknown_tool(ident: Id, revision: Revision, name: str) -> Reply:
    """Return the one answer for a name outside the caller's view: it knows the name that was sent."""
    shown = name if len(name) <= MAX_NAME_CHARS else name[:MAX_NAME_CHARS] + "..."
    return error(ident, revision, revision.unknown_tool, f"tool not found: {shown} - {_HINT}")


def _scope(ident: Id, revision: Revision, scope: str, told: Refusal) -> Reply:
    data: Json = {"code": told.code, "scope": scope, "fix": told.fix}
    reply = error(ident, revision, INVALID_REQUEST, told.cause, data, status=revision.scope_status)
    if reply.status != 403:
        return reply
    challenge = (
        f'Bearer realm="{REALM}", error="insufficient_scope", scope="{scope}", error_description="{told.fix}"'
    )
    return Reply(reply.status, reply.body, (("www-authenticate", challenge),))


def _accepted(entry: Entry | None, json: bytes, meta: bytes) -> bytes:
    if entry is not None and entry.output.wrapped:
        json = b'{"rows":%b}' % json
    text = to_json(json.decode())
    body = b'{"content":[{"type":"text","text":%b}]' % text
    if entry is not None and entry.output.document is not None:
        body += b',"structuredContent":%b' % json
    return body + meta + b"}"


def _told(told: Refusal, meta: bytes) -> bytes:
    """A refusal that the model reads; no structuredContent, which clients would hold to the output schema."""
    text = to_json(f"{told.code}: {told.cause}\nfix: {told.fix}")
    return b'{"content":[{"type":"text","text":%b}],"isError":true%b}' % (text, meta)
