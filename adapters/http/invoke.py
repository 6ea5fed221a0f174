"""``/api/<path>``: the same actions for people and services, through the same gates.

A hidden action's path is an unknown path, whatever the method. Knows no framework and no socket.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...kernel.audit import limited_call, malformed_call
from ...kernel.catalog import Entry
from ...kernel.errors import Refusal, refusal, refused
from ...kernel.gates import Kernel
from ...kernel.meter import RateClass
from ...kernel.model import (
    Begun,
    Call,
    Failed,
    Hidden,
    InputRequired,
    Ok,
    Outcome,
    Principal,
    ScopeDenied,
    Unfit,
)
from ...kernel.steps import Audit, ReadBody, ResolvePrincipal, Returned, Steps
from ...kernel.strict_json import Json, JsonRefused, loads
from ...kernel.view import View
from ..authentication import Unauthenticated, authenticate, challenge
from ..door import Door, foreign
from ..meters import class_of, metered
from ..wire import JSON_TYPE, Head, Reply, media_type, problem
from . import flat, openapi
from .openapi import Described
from .routes import DOCUMENT, OPENAPI, WITH_BODY, Route, routes_of
from .session import session_of, shown
from .status import STATUS, status_of

PREFIX: Final = "/api/"


@dataclass(frozen=True, slots=True, eq=False)
class HttpServer:
    """The HTTP surface of one kernel, under a path prefix that ends with a slash.

    ``sessions``: a request without a token is asked about too; ``headers`` are those that it may show.
    """

    kernel: Kernel
    door: Door
    described: Described = field(default_factory=Described)
    sessions: bool = False
    headers: tuple[str, ...] = ()
    prefix: str = PREFIX
    routes: Mapping[Entry, Route] = field(init=False)
    documents: openapi.Documents = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "routes", routes_of(self.kernel.catalog))
        object.__setattr__(self, "documents", openapi.Documents(self.described, self.prefix, self.routes))

    def session(self, head: Head) -> ResolvePrincipal | None:
        """Return what to ask about a request without a token, if anybody can be asked."""
        return session_of(head, self.headers) if self.sessions else None


def nothing(server: HttpServer, head: Head) -> Steps[Reply]:
    """Answer for a place where nothing can be, without asking who calls."""
    refusing = yield from foreign(head, server.door)
    return problem(403, refusing) if refusing is not None else _unknown(server)


def serve(server: HttpServer, head: Head) -> Steps[Reply]:
    """Answer one request. What a GET answers is for its caller alone, and a cookie does not say so."""
    reply = yield from _served(server, head)
    if head.method not in ("GET", "HEAD"):
        return reply
    return Reply(reply.status, reply.body, (*reply.headers, ("cache-control", "no-store")), reply.media)


def _served(server: HttpServer, head: Head) -> Steps[Reply]:
    """Answer one request, step by step.

    1. Host and Origin  2. authentication  3. the rate  4. body and JSON  5. method  6. the kernel's gates.
    What is refused before 5 is refused for every path outside the caller's view alike, so that none shows.
    """
    who = yield from _who(server, head)  # 1, 2
    if isinstance(who, Reply):
        return who
    asked = _asked(server, head, server.kernel.view_for(who))
    held = yield from _limited(server, asked.view, asked.costs, asked.path, asked.entry)  # 3
    if held is not None:
        return held
    if not asked.inside:
        return _unknown(server)
    sent = yield from _sent(asked)  # 4
    if isinstance(sent, Reply):
        return sent
    return (yield from _answered(asked, sent))


def admitted(server: HttpServer, head: Head, entry: Entry) -> Steps[Principal | Reply]:
    """Say whose a request is that a view of the application's own answers, or how it is refused: as here.

    1. Host and Origin  2. authentication  3. the rate, of a call of this entry.
    """
    who = yield from _who(server, head)  # 1, 2
    if isinstance(who, Reply):
        return who
    view = server.kernel.view_for(who)
    seen = entry if view.holds(entry) else None
    held = yield from _limited(server, view, class_of(seen), entry.path or entry.name, seen)  # 3
    return who if held is None else held


def caller_of(server: HttpServer, head: Head) -> Steps[Principal | Unauthenticated]:
    """Say whose a request is: by a token, or by a session where there is none."""
    session = server.session(head)
    shows = session is not None and shown(session, server.described.session_cookie)
    return authenticate(head, server.door, agents_only=False, session=session, shows=shows)


def _who(server: HttpServer, head: Head) -> Steps[Principal | Reply]:
    refusing = yield from foreign(head, server.door)
    if refusing is not None:
        return problem(403, refusing)
    who = yield from caller_of(server, head)
    return problem(who.status, who.refusal, who.headers()) if isinstance(who, Unauthenticated) else who


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request of a known caller, and what the caller sees at its path.

    ``inside``: the path is one of ours, so that something could be there.
    """

    server: HttpServer
    head: Head
    view: View
    inside: bool
    path: str
    entry: Entry | None
    route: Route | None

    @property
    def runs(self) -> bool:
        """Whether the caller sees something here that this method runs."""
        return self.route is not None and self.route.answers(self.head.method)

    @property
    def costs(self) -> RateClass:
        """What the request is counted as; whatever runs nothing is a write."""
        entry = self.entry if self.runs else None
        return "read" if self.runs and entry is None else class_of(entry)


