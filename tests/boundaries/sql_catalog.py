"""A real server's catalogue -> adapters/edge/sql_catalog.json: names, volatility, numbers of arguments.

``python -m tests.boundaries.sql_catalog`` starts the embedded PostgreSQL and writes the file, and the
definitions of the system's views to tests/vectors/sql/system_views.jsonl. What may call
something volatile is written as volatile: a definer's function, one in another language, an aggregate of
such. An operator or a type is written only if nothing volatile stands behind it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql

from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.kernel.sql_catalog import FORMAT

FILE: Final = Path(__file__).resolve().parents[2] / "adapters" / "edge" / "sql_catalog.json"
VIEWS: Final = Path(__file__).resolve().parents[1] / "vectors" / "sql" / "system_views.jsonl"
SCHEMAS: Final = ("pg_catalog", "information_schema")

# The extension that an object belongs to, if any.
_OWNED: Final[LiteralString] = """
CREATE TEMP VIEW owned AS SELECT d.classid, d.objid, e.extname
FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid WHERE d.deptype = 'e'
"""
_FUNCTIONS: Final[LiteralString] = """
SELECT coalesce(w.extname, o.pronamespace::regnamespace::text), o.proname,
  CASE WHEN o.provolatile = 'v' OR o.prosecdef OR l.lanname NOT IN ('internal', 'c', 'sql') OR EXISTS (
    SELECT FROM pg_aggregate a JOIN pg_proc p ON p.oid IN (
      a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn,
      a.aggminvtransfn, a.aggmfinalfn) WHERE a.aggfnoid = o.oid AND p.provolatile = 'v')
  OR EXISTS (SELECT FROM unnest(o.proargtypes || o.prorettype) t
    WHERE t::regtype::text IN ('internal', 'trigger', 'event_trigger', 'language_handler', 'fdw_handler',
      'index_am_handler', 'table_am_handler', 'tsm_handler'))
  THEN 'v' ELSE o.provolatile::text END,
  o.pronargs - o.pronargdefaults, o.pronargs, o.provariadic <> 0
FROM pg_proc o JOIN pg_language l ON l.oid = o.prolang
LEFT JOIN owned w ON w.objid = o.oid AND w.classid = 'pg_proc'::regclass
"""
_OPERATORS: Final[LiteralString] = """
SELECT coalesce(w.extname, o.oprnamespace::regnamespace::text), o.oprname,
  bool_and(p.provolatile <> 'v' AND NOT p.prosecdef)
FROM pg_operator o JOIN pg_proc p ON p.oid = o.oprcode
LEFT JOIN owned w ON w.objid = o.oid AND w.classid = 'pg_operator'::regclass GROUP BY 1, 2
"""
_TYPES: Final[LiteralString] = """
SELECT coalesce(w.extname, o.typnamespace::regnamespace::text), o.typname, NOT EXISTS (
  SELECT FROM pg_proc p WHERE p.provolatile = 'v' AND p.oid IN (
    o.typinput, o.typoutput, o.typreceive, o.typsend, o.typmodin, o.typmodout))
  AND NOT EXISTS (SELECT FROM pg_cast c JOIN pg_proc p ON p.oid = c.castfunc
    WHERE p.provolatile = 'v' AND o.oid IN (c.castsource, c.casttarget))
FROM pg_type o LEFT JOIN owned w ON w.objid = o.oid AND w.classid = 'pg_type'::regclass
WHERE o.typrelid = 0
"""
_RELATIONS: Final[LiteralString] = """
SELECT coalesce(w.extname, o.relnamespace::regnamespace::text), o.relname, true
FROM pg_class o LEFT JOIN owned w ON w.objid = o.oid AND w.classid = 'pg_class'::regclass
WHERE o.relkind IN ('r', 'v', 'm', 'p', 'f')
"""


_VIEWS: Final[LiteralString] = """
SELECT schemaname || '.' || viewname, definition FROM pg_views
WHERE schemaname IN ('pg_catalog', 'information_schema') ORDER BY 1
"""


def written() -> Mapping[Path, str]:
    """Return the texts of the files, from a server of its own."""
    with embedded_postgres() as address, psycopg.connect(address, autocommit=True) as connection:
        return {VIEWS: views(connection), FILE: text(connection)}


def views(connection: psycopg.Connection[Any]) -> str:
    """Return the definitions of the system's views, a line each."""
    rows = connection.execute(_VIEWS).fetchall()
    return "".join(json.dumps({"view": name, "sql": definition}) + "\n" for name, definition in rows)


def text(connection: psycopg.Connection[Any]) -> str:
    """Return the text of the file: every extension that the server brings is created first."""
    available = "SELECT name FROM pg_available_extensions WHERE installed_version IS NULL ORDER BY name"
    for (name,) in connection.execute(available).fetchall():
        statement = sql.SQL("CREATE EXTENSION IF NOT EXISTS {} CASCADE")
        connection.execute(statement.format(sql.Identifier(name)))
    connection.execute(_OWNED)
    installed = dict(connection.execute("SELECT extname, extversion FROM pg_extension").fetchall())
    owners = _owners(connection)
    document = {
        "format": FORMAT,
        "postgres": connection.execute("SHOW server_version").fetchall()[0][0],
        "schemas": {name: owners[name] for name in SCHEMAS},
        "extensions": {
            name: {"version": version, **owners.get(name, _nothing())}
            for name, version in sorted(installed.items())
        },
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _nothing() -> dict[str, Any]:
    return {"functions": {}, "operators": [], "types": [], "relations": []}


def _owners(connection: psycopg.Connection[Any]) -> Mapping[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    codes: dict[tuple[str, str], set[str]] = {}
    for owner, name, kind, least, most, endless in connection.execute(_FUNCTIONS).fetchall():
        codes.setdefault((owner, name), set()).add(_code(kind, least, most, endless=endless))
    for (owner, name), held in sorted(codes.items()):
        found.setdefault(owner, _nothing())["functions"][name] = " ".join(sorted(held))
    queries: tuple[tuple[str, LiteralString], ...] = (
        ("operators", _OPERATORS),
        ("types", _TYPES),
        ("relations", _RELATIONS),
    )
    for kind, query in queries:
        for owner, name in sorted(_quiet(connection.execute(query).fetchall())):
            found.setdefault(owner, _nothing())[kind].append(name)
    return found


def _quiet(rows: Iterable[tuple[str, str, bool]]) -> Iterable[tuple[str, str]]:
    return ((owner, name) for owner, name, quiet in rows if quiet)


def _code(kind: str, least: int, most: int, *, endless: bool) -> str:
    if endless:
        return f"{kind}{least}+"
    return f"{kind}{least}" if least == most else f"{kind}{least}-{most}"


if __name__ == "__main__":
    for path, held in written().items():
        path.write_text(held)
