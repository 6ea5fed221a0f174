"""Answers about tokens, remembered for a while by the token's digest; no token is kept."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")
MAX_TOKENS: Final = 10_000


def digest(token: str) -> bytes:
    """Return the SHA-256 of a token: all that is ever kept of it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class Remembered(Generic[T]):
    """The newest answers, each until its end (seconds of the given clock); bounded. One event loop's own."""

    def __init__(self, clock: Callable[[], float], max_tokens: int = MAX_TOKENS) -> None:
        self._clock, self._max = clock, max_tokens
        self._held: OrderedDict[bytes, tuple[T, float]] = OrderedDict()

    def find(self, key: bytes) -> T | None:
        """Return an answer that still holds."""
        known = self._held.get(key)
        if known is None:
            return None
        if known[1] <= self._clock():
            del self._held[key]
            return None
        self._held.move_to_end(key)
        return known[0]

    def keep(self, key: bytes, answer: T, until: float) -> None:
        """Remember an answer; the one that was asked for longest ago goes first."""
        self._held[key] = (answer, until)
        self._held.move_to_end(key)
        while len(self._held) > self._max:
            self._held.popitem(last=False)
