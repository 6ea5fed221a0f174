"""The tables of Postly in PostgreSQL: made, seeded, and read into typed rows. Knows no tool and no caller."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, LiteralString, TypeVar

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, class_row
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel

from ...edge.postgres.confirmations import SQL_MCP_CONFIRMATIONS_TABLE

Row = TypeVar("Row", bound=BaseModel)
Parameters = Mapping[str, str | int | datetime | None]

_HERE: Final = Path(__file__).parent
_TABLES: Final = (_HERE / "schema.sql", _HERE / "seed.sql")
_BOOT_LOCK: Final = 0x706F73746C79  # `postly`: two starting processes make the tables one after the other


@dataclass(frozen=True, slots=True)
class Db:
    """Typed rows over a pool; a statement is its own transaction unless it runs in `transaction`."""

    pool: AsyncConnectionPool[AsyncConnection[TupleRow]]

    async def all(self, model: type[Row], statement: LiteralString, parameters: Parameters) -> list[Row]:
        """Return every row as `model`."""
        async with self.pool.connection() as connection:
            return await fetch(connection, model, statement, parameters)

    async def one(self, model: type[Row], statement: LiteralString, parameters: Parameters) -> Row | None:
        """Return the first row as `model`, or `None` when there is no row."""
        rows = await self.all(model, statement, parameters)
        return rows[0] if rows else None

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[AsyncConnection[TupleRow]]:
        """Yield a connection whose statements take effect together, or not at all."""
        async with self.pool.connection() as connection, connection.transaction():
            yield connection


async def fetch(
    connection: AsyncConnection[TupleRow], model: type[Row], statement: LiteralString, parameters: Parameters
) -> list[Row]:
    """Run one statement on this connection and return its rows as `model`."""
    async with connection.cursor(row_factory=class_row(model)) as cursor:
        await cursor.execute(statement, parameters)
        return await cursor.fetchall()


@asynccontextmanager
async def open_db(dsn: str) -> AsyncGenerator[Db]:
    """Open a pool on prepared tables."""
    pool: AsyncConnectionPool[AsyncConnection[TupleRow]] = AsyncConnectionPool(
        dsn, min_size=1, max_size=8, open=False, kwargs={"autocommit": True}
    )
    async with pool:
        yield Db(pool)


async def prepare(dsn: str) -> None:
    """Create the tables and their rows where they are missing; what is there already stays as it is."""
    async with await AsyncConnection.connect(dsn) as connection:
        await connection.execute("select pg_advisory_xact_lock(%s)", (_BOOT_LOCK,))
        for file in _TABLES:
            await connection.execute(file.read_bytes())
        await connection.execute(SQL_MCP_CONFIRMATIONS_TABLE.encode())


async def back_to_draft(db: Db, org: str, post: str) -> None:
    """Make a post a draft again, so that the next tour of the demo has one to publish."""
    async with db.transaction() as connection:
        await connection.execute(
            "update postly.posts set published_at = null where org = %(org)s and id = %(id)s",
            {"org": org, "id": post},
        )
