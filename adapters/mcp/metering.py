"""Counts an MCP request, and turns what is over the allowance into an audited refusal."""

from __future__ import annotations

from ...kernel.audit import Event, limited_call, limited_other, limited_prompt, limited_read
from ...kernel.errors import refused
from ...kernel.meter import RateClass
from ...kernel.model import Principal
from ...kernel.steps import Audit, Steps
from ..meters import Spent, metered
from ..wire import Reply
from . import envelope
from .endpoint import McpServer, Request
from .envelope import Id, Message, Response
from .revisions import INTERNAL_ERROR, INVALID_REQUEST, Revision


def limited(
    request: Request, kind: RateClass, tool: str | None = None, *, seen: bool = False
) -> Steps[Reply | None]:
    """Count a request, and return its refusal if it must not pass.

    ``tool`` is what a call comes down to, ``seen`` whether its caller sees such a tool.
    """
    if not request.meters:
        return None
    held = yield from metered(request.server.door, kind, request.who)
    if held is None:
        return None
    if tool is not None:
        yield Audit(limited_call(request.who, tool, "mcp", held.code, seen=seen))
    else:
        yield Audit(_event(request.message, request.who, held.code))
    return _refusal(request.server, request.id, request.message.revision, held)


def counted(request: Request, kind: RateClass, reply: Reply) -> Steps[Reply]:
    """Count a request that is refused in any case: asking in vain is no way around the meter."""
    held = yield from limited(request, kind)
    return reply if held is None else held


def over(
    server: McpServer, message: Message | Response, who: Principal, revision: Revision
) -> Steps[Reply | None]:
    """Count what has no answer, and return its refusal if it must not pass.

    A call without an id runs nothing, whatever it names: it cannot be resolved, and so it is a write.
    """
    calls = isinstance(message, Message) and message.method == "tools/call"
    held = yield from metered(server.door, "write" if calls else "read", who)
    if held is None:
        return None
    yield Audit(_event(message, who, held.code))
    return _refusal(server, None, revision, held)


def _event(message: Message | Response, who: Principal, code: str) -> Event:
    if isinstance(message, Response):
        return limited_other(who, "response", code)
    match message.method, message.params:
        case "tools/call", {"name": str(name)}:
            return limited_call(who, name, "mcp", code)
        case "resources/read", {"uri": str(uri)}:
            return limited_read(who, uri, code)
        case "prompts/get", {"name": str(name)}:
            return limited_prompt(who, name, code)
        case method, _:
            return limited_other(who, method, code)


def _refusal(server: McpServer, ident: Id | None, revision: Revision, held: Spent) -> Reply:
    told = refused(held.code, server.audience)
    code = INVALID_REQUEST if held.status == 429 else INTERNAL_ERROR
    reply = envelope.refusal(ident, revision, code, told, status=held.status)
    return Reply(reply.status, reply.body, held.headers)
