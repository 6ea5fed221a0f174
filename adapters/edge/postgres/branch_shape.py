"""What `CREATE DATABASE ... TEMPLATE` leaves behind: owner, grants, connection limit, settings, comment.

Reads them of a source, and says the statements that give them to a clone. A new database is open to every
role of the server: until these have run it must be closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, LiteralString

from .refused import DatabaseRefused

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed, Identifier

_OF: Final = """
select pg_get_userbyid(datdba), datconnlimit, pg_encoding_to_char(encoding), to_jsonb(d),
  (select description from pg_shdescription where objoid = d.oid and classoid = 'pg_database'::regclass)
from pg_database d where oid = %s
"""
_GRANTS: Final = """
select case when grantee = 0 then null else pg_get_userbyid(grantee) end, privilege_type, is_grantable
from pg_database d, aclexplode(coalesce(datacl, acldefault('d', datdba))) where d.oid = %s order by 1, 2
"""
_SETTINGS: Final = """
select case when setrole = 0 then null else pg_get_userbyid(setrole) end, setting
from pg_db_role_setting, unnest(setconfig) with ordinality as each (setting, place)
where setdatabase = %s order by setrole, place
"""
_PRIVILEGES: Final[Mapping[str, LiteralString]] = {
    "CONNECT": "connect",
    "CREATE": "create",
    "TEMPORARY": "temporary",
}
# PostgreSQL keeps the value of these as a list of names, quoted where they need it.
_LISTS: Final = (
    "local_preload_libraries",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "temp_tablespaces",
    "unix_socket_directories",
)
_NAME: Final = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^,"\s]+))\s*(?:,|$)')


@dataclass(frozen=True, slots=True)
class Shape:
    """What belongs to a database and is not in it. A grant to ``None`` is one to everybody."""

    owner: str
    limit: int
    grants: tuple[tuple[str | None, str, bool], ...]
    settings: tuple[tuple[str | None, str, str], ...]
    comment: str | None
    locale: tuple[tuple[LiteralString, str], ...]

    def statements(self, database: Identifier) -> Iterator[Composed]:
        """Yield what makes a fresh database have this shape: its owner, these grants and no other."""
        from psycopg import sql

        owner = sql.Identifier(self.owner)
        yield sql.SQL("alter database {} owner to {}").format(database, owner)
        yield sql.SQL("revoke all on database {} from public, {}").format(database, owner)
        for grantee, privilege, grantable in self.grants:
            yield sql.SQL("grant {} on database {} to {}{}").format(
                sql.SQL(_PRIVILEGES[privilege]),
                database,
                sql.SQL("public") if grantee is None else sql.Identifier(grantee),
                sql.SQL(" with grant option" if grantable else ""),
            )
        yield sql.SQL("alter database {} connection limit {}").format(database, sql.Literal(self.limit))
        for role, name, value in self.settings:
            yield _setting(database, role, name, value)


def shape_of(connection: Connection[tuple[Any, ...]], oid: int) -> Shape:
    """Return the shape of a database. Raises: DatabaseRefused, when it is gone."""
    row = connection.execute(_OF, (oid,)).fetchone()
    if row is None:
        raise DatabaseRefused("X_DB_UNREACHABLE", "the source of the branch is gone")
    grants = connection.execute(_GRANTS, (oid,)).fetchall()
    settings = connection.execute(_SETTINGS, (oid,)).fetchall()
    split = [(role, *setting.split("=", 1)) for role, setting in settings]
    return Shape(
        owner=row[0],
        limit=row[1],
        grants=tuple((role, privilege, grantable) for role, privilege, grantable in grants),
        settings=tuple((role, name, value) for role, name, value in split),
        comment=row[4],
        locale=(("encoding", row[2]), *_locale(row[3])),
    )


def _setting(database: Identifier, role: str | None, name: str, value: str) -> Composed:
    from psycopg import sql

    values = _names(value) if name.lower() in _LISTS else [value]
    whose = sql.SQL("database {}").format(database)
    if role is not None:
        whose = sql.SQL("role {} in database {}").format(sql.Identifier(role), database)
    told = sql.SQL(", ").join(sql.Literal(each) for each in values)
    return sql.SQL("alter {} set {} to {}").format(whose, sql.Identifier(*name.split(".")), told)


def _names(value: str) -> list[str]:
    """Return the names of a list as the server keeps it."""
    found = [quoted.replace('""', '"') or plain for quoted, plain in _NAME.findall(value)]
    return found or [""]


def _locale(held: dict[str, Any]) -> Iterator[tuple[LiteralString, str]]:
    """Yield the options of ``CREATE DATABASE`` that make an empty one sort and fold as this one does."""
    providers = {"c": "libc", "i": "icu", "b": "builtin"}
    provider = providers[held["datlocprovider"]]
    yield "locale_provider", provider
    yield "lc_collate", held["datcollate"]
    yield "lc_ctype", held["datctype"]
    locale = held.get("datlocale") or held.get("daticulocale")  # PostgreSQL 17 and later, 15 and 16
    if locale is not None and provider != "libc":
        yield ("icu_locale" if provider == "icu" else "builtin_locale"), locale
    if held.get("daticurules"):
        yield "icu_rules", held["daticurules"]
