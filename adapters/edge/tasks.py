"""Calls that go on as tasks: the handlers that run in this process behind the answers to their calls.

One event loop's own. A beat looks after all of them at once: it gives signs of life, sees what other
processes did to them, and forgets what has expired.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ...kernel.client import Client
from ...kernel.model import Begun
from ...kernel.steps import Change, Launch, Launched, NoRoom, Ran, Watch
from ...kernel.tasks import STOPPED, Ending, Task, begun, ended
from .changes import Changes
from .task_store import Changing, TaskBook
from .task_work import Labour, TaskWork

log: Final = logging.getLogger("nonsuch.tasks")

TICK_SECONDS: Final = 1.0  # how soon what another process did is seen here
PURGE_SECONDS: Final = 60.0
GRACE_SECONDS: Final = 5.0
ID_BYTES: Final = 24
MAX_THREADS: Final = 64  # of plain handlers that run as tasks; those of plain calls are others


class Works:
    """The works of one running app (``task_work.Host``)."""

    def __init__(self, book: TaskBook) -> None:
        self._book = book
        self._works: dict[str, TaskWork] = {}
        self._news, self._busy = asyncio.Event(), asyncio.Event()
        self._kept_until = 0.0
        self._tick = min(TICK_SECONDS, book.limits.lease_seconds / 3)
        self._beating: asyncio.Task[None] | None = None
        self.threads: Final = ThreadPoolExecutor(MAX_THREADS, "nonsuch-task")

    # a call becomes a task

    async def launch(self, step: Launch, labour: Labour, front: Client) -> Launched:
        """Run a handler as a task, and return once it is one, or once it has ended without."""
        work = TaskWork(self, step, labour)
        if not step.permit.entry.asks_first and not await work.begin():
            return NoRoom()
        running = work.start(front)
        if work.task is None:
            await self._handed_over(work, running)
        return Ran(await running) if work.task is None else Begun(work.task)

    async def _handed_over(self, work: TaskWork, running: asyncio.Task[Any]) -> None:
        """Wait for the hand-over or the end; a request that is stopped before stops its handler."""
        handed = asyncio.ensure_future(work.handed.wait())
        try:
            await asyncio.wait({running, handed}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not work.begun:
                running.cancel()
                await asyncio.wait({running})
            raise
        finally:
            handed.cancel()

    async def create(self, work: TaskWork, owner: str, tool: str) -> Task | None:
        """Keep a new task for a work; nothing, when there is no room."""
        book = self._book
        task = begun(secrets.token_urlsafe(ID_BYTES), owner, tool, book.clock(), book.limits)
        if not await book.store.create(task, book.limits):
            return None
        self._works[task.ident] = work
        self._kept_until = asyncio.get_running_loop().time() + book.limits.ttl_seconds
        self._busy.set()
        if self._beating is None or self._beating.done():
            self._beating = asyncio.ensure_future(self._beat())
        return task

    def let_go(self, ident: str) -> None:
        """Forget a work that is over."""
        self._works.pop(ident, None)

    # what is asked of a task

    async def find(self, ident: str, owner: str) -> Task | None:
        """Return a task of an owner's."""
        return await self._book.find(ident, owner)

    async def change(self, ident: str, owner: str, changing: Changing) -> Task | None:
        """Change a task of an owner's, and let its work know if it runs here."""
        changed = await self._book.change(ident, owner, changing)
        if changed is not None:
            self._tell(ident, changed)
            self._news.set()
            self._news = asyncio.Event()
        return changed

    def _tell(self, ident: str, task: Task | None) -> None:
        work = self._works.get(ident)
        if work is not None and (task is None or task.finished):
            work.stop()
        elif work is not None and task is not None:
            work.tell(task.version)

    async def watch(self, step: Watch, changes: Changes, seconds: float) -> Change | None:
        """Wait for a change of the app's or of one of these tasks; nothing, once the seconds are over."""
        until = asyncio.get_running_loop().time() + seconds
        while True:
            news = self._news
            moved = await self._moved(step.tasks)
            said = changes.since(step.count)
            if moved:
                count, uris = (step.count, frozenset[str]()) if said is None else (said.count, said.uris)
                return Change(count, uris, moved)
            if said is not None or changes.closed or asyncio.get_running_loop().time() >= until:
                return said
            await _either(changes.wait(step.count, self._tick), news.wait())

    async def _moved(self, known: Mapping[str, int]) -> frozenset[str]:
        held = await self._book.store.versions(known.keys(), self._book.clock())
        return frozenset(ident for ident, version in known.items() if held.get(ident) != version)

    # the beat

    async def _beat(self) -> None:
        """Look after the works that run, and after them for as long as their tasks are kept."""
        time = asyncio.get_running_loop().time
        renewed = purged = time()
        while self._works or time() < self._kept_until + PURGE_SECONDS:
            await self._pause()
            if self._works:
                await self._tried(self._look_round())
            if self._works and time() - renewed >= self._book.limits.lease_seconds / 3:
                renewed = time()
                await self._tried(self._book.renew(list(self._works)))
            if time() - purged >= PURGE_SECONDS:
                purged = time()
                await self._tried(self._book.store.purge(self._book.clock()))

    async def _pause(self) -> None:
        if self._works:
            await asyncio.sleep(self._tick)
            return
        self._busy.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._busy.wait(), PURGE_SECONDS)

    async def _tried(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as fault:  # noqa: BLE001  (a driver's, of any kind: the next beat tries again)
            log.error("the tasks could not be looked after: %s", type(fault).__name__)

    async def _look_round(self) -> None:
        works = dict(self._works)
        held = await self._book.read(works.keys())
        for ident, work in works.items():
            self._tell(ident, held.get(ident))
            await work.flush()

    # the end

    async def close(self) -> None:
        """Stop every work, and write down of those that do not stop in time that they have failed."""
        works = dict(self._works)
        for work in works.values():
            work.stop()
        running = [work.running for work in works.values() if work.running is not None]
        if running:
            await asyncio.wait(running, timeout=GRACE_SECONDS)
        for work in works.values():
            if work.task is not None and work.running is not None and not work.running.done():
                failed = partial(ended, ending=Ending("failed", message=STOPPED))
                await self._tried(self._ended(work.task, failed))
        if self._beating is not None:
            self._beating.cancel()
        self.threads.shutdown(wait=False, cancel_futures=True)
        await self._book.store.close()

    async def _ended(self, task: Task, changing: Changing) -> None:
        await self._book.change(task.ident, task.owner, changing)


async def _either(one: Coroutine[Any, Any, object], other: Coroutine[Any, Any, object]) -> None:
    """Wait until one of two is over, and leave the other."""
    both = [asyncio.ensure_future(one), asyncio.ensure_future(other)]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in both:
            each.cancel()
