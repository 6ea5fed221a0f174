"""A query that a connection has planned is answered in one exchange, and by every layer as before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

from nonsuch.adapters.edge.postgres import readonly_live
from nonsuch.adapters.edge.postgres.readonly import Answer, Asked, ReadOnly
from nonsuch.adapters.edge.postgres.readonly_live import LiveCheck
from nonsuch.adapters.edge.postgres.readonly_session import Session
from nonsuch.adapters.edge.postgres.readonly_settings import listed
from nonsuch.adapters.edge.postgres.readonly_wire import Statement, Wire
from nonsuch.adapters.edge.postgres.refused import DatabaseRefused
from nonsuch.kernel.sql_facts import SqlFacts

from .readonly_lab import GUARD, Lab, laboratory, ran

READS: Final = SqlFacts(("select",))
ASKED: Final = "SELECT id, total FROM orders ORDER BY id LIMIT 3"
LEAVES_A_MARK: Final = "SELECT txid_current() IS NOT NULL, pg_backend_pid()"  # even when it is rolled back
OFTEN: Final = 3  # the second time a plan is made


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with laboratory() as made:
        yield made


@pytest.fixture
def exchanges(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One for each batch that is sent."""
    seen: list[None] = []
    real = Wire.sync

    def sync(self: Wire) -> None:
        seen.append(None)
        real(self)

    monkeypatch.setattr(Wire, "sync", sync)
    return seen


@asynccontextmanager
async def opened(lab: Lab, user: str = "postgres", **options: Any) -> AsyncGenerator[ReadOnly]:
    database = ReadOnly(lab.of(user), role=None, **options)
    try:
        yield database
    finally:
        await database.close()


async def ask(database: ReadOnly, text: str, facts: SqlFacts = READS, *, judged: bool = True) -> Answer:
    return await database.query(Asked(text, facts, judged))


async def planned(database: ReadOnly, text: str, facts: SqlFacts = READS) -> list[Answer]:
    """What the first answers to a query are, after which its plan is known."""
    return [await ask(database, text, facts) for _ in range(OFTEN)]


async def refused(database: ReadOnly, text: str, facts: SqlFacts = READS) -> DatabaseRefused:
    with pytest.raises(DatabaseRefused) as caught:
        await ask(database, text, facts)
    return caught.value


def idle(database: ReadOnly) -> Session:
    """The one session that waits for a query."""
    shelf = database._sessions._shelf  # pyright: ignore[reportPrivateUsage]  # the layer under test
    assert shelf is not None
    (session,) = shelf.idle
    return session


def at_server(lab: Lab, text: str) -> Any:
    with lab.admin() as connection:
        cursor = connection.execute(text.encode())
        return None if cursor.description is None else cursor.fetchall()


@pytest.mark.parametrize("user", ["agent_login", "postgres"])
@pytest.mark.parametrize("live", [False, True], ids=["text", "catalogue"])
def test_what_is_planned_takes_one_exchange_and_answers_the_same(
    lab: Lab, exchanges: list[None], user: str, live: bool
) -> None:
    check = LiveCheck(GUARD) if live else None

    async def asked() -> tuple[list[Answer], list[int]]:
        async with opened(lab, user, check=check) as database:
            found: list[Answer] = []
            counts: list[int] = []
            for _ in range(5):
                exchanges.clear()
                found.append(await ask(database, ASKED))
                counts.append(len(exchanges))
            return found, counts

    found, counts = ran(asked())
    assert counts[-2:] == [1, 1]
    assert len({repr(each) for each in found}) == 1
    assert ("catalogue" in found[-1].guards) is live
    assert len(found[-1].rows) == 3


def test_another_limit_and_another_reading_are_other_questions(lab: Lab) -> None:
    async def asked() -> tuple[list[Any], list[Any], list[bool]]:
        async with opened(lab) as database:
            cut = [await database.query(Asked(ASKED, READS), limit) for limit in (2, 1) * 4]
            await planned(database, ASKED)
            facts = replace(READS, statement="SELECT 7 AS id, 8 AS total")
            seven = [await ask(database, ASKED, facts) for _ in range(4)]
            unread = [await ask(database, ASKED, judged=False) for _ in range(4)]
            return (
                [(len(each.rows), each.truncated_by) for each in cut],
                [each.rows for each in seven],
                ["text" in each.guards for each in unread],
            )

    cut, seven, unread = ran(asked())
    assert cut == [(2, ("rows",)), (1, ("rows",))] * 4
    assert seven == [[[7, "8"]]] * 4
    assert unread == [False] * 4


# What must hold before anything is run.


def _escaped(session: Session) -> Statement:
    del session
    return Statement("SET bytea_output = 'escape'")


def _another_user(session: Session) -> Statement:
    del session
    return Statement("SET SESSION AUTHORIZATION app_owner")


