"""Counts requests in PostgreSQL, for an app that runs as several processes: one statement is one request.

The arithmetic is that of ``kernel/meter.py``, by the database's clock. A row is the digest of a key and a
time; it names nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, LiteralString

from ....kernel.meter import PASSES, Rate, Verdict, refusing, take
from ..extras import require

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

    Pool = AsyncConnectionPool[Any]
    Connection = AsyncConnection[Any]

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

# In floating point, which holds a microsecond of our days exactly: `extract` is numeric, and slower by much.
_NOW: Final[LiteralString] = "(date_part('epoch', statement_timestamp()) * 1000000)::bigint * 1000"
# `excluded.full_at` is now and what the request takes, `ahead` is what is left of a window then. Whoever
# comes second waits for the row, and then computes with what the first one left there.
_TAKE: Final[LiteralString] = """
insert into {table} as held (key, full_at, passed) values (%(key)s, {now} + %(cost)s, true)
on conflict (key) do update set
  passed = held.full_at + %(cost)s <= excluded.full_at + %(ahead)s,
  full_at = case when held.full_at + %(cost)s <= excluded.full_at + %(ahead)s
    then greatest(held.full_at + %(cost)s, excluded.full_at)
    else least(held.full_at, excluded.full_at + %(ahead)s) end
returning passed, full_at - ({now})
"""
_LOOK: Final[LiteralString] = "select full_at, {now} from {table} where key = %(key)s"
_PURGE: Final[LiteralString] = """
with gone as (delete from {table} where key in
  (select key from {table} where full_at <= {now} limit 10000 for update skip locked) returning 1)
