"""What one process writes to an audit chain: batches that are tried until they are there, and heads to keep.

Knows no event and no thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ...kernel.chain import ChainKeys, Head, KeyMissing, Record, Tail, extended, joining
from .audit_file import Ledger, NoChain, Partly

log: Final = logging.getLogger("nonsuch.audit-chain")
HEAD_SECONDS: Final = 60.0  # what is cut off within them shows by no head
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


class Writing:
    """Events that are to be appended, in their order; ``pending`` is filled by whoever writes."""

    def __init__(self, ledger: Ledger, keys: ChainKeys, heads: Path | None, clock: Clock = utc_now) -> None:
        self.pending: list[str] = []
        self._ledger, self._keys, self._heads, self._clock = ledger, keys, heads, clock
        self._before = 0  # records of the last try that came before those of `pending`
        self._last: Head | None = None
        self._let_in = self._failing = False
        self._untold: Head | None = None
        self._told_at = float("-inf")

    def write(self) -> bool:
        """Append what is pending, and return whether it is there; the first fault of a row is logged."""
        if self.pending:
            try:
                self._ledger.append(self._made)
            except Partly as partly:
                del self.pending[: max(partly.count - self._before, 0)]
                return self._failed(partly)
            except Exception as fault:  # noqa: BLE001  (a driver's or a disk's, of any kind; tried again)
                return self._failed(fault)
            self._written()
        self._tell_in_time()
        return True

    def _made(self, tail: Tail) -> Sequence[Record]:
        """Return the records to append to the end that is there."""
        first = joining(self._keys, tail, self._clock(), known=self._let_in)
        if tail.had is not None:
            log.error("audit chain: records that were written are gone: %s was the last", tail.had)
        newest = self._keys.newest
        records = extended(self._keys, tail.head, [*first, *((newest, each) for each in self.pending)])
        self._before, self._last = len(first), records[-1].head
        return records

    def _written(self) -> None:
        if self._failing:
            log.warning("audit chain: written again")
        self._failing, self._let_in = False, True
        self.pending.clear()
        self._untold = self._last

    def _failed(self, fault: Exception) -> bool:
        """Log a fault once, by what cannot hold an event."""
        if not self._failing:
            said = (
                str(fault) if isinstance(fault, (KeyMissing, NoChain)) else getattr(fault, "strerror", None)
            )
            log.error("audit chain: not written: %s", said or type(fault).__name__)
        self._failing = True
        return False

    # heads

    def patience(self) -> float | None:
        """Return how long there is nothing to do if nothing comes."""
        return None if self._untold is None else max(self._told_at + HEAD_SECONDS - time.monotonic(), 0)

    def _tell_in_time(self) -> None:
        if self._untold is not None and time.monotonic() >= self._told_at + HEAD_SECONDS:
            self._tell_head()

    def close(self) -> None:
        """Tell the head, and let go of what is held open."""
        self._tell_head()
        self._ledger.close()

    def _tell_head(self) -> None:
        """Tell the head where it is kept: in the log, and in the file of heads."""
        head, self._untold = self._untold, None
        if head is None:
            return
        self._told_at = time.monotonic()
        log.info("audit chain: head %s", head)
        if self._heads is not None:
            try:
                with self._heads.open("a", encoding="ascii") as file:
                    file.write(f"{head}\n")
            except OSError as fault:
                log.error("audit chain: a head is not kept: %s", fault.strerror)