def _may_write(session: Session) -> Statement:
    beginning = (Statement("BEGIN"), *session.standing.beginning[1:])
    session.standing = replace(session.standing, beginning=beginning)
    return Statement("SELECT 1")


BROKEN: Final[dict[str, Callable[[Session], Statement]]] = {
    "a setting": _escaped,
    "the user": _another_user,
    "a transaction that may write": _may_write,
}


@pytest.mark.parametrize("what", BROKEN)
def test_nothing_is_run_where_a_session_is_not_what_it_was_pinned_to(lab: Lab, what: str) -> None:
    """The server itself stops: what is sent behind leaves no mark there."""

    async def asked() -> tuple[DatabaseRefused, list[Any], int, int]:
        async with opened(lab) as database:
            for _ in range(6):  # after these the server has one plan for what it verifies
                await ask(database, LEAVES_A_MARK)
            (*_, before) = await planned(database, LEAVES_A_MARK)
            counts = [_next_transaction(lab)]
            await ask(database, LEAVES_A_MARK)
            counts.append(_next_transaction(lab))
            session = idle(database)
            await session.look(BROKEN[what](session))
            told = await refused(database, LEAVES_A_MARK)
            counts.append(_next_transaction(lab))
            return told, counts, before.rows[0][1], (await ask(database, LEAVES_A_MARK)).rows[0][1]

    told, (first, marked, then), old, new = ran(asked())
    assert told.code == "X_DB_GUARD_MISSING"
    assert "the session is not what it was pinned to" in told.cause
    assert first < marked  # or it could not fail
    assert then == marked
    assert old != new


