"""Body and headers -> one JSON-RPC message of one revision, or the reply that refuses it.

Never consults the catalog: whatever is refused here is refused for every caller alike.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from pydantic_core import to_json

from ...kernel.errors import ErrorAudience, Refusal, refused
from ...kernel.strict_json import Json, JsonRefused, Limits, loads
from ...kernel.values import value
from ..wire import Head, Reply
from .revisions import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LATEST_LEGACY,
    MODERN,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Revision,
    legacy,
)

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
TASKS_KEY: Final = "io.modelcontextprotocol/tasks"
_NAMED: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}

MAX_ECHOED_CHARS: Final = 512  # of what is a caller's own and comes back to it: ids, tokens, names
_TOO_MANY_DIGITS: Final = 10**MAX_ECHOED_CHARS
_PIECES_FIX: Final = "send each message of the batch by itself"
_META_FIX: Final = "add both to `_meta` of every request, as revision 2026-07-28 has it"
_MIRROR_FIX: Final = "send the header with the very value that the body has"

Id = str | int


@value
class Message:
    """A request (``id`` is set) or a notification."""

    id: Id | None
    method: str
    params: dict[str, Json]
    revision: Revision


@value
class Response:
    """A client's answer to a question of ours; an error of the client's answers nothing."""

    id: Id
    result: Json


def result(ident: Id, body: bytes) -> Reply:
    """Return a successful answer around an already encoded result."""
    return Reply(200, b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (to_json(ident), body))


def error(
    ident: Id | None, revision: Revision, code: int, message: str, data: Json = None, *, status: int = 200
) -> Reply:
    """Return a JSON-RPC error. An unknown id is left out where the revision's schema admits that."""
    fault: dict[str, Json] = {"code": code, "message": message}
    if data is not None:
        fault["data"] = data
    body: dict[str, Json] = {"jsonrpc": "2.0"}
    if ident is not None or revision.null_id:
        body["id"] = ident
    return Reply(status, to_json({**body, "error": fault}))


def refusal(
    ident: Id | None, revision: Revision, code: int, told: Refusal, *, status: int = 200, **more: Json
) -> Reply:
    """Return a JSON-RPC error that carries code, cause and fix."""
    data: dict[str, Json] = {"code": told.code, "cause": told.cause, "fix": told.fix, **more}
    return error(ident, revision, code, told.cause, data, status=status)


def spoken(head: Head) -> Revision:
    """Return the revision to answer in before the body is known."""
    return legacy(head.version) or MODERN


def read(head: Head, body: bytes, limits: Limits, audience: ErrorAudience) -> Message | Response | Reply:
    """Return the message of a POST, or the reply that refuses it.

    1. strict JSON  2. one object  3. the envelope  4. the era  5. the era's own rules.
    """
    before = spoken(head)
    try:  # 1
        value = loads(body, limits)
    except JsonRefused as fault:
        told = refused("X_MCP_PROTOCOL", audience)
        return refusal(None, before, PARSE_ERROR, Refusal(told.code, str(fault), told.fix), status=400)
    if not isinstance(value, dict):  # 2
        if isinstance(value, list):
            return _protocol(None, before, INVALID_REQUEST, "a batch is not answered", _PIECES_FIX)
        return _malformed(None, before, "the body is not a JSON object", audience)
    return _envelope(head, value, before, audience)


def _envelope(
    head: Head, value: dict[str, Json], before: Revision, audience: ErrorAudience
) -> Message | Response | Reply:
    known: Id | None = None
    if "id" in value:  # 3
        ident = value["id"]
        if type(ident) is not str and type(ident) is not int:
            return _malformed(None, before, "`id` must be a string or an integer", audience)
        if overlong(ident):
            return _malformed(None, before, f"`id` has more than {MAX_ECHOED_CHARS} characters", audience)
        known = ident
    method, params = value.get("method"), value.get("params", {})
    if value.get("jsonrpc") != "2.0":
        return _malformed(known, before, '`jsonrpc` must be "2.0"', audience)
    if known is not None and before is not MODERN and "method" not in value and _answers(value):
        return Response(known, value.get("result"))
    if not isinstance(method, str):
        return _malformed(known, before, "`method` must be a string", audience)
    if not isinstance(params, dict):
        return _malformed(known, before, "`params` must be an object", audience)
    return _revised(head, Message(known, method, params, before), audience)


