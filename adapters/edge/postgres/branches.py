"""Branch databases: clones that anybody may break, made closed and marked in the transaction that opens them.

A branch appears under its name only when it is whole: it has the grants, settings and connection limit of
its source, and the marker that proves what it is. What a killed process leaves has a name that says so under
our key, no marker, and is removed by the next command.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from .branch_load import Contents, fill
from .branch_marker import Marker, Place, sealed
from .branch_names import database_of
from .branch_shape import Shape, shape_of
from .branch_source import (
    OID_OF,
    Branch,
    Source,
    alone,
    branches_of,
    discard,
    execute,
    source_of,
    sql_of,
    told,
    unfinished_name,
)
from .refused import DatabaseRefused, one_line

if TYPE_CHECKING:
    from psycopg.sql import Composed


def create(dsn: str, key: bytes, name: str, contents: Contents | None = None) -> Branch:
    """Make a branch of the database that ``dsn`` names, or of the source of the branch that it names.

    Raises: DatabaseRefused; FileFailed, of a seed file. Nothing that is left then passes for a branch.
    """
    with alone(dsn, key) as source:
        database = database_of(source.place.database, name)
        _free(source, database)
        fresh = unfinished_name(source)
        try:
            without = _make(source, fresh, contents or Contents())
            made = _finish(source, fresh, name, database)
            return Branch(name, database, made.oid, made.source, made.created, made.size, without)
        except BaseException:
            discard(source, fresh)
            raise


def ls(dsn: str, key: bytes) -> tuple[Branch, ...]:
    """Return the branches of a source that were made under this key. Raises: DatabaseRefused."""
    with source_of(dsn, key) as source:
        return tuple(branches_of(source))


def drop(dsn: str, key: bytes, name: str) -> Branch:
    """Drop a branch that ``ls`` shows, by the name it was given. Raises: DatabaseRefused."""
    with alone(dsn, key) as source:
        branch = chosen(branches_of(source), name)
        fresh = unfinished_name(source)
        _take_away(source, branch, fresh)
        execute(source, sql_of("drop database {}", fresh), f"`{branch.database}` cannot be dropped", fresh)
        return branch


def chosen(branches: Iterable[Branch], name: str) -> Branch:
    """Return the branch of a name. Raises: DatabaseRefused."""
    listed = tuple(branches)
    for each in listed:
        if each.name == name:
            return each
    names = ", ".join(f"`{one_line(each.name)}`" for each in listed) or "none"
    cause = f"`{one_line(name)}` is no branch of this source"
    fix = f"name one that `nonsuch db branch ls` shows: {names}"
    raise DatabaseRefused("X_DB_BRANCH_UNKNOWN", cause, fix)


# Making.


def _free(source: Source, database: str) -> None:
    """Raises: DatabaseRefused, when something has the name already."""
    for each in branches_of(source):
        if each.database == database:
            raise DatabaseRefused("X_DB_BRANCH_EXISTS", f"there is a branch `{one_line(each.name)}` already")
    if source.session.execute(OID_OF, (database,)).fetchone() is not None:
        raise _taken(database)


def _taken(database: str) -> DatabaseRefused:
    cause = f"there is a database `{one_line(database)}` already, and it is no branch of this source"
    return DatabaseRefused("X_DB_BRANCH_EXISTS", cause, "choose another name")


def _make(source: Source, fresh: str, contents: Contents) -> tuple[str, ...]:
    """Create a database under a name of no meaning, closed; let its owner in while it is filled."""
    here = source.place.database
    shape = shape_of(source.session, source.place.oid)
    doing = f"`{one_line(here)}` cannot be {'copied' if contents.full else 'branched'}"
    execute(source, _creation(here, shape, fresh, full=contents.full), doing, here)
    execute(source, sql_of("revoke all on database {} from public", fresh), doing, fresh)
    entered = sql_of("alter database {} connection limit -1 allow_connections true", fresh)
    execute(source, entered, doing, fresh)
    without = fill(source.dsn, here, fresh, contents)
    execute(source, sql_of("alter database {} allow_connections false", fresh), doing, fresh)
    return without


def _creation(source: str, shape: Shape, fresh: str, *, full: bool) -> Composed:
    from psycopg import sql

    given = () if full else shape.locale
    options = [sql.SQL("{} {}").format(sql.SQL(option), sql.Literal(value)) for option, value in given]
    return sql.SQL(
        "create database {} owner {} template {} allow_connections false connection limit 0 {}"
    ).format(
        sql.Identifier(fresh),
        sql.Identifier(shape.owner),
        sql.Identifier(source if full else "template0"),
        sql.SQL(" ").join(options),
    )


def _finish(source: Source, fresh: str, name: str, database: str) -> Branch:
    """Give the clone the shape of its source, its marker and its name, and open it: all or nothing."""
    import psycopg

    try:
        with source.session.transaction():
            return _shaped(source, fresh, name, database)
    except psycopg.errors.DuplicateDatabase:
        raise _taken(database) from None
    except psycopg.Error as error:
        raise told(source, error, f"`{one_line(database)}` cannot be finished", fresh) from None


def _shaped(source: Source, fresh: str, name: str, database: str) -> Branch:
    from psycopg import sql

    session, place = source.session, source.place
    shape = shape_of(session, place.oid)
    for statement in shape.statements(sql.Identifier(fresh)):
        session.execute(statement)
    session.execute(sql_of("alter database {} rename to {}", fresh, database))
    (oid,) = session.execute(OID_OF, (database,)).fetchone() or (0,)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    marker = Marker(name, place.database, place.oid, created, secrets.token_hex(16))
    line = sealed(marker, Place(place.system, oid, database), source.key)
    comment = line if shape.comment is None else f"{line}\n{shape.comment}"
    marks = sql.SQL("comment on database {} is {}").format(sql.Identifier(database), sql.Literal(comment))
    session.execute(marks)
    session.execute(sql_of("alter database {} allow_connections true", database))
    return Branch(name, database, oid, place.database, created, None)


def _take_away(source: Source, branch: Branch, fresh: str) -> None:
    """Rename what is to be dropped, and look that it is the very database that was shown."""
    import psycopg

    session = source.session
    try:
        with session.transaction():
            session.execute(sql_of("alter database {} rename to {}", branch.database, fresh))
            row = session.execute(OID_OF, (fresh,)).fetchone()
            if row != (branch.oid,):
                cause = f"`{one_line(branch.database)}` is another database by now"
                raise DatabaseRefused("X_DB_BRANCH_UNKNOWN", cause)
    except psycopg.Error as error:
        doing = f"`{one_line(branch.database)}` cannot be dropped"
        raise told(source, error, doing, branch.database) from None
