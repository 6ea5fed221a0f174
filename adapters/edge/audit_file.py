"""An audit chain in a file: a record is a line, and whoever appends holds the file's lock. Knows no event."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from ...kernel.chain import MAX_LINE_BYTES, Record, Tail, line_of, record_of

Made = Callable[[Tail], Sequence[Record]]
MODE: Final = 0o600
_WINDOW: Final = 65_536
_FIRST: Final = b'{"seq":1,"key":"'


class Ledger(Protocol):
    """Where a chain is kept, by writers of several processes."""

    def append(self, made: Made) -> None:
        """Lock, show the end of the chain, and append what ``made`` answers; on disk when this returns.

        Raises: Partly, when less than all of this or an earlier call was written; anything, when nothing was.
        """
        ...

    def close(self) -> None:
        """Let go of what is held open; a later ``append`` opens it again."""
        ...


class Partly(Exception):
    """Of what a call wanted appended, the first ``count`` records are there."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class NoChain(Exception):
    """What is there is no audit chain, and nothing is appended to it."""

    code = "X_AUDIT_UNREADABLE"


class FileLedger:
    """A chain in a file that is opened for each append, so that no process depends on another's handle."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last: tuple[int, bytes, Record] | None = None  # where our last line ends, the line, its record

    def append(self, made: Made) -> None:
        """Append under the file's lock."""
        with _opened(self.path) as held:
            size = os.fstat(held).st_size
            tail, ended = self._tail(held, size)
            records = made(tail)
            lines = [line_of(each) for each in records]
            if lines and not ended:
                lines[0] = b"\n" + lines[0]
            _write(held, lines)
            if records:
                size += sum(map(len, lines))
                self._last = size, lines[-1].removeprefix(b"\n"), records[-1]

    def close(self) -> None:
        """Nothing is held open."""

    def _tail(self, held: int, size: int) -> tuple[Tail, bool]:
        """Return the end of the chain, and whether its last line is ended."""
        last = self._last
        if last is not None:
            end, line, record = last
            there = os.pread(held, len(line), end - len(line)) == line
            if there and end == size:
                return Tail(record.head, record.key), True
            if not there:
                tail, ended = _read_tail(held, size)
                return Tail(tail.head, tail.key, tail.rest, record.head), ended
        return _read_tail(held, size)


def _read_tail(held: int, size: int) -> tuple[Tail, bool]:
    """Read backwards until a line is a record; what stands behind it a crash left. Raises: NoChain."""
    window = 0
    while window < min(size, MAX_LINE_BYTES):
        window = min(max(window * 4, _WINDOW), size)
        block = os.pread(held, window, size - window)
        found = _last_record(block, whole=window == size)
        if found is not None:
            return found, block.endswith(b"\n")
    if size == 0:
        return Tail(), True
    block = os.pread(held, _WINDOW, 0)
    if size > _WINDOW or b"\n" in block or not block.startswith(_FIRST[:size]):
        raise NoChain("the file holds something else than an audit chain")
    return Tail(rest=block), False


def _last_record(block: bytes, *, whole: bool) -> Tail | None:
    """Return the end of the chain that a block ends with; its first line is one only in a whole file."""
    end = len(block)
    while end > 0:
        start = block.rfind(b"\n", 0, end - 1) + 1
        record = record_of(block[start:end].removesuffix(b"\n")) if start or whole else None
        if record is not None:
            rest = block[end:]
            return Tail(record.head, record.key, rest.removesuffix(b"\n") if rest else None)
        end = start
    return None


def _write(held: int, lines: Sequence[bytes]) -> None:
    """Write all lines, to the disk. Raises: Partly, when some were written; OSError, when none was."""
    data = memoryview(b"".join(lines))
    done = 0
    try:
        while done < len(data):
            done += os.write(held, data[done:])
        os.fsync(held)
    except OSError:
        count = 0
        while count < len(lines) and sum(map(len, lines[: count + 1])) <= done + 1:  # its end may be missing
            count += 1
        if count:
            raise Partly(count) from None
        raise


def lines_of(path: Path) -> Iterator[bytes]:
    """Return the lines of a chain as it is now, with their ends; nothing of what is being written.

    A line that is too long to be a record comes in pieces. Raises: OSError.
    """
    with path.open("rb") as file:
        with _locked(file.fileno(), shared=True):
            left = os.fstat(file.fileno()).st_size
        while left > 0 and (line := file.readline(min(left, MAX_LINE_BYTES))):
            left -= len(line)
            yield line


@contextmanager
def _opened(path: Path) -> Generator[int]:
    """Open a file to append to, and hold its lock."""
    held = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), MODE)
    try:
        with _locked(held, shared=False):
            yield held
    finally:
        os.close(held)


@contextmanager
def _locked(held: int, *, shared: bool) -> Generator[None]:
    import fcntl

    fcntl.flock(held, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(held, fcntl.LOCK_UN)
