"""Grants from a table: one row is one grant. Read at start and at each reload; judges nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from ....kernel.declare import Grant, grant
from ..extras import require

if TYPE_CHECKING:
    from psycopg import Connection

TABLE: Final = "nonsuch_grants"
SQL_GRANTS_TABLE: Final = f"""
create table if not exists {TABLE} (
  role text not null check (role <> ''),
  permission text not null check (permission <> ''),
  primary key (role, permission)
)
"""


def postgres_grants(
    dsn: str, table: str = TABLE, *, timeout_seconds: int = 5
) -> Callable[[], Iterable[Grant]]:
    """Return a source for ``define_app_mcp(grant_sources=[...])`` that reads ``role`` and ``permission``.

    ``table`` may be qualified by its schema. Removing a row takes the grant away at the next reload.
    Raises: ExtraMissing, when psycopg is not installed.
    """
    require("psycopg", "nonsuch[postgres]")

    def read() -> list[Grant]:
        import psycopg

        with psycopg.connect(dsn, connect_timeout=timeout_seconds) as connection:
            return _rows(connection, table)

    return read


def _rows(connection: Connection, table: str) -> list[Grant]:
    from psycopg import sql

    query = sql.SQL("select role, permission from {} order by role, permission")
    name = sql.Identifier(*table.split("."))
    rows = connection.execute(query.format(name)).fetchall()
    return [grant(str(role), str(permission)) for role, permission in rows]
