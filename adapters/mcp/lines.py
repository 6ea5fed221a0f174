"""What arrives on a connection, cut into lines of bounded length. Knows no message."""

from __future__ import annotations

from collections.abc import Iterator


class Lines:
    """Cuts bytes at newlines; of a line that is too long no more is kept than that it was."""

    __slots__ = ("_limit", "_pieces", "_size", "_skips")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size, self._skips = 0, False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Yield each line that is whole now, and nothing (``None``) once for one that is too long."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            yield from self._hold(piece)
            yield from self.end()
        yield from self._hold(rest)

    def end(self) -> Iterator[bytes]:
        """Yield what is left where a line ends; blank lines are none."""
        line = b"".join(self._pieces)
        self._pieces, self._size, self._skips = [], 0, False
        if line.strip():
            yield line

    def _hold(self, piece: bytes) -> Iterator[None]:
        if self._skips:
            return
        self._size += len(piece)
        if self._size <= self._limit:
            self._pieces.append(piece)
        else:
            self._pieces, self._skips = [], True
            yield None
