"""Confirmations in PostgreSQL, for an app that runs as several processes, or that may crash.

One statement is one change, and it is on disk before anybody is told; where the server's setting would
confirm sooner, the connections of this store ask for more. A row holds who asked, for which organisation and
which tool, and who decided; the arguments of the call are in it sealed, and nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, LiteralString

from ....kernel.confirmation import Confirmation
from ..confirmations import NOBODYS, Listing
from ..extras import require

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.sql import Composed
    from psycopg_pool import AsyncConnectionPool

TABLE: Final = "nonsuch_confirmations"
# The same as migrations/0001_mcp_confirmations.sql.
SQL_MCP_CONFIRMATIONS_TABLE: Final = f"""
create table if not exists {TABLE} (
  id text primary key,
  server text not null,
  owner text not null,
  org text,
  actor text not null,
  actor_kind text not null check (actor_kind in ('agent', 'human')),
  person text,
  tool text not null,
  fingerprint text not null,
  sealed bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  updated_at timestamptz not null,
  status text not null check (status in
    ('pending', 'approved', 'rejected', 'running', 'ran', 'refused', 'expired', 'interrupted')),
  version bigint not null,
  decided_by text,
  decided_at timestamptz
);
create unique index if not exists {TABLE}_open on {TABLE} (owner, tool, fingerprint)
  where status in ('pending', 'approved', 'rejected', 'running');
create index if not exists {TABLE}_listed on {TABLE} (server, org, created_at);
create index if not exists {TABLE}_over on {TABLE} (expires_at)
"""

_COLUMNS: Final[LiteralString] = """
id, server, owner, org, actor, actor_kind, person, tool, fingerprint, {sealed}, created_at, expires_at,
updated_at, status, version, decided_by, decided_at
"""
_FIND: Final[LiteralString] = """
select {columns} from {table} where owner = %s and tool = %s and fingerprint = %s
and status in ('pending', 'approved', 'rejected', 'running')
"""
# Whoever comes second does nothing, and then finds the row of the first.
_OPEN: Final[LiteralString] = """
insert into {table} (id, server, owner, org, actor, actor_kind, person, tool, fingerprint, sealed, created_at,
  expires_at, updated_at, status, version)
select %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 'pending', 0
where (select count(*) from {table} where owner = %s and status = 'pending' and expires_at > %s) < %s
on conflict (owner, tool, fingerprint)
  where status in ('pending', 'approved', 'rejected', 'running') do nothing
