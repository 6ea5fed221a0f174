"""uvicorn's faster parser, and what it lacks: bounds on heads, on time and on requests that wait in line.

Knows nothing of what is served. No field from behind a body becomes a header.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ..edge.bodies import BYTES_PER_SECOND, GRACE_SECONDS

HEAD_BYTES: Final = 65_536  # as uvicorn's other parser has it
HEAD_SECONDS: Final = 10.0
READ_SECONDS: Final = 60.0  # in which a client reads something of what was sent to it
MAX_WAITING: Final = 16  # requests behind one that is answered: each costs a hundred times its bytes
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class _TooMany(Exception):
    """More requests wait on one connection than anybody sends who reads the answers."""


class Bounded(HttpToolsProtocol):
    """One connection. What is neither head nor body counts as a head: trailers, extensions of chunks.

    Timers are set for what does not come at once; most requests are whole when they arrive, and set none.
    """

    _late: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    _part: Literal["", "head", "body"] = ""  # of the message under way
    _size = 0  # of its head
    _body = 0  # of its body, so far
    _since = 0.0  # its body comes
    _unused = 0  # bytes since anything came of them
    _unread = 0  # by the client, when that was last looked at

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a head."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._wait(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        self._stop_minding()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless too much came that is no body; wait for the rest of what is not whole."""
        self._unused += len(data)
        try:
            super().data_received(data)
        except _TooMany:
            self.transport.close()
        if self.transport.is_closing():
            return
        if self._unused > HEAD_BYTES:
            self._refuse()
        elif self._late is None and (self._part or self._unused):
            self._wait(GRACE_SECONDS if self._part == "body" else HEAD_SECONDS)

    def send_400_response(self, msg: str) -> None:
        """Say which of the two it was."""
        if len(self.pipeline) > MAX_WAITING:
            raise _TooMany
        if self._size > HEAD_BYTES:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _refuse(self) -> None:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # none before the first request
        if cycle is None or cycle.response_complete:
            self.transport.write(_TOO_LARGE)
        self.transport.close()

    # what the parser finds

    def on_message_begin(self) -> None:
        """Begin a head."""
        self._part, self._size = "head", 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Count the target."""
        self._size += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of a head; one behind the body is none (RFC 9110 6.5.1)."""
        if self._part == "head":
            self._size += len(name) + len(value)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin the request. Raises: ValueError, for the parser to stop at a head that is too large."""
        self._part, self._unused, self._body, self._since = "body", 0, 0, self.loop.time()
        self._stop_waiting()
        if self._size > HEAD_BYTES:
            raise ValueError("the head is too large")
        super().on_headers_complete()
        if len(self.pipeline) > MAX_WAITING:
            raise ValueError("too many requests wait")

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._unused = 0
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect another head."""
        self._part, self._unused = "", 0
        self._stop_waiting()
        super().on_message_complete()

    # who begins to send must go on

    def _wait(self, seconds: float) -> None:
        self._late = self.loop.call_later(seconds, self._too_late)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_late(self) -> None:
        self._late = None
        left = self._left() if self._part == "body" else 0
        if left > 0:
            self._wait(left)
        elif not self.transport.is_closing():
            self.transport.close()

    def _left(self) -> float:
        """Return how long the body may still take; while nobody here reads it, its sender is not at fault."""
        now = self.loop.time()
        if self.flow.read_paused:
            self._since = now - self._body / BYTES_PER_SECOND
        return self._since + GRACE_SECONDS + self._body / BYTES_PER_SECOND - now

    # who asks must read

    def pause_writing(self) -> None:
        """More was sent than the client has read: see that it goes on."""
        super().pause_writing()
        self._mind()

    def on_response_complete(self) -> None:
        """See that an answer is read, also by a client whose connection is to be closed then."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._mind()

    def _mind(self) -> None:
        if self._stuck is None:
            self._unread = self.transport.get_write_buffer_size()
            self._stuck = self.loop.call_later(READ_SECONDS, self._look)

    def _look(self) -> None:
        """Let go of a client that has read nothing since this was last looked at."""
        self._stuck, left = None, self.transport.get_write_buffer_size()
        if left and left >= self._unread:
            self.transport.abort()
        elif left:
            self._mind()

    def _stop_minding(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
