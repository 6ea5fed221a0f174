"""The guard against a real server: its catalogue is the shipped one, its privileges find what a text hides.

A role without a right is the oracle: PostgreSQL checks the rights on everything that a plan calls and reads,
whatever its spelling. What the guard accepts must pass for a role that lacks the right to all that the facts
do not name. Plans are asked for, and nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import errors, sql

from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.sql_guard import guard
from nonsuch.kernel.sql_catalog import Own

from ...boundaries import sql_catalog

GUARD: Final = guard()
HARMFUL: Final = [
    "pg_sleep",
    "setseed",
    "pg_advisory_lock",
    "pg_read_file",
    "nextval",
    "lo_get",
    "txid_current",
]
TABLES: Final = ("a", "b")
COLUMNS: Final = ("x", "y", "z")
Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def server() -> Iterator[Connection]:
    with embedded_postgres() as address, psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE a (x int, y int, z text); CREATE TABLE b (x int, y int, z text)")
        connection.execute("CREATE ROLE barred; GRANT SELECT ON a, b TO barred")
        for table in TABLES:
            for column in COLUMNS:
                _create_role_without(connection, table, column)
        yield connection


def _create_role_without(connection: Connection, table: str, column: str) -> None:
    """Create a role that may read everything but one column."""
    role = sql.Identifier(f"without_{table}_{column}")
    connection.execute(sql.SQL("CREATE ROLE {}").format(role))
    for name in TABLES:
        rest = [sql.Identifier(each) for each in COLUMNS if (name, each) != (table, column)]
        grant = sql.SQL("GRANT SELECT ({}) ON {} TO {}")
        connection.execute(grant.format(sql.SQL(", ").join(rest), sql.Identifier(name), role))


def _planned(connection: Connection, text: str, role: str) -> str | None:
    """Plan a statement as a role; return why it was refused, nothing if it has a plan or makes no sense."""
    connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
    try:
        connection.execute(f"EXPLAIN {text}".encode())
    except errors.InsufficientPrivilege as refusal:
        return str(refusal)
    except psycopg.Error:
        return None
    finally:
        connection.execute("RESET ROLE")
    return None


def _makes_sense(connection: Connection, text: str) -> bool:
    try:
        connection.execute(f"EXPLAIN {text}".encode())
    except psycopg.Error:
        return False
    return True


# Calls.


@st.composite
def _dotted(draw: st.DrawFn) -> str:
    """A statement with names behind dots: columns, fields, labels, calls, of things in FROM of every kind."""
    name = draw(st.sampled_from([*HARMFUL, "abs", "x"]))
    sources = {
        "f": "abs(0.5) AS f",
        "abs": "abs(0.5)",
        "int4": "CAST(1 AS int)",
        "coalesce": "COALESCE(0.5, 1)",
        "g": "ROWS FROM (abs(0.5)) AS g",
        "o": "abs(0.5) WITH ORDINALITY AS o",
        "h": f'abs(0.5) AS h("{name}")',
        "t": "a AS t",
        "s": f'(SELECT 0.5 AS "{name}") AS s',
        "v": f'(VALUES (0.5)) AS v("{name}")',
        "w": f'(TABLE w) AS w("{name}")',
        "u": "unnest(ARRAY[0.5]) AS u",
        "d": "(SELECT f FROM abs(0.5) f) AS d",
    }
    chosen = draw(st.lists(st.sampled_from(sorted(sources)), min_size=1, max_size=3, unique=True))
    qualifier = draw(st.sampled_from([*chosen, *chosen, *sorted(sources)]))
    piece = draw(
        st.sampled_from(
            [
                *("{q}.{n}", "({q}).{n}", "({q}.*).{n}", '{q}."{n}"'),
                *("(SELECT {q}.{n})", "{q}.{n}::text", "(ARRAY[{q}])[1].{n}"),
            ]
        )
    ).format(q=qualifier, n=name)
    text = " ".join(("SELECT", piece, "FROM", ", ".join(sources[each] for each in chosen)))
    return f"WITH w AS (SELECT 0.5) {text}" if draw(st.booleans()) else text


@pytest.fixture(scope="module")
def barred(server: Connection) -> Connection:
    """A server where only a superuser may call what is harmful."""
    for name in HARMFUL:
        overloads = "SELECT oid::regprocedure::text FROM pg_proc WHERE proname = %s"
        for (overload,) in server.execute(overloads, (name,)).fetchall():
            server.execute(f"REVOKE EXECUTE ON FUNCTION {overload} FROM PUBLIC".encode())
    return server


def test_the_role_is_barred(barred: Connection) -> None:
    """Or the next one could not fail."""
    for text in ("SELECT (0.5).setseed", "SELECT f.pg_sleep FROM abs(0.5) f", "SELECT nextval(1::regclass)"):
        assert "permission denied for function" in (_planned(barred, text, "barred") or ""), text
    assert _planned(barred, "SELECT s.pg_sleep FROM (SELECT 1 AS pg_sleep) s", "barred") is None


def test_what_is_accepted_calls_nothing_that_is_barred(barred: Connection) -> None:
    seen = {"accepted": 0, "refused": 0}

    @settings(max_examples=400)
    @given(_dotted())
    def holds(text: str) -> None:
        told = GUARD.judge(text).verdict
        seen["accepted" if told.allow else "refused"] += _makes_sense(barred, text)
        if told.allow:
            assert _planned(barred, text, "barred") is None, text

    holds()
    assert min(seen.values()) > 20, seen


# Columns.


@st.composite
def _reads(draw: st.DrawFn, depth: int = 1) -> str:
    """A statement over two tables that reads some of their columns, named, starred, whole, or joined."""
    first, second = draw(st.permutations(["a AS t", "b AS u"]))
    joins = [
        first,
        f"{first}, {second}",
        f"{first} JOIN {second} USING (x)",
        f"{first} JOIN {second} USING (x) AS j",
        f"{first} NATURAL JOIN {second}",
        f"({first} CROSS JOIN {second}) AS j",
        f"({first} CROSS JOIN {second}) AS j(k, l)",
        "a AS t(y, x)",
        "a",
    ]
    inner = draw(_reads(depth - 1)) if depth else "SELECT x FROM b"
    joins += [f"({inner}) AS t", f"{first}, LATERAL ({inner}) AS q", f"{first} WHERE EXISTS ({inner})"]
    pieces = [
        "x",
        "y",
        "t.y",
        "t.z",
        "u.z",
        "t.*",
        "*",
        "t",
        "(t).y",
        "row_to_json(u)",
        "count(*)",
        "1",
        "j",
        "j.x",
    ]
    pieces += ["j.k", "public.a.z", "a.z", "u IS NULL", "t.*::text", "(SELECT max(z) FROM b)", "length(z)"]
    listed = ", ".join(draw(st.lists(st.sampled_from(pieces), min_size=1, max_size=3)))
    order = draw(st.sampled_from(["", " ORDER BY y", " ORDER BY t.z", " GROUP BY 1", " LIMIT 1"]))
    text = " ".join(("SELECT", listed, "FROM", draw(st.sampled_from(joins)), order))
    named = draw(st.sampled_from(["", "", "WITH a AS (SELECT 1 AS x, 2 AS y) ", "WITH t AS (TABLE b) "]))
    return named + text


def test_what_is_accepted_reads_no_column_that_the_facts_leave_out(server: Connection) -> None:
    seen = {"planned": 0, "left out": 0}

    @settings(max_examples=400)
    @given(_reads())
    def holds(text: str) -> None:
        told = GUARD.judge(text)
        assert told.verdict.allow, told.verdict
        seen["planned"] += _makes_sense(server, text)
        for table in TABLES:
            for column in COLUMNS:
                if told.facts.columns.isdisjoint({f"public.{table}.{column}", f"public.{table}.*"}):
                    seen["left out"] += 1
                    assert _planned(server, text, f"without_{table}_{column}") is None, (text, table, column)

    holds()
    assert min(seen.values()) > 100, seen


def test_a_role_without_a_column_is_found_by_it(server: Connection) -> None:
    """Or the one above could not fail."""
    for text in ("SELECT y FROM a", "SELECT t FROM a t", "TABLE a", "SELECT 1 FROM a NATURAL JOIN b"):
        assert "permission denied" in (_planned(server, text, "without_a_y") or ""), text


# The catalogue.


def test_the_shipped_catalogue_is_what_a_server_says(server: Connection) -> None:
    """A stale file fails: run ``python -m tests.boundaries.sql_catalog``."""
    server.execute("CREATE DATABASE whole")
    address = server.info.dsn.replace("dbname=postgres", "dbname=whole")
    with psycopg.connect(address, autocommit=True) as whole:
        assert sql_catalog.VIEWS.read_text("utf-8") == sql_catalog.views(whole)
        assert sql_catalog.FILE.read_text("utf-8") == sql_catalog.text(whole)
        _no_harmful_function_takes_a_row(whole)


def _no_harmful_function_takes_a_row(whole: Connection) -> None:
    """``t.f`` of a table calls a function that takes a row or anything: none of them is harmful."""
    query = """
        SELECT DISTINCT proname FROM pg_proc WHERE provolatile = 'v' AND pronargs - pronargdefaults <= 1
        AND proargtypes[0]::regtype::text IN ('any', 'anyelement', 'record', 'anyarray', 'anynonarray',
          'anycompatible', 'anycompatiblearray', 'anycompatiblenonarray')
    """
    assert whole.execute(query).fetchall() == [("array_shuffle",)]


def test_a_check_of_a_type_is_run_by_a_text_that_names_it(server: Connection) -> None:
    """``pg_input_is_valid`` is no volatile function, and calls whatever a domain's check does."""
    server.execute(
        "CREATE FUNCTION locks(text) RETURNS boolean LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_advisory_lock(7); RETURN true; END $$;"
        " CREATE DOMAIN checked AS text CHECK (locks(VALUE))"
    )
    held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    for text in ("SELECT pg_input_is_valid('x', 'checked')", "SELECT 'x'::checked"):
        with psycopg.connect(server.info.dsn) as session:
            session.execute("SET TRANSACTION READ ONLY")
            session.execute(text.encode())
            assert session.execute(held).fetchone() == (1,)
        assert not GUARD.judge(text).verdict.allow


def test_an_app_may_list_the_type(server: Connection) -> None:
    del server
    listed = guard(Own(types=frozenset({"public.checked"})))
    assert listed.judge("SELECT 'x'::checked").verdict.allow
    assert not listed.judge("SELECT pg_input_is_valid('x', 'checked')").verdict.allow
