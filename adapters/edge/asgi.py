"""ASGI: scope and messages to a Head and back from a Reply. Decides nothing but which surface a path is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Final

from ...kernel.errors import refused
from ..wire import JSON_TYPE, STREAM_HEADERS, Head, Reply, event, last_event, problem
from .app import App
from .endpoints import Mounted, chosen, endpoints, opened
from .reload import When
from .route import beyond, route, shared
from .run import Clock, Edge, Running, run, utc_now

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

log: Final = logging.getLogger("nonsuch.asgi")


PATIENCE_SECONDS: Final = 0.05
_NEVER_STARTED: Final = "the lifespan of `%s` never started; serve it with lifespan on"
_CLOSE: Final = (("connection", "close"),)
_JSON: Final = (b"content-type", JSON_TYPE.encode())
_STREAM: Final = [(name.encode(), value.encode()) for name, value in STREAM_HEADERS]


class _Gone(Exception):
    """The client left before its body was whole."""


def asgi(app: Mounted, clock: Clock = utc_now, *, reload: When | None = None) -> Application:
    """Return an ASGI application: MCP at the app's path, actions at ``/api/...``, the lifespan handled.

    Several apps are several endpoints, each at its own ``path=``. Besides, the first one has ``/api/...``
    and the root's well-known document, the others their path-inserted document alone.

    Under a prefix of another application that application enters the lifespan, because no server does::

        mcp = asgi(app)
        api = FastAPI(lifespan=mcp.lifespan)
        api.mount("/agents", mcp)  # MCP at /agents/mcp

    ``reload="signal"`` reads the policies again on SIGHUP, ``"watch"`` whenever a file of them changes.

    A server that stops waits for its open streams before it tells the lifespan: give it a limit for that
    (uvicorn: ``timeout_graceful_shutdown``), or one listener keeps it running.

    Raises: BootError, when an app has no ``resolve_token``, or two have one path.
    """
    return Application(endpoints(app), clock, reload)


class Application:
    """An ASGI application over one app, or over several side by side."""

    def __init__(self, apps: tuple[App, ...], clock: Clock, reload: When | None) -> None:
        self._apps, self._clock = apps, clock
        self._reload: When | None = reload
        plain = (app for app in apps if app.lifespan is None)
        self._running: Mapping[App, Running] = {app: Running(app, None, clock) for app in plain}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or take part in the lifespan protocol."""
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "lifespan":
                await self._lifespan(receive, send)
            case _:
                await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = head_of(scope, self._clock().timestamp())
        app = chosen(self._apps, head)
        running = self._running.get(app)
        if running is None:
            log.error(_NEVER_STARTED, app.name)
            return await _send(problem(503, refused("X_INTERNAL")), send)
        stream = _Stream(receive, send, (*shared(app, head), *parting(head)))
        edge = Edge(running, _reader(head, receive), stream)
        try:
            reply = await run(route(app, head), edge)
            await stream.finish(reply)
        except _Gone:
            return None
        except asyncio.CancelledError:
            if not stream.left:
                raise
        finally:
            stream.close()
            edge.flush()
        return None

    @asynccontextmanager
    async def lifespan(self, host: object = None) -> AsyncGenerator[None]:
        """Enter the lifespan of the apps: for a host that mounts this application, so that no server does."""
        async with opened(self._apps, self._clock, self._reload) as self._running:
            try:
                yield
            finally:
                self._running = {}

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        phase = "startup"
        try:
            async with self.lifespan():
                await send({"type": "lifespan.startup.complete"})
                phase = "shutdown"
                await receive()
        except Exception as refusal:  # told to the server, and raised on
            await send({"type": f"lifespan.{phase}.failed", "message": type(refusal).__name__})
            raise
        await send({"type": "lifespan.shutdown.complete"})


