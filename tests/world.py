"""A plain world of `rules.py` as a real app, served in memory, with a transcript of everything it did.

Knows how to speak HTTP and MCP to it; decides nothing.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Callable, Coroutine, Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

from nonsuch import (
    Agent,
    App,
    Human,
    Principal,
    asgi,
)
from nonsuch.adapters.edge.idempotency import IdempotencyStore
from nonsuch.adapters.edge.run import Running
from nonsuch.kernel.audit import Event
from nonsuch.kernel.model import Outcome
from nonsuch.kernel.strict_json import Json

from . import rules
from .rules import Caller
from .world_app import build

T = TypeVar("T")
NOON: Final = datetime(2026, 7, 28, 12, tzinfo=UTC)
REVISIONS: Final = ("2025-06-18", "2025-11-25", "2026-07-28")
MODERN: Final = "2026-07-28"
HOST: Final = ("host", "127.0.0.1")
TYPED: Final = ("content-type", "application/json")
JSON_ONLY, STREAM_ONLY = "application/json", "text/event-stream"
EITHER: Final = f"{JSON_ONLY}, {STREAM_ONLY}"
WIRES: Final = (None, JSON_ONLY, EITHER, STREAM_ONLY)  # what `Accept` says; nothing takes JSON
PROTOCOL: Final = "io.modelcontextprotocol/"
_PLAIN_HEADER: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_META: Final[dict[str, object]] = {
    f"{PROTOCOL}protocolVersion": MODERN,
    f"{PROTOCOL}clientCapabilities": {},
    f"{PROTOCOL}clientInfo": {"name": "tests", "version": "0"},
}


# requests and answers


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, whole."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    query: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, as it left: the headers in the order they were sent."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    @property
    def value(self) -> Any:
        """The answer as JSON: the body, or the last message of a stream."""
        *_, last = self.messages
        return last

    @property
    def messages(self) -> list[Any]:
        """Every message of a stream; a whole body is one."""
        if (b"content-type", STREAM_ONLY.encode()) not in self.headers:
            return [json.loads(self.body)]
        lines = self.body.decode().splitlines()
        return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def bearer(token: str | None) -> tuple[tuple[str, str], ...]:
    """The header of a token; none for nobody."""
    return () if token is None else (("authorization", f"Bearer {token}"),)


def http(token: str | None, path: str, body: bytes | Mapping[str, object], method: str = "POST") -> Request:
    """A request to the HTTP surface."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request(method, f"/api/{path}", (HOST, *bearer(token), TYPED), raw)


def mcp(
    token: str | None,
    revision: str,
    method: str,
    params: Mapping[str, object] | None = None,
    ident: object = 1,
    meta: Mapping[str, object] | None = None,
) -> Request:
    """A JSON-RPC message of a revision, mirrored as the revision wants it. ``ident=None`` notifies."""
    told = dict(params or {})
    headers = [HOST, *bearer(token), TYPED]
    if method != "initialize":
        headers.append(("mcp-protocol-version", revision))
    if revision == MODERN:
        told["_meta"] = {**_META, **(meta or {})}
        headers.append(("mcp-method", method))
        named = [told[key] for key in ("name", "uri") if isinstance(told.get(key), str)]
        headers += [("mcp-name", mirrored(str(each))) for each in named[:1]]
    elif meta:
        told["_meta"] = dict(meta)
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": told}
    if ident is not None:
        message["id"] = ident
    return Request("POST", "/mcp", tuple(headers), json.dumps(message).encode())


def over(request: Request, accept: str | None) -> Request:
    """The request of a client that takes answers in this form."""
    if accept is None:
        return request
    return dataclasses.replace(request, headers=(*request.headers, ("accept", accept)))


def mirrored(name: str) -> str:
    """A name as a header value: base64 where it is not plain."""
    if _PLAIN_HEADER.fullmatch(name):
        return name
    return f"=?base64?{base64.b64encode(name.encode()).decode()}?="


def call(
    token: str | None, revision: str, name: str, arguments: Mapping[str, object], ident: object = 1
) -> Request:
    """A `tools/call`."""
    return mcp(token, revision, "tools/call", {"name": name, "arguments": dict(arguments)}, ident)


def manage(
    token: str | None,
    revision: str,
    resource: str,
    action: str,
    params: Mapping[str, object],
    ident: object = 1,
) -> Request:
    """A `tools/call` through the constant surface."""
    arguments = {"resource": resource, "action": action, "params": dict(params)}
    return call(token, revision, "manage_resource", arguments, ident)


# the world


@dataclass(slots=True)
class World:
    """A served app, who its tokens are, and everything that happened in it.

    ``grouped`` serves it by the constant surface: the tools of each resource. ``page_size`` cuts its lists.
    ``keys`` is where keyed calls are recorded, for worlds that share it.
    """

    declared: rules.World
    tokens: dict[str, Principal]
    grouped: Mapping[str, tuple[str, ...]] | None = None
    page_size: int | None = None
    answers: list[Answer] = field(default_factory=list[Answer])
    ran: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    audit: list[Event] = field(default_factory=list[Event])
    keys: IdempotencyStore | None = None
    app: App = field(init=False)
    serve: Callable[[Any, Any, Any], Coroutine[Any, Any, None]] = field(init=False)
    running: Running = field(init=False)

    def __post_init__(self) -> None:
        self.app = build(self)
        self.serve = cast(
            "Callable[[Any, Any, Any], Coroutine[Any, Any, None]]", asgi(self.app, lambda: NOON)
        )
        self.running = Running(self.app, None, lambda: NOON)

    def send(self, request: Request) -> Answer:
        """Serve one request to its end and return what left."""
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        drive(self.serve(scope_of(request), receive, send))
        start, *bodies = sent
        headers = tuple((bytes(name), bytes(value)) for name, value in start["headers"])
        answer = Answer(start["status"], headers, b"".join(each.get("body", b"") for each in bodies))
        self.answers.append(answer)
        return answer

    def invoke(self, caller: Principal, name: str, arguments: Mapping[str, object]) -> Outcome:
        """Call in process, as an in-app agent does."""
        given = cast("Mapping[str, Json]", arguments)
        return drive(self.running.invoke(caller, name, given))


def scope_of(request: Request) -> dict[str, Any]:
    """The ASGI scope of a request."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers]
    return {
        "type": "http",
        "method": request.method,
        "path": request.path,
        "query_string": request.query.encode("latin-1"),
        "headers": headers,
        "client": ("127.0.0.1", 50_000),
    }


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits: no event loop, so nothing but our own code runs."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    work.close()
    raise RuntimeError("the work waits for something outside of the world")


def principal(caller: Caller) -> Principal:
    """A plain caller as nonsuch knows it."""
    if caller.kind == "human":
        return Human(caller.id, roles=caller.roles, org=caller.org, scopes=caller.scopes)
    behind = None if caller.behind is None else principal(caller.behind)
    if behind is not None and not isinstance(behind, Human):
        raise TypeError("an agent acts for a human only")
    scopes = frozenset[str]() if caller.scopes is None else caller.scopes
    return Agent(caller.id, roles=caller.roles, org=caller.org, scopes=scopes, acts_for=behind)