def overlong(held: Json) -> bool:
    """Whether an id or a token is longer than what is sent back."""
    if type(held) is int:
        return not -_TOO_MANY_DIGITS < held < _TOO_MANY_DIGITS
    return type(held) is str and len(held) > MAX_ECHOED_CHARS


def _answers(value: dict[str, Json]) -> bool:
    """Whether a message is a response (JSON-RPC 2.0, 5: a result or an error, and not both)."""
    return ("result" in value) != ("error" in value)


def _malformed(ident: Id | None, revision: Revision, cause: str, audience: ErrorAudience) -> Reply:
    told = refused("X_MCP_PROTOCOL", audience)
    return refusal(ident, revision, INVALID_REQUEST, Refusal(told.code, cause, told.fix), status=400)


def _protocol(
    ident: Id | None, revision: Revision, code: int, cause: str, fix: str, *, status: int = 400
) -> Reply:
    return refusal(ident, revision, code, Refusal("X_MCP_PROTOCOL", cause, fix), status=status)


def _revised(head: Head, message: Message, audience: ErrorAudience) -> Message | Reply:
    """Choose the era (4); it comes from ``_meta`` or the version header, never from ``Mcp-Method``."""
    if message.id is None:
        return _notified(head, message)
    header, bare = head.version, head.connection is not None
    meta = message.params.get("_meta")
    announced = isinstance(meta, dict) and VERSION_KEY in meta
    past = legacy(header)
    if announced or past is None or (message.method == "server/discover" and (header is None or bare)):
        return _modern(head, Message(message.id, message.method, message.params, MODERN))
    if message.method == "initialize" and header is None:
        past = LATEST_LEGACY
    if past is message.revision:
        return message
    return Message(message.id, message.method, message.params, past)


def _notified(head: Head, message: Message) -> Message | Reply:
    """A notification is taken as it comes, unless its version is not served (MCP transports)."""
    version = head.version
    if version == MODERN.name or legacy(version) is not None:
        return message
    return _unsupported(message, version)


def _unsupported(message: Message, version: str | None) -> Reply:
    data: Json = {"supported": [MODERN.name], "requested": (version or "")[:MAX_ECHOED_CHARS]}
    return error(message.id, MODERN, UNSUPPORTED_VERSION, "unsupported protocol version", data, status=400)


def _modern(head: Head, message: Message) -> Message | Reply:
    """Check what MCP 2026-07-28 demands of every request (5): ``_meta``, mirrored headers, the version."""
    meta = message.params.get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    if (
        not isinstance(meta, dict)
        or not isinstance(version, str)
        or not isinstance(meta.get(CAPABILITIES_KEY), dict)
    ):
        cause = f"`_meta` must carry `{VERSION_KEY}` and `{CAPABILITIES_KEY}`"
        return _protocol(message.id, MODERN, INVALID_PARAMS, cause, _META_FIX)
    mismatch = _mismatch(head, message, version) if head.connection is None else None
    if mismatch is not None:
        return _protocol(message.id, MODERN, HEADER_MISMATCH, mismatch, _MIRROR_FIX)
    return message if version == MODERN.name else _unsupported(message, version)


def _mismatch(head: Head, message: Message, version: str) -> str | None:
    if head.headers.get("mcp-protocol-version") != version:
        return "the `MCP-Protocol-Version` header and `_meta` disagree"
    if head.headers.get("mcp-method") != message.method:
        return "the `Mcp-Method` header and the method disagree"
    key = _NAMED.get(message.method)
    if key is None:
        return None
    named, header = message.params.get(key), head.headers.get("mcp-name")
    if not isinstance(named, str):
        return None
    return (
        None
        if header is not None and decoded(header) == named
        else "the `Mcp-Name` header and the body disagree"
    )


def decoded(header: str) -> str | None:
    """Return a header value after ``=?base64?...?=`` (canonical base64 only); plain ones are ASCII."""
    text = header.strip(" \t")
    if not text.isascii() or not text.isprintable():
        return None
    if not (text.startswith("=?base64?") and text.endswith("?=") and len(text) >= 11):
        return text
    inner = text[9:-2]
    try:
        raw = base64.b64decode(inner, validate=True)
        return raw.decode() if base64.b64encode(raw).decode() == inner else None
    except (binascii.Error, UnicodeDecodeError):
        return None
