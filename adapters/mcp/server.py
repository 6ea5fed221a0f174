"""One POST in, one reply or stream out: the MCP request ladder as a generator of steps.

Stateless: no session, no SDK, no socket. Order matters: nothing before the view may consult the
catalog, and nothing but the view may.
"""

from __future__ import annotations

from typing import Final

from ...kernel.asks import LEVELS
from ...kernel.errors import Refusal, refused
from ...kernel.model import Principal
from ...kernel.steps import Deliver, Heard, ReadBody, Returned, Steps
from ..authentication import Unauthenticated, authenticate
from ..door import foreign, preflight
from ..wire import JSON_TYPE, STREAM_TYPE, Head, Reply, accepted, event, media_type, problem
from . import completion, content, envelope, listen, tasks, tools
from .endpoint import McpServer, Request
from .envelope import LOG_LEVEL_KEY, MAX_ECHOED_CHARS, Message, Response, overlong, result
from .introduce import discover, initialize
from .listing import listed
from .metering import counted, limited, over, unanswered
from .oauth import Protected
from .revisions import INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, MODERN

__all__ = ["McpServer", "answer", "described", "serve"]

_MEDIA_FIX: Final = f"send the message uncompressed, with `Content-Type: {JSON_TYPE}`"


def serve(server: McpServer, head: Head, *, observed: bool = False) -> Steps[Reply]:
    """Answer one HTTP request; ``observed`` has what it says told too (``kernel/steps.Heard``).

    1. Host and Origin  2. method  3. authentication  4. media types  5. body  6. envelope and revision
    7. RPC method, parameter shape  8. the view, the rate, and the kernel's gates.
    """
    refusing = yield from foreign(head, server.door)  # 1
    if refusing is not None:
        return envelope.refusal(None, MODERN, INVALID_REQUEST, refusing, status=403)
    if head.method == "OPTIONS" and "access-control-request-method" in head.headers:  # 2
        return preflight(head)
    if head.method != "POST":
        return Reply(405, headers=(("allow", "POST"),))
    who = yield from authenticate(head, server.door, agents_only=True)  # 3
    if isinstance(who, Unauthenticated):
        return _unauthenticated(server, head, who)
    takes_json, takes_stream = accepted(head)
    refusal = _unread(head, acceptable=takes_json or takes_stream)  # 4
    if refusal is not None:
        return refusal
    body = yield ReadBody(server.door.body_limit)  # 5
    if not isinstance(body, Returned) or not isinstance(body.value, bytes):
        return _too_large(head, server)
    message = envelope.read(head, body.value, server.door.limits, server.audience)  # 6
    if isinstance(message, Reply):
        return message
    reply = yield from answer(
        server, head, message, who, streams=takes_stream, meters=True, observed=observed
    )
    return reply if takes_json or reply.status != 200 else Reply(200, event(reply.body), media=STREAM_TYPE)


def described(server: McpServer, protected: Protected, head: Head) -> Steps[Reply]:
    """Answer a request for the metadata of a protected resource: for everybody, but for foreign hosts."""
    refusing = yield from foreign(head, server.door)
    return problem(403, refusing) if refusing is not None else protected.document(head)


def answer(
    server: McpServer,
    head: Head,
    message: Message | Response,
    who: Principal,
    *,
    streams: bool,
    meters: bool = False,
    observed: bool = False,
) -> Steps[Reply]:
    """Answer one message of a known caller, over whatever carries it; ``meters`` counts it."""
    if observed and isinstance(message, Message):
        told = message.params.get("_meta")
        yield Heard(message.method, message.id, message.revision.name, told)
    if isinstance(message, Response) or message.id is None:
        return (yield from _taken(server, head, message, who, meters=meters))
    request = Request(server, head, message, message.id, who, streams, meters)
    calls = message.method == "tools/call"
    wrong = _meta_broken(message)
    if wrong is not None:
        broken = request.malformed(wrong)
        return (yield from counted(request, "write" if calls else "read", broken))
    if not calls:
        refused = yield from limited(request, "read")
        if refused is not None:
            return refused
    return (yield from _dispatch(request, modern=message.revision is MODERN))


