"""Counts an MCP request, and has audited what is refused for its rate or its shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...kernel.audit import (
    Asked,
    Event,
    limited_call,
    limited_other,
    limited_prompt,
    limited_read,
    malformed_call,
    malformed_prompt,
    malformed_read,
    task_asked,
)
from ...kernel.errors import refused
from ...kernel.meter import RateClass
from ...kernel.model import Principal, Unfit
from ...kernel.steps import Audit, Steps
from ...kernel.strict_json import Json
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
    return held if held is not None else (yield from malformed(request, reply))


def malformed(request: Request, reply: Reply) -> Steps[Reply]:
    """Have a request audited that is refused for its shape, before anything of the catalog is looked at."""
    yield from _unrun(request.message, request.who)
    return reply


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


def unanswered(message: Message | Response, who: Principal) -> Steps[None]:
    """Have a call, a reading or a prompt audited that has no id: it has no answer, and does not run."""
    if isinstance(message, Message):
        yield from _unrun(message, who)


def _unrun(message: Message, who: Principal) -> Steps[None]:
    """A name that is no text, or is not there, is told as an empty one. Whatever only lists is silent."""
    params = message.params
    match message.method:
        case "tools/call":
            yield Audit(malformed_call(who, _text(params, "name"), "mcp", "X_MCP_PROTOCOL"))
        case "resources/read":
            yield Audit(malformed_read(who, _text(params, "uri")))
        case "prompts/get":
            yield Audit(malformed_prompt(who, _text(params, "name")))
        case "completion/complete":
            ref, argument = params.get("ref"), params.get("argument")
            name = _text(ref, "name") or _text(ref, "uri")
            yield Audit(malformed_prompt(who, name, _text(argument, "name")))
        case "tasks/get" | "tasks/update" | "tasks/cancel" as method:
            yield Audit(task_asked(who, _ASKED[method], _text(params, "taskId"), None, Unfit("")))
        case _:
            pass


_ASKED: Final[Mapping[str, Asked]] = {
    "tasks/get": "look",
    "tasks/update": "answer",
    "tasks/cancel": "cancel",
}


def _text(held: Json, key: str) -> str:
    found = held.get(key) if isinstance(held, dict) else None
    return found if isinstance(found, str) else ""


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
