"""Tasks in PostgreSQL, for an app that runs as several processes. One statement is one change.

A row holds no argument of any call. It holds, until the task expires and the row is deleted, what its
caller may see of it: the state, the open questions and their answers until the handler has taken them,
and the result of the call, which can hold rows of the application's. ``cipher`` keeps these from whoever
reads the database; without one they are readable there. The owner is a digest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, LiteralString

from pydantic_core import from_json, to_json

from ....kernel.tasks import Task, TaskLimits
from ..extras import require

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.sql import Composed
    from psycopg_pool import AsyncConnectionPool

TABLE: Final = "nonsuch_tasks"
SQL_TASKS_TABLE: Final = f"""
create table if not exists {TABLE} (
  id text primary key,
  owner text not null,
  tool text not null,
  status text not null
    check (status in ('working', 'input_required', 'completed', 'failed', 'cancelled')),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz not null,
  lease_until timestamptz not null,
  poll_ms integer not null,
  version bigint not null,
  talk bytea not null,
  body bytea not null
);
create index if not exists {TABLE}_owner on {TABLE} (owner);
create index if not exists {TABLE}_expires on {TABLE} (expires_at)
"""

_CREATE: Final = """
insert into {table} (id, owner, tool, status, created_at, updated_at, expires_at, lease_until, poll_ms,
  version, talk, body)
select %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s
where (select count(*) from {table} where owner = %s) < %s and (select count(*) from {table}) < %s
"""
_READ: Final = """
select id, owner, tool, status, created_at, updated_at, expires_at, lease_until, poll_ms, version, talk, body
from {table} where id = any(%s) and expires_at > %s
"""
_VERSIONS: Final = "select id, version from {table} where id = any(%s) and expires_at > %s"
_SWAP: Final = """
update {table} set status = %s, updated_at = %s, version = %s, talk = %s, body = %s
where id = %s and version = %s and status in ('working', 'input_required')
"""
_RENEW: Final = """
update {table} set lease_until = %s
where id = any(%s) and status in ('working', 'input_required') and lease_until > %s
"""
_PURGE: Final = "delete from {table} where expires_at <= %s"
# Creations of one table come one after the other, or two would find the last room at once.
_ALONE: Final = "select pg_advisory_xact_lock(hashtextextended(%s, 0))"


@dataclass(frozen=True, slots=True)
class Cipher:
    """Makes bytes unreadable and readable again, both bound to other bytes, as AES-GCM does.

    ``decrypt`` raises for what ``encrypt`` did not make of the same bound bytes.
    """

    encrypt: Callable[[bytes, bytes], bytes]
    decrypt: Callable[[bytes, bytes], bytes]


PLAIN: Final = Cipher(lambda data, _bound: data, lambda data, _bound: data)


class PostgresTaskStore:
    """Keeps tasks in a table (``SQL_TASKS_TABLE``) that all processes of an app share.

    What another process does to a task is seen within a second. The clocks of the processes must agree
    within a few seconds, well within ``TaskLimits.lease_seconds``. Connections are opened when needed
    and closed with the app; ``connections`` is how many at most. ``table`` may be qualified by its schema.
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

    async def create(self, task: Task, limits: TaskLimits) -> bool:
        """Keep a new task, if there is room once the expired ones are gone."""
        row = (*_kept(task), *self._content(task))
        counted = (task.owner, limits.per_principal, limits.in_all)
        async with (await self._open()).connection() as connection, connection.transaction():
            await connection.execute(_ALONE, [self._table])
            await connection.execute(self._sql(_PURGE), [task.created])
            made = await connection.execute(self._sql(_CREATE), (*row, *counted))
            return made.rowcount == 1

    async def read(self, idents: Collection[str], now: datetime) -> Mapping[str, Task]:
        """Return those of the tasks that are kept."""
        rows = await self._fetched(_READ, (list(idents), now))
        return {row[0]: self._task(row) for row in rows}

    async def versions(self, idents: Collection[str], now: datetime) -> Mapping[str, int]:
        """Return the versions of those that are kept."""
        return dict(await self._fetched(_VERSIONS, (list(idents), now)))

    async def swap(self, task: Task) -> bool:
        """Put a changed task in the place of its last version."""
        given = (task.status, task.updated, task.version, *self._content(task), task.ident, task.version - 1)
        return await self._executed(_SWAP, given) == 1

    async def renew(self, idents: Collection[str], now: datetime, until: datetime) -> None:
        """Prolong leases."""
        await self._executed(_RENEW, (until, list(idents), now))

    async def purge(self, now: datetime) -> None:
        """Delete what has expired."""
        await self._executed(_PURGE, (now,))

    async def close(self) -> None:
        """Close the connections; a later step opens others."""
        pool, self._pool = self._pool, None
        if pool is not None and self._loop is asyncio.get_running_loop():
            await pool.close()

    # rows and statements

    def _content(self, task: Task) -> tuple[bytes, bytes]:
        talk = to_json({"message": task.message, "asks": dict(task.asks), "answers": dict(task.answers)})
        encrypt = self._cipher.encrypt
        return encrypt(talk, _bound(task.ident, "talk")), encrypt(task.body, _bound(task.ident, "body"))

    def _task(self, row: tuple[Any, ...]) -> Task:
        *kept, talk, body = row
        ident, decrypt = row[0], self._cipher.decrypt
        told = from_json(decrypt(bytes(talk), _bound(ident, "talk")))
        ended = decrypt(bytes(body), _bound(ident, "body"))
        members: list[Any] = [*kept, told["message"], told["asks"], told["answers"], ended]
        return Task(*members)

    def _sql(self, statement: LiteralString) -> Composed:
        from psycopg import sql

        return sql.SQL(statement).format(table=sql.Identifier(*self._table.split(".")))

    async def _fetched(self, statement: LiteralString, given: tuple[object, ...]) -> list[tuple[Any, ...]]:
        async with (await self._open()).connection() as connection:
            return await (await connection.execute(self._sql(statement), given)).fetchall()

    async def _executed(self, statement: LiteralString, given: tuple[object, ...]) -> int:
        async with (await self._open()).connection() as connection:
            return (await connection.execute(self._sql(statement), given)).rowcount

    async def _open(self) -> AsyncConnectionPool[AsyncConnection[Any]]:
        """Return the connections of this event loop."""
        from psycopg_pool import AsyncConnectionPool

        loop = asyncio.get_running_loop()
        if self._pool is None or self._loop is not loop:
            self._loop = loop
            given = {"autocommit": True}
            self._pool = AsyncConnectionPool(
                self._dsn, min_size=1, max_size=self._connections, open=False, kwargs=given
            )
        await self._pool.open()
        return self._pool


def _kept(task: Task) -> tuple[object, ...]:
    """Return the columns that nobody encrypts, in the order of ``Task``."""
    times = (task.created, task.updated, task.expires, task.lease)
    return (task.ident, task.owner, task.tool, task.status, *times, task.poll_ms, task.version)


def _bound(ident: str, column: str) -> bytes:
    """What a column's bytes are bound to: those of one task are not another's."""
    return f"{TABLE} {column} {ident}".encode()
