"""Where keyed calls are recorded: what a store must do, one that is this process, and who asks it.

A store compares and sets; which call is the same one, and what a replay needs, is the kernel's alone.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, runtime_checkable

from ...kernel.declare import Action
from ...kernel.errors import Fault, fault
from ...kernel.idempotency import Kept
from ...kernel.steps import Answer, Recall, Remember, Reserve, Reserved, Returned

Clock = Callable[[], datetime]
DAY_SECONDS: Final = 86_400
MAX_SECONDS: Final = 10 * 366 * DAY_SECONDS
MAX_RECORDS: Final = 100_000
MAX_BYTES: Final = 256 * 1_048_576


class IdempotencyStore(Protocol):
    """Keeps records until they expire. Every method is one step that happens whole or not at all.

    A method that cannot be carried out raises, and the call does not run. A record whose call ended may
    be read by others only once it is where a crash cannot lose it.
    """

    async def find(self, slot: str, now: datetime) -> Kept | None:
        """Return the record of a slot, unless it has expired."""
        ...

    async def begin(self, kept: Kept) -> Kept | None:
        """Keep a new record; or return the one that is there, unless it expired before the new one began.

        Of any number of concurrent calls for a slot one is told ``None``.
        """
        ...

    async def end(self, kept: Kept) -> None:
        """Put a record that has an outcome in the place of its beginning, if that is still there."""
        ...

    async def forget(self, kept: Kept) -> None:
        """Remove a record that was begun, if it is still there and has no outcome."""
        ...

    async def purge(self, now: datetime) -> None:
        """Remove what has expired."""
        ...

    async def close(self) -> None:
        """Let go of connections; a later step opens them anew."""
        ...


@runtime_checkable
class AtomicStore(IdempotencyStore, Protocol):
    """Keeps a record and what its handler does in one transaction: after a crash both are there, or none."""

    async def open(self, kept: Kept) -> Kept | None:
        """Begin a record as ``begin`` does, in a transaction that stays open until it is ended or forgotten.

        One that is open elsewhere is told as begun. While the handler runs, ``OPEN`` holds the record.
        """
        ...


OPEN: Final[ContextVar[Kept | None]] = ContextVar("nonsuch_open_record", default=None)


class StoreFull(Exception):
    """As many records are kept as there may be: another would be kept at the cost of one that is needed."""


class MemoryIdempotencyStore:
    """Keeps records in this process, and loses them with it: two processes would both run a call.

    Its methods may be called from any thread. ``max_records`` and ``max_bytes`` bound it: what is kept until
    it expires is never given up for a new record, whose call is refused instead. An answer for which there
    is no room is given once, and its call stays begun.
    """

    def __init__(self, max_records: int = MAX_RECORDS, max_bytes: int = MAX_BYTES) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, Kept] = {}
        self._max_records, self._max_bytes, self._bytes = max_records, max_bytes, 0

    async def find(self, slot: str, now: datetime) -> Kept | None:
        """Return the record of a slot."""
        held = self._kept.get(slot)
        return held if held is not None and now < held.expires else None

    async def begin(self, kept: Kept) -> Kept | None:
        """Keep a new record, or return the one that is there. Raises: StoreFull."""
        with self._lock:
            held = self._kept.get(kept.slot)
            if held is not None and kept.begun < held.expires:
                return held
            self._forget(kept.begun)
            if len(self._kept) >= self._max_records:
                raise StoreFull
            self._put(kept)
            return None

    async def end(self, kept: Kept) -> None:
        """Put a record that has an outcome in the place of its beginning. Raises: StoreFull."""
        with self._lock:
            if self._kept.get(kept.slot) == replace(kept, outcome=None):
                self._put(kept)

    async def forget(self, kept: Kept) -> None:
        """Remove a record that was begun."""
        with self._lock:
            if self._kept.get(kept.slot) == kept:
                self._remove(kept.slot)

    async def purge(self, now: datetime) -> None:
        """Remove what has expired."""
        with self._lock:
            self._forget(now)

    async def close(self) -> None:
        """Keep everything: an app that is opened again finds it."""

    def _forget(self, now: datetime) -> None:
        """What was begun first stands first and, as all are kept for as long, expires first."""
        gone: list[str] = []
        for slot, held in self._kept.items():
            if now < held.expires:
                break
            gone.append(slot)
        for slot in gone:
            self._remove(slot)

    def _put(self, kept: Kept) -> None:
        more = _size(kept) - _size(self._kept.get(kept.slot))
        if self._bytes + more > self._max_bytes:
            raise StoreFull
        self._bytes += more
        self._kept[kept.slot] = kept

    def _remove(self, slot: str) -> None:
        self._bytes -= _size(self._kept.pop(slot))


def _size(kept: Kept | None) -> int:
    return 0 if kept is None else len(kept.judged) + len(kept.outcome or b"")


def atomic_of(step: Reserve, begun: Answer) -> Kept | None:
    """Return the record that was begun, if the handler shares its transaction."""
    held = begun.value if isinstance(begun, Returned) else None
    return held.kept if step.atomic and isinstance(held, Reserved) and held.ours else None


def unshared(actions: Iterable[Action], store: IdempotencyStore | None) -> Iterator[Fault]:
    """Yield why an action cannot be atomic."""
    for action in (each for each in actions if each.atomic):
        cause = f"`{action.name}` is atomic and "
        if not action.idempotent:
            yield fault("X_DECLARATION_INVALID", f"{cause}takes no key", "declare it with `idempotent=True`")
        if not inspect.iscoroutinefunction(action.handler):
            fix = "make its handler async: it works in `async with store.transaction()`"
            yield fault("X_DECLARATION_INVALID", f"{cause}its handler cannot wait", fix)
        if not isinstance(store, AtomicStore):
            fix = "give `idempotency_store` a `PostgresIdempotencyStore` of the database that it changes"
            yield fault("X_DECLARATION_INVALID", f"{cause}this app's store shares no transaction", fix)


@dataclass(frozen=True, slots=True, eq=False)
class IdempotencyBook:
    """Answers the kernel's questions about records from a store and a clock."""

    store: IdempotencyStore
    seconds: float
    clock: Clock

    async def recall(self, step: Recall) -> Kept | None:
        """Return the record of a slot."""
        return await self.store.find(step.slot, self.clock())

    async def reserve(self, step: Reserve) -> Reserved:
        """Begin the record of a call, unless there is one. Raises: TypeError, when it cannot be atomic."""
        now = self.clock()
        kept = Kept(step.slot, step.digest, step.judged, now, now + timedelta(seconds=self.seconds))
        held = await (self._atomic().open(kept) if step.atomic else self.store.begin(kept))
        return Reserved(kept if held is None else held, held is None)

    def _atomic(self) -> AtomicStore:
        if not isinstance(self.store, AtomicStore):
            raise TypeError("the store shares no transaction")
        return self.store

    async def within(self, kept: Kept, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Run a handler in the transaction of its record, which is undone if it is stopped."""
        before = OPEN.set(kept)
        try:
            return await work
        except BaseException:
            with suppress(Exception):  # a connection that is gone has undone it already
                await asyncio.shield(self.store.forget(kept))
            raise
        finally:
            OPEN.reset(before)

    async def remember(self, step: Remember) -> None:
        """Keep how a call ended, or that it did not begin."""
        if step.outcome is None:
            await self.store.forget(step.kept)
        else:
            await self.store.end(replace(step.kept, outcome=step.outcome))
