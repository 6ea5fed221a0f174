"""Where requests are counted: the protocol of a store, and the one that counts in this process.

A store that cannot answer raises, and the request is refused: nothing passes uncounted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

from ...kernel.meter import Rate, Verdict, take

MAX_KEYS: Final = 100_000
LOOK_KEYS: Final = 1_024  # fewer are not looked through for those that are full again


class RateStore(Protocol):
    """One method, so that a store of another kind (Redis, a gateway) is written in an afternoon.

    It must be exact: of any number of concurrent calls for a key, as many pass as the rate lets through.
    """

    async def take(self, key: str, rate: Rate, count: int) -> Verdict:
        """Count ``count`` requests against a key, or none of them if they do not all pass.

        ``count=0`` asks whether one would pass. Raises: anything, when it cannot tell; the request is
        then refused.
        """
        ...


@runtime_checkable
class Closable(Protocol):
    """A store that holds connections is closed with its app."""

    async def close(self) -> None:
        """Close them; a later ``take`` opens others."""
        ...


class MemoryRateStore:
    """Counts in this process, by a clock that is never set. Several processes each allow the whole rate.

    It holds no more than twice as many buckets as are in use, and of more than ``max_keys`` those are
    forgotten that are full soonest.
    """

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns, max_keys: int = MAX_KEYS) -> None:
        """``clock`` tells nanoseconds. Raises: ValueError, for a store that can hold nothing."""
        if max_keys < 1:
            raise ValueError("a store of rates holds one bucket or more")
        self._clock, self._max_keys = clock, max_keys
        self._full_at: dict[str, int] = {}
        self._look_at = min(LOOK_KEYS, max_keys)
        self._lock = threading.Lock()

    async def take(self, key: str, rate: Rate, count: int) -> Verdict:
        """Count; a bucket that is full again is forgotten."""
        with self._lock:
            now = self._clock()
            state, verdict = take(self._full_at.get(key), now, rate, count=count)
            if state > now:
                self._full_at[key] = state
            if len(self._full_at) > self._look_at:
                self._forget(now)
            return verdict

    def __len__(self) -> int:
        """Return how many buckets are held; one that is full need not be."""
        return len(self._full_at)

    def _forget(self, now: int) -> None:
        """Forget full buckets; if all are in use, the ones that are full soonest, for they forget least."""
        kept = {key: full for key, full in self._full_at.items() if full > now}
        if len(kept) > self._max_keys:
            latest = sorted((full, key) for key, full in kept.items())[-self._max_keys // 2 :]
            kept = {key: full for full, key in latest}
        self._full_at = kept
        self._look_at = min(max(LOOK_KEYS, 2 * len(kept)), self._max_keys)
