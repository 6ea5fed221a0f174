"""Counts requests in PostgreSQL, for an app that runs as several processes: one statement is one request.

The arithmetic is that of ``kernel/meter.py``, by the database's clock. A row is the digest of a key and a
time; it names nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, LiteralString, TypeVar

from ....kernel.meter import PASSES, Rate, Verdict, refusing, take
from ..extras import require

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool

    Pool = AsyncConnectionPool[Any]

T = TypeVar("T")
log: Final = logging.getLogger("nonsuch.rate-store")
TABLE: Final = "nonsuch_rate_limits"
# Unlogged: a crash of the database forgets what was counted, and no request waits for a disk. Half of each
# page is left free, so that a row that changes with every request changes in place.
SQL_LIMITS_TABLE: Final = f"""
create unlogged table if not exists {TABLE} (
  key bytea primary key,
  full_at bigint not null,
  passed boolean not null
) with (fillfactor = 50)
"""

_NOW: Final[LiteralString] = "(extract(epoch from statement_timestamp()) * 1000000000)::bigint"
# `excluded.full_at` is now and what the request takes, `ahead` is what is left of a window then. Whoever
# comes second waits for the row, and then computes with what the first one left there.
_TAKE: Final[LiteralString] = """
insert into {table} as held (key, full_at, passed) values (%(key)s, {now} + %(cost)s, true)
on conflict (key) do update set
  passed = held.full_at + %(cost)s <= excluded.full_at + %(ahead)s,
  full_at = case when held.full_at + %(cost)s <= excluded.full_at + %(ahead)s
    then greatest(held.full_at + %(cost)s, excluded.full_at)
    else least(held.full_at, excluded.full_at + %(ahead)s) end
returning passed, full_at - {now}
"""
_LOOK: Final[LiteralString] = "select full_at, {now} from {table} where key = %(key)s"
_PURGE: Final[LiteralString] = """
delete from {table} where key in
  (select key from {table} where full_at <= {now} limit 10000 for update skip locked)
"""
PURGE_SECONDS: Final = 60.0


class PostgresRateStore:
    """A rate store (``limits.RateStore``) over one table that all processes of an app share."""

    def __init__(self, where: str | Pool, table: str, connections: int, timeout_seconds: float) -> None:
        """Raises: ExtraMissing, when psycopg is not installed."""
        require("psycopg_pool", "nonsuch[postgres]", "psycopg-pool")
        self._dsn = where if isinstance(where, str) else None
        self._pool = None if isinstance(where, str) else where
        self._connections, self._timeout = connections, timeout_seconds
        self._take, self._look, self._purge = (_about(table, each) for each in (_TAKE, _LOOK, _PURGE))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._purging: asyncio.Task[None] | None = None
        self._purged = 0.0

    async def take(self, key: str, rate: Rate, count: int) -> Verdict:
        """Count ``count`` requests against a key, or none of them if they do not all pass.

        Raises: TimeoutError, when the database does not answer in time; whatever the driver raises.
        """
        counted = self._counted if 0 < count <= rate.limit else self._looked
        verdict = await self._in_time(counted(sha256(key.encode()).digest(), rate, count))
        self._tidy()
        return verdict

    async def purge(self) -> None:
        """Delete buckets that are full again; runs by itself, every minute in which requests are counted."""
        async with (await self._open()).connection(self._timeout) as connection:
            await connection.execute(self._purge)

    async def close(self) -> None:
        """Close the connections, unless they came with the pool that was given; a later step opens others."""
        pool, purging = self._pool, self._purging
        if self._dsn is None or pool is None or self._loop is not asyncio.get_running_loop():
            return
        self._pool = None
        if purging is not None:
            await asyncio.wait({purging})
        await pool.close()

    async def _counted(self, key: bytes, rate: Rate, count: int) -> Verdict:
        cost = rate.interval * count
        given: dict[str, object] = {"key": key, "cost": cost, "ahead": rate.window - cost}
        row = await self._row(self._take, given)
        if row is None:
            raise LookupError("the statement that counts returned nothing")
        return PASSES if row[0] else refusing(row[1] + cost - rate.window)

    async def _looked(self, key: bytes, rate: Rate, count: int) -> Verdict:
        """Answer for what changes nothing: no request, or more of them than a bucket holds."""
        full_at, now = await self._row(self._look, {"key": key}) or (None, 0)
        return take(full_at, now, rate, count=count)[1]

    async def _row(self, statement: bytes, given: dict[str, object]) -> tuple[Any, ...] | None:
        async with (await self._open()).connection(self._timeout) as connection:
            row: tuple[Any, ...] | None = await (await connection.execute(statement, given)).fetchone()
            return row

    async def _in_time(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait as long as a request may; the work then ends by itself, which can take a driver long."""
        task = asyncio.create_task(work)
        task.add_done_callback(_retrieved)
        done, _ = await asyncio.wait({task}, timeout=self._timeout)
        if not done:
            raise TimeoutError("the rate store does not answer")
        return task.result()

    def _tidy(self) -> None:
        """Purge now and then, behind the request that finds it is time."""
        now = asyncio.get_running_loop().time()
        self._purged = self._purged or now
        if now - self._purged >= PURGE_SECONDS:
            self._purged = now
            self._purging = asyncio.create_task(self._purge_quietly())

    async def _purge_quietly(self) -> None:
        try:
            await self.purge()
        except Exception as fault:  # noqa: BLE001  (a driver's, of any kind; the next minute tries again)
            log.warning("the rate store was not purged: %s", type(fault).__name__)

    async def _open(self) -> Pool:
        """Return the connections of this event loop, or those that were given."""
        from psycopg_pool import AsyncConnectionPool

        if self._dsn is None and self._pool is not None:
            return self._pool
        loop = asyncio.get_running_loop()
        if self._pool is None or self._loop is not loop:
            self._loop = loop
            self._pool = AsyncConnectionPool(
                self._dsn or "",
                min_size=0,
                max_size=self._connections,
                open=False,
                reconnect_timeout=0,  # a request that fails tries again; nothing waits longer and longer
                kwargs={"autocommit": True},
            )
        await self._pool.open()
        return self._pool


def postgres_rate_limit_store(
    where: str | Pool, table: str = TABLE, *, connections: int = 8, timeout_seconds: float = 1.0
) -> PostgresRateStore:
    """Return a store for ``define_app_mcp(rate_limit_store=...)`` that counts exactly over all processes.

    ``where`` is a DSN, or an ``AsyncConnectionPool`` of the app's own whose connections autocommit. The
    table is made by ``SQL_LIMITS_TABLE``; ``table`` may be qualified by its schema. A request is refused
    with 503 when it could not be counted within ``timeout_seconds``, and counted again as soon as the
    database answers. After a crash of the database, which empties the table, every allowance is whole.

    Raises: ExtraMissing, when psycopg is not installed.
    """
    return PostgresRateStore(where, table, connections, timeout_seconds)


def _about(table: str, statement: LiteralString) -> bytes:
    from psycopg import sql

    named = sql.Identifier(*table.split("."))
    return sql.SQL(statement).format(table=named, now=sql.SQL(_NOW)).as_bytes(None)


def _retrieved(task: asyncio.Future[Any]) -> None:
    """Take the outcome of work that nobody waits for any more, so that nothing is said of it at exit."""
    if not task.cancelled():
        task.exception()