def _asked(server: HttpServer, head: Head, view: View) -> _Asked:
    inside = head.path.startswith(server.prefix)
    path = head.path.removeprefix(server.prefix) if inside else head.path
    if inside and path == OPENAPI:
        return _Asked(server, head, view, inside, path, None, DOCUMENT)
    entry = view.find(path, "http") if inside else None
    return _Asked(server, head, view, inside, path, entry, None if entry is None else server.routes[entry])


def _limited(
    server: HttpServer, view: View, kind: RateClass, path: str, seen: Entry | None
) -> Steps[Reply | None]:
    """Count a request, and return its refusal if it must not pass."""
    held = yield from metered(server.door, kind, view.principal)
    if held is None:
        return None
    name = path if seen is None else seen.name
    yield Audit(limited_call(view.principal, name, "http", held.code, seen=seen is not None))
    return problem(held.status, refused(held.code, server.door.audience), held.headers)


def _sent(asked: _Asked) -> Steps[dict[str, Json] | Reply]:
    """Return the object in the body of a method that has one; the others have their query string."""
    server, head = asked.server, asked.head
    if head.method not in WITH_BODY:
        return {}
    if media_type(head) != JSON_TYPE or head.headers.get("content-encoding", "identity") != "identity":
        cause = f"the body must be uncompressed {JSON_TYPE}"
        return (yield from _unread(asked, "X_MEDIA_TYPE_UNSUPPORTED", cause))
    if head.query:
        cause = f"the arguments of a {head.method} come in its body, and none in the query string"
        return (yield from _unread(asked, "X_INPUT_INVALID", cause))
    body = yield ReadBody(server.door.body_limit)
    if not isinstance(body, Returned):  # its caller is gone: nobody reads this, and nothing was asked
        return problem(STATUS["X_MCP_BODY_TOO_LARGE"], refused("X_MCP_BODY_TOO_LARGE", server.door.audience))
    if not isinstance(body.value, bytes):
        return (yield from _unread(asked, "X_MCP_BODY_TOO_LARGE"))
    try:
        value = loads(body.value, server.door.limits)
    except JsonRefused as fault:
        return (yield from _unread(asked, "X_JSON_INVALID", str(fault)))
    return value if isinstance(value, dict) else (yield from _unread(asked, "X_JSON_INVALID", _NO_OBJECT))


def _unread(asked: _Asked, code: str, cause: str | None = None) -> Steps[Reply]:
    """Refuse what no gate was asked about, and have it audited, at hidden paths as at others."""
    name = asked.path if asked.entry is None else asked.entry.name
    yield Audit(malformed_call(asked.view.principal, name, "http", code))
    told = refused(code, asked.server.door.audience)
    return problem(STATUS[code], told if cause is None else Refusal(code, cause, told.fix))


_NO_OBJECT: Final = "the body is not a JSON object"


def _answered(asked: _Asked, sent: dict[str, Json]) -> Steps[Reply]:
    server, head, route = asked.server, asked.head, asked.route
    if route is not None and not route.answers(head.method):  # 5
        if head.method == "OPTIONS":
            return Reply(204, headers=(route.allow,))
        refusing = yield from _unread(asked, "X_METHOD_NOT_ALLOWED")
        return Reply(refusing.status, refusing.body, (route.allow,), refusing.media)
    if route is DOCUMENT:
        return Reply(200, server.documents.of(asked.view.table))
    flat_keys = route is not None and head.method not in WITH_BODY
    arguments = flat.arguments(head.query, route.shapes) if route is not None and flat_keys else sent
    call = Call(asked.path, arguments, "http", key=key_of(head))
    outcome = yield from server.kernel.invoke(asked.view, call)  # 6
    return reply_to(server, "" if asked.entry is None else asked.entry.name, outcome)


_BARE: Final = re.compile(r"[!#-+\--:<-\[\]-~]+")  # visible, and none of `"` `,` `;` `\`
_QUOTED: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')


def key_of(head: Head) -> str | None:
    """Return the idempotency key of a request: a string (RFC 9651 3.3.3), or bare as many clients send it.

    What is neither, as a header that comes twice, is the empty key, which no action takes.
    """
    said = head.headers.get("idempotency-key")
    if said is None:
        return None
    said = said.strip(" \t")
    quoted = _QUOTED.fullmatch(said)
    if quoted is not None:
        return re.sub(r"\\(.)", r"\1", quoted[1])
    return said if _BARE.fullmatch(said) else ""


def reply_to(server: HttpServer, name: str, outcome: Outcome) -> Reply:
    """Return the answer to how a call ended; ``name`` is the action's, where the caller sees one."""
    match outcome:
        case Ok(json):
            return Reply(status_of(outcome), json)
        case Hidden():
            return _unknown(server)
        case InputRequired() | Begun() | Unfit():  # nobody to ask over HTTP, and no line that could say so
            return problem(status_of(outcome), refused("X_INTERNAL", server.door.audience))
        case _:
            told = refusal(outcome, name, server.door.audience)
            return problem(status_of(outcome), told, _headers(outcome))


def _headers(outcome: Outcome) -> tuple[tuple[str, str], ...]:
    match outcome:
        case ScopeDenied(scope):
            return (challenge({"error": "insufficient_scope", "scope": scope}),)
        case Failed("X_IDEMPOTENCY_IN_PROGRESS" | "X_IDEMPOTENCY_STORE_FAILED"):
            return (("retry-after", "1"),)  # RFC 9110 10.2.3
        case _:
            return ()


def _unknown(server: HttpServer) -> Reply:
    return problem(STATUS["X_ROUTE_NOT_FOUND"], refused("X_ROUTE_NOT_FOUND", server.door.audience))
