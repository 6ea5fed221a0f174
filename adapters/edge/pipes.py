"""Two file descriptors as bytes in and lines out, each in a thread of its own. Knows no message.

Threads, because a terminal, a file and a pipe of another operating system have only blocking calls in common.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Final

CHUNK: Final = 65_536
LINGER_SECONDS: Final = 1.0


class Pipes:
    """One connection. ``gone`` is set once nobody reads what is written."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self._loop = asyncio.get_running_loop()
        self._chunks = asyncio.Queue[bytes]()
        self._lines = SimpleQueue[tuple[bytes, asyncio.Future[None]] | None]()
        self.gone = asyncio.Event()
        self._writer = threading.Thread(target=self._write, name="nonsuch-writer", daemon=True)
        threading.Thread(target=self._read, name="nonsuch-reader", daemon=True).start()
        self._writer.start()

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield what arrives until it ends."""
        while chunk := await self._chunks.get():
            yield chunk

    async def send(self, line: bytes) -> None:
        """Write a line, and wait until it was: who does not read slows down who writes."""
        if self.gone.is_set():
            await asyncio.sleep(0)  # who says a lot to nobody leaves a turn to others, and can be stopped
            return
        sent = self._loop.create_future()
        self._lines.put((line + b"\n", sent))
        await sent

    def close(self) -> None:
        """Write what is still to be written, for a moment. Who reads may stay in a read that never ends."""
        self._lines.put(None)
        self._writer.join(LINGER_SECONDS)

    def _read(self) -> None:
        chunk = b"."
        while chunk:
            try:
                chunk = os.read(self._source, CHUNK)
            except OSError:  # closed or reset: the end as well
                chunk = b""
            if not self._tell(self._chunks.put_nowait, chunk):
                return

    def _write(self) -> None:
        while (item := self._lines.get()) is not None:
            line, sent = item
            try:
                while line:
                    line = line[os.write(self._sink, line) :]
            except OSError:  # nobody reads any more
                self._tell(self.gone.set)
            self._tell(_settle, sent)

    def _tell(self, say: Callable[..., None], *what: object) -> bool:
        try:
            self._loop.call_soon_threadsafe(say, *what)
        except RuntimeError:  # the loop has ended
            return False
        return True


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


@contextmanager
def standard_streams() -> Generator[tuple[int, int]]:
    """Yield descriptors of stdin and stdout that nobody else has.

    Meanwhile what is printed, here or by a program started from here, goes to stderr, and who reads
    stdin finds it empty: the two belong to the protocol.
    """
    source, sink = os.dup(0), os.dup(1)
    _flush()
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr
        os.dup2(nothing, 1)
    os.close(nothing)
    try:
        yield source, sink
    finally:
        _flush()
        os.dup2(source, 0)
        os.dup2(sink, 1)
        os.close(sink)  # the other one stays open: a read of it may be under way


def _flush() -> None:
    with suppress(AttributeError, OSError, ValueError):  # none, or closed
        sys.stdout.flush()