def _next_transaction(lab: Lab) -> int:
    number: int = int(at_server(lab, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text")[0][0])
    return number


def test_what_the_server_verified_is_verified_here_too(lab: Lab) -> None:
    """As on a server that answers with what should hold and goes on: no row of it is told."""

    async def asked() -> DatabaseRefused:
        async with opened(lab) as database:
            await planned(database, ASKED)
            session = idle(database)
            await session.look(_escaped(session))
            (held,) = session.standing.held.parameters
            stubbed = replace(session.standing.held, parameters=(held.replace('"hex"', '"escape"'),))
            session.standing = replace(session.standing, held=stubbed)
            return await refused(database, ASKED)

    told = ran(asked())
    assert told.code == "X_DB_GUARD_MISSING"
    assert "a setting is not what it was pinned to" in told.cause


def test_a_layer_that_is_required_is_required_of_a_planned_query(lab: Lab) -> None:
    async def asked() -> DatabaseRefused:
        async with opened(lab, "agent_login", required=("role:login", "settings")) as database:
            await planned(database, ASKED)
            session = idle(database)
            session.standing = replace(session.standing, guards=session.standing.guards - {"role:login"})
            return await refused(database, ASKED)

    assert "these layers do not stand: `role:login`" in ran(asked()).cause


def test_a_view_that_changes_is_looked_at_again_though_it_is_planned(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_server(lab, "CREATE OR REPLACE VIEW v_planned AS SELECT 1 AS n")

    text = "SELECT n FROM v_planned"
    facts = GUARD.judge(text).facts

    async def asked() -> DatabaseRefused:
        async with opened(lab, check=LiveCheck(GUARD)) as database:
            await planned(database, text, facts)
            at_server(lab, "CREATE OR REPLACE VIEW v_planned AS SELECT length(pg_sleep(0)::text) + 1 AS n")
            monkeypatch.setattr(readonly_live, "FRESH_SECONDS", 0.0)
            return await refused(database, text, facts)

    assert "sleep" in ran(asked()).cause


# What changes under a plan.


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ("ALTER TABLE moving ALTER a TYPE text USING a::text", [["1", "x"]]),
        ("ALTER TABLE moving ALTER b TYPE varchar(7)", [[1, "x"]]),
        ("ALTER TABLE moving ALTER b TYPE numeric(9, 2) USING 3", [[1, "3.00"]]),
        ("ALTER TABLE moving RENAME a TO other", [[1, "x"]]),
        ("ALTER TABLE moving ADD c bool DEFAULT true", [[1, "x", True]]),
        ("ALTER TABLE moving DROP b", [[1]]),
        ("DROP TABLE moving; CREATE TABLE moving AS SELECT 'z' AS b, 2 AS a", [["z", 2]]),
        ("INSERT INTO moving VALUES (2, 'y')", [[1, "x"], [2, "y"]]),
    ],
)
def test_what_changed_since_is_there_at_once(lab: Lab, change: str, row: list[list[Any]]) -> None:
    text = "TABLE moving ORDER BY 1"
    at_server(lab, "DROP TABLE IF EXISTS moving; CREATE TABLE moving (a int, b varchar(3))")
    at_server(lab, "INSERT INTO moving VALUES (1, 'x')")

    async def asked() -> list[Answer]:
        async with opened(lab) as database:
            await planned(database, text)
            at_server(lab, change)
            return [await ask(database, text) for _ in range(4)]

    for found in ran(asked()):
        assert found.rows == row
        assert len(found.columns) == len(row[0])


def test_a_mistake_that_came_since_is_told_with_its_place(lab: Lab) -> None:
    text = "SELECT a,\n  b FROM leaving"
    at_server(lab, "DROP TABLE IF EXISTS leaving; CREATE TABLE leaving AS SELECT 1 AS a, 2 AS b")

    async def asked() -> tuple[str, str, set[int]]:
        async with opened(lab) as database:
            pids = {(await ask(database, "SELECT pg_backend_pid()")).rows[0][0]}
            await planned(database, text)
            at_server(lab, "ALTER TABLE leaving DROP b")
            told = (await refused(database, text)).cause
            at_server(lab, "ALTER TABLE leaving ADD b int; UPDATE leaving SET b = 0")
            divided = f"SELECT 1 / nullif(b, 7) FROM ({text}) q"  # noqa: S608  (for a test)
            at_server(lab, "UPDATE leaving SET b = 1")
            await planned(database, divided)
            at_server(lab, "UPDATE leaving SET b = 0")
            at_run = (await refused(database, divided)).cause
            pids.add((await ask(database, "SELECT pg_backend_pid()")).rows[0][0])
            return told, at_run, pids

    told, at_run, pids = ran(asked())
    assert told == 'the server refuses the query: column "b" does not exist at 2:3'
    assert at_run == "the server refuses the query: division by zero"
    assert len(pids) == 1  # the connection is as it was


def test_what_a_planned_query_leaves_is_seen(lab: Lab) -> None:
    at_server(lab, "DROP TABLE IF EXISTS switch; CREATE TABLE switch AS SELECT false AS locks")
    text = "SELECT CASE WHEN locks THEN pg_advisory_lock(77)::text END, pg_backend_pid() FROM switch"

    async def asked() -> tuple[list[Answer], Answer, Answer]:
        async with opened(lab) as database:
            clean = await planned(database, text)
            at_server(lab, "UPDATE switch SET locks = true")
            left = await ask(database, text)
            at_server(lab, "UPDATE switch SET locks = false")
            return clean, left, await ask(database, text)

    clean, left, after = ran(asked())
    assert all("session-check" in each.guards for each in (*clean, after))
    assert "session-check" not in left.guards
    assert clean[-1].rows[0][1] == left.rows[0][1] != after.rows[0][1]


def test_a_connection_that_was_ended_costs_no_planned_query(lab: Lab) -> None:
    async def asked() -> tuple[int, int]:
        async with opened(lab) as database:
            (*_, before) = await planned(database, LEAVES_A_MARK)
            at_server(lab, f"SELECT pg_terminate_backend({before.rows[0][1]}, 5000)")
            await asyncio.sleep(0.05)
            return before.rows[0][1], (await ask(database, LEAVES_A_MARK)).rows[0][1]

    old, new = ran(asked())
    assert old != new


def test_a_server_that_ends_every_connection_is_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from nonsuch.adapters.edge.postgres.readonly_wire import LinkLost

    async def ended(self: Session, text: str | None = None) -> None:
        raise LinkLost("gone")

    monkeypatch.setattr(Session, "begin", ended)

    async def asked() -> DatabaseRefused:
        async with opened(lab) as database:
            return await refused(database, ASKED)

    told = ran(asked())
    assert (told.code, told.cause) == (
        "X_DB_UNREACHABLE",
        "the database does not answer: it ends connections",
    )


def test_what_is_asked_of_the_live_catalogue_is_prepared_once(lab: Lab) -> None:
    async def asked() -> list[Any]:
        async with opened(lab, check=LiveCheck(GUARD)) as database:
            for number in range(3):
                found = await ask(database, f"SELECT {number}, id FROM orders")  # noqa: S608  (for a test)
                assert "session-check" in found.guards
            session = idle(database)
            counted = "SELECT count(*)::text FROM pg_prepared_statements WHERE name LIKE 'nonsuch%'"
            return [session.plans.looks, await session.look(Statement(counted))]

    names, counted = ran(asked())
    assert names == {"nonsuch_behind", "nonsuch_stored"}
    assert counted == [[("5",)]]


def test_what_is_compared_at_the_server_is_what_was_found_there(lab: Lab) -> None:
    """With quotes and backslashes in a name, as in any other."""
    at_server(lab, 'CREATE ROLE "odd\'\\""na\\\\me" SUPERUSER LOGIN')

    async def asked() -> int:
        async with opened(lab, "odd'\\\"na\\\\me") as database:
            found = await planned(database, "SELECT current_user::text")
            assert {each.rows[0][0] for each in found} == {"odd'\\\"na\\\\me"}
            return len(found)

    assert ran(asked()) == OFTEN
    assert listed(['a"\\b']) == '{"a\\"\\\\b"}'
