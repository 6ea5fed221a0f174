"""Where tasks are kept: what a store must do, one that is this process, and who reads and changes them.

A store compares and sets; what a task may become is ``kernel/tasks.py``'s alone.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from ...kernel.tasks import Task, TaskLimits, bounded, lapsed

log: Final = logging.getLogger("nonsuch.tasks")

# An honest store refuses a change only because another one was made: more than this many in a row are none.
TRIES: Final = 256
PAUSE_SECONDS: Final = 0.005

Clock = Callable[[], datetime]
Changing = Callable[[Task, datetime], Task | None]


class TaskStore(Protocol):
    """Keeps tasks until they expire. Every method is one step that happens whole or not at all."""

    async def create(self, task: Task, limits: TaskLimits) -> bool:
        """Keep a new task, unless too many are kept that have not expired when it is created."""
        ...

    async def read(self, idents: Collection[str], now: datetime) -> Mapping[str, Task]:
        """Return those of the tasks that are kept and have not expired."""
        ...

    async def versions(self, idents: Collection[str], now: datetime) -> Mapping[str, int]:
        """Return the versions of what ``read`` would return."""
        ...

    async def swap(self, task: Task) -> bool:
        """Put a changed task in the place of its last version, if that one is kept and unfinished.

        The lease is not set: ``renew`` alone does that.
        """
        ...

    async def renew(self, idents: Collection[str], now: datetime, until: datetime) -> None:
        """Prolong the leases of those that are unfinished and whose lease has not run out."""
        ...

    async def purge(self, now: datetime) -> None:
        """Forget what has expired."""
        ...

    async def close(self) -> None:
        """Let go of connections; a later step opens them anew."""
        ...


class MemoryTaskStore:
    """Keeps tasks in this process, and loses them with it. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, Task] = {}

    async def create(self, task: Task, limits: TaskLimits) -> bool:
        """Keep a new task, if there is room."""
        with self._lock:
            self._forget(task.created)
            mine = sum(each.owner == task.owner for each in self._kept.values())
            if mine >= limits.per_principal or len(self._kept) >= limits.in_all:
                return False
            self._kept[task.ident] = task
            return True

    async def read(self, idents: Collection[str], now: datetime) -> Mapping[str, Task]:
        """Return those of the tasks that are kept."""
        with self._lock:
            held = [self._kept[ident] for ident in idents if ident in self._kept]
        return {task.ident: task for task in held if now < task.expires}

    async def versions(self, idents: Collection[str], now: datetime) -> Mapping[str, int]:
        """Return the versions of those that are kept."""
        return {ident: task.version for ident, task in (await self.read(idents, now)).items()}

    async def swap(self, task: Task) -> bool:
        """Put a changed task in the place of its last version."""
        with self._lock:
            held = self._kept.get(task.ident)
            if held is None or held.finished or held.version != task.version - 1:
                return False
            self._kept[task.ident] = replace(task, lease=held.lease)
            return True

    async def renew(self, idents: Collection[str], now: datetime, until: datetime) -> None:
        """Prolong leases."""
        with self._lock:
            for ident in idents:
                held = self._kept.get(ident)
                if held is not None and not held.finished and now < held.lease:
                    self._kept[ident] = replace(held, lease=until)

    async def purge(self, now: datetime) -> None:
        """Forget what has expired."""
        with self._lock:
            self._forget(now)

    async def close(self) -> None:
        """Keep everything: an app that is opened again finds it."""

    def _forget(self, now: datetime) -> None:
        for ident in [ident for ident, task in self._kept.items() if task.expires <= now]:
            del self._kept[ident]


class SwapsRefused(Exception):
    """A store of tasks took none of ``TRIES`` changes in a row, each made of what it had just returned.

    Its ``swap`` compares with another version than its ``read`` returns, as where reads go to a replica.
    """

    def __str__(self) -> str:
        known = "let `swap` compare with what `read` returns"
        return f"the store of tasks refused {TRIES} changes in a row: {known}"


@dataclass(frozen=True, slots=True, eq=False)
class TaskBook:
    """Reads and changes tasks as they are at this moment: one whose process fell silent has failed."""

    store: TaskStore
    limits: TaskLimits
    clock: Clock

    async def read(self, idents: Collection[str]) -> Mapping[str, Task]:
        """Return those of the tasks that are kept.

        A lapsed one is written down as failed first, so that nobody sees it come back.
        Raises: SwapsRefused; what the store raises.
        """
        now = self.clock()
        for _ in range(TRIES):
            held = await self.store.read(idents, now)
            gone = [failed for task in held.values() if (failed := lapsed(task, now)) is not None]
            if not gone:
                return held
            if not all([await self.store.swap(failed) for failed in gone]):
                await asyncio.sleep(PAUSE_SECONDS)
        raise _refused()

    async def find(self, ident: str, owner: str) -> Task | None:
        """Return a task of an owner's."""
        held = (await self.read([ident])).get(ident)
        return held if held is not None and held.owner == owner else None

    async def change(self, ident: str, owner: str, changing: Changing) -> Task | None:
        """Change a task of an owner's, and return it; nothing, where there is nothing to change.

        Asked again about what the task is by then whenever somebody else changed it meanwhile.
        A result that is too large to be kept is not: the task has then failed (``TaskLimits``).
        Raises: SwapsRefused; what the store raises.
        """
        for _ in range(TRIES):
            held = await self.find(ident, owner)
            changed = None if held is None else changing(held, self.clock())
            if changed is None:
                return None
            kept = bounded(changed, self.limits)
            if await self.store.swap(kept):
                _complain(changed, kept, self.limits)
                return kept
            await asyncio.sleep(PAUSE_SECONDS)
        raise _refused()

    async def renew(self, idents: Collection[str]) -> None:
        """Give a sign of life for the tasks that run here."""
        now = self.clock()
        await self.store.renew(idents, now, now + timedelta(seconds=self.limits.lease_seconds))


def _complain(changed: Task, kept: Task, limits: TaskLimits) -> None:
    """Say which tool's result was not kept: its caller can tell nobody else."""
    if kept is not changed:
        told = "the result of `%s` has %d bytes, and a task keeps %d: see `result_bytes` of `TaskLimits`"
        log.error(told, changed.tool, len(changed.body), limits.result_bytes)


def _refused() -> SwapsRefused:
    refused = SwapsRefused()
    log.error("%s", refused)  # who asked is told no more than the kind of fault
    return refused
