"""uvicorn's faster parser, and what it lacks: bounds on heads, and no fields from behind a body.

Knows nothing of what is served.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_BYTES: Final = 65_536  # as uvicorn's other parser has it
HEAD_SECONDS: Final = 10.0
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class Bounded(HttpToolsProtocol):
    """One connection. What is neither head nor body counts as a head: trailers, extensions of chunks."""

    _late: asyncio.TimerHandle | None = None
    _whole = False  # the head of the message under way
    _size = 0  # of that head
    _unused = 0  # bytes since anything came of them

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a head."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless too much came that is no body."""
        self._unused += len(data)
        if not self._whole:
            self._wait()
        super().data_received(data)
        if self._unused > HEAD_BYTES and not self.transport.is_closing():
            self._refuse()

    def send_400_response(self, msg: str) -> None:
        """Say which of the two it was."""
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
        self._whole, self._size = False, 0
        self._wait()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Count the target."""
        self._size += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of a head; one behind the body is none (RFC 9110 6.5.1)."""
        if not self._whole:
            self._size += len(name) + len(value)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin the request. Raises: ValueError, for the parser to stop at a head that is too large."""
        self._whole, self._unused = True, 0
        self._stop_waiting()
        if self._size > HEAD_BYTES:
            raise ValueError("the head is too large")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._unused = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect another head."""
        self._whole, self._unused = False, 0
        super().on_message_complete()

    # who begins a head must end it

    def _wait(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self._too_late)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_late(self) -> None:
        self._late = None
        if not self.transport.is_closing():
            self.transport.close()
