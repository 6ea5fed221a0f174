"""Each layer of `db.query` by itself: what the server still stops with the layers before it stubbed out."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from nonsuch.adapters.edge.postgres.readonly_caps import MAX_BYTES, MAX_CELL, MAX_ROWS
from nonsuch.adapters.edge.postgres.refused import DatabaseRefused
from nonsuch.kernel.sql_facts import SqlFacts

from .readonly_lab import Lab, laboratory

READS: Final = SqlFacts(("select",))  # what a guard would say that lets everything pass
SHOWS: Final = SqlFacts(("show",), settings=("all",))
PLANS: Final = SqlFacts(("explain",))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with laboratory() as made:
        with made.admin() as connection:
            connection.execute("CREATE ROLE nonsuch_readonly; GRANT SELECT ON orders TO nonsuch_readonly")
            connection.execute("CREATE TABLE seen (what text); CREATE SEQUENCE moved")
        yield made


def refusal(run: Callable[[], object]) -> DatabaseRefused:
    with pytest.raises(DatabaseRefused) as caught:
        run()
    assert caught.value.fix
    return caught.value


# The guard stubbed out.


@pytest.mark.parametrize("user", ["agent_login", "app_owner", "postgres"])
@pytest.mark.parametrize("facts", [READS, SHOWS, PLANS], ids=["select", "show", "explain"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1; DELETE FROM orders",
        "COMMIT; DELETE FROM orders",
        "SELECT 1) q; DELETE FROM orders; SELECT (1",
        "; DELETE FROM orders; SELECT 1",
    ],
)
def test_two_statements_are_refused_by_the_server(lab: Lab, user: str, facts: SqlFacts, text: str) -> None:
    told = refusal(lambda: lab.ask(text, user, facts=facts, explain=facts is PLANS))
    assert told.code == "X_DB_QUERY_FAILED"
    with lab.admin() as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (120,)


@pytest.mark.parametrize("user", ["app_owner", "postgres"])
@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM orders",
        "INSERT INTO seen VALUES ('x')",
        "WITH d AS (DELETE FROM order_lines RETURNING 1) SELECT * FROM d",
        "CREATE TABLE other (x int)",
        "SELECT * INTO other FROM orders",
        "TRUNCATE seen",
        "VACUUM",
        "COMMIT",
        "COMMIT AND CHAIN",
        "BEGIN",
        "SET ROLE postgres",
        "SELECT nextval('moved')",
        "EXPLAIN ANALYZE DELETE FROM seen",
        "COPY seen FROM STDIN",
        "DO $$ BEGIN DELETE FROM seen; END $$",
        "CALL do_touch('x')",
        "SELECT log_touch('x')",
        "SELECT * FROM orders FOR UPDATE",
    ],
)
@pytest.mark.parametrize("facts", [READS, PLANS], ids=["select", "explain"])
def test_a_write_changes_nothing_whoever_connects(lab: Lab, user: str, text: str, facts: SqlFacts) -> None:
    before = _state(lab)
    refusal(lambda: lab.ask(text, user, facts=facts, explain=facts is PLANS, role=None))
    assert _state(lab) == before


def _state(lab: Lab) -> list[Any]:
    counts = (
        "SELECT (SELECT count(*) FROM seen), (SELECT count(*) FROM audit_log), (SELECT count(*) FROM orders)"
    )
    with lab.admin() as connection:
        rows = connection.execute(counts.encode()).fetchall()
        rows += connection.execute("SELECT last_value, is_called FROM moved").fetchall()
        return rows + connection.execute("SELECT count(*) FROM pg_class WHERE relname = 'other'").fetchall()


def test_a_role_that_only_reads_reads_nothing_else(lab: Lab) -> None:
    for user in ("agent_login", "app_owner"):
        if user == "app_owner":
            with lab.admin() as connection:
                connection.execute("GRANT nonsuch_readonly TO app_owner")
        told = refusal(lambda: lab.ask("SELECT note FROM secret_notes", user))  # noqa: B023  (called at once)
        assert (told.code, "permission denied" in told.cause) == ("X_DB_QUERY_FAILED", True)
    assert lab.ask("SELECT note FROM secret_notes", "app_owner", role=None).rows  # or it could not fail


def test_a_role_that_is_set_can_be_left_and_a_login_cannot(lab: Lab) -> None:
    """Why the two are told apart: built-in functions run SQL from text after the role is reset."""
    escape = (
        "SELECT set_config('role', 'none', true),"
        " (SELECT string_agg(word, ' ')"
        " FROM ts_stat('SELECT to_tsvector(''simple'', note) FROM secret_notes'))"
    )
    found = lab.ask(escape, "postgres", facts=READS)
    assert "role:set" in found.guards
    assert "secret" in found.rows[0][1]
    told = refusal(lambda: lab.ask(escape, "agent_login", facts=READS))
    assert "permission denied" in told.cause


@pytest.mark.parametrize("setting", ["off", "on"])
def test_a_literal_is_what_the_guard_took_it_for(lab: Lab, setting: str) -> None:
    """With `standard_conforming_strings` off the server would read a call where the guard read a literal."""
    with lab.admin() as connection:
        connection.execute(f"ALTER ROLE agent_login SET standard_conforming_strings = {setting}".encode())
    found = lab.ask(r"SELECT 'a\b', length('\')")
    assert (found.rows, "settings" in found.guards) == ([["a\\b", 1]], True)
    trick = r"SELECT '\'' , pg_sleep(1) --'"
    assert lab.ask(trick).rows == [["\\' , pg_sleep(1) --"]]  # and no call


# What a query could leave behind.


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_advisory_lock_shared(1)",
        "SELECT lock_immutable(3)",
        "SELECT * FROM v_locks",
        "SELECT pg_terminate_backend(pg_backend_pid())",
    ],
)
def test_a_connection_that_something_is_left_on_is_closed(lab: Lab, text: str) -> None:
    told = _left(lab, text)
    assert told == {"refused"} or "session-check" not in told
    with lab.admin() as connection:
        _until(lambda: _held(connection) == 0)


def _left(lab: Lab, text: str) -> set[str]:
    try:
        return set(lab.ask(text, "postgres", facts=READS, role=None).guards)
    except DatabaseRefused:
        return {"refused"}


def _held(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
    assert row is not None
    count: int = row[0]
    return count


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_settings_of_the_session_do_not_outlive_a_query(lab: Lab) -> None:
    """What set_config keeps for the session is gone with the transaction."""
    text = "SELECT set_config('search_path', 'pg_temp', false), set_config('statement_timeout', '0', false)"
    found = lab.ask(text, "postgres", facts=READS, role=None)
    assert "session-check" in found.guards


# Time and size.


@pytest.mark.parametrize(
    "text",
    ["SELECT pg_sleep(60)", "SELECT count(*) FROM generate_series(1, 100000000000)", "SELECT * FROM v_slow"],
)
def test_a_query_ends_in_time(lab: Lab, text: str) -> None:
    with lab.admin() as connection:
        connection.execute("CREATE OR REPLACE VIEW v_slow AS SELECT pg_sleep(60)::text")
    began = time.perf_counter()
    told = refusal(lambda: lab.ask(text, "postgres", facts=READS, role=None, seconds=0.5))
    assert told.code == "X_DB_TIMEOUT"
    assert time.perf_counter() - began < 5


def test_a_lock_of_somebody_else_is_not_waited_for(lab: Lab) -> None:
    with psycopg.connect(lab.address) as held:
        held.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        told = refusal(lambda: lab.ask("SELECT count(*) FROM orders", seconds=1))
        assert told.code == "X_DB_TIMEOUT"


def test_the_ceiling_of_rows_is_hard_and_told(lab: Lab) -> None:
    many = "SELECT * FROM generate_series(1, 10000000)"
    for limit, rows in ((None, 100), (7, 7), (1_000, MAX_ROWS), (1_000_000, MAX_ROWS), (0, 1)):
        found = lab.ask(many, limit=limit)
        assert (len(found.rows), found.truncated_by) == (rows, ("rows",))
    assert lab.ask("SELECT * FROM generate_series(1, 100)").truncated_by == ()


def test_the_bytes_of_an_answer_are_bounded_and_told(lab: Lab) -> None:
    found = lab.ask("SELECT repeat('y', 10000) FROM generate_series(1, 1000)", limit=1_000)
    assert found.truncated_by == ("bytes",)
    assert 0 < len(found.rows) < 30
    assert found.bytes <= MAX_BYTES


def test_a_cell_that_is_too_large_is_null_and_told(lab: Lab) -> None:
    text = f"SELECT repeat('y', {MAX_CELL}), repeat('y', {MAX_CELL + 1}), NULL::text, 7"
    found = lab.ask(text)
    assert (found.rows, found.truncated_by) == ([["y" * MAX_CELL, None, None, 7]], ("cells",))
    assert lab.ask("SELECT NULL::text, ''").truncated_by == ()


LARGE: Final = {
    "cell": "SELECT repeat('x', 100000000)",
    "cells": "SELECT repeat('x', 60000) FROM generate_series(1, 10000)",
    "padded": "SELECT 'x'::char(10000000) FROM generate_series(1, 50)",
    "numeric": "SELECT array_agg(1e131071::numeric) FROM generate_series(1, 200)",
    "row": "SELECT ROW(repeat('x', 100000000), 1)",
    "columns": "SELECT " + ", ".join(["repeat('x', 65000)"] * 300) + " FROM generate_series(1, 9)",  # noqa: S608
    "plan": "EXPLAIN (VERBOSE) SELECT repeat('x', 100000000)",
}


@pytest.mark.parametrize("name", LARGE)
def test_no_answer_makes_the_process_grow(lab: Lab, name: str) -> None:
    """Asked in a process of its own: its memory at its highest, compared with that after a small query."""
    code = (
        "import resource, sys\n"
        "sys.path.insert(0, sys.argv[3])\n"
        "from tests.adapters.edge.readonly_lab import Lab\n"
        "from nonsuch.adapters.edge.postgres.refused import DatabaseRefused\n"
        "lab = Lab(sys.argv[1])\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "lab.ask('SELECT 1'); lab.ask('EXPLAIN SELECT 1'); before = peak()\n"
        "try:\n    found = lab.ask(sys.argv[2], seconds=30, limit=1000); print(found.truncated_by)\n"
        "except DatabaseRefused as refused: print(refused)\n"
        "print((peak() - before) // 1024)\n"
    )
    here = str(Path(__file__).resolve().parents[3])
    done = subprocess.run(
        [sys.executable, "-c", code, lab.address, LARGE[name], here],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    *told, grown = done.stdout.split("\n")[:-1]
    assert told != ["()"], told  # what is left out is told
    assert int(grown) < 20, told


def test_a_query_that_is_given_up_holds_no_connection(lab: Lab) -> None:
    import asyncio

    async def left() -> None:
        asking = asyncio.ensure_future(
            lab.asked("SELECT pg_sleep(30)", "postgres", facts=READS, role=None, seconds=60)
        )
        await asyncio.sleep(0.5)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(left())
    with lab.admin() as connection:
        asked = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE query LIKE '%pg_sleep(30)%' AND pid <> pg_backend_pid()"
        )
        _until(lambda: connection.execute(asked).fetchone() == (0,))


def test_the_event_loop_goes_on_while_the_database_works(lab: Lab) -> None:
    import asyncio

    async def both() -> int:
        turns = 0
        asking = asyncio.ensure_future(
            lab.asked("SELECT pg_sleep(0.5)", "postgres", facts=READS, role=None, seconds=5)
        )
        while not asking.done():
            turns += 1
            await asyncio.sleep(0.01)
        await asking
        return turns

    assert asyncio.run(both()) > 20
