"""One POST in, one reply out: the MCP request ladder as a generator of steps.

Stateless: no session, no SDK, no socket. Order matters: nothing before the view may consult the
catalog, and nothing but the view may.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pydantic_core import to_json

from ...kernel.errors import ErrorAudience, Refusal, refused
from ...kernel.gates import Kernel
from ...kernel.model import Call, Principal
from ...kernel.steps import ReadBody, Returned, Steps
from ...kernel.strict_json import Json
from ...kernel.view import View
from ..wire import JSON_TYPE, Door, Head, Reply, Unauthenticated, accepts_json, authenticate, media_type
from . import envelope
from .describe import Listing
from .envelope import Id, Message, result
from .refusals import answer
from .revisions import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MODERN, negotiated

log = logging.getLogger("nonsuch.mcp")

TTL_MS: Final = 0
CACHE: Final = b',"ttlMs":%d,"cacheScope":"private"' % TTL_MS
Instructions = str | Callable[[View], str | None] | None


@dataclass(frozen=True, slots=True, eq=False)
class McpServer:
    """One MCP endpoint over one kernel."""

    kernel: Kernel
    name: str
    version: str
    door: Door
    instructions: Instructions = None
    listing: Listing = field(default_factory=Listing)
    meta: bytes = field(init=False)

    def __post_init__(self) -> None:
        info = to_json({"name": self.name, "version": self.version})
        modern = b',"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":%b}' % info
        object.__setattr__(self, "meta", modern)

    @property
    def audience(self) -> ErrorAudience:
        """Whose fix an error tells."""
        return self.door.audience

    def tail(self, message: Message) -> bytes:
        """Return the members that every result of a revision ends with."""
        return self.meta if message.revision is MODERN else b""


def serve(server: McpServer, head: Head) -> Steps[Reply]:
    """Answer one request.

    1. Host and Origin  2. method  3. authentication  4. media types  5. body  6. envelope and revision
    7. RPC method, parameter shape  8. the view and the kernel's gates.
    """
    refusing = server.door.refuses(head)  # 1
    if refusing is not None:
        return envelope.refusal(None, MODERN, INVALID_REQUEST, refusing, status=403)
    if head.method != "POST":  # 2
        return Reply(405, headers=(("allow", "POST"),))
    who = yield from authenticate(head, agents_only=True, audience=server.audience)  # 3
    if isinstance(who, Unauthenticated):
        return _unauthenticated(head, who)
    if media_type(head) != JSON_TYPE:  # 4
        return _protocol(head, server, 415, f"the content type must be {JSON_TYPE}")
    if head.headers.get("content-encoding", "identity") != "identity":
        return _protocol(head, server, 415, "a compressed body is not read")
    if not accepts_json(head):
        return _protocol(head, server, 406, f"the answer is {JSON_TYPE}, which `Accept` does not take")
    body = yield ReadBody(server.door.body_limit)  # 5
    if not isinstance(body, Returned) or not isinstance(body.value, bytes):
        return _too_large(head, server)
    message = envelope.read(head, body.value, server.door.limits, server.audience)  # 6
    if isinstance(message, Reply):
        return message
    if message.id is None:
        return Reply(202)
    return (yield from _dispatch(server, message, message.id, who))


def _dispatch(server: McpServer, message: Message, ident: Id, who: Principal) -> Steps[Reply]:
    modern = message.revision is MODERN
    match message.method:  # 7
        case "tools/call":
            return (yield from _call(server, message, ident, who))
        case "tools/list":
            return _list(server, message, ident, who)
        case "server/discover" if modern:
            return result(ident, _discover(server, message, server.kernel.view_for(who)))
        case "initialize" if not modern:
            return result(ident, _initialize(server, message, server.kernel.view_for(who)))
        case "ping" if not modern:
            return result(ident, b"{}")
        case _:
            status = message.revision.unknown_method_status
            return envelope.error(
                ident, message.revision, METHOD_NOT_FOUND, "method not found", status=status
            )


def _call(server: McpServer, message: Message, ident: Id, who: Principal) -> Steps[Reply]:
    name, arguments = message.params.get("name"), message.params.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        cause = "`name` must be a string and `arguments` an object"
        told = Refusal("X_MCP_PROTOCOL", cause, refused("X_MCP_PROTOCOL").fix)
        return envelope.refusal(ident, message.revision, INVALID_PARAMS, told)
    view = server.kernel.view_for(who)  # 8
    outcome = yield from server.kernel.invoke(view, Call(name, arguments, "mcp"))
    entry = view.find(name, "mcp")
    return answer(ident, message.revision, name, entry, outcome, server.audience, server.tail(message))


def _list(server: McpServer, message: Message, ident: Id, who: Principal) -> Reply:
    if "cursor" in message.params:
        return envelope.error(ident, message.revision, INVALID_PARAMS, "invalid cursor")
    view = server.kernel.view_for(who)
    tail = CACHE + server.meta if message.revision is MODERN else b""
    return result(ident, b'{"tools":%b%b}' % (server.listing.tools(view.table), tail))


def _discover(server: McpServer, message: Message, view: View) -> bytes:
    body: dict[str, Json] = {"supportedVersions": [MODERN.name], "capabilities": {"tools": {}}}
    return to_json({**body, **_instructions(server, view)})[:-1] + CACHE + server.tail(message) + b"}"


def _initialize(server: McpServer, message: Message, view: View) -> bytes:
    body: dict[str, Json] = {
        "protocolVersion": negotiated(message.params.get("protocolVersion")).name,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": server.name, "version": server.version},
    }
    return to_json({**body, **_instructions(server, view)})


def _instructions(server: McpServer, view: View) -> dict[str, Json]:
    """A function of the caller's view; one that raises or answers blank sends none."""
    text = server.instructions
    if callable(text):
        try:
            text = text(view)
        except Exception as fault:  # noqa: BLE001  (application code: any fault of it sends none)
            log.error("instructions failed: %s", type(fault).__name__)
            return {}
    return {"instructions": text} if isinstance(text, str) and text.strip() else {}


def _unauthenticated(head: Head, who: Unauthenticated) -> Reply:
    code = INTERNAL_ERROR if who.status == 503 else INVALID_REQUEST
    reply = envelope.refusal(None, envelope.spoken(head), code, who.refusal, status=who.status)
    return Reply(reply.status, reply.body, who.headers)


def _protocol(head: Head, server: McpServer, status: int, cause: str) -> Reply:
    told = Refusal("X_MCP_PROTOCOL", cause, refused("X_MCP_PROTOCOL", server.audience).fix)
    return envelope.refusal(None, envelope.spoken(head), INVALID_REQUEST, told, status=status)


def _too_large(head: Head, server: McpServer) -> Reply:
    told = refused("X_MCP_BODY_TOO_LARGE", server.audience)
    limit = server.door.body_limit
    return envelope.refusal(None, envelope.spoken(head), INVALID_REQUEST, told, status=413, limit=limit)
