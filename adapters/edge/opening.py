"""An app from start to end: its lifespan entered and left, for callers with an event loop and without one."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, TypeVar

from ...kernel.model import Outcome, Principal, Surface
from ...kernel.strict_json import Json
from .app import App
from .limits import Closable
from .run import Clock, Running, utc_now

T = TypeVar("T")
log: Final = logging.getLogger("nonsuch.run")


class Open(AbstractAsyncContextManager[Running]):
    """``async with Open(app) as running``: enters the app's lifespan and leaves it."""

    def __init__(self, app: App, clock: Clock = utc_now) -> None:
        self._app, self._clock = app, clock
        self._lifespan: AbstractAsyncContextManager[Any] | None = None
        self._running: Running | None = None

    async def __aenter__(self) -> Running:
        resources = None
        if self._app.lifespan is not None:
            self._lifespan = self._app.lifespan()
            resources = await self._lifespan.__aenter__()
        self._running = Running(self._app, resources, self._clock)
        if self._app.telemetry is not None and self._running.recorder is None:
            log.warning("no OpenTelemetry provider is set: nothing of `%s` is recorded", self._app.name)
        return self._running

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._running is not None:
            await self._running.works.close()
            self._running.talking.shutdown(wait=False, cancel_futures=True)
        await self._app.idempotency_store.close()
        if self._app.confirmations is not None:
            await self._app.confirmations.store.close()
        for each in (self._app.rate_store, self._app.on_audit):
            if isinstance(each, Closable):
                await each.close()
        return None if self._lifespan is None else await self._lifespan.__aexit__(kind, value, trace)


class Portal(AbstractContextManager["Portal"]):
    """One event loop in a thread, for callers that have none (WSGI, scripts)."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nonsuch-portal", daemon=True)

    def __enter__(self) -> Portal:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class OpenSync(AbstractContextManager["RunningSync"]):
    """``with OpenSync(app) as running``: the same for callers without an event loop."""

    def __init__(self, app: App, clock: Clock = utc_now) -> None:
        self._open, self._portal = Open(app, clock), Portal()

    def __enter__(self) -> RunningSync:
        self._portal.__enter__()
        try:
            return RunningSync(self._portal.call(self._open.__aenter__()), self._portal)
        except BaseException:
            self._portal.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._portal.call(self._open.__aexit__(kind, value, trace))
        finally:
            self._portal.__exit__(None, None, None)


@dataclass(frozen=True, slots=True, eq=False)
class RunningSync:
    """A running app for synchronous callers; safe to share between threads."""

    running: Running
    portal: Portal

    def invoke(
        self, principal: Principal, name: str, arguments: Mapping[str, Json], surface: Surface = "agent"
    ) -> Outcome:
        """Call a tool in process, through every gate that a call from outside passes."""
        return self.portal.call(self.running.invoke(principal, name, arguments, surface))
