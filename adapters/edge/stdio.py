"""MCP over stdin and stdout: a line is a message, one channel for all requests, one caller for all of them.

Both eras by the message itself, for there are no headers. Decides nothing.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from ...kernel.errors import refused
from ...kernel.model import Principal
from ...kernel.strict_json import Limits
from ..mcp import envelope
from ..mcp.connection import CANCELLED, READY, after, follow
from ..mcp.lines import Lines
from ..mcp.revisions import INTERNAL_ERROR, INVALID_REQUEST
from ..mcp.server import answer
from ..wire import Connection, Head, Reply, one_line
from .app import App
from .opening import Open
from .pipes import Pipes, standard_streams
from .reload import When, reloading
from .run import Clock, Edge, Running, run, utc_now

log: Final = logging.getLogger("nonsuch.stdio")
GRACE_SECONDS: Final = 1.5  # less than clients wait before they terminate a server whose input they closed
_Received = envelope.Message | envelope.Response


def serve_stdio(
    app: App,
    caller: Principal,
    clock: Clock = utc_now,
    *,
    line_limit_bytes: int | None = None,
    reload: When | None = None,
) -> None:
    """Serve MCP on stdin and stdout until stdin ends, or SIGINT or SIGTERM arrives::

        if __name__ == "__main__":
            nonsuch.serve_stdio(app, nonsuch.Agent("desktop", roles={"editor"}))

    ``caller`` is who every message comes from, an ``Agent`` or a ``Human``: whoever starts the program
    has its shell already, so there is no token. What the handlers print goes to stderr, as the log does.
    A line of more than ``line_limit_bytes`` (the app's ``body_limit_bytes``) is refused and skipped. At
    the end of stdin what is under way has a moment to be answered.
    """
    limit = _limit(app, line_limit_bytes)
    with suppress(KeyboardInterrupt):  # where signals cannot be handled in the loop
        asyncio.run(_on_standard_streams(app, caller, clock, limit, reload))


async def serve_stdio_async(
    app: App,
    caller: Principal,
    clock: Clock = utc_now,
    *,
    line_limit_bytes: int | None = None,
    reload: When | None = None,
) -> None:
    """Serve as ``serve_stdio`` does, in a loop of the caller's, who handles the signals: cancel to stop."""
    with standard_streams() as (source, sink):
        opened = Served(app, caller, clock, _limit(app, line_limit_bytes), reload)
        await opened.run(source, sink, asyncio.Event())


def _limit(app: App, given: int | None) -> int:
    return app.mcp.door.body_limit if given is None else given


async def _on_standard_streams(
    app: App, caller: Principal, clock: Clock, limit: int, reload: When | None
) -> None:
    stop = asyncio.Event()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with standard_streams() as (source, sink):
        await Served(app, caller, clock, limit, reload).run(source, sink, stop)


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """An app for one caller on any two file descriptors: a socket is good for both."""

    app: App
    caller: Principal
    clock: Clock
    limit: int
    reload: When | None = None

    async def run(self, source: int, sink: int, stop: asyncio.Event) -> None:
        """Enter the app's lifespan and serve until the source ends, ``stop`` is set or nobody reads."""
        async with Open(self.app, self.clock) as running, reloading(self.app, self.reload):
            self.app.notify.reopen()
            pipes = Pipes(source, sink)
            try:
                await _Talk(running, self.caller, self.limit, pipes).until(stop)
            finally:
                pipes.close()


@dataclass(slots=True, eq=False)
class _Outlet:
    """Where the messages of one request go; nowhere once it was answered or cancelled (``run.Outlet``)."""

    pipes: Pipes
    silent: asyncio.Event
    over: bool = False

    async def write(self, message: bytes) -> None:
        """Send one message."""
        if self.over:
            await asyncio.sleep(0)  # leaves a turn to others
            return
        await self.pipes.send(one_line(message))

    async def rest(self) -> None:
        """Nobody stands between who would need a sign of life."""

    async def departure(self) -> None:
        """Return once nobody will say anything any more."""
        await self.silent.wait()

    def stoppable(self) -> None:
        """Every request can be stopped here, by its client's word."""


@dataclass(slots=True, eq=False)
class _Talk:
    """One connection: what it remembers, and what is under way."""

    running: Running
    caller: Principal
    limit: int
    pipes: Pipes
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    known: Connection = field(default_factory=Connection)
    tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    requests: dict[tuple[type, object], tuple[asyncio.Task[None], _Outlet]] = field(
        default_factory=dict[tuple[type, object], tuple[asyncio.Task[None], _Outlet]]
    )
    follows: bool = False

    async def until(self, stop: asyncio.Event) -> None:
        """Serve, and let what is under way end."""
        reading = asyncio.ensure_future(self._listen())
        waits = [reading, *(asyncio.ensure_future(each.wait()) for each in (stop, self.pipes.gone))]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if reading in done:
                reading.result()
        finally:
            for each in waits:
                each.cancel()
            self.silent.set()
            self.running.app.notify.close()
            await self._settle(wanted=not stop.is_set() and not self.pipes.gone.is_set())

    async def _listen(self) -> None:
        lines = Lines(self.limit)
        async for chunk in self.pipes.chunks():
            for line in lines.feed(chunk):
                self._take(line)
        for line in lines.end():  # no newline, and nothing more comes: it is whole, or no JSON
            self._take(line)

    def _take(self, line: bytes | None) -> None:
        app = self.running.app
        head = Head("POST", app.path, {}, received=self.running.clock().timestamp(), connection=self.known)
        if line is None:
            self._begin(self._send(_too_long(head, app, self.limit)))
            return
        message = envelope.read(head, line, Limits(max_bytes=self.limit), app.mcp.audience)
        if isinstance(message, Reply):
            self._begin(self._send(message))
        elif isinstance(message, envelope.Message):
            self._heard(head, message)
        else:
            self._begin(self._answer(head, message, self._outlet()))

    def _heard(self, head: Head, message: envelope.Message) -> None:
        self.known = after(self.known, message, self.running.app.mcp.subscriptions)
        if message.id is None and message.method == CANCELLED:
            self._cancel(message.params.get("requestId"))
        elif message.id is None and message.method == READY and not self.follows:
            self.follows = True
            self._begin(self._follow())
        elif message.id is not None:
            self._request(head, message, (type(message.id), message.id))

    def _request(self, head: Head, message: envelope.Message, key: tuple[type, object]) -> None:
        outlet = self._outlet()
        task = self._begin(self._answer(head, message, outlet))
        self.requests[key] = mine = (task, outlet)

        def forget(_: object) -> None:
            if self.requests.get(key) is mine:
                del self.requests[key]

        task.add_done_callback(forget)

    def _cancel(self, ident: object) -> None:
        """Stop a request and answer it no more (MCP, cancellation); what names none is ignored."""
        held = self.requests.get((type(ident), ident)) if isinstance(ident, (str, int)) else None
        if held is not None:
            task, outlet = held
            outlet.over = True
            task.cancel()

    async def _answer(self, head: Head, message: _Received, outlet: _Outlet) -> None:
        edge, recorder = Edge(self.running, None, outlet), self.running.recorder
        observed = recorder is not None
        steps = answer(self.running.app.mcp, head, message, self.caller, streams=True, observed=observed)
        steps = steps if recorder is None else recorder.piped(steps, self.caller)
        try:
            reply = await run(steps, edge)
            if reply.body:
                await outlet.write(reply.body)
        except Exception as fault:  # noqa: BLE001  (a bug of ours ends one answer, not the connection)
            log.error("a message could not be answered: %s", type(fault).__name__)  # its words can hold rows
            await outlet.write(_internal(head, message, self.running.app).body)
        finally:
            outlet.over = True
            edge.flush()

    async def _follow(self) -> None:
        steps = follow(self.running.app.mcp, self.caller, lambda: self.known)
        await run(steps, Edge(self.running, None, self._outlet()))

    def _outlet(self) -> _Outlet:
        return _Outlet(self.pipes, self.silent)

    async def _send(self, reply: Reply) -> None:
        await self.pipes.send(one_line(reply.body))

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def _settle(self, *, wanted: bool) -> None:
        """Wait for what ends soon, longer where its answers are wanted, and stop the rest."""
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=GRACE_SECONDS if wanted else GRACE_SECONDS / 10)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def _too_long(head: Head, app: App, limit: int) -> Reply:
    told = refused("X_MCP_BODY_TOO_LARGE", app.mcp.audience)
    return envelope.refusal(None, envelope.spoken(head), INVALID_REQUEST, told, limit=limit)


def _internal(head: Head, message: _Received, app: App) -> Reply:
    told = refused("X_INTERNAL", app.mcp.audience)
    return envelope.refusal(message.id, envelope.spoken(head), INTERNAL_ERROR, told)
