"""What an app says about itself while it runs: lists may differ now, a resource was updated.

Nothing said here reaches a caller as such: whoever listens compares what it is served itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import Final

from ...kernel.steps import Change

REMEMBERED: Final = 4_096


class Changes:
    """A count of what was said, and who waits for more. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 1
        self._updates: deque[tuple[int, str]] = deque(maxlen=REMEMBERED)
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._closed = False

    def lists_changed(self) -> None:
        """Say that what somebody sees may have changed: a predicate answers otherwise, a flag was set."""
        self._say(None)

    def resource_updated(self, uri: str) -> None:
        """Say that what is read at a URI has changed."""
        self._say(uri)

    def close(self) -> None:
        """End every wait: the server stops."""
        with self._lock:
            self._closed = True
            self._wake()

    def reopen(self) -> None:
        """Let waits begin again: the server starts."""
        with self._lock:
            self._closed = False

    def _say(self, uri: str | None) -> None:
        with self._lock:
            self._count += 1
            if uri is not None:
                self._updates.append((self._count, uri))
            self._wake()

    def _wake(self) -> None:
        """Wake each once, however much is said before it looks."""
        waiting, self._waiting = self._waiting, {}
        for event, loop in waiting.items():
            with suppress(RuntimeError):  # its loop has ended, and it with it
                loop.call_soon_threadsafe(event.set)

    def since(self, count: int) -> Change | None:
        """Return what was said after ``count``, if anything was."""
        with self._lock:
            if self._count <= count:
                return None
            return Change(self._count, frozenset(uri for at, uri in self._updates if at > count))

    @property
    def closed(self) -> bool:
        """Whether the server stops."""
        return self._closed

    async def wait(self, count: int, seconds: float) -> Change | None:
        """Return what is said after ``count``, or nothing once the seconds are over or the server stops."""
        event = asyncio.Event()
        with self._lock:
            self._waiting[event] = asyncio.get_running_loop()
        try:
            found = self.since(count)
            if found is not None or self._closed:
                return found
            async with asyncio.timeout(seconds):
                await event.wait()
            return self.since(count)
        except TimeoutError:
            return None
        finally:
            with self._lock:
                self._waiting.pop(event, None)
