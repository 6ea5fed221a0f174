"""A lean HTTP/1.1 load driver: prebuilt bytes, keep-alive, every answer checked before it counts.

It knows neither MCP nor the subjects. Only 127.0.0.1 is ever contacted.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import cast

HOST = "127.0.0.1"
_OK = b"HTTP/1.1 200 "
_LENGTH = b"content-length:"


class BadAnswer(Exception):
    """A subject answered something that must not count as throughput."""


@dataclass(frozen=True, slots=True)
class Block:
    """What one block of requests cost."""

    requests: int
    seconds: float
    p50: float
    p99: float
    driver_cpu: float

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


@dataclass(frozen=True, slots=True)
class Shot:
    """Bytes to send and what the body of a good answer holds."""

    data: bytes
    marker: bytes


class _Connection(asyncio.Protocol):
    """Sends its shots one after the other, the next when the last is answered in full."""

    def __init__(self, shots: Iterator[Shot], latencies: list[float], done: asyncio.Future[None]) -> None:
        self._shots, self._latencies, self._done = shots, latencies, done
        self._buffer = b""
        self._marker = b""
        self._sent = 0.0
        self._needed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def start(self) -> None:
        shot = next(self._shots, None)
        if shot is None:
            self._finish(None)
            return
        self._marker = shot.marker
        self._sent = time.perf_counter()
        self._transport.write(shot.data)

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        if len(self._buffer) < self._needed:
            return
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        self._needed = end + 4 + content_length(self._buffer[:end])
        if len(self._buffer) >= self._needed:
            self._answered(end + 4)

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish(BadAnswer("the connection closed before its last answer"))

    def _answered(self, body: int) -> None:
        self._latencies.append(time.perf_counter() - self._sent)
        answer = self._buffer
        complete = len(answer) == self._needed
        if not (complete and answer.startswith(_OK) and answer.find(self._marker, body) > 0):
            self._finish(BadAnswer(f"not a good answer: `{answer[:600]!r}`"))
            return
        self._buffer, self._needed = b"", 0
        self.start()

    def _finish(self, error: BadAnswer | None) -> None:
        if not self._done.done():
            self._done.set_result(None) if error is None else self._done.set_exception(error)
        self._transport.close()


def content_length(head: bytes) -> int:
    """Return the length of the body behind a head. Raises `BadAnswer`."""
    lowered = head.lower()
    at = lowered.find(_LENGTH)
    if at < 0:
        raise BadAnswer(f"no content-length: `{head[:300]!r}`")
    return int(lowered[at + len(_LENGTH) :].split(b"\r\n", 1)[0])


def _same(connection: _Connection) -> _Connection:
    return connection


async def passes(port: int, shot: Shot) -> bool:
    """Whether the body of one answer, whatever its status, holds the marker."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(shot.data)
        head = await reader.readuntil(b"\r\n\r\n")
        return shot.marker in await reader.readexactly(content_length(head))
    finally:
        writer.close()


async def fire(port: int, shots: Sequence[Shot], requests: int, concurrency: int) -> Block:
    """Send exactly `requests` requests over `concurrency` connections. Raises `BadAnswer`."""
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    left = islice(cycle(shots), requests)
    waits = [loop.create_future() for _ in range(concurrency)]
    connections = [_Connection(left, latencies, wait) for wait in waits]
    for connection in connections:
        await loop.create_connection(partial(_same, connection), HOST, port)
    cpu, began = time.process_time(), time.perf_counter()
    for connection in connections:
        connection.start()
    await asyncio.wait_for(asyncio.gather(*waits), timeout=120)
    seconds, used = time.perf_counter() - began, time.process_time() - cpu
    latencies.sort()
    middle, tail = (
        latencies[len(latencies) // 2],
        latencies[min(len(latencies) - 1, len(latencies) * 99 // 100)],
    )
    return Block(requests, seconds, middle, tail, used)
