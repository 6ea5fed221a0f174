"""The body of an ASGI request, read as far as it may be, and no slower than anybody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Final

from ..wire import Head
from .route import beyond

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Read = Callable[[int], Coroutine[Any, Any, bytes | None]]

GRACE_SECONDS: Final = 30.0  # for a body of any size
BYTES_PER_SECOND: Final = 1_024  # what more it may take: who sends less holds a request for nothing


class Gone(Exception):
    """The client left before its body was whole."""


class TooSlow(Exception):
    """The body comes so slowly that nobody waits for the rest."""


def reader(head: Head, receive: Receive) -> Read:
    """Return what reads a body of up to a number of bytes; of a longer one, nothing.

    Raises there: Gone, TooSlow.
    """

    async def read(limit: int) -> bytes | None:
        if beyond(head.headers.get("content-length", ""), limit):
            return None
        chunk, more = _part(await receive())
        if len(chunk) > limit:
            return None
        return await _whole(chunk, receive, limit) if more else chunk

    return read


async def _whole(first: bytes, receive: Receive, limit: int) -> bytes | None:
    """Read the rest of what came in parts."""
    chunks, size = [first], len(first)
    began = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout_at(began + GRACE_SECONDS) as patience:
            while True:
                chunk, more = _part(await receive())
                size += len(chunk)
                if size > limit:
                    return None
                chunks.append(chunk)
                if not more:
                    return b"".join(chunks)
                patience.reschedule(began + GRACE_SECONDS + size / BYTES_PER_SECOND)
    except TimeoutError:
        raise TooSlow from None


def _part(message: MutableMapping[str, Any]) -> tuple[bytes, bool]:
    if message["type"] == "http.disconnect":
        raise Gone
    return message.get("body", b""), message.get("more_body", False)
