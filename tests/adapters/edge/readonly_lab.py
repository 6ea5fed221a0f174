"""A database with everything that a query must not reach, and `db.query` over it as several logins."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo

from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.postgres.readonly import Answer, Asked, ReadOnly
from nonsuch.adapters.edge.postgres.readonly_live import LiveCheck
from nonsuch.adapters.edge.sql_guard import Guard, guard
from nonsuch.kernel.sql_facts import SqlFacts

T = TypeVar("T")
VECTORS: Final = Path(__file__).resolve().parents[2] / "vectors" / "sql"
GUARD: Final = guard()
DATABASE: Final = "lab"


@dataclass(frozen=True, slots=True)
class Lab:
    """The address of the database as its superuser, and of the same one as others."""

    address: str

    def of(self, user: str) -> str:
        """The address as somebody else."""
        return make_conninfo(self.address, user=user)

    def admin(self) -> psycopg.Connection[Any]:
        """A connection of the superuser's."""
        return psycopg.connect(self.address, autocommit=True)

    def ask(self, text: str, user: str = "agent_login", **options: Any) -> Answer:
        """The answer to one query over every layer. Raises: DatabaseRefused."""
        return ran(self.asked(text, user, **options))

    async def asked(
        self,
        text: str,
        user: str = "agent_login",
        *,
        limit: int | None = None,
        explain: bool = False,
        facts: SqlFacts | None = None,
        live: Guard | None = None,
        **options: Any,
    ) -> Answer:
        """The same; with ``facts`` nobody reads the text: the guard is stubbed out."""
        read = GUARD.judge(text).facts if facts is None else facts
        check = None if live is None else LiveCheck(live)
        database = ReadOnly(self.of(user), check=check, **options)
        try:
            return await database.query(Asked(text, read, facts is None), limit, explain=explain)
        finally:
            await database.close()


def ran(work: Coroutine[Any, Any, T]) -> T:
    """The outcome of a coroutine."""
    return asyncio.run(work)


@contextmanager
def laboratory() -> Generator[Lab]:
    """A server with the database of the corpus."""
    with embedded_postgres() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}".encode())
        lab = Lab(make_conninfo(address, dbname=DATABASE))
        with lab.admin() as connection:
            connection.execute((VECTORS / "schema.sql").read_bytes())
        yield lab