def _taken(
    server: McpServer, head: Head, message: Message | Response, who: Principal, *, meters: bool
) -> Steps[Reply]:
    """Take what has no answer: a client's own answer, or a notification."""
    held = (yield from over(server, message, who, envelope.spoken(head))) if meters else None
    if held is not None:
        return held
    yield from unanswered(message, who)
    if isinstance(message, Response):
        yield Deliver(str(message.id), who, message.result)
    return Reply(202)


def _dispatch(request: Request, *, modern: bool) -> Steps[Reply]:
    match request.message.method:  # 7
        case "tools/call":
            return (yield from tools.call(request))
        case "tools/list":
            return listed(request, "tools")
        case "resources/read":
            return (yield from content.read(request))
        case "resources/list":
            return listed(request, "resources")
        case "resources/templates/list":
            return listed(request, "resourceTemplates")
        case "prompts/get":
            return (yield from content.prompt(request))
        case "prompts/list":
            return listed(request, "prompts")
        case "completion/complete":
            return (yield from completion.complete(request))
        case _:
            return (yield from _of_era(request, modern=modern))


def _of_era(request: Request, *, modern: bool) -> Steps[Reply]:
    match request.message.method:
        case "server/discover" if modern:
            return result(request.id, discover(request))
        case "subscriptions/listen" if modern:
            return (yield from listen.listen(request))
        case "tasks/get" if modern:
            return (yield from tasks.get(request))
        case "tasks/update" if modern:
            return (yield from tasks.update(request))
        case "tasks/cancel" if modern:
            return (yield from tasks.cancel(request))
        case "initialize" if not modern:
            return result(request.id, initialize(request))
        case "ping" if not modern:
            return result(request.id, b"{}")
        case "logging/setLevel" if not modern:
            return content.set_level(request)
        case "resources/subscribe" | "resources/unsubscribe" if not modern:
            return content.subscribe(request)
        case _:
            return _no_method(request)


def _no_method(request: Request) -> Reply:
    revision = request.message.revision
    told = Refusal("X_MCP_PROTOCOL", "method not found", f"call a method that revision {revision.name} has")
    return envelope.refusal(
        request.id, revision, METHOD_NOT_FOUND, told, status=revision.unknown_method_status
    )


def _meta_broken(message: Message) -> str | None:
    """Return what is wrong with ``_meta``, whatever the request names."""
    meta = message.params.get("_meta", {})
    if not isinstance(meta, dict):
        return "`_meta` must be an object"
    if "progressToken" in meta and overlong(meta["progressToken"]):
        return f"`progressToken` has more than {MAX_ECHOED_CHARS} characters"
    wanted = meta.get(LOG_LEVEL_KEY, "info") if message.revision is MODERN else "info"
    return None if wanted in LEVELS else f"`{LOG_LEVEL_KEY}` must be one of {', '.join(LEVELS)}"


def _unread(head: Head, *, acceptable: bool) -> Reply | None:
    if media_type(head) != JSON_TYPE:
        return _protocol(head, 415, f"the content type must be {JSON_TYPE}", _MEDIA_FIX)
    if head.headers.get("content-encoding", "identity") != "identity":
        return _protocol(head, 415, "a compressed body is not read", _MEDIA_FIX)
    if not acceptable:
        cause = f"the answer is {JSON_TYPE} or {STREAM_TYPE}, and `Accept` takes neither"
        return _protocol(head, 406, cause, f"send `Accept: {JSON_TYPE}, {STREAM_TYPE}`")
    return None


def _unauthenticated(server: McpServer, head: Head, who: Unauthenticated) -> Reply:
    code = INTERNAL_ERROR if who.status == 503 else INVALID_REQUEST
    reply = envelope.refusal(None, envelope.spoken(head), code, who.refusal, status=who.status)
    where = {} if server.protected is None else server.protected.pointer(head)
    return Reply(reply.status, reply.body, who.headers(where))


def _protocol(head: Head, status: int, cause: str, fix: str) -> Reply:
    told = Refusal("X_MCP_PROTOCOL", cause, fix)
    return envelope.refusal(None, envelope.spoken(head), INVALID_REQUEST, told, status=status)


def _too_large(head: Head, server: McpServer) -> Reply:
    told = refused("X_MCP_BODY_TOO_LARGE", server.audience)
    limit = server.door.body_limit
    return envelope.refusal(None, envelope.spoken(head), INVALID_REQUEST, told, status=413, limit=limit)