select count(*) from gone
"""
PURGE_SECONDS: Final = 60.0
PATIENCE_SECONDS: Final = 10.0  # where no request waits
GONE_MILLISECONDS: Final = 10_000


@dataclass(slots=True, eq=False)
class _Question:
    """A statement that somebody waits for."""

    statement: bytes
    given: dict[str, object]
    answer: asyncio.Future[tuple[Any, ...] | None]

    def settle(self, row: tuple[Any, ...] | None) -> None:
        """Answer whoever still waits."""
        if not self.answer.done():
            self.answer.set_result(row)

    def fail(self, fault: Exception) -> None:
        """Raise in whoever still waits."""
        if not self.answer.done():
            self.answer.set_exception(fault)


class PostgresRateStore:
    """A rate store (``limits.RateStore``) over one table that all processes of an app share.

    Each connection has a task of its own, which takes one question after the other: neither a connection
    nor a task is handed about for a request, which would cost as much as the statement.
    """

    def __init__(self, where: str | Pool, table: str, connections: int, timeout_seconds: float) -> None:
        """Raises: ExtraMissing, when psycopg is not installed."""
        require("psycopg_pool", "nonsuch[postgres]", "psycopg-pool")
        self._dsn = where if isinstance(where, str) else None
        self._given = None if isinstance(where, str) else where
        self._connections, self._timeout = connections, timeout_seconds
        self._take, self._look, self._purge = (_about(table, each) for each in (_TAKE, _LOOK, _PURGE))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._purging: asyncio.Task[None] | None = None
        self._purged = 0.0

    async def take(self, key: str, rate: Rate, count: int) -> Verdict:
        """Count ``count`` requests against a key, or none of them if they do not all pass.

        Raises: TimeoutError, when the database does not answer in time; whatever the driver raises.
        """
        counted = self._counted if 0 < count <= rate.limit else self._looked
        verdict = await counted(sha256(key.encode()).digest(), rate, count)
        self._tidy()
        return verdict

    async def purge(self) -> None:
        """Delete buckets that are full again; runs by itself, every minute in which requests are counted."""
        loop = self._ready()
        question = _Question(self._purge, {}, loop.create_future())
        self._hand_on(question, loop)
        await asyncio.wait_for(question.answer, PATIENCE_SECONDS)

    async def close(self) -> None:
        """Close the connections, unless they came with the pool that was given; a later step opens others."""
        if self._loop is not asyncio.get_running_loop():
            return
        if self._purging is not None:
            await asyncio.wait({self._purging}, timeout=PATIENCE_SECONDS)
        self._loop, lines = None, set(self._lines)
        for each in lines:
            each.cancel()
        if lines:
            await asyncio.wait(lines, timeout=PATIENCE_SECONDS)
        if self._looking is not None:
            self._looking.cancel()
        if self._given is None:
            await self._pool.close()

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
        """Have a statement run, and wait for it as long as a request may; what was begun ends by itself."""
        loop = self._ready()
        question = _Question(statement, given, loop.create_future())
        self._hand_on(question, loop)
        self._due.append((loop.time() + self._timeout, question))
        if self._looking is None:
            self._looking = loop.call_later(self._timeout, self._look_through, loop)
        try:
            return await question.answer
        finally:
            self._queue.pop(question, None)

    def _look_through(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let nobody wait beyond their time. One timer for all: one for each costs more than it is worth."""
        while self._due and self._due[0][0] <= loop.time():
            self._due.popleft()[1].fail(TimeoutError("the rate store does not answer"))
        self._looking = loop.call_at(self._due[0][0], self._look_through, loop) if self._due else None

    # connections

    def _ready(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin(loop)
        return loop

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have no connection yet, on this event loop."""
        self._loop, self._pool = loop, self._given or self._opening()
        self._queue, self._due = OrderedDict[_Question, None](), deque[tuple[float, _Question]]()
        self._looking = None
        self._resting, self._lines = list[asyncio.Future[_Question]](), set[asyncio.Task[None]]()

    def _opening(self) -> Pool:
        from psycopg_pool import AsyncConnectionPool

        return AsyncConnectionPool(
            self._dsn or "",
            min_size=0,
            max_size=self._connections,
            open=False,
            reconnect_timeout=0,  # a request that fails tries again; nothing waits longer and longer
            # a server that is gone without a word is found out long before its 15 minutes are over
            kwargs={"autocommit": True, "tcp_user_timeout": GONE_MILLISECONDS},
        )

    def _hand_on(self, question: _Question, loop: asyncio.AbstractEventLoop) -> None:
        """Give a question to a connection that rests, or to the next to be free, which may be another one."""
        while self._resting:
            rest = self._resting.pop()
            if not rest.done():
                rest.set_result(question)
                return
        self._queue[question] = None
        self._connect(loop)

    def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        if len(self._lines) < self._connections:
            line = loop.create_task(self._line())
            self._lines.add(line)
            line.add_done_callback(self._left)

    def _left(self, line: asyncio.Task[None]) -> None:
        self._lines.discard(line)
        if self._queue and self._loop is not None:
            self._connect(self._loop)

    async def _line(self) -> None:
        """Be one connection, until it breaks. Where it cannot be had, whoever asked waits in vain."""
        try:
            if self._given is None and self._pool.closed:
                await self._pool.open()
            async with self._pool.connection(self._timeout) as connection:
                while (question := await self._next()) is not None:
                    if not await _asked(connection, question):
                        return
        except Exception as fault:  # noqa: BLE001  (a driver's, of any kind)
            log.info("the rate store has no connection: %s", type(fault).__name__)

    async def _next(self) -> _Question | None:
        """Return what to ask next; a connection of somebody else's pool is given back instead of resting."""
        if self._queue:
            return self._queue.popitem(last=False)[0]
        if self._given is not None:
            return None
        rest: asyncio.Future[_Question] = asyncio.get_running_loop().create_future()
        self._resting.append(rest)
        return await rest

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


async def _asked(connection: Connection, question: _Question) -> bool:
    """Run one statement, a transaction of its own, and return whether the connection is good for another.

    It is prepared, unless the pool prepares none.
    """
    try:
        cursor = await connection.execute(question.statement, question.given, prepare=True)
        row: tuple[Any, ...] | None = await cursor.fetchone()
        if not connection.autocommit:  # a pool of the application's own
            await connection.commit()
    except Exception as fault:  # noqa: BLE001  (a driver's, of any kind; whoever asked raises it)
        question.fail(fault)
        return False
    question.settle(row)
    return True


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
