"""WSGI (PEP 3333): an environment to a Head and back from a Reply, over as many threads as the server has.

Application code runs on one event loop behind them. Decides nothing.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from queue import SimpleQueue
from typing import Any, Final, Literal
from wsgiref.types import StartResponse, WSGIEnvironment

from ...kernel.errors import refused
from ..wire import STREAM_HEADERS, Head, Reply, event, last_event, problem
from .app import App
from .background import Background
from .endpoints import Mounted, chosen, endpoints
from .environ import body_of, head_of
from .route import route, shared
from .run import Clock, Edge, Running, run, utc_now

log: Final = logging.getLogger("nonsuch.wsgi")


def wsgi(app: Mounted, clock: Clock = utc_now, *, reload: Literal["watch"] | None = None) -> Wsgi:
    """Return a WSGI application: MCP at the app's path, actions at ``/api/...``, the lifespan handled.

    Several apps are several endpoints, each at its own ``path=``. Besides, the first one has ``/api/...``
    and the root's well-known document, the others their path-inserted document alone.

    Under a prefix of a Flask or Django app (SCRIPT_NAME is taken off)::

        DispatcherMiddleware(flask_app, {"/agents": wsgi(app)})  # MCP at /agents/mcp

    The lifespan is entered at the first request of a process, so a server may fork after the import, and
    left when the process ends or at ``close()``. A streamed answer and a question to the client hold a
    thread each: serve with threads, more of them than one caller may have streams open
    (``define_app_mcp(streams=StreamLimits(per_principal=...))``). An answer to a question reaches the
    process that asked only, so the older revisions' questions need one process. ``reload="watch"`` reads
    the policies again whenever a file of them changes.

    A server gives ``Mcp_Name`` and ``Mcp-Name`` one name in the environment: refuse headers with
    underscores in front (nginx and gunicorn do) where that matters to another reader of them. A server
    notices that a client left when it sends: a stream sends a comment every 15 seconds.

    Raises: BootError, when an app has no ``resolve_token``, or two have one path.
    """
    return Wsgi(endpoints(app), clock, reload)


class Wsgi:
    """A WSGI application over one app, or over several side by side."""

    def __init__(self, apps: tuple[App, ...], clock: Clock, reload: Literal["watch"] | None) -> None:
        self._apps, self._clock = apps, clock
        self._background = Background(apps, clock, reload)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request (PEP 3333)."""
        head = head_of(environ, self._clock().timestamp())
        app = chosen(self._apps, head)
        visit = _Visit(environ, head, shared(app, head))
        try:
            self._background.begin(app, visit.answered)
        except Exception as fault:  # noqa: BLE001  (application code: whatever the lifespan raises, 503)
            log.error("the lifespan of `%s` did not start: %s", app.name, type(fault).__name__)
            reply = problem(503, refused("X_INTERNAL"))
            _start(reply, (), start_response)
            return [b"" if head.method == "HEAD" else reply.body]
        return visit.begin(start_response)

    def close(self) -> None:
        """End what runs and leave the lifespan, as at the end of the process; a request enters it anew."""
        self._background.close()


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """The loop wants the body; a reply says why it cannot be had."""

    limit: int
    body: asyncio.Future[bytes | Reply | None]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The loop wants a part of a stream sent, and to know when it was."""

    data: bytes
    sent: asyncio.Future[None]


class _Unread(Exception):
    """The body cannot be read."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        super().__init__(reply.status)


