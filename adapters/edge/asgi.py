"""ASGI: scope and messages to a Head and back from a Reply. Decides nothing but which surface a path is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Final

from ...kernel.errors import refused
from ..wire import JSON_TYPE, STREAM_HEADERS, Head, Reply, event, last_event, problem, unread
from .app import App
from .bodies import Gone, TooSlow, reader
from .endpoints import Mounted, chosen, endpoints, opened
from .reload import When
from .route import route, shared
from .run import Clock, Edge, Running, run, utc_now

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

log: Final = logging.getLogger("nonsuch.asgi")


PATIENCE_SECONDS: Final = 0.05
_NEVER_STARTED: Final = (
    "the lifespan of `%s` never started: serve it with lifespan on, or give the application that mounts it"
    " `lifespan=mcp.lifespan`, where `mcp` is what `asgi` returned"
)
_CLOSE: Final = (("connection", "close"),)
_SLOW: Final = unread(408, "the body comes too slowly", _CLOSE)  # RFC 9110 15.5.9
_JSON: Final = (b"content-type", JSON_TYPE.encode())
_STREAM: Final = [(name.encode(), value.encode()) for name, value in STREAM_HEADERS]


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
        self._patience = _Patience()

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
        stream = _Stream(receive, send, (*shared(app, head), *parting(head)), self._patience)
        edge = Edge(running, reader(head, receive), stream)
        try:
            recorder = running.recorder
            steps = route(app, head) if recorder is None else recorder.http(head)
            reply = await run(steps, edge)
            await stream.finish(reply)
        except Gone:
            return None
        except TooSlow:
            await stream.finish(_SLOW)
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

    __slots__ = (
        "_begun", "_departure", "_ended", "_gone", "_patience", "_receive", "_send", "_shared", "_task",
        "_watch", "left",
    )  # fmt: skip

    def __init__(
        self, receive: Receive, send: Send, shared: tuple[tuple[str, str], ...], patience: _Patience
    ) -> None:
        self._receive, self._send, self._shared, self._patience = receive, send, shared, patience
        self._begun = self._ended = self._gone = self.left = False
        self._task: asyncio.Task[object] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._departure: asyncio.Event | None = None

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
            self._depart()
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
            self._patience.begin(loop, self)

    def watch(self) -> None:
        """Stop the request from now on when its client leaves."""
        if self._watch is None:
            self._watch = asyncio.ensure_future(self._watched())

    async def departure(self) -> None:
        """Return once the client has left, as soon as the server says so."""
        if self._departure is None:
            self._departure = asyncio.Event()
        self.watch()
        if not self._gone:
            await self._departure.wait()

    async def _watched(self) -> None:
        """Wait for the end. A server that goes on telling the end of the body tells no other."""
        whole = False
        while (message := await self._receive())["type"] != "http.disconnect":
            if whole:
                return
            whole = not message.get("more_body", False)
        self._depart()
        if self._task is not None:
            self._leave(self._task)

    def _depart(self) -> None:
        self._gone = True
        if self._departure is not None:
            self._departure.set()

    def _leave(self, task: asyncio.Task[object]) -> None:
        self.left = True
        task.cancel()

    def close(self) -> None:
        """Stop watching, and take our own cancellation back: who awaits us may be in the same task."""
        task = asyncio.current_task() if self.left else None
        if task is not None:
            task.uncancel()
        if self._task is not None:
            self._patience.end(self)
        if self._watch is not None:
            self._watch.cancel()


class _Patience:
    """The requests that run, looked through now and then for those that take longer than most.

    One timer for all of them: one for each costs more than watching, and most end long before it.
    """

    def __init__(self) -> None:
        self._new: set[_Stream] = set()
        self._old: set[_Stream] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, loop: asyncio.AbstractEventLoop, stream: _Stream) -> None:
        """Have a request watched once it has run for one period, and no longer than two."""
        self._new.add(stream)
        if self._loop is not loop:
            self._loop = loop
            loop.call_later(PATIENCE_SECONDS, self._look, loop)

    def end(self, stream: _Stream) -> None:
        """Forget a request that has ended."""
        self._new.discard(stream)
        self._old.discard(stream)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        late, self._old, self._new = self._old, self._new, set()
        for stream in late:
            stream.watch()
        if self._loop is loop:
            if self._old:
                loop.call_later(PATIENCE_SECONDS, self._look, loop)
            else:
                self._loop = None


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
        prefix=root,
    )


def _joined(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    pairs = list(raw)
    headers = _told_once(pairs)
    if len(headers) == len(pairs):
        return headers
    headers = dict[str, str]()
    for name, value in pairs:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        between = "; " if key == "cookie" else ", "  # RFC 9113 8.2.3
        headers[key] = f"{headers[key]}{between}{text}" if key in headers else text
    return headers


def _told_once(pairs: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by name, the last of each; all decoded at once, for they are many and short."""
    names = b"\n".join([name for name, _ in pairs]).decode("latin-1").lower().split("\n")
    values = b"\n".join([value for _, value in pairs]).decode("latin-1").split("\n")
    if len(names) == len(values) == len(pairs):
        return dict(zip(names, values, strict=True))
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}


def _raw(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


async def _send(reply: Reply, send: Send, shared: tuple[tuple[str, str], ...] = ()) -> None:
    if reply.body and not reply.headers and not shared and reply.media is JSON_TYPE:
        headers = [_JSON, (b"content-length", b"%d" % len(reply.body))]
    else:
        headers = _raw((*reply.all_headers(), *shared))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
