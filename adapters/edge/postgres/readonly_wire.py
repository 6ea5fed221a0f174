"""Talks to one server in pipelines: several messages out, their answers in. Extended protocol only.

Knows no guard and no SQL of its own. In pipeline mode libpq sends each statement by itself, and the server
refuses a message that holds two: a text can never become several statements here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.pq.abc import PGresult

# ExecStatusType of libpq, whose numbers are its ABI.
_BAD: Final = frozenset({5, 7})  # BAD_RESPONSE, FATAL_ERROR
_ROWS: Final = frozenset({2, 9, 12})  # TUPLES_OK, SINGLE_TUPLE, TUPLES_CHUNK
_SYNC: Final = 10  # PIPELINE_SYNC


Take: TypeAlias = "Callable[[int, PGresult], bool]"  # whether that was enough


class LinkLost(Exception):
    """The connection ended: what was sent may have been carried out, and no answer will come."""


class ServerError(Exception):
    """The server refused a statement; ``state`` is its SQLSTATE, ``at`` the offset in characters it names."""

    def __init__(self, state: str, message: str, at: int | None = None) -> None:
        self.state, self.message, self.at = state, message, at
        super().__init__(state, message, at)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with its parameters, to be run; ``name`` is one that the session prepared."""

    text: str = ""
    parameters: tuple[str, ...] = ()
    name: str = ""


class Wire:
    """One connection in pipeline mode. One exchange at a time."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection, self.pg = connection, connection.pgconn  # it ends with the last reference
        self.pg.enter_pipeline_mode()

    def close(self) -> None:
        """End the connection, whatever goes on there, and whichever event loop it was of."""
        self.pg.finish()

    # out

    def run(self, *statements: Statement) -> None:
        """Send statements of one batch; ``sync`` ends it."""
        for each in statements:
            given = [value.encode() for value in each.parameters] or None
            if each.name:
                self.pg.send_query_prepared(each.name.encode(), given)
            else:
                self.pg.send_query_params(each.text.encode(), given)

    def prepare(self, name: str, text: str) -> None:
        """Let the server read a statement and keep it under a name; no name is kept until the next one."""
        self.pg.send_prepare(name.encode(), text.encode())

    def describe(self) -> None:
        """Ask for the columns of what was prepared without a name."""
        self.pg.send_describe_prepared(b"")

    def flush(self) -> None:
        """Let the server send what it has by now: it is read while the rest of the batch goes on."""
        self.pg.send_flush_request()

    def sync(self) -> None:
        """End a batch: an error skips the rest of it, and the next one is run all the same."""
        self.pg.pipeline_sync()

    # in

    def is_there(self) -> bool:
        """Whether nothing was heard of its end, which stands behind what the server said last."""
        try:
            self.pg.consume_input()
            self.pg.consume_input()
        except _faults():
            return False
        return self.pg.status == 0

    async def answers(self) -> list[PGresult]:
        """Return the answers of one batch, in order. Raises: ServerError, LinkLost."""
        found = await self.outcomes()
        for each in found:
            if is_refusal(each):
                raise refused(each)
        return found

    async def outcomes(self) -> list[PGresult]:
        """Return the answers of one batch, in order, refusals too. Raises: LinkLost."""
        found: list[PGresult] = []

        def keep(place: int, answer: PGresult) -> bool:
            del place
            found.append(answer)
            return False

        await self.stream(keep)
        return found

    async def stream(self, take: Take, chunked: int = -1, rows: int = 0) -> None:
        """Give the answers of one batch as they come, each with the number of its statement, refusals too.

        Those of the statement ``chunked`` come in parts of so many ``rows``. It ends with the batch, or
        where ``take`` says so: then the rest is not read. Raises: LinkLost.
        """
        place, failed, pg = 0, False, self.pg
        try:
            while pg.flush():
                await self._ready(self._loop().add_writer, self._loop().remove_writer)
            while True:
                if place == chunked and not failed:
                    self._by_chunks(rows)
                    chunked = -1
                while pg.is_busy():
                    await self._ready(self._loop().add_reader, self._loop().remove_reader)
                    pg.consume_input()
                found = pg.get_result()
                if found is None:  # behind the last one of a statement
                    place += 1
                    continue
                if pg.status != 0:  # what libpq makes of an end is no answer of the server's
                    raise LinkLost(_last(found.error_message))
                if found.status == _SYNC:
                    return
                failed = failed or is_refusal(found)
                if take(place, found):
                    return
        except _faults() as fault:
            raise LinkLost(_last(str(fault).encode())) from None

    def _by_chunks(self, rows: int) -> None:
        """Let the rows of the statement that is answered next come in parts, so that few are held at once."""
        from psycopg import NotSupportedError

        try:
            self.pg.set_chunked_rows_mode(rows)
        except NotSupportedError:  # a libpq before 17
            self.pg.set_single_row_mode()

    async def _ready(self, add: Callable[..., object], remove: Callable[[int], object]) -> None:
        socket, ready = self.pg.socket, self._loop().create_future()
        add(socket, _done, ready)
        try:
            await ready
        finally:
            remove(socket)

    @staticmethod
    def _loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()


def _done(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


@cache
def _faults() -> tuple[type[Exception], ...]:
    from psycopg import Error

    return (Error, OSError)


def refused(result: PGresult) -> ServerError:
    """Return what a server said when it refused a statement: its first line, without details of rows."""
    from psycopg.pq import DiagnosticField

    state, message, at = (
        result.error_field(field) or b""
        for field in (
            DiagnosticField.SQLSTATE,
            DiagnosticField.MESSAGE_PRIMARY,
            DiagnosticField.STATEMENT_POSITION,
        )
    )
    told = message.decode(errors="replace") or _last(result.error_message)
    return ServerError(state.decode(errors="replace"), told, int(at) - 1 if at.isdigit() else None)


def is_refusal(result: PGresult) -> bool:
    """Whether an answer is a refusal."""
    return result.status in _BAD


def has_rows(result: PGresult) -> bool:
    """Whether an answer holds rows, all or some."""
    return result.status in _ROWS


def _last(message: bytes) -> str:
    lines = [each.strip() for each in message.decode(errors="replace").splitlines() if each.strip()]
    return lines[-1] if lines else "the connection was lost"