class _Visit:
    """One request between two threads: the server's reads and sends, the loop's answers (``run.Outlet``).

    The loop puts what it wants into a queue and the server's thread does it, so a body is read and a part
    is made only when somebody waits for it.
    """

    def __init__(self, environ: WSGIEnvironment, head: Head, more: tuple[tuple[str, str], ...]) -> None:
        self._environ, self._head, self._more = environ, head, more
        self._wanted = SimpleQueue[_Read | _Part | Reply | BaseException]()
        self._over = threading.Event()
        # the server's own
        self._next: _Part | Reply | None = None
        self._sending: _Part | None = None
        self._streams = self._ended = self._closed = False
        # the loop's own
        self._stoppable = False
        self._parts: set[asyncio.Future[None]] = set()

    # on the loop

    async def answered(self, running: Running) -> None:
        """Run the request, and record its events once its answer has left."""
        self._loop, self._gone = asyncio.get_running_loop(), asyncio.Event()
        self._task = asyncio.current_task()
        edge = Edge(running, self._read, self)
        try:
            self._wanted.put(await self._reply(running.app, edge))
            self._stoppable = False
            await self._gone.wait()
        except asyncio.CancelledError:  # the client left, or the server stops
            self._wanted.put(problem(503, refused("X_INTERNAL")))
        except BaseException as bug:  # noqa: BLE001  (told to the server, in its own thread)
            self._wanted.put(bug)
        finally:
            edge.flush()
            self._over.set()

    async def _reply(self, app: App, edge: Edge) -> Reply:
        recorder = edge.running.recorder
        steps = route(app, self._head) if recorder is None else recorder.http(self._head)
        try:
            return await run(steps, edge)
        except _Unread as unread:
            return unread.reply

    async def _read(self, limit: int) -> bytes | None:
        wanted = _Read(limit, self._loop.create_future())
        self._wanted.put(wanted)
        body = await wanted.body
        if isinstance(body, Reply):
            raise _Unread(body)
        return body

    async def write(self, message: bytes) -> None:
        """Send one message as an event."""
        await self._part(event(message))

    async def rest(self) -> None:
        """Send a comment, which is no event."""
        await self._part(b": \n\n")

    async def _part(self, data: bytes) -> None:
        """Wait until the part was sent: a slow client slows its handler, and nothing piles up."""
        if self._gone.is_set():
            await asyncio.sleep(0)  # who says a lot to nobody leaves a turn to others, and can be stopped
            return
        part = _Part(data, self._loop.create_future())
        self._parts.add(part.sent)
        self._wanted.put(part)
        try:
            await part.sent
        finally:
            self._parts.discard(part.sent)

    async def departure(self) -> None:
        """Return once the client has left, which shows when something is sent."""
        await self._gone.wait()

    def stoppable(self) -> None:
        """Stop this request once its client is gone."""
        self._stoppable = True
        self._stop_if_gone()

    def _leave(self) -> None:
        self._gone.set()
        for sent in self._parts:
            _settle(sent, None)
        self._stop_if_gone()

    def _stop_if_gone(self) -> None:
        if self._stoppable and self._gone.is_set() and self._task is not None:
            self._task.cancel()

    # in the server's thread

    def begin(self, start_response: StartResponse) -> _Visit:
        """Wait for what comes first, and let it decide the status."""
        try:
            self._next = self._following()
            self._streams = isinstance(self._next, _Part)
            _start(self._next if isinstance(self._next, Reply) else _STREAM, self._more, start_response)
        except BaseException:
            self.close()
            raise
        return self

    def __iter__(self) -> _Visit:
        return self

    def __next__(self) -> bytes:
        self._was_sent()
        if self._ended:
            self.close()
            raise StopIteration
        wanted, self._next = self._next or self._following(), None
        if isinstance(wanted, _Part):
            self._sending = wanted
            return wanted.data
        self._ended = True
        return self._last(wanted)

    def close(self) -> None:
        """The answer has left, or the client has (PEP 3333: called in every case)."""
        if self._closed:
            return
        self._closed = True
        self._tell(self._leave)
        if self._ended or isinstance(self._next, Reply):
            self._over.wait()

    def _last(self, reply: Reply) -> bytes:
        if not self._streams:
            return b"" if self._head.method == "HEAD" else reply.body
        return last_event(reply) if reply.status == 200 else b""

    def _following(self) -> _Part | Reply:
        while True:
            wanted = self._wanted.get()
            if isinstance(wanted, BaseException):
                self._ended = True
                raise wanted
            if not isinstance(wanted, _Read):
                return wanted
            self._tell(_settle, wanted.body, body_of(self._environ, wanted.limit))

    def _was_sent(self) -> None:
        sending, self._sending = self._sending, None
        if sending is not None:
            self._tell(_settle, sending.sent, None)

    def _tell(self, say: Callable[..., None], *what: object) -> None:
        try:
            self._loop.call_soon_threadsafe(say, *what)
        except RuntimeError:  # the loop has ended, and this request with it
            return


def _settle(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)


_STREAM: Final = Reply(200, headers=STREAM_HEADERS)


def _start(reply: Reply, more: tuple[tuple[str, str], ...], start_response: StartResponse) -> None:
    headers = reply.headers if reply is _STREAM else reply.all_headers()
    start_response(f"{reply.status} {HTTPStatus(reply.status).phrase}", [*headers, *more])
