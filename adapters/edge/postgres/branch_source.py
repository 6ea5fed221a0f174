"""The source of branches: a connection to it, its lock, the branches it has, and what was left unfinished.

Makes and drops no branch.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, LiteralString

from .branch_marker import Place, found
from .refused import DatabaseRefused, by_server, one_line
from .standing import connected, sessions, standing

if TYPE_CHECKING:
    from psycopg import Connection, Error
    from psycopg.sql import Composed

    Session = Connection[tuple[Any, ...]]

LOCK: Final = (0x6E6F6E73, 0x62726368)  # of a source: one at a time makes or drops its branches
_LOCK_SECONDS: Final = 60.0
_AGAIN_SECONDS: Final = 0.2
_UNFINISHED: Final = re.compile(r"nonsuch_new_(\d+)_([0-9a-f]{16})_([0-9a-f]{16})")
_RESERVED: Final = frozenset({"template0", "template1"})
_DATABASES: Final = """
select d.oid::bigint, d.datname, c.description,
  (select s.datname from pg_database s where s.oid = %s),
  case when has_database_privilege(d.oid, 'connect') then pg_database_size(d.oid) end
from pg_database d join pg_shdescription c on c.objoid = d.oid and c.classoid = 'pg_database'::regclass
order by d.datname
"""
_NAMED: Final = "select datname from pg_database where oid = %s"
_TRY_LOCK: Final = "select pg_try_advisory_lock(%s, %s)"
OID_OF: Final = "select oid::bigint from pg_database where datname = %s"


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch: its name as it was typed, its database, the name of its source now, when it was made.

    ``without`` are roles whose default privileges it lacks; known of one that was just made.
    """

    name: str
    database: str
    oid: int
    source: str
    created: str
    size: int | None
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A connection to the source of branches, and what is known of it."""

    session: Session
    place: Place
    dsn: str
    key: bytes


@contextmanager
def source_of(dsn: str, key: bytes) -> Generator[Source]:
    """Yield a connection to what ``dsn`` names, or to the source of the branch that it names.

    Raises: DatabaseRefused.
    """
    with connected(dsn) as session:
        here = standing(session)
        marker = here.branch(key)
        if marker is None:
            yield Source(session, here.place, dsn, key)
            return
        row = session.execute(_NAMED, (marker.source_oid,)).fetchone()
    if row is None:
        cause = f"the source of the branch `{one_line(marker.name)}` is gone"
        raise DatabaseRefused("X_DB_BRANCH_UNKNOWN", cause, "name the database to work on: `--database`")
    with connected(dsn, row[0]) as session:
        yield Source(session, standing(session).place, dsn, key)


@contextmanager
def alone(dsn: str, key: bytes) -> Generator[Source]:
    """Hold the lock of a source. While waiting there is no connection to it, which would hinder who holds it.

    Raises: DatabaseRefused.
    """
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        with source_of(dsn, key) as source:
            (held,) = source.session.execute(_TRY_LOCK, LOCK).fetchone() or (False,)
            if held:
                _usable(source.place)
                _reclaim(source)
                yield source
                return
        if time.monotonic() > deadline:
            cause = f"another process makes or drops branches of `{one_line(source.place.database)}`"
            raise DatabaseRefused("X_DB_BRANCH_BUSY", cause)
        time.sleep(_AGAIN_SECONDS)  # a command line, in no event loop; waiting in the server needs a session


def _usable(place: Place) -> None:
    if place.database in _RESERVED:
        cause = f"`{place.database}` belongs to the server: it is no source of branches"
        raise DatabaseRefused("X_DB_BRANCH_NAME", cause, "name the database of the app: `--database`")


def branches_of(source: Source) -> Iterator[Branch]:
    """Yield the databases whose own marker says that they are branches of this source."""
    rows = source.session.execute(_DATABASES, (source.place.oid,)).fetchall()
    for oid, database, comment, now, size in rows:
        marker = found(comment, Place(source.place.system, oid, database), source.key)
        if marker is not None and marker.source_oid == source.place.oid:
            yield Branch(marker.name, database, oid, now, marker.created, size)


# What is under way, and what is left of it.


def unfinished_name(source: Source) -> str:
    """Return a name for what is no branch yet, or no more: who has the key knows it again."""
    nonce = secrets.token_hex(8)
    return f"nonsuch_new_{source.place.oid}_{nonce}_{_proof(source, nonce)}"


def _proof(source: Source, nonce: str) -> str:
    bound = f"nonsuch unfinished v1 {source.place.system} {source.place.oid} {nonce}"
    return hmac.digest(source.key, bound.encode(), "sha256").hex()[:16]


def _reclaim(source: Source) -> None:
    """Drop what was left unfinished. Whoever holds the lock of a source knows that nobody works on it."""
    for (database,) in source.session.execute("select datname from pg_database order by 1").fetchall():
        match = _UNFINISHED.fullmatch(database)
        if match is None or match[1] != str(source.place.oid):
            continue
        if hmac.compare_digest(match[3], _proof(source, match[2])):
            discard(source, database)


def discard(source: Source, fresh: str) -> None:
    """Drop an unfinished database; one that is still used, or was never made, waits for the next command."""
    import psycopg

    with suppress(psycopg.Error):
        source.session.execute(sql_of("drop database if exists {}", fresh))


# Statements.


def sql_of(text: LiteralString, *names: str) -> Composed:
    """Return a statement with names quoted into it."""
    from psycopg import sql

    return sql.SQL(text).format(*(sql.Identifier(each) for each in names))


def execute(source: Source, statement: Composed, doing: str, database: str) -> None:
    """Run a statement about a database. Raises: DatabaseRefused, which says what it was for."""
    import psycopg

    try:
        source.session.execute(statement)
    except psycopg.Error as error:
        raise told(source, error, doing, database) from None


def told(source: Source, error: Error, doing: str, database: str) -> DatabaseRefused:
    """Say why; of a database that is in use also by whom."""
    if error.sqlstate != "55006":
        return by_server(error, doing)
    who = sessions(source.session, database)
    return DatabaseRefused("X_DB_IN_USE", f"{doing}: `{one_line(database)}` is in use by {who}")
