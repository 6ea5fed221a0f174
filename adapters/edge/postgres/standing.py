"""Where a connection stands: its database by the server's word, who else is there, if it is a branch.

Never by an address: a name in a connection string says where somebody meant to go.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .branch_marker import Marker, Place, claims, found
from .refused import DatabaseRefused, by_server, one_line, unreachable

if TYPE_CHECKING:
    from psycopg import Connection

NOT_A_BRANCH: Final = "X_MCP_NOT_BRANCH_DB"
_CONNECT_SECONDS: Final = 10
_SHOWN: Final = 5
# What the database or the role may have set must not hinder, or answer for the catalogue.
_PLAIN: Final = """
select pg_catalog.set_config(each.name, each.value, false) from (values
  ('search_path', 'pg_catalog'), ('statement_timeout', '0'), ('lock_timeout', '10s'),
  ('idle_in_transaction_session_timeout', '0'), ('default_transaction_read_only', 'off'),
  ('standard_conforming_strings', 'on')) as each (name, value)
"""
_STANDING: Final = """
select (select system_identifier::text from pg_control_system()), d.oid::bigint, d.datname, c.description,
  (select rolsuper from pg_roles where rolname = session_user)
from pg_database d left join pg_shdescription c on c.objoid = d.oid and c.classoid = 'pg_database'::regclass
where d.datname = current_database()
"""
_SESSIONS: Final = """
select pid::text, usename, application_name, coalesce(host(client_addr), 'here') from pg_stat_activity
where datname = %(database)s and pid <> pg_backend_pid()
union all
select 'prepared transaction', owner, gid, 'here' from pg_prepared_xacts where database = %(database)s
order by 1
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """A database and its comment, and whether the connection is a superuser's, whom no database confines."""

    place: Place
    comment: str | None
    superuser: bool

    def branch(self, key: bytes) -> Marker | None:
        """Return what makes it a branch, if it is one under this key."""
        return found(self.comment, self.place, key)


@contextmanager
def connected(
    dsn: str, database: str | None = None, *, name: str = "nonsuch db"
) -> Generator[Connection[tuple[Any, ...]]]:
    """Yield a connection in autocommit that no setting hinders. Raises: DatabaseRefused, for its errors."""
    import psycopg

    connection = opened(dsn, database, name=name)
    try:
        connection.execute(_PLAIN)
        yield connection
    except psycopg.Error as error:
        raise by_server(error, "the database cannot be asked") from None
    finally:
        connection.close()


def opened(dsn: str, database: str | None, *, name: str) -> Connection[tuple[Any, ...]]:
    """Return a connection in autocommit, with the settings of its database. Raises: DatabaseRefused."""
    import psycopg
    from psycopg.conninfo import make_conninfo

    try:
        more = {} if database is None else {"dbname": database}
        address = make_conninfo(dsn, client_encoding="UTF8", **more)
        return psycopg.connect(
            address, autocommit=True, connect_timeout=_CONNECT_SECONDS, application_name=name
        )
    except psycopg.ProgrammingError:
        raise DatabaseRefused("X_DB_UNREACHABLE", "the address of the database cannot be read") from None
    except psycopg.Error as error:
        raise unreachable(error) from None


def standing(connection: Connection[tuple[Any, ...]]) -> Standing:
    """Return where a connection stands. The search path must hold ``pg_catalog`` alone."""
    row = connection.execute(_STANDING).fetchone()
    if row is None:
        raise DatabaseRefused("X_DB_UNREACHABLE", "the server does not know the database it serves")
    system, oid, database, comment, superuser = row
    return Standing(Place(system, oid, database), comment, superuser)


def branch_or_refuse(stands: Standing, key: bytes) -> Marker:
    """Return what makes a database a branch. Raises: DatabaseRefused, for every other one."""
    marker = stands.branch(key)
    if marker is not None:
        return marker
    why = "is not a branch"
    if claims(stands.comment):
        why = "says that it is a branch, but not under this key, or of another database or name"
    raise DatabaseRefused(NOT_A_BRANCH, f"the database `{one_line(stands.place.database)}` {why}")


def sessions(connection: Connection[tuple[Any, ...]], database: str) -> str:
    """Return in words who else uses a database: process, role, application and address."""
    rows = connection.execute(_SESSIONS, {"database": database}).fetchall()
    told = ["{} ({})".format(row[0], ", ".join(one_line(each) for each in row[1:] if each)) for row in rows]
    more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return f"{', '.join(told[:_SHOWN])}{more}" if told else "sessions that are gone by now"
