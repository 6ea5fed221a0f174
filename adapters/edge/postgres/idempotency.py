"""Records of keyed calls in PostgreSQL, for an app that runs as several processes, or that may crash.

A record is on disk before its call runs, and how that ended is on disk before anybody is told; where the
server's setting would confirm sooner, the connections of this store ask for more. A call that began and whose
end is not recorded is not run again until its record expires: at most once, whatever dies when.

An ``atomic`` action works in ``store.transaction()``, which its record is part of: exactly once. After a
crash both are there, or neither is, and then a retry runs. A connection is held while such a handler runs.

A row holds no argument of any call and names nobody: its slot and its input are digests. It holds, until it
expires, what the resource was when the call was judged, and the answer; both can hold rows of the
application's. ``cipher`` keeps these from whoever reads the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, LiteralString

from ....kernel.idempotency import Kept
from ..extras import require
from ..idempotency import OPEN
from .tasks import PLAIN, Cipher

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.sql import Composed
    from psycopg_pool import AsyncConnectionPool

TABLE: Final = "nonsuch_idempotency"
SQL_IDEMPOTENCY_TABLE: Final = f"""
create table if not exists {TABLE} (
  slot text primary key,
  digest text not null,
  judged bytea not null,
  outcome bytea,
  begun_at timestamptz not null,
  expires_at timestamptz not null
);
create index if not exists {TABLE}_expires on {TABLE} (expires_at)
"""

_FIND: Final = """
select slot, digest, judged, begun_at, expires_at, outcome from {table} where slot = %s and expires_at > %s
"""
# Whoever comes second waits for the row, and then finds it there.
_BEGIN: Final = """
insert into {table} as held (slot, digest, judged, begun_at, expires_at) values (%s, %s, %s, %s, %s)
on conflict (slot) do update set digest = excluded.digest, judged = excluded.judged, outcome = null,
  begun_at = excluded.begun_at, expires_at = excluded.expires_at
where held.expires_at <= excluded.begun_at
"""
_END: Final = """
update {table} set outcome = %s where slot = %s and begun_at = %s and digest = %s and outcome is null
"""
_FORGET: Final = "delete from {table} where slot = %s and begun_at = %s and digest = %s and outcome is null"
# An open transaction keeps its row to itself: it is not waited for.
_PURGE: Final = """
delete from {table} where slot in (select slot from {table} where expires_at <= %s for update skip locked)
"""
# As `_BEGIN`, but for whom the slot is not open elsewhere: who comes second waits for nobody.
_OPEN: Final = """
insert into {table} as held (slot, digest, judged, begun_at, expires_at)
select %s, %s, %s, %s, %s where pg_try_advisory_xact_lock(hashtextextended(%s, 0))
on conflict (slot) do update set digest = excluded.digest, judged = excluded.judged, outcome = null,
  begun_at = excluded.begun_at, expires_at = excluded.expires_at
