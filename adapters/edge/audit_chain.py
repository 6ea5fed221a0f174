"""``on_audit=`` that keeps a keyed chain: takes events without waiting, a thread of its own writes them.

What a chain proves, and what it does not, stands in ``kernel/chain.py``.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib.util
import logging
import os
import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final
from weakref import WeakSet

from ...kernel.audit import Event
from ...kernel.chain import MAX_LINE_BYTES, ChainKeys, note
from ...kernel.errors import BootError, fault
from .audit import line
from .audit_file import FileLedger, Ledger
from .audit_keys import checked_keys
from .audit_writing import Clock, Writing, utc_now

log: Final = logging.getLogger("nonsuch.audit-chain")
ROOM: Final = 10_000
BATCH: Final = 500
MAX_EVENT_CHARS: Final = MAX_LINE_BYTES // 2
LINGER_SECONDS: Final = 0.02  # so that one write to the disk is for many events
RETRY_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 10.0
TRIES_AT_THE_END: Final = 2


class AuditChain:
    """An ``on_audit=`` that appends each event to a chain; threads and processes may share it.

    It takes an event in a few steps and never waits. Up to ``room`` events wait for the disk; what comes
    while there is no room is lost, and a record of its own in that place says how many were. A fault is
    logged once, and what was to be written is tried again until it is. A process that is killed loses what
    waited: the chain then says that this writer never ended.
    """

    def __init__(
        self,
        ledger: Callable[[], Ledger],
        keys: ChainKeys,
        *,
        heads: Path | None = None,
        room: int = ROOM,
        clock: Clock = utc_now,
    ) -> None:
        self._ledger, self._keys, self._heads, self._room, self._clock = ledger, keys, heads, room, clock
        self.begin()
        _chains.add(self)

    def begin(self) -> None:
        """Be as a process that took nothing yet: what waited at a fork is written on its other side."""
        ledger = self._ledger()
        self._waiting: deque[Event | str] = deque()
        self._lost, self._since = 0, ""
        self._lock, self._wake, self._closing = threading.Lock(), threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._tries = TRIES_AT_THE_END
        self._writing = Writing(ledger, self._keys, self._heads, self._clock)

    # what comes

    def __call__(self, event: Event) -> None:
        """Take an event."""
        if self._lost or len(self._waiting) >= self._room:
            self._squeeze(event)
        else:
            self._waiting.append(event)
        if not self._wake.is_set():
            self._wake.set()
        if self._thread is None:
            self._start()

    def _squeeze(self, event: Event) -> None:
        """Take an event if there is room again, behind the record of those that were lost; or count it."""
        with self._lock:
            if len(self._waiting) < self._room:
                self._tell_gap()
                self._waiting.append(event)
                return
            if not self._lost:
                self._since = self._clock().isoformat()
                log.error("audit chain: no room, events are lost until there is")
            self._lost += 1

    def _tell_gap(self) -> None:
        if self._lost:
            self._waiting.append(note("chain-gap", self._clock(), lost=self._lost, since=self._since))
            self._lost = 0

    # beginning and ending

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._closing.clear()
                thread = threading.Thread(target=self._run, name="nonsuch-audit-chain", daemon=True)
                thread.start()
                self._thread = thread
                atexit.register(self.shut)

    async def close(self) -> None:
        """Write what waits, and that this writer ended; a later event opens the chain again."""
        await asyncio.to_thread(self.shut)

    def shut(self, seconds: float = CLOSE_SECONDS) -> None:
        """Close, for callers without an event loop; waits no longer than this. Also runs at exit."""
        thread = self._thread
        self._closing.set()
        self._wake.set()
        if thread is not None:
            thread.join(seconds)
            if thread.is_alive():
                log.error("audit chain: %d events still wait to be written", len(self._waiting) + self._lost)
        atexit.unregister(self.shut)

    # the thread

    def _run(self) -> None:
        try:
            self._write_all(self._writing, secrets.token_hex(8))
        except Exception as bug:  # noqa: BLE001  (the next event begins again)
            log.error("audit chain: the thread that writes it ended: %s", type(bug).__name__)
        with self._lock:
            self._thread = None
        if self._waiting:  # it came meanwhile
            self._start()

    def _write_all(self, writing: Writing, writer: str) -> None:
        self._tries = TRIES_AT_THE_END
        writing.pending.append(note("chain-opened", self._clock(), writer=writer, process=os.getpid()))
        while self._round(writing):
            pass
        writing.pending.append(note("chain-closed", self._clock(), writer=writer))
        if not writing.write():
            count = len(writing.pending) + len(self._waiting) + self._lost
            log.error("audit chain: %d records were never written", count)
            writing.pending.clear()
        writing.close()

    def _round(self, writing: Writing) -> bool:
        """Write a batch, and return whether there is to be another."""
        if not self._closing.is_set():
            self._wake.wait(writing.patience())
            self._closing.wait(LINGER_SECONDS)
        self._wake.clear()
        self._take(writing.pending)
        written = writing.write()
        if self._closing.is_set():
            if written:
                return bool(self._waiting or self._lost)
            self._tries -= 1  # what failed in the middle may succeed anew, and then the rest with it
            return self._tries > 0
        if not written:
            self._closing.wait(RETRY_SECONDS)
        if not written or self._waiting:
            self._wake.set()
        return True

    def _take(self, pending: list[str]) -> None:
        """Take what waits, a batch at most. That the last ones were lost is told now, not by the next one."""
        while self._waiting and len(pending) < BATCH:
            pending.append(self._text(self._waiting[0]))  # taken away once it has its text
            self._waiting.popleft()
        if self._lost and not self._waiting:
            with self._lock:
                self._tell_gap()

    def _text(self, event: Event | str) -> str:
        """Return what waited as it is written; what cannot be is lost, and told as that."""
        if isinstance(event, str):
            return event
        now = self._clock()
        try:
            text = line(event, event.at or now)
        except Exception as bug:  # noqa: BLE001  (nothing of one event may keep the others from being written)
            log.error("audit chain: an event has no line: %s", type(bug).__name__)
            text = ""
        if 0 < len(text) <= MAX_EVENT_CHARS:
            return text
        return note("chain-gap", now, lost=1, since=now.isoformat())


def file_audit_chain(
    path: Path | str, keys: Mapping[str, bytes], *, heads: Path | str | None = None, room: int = ROOM
) -> AuditChain:
    """Return an ``on_audit=`` that appends each event to a file, a line each, as one chain under a key.

    ``keys`` are by id and in the order of their use, as `audit_keys` reads them; the last one is used, and
    the one before it is needed once, to let it in. Processes on one machine may append to one file; nothing
    may rename it while they do: begin another file under another name. `nonsuch audit verify` says whether
    it is as it was written, but for an end that was cut off: that shows by a head that was kept elsewhere.
    Each minute in which something was written its head goes to the log ``nonsuch.audit-chain`` and to the
    file ``heads``, which belongs where the writer of the chain cannot write over it.

    Raises: BootError, for keys that are none, or a place where no file can be.
    """
    held, place = checked_keys(keys), Path(path)
    if not place.parent.is_dir() or place.is_dir():
        raise BootError([fault("X_AUDIT_UNREADABLE", f"there can be no file `{place}`")])
    if importlib.util.find_spec("fcntl") is None:
        cause = "this system has no locks for a file that several processes append to"
        raise BootError([fault("X_AUDIT_UNREADABLE", cause, "use `postgres_audit_chain`")])
    return AuditChain(
        partial(FileLedger, place), held, heads=None if heads is None else Path(heads), room=room
    )


_chains: Final[WeakSet[AuditChain]] = WeakSet()


def _begin_again() -> None:
    for each in _chains:
        each.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
