"""Stores of tasks for tests: one in memory, one in a PostgreSQL that tests share; and a task to put there."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Final

import psycopg

from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.postgres.tasks import SQL_TASKS_TABLE, TABLE, Cipher, PostgresTaskStore
from nonsuch.adapters.edge.task_store import MemoryTaskStore, TaskStore
from nonsuch.kernel.tasks import Task, TaskLimits, begun

NOON: Final = datetime(2026, 7, 28, 12, tzinfo=UTC)
LIMITS: Final = TaskLimits()
KINDS: Final = ("memory", "postgres")
_numbers: Final = count()


def ident(number: int) -> str:
    return f"an-id-of-a-task-{number:04}"


def task(number: int = 0, owner: str = "ann", at: datetime = NOON, limits: TaskLimits = LIMITS) -> Task:
    return begun(ident(number), owner, "slow", at, limits)


@contextmanager
def server() -> Generator[str]:
    """Yield the address of a PostgreSQL."""
    with embedded_postgres() as address:
        yield address


def fresh_table(address: str) -> str:
    """Return the name of a new table."""
    table = f"{TABLE}_{next(_numbers)}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SQL_TASKS_TABLE.replace(TABLE, table).encode())
    return table


def store_of(kind: str, address: str, cipher: Cipher | None = None) -> TaskStore:
    """Return an empty store."""
    if kind == "memory":
        return MemoryTaskStore()
    return PostgresTaskStore(address, fresh_table(address), cipher=cipher, connections=8)
