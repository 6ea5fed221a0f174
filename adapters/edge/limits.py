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

    Of more than ``max_keys`` buckets those are forgotten that are full soonest.
    """

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns, max_keys: int = MAX_KEYS) -> None:
        """``clock`` tells nanoseconds. Raises: ValueError, for a store that can hold nothing."""
        if max_keys < 1:
            raise ValueError("a store of rates holds one bucket or more")
        self._clock, self._max_keys = clock, max_keys
        self._full_at: dict[str, int] = {}
        self._lock = threading.Lock()

    async def take(self, key: str, rate: Rate, count: int) -> Verdict:
        """Count; a bucket that is full again is forgotten."""
        with self._lock:
            now = self._clock()
            state, verdict = take(self._full_at.get(key), now, rate, count=count)
            if state > now:
                self._full_at[key] = state
            if len(self._full_at) > self._max_keys:
                self._forget(now)
            return verdict

    def __len__(self) -> int:
        """Return how many buckets are held; one that is full need not be."""
        return len(self._full_at)

    def _forget(self, now: int) -> None:
        """Forget full buckets; if all are in use, the ones that are full soonest, for they forget least."""
        kept = sorted((full, key) for key, full in self._full_at.items() if full > now)
        self._full_at = {key: full for full, key in kept[-self._max_keys // 2 :]}
