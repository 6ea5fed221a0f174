"""How many streams one caller, and all of them, keep open at once. Knows not what they carry."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Final

from ..mcp.endpoint import MAX_URIS

MAX_EACH: Final = 100
MAX_IN_ALL: Final = 10_000


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How many streams may be open at once in one process, of one principal and of all.

    Counted are those that wait: a subscription (``subscriptions/listen``), and a call of the older
    revisions while its handler waits for what it asked its client. ``resources`` is of how many resources
    one stream tells, or one connection over stdio.

    Raises: ValueError, for a limit that is none.
    """

    per_principal: int = MAX_EACH
    in_all: int = MAX_IN_ALL
    resources: int = MAX_URIS

    def __post_init__(self) -> None:
        if min(self.per_principal, self.in_all, self.resources) < 1:
            raise ValueError("every limit of streams is a number, at least one")


class Streams:
    """The open streams by their owners. Its methods may be called from any thread."""

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._open = Counter[str]()
        self._all = 0

    def take(self, owner: str) -> bool:
        """Open one more, if there may be one."""
        with self._lock:
            if self._all >= self._limits.in_all or self._open.get(owner, 0) >= self._limits.per_principal:
                return False
            self._open[owner] += 1
            self._all += 1
            return True

    def give(self, owner: str) -> None:
        """Close one that was taken."""
        with self._lock:
            self._all -= 1
            self._open[owner] -= 1
            if not self._open[owner]:
                del self._open[owner]
