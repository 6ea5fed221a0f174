"""Requests and answers as values, and two ways to ask the app: the generators alone, and ASGI.

Opens no socket; knows neither what an answer should be nor how it came about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from nonsuch import App, Context, asgi
from nonsuch.adapters.door import cross_origin
from nonsuch.adapters.edge.run import Clock, utc_now
from nonsuch.adapters.http import invoke as http
from nonsuch.adapters.mcp import server as mcp
from nonsuch.adapters.wire import STREAM_HEADERS, Head, Reply, event
from nonsuch.kernel.signatures import Handler
from nonsuch.kernel.steps import (
    Answer as StepAnswer,
)
from nonsuch.kernel.steps import (
    Audit,
    Change,
    ChangeTask,
    Deliver,
    FindTask,
    Listen,
    Load,
    Permit,
    Raised,
    ReadBody,
    ResolveToken,
    Returned,
    Step,
    Steps,
    Watch,
    Write,
)

T = TypeVar("T")
NOW: Final = datetime(2026, 8, 1, tzinfo=UTC)
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One request; a header may come twice."""

    method: str
    path: str
    headers: Headers
    body: bytes = b""
    query: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; `headers` in lower case, as a set of pairs because their order says nothing."""

    status: int
    headers: frozenset[tuple[str, str]]
    body: bytes


# The generators alone


def sans_io(app: App, request: Request) -> Answer:
    """Ask the generators, answering their steps by hand."""
    folded: dict[str, str] = {}
    for name, value in request.headers:
        key = name.lower()
        folded[key] = f"{folded[key]}, {value}" if key in folded else value
    head = Head(request.method, request.path, folded, "127.0.0.1", query=request.query)
    steps: Steps[Reply]
    is_mcp = request.path in (app.path, f"{app.path}/")
    steps = mcp.serve(app.mcp, head) if is_mcp else http.serve(app.http, head)
    written: list[bytes] = []
    reply = _driven(steps, app, request.body, written)
    shared = cross_origin(head) if is_mcp and app.mcp.door.refuses(head) is None else ()
    if written:
        body = b"".join(map(event, [*written, *([reply.body] if reply.body else [])]))
        return Answer(200, frozenset((*STREAM_HEADERS, *shared)), body)
    return Answer(reply.status, frozenset((*reply.all_headers(), *shared)), reply.body)


def _driven(steps: Steps[T], app: App, body: bytes, written: list[bytes]) -> T:
    answer: StepAnswer | None = None
    try:
        while True:
            step = steps.send(answer)  # type: ignore[arg-type]  # None starts it
            answer = _answered(step, app, body, written)
    except StopIteration as done:
        value: T = done.value
        return value


def _answered(step: Step, app: App, body: bytes, written: list[bytes]) -> StepAnswer:
    """A server that closes at once: whoever watches is told that nothing changed."""
    match step:
        case ResolveToken(token, facts):
            assert app.resolve_token is not None
            try:
                return Returned(app.resolve_token(token, facts))
            except ConnectionError as fault:
                return Raised(fault)
        case ReadBody(limit):
            return Returned(body if len(body) <= limit else None)
        case Load(loader, given, principal):
            return _ran(loader, given, Context(principal, None, None, NOW))
        case Permit(_, given, principal, resource):
            return _ran(step.handler, given, Context(principal, resource, None, NOW))
        case Write(message):
            written.append(message)
            return Returned(None)
        case Listen():
            return Returned(True)
        case Watch(0):
            return Returned(Change(1, frozenset()))
        case Watch() | Deliver() | Audit() | FindTask() | ChangeTask():  # there are no tasks
            return Returned(None)
        case _:
            raise AssertionError(f"nobody expected {step}")


def _ran(handler: Handler, given: object, context: Context[None]) -> StepAnswer:
    try:
        return Returned(handler.function(*(given if each == "input" else context for each in handler.takes)))
    except Exception as fault:  # noqa: BLE001 - the app's handlers raise on purpose
        return Raised(fault)


# ASGI


def in_process(app: App, request: Request, chunk: int | None = None, clock: Clock = utc_now) -> Answer:
    """Ask the ASGI application; with `chunk` the body arrives in pieces of that many bytes."""
    sent: list[MutableMapping[str, Any]] = []
    pieces = iter(_pieces(request.body, chunk))

    async def receive() -> MutableMapping[str, Any]:
        piece, more = next(pieces)
        return {"type": "http.request", "body": piece, "more_body": more}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(asgi(app, clock)(_scope(request), receive, send))
    start, *rest = sent
    return Answer(
        start["status"],
        frozenset((name.decode().lower(), value.decode("latin-1")) for name, value in start["headers"]),
        b"".join(each.get("body", b"") for each in rest),
    )


def _pieces(body: bytes, chunk: int | None) -> Iterable[tuple[bytes, bool]]:
    size = chunk or max(len(body), 1)
    for start in range(0, max(len(body), 1), size):
        yield body[start : start + size], start + size < len(body)


def _scope(request: Request) -> MutableMapping[str, Any]:
    return {
        "type": "http",
        "method": request.method,
        "path": request.path,
        "root_path": "",
        "query_string": request.query.encode("latin-1"),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in request.headers],
        "client": ("127.0.0.1", 50_000),
    }
