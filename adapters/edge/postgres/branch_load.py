"""Fills a branch before anybody else can enter it: a schema without rows, the rows asked for, seed files.

Whatever it was filled with, a branch reaches no other server by the source's passwords.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from .programs import copy_schema, environment, programs_for
from .refused import DatabaseRefused, by_server, one_line
from .sql_file import SqlFile, run_file
from .standing import connected

if TYPE_CHECKING:
    from psycopg import Connection

# Which migrations a schema has seen is a part of the schema: without these rows they would all run again.
_HISTORIES: Final = ("nonsuch_migrations", "alembic_version", "django_migrations")
_KEPT: Final = """
select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relname = any(%s) and c.relkind in ('r', 'p')
order by 1, 2
"""
_TABLE: Final = """
select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = to_regclass(%s) and c.relkind in ('r', 'p')
"""
_COLUMNS: Final = """
select attname from pg_attribute
where attrelid = %s::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum
"""
# Default privileges of roles that we may not speak for, and whether they take from everybody what every
# database gives.
_OTHERS: Final = """
select oid::bigint, pg_get_userbyid(defaclrole), defaclnamespace = 0 and defaclobjtype in ('f', 'T')
  and not exists (select from aclexplode(defaclacl) where grantee = 0)
from pg_default_acl
where not pg_has_role(current_user, defaclrole, 'usage') order by 2, 1
"""
_MAPPINGS: Final = "select srvname, usename, umuser = 0 from pg_user_mappings order by 1, 2"


@dataclass(frozen=True, slots=True)
class Contents:
    """What a branch is filled with: everything, or the schema, the rows of some tables and seed files."""

    full: bool = False
    tables: Sequence[str] = ()
    seeds: Sequence[SqlFile] = field(default_factory=tuple[SqlFile, ...])


def fill(dsn: str, source: str, target: str, contents: Contents) -> tuple[str, ...]:
    """Fill a database that only its owner can enter; return whose default privileges are left out.

    Those are of roles that ``dsn`` may not speak for. Raises: DatabaseRefused.
    """
    others = () if contents.full else _load(dsn, source, target, contents.tables)
    with connected(dsn, target) as connection:
        _forget_passwords(connection)
    if contents.seeds:
        with connected(dsn, target) as connection:
            connection.execute("reset search_path")
            for file in contents.seeds:
                with connection.transaction():
                    run_file(connection, file)
    return others


def _load(dsn: str, source: str, target: str, tables: Sequence[str]) -> tuple[str, ...]:
    """Copy schema and rows as one snapshot has them; return whose default privileges are left out."""
    with connected(dsn, source) as reading, connected(dsn, target) as writing:
        reading.execute("begin isolation level repeatable read read only")
        (snapshot,) = reading.execute("select pg_export_snapshot()").fetchone() or ("",)
        programs = programs_for(reading.info.server_version // 10_000)
        others = _others(reading)
        copy_schema(programs, environment(dsn, source), snapshot, environment(dsn, target), others)
        asked = [_found(reading, each) for each in tables]
        for schema, table in dict.fromkeys([*_histories(reading), *asked]):
            _copy_rows(reading, writing, schema, table)
    return tuple(dict.fromkeys(others.values()))


def _others(reading: Connection[tuple[Any, ...]]) -> dict[int, str]:
    """Return the default privileges that are left out, and whose they are.

    INVARIANT: what comes in a branch is given to nobody whom it would not be given to in the source. Without
    what they take away it would be, so then there is no branch.
    """
    found = reading.execute(_OTHERS).fetchall()
    for role in (role for _, role, takes in found if takes):
        cause = f"`{one_line(role)}` takes from everybody what it will make, and only it can say that"
        fix = "make the branch as a superuser or as that role, or copy everything: `--full`"
        raise DatabaseRefused("X_DB_REFUSED", cause, fix)
    return {oid: role for oid, role, _ in found}


def _histories(reading: Connection[tuple[Any, ...]]) -> list[tuple[str, str]]:
    return [(schema, table) for schema, table in reading.execute(_KEPT, (list(_HISTORIES),)).fetchall()]


def _found(reading: Connection[tuple[Any, ...]], name: str) -> tuple[str, str]:
    import psycopg

    try:
        row = reading.execute(_TABLE, (name if "." in name else f"public.{name}",)).fetchone()
    except psycopg.Error as error:
        raise by_server(error, f"`{one_line(name)}` is no name of a table") from None
    if row is None:
        cause = f"the source has no table `{one_line(name)}`"
        raise DatabaseRefused(
            "X_CLI_USAGE", cause, "name it as SQL does, with its schema: `public.countries`"
        )
    return row[0], row[1]


def _copy_rows(
    reading: Connection[tuple[Any, ...]], writing: Connection[tuple[Any, ...]], schema: str, table: str
) -> None:
    import psycopg
    from psycopg import sql

    name = sql.Identifier(schema, table)
    held = reading.execute(_COLUMNS, (name.as_string(reading),)).fetchall()
    columns = sql.SQL(", ").join(sql.Identifier(each) for (each,) in held)
    out = sql.SQL("copy (select {} from {}) to stdout").format(columns, name)
    into = sql.SQL("copy {} ({}) from stdin").format(name, columns)
    try:
        with reading.cursor().copy(out) as rows, writing.cursor().copy(into) as copy:
            for row in rows:
                copy.write(row)
    except psycopg.Error as error:
        raise by_server(error, f"the rows of `{schema}.{table}` could not be copied") from None


def _forget_passwords(connection: Connection[tuple[Any, ...]]) -> None:
    import psycopg
    from psycopg import sql

    for server, user, everybody in connection.execute(_MAPPINGS).fetchall():
        whose: sql.Composable = sql.SQL("public") if everybody else sql.Identifier(user)
        try:
            connection.execute(
                sql.SQL("drop user mapping for {} server {}").format(whose, sql.Identifier(server))
            )
        except psycopg.Error as error:
            raise by_server(error, f"the password for the server `{server}` cannot be taken out") from None
