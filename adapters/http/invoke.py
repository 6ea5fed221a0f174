"""POST /api/<path>: the same actions for people and services, through the same gates.

A hidden action's path is an unknown path. Knows no framework and no socket.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, assert_never

from ...kernel.audit import limited_call
from ...kernel.errors import Refusal, refusal, refused
from ...kernel.gates import Kernel
from ...kernel.model import (
    Begun,
    Call,
    Failed,
    Hidden,
    InputRequired,
    InvalidArguments,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    ScopeDenied,
    Unfit,
)
from ...kernel.steps import Audit, ReadBody, Returned, Steps
from ...kernel.strict_json import Json, JsonRefused, loads
from ...kernel.view import View
from ..meters import class_of, metered
from ..wire import (
    JSON_TYPE,
    Door,
    Head,
    Reply,
    Unauthenticated,
    authenticate,
    challenge,
    media_type,
    problem,
)

_FAILURES: Final = {"X_NOT_FOUND": 404, "X_INTERNAL": 500, "X_OUTPUT_INVALID": 500}


@dataclass(frozen=True, slots=True, eq=False)
class HttpServer:
    """The HTTP surface of one kernel, under a path prefix that ends with a slash."""

    kernel: Kernel
    door: Door
    prefix: str = "/api/"


def nothing(server: HttpServer, head: Head) -> Steps[Reply]:
    """Answer for a place where nothing can be, without asking who calls."""
    refusing = server.door.refuses(head)
    yield from ()
    return problem(403, refusing) if refusing is not None else _unknown(server)


def serve(server: HttpServer, head: Head) -> Steps[Reply]:
    """Answer one request.

    1. Host and Origin  2. authentication  3. the rate  4. body and JSON  5. the kernel's gates.
    What is refused before 5 is refused for every path outside the caller's view alike, so that none shows.
    """
    refusing = server.door.refuses(head)  # 1
    if refusing is not None:
        return problem(403, refusing)
    who = yield from authenticate(head, server.door, agents_only=False)  # 2
    if isinstance(who, Unauthenticated):
        return problem(who.status, who.refusal, who.headers())
    path = head.path.removeprefix(server.prefix) if head.path.startswith(server.prefix) else None
    view = server.kernel.view_for(who)
    held = yield from _limited(server, head, view, path)  # 3
    if held is not None:
        return held
    if head.method != "POST" or path is None:
        return _unknown(server)
    arguments = yield from _arguments(server, head)  # 4
    if isinstance(arguments, Reply):
        return arguments
    return (yield from _invoke(server, view, path, arguments))  # 5


def _limited(server: HttpServer, head: Head, view: View, path: str | None) -> Steps[Reply | None]:
    """Count a request, and return its refusal if it must not pass; whatever runs nothing is a write."""
    entry = view.find(path, "http") if path is not None and head.method == "POST" else None
    held = yield from metered(server.door, class_of(entry), view.principal)
    if held is None:
        return None
    name = entry.name if entry is not None else head.path if path is None else path
    yield Audit(limited_call(view.principal, name, "http", held.code, seen=entry is not None))
    return problem(held.status, refused(held.code, server.door.audience), held.headers)


def _arguments(server: HttpServer, head: Head) -> Steps[dict[str, Json] | Reply]:
    if media_type(head) != JSON_TYPE or head.headers.get("content-encoding", "identity") != "identity":
        return problem(415, _json(server, f"the body must be uncompressed {JSON_TYPE}"))
    limit = server.door.body_limit
    body = yield ReadBody(limit)
    if not isinstance(body, Returned) or not isinstance(body.value, bytes):
        return problem(413, refused("X_MCP_BODY_TOO_LARGE", server.door.audience))
    try:
        value = loads(body.value, server.door.limits)
    except JsonRefused as fault:
        return problem(400, _json(server, str(fault)))
    return value if isinstance(value, dict) else problem(400, _json(server, "the body is not a JSON object"))


def _json(server: HttpServer, cause: str) -> Refusal:
    return Refusal("X_JSON_INVALID", cause, refused("X_JSON_INVALID", server.door.audience).fix)


def _invoke(server: HttpServer, view: View, path: str, arguments: dict[str, Json]) -> Steps[Reply]:
    outcome = yield from server.kernel.invoke(view, Call(path, arguments, "http"))
    entry = view.find(path, "http")
    return _reply(server, entry.name if entry is not None else "", outcome)


def _reply(server: HttpServer, name: str, outcome: Outcome) -> Reply:
    match outcome:
        case Ok(json):
            return Reply(200, json)
        case Hidden():
            return _unknown(server)
        case ScopeDenied(scope):
            told = refusal(outcome, name, server.door.audience)
            return problem(403, told, (challenge({"error": "insufficient_scope", "scope": scope}),))
        case InputRequired() | Begun() | Unfit():  # nobody to ask over HTTP, and no line that could say so
            return problem(500, refused("X_INTERNAL", server.door.audience))
        case InvalidArguments() | PolicyDenied() | PolicyError() | Failed():
            return problem(_status(outcome), refusal(outcome, name, server.door.audience))
        case _:
            assert_never(outcome)


def _status(outcome: InvalidArguments | PolicyDenied | PolicyError | Failed) -> int:
    match outcome:
        case PolicyDenied() | PolicyError():
            return 403
        case InvalidArguments():
            return 422
        case Failed(code):
            return _FAILURES.get(code, 409)
        case _:
            assert_never(outcome)


def _unknown(server: HttpServer) -> Reply:
    return problem(404, refused("X_ROUTE_NOT_FOUND", server.door.audience))