class _Stream:
    """The answer of one request: whole, or a stream once a message precedes it (``run.Outlet``)."""

    def __init__(self, receive: Receive, send: Send, shared: tuple[tuple[str, str], ...] = ()) -> None:
        self._receive, self._send, self._shared = receive, send, shared
        self._begun = self._ended = self._gone = False
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[None] | None = None
        self.left = False

    async def write(self, message: bytes) -> None:
        """Send one message as an event; what is said once the answer is whole goes nowhere."""
        if self._ended:
            return
        if not self._begun:
            self._begun = True
            headers = [*_STREAM, *_raw(self._shared)]
            await self._say({"type": "http.response.start", "status": 200, "headers": headers})
        await self._part(event(message))

    async def rest(self) -> None:
        """Send a comment, which is no event."""
        await self._part(b": \n\n")

    async def finish(self, reply: Reply) -> None:
        """Send the answer; in a stream it is the last event."""
        self._ended = True
        if not self._begun:
            await _send(reply, self._send, self._shared)
            return
        await self._say({"type": "http.response.body", "body": last_event(reply)})

    async def _part(self, data: bytes) -> None:
        await self._say({"type": "http.response.body", "body": data, "more_body": True})

    async def _say(self, message: Message) -> None:
        """Send a part of a stream; a server that raises here says that the client has left (ASGI 2.4)."""
        try:
            if not self._gone:
                await self._send(message)
        except OSError:
            self._gone = True
            if self._task is not None and not self._ended:
                self._leave(self._task)
        if self._gone:
            await asyncio.sleep(0)  # who says a lot to nobody leaves a turn to others, and can be stopped

    def stoppable(self) -> None:
        """Watch for the client to leave, once the request takes longer than most."""
        if self._task is None:
            try:
                loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            except RuntimeError:  # driven by hand: nobody leaves
                return
            if self._task is not None:
                self._timer = loop.call_later(PATIENCE_SECONDS, self._begin, self._task)

    def _begin(self, task: asyncio.Task[object]) -> None:
        self._timer, self._watch = None, asyncio.ensure_future(self._watched(task))

    async def _watched(self, task: asyncio.Task[object]) -> None:
        """Wait for the end. A server that goes on telling the end of the body tells no other."""
        whole = False
        while (message := await self._receive())["type"] != "http.disconnect":
            if whole:
                return
            whole = not message.get("more_body", False)
        self._leave(task)

    def _leave(self, task: asyncio.Task[object]) -> None:
        self.left = True
        task.cancel()

    def close(self) -> None:
        """Stop watching, and take our own cancellation back: who awaits us may be in the same task."""
        task = asyncio.current_task() if self.left else None
        if task is not None:
            task.uncancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()


def parting(head: Head) -> tuple[tuple[str, str], ...]:
    """Return what ends a connection after a request that another reader may cut elsewhere.

    That has a length beside chunks (RFC 9112 6.3), or a body beside an offer of another protocol, at which
    some servers stop to read. What lies behind it on the connection must never be a request.
    """
    headers = head.headers
    if "transfer-encoding" not in headers and "upgrade" not in headers:
        return ()
    length, chunks = "content-length" in headers, "transfer-encoding" in headers
    return _CLOSE if (length and chunks) or ("upgrade" in headers and (length or chunks)) else ()


def head_of(scope: Scope, received: float = 0.0) -> Head:
    """Return the head of an ASGI HTTP scope; only ``scope["path"]`` is believed of the target."""
    path = str(scope["path"])
    root = str(scope.get("root_path", "")).rstrip("/")
    client = scope.get("client")
    return Head(
        method=scope["method"],
        path=path.removeprefix(root) if path.startswith(f"{root}/") else path,
        headers=_joined(scope["headers"]),
        address=client[0] if client else None,
        scheme=str(scope.get("scheme", "http")),
        received=received,
        query=bytes(scope.get("query_string", b"")).decode("latin-1"),
    )


def _joined(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    pairs = list(raw)
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}
    if len(headers) == len(pairs):
        return headers
    headers = dict[str, str]()
    for name, value in pairs:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        between = "; " if key == "cookie" else ", "  # RFC 9113 8.2.3
        headers[key] = f"{headers[key]}{between}{text}" if key in headers else text
    return headers


def _reader(head: Head, receive: Receive) -> Callable[[int], Awaitable[bytes | None]]:
    async def read(limit: int) -> bytes | None:
        if beyond(head.headers.get("content-length", ""), limit):
            return None
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                return None
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    return read


def _raw(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


async def _send(reply: Reply, send: Send, shared: tuple[tuple[str, str], ...] = ()) -> None:
    if reply.body and not reply.headers and not shared and reply.media is JSON_TYPE:
        headers = [_JSON, (b"content-length", b"%d" % len(reply.body))]
    else:
        headers = _raw((*reply.all_headers(), *shared))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
