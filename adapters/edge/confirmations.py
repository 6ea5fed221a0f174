"""Where confirmations are kept: what a store must do, and one that is this process.

A store compares and sets; what may follow what is ``kernel/confirmation.py``'s table alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Protocol

from ...kernel.confirmation import OPEN, Confirmation

MAX_ROWS: Final = 10_000
MAX_BYTES: Final = 64 * 1_048_576
_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)
# What is read in the place of a row that is not there, so that reading it takes as long. No principal can be
# of its organisation (`model._checked_id`), and a policy about it speaks as of a row of another one.
NOBODYS: Final = Confirmation(
    ident="." * 32,  # `IDENT` has no dot: nobody can ask for it
    server="-",
    owner="-" * 64,
    org="\n",
    actor="-",
    actor_kind="agent",
    person="-",
    tool="-",
    fingerprint="-" * 64,
    sealed=b"",
    created=_LONG_AGO,
    expires=_LONG_AGO,
    updated=_LONG_AGO,
)


@dataclass(frozen=True, slots=True)
class Listing:
    """Which rows to list, the newest first and ``limit`` at most.

    Of these servers; asked for by ``org`` (``None``: by nobody's organisation) unless ``every_org``; those
    that a person can still decide at ``now``, or those that are over.
    """

    servers: tuple[str, ...]
    org: str | None
    every_org: bool
    open: bool
    now: datetime
    limit: int


class ConfirmationStore(Protocol):
    """Keeps confirmations. Every method is one step that happens whole or not at all, or raises.

    A change may be told to anybody only once it is where a crash cannot lose it.
    """

    async def find(self, owner: str, tool: str, fingerprint: str) -> Confirmation | None:
        """Return the open row of a call."""
        ...

    async def open(self, row: Confirmation, limit: int) -> Confirmation | None:
        """Keep a new row, or return the open one of the same call; of any number at once one is kept.

        ``None``: that caller has ``limit`` calls that a person can still decide.
        """
        ...

    async def read(self, ident: str, *, sealed: bool = False) -> Confirmation | None:
        """Return a row by its id; with its sealed arguments only if they are asked for.

        Takes as long for an id that is not there: whoever may not know of a row may ask for it.
        """
        ...

    async def swap(self, row: Confirmation) -> bool:
        """Put a changed row in the place of its last version, if that one is kept. Its arguments stay."""
        ...

    async def listed(self, listing: Listing) -> list[Confirmation]:
        """Return some rows without their arguments."""
        ...

    async def purge(self, before: datetime) -> int:
        """Delete what was over before then, and return how many that were."""
        ...

    async def close(self) -> None:
        """Let go of connections; a later step opens them anew."""
        ...


class StoreFull(Exception):
    """As many rows are kept as there may be, and none of them is over."""


class MemoryConfirmationStore:
    """Keeps confirmations in this process, and loses them with it. Its methods may be called from any thread.

    ``max_rows`` and the ``max_bytes`` of their sealed arguments bound it: for a new row the oldest are
    forgotten that are over.
    """

    def __init__(self, max_rows: int = MAX_ROWS, max_bytes: int = MAX_BYTES) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, Confirmation] = {}
        self._open: dict[tuple[str, str, str], str] = {}
        self._max_rows, self._max_bytes, self._bytes = max_rows, max_bytes, 0

    async def find(self, owner: str, tool: str, fingerprint: str) -> Confirmation | None:
        """Return the open row of a call."""
        with self._lock:
            return self._found((owner, tool, fingerprint))

    async def open(self, row: Confirmation, limit: int) -> Confirmation | None:
        """Keep a new row, or return the open one of the same call. Raises: StoreFull."""
        with self._lock:
            held = self._found(_call(row))
            if held is not None:
                return held
            waiting = sum(each.owner == row.owner and each.open_at(row.created) for each in self._live())
            if waiting >= limit:
                return None
            self._make_room(len(row.sealed), row.created)
            self._rows[row.ident], self._open[_call(row)] = row, row.ident
            self._bytes += len(row.sealed)
            return row

    async def read(self, ident: str, *, sealed: bool = False) -> Confirmation | None:
        """Return a row by its id."""
        row = self._rows.get(ident, NOBODYS)
        shown = row if sealed else replace(row, sealed=b"")
        return None if row is NOBODYS else shown

    async def swap(self, row: Confirmation) -> bool:
        """Put a changed row in the place of its last version."""
        with self._lock:
            held = self._rows.get(row.ident)
            if held is None or held.version != row.version - 1:
                return False
            self._rows[row.ident] = replace(row, sealed=held.sealed)
            if row.status not in OPEN:
                self._open.pop(_call(row), None)
            return True

    async def listed(self, listing: Listing) -> list[Confirmation]:
        """Return some rows, without their arguments."""
        with self._lock:
            rows = [each for each in self._rows.values() if _is_listed(each, listing)]
        rows.sort(key=lambda each: (each.created, each.ident), reverse=True)
        return [replace(each, sealed=b"") for each in rows[: listing.limit]]

    async def purge(self, before: datetime) -> int:
        """Delete what was over before then."""
        with self._lock:
            gone = [row for row in self._rows.values() if over_since(row) < before]
            for row in gone:
                self._remove(row)
            return len(gone)

    async def close(self) -> None:
        """Keep everything: an app that is opened again finds it."""

    def _found(self, call: tuple[str, str, str]) -> Confirmation | None:
        ident = self._open.get(call)
        return None if ident is None else self._rows[ident]

    def _live(self) -> Iterable[Confirmation]:
        return (self._rows[ident] for ident in self._open.values())

    def _make_room(self, size: int, now: datetime) -> None:
        if self._fits(size):
            return
        over = (row for row in self._rows.values() if over_since(row) <= now)
        for row in sorted(over, key=over_since):
            self._remove(row)
            if self._fits(size):
                return
        raise StoreFull

    def _fits(self, size: int) -> bool:
        return len(self._rows) < self._max_rows and self._bytes + size <= self._max_bytes

    def _remove(self, row: Confirmation) -> None:
        del self._rows[row.ident]
        self._bytes -= len(row.sealed)
        if self._open.get(_call(row)) == row.ident:
            del self._open[_call(row)]


def memory_confirmation_store() -> MemoryConfirmationStore:
    """Return a store for one process: a test, or an app that may forget what waits."""
    return MemoryConfirmationStore()


def over_since(row: Confirmation) -> datetime:
    """Return from when on a row is of no more use: it lapsed, and so would a run that began last."""
    return max(row.expires, row.updated + (row.expires - row.created))


def _call(row: Confirmation) -> tuple[str, str, str]:
    return row.owner, row.tool, row.fingerprint


def _is_listed(row: Confirmation, listing: Listing) -> bool:
    within = listing.every_org or row.org == listing.org
    return row.server in listing.servers and within and row.open_at(listing.now) == listing.open
