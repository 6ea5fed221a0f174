"""An audit chain in PostgreSQL: a record is a row, and whoever appends holds the lock of the table's name.

Rows are on disk before ``append`` returns. The role of the app needs to insert and to select, and no more:
what an intruder with that role may not do, no chain has to show.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, LiteralString

from ....kernel.chain import Head, Record, Tail
from ..audit_chain import ROOM, AuditChain
from ..audit_file import Made, Partly
from ..audit_keys import checked_keys
from ..extras import require

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed
    from psycopg_pool import ConnectionPool

TABLE: Final = "nonsuch_audit"
SQL_AUDIT_TABLE: Final = f"""
create table if not exists {TABLE} (
  seq bigint primary key,
  key text not null,
  event text not null,
  mac bytea not null
)
"""
CONNECT_SECONDS: Final = 10

_BEGIN: Final[LiteralString] = """
set transaction isolation level read committed, read write;
set local lock_timeout = '30s';
select set_config('synchronous_commit', 'on', true)
where current_setting('synchronous_commit') in ('off', 'local')
"""
_LOCK: Final[LiteralString] = "select pg_advisory_xact_lock(hashtextextended('audit chain ' || %s, 0))"
_TAIL: Final[LiteralString] = "select seq, mac, key from {table} order by seq desc limit 1"
_MAC: Final[LiteralString] = "select mac from {table} where seq = %s"
_APPEND: Final[LiteralString] = """
insert into {table} (seq, key, event, mac)
select * from unnest(%s::bigint[], %s::text[], %s::text[], %s::bytea[])
"""
_READ: Final[LiteralString] = "select seq, key, event, mac from {table} order by seq"
READ_AT_ONCE: Final = 2_000


class PostgresLedger:
    """A chain in a table (``SQL_AUDIT_TABLE``) of a database that all processes of an app share."""

    def __init__(self, where: str | ConnectionPool[Any], table: str) -> None:
        """Raises: ExtraMissing, when psycopg is not installed."""
        require("psycopg", "nonsuch[postgres]", "psycopg")
        importlib.import_module("psycopg")  # not in the thread: a fork meanwhile would leave half of it
        self._where, self._table = where, table
        self._own: Connection[Any] | None = None
        self._last: Record | None = None
        self._tried: tuple[Record, int] | None = None  # the last of a batch whose commit was not confirmed

    def append(self, made: Made) -> None:
        """Append in one transaction, behind whoever holds the lock."""
        try:
            with self._connected() as connection:
                with connection.transaction():
                    records = self._appended(connection, made)
                self._tried = None
                self._last = records[-1] if records else self._last
        except Partly:
            raise
        except BaseException:
            self.close()
            raise

    def _appended(self, connection: Connection[Any], made: Made) -> Sequence[Record]:
        connection.execute(_BEGIN)
        connection.execute(_LOCK, (self._table,))
        self._find_tried(connection)
        records = made(self._tail(connection))
        if records:
            self._tried = records[-1], len(records)
            columns = zip(*((each.seq, each.key, each.event, each.mac) for each in records), strict=True)
            connection.execute(self._sql(_APPEND), [list(each) for each in columns])
        return records

    def _find_tried(self, connection: Connection[Any]) -> None:
        """A connection that broke while it committed left the whole batch, or nothing. Raises: Partly."""
        tried, self._tried = self._tried, None
        if tried is not None and self._holds(connection, tried[0].head):
            self._last = tried[0]
            raise Partly(tried[1])

    def _tail(self, connection: Connection[Any]) -> Tail:
        row = connection.execute(self._sql(_TAIL)).fetchone()
        tail = Tail() if row is None else Tail(Head(row[0], bytes(row[1])), row[2])
        had = None if self._last is None else self._last.head
        if had is None or had == tail.head or self._holds(connection, had):
            return tail
        return Tail(tail.head, tail.key, had=had)

    def _holds(self, connection: Connection[Any], head: Head) -> bool:
        row = connection.execute(self._sql(_MAC), (head.seq,)).fetchone()
        return row is not None and bytes(row[0]) == head.mac

    def _sql(self, statement: LiteralString) -> Composed:
        from psycopg import sql

        return sql.SQL(statement).format(table=sql.Identifier(*self._table.split(".")))

    def _connected(self) -> AbstractContextManager[Connection[Any]]:
        return _kept(self._opened(self._where)) if isinstance(self._where, str) else self._where.connection()

    def _opened(self, where: str) -> Connection[Any]:
        from psycopg import Connection

        if self._own is None or self._own.closed:
            self._own = Connection.connect(where, autocommit=True, connect_timeout=CONNECT_SECONDS)
        return self._own

    def close(self) -> None:
        """Close the connection, unless it is of the pool that was given."""
        own, self._own = self._own, None
        if own is not None:
            own.close()


@contextmanager
def _kept(connection: Connection[Any]) -> Generator[Connection[Any]]:
    yield connection


def records_of(dsn: str, table: str = TABLE) -> Iterator[Record]:
    """Return the records of a chain, as one snapshot shows them.

    Raises: ExtraMissing, when psycopg is not installed; whatever the driver raises.
    """
    require("psycopg", "nonsuch[postgres]", "psycopg")
    from psycopg import Connection, IsolationLevel, sql

    with Connection.connect(dsn, connect_timeout=CONNECT_SECONDS) as connection:
        connection.isolation_level, connection.read_only = IsolationLevel.REPEATABLE_READ, True
        with connection.cursor("nonsuch_audit") as cursor:
            cursor.itersize = READ_AT_ONCE
            cursor.execute(sql.SQL(_READ).format(table=sql.Identifier(*table.split("."))))
            for seq, key, event, mac in cursor:
                yield Record(seq, key, event, bytes(mac))


def postgres_audit_chain(
    where: str | ConnectionPool[Any],
    keys: Mapping[str, bytes],
    table: str = TABLE,
    *,
    heads: Path | str | None = None,
    room: int = ROOM,
) -> AuditChain:
    """Return an ``on_audit=`` that appends each event to a table, a row each, as `file_audit_chain` does.

    ``where`` is a DSN, or a ``ConnectionPool`` of the app's own whose connections autocommit: a thread
    writes, so the pool is no asynchronous one. The table is made by ``SQL_AUDIT_TABLE``; ``table`` may be
    qualified by its schema. All processes of an app append to one chain.

    Raises: BootError, for keys that are none; ExtraMissing, when psycopg is not installed.
    """
    place = None if heads is None else Path(heads)
    return AuditChain(partial(PostgresLedger, where, table), checked_keys(keys), heads=place, room=room)
