"""Runs the text of one SQL file inside the transaction at hand, so that the file cannot end it.

The server itself splits and reads the text: it is executed from inside a block, where every statement that
begins, ends or divides a transaction is refused, in a file, a `DO` block and a procedure alike. Knows no
migration and no branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .refused import DatabaseRefused, one_line

if TYPE_CHECKING:
    from psycopg import Connection, Error

INVALID: Final = "X_DB_SQL_FILE"
MAX_BYTES: Final = 16 * 1024 * 1024
_HINTS: Final = {
    "25001": "leave it out, or run it apart from the files: each file is one transaction",
    "0A000": "each file is one transaction: leave out BEGIN, COMMIT and SAVEPOINT, and COPY with the client",
    "2D000": "leave out COMMIT and ROLLBACK: each file is one transaction",
    "55P04": "use the new value of the enumeration in a file of its own, after this one",
}


@dataclass(frozen=True, slots=True)
class SqlFile:
    """A file's name and text."""

    name: str
    text: str


class FileFailed(Exception):
    """The server refused a file. ``where`` is the place in it, if the server told one."""

    def __init__(self, file: str, state: str, said: str, where: str | None, fix: str) -> None:
        super().__init__(file, state, said)
        self.file, self.state, self.said, self.where, self.fix = file, state, said, where, fix

    @property
    def cause(self) -> str:
        """What went wrong, in one line."""
        place = f":{self.where}" if self.where else ""
        return f"`{self.file}{place}`: {self.said}"


def read_file(path: Path) -> SqlFile:
    """Return a file. Raises: DatabaseRefused."""
    name = one_line(path.name)
    try:
        with path.open("rb") as file:
            held = file.read(MAX_BYTES + 1)
        text = held.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatabaseRefused(
            INVALID, f"`{name}` is no UTF-8 from byte {error.start} on", "save it in UTF-8"
        ) from None
    except OSError as error:
        raise DatabaseRefused(INVALID, f"`{name}` cannot be read: {error.strerror}") from None
    if len(held) > MAX_BYTES:
        raise DatabaseRefused(
            INVALID, f"`{name}` is larger than {MAX_BYTES} bytes", "divide it into several files"
        )
    if "\0" in text:
        raise DatabaseRefused(
            INVALID, f"`{name}` holds a NUL, where the server would stop to read", "take it out"
        )
    return SqlFile(path.name, text)


def run_file(connection: Connection[tuple[Any, ...]], file: SqlFile) -> None:
    """Run a file in the transaction of a connection. Raises: FileFailed."""
    import psycopg
    from psycopg import sql

    inside = sql.Literal(file.text).as_string(connection)
    block = sql.SQL("do language plpgsql {}").format(sql.Literal(f"begin execute {inside}; end"))
    try:
        connection.execute(block)
    except psycopg.Error as error:
        raise _failed(file, error) from None


def _failed(file: SqlFile, error: Error) -> FileFailed:
    """Name what the server said first; its details and context can hold values of rows."""
    state = error.diag.sqlstate or ""
    said = one_line(error.diag.message_primary or type(error).__name__)
    where = _place(file.text, _offset(file.text, error))
    return FileFailed(file.name, state, said, where, _HINTS.get(state, "correct the file, then run it again"))


def _offset(text: str, error: Error) -> int | None:
    """Return where the server stopped to read. It does not tell in which statement a value was at fault."""
    position, query = error.diag.internal_position, error.diag.internal_query or ""
    return int(position) - 1 if position and text.startswith(query) else None


def _place(text: str, at: int | None) -> str | None:
    if at is None:
        return None
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"
