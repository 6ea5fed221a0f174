"""The database down, silent, restarted or busy: a clear refusal, and the next query is answered."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from nonsuch.adapters.edge.postgres import readonly, readonly_pool
from nonsuch.adapters.edge.postgres.readonly import Answer, Asked, ReadOnly
from nonsuch.adapters.edge.postgres.refused import DatabaseRefused
from nonsuch.kernel.sql_facts import SqlFacts

from .readonly_lab import Lab, laboratory, ran

READS: Final = SqlFacts(("select",))
PID: Final = "SELECT pg_backend_pid()"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with laboratory() as made:
        yield made


@asynccontextmanager
async def opened(lab: Lab, user: str = "postgres", **options: Any) -> AsyncGenerator[ReadOnly]:
    database = ReadOnly(lab.of(user), role=None, **options)
    try:
        yield database
    finally:
        await database.close()


async def ask(database: ReadOnly, text: str = PID) -> Any:
    found: Answer = await database.query(Asked(text, READS))
    return found.rows[0][0]


def test_a_clean_connection_is_used_again(lab: Lab) -> None:
    async def asked() -> tuple[set[int], set[int]]:
        async with opened(lab) as database:
            same = {await ask(database) for _ in range(5)}
            failing = [
                _refused(database, "SELECT 1/0"),
                _refused(database, "SELEC"),
                _refused(database, "SELECT x"),
            ]
            for each in failing:
                assert (await each).code == "X_DB_QUERY_FAILED"
            return same, {await ask(database)}

    same, after = ran(asked())
    assert len(same) == 1
    assert after == same


def test_a_tainted_connection_is_not(lab: Lab) -> None:
    async def asked() -> set[int]:
        async with opened(lab) as database:
            first = await ask(database)
            await ask(database, "SELECT pg_advisory_lock(5)")
            return {first, await ask(database)}

    assert len(ran(asked())) == 2


def test_an_old_connection_is_not(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readonly_pool, "LIFE_SECONDS", 0.0)

    async def asked() -> set[int]:
        async with opened(lab) as database:
            return {await ask(database), await ask(database)}

    assert len(ran(asked())) == 2


def test_a_right_that_is_taken_away_holds_at_once(lab: Lab) -> None:
    """Plans that a connection keeps are run with the rights of that moment."""

    async def asked() -> str:
        async with opened(lab, "agent_login") as database:
            for _ in range(4):
                await ask(database, "SELECT count(*) FROM products")
            with lab.admin() as connection:
                connection.execute("REVOKE SELECT ON products FROM agent_login")
            return (await _refused(database, "SELECT count(*) FROM products")).cause

    assert "permission denied for table products" in ran(asked())


def test_a_column_that_comes_is_there_at_once(lab: Lab) -> None:
    async def asked() -> list[int]:
        async with opened(lab) as database:
            with lab.admin() as connection:
                connection.execute("CREATE TABLE growing AS SELECT 1 AS a")
                widths = [len((await _rows(database, "TABLE growing"))[0]) for _ in range(4)]
                connection.execute("ALTER TABLE growing ADD COLUMN b int DEFAULT 2")
            return [*widths, len((await _rows(database, "TABLE growing"))[0])]

    assert ran(asked()) == [1, 1, 1, 1, 2]


async def _rows(database: ReadOnly, text: str) -> list[list[Any]]:
    return (await database.query(Asked(text, READS))).rows


async def _refused(database: ReadOnly, text: str = PID) -> DatabaseRefused:
    with pytest.raises(DatabaseRefused) as caught:
        await ask(database, text)
    return caught.value


def test_a_server_that_was_started_again_is_asked_again(lab: Lab) -> None:
    """A backend that is killed makes the server end every other one, and start anew."""

    async def asked() -> tuple[int, int]:
        async with opened(lab, connections=2) as database:
            first = await ask(database)
            os.kill(first, signal.SIGKILL)
            return first, await _until_answered(database)

    first, then = ran(asked())
    assert first != then


async def _until_answered(database: ReadOnly) -> int:
    deadline = time.monotonic() + 20
    while True:
        try:
            pid: int = await ask(database)
        except DatabaseRefused as refused:
            assert refused.code == "X_DB_UNREACHABLE"  # noqa: PT017  (while it recovers it says so)
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        else:
            return pid


def test_connections_that_were_ended_cost_no_query(lab: Lab) -> None:
    """Neither one query that finds several of them, nor several at once."""

    async def asked(times: int) -> int:
        async with opened(lab, connections=3) as database:
            before = set(await asyncio.gather(*(ask(database, f"{PID}, pg_sleep(0.1)") for _ in range(3))))
            with lab.admin() as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'nonsuch db.query'"
                )
            found = await asyncio.gather(*(ask(database) for _ in range(times)))
            return len(before & set(found))

    assert [ran(asked(times)) for times in (1, 3)] == [0, 0]


def test_a_silent_server_is_given_up(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readonly, "_SLACK", 0.1)

    async def asked() -> tuple[DatabaseRefused, float, int]:
        async with opened(lab, seconds=0.3, connect_seconds=0.5) as database:
            pid = await ask(database)
            os.kill(pid, signal.SIGSTOP)
            began = time.monotonic()
            try:
                refused = await _refused(database)
                return refused, time.monotonic() - began, await ask(database)
            finally:
                os.kill(pid, signal.SIGCONT)

    refused, took, _ = ran(asked())
    assert (refused.code, refused.cause) == ("X_DB_UNREACHABLE", "the database does not answer: it is silent")
    assert took < 3


def test_where_nothing_listens_it_is_told_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(DatabaseRefused, match="refused") as caught:
        ran(ReadOnly(f"host=127.0.0.1 port={port} password=secret-word").query(Asked("SELECT 1", READS)))
    assert caught.value.code == "X_DB_UNREACHABLE"
    assert "secret-word" not in str(caught.value)
    assert time.monotonic() - began < 2


def test_who_listens_and_says_nothing_is_given_up() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        began = time.monotonic()
        database = ReadOnly(f"host=127.0.0.1 port={mute.getsockname()[1]}", seconds=0.2, connect_seconds=0.2)
        with pytest.raises(DatabaseRefused, match="does not answer"):
            ran(database.query(Asked("SELECT 1", READS)))
        assert time.monotonic() - began < 5


def test_when_all_connections_are_in_use_it_is_told(lab: Lab) -> None:
    async def asked() -> tuple[list[str], int]:
        async with opened(lab, connections=1, connect_seconds=0.2) as database:
            slow = asyncio.ensure_future(ask(database, "SELECT pg_sleep(1)"))
            await asyncio.sleep(0.1)
            refused = [(await _refused(database)).code for _ in range(2)]
            await slow
            return refused, await ask(database)

    codes, pid = ran(asked())
    assert codes == ["X_DB_BUSY", "X_DB_BUSY"]
    assert pid > 0


def test_no_more_connections_are_opened_than_there_may_be(lab: Lab) -> None:
    async def asked() -> int:
        async with opened(lab, connections=2) as database:
            return len(
                set(await asyncio.gather(*(ask(database, f"{PID}, pg_sleep(0.02)") for _ in range(20))))
            )

    assert ran(asked()) <= 2


def test_each_event_loop_has_connections_of_its_own(lab: Lab) -> None:
    database = ReadOnly(lab.of("postgres"), role=None)
    assert len({ran(ask(database)) for _ in range(3)}) == 3
    ran(database.close())
