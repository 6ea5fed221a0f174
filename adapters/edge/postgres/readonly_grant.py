"""The role that queries run as: what makes it, as SQL, and making it. Safe to run again.

Knows no query. What a server refuses is told and the rest is done, so that a database administrator can be
asked for what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, LiteralString, cast

from ....kernel.sql_families import family_of
from .readonly_role import BESIDES_READING, ROLE
from .refused import one_line

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed

_SET_OPTION: Final = 160_000  # the first server on which a membership says whether the role may be taken on
_ATTRIBUTES: Final = "NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT"
_OURS: Final = "nonsuch\\_%"  # tables of nonsuch itself: tokens, records of calls, tasks

_STATE: Final[LiteralString] = """
SELECT rolcanlogin, rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls OR rolinherit
FROM pg_catalog.pg_roles WHERE rolname = %s
"""
_OWNERS: Final[LiteralString] = """
SELECT DISTINCT pg_catalog.pg_get_userbyid(o) FROM (
  SELECT nspowner FROM pg_catalog.pg_namespace WHERE nspname = %s
  UNION SELECT c.relowner FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = %s
  UNION SELECT datdba FROM pg_catalog.pg_database
  WHERE datname = current_database() AND pg_catalog.pg_has_role(datdba, 'usage')
  UNION SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user) s(o) WHERE o >= 16384 OR o = 10
ORDER BY 1
"""
_TABLES: Final[LiteralString] = """
SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname LIKE %s AND c.relkind IN ('r', 'p', 'v', 'm') ORDER BY 1
"""
_FUNCTIONS: Final[LiteralString] = """
SELECT p.proname, p.oid::regprocedure::text FROM pg_catalog.pg_proc p WHERE p.prokind IN ('f', 'w')
ORDER BY 2
"""


@dataclass(frozen=True, slots=True)
class Wish:
    """The role that is wanted: what it reads, who may take it on, and what is taken from everybody.

    ``login`` makes it a login of its own. ``revoke_execute`` takes the functions of the guard's families
    from everybody but the ``keepers``: for branch databases, whose other users nobody has to think of.
    """

    role: str = ROLE
    schemas: tuple[str, ...] = ("public",)
    members: tuple[str, ...] = ()
    login: bool = False
    revoke_execute: bool = False
    keepers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, and what the server said if it refused it."""

    statement: str
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Granted:
    """What was done, and what the role may do besides reading; ``None`` is nothing."""

    steps: tuple[Step, ...]
    besides: str | None

    @property
    def whole(self) -> bool:
        """Whether the role is what it should be."""
        return self.besides is None and all(each.refused is None for each in self.steps)


def statements(connection: Connection[Any], wish: Wish) -> list[str]:
    """Return what makes the role what it should be, in order; nothing is run."""
    return [each.as_string(connection) for each in _statements(connection, wish)]


def grant_readonly(connection: Connection[Any], wish: Wish) -> Granted:
    """Make the role, or bring it up to date; without the role nothing else is tried.

    ``connection`` autocommits. Raises: psycopg.Error, if it is lost.
    """
    from psycopg import Error

    done: list[Step] = []
    for each in _statements(connection, wish):
        try:
            connection.execute(each)
            done.append(Step(each.as_string(connection)))
        except Error as refusal:
            if connection.closed:
                raise
            said = one_line(refusal.diag.message_primary or type(refusal).__name__)
            done.append(Step(each.as_string(connection), said))
            if len(done) == 1 and done[0].statement.startswith("CREATE ROLE"):
                break
    return Granted(tuple(done), _besides(connection, wish.role))


def _besides(connection: Connection[Any], role: str) -> str | None:
    """Return what the role may do besides reading, in words; asked as that role."""
    from psycopg import Error, Rollback, sql

    found: str | None = None
    with connection.transaction():
        try:
            connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
            row = connection.execute(BESIDES_READING).fetchone()
            found = None if row is None else row[0]
        except Error as refusal:
            found = f"cannot be taken on: {one_line(refusal.diag.message_primary or '')}"
        raise Rollback
    return found


def _statements(connection: Connection[Any], wish: Wish) -> Iterator[Composed]:
    from psycopg import sql

    role = sql.Identifier(wish.role)
    yield from _made(connection, wish, role)
    for schema in wish.schemas:
        yield from _readable(connection, schema, role)
    may = sql.SQL(" WITH INHERIT FALSE, SET TRUE" if connection.info.server_version >= _SET_OPTION else "")
    for member in wish.members:
        yield sql.SQL("GRANT {} TO {}").format(role, sql.Identifier(member)) + may
    if wish.revoke_execute:
        yield from _revoked(connection, wish.keepers)


def _made(connection: Connection[Any], wish: Wish, role: Any) -> Iterator[Composed]:
    from psycopg import sql

    login = sql.SQL("LOGIN" if wish.login else "NOLOGIN")
    state = connection.execute(_STATE, (wish.role,)).fetchone()
    if state is None:
        yield sql.SQL("CREATE ROLE {} {} {}").format(role, login, sql.SQL(_ATTRIBUTES))
    elif state[1] or state[0] != wish.login:
        yield sql.SQL("ALTER ROLE {} {} {}").format(role, login, sql.SQL(_ATTRIBUTES))


def _readable(connection: Connection[Any], schema: str, role: Any) -> Iterator[Composed]:
    from psycopg import sql

    name = sql.Identifier(schema)
    for text in (
        "GRANT USAGE ON SCHEMA {} TO {}",
        "REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON ALL TABLES IN SCHEMA {} FROM {}",
        "GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}",
        "REVOKE ALL ON ALL SEQUENCES IN SCHEMA {} FROM {}",
    ):
        yield sql.SQL(text).format(name, role)
    for (table,) in connection.execute(_TABLES, (schema, _OURS)).fetchall():
        yield sql.SQL("REVOKE ALL ON TABLE {} FROM {}").format(sql.Identifier(schema, table), role)
    for (owner,) in connection.execute(_OWNERS, (schema, schema)).fetchall():
        future = "ALTER DEFAULT PRIVILEGES FOR ROLE {} IN SCHEMA {} GRANT SELECT ON TABLES TO {}"
        yield sql.SQL(future).format(sql.Identifier(owner), name, role)


def _revoked(connection: Connection[Any], keepers: Iterable[str]) -> Iterator[Composed]:
    from psycopg import sql

    named = [sql.Identifier(each) for each in keepers]
    for name, signature in connection.execute(_FUNCTIONS).fetchall():
        if family_of(name) is None:
            continue
        function = sql.SQL(cast("LiteralString", signature))  # quoted by the server that wrote it
        yield sql.SQL("REVOKE EXECUTE ON FUNCTION {} FROM PUBLIC").format(function)
        for keeper in named:
            yield sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(function, keeper)