where held.expires_at <= excluded.begun_at
"""
_DURABLE: Final = """
select set_config('synchronous_commit', 'on', false)
where current_setting('synchronous_commit') in ('off', 'local')
"""
PURGE_EVERY: Final = timedelta(minutes=1)


class NotCommitted(Exception):
    """A transaction ended otherwise than by its commit."""


class PostgresIdempotencyStore:
    """Keeps records in a table (``SQL_IDEMPOTENCY_TABLE``) that all processes of an app share.

    The clocks of the processes must agree within a few seconds, and they share one ``secret``. Connections
    are opened when needed and closed with the app; ``connections`` is how many at most. ``table`` may be
    qualified by its schema.
    """

    def __init__(
        self, dsn: str, table: str = TABLE, *, cipher: Cipher | None = None, connections: int = 4
    ) -> None:
        """Raises: ExtraMissing, when psycopg is not installed."""
        require("psycopg_pool", "nonsuch[postgres]", "psycopg-pool")
        self._dsn, self._table, self._connections = dsn, table, connections
        self._cipher = cipher or PLAIN
        self._pool: AsyncConnectionPool[AsyncConnection[Any]] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._purged: datetime | None = None
        self._held: dict[tuple[str, datetime], AsyncConnection[Any]] = {}

    async def find(self, slot: str, now: datetime) -> Kept | None:
        """Return the record of a slot."""
        async with (await self._open()).connection() as connection:
            row = await (await connection.execute(self._sql(_FIND), (slot, now))).fetchone()
        return None if row is None else self._kept(row)

    async def begin(self, kept: Kept) -> Kept | None:
        """Keep a new record, or return the one that is there."""
        await self._tidy(kept.begun)
        row = self._row(kept)
        while True:
            if await self._executed(_BEGIN, row) == 1:
                return None
            held = await self.find(kept.slot, kept.begun)
            if held is not None:  # else it was forgotten meanwhile
                return held

    async def end(self, kept: Kept) -> None:
        """Put a record that has an outcome in the place of its beginning."""
        outcome = self._cipher.encrypt(kept.outcome or b"", _bound(kept.slot, "outcome"))
        row = (outcome, kept.slot, kept.begun, kept.digest)
        held = self._held.pop((kept.slot, kept.begun), None)
        if held is None:
            await self._executed(_END, row)
        else:
            await self._committed(held, row)

    async def forget(self, kept: Kept) -> None:
        """Remove a record that was begun; one in an open transaction goes with all that was done in it."""
        held = self._held.pop((kept.slot, kept.begun), None)
        if held is None:
            await self._executed(_FORGET, (kept.slot, kept.begun, kept.digest))
        else:
            await self._undone(held)

    async def purge(self, now: datetime) -> None:
        """Delete what has expired."""
        await self._executed(_PURGE, (now,))

    async def close(self) -> None:
        """Close the connections; a later step opens others."""
        pool, self._pool = self._pool, None
        if pool is not None and self._loop is asyncio.get_running_loop():
            await pool.close()

    # one transaction with the handler

    async def open(self, kept: Kept) -> Kept | None:
        """Begin a record in a transaction that stays open, or return what is there, or open elsewhere."""
        await self._tidy(kept.begun)
        connection = await (await self._open()).getconn()
        try:
            await connection.execute("begin")
            given = (*self._row(kept), f"{self._table} {kept.slot}")
            ours = (await connection.execute(self._sql(_OPEN), given)).rowcount == 1
        except BaseException:
            await asyncio.shield(self._undone(connection))
            raise
        if not ours:
            await self._undone(connection)
            return await self.find(kept.slot, kept.begun) or kept
        self._held[kept.slot, kept.begun] = connection
        return None

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[AsyncConnection[Any]]:
        """Yield a connection in a transaction: the record's, in the handler of an atomic action under a key.

        There it is a savepoint of that transaction, which is committed once the handler has answered.
        Elsewhere, and without a key, it is a transaction of its own.
        """
        kept = OPEN.get()
        held = None if kept is None else self._held.get((kept.slot, kept.begun))
        if held is not None:
            async with held.transaction():
                yield held
            return
        async with (await self._open()).connection() as connection, connection.transaction():
            yield connection

    async def _committed(self, held: AsyncConnection[Any], row: tuple[object, ...]) -> None:
        """Raises: NotCommitted, or what the driver raises; nothing was done then."""
        try:
            ended = await held.execute(self._sql(_END), row)
            told = (await held.execute("commit")).statusmessage if ended.rowcount == 1 else None
        except BaseException:
            await asyncio.shield(self._undone(held))
            raise
        await self._undone(held)
        if told != "COMMIT":
            raise NotCommitted

    async def _undone(self, held: AsyncConnection[Any]) -> None:
        """End the transaction that a connection may be in, and give it back."""
        with suppress(Exception):  # it is lost, and the server has ended it
            await held.rollback()
        pool = self._pool
        if pool is None:
            await held.close()
        else:
            await pool.putconn(held)

    # rows and statements

    def _row(self, kept: Kept) -> tuple[object, ...]:
        judged = self._cipher.encrypt(kept.judged, _bound(kept.slot, "judged"))
        return kept.slot, kept.digest, judged, kept.begun, kept.expires

    def _kept(self, row: tuple[Any, ...]) -> Kept:
        slot, digest, judged, begun, expires, outcome = row
        decrypt = self._cipher.decrypt
        ended = None if outcome is None else decrypt(bytes(outcome), _bound(slot, "outcome"))
        return Kept(slot, digest, decrypt(bytes(judged), _bound(slot, "judged")), begun, expires, ended)

    async def _tidy(self, now: datetime) -> None:
        """Delete what has expired, now and then."""
        if self._purged is None or now - self._purged >= PURGE_EVERY:
            self._purged = now
            await self.purge(now)

    def _sql(self, statement: LiteralString) -> Composed:
        from psycopg import sql

        return sql.SQL(statement).format(table=sql.Identifier(*self._table.split(".")))

    async def _executed(self, statement: LiteralString, given: tuple[object, ...]) -> int:
        async with (await self._open()).connection() as connection:
            return (await connection.execute(self._sql(statement), given)).rowcount

    async def _open(self) -> AsyncConnectionPool[AsyncConnection[Any]]:
        """Return the connections of this event loop."""
        from psycopg_pool import AsyncConnectionPool

        loop = asyncio.get_running_loop()
        if self._pool is None or self._loop is not loop:
            self._loop = loop
            self._pool = AsyncConnectionPool(
                self._dsn,
                min_size=1,
                max_size=self._connections,
                open=False,
                kwargs={"autocommit": True},
                configure=_durable,
            )
        await self._pool.open()
        return self._pool


async def _durable(connection: AsyncConnection[Any]) -> None:
    await connection.execute(_DURABLE)


def _bound(slot: str, column: str) -> bytes:
    """What a column's bytes are bound to: those of one record are not another's."""
    return f"{TABLE} {column} {slot}".encode()
