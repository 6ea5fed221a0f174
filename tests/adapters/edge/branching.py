"""A source of branches on a real server, and what that server says of databases."""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.postgres import branches
from nonsuch.adapters.edge.postgres.branch_load import Contents
from nonsuch.adapters.edge.postgres.branch_source import Branch
from nonsuch.adapters.edge.postgres.migrate import Migrated, migrate
from nonsuch.adapters.edge.postgres.migration_files import Migration
from nonsuch.adapters.edge.postgres.sql_file import SqlFile

KEY = b"the key of these tests, 32 bytes and more"
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Shop:
    """A database `name` of a role of the same name, which is no superuser, on a server of superusers."""

    server: str
    name: str

    def at(self, database: str | None = None, **more: str) -> str:
        """Return the address of a database of the server; of the shop, if none is named."""
        return make_conninfo(self.server, dbname=self.name if database is None else database, **more)

    def ask(self, text: LiteralString, *given: object, database: str | None = None) -> list[Row]:
        """Run a statement as superuser, each in its own transaction; return its rows."""
        with psycopg.connect(self.at(database, client_encoding="UTF8"), autocommit=True) as connection:
            cursor = connection.execute(text, given or None)
            return cursor.fetchall() if cursor.description else []

    def do(self, text: LiteralString, *names: str, database: str | None = None) -> None:
        """Run a statement with names quoted into it."""
        with psycopg.connect(self.at(database), autocommit=True) as connection:
            connection.execute(sql.SQL(text).format(*(sql.Identifier(each) for each in names)))

    def branch(self, name: str, contents: Contents | None = None) -> Branch:
        """Make a branch."""
        return branches.create(self.at(), KEY, name, contents)

    def ls(self, key: bytes = KEY) -> list[str]:
        """The names that are shown."""
        return [each.name for each in branches.ls(self.at(), key)]

    def drop(self, name: str) -> Branch:
        """Drop a branch."""
        return branches.drop(self.at(), KEY, name)

    def migrate(self, database: str, *texts: str, dry_run: bool = False, user: str = "postgres") -> Migrated:
        """Apply texts as the files 1.sql, 2.sql, ..."""
        return migrate(self.at(database, user=user), KEY, files(*texts), dry_run=dry_run)

    def databases(self) -> set[str]:
        """Every database of the server."""
        return {name for (name,) in self.ask("select datname from pg_database", database="postgres")}

    def unfinished(self) -> set[str]:
        """What commands leave under way."""
        return {each for each in self.databases() if each.startswith("nonsuch_new_")}

    def comment(self, database: str) -> str:
        """The comment of a database."""
        asked = "select shobj_description(oid, 'pg_database') from pg_database where datname = %s"
        return str(self.ask(asked, database, database="postgres")[0][0])

    def write(self, database: str, comment: str) -> None:
        """Write the comment of a database, as its owner may."""
        with psycopg.connect(self.at("postgres"), autocommit=True) as connection:
            told = sql.SQL("comment on database {} is {}").format(
                sql.Identifier(database), sql.Literal(comment)
            )
            connection.execute(told)

    def shape(self, database: str) -> dict[str, Any]:
        """Owner, grants, limit, settings and locale of a database, as the server has them."""
        (row,) = self.ask(SHAPE, database, database="postgres")
        held: dict[str, Any] = json.loads(row[0])
        return held


SHAPE = """
select jsonb_build_object(
  'owner', datdba::regrole, 'limit', datconnlimit, 'open', datallowconn, 'template', datistemplate,
  'encoding', encoding, 'provider', datlocprovider, 'collate', datcollate, 'ctype', datctype,
  'locale', datlocale, 'rules', daticurules,
  'grants', (select coalesce(jsonb_agg(jsonb_build_array(grantee::regrole, privilege_type, is_grantable)
    order by grantee, privilege_type), '[]') from aclexplode(coalesce(datacl, acldefault('d', datdba)))),
  'settings', (select coalesce(jsonb_agg(jsonb_build_array(setrole::regrole, setconfig)
    order by setrole), '[]')
    from pg_db_role_setting where setdatabase = d.oid))::text
from pg_database d where datname = %s
"""


def files(*texts: str) -> tuple[Migration, ...]:
    """Texts as migrations 1.sql, 2.sql, ..."""
    return tuple(Migration(number, SqlFile(f"{number}.sql", text)) for number, text in enumerate(texts, 1))


@contextmanager
def shop_on(server: str, name: str | None = None) -> Generator[Shop]:
    """Open a shop with two tables and rows; close it with all that was made of it."""
    shop = Shop(server, name or f"shop_{secrets.token_hex(4)}")
    with psycopg.connect(server, autocommit=True) as connection:
        ours = sql.Identifier(shop.name)
        before = _databases(connection)
        connection.execute(sql.SQL("create role {} login").format(ours))
        connection.execute(sql.SQL("create database {} owner {}").format(ours, ours))
        with psycopg.connect(shop.at(user=shop.name)) as inside:
            inside.execute("create table orders (id int primary key, card text)")
            inside.execute("insert into orders values (1, 'a secret')")
            inside.execute("create table countries (code text)")
            inside.execute("insert into countries values ('de'), ('fr')")
        try:
            yield shop
        finally:
            for each in _databases(connection) - before:
                connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(each)))
            connection.execute(sql.SQL("drop role {}").format(ours))


def _databases(connection: psycopg.Connection[Row]) -> set[str]:
    return {name for (name,) in connection.execute("select datname from pg_database").fetchall()}


@contextmanager
def served() -> Generator[str]:
    """A server of its own."""
    with embedded_postgres() as dsn:
        yield dsn