"""
_WAITING: Final[LiteralString] = """
select count(*) from {table} where owner = %s and status = 'pending' and expires_at > %s
"""
# A row of nobody's stands in for one that is not there, so that reading it takes as long.
_READ: Final[LiteralString] = """
select {columns} from (
  select 0 as place, {table}.* from {table} where id = %s
  union all
  select 1, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::timestamptz, %s::timestamptz, %s::timestamptz, %s,
    %s, %s, %s::timestamptz
) as found order by place limit 1
"""
_SWAP: Final[LiteralString] = """
update {table} set status = %s, updated_at = %s, version = %s, decided_by = %s, decided_at = %s
where id = %s and version = %s
"""
_LISTED: Final[LiteralString] = """
select {columns} from {table}
where server = any(%s) and (%s or org is not distinct from %s)
and (status = 'pending' and expires_at > %s) = %s
order by created_at desc, id desc limit %s
"""
_PURGE: Final[LiteralString] = """
delete from {table} where expires_at < %s and updated_at + (expires_at - created_at) < %s
"""
_NOBODYS: Final = tuple(getattr(NOBODYS, each.name) for each in fields(NOBODYS))
_DURABLE: Final = """
select set_config('synchronous_commit', 'on', false)
where current_setting('synchronous_commit') in ('off', 'local')
"""


class PostgresConfirmationStore:
    """Keeps confirmations in a table (``SQL_MCP_CONFIRMATIONS_TABLE``) that all processes of an app share."""

    def __init__(self, dsn: str, table: str, connections: int) -> None:
        """Raises: ExtraMissing, when psycopg is not installed."""
        require("psycopg_pool", "nonsuch[postgres]", "psycopg-pool")
        self._dsn, self._table, self._connections = dsn, table, connections
        self._pool: AsyncConnectionPool[AsyncConnection[Any]] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def find(self, owner: str, tool: str, fingerprint: str) -> Confirmation | None:
        """Return the open row of a call."""
        rows = await self._fetched(_FIND, (owner, tool, fingerprint))
        return Confirmation(*rows[0]) if rows else None

    async def open(self, row: Confirmation, limit: int) -> Confirmation | None:
        """Keep a new row, or return the open one of the same call."""
        who = (row.org, row.actor, row.actor_kind, row.person)
        rest = (row.tool, row.fingerprint, row.sealed, row.created, row.expires, row.updated)
        given = (row.ident, row.server, row.owner, *who, *rest, row.owner, row.created, limit)
        while True:
            if await self._executed(_OPEN, given) == 1:
                return row
            held = await self.find(row.owner, row.tool, row.fingerprint)
            if held is not None:
                return held
            ((waiting,),) = await self._fetched(_WAITING, (row.owner, row.created))
            if waiting >= limit:  # else the row that was in the way ended meanwhile
                return None

    async def read(self, ident: str, *, sealed: bool = False) -> Confirmation | None:
        """Return a row by its id."""
        ((ident_found, *rest),) = await self._fetched(_READ, (ident, *_NOBODYS), sealed=sealed)
        row = Confirmation(ident_found, *rest)
        return row if row.ident == ident else None

    async def swap(self, row: Confirmation) -> bool:
        """Put a changed row in the place of its last version."""
        changed = (row.status, row.updated, row.version, row.decided_by, row.decided_at)
        return await self._executed(_SWAP, (*changed, row.ident, row.version - 1)) == 1

    async def listed(self, listing: Listing) -> list[Confirmation]:
        """Return some rows, without their arguments."""
        within = (list(listing.servers), listing.every_org, listing.org)
        rows = await self._fetched(_LISTED, (*within, listing.now, listing.open, listing.limit))
        return [Confirmation(*row) for row in rows]

    async def purge(self, before: datetime) -> int:
        """Delete what was over before then."""
        return await self._executed(_PURGE, (before, before))

    async def close(self) -> None:
        """Close the connections; a later step opens others."""
        pool, self._pool = self._pool, None
        if pool is not None and self._loop is asyncio.get_running_loop():
            await pool.close()

    # statements

    def _sql(self, statement: LiteralString, *, sealed: bool) -> Composed:
        from psycopg import sql

        columns = sql.SQL(_COLUMNS).format(sealed=sql.SQL("sealed" if sealed else "''::bytea"))
        return sql.SQL(statement).format(table=sql.Identifier(*self._table.split(".")), columns=columns)

    async def _fetched(
        self, statement: LiteralString, given: Sequence[object], *, sealed: bool = False
    ) -> list[tuple[Any, ...]]:
        async with (await self._open()).connection() as connection:
            return await (await connection.execute(self._sql(statement, sealed=sealed), given)).fetchall()

    async def _executed(self, statement: LiteralString, given: Sequence[object]) -> int:
        async with (await self._open()).connection() as connection:
            return (await connection.execute(self._sql(statement, sealed=True), given)).rowcount

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


def postgres_confirmation_store(
    dsn: str, table: str = TABLE, *, connections: int = 4
) -> PostgresConfirmationStore:
    """Return a store for ``mcp_confirmations(store=...)`` that all processes of an app share.

    The table is made by ``SQL_MCP_CONFIRMATIONS_TABLE``; ``table`` may be qualified by its schema. The clocks
    of the processes must agree within a few seconds. Nothing is deleted but by ``purge(before)``, which an
    app calls now and then. Raises: ExtraMissing, when psycopg is not installed.
    """
    return PostgresConfirmationStore(dsn, table, connections)


async def _durable(connection: AsyncConnection[Any]) -> None:
    await connection.execute(_DURABLE)
