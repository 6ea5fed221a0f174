"""Counting in PostgreSQL: exact over processes, by the arithmetic of the kernel, and naming nobody."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg_pool import AsyncConnectionPool

from nonsuch import Open, Rate, Verdict, postgres_rate_limit_store
from nonsuch.adapters.edge.postgres import limits
from nonsuch.adapters.edge.postgres.limits import SQL_LIMITS_TABLE, TABLE, PostgresRateStore
from nonsuch.kernel.meter import take

from ..mcp.stage import stage
from .task_shelves import server

T = TypeVar("T")
RATE: Final = Rate(10, 3_600)
_numbers: Final = count()


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    with server() as held:
        yield held


def sql(address: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements; the rows of the last one."""
    with psycopg.connect(address, autocommit=True) as connection:
        *before, last = statements
        for each in before:
            connection.execute(each.encode())
        cursor = connection.execute(last.encode())
        return cursor.fetchall() if cursor.description else []


def fresh_table(address: str) -> str:
    """The name of a new table."""
    table = f"{TABLE}_{next(_numbers)}"
    sql(address, SQL_LIMITS_TABLE.replace(TABLE, table))
    return table


def use(store: PostgresRateStore, using: Callable[[PostgresRateStore], Awaitable[T]]) -> T:
    """Use a store on an event loop, and close it."""

    async def whole() -> T:
        try:
            return await using(store)
        finally:
            await store.close()

    return asyncio.run(whole())


# Exact


def test_of_a_thousand_callers_at_once_ten_pass(address: str) -> None:
    async def using(store: PostgresRateStore) -> list[Verdict]:
        return list(await asyncio.gather(*(store.take("k", RATE, 1) for _ in range(1_000))))

    store = postgres_rate_limit_store(address, fresh_table(address), timeout_seconds=30)
    assert sum(verdict.passes for verdict in use(store, using)) == 10


def test_of_a_thousand_callers_in_two_processes_ten_pass(address: str) -> None:
    table = fresh_table(address)
    command = [sys.executable, str(Path(__file__).with_name("counting.py")), address, table, "500", "10"]
    callers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for each in callers:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    passed = [int(said[0]) for said in [each.communicate("go\n", timeout=60) for each in callers]]
    assert sum(passed) == 10


# The arithmetic is the kernel's, whatever the database's clock does

CLOCK: Final = (
    "create schema if not exists clock",
    "create table if not exists clock.reads (micros bigint)",
    "delete from clock.reads",
    "insert into clock.reads values (0)",
    "create or replace function clock.statement_timestamp() returns timestamptz language sql stable as "
    "$$ select timestamptz 'epoch' + micros * interval '1 microsecond' from clock.reads $$",
)


@pytest.fixture(scope="module")
def clocked(address: str) -> str:
    """The address of the same server, for connections whose clock reads what a table says."""
    sql(address, *CLOCK)
    return f"{address}&options=-csearch_path%3Dclock%2Cpg_catalog%2Cpublic"


def set_clock(address: str, micros: int) -> None:
    sql(address, f"update clock.reads set micros = {micros}")  # noqa: S608  (a number of ours)


moves = st.lists(
    st.tuples(st.integers(-5_000_000, 9_000_000), st.sampled_from("ab"), st.integers(0, 4)),
    min_size=1,
    max_size=25,
)


@settings(max_examples=20, deadline=None)
@given(moves)
def test_a_row_is_a_bucket_of_the_kernels(
    address: str, clocked: str, trace: list[tuple[int, str, int]]
) -> None:
    rate, held, at = Rate(3, 9), dict[str, int](), 1_700_000_000_000_000

    async def using(store: PostgresRateStore) -> None:
        nonlocal at
        for move, key, counted in trace:
            at += move
            set_clock(address, at)
            state, expected = take(held.get(key), at * 1_000, rate, count=counted)
            if 0 < counted <= rate.limit:
                held[key] = state
            assert await store.take(key, rate, counted) == expected, (key, counted)

    table = fresh_table(address)
    use(postgres_rate_limit_store(clocked, table, connections=1, timeout_seconds=30), using)
    rows = sql(address, f"select full_at from {table} order by full_at")  # noqa: S608  (a table of ours)
    assert {row[0] for row in rows} <= set(held.values())


def test_purging_takes_what_is_full_and_leaves_what_is_not(address: str, clocked: str) -> None:
    table, rate = fresh_table(address), Rate(10, 100)

    async def using(store: PostgresRateStore) -> list[list[bytes]]:
        kept: list[list[bytes]] = []
        set_clock(address, 1_000_000_000)
        await store.take("soon", rate, 1)
        await store.take("late", rate, 10)
        for seconds in (9, 10, 99, 100):
            set_clock(address, 1_000_000_000 + seconds * 1_000_000)
            await store.purge()
            kept.append([row[0] for row in sql(address, f"select key from {table}")])  # noqa: S608  (ours)
        return kept

    store = postgres_rate_limit_store(clocked, table, timeout_seconds=30)
    assert [len(keys) for keys in use(store, using)] == [2, 1, 1, 0]


def test_a_store_purges_by_itself(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PURGE_SECONDS", 0)
    table = fresh_table(address)

    async def using(store: PostgresRateStore) -> None:
        await store.take("one", Rate(10), 1)

    sql(address, f"insert into {table} values ('old', 5, true)")  # noqa: S608  (a table of ours)
    use(postgres_rate_limit_store(address, table), using)
    assert len(sql(address, f"select 1 from {table}")) == 1  # noqa: S608  (the same)


# What the table tells


def test_a_row_names_nobody_and_costs_the_disk_nothing(address: str) -> None:
    table, key = fresh_table(address), "write|robot of ann, 192.0.2.1"

    async def using(store: PostgresRateStore) -> None:
        await store.take(key, RATE, 1)

    use(postgres_rate_limit_store(address, table), using)
    ((told, size),) = sql(address, f"select t::text, octet_length(key) from {table} t")  # noqa: S608  (ours)
    assert size == 32
    for name in ("robot", "ann", "192.0.2.1"):
        assert name not in told
        assert name.encode().hex() not in told
    assert sql(address, f"select relpersistence from pg_class where relname = '{table}'") == [("u",)]  # noqa: S608  (ours)


def test_the_table_can_be_made_twice_and_be_in_a_schema(address: str) -> None:
    made = SQL_LIMITS_TABLE.replace(TABLE, "counts.rates")
    sql(address, "create schema counts", made, made)

    async def using(store: PostgresRateStore) -> Verdict:
        return await store.take("k", RATE, 1)

    assert use(postgres_rate_limit_store(address, "counts.rates"), using).passes
    assert len(sql(address, "select 1 from counts.rates")) == 1


# Connections


def test_a_pool_of_the_apps_own_is_used_and_left_open(address: str) -> None:
    table = fresh_table(address)

    async def scene() -> tuple[bool, tuple[Any, ...] | None]:
        pool = AsyncConnectionPool[Any](address, open=False, min_size=1, kwargs={"autocommit": True})
        async with pool:
            store = postgres_rate_limit_store(pool, table)
            verdict = await store.take("k", RATE, 1)
            await store.close()
            async with pool.connection() as connection:
                return verdict.passes, await (await connection.execute("select 1")).fetchone()

    assert asyncio.run(scene()) == (True, (1,))


def test_a_pool_whose_connections_do_not_autocommit_counts_all_the_same(address: str) -> None:
    """Or what it counted would be rolled back with each connection that is given back."""
    table = fresh_table(address)

    async def scene() -> list[bool]:
        async with AsyncConnectionPool[Any](address, open=False, min_size=1, max_size=2) as pool:
            store = postgres_rate_limit_store(pool, table, connections=2)
            seen = [(await store.take("k", RATE, 1)).passes for _ in range(12)]
            await store.close()
            return seen

    assert asyncio.run(scene()) == [True] * 10 + [False] * 2
    assert len(sql(address, f"select 1 from {table}")) == 1  # noqa: S608  (a table of ours)


def test_who_waits_in_vain_is_told_in_time_and_leaves_nothing_behind(address: str) -> None:
    """More callers than connections, a table that nobody may touch, and then it may be touched again."""
    table = fresh_table(address)

    async def using(store: PostgresRateStore) -> tuple[list[object], float, Verdict]:
        assert (await store.take("k", RATE, 1)).passes
        with psycopg.connect(address) as blocker:
            blocker.execute(f"lock table {table} in access exclusive mode".encode())
            began = time.monotonic()
            callers = (store.take("k", RATE, 1) for _ in range(40))
            told = await asyncio.gather(*callers, return_exceptions=True)
            lasted = time.monotonic() - began
            blocker.rollback()
        while True:
            try:
                return [*told], lasted, await store.take("other", RATE, 1)
            except TimeoutError:
                await asyncio.sleep(0.05)

    store = postgres_rate_limit_store(address, table, connections=2, timeout_seconds=0.3)
    told, lasted, after = use(store, using)
    assert {type(each) for each in told} == {TimeoutError}
    assert (lasted < 1.5, after.passes) == (True, True)
    assert not vars(store)["_queue"]


def test_a_caller_who_leaves_takes_nobody_along(address: str) -> None:
    table = fresh_table(address)

    async def using(store: PostgresRateStore) -> list[bool]:
        tasks = [asyncio.create_task(store.take("k", RATE, 1)) for _ in range(6)]
        await asyncio.sleep(0)
        for each in tasks[::2]:
            each.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(each, asyncio.CancelledError) for each in done] == [True, False] * 3
        return [(await store.take("k", RATE, 1)).passes for _ in range(12)]

    passed = use(postgres_rate_limit_store(address, table, connections=1, timeout_seconds=5), using)
    assert 4 <= passed.count(True) <= 7  # what was begun for those who left may be counted, and no more


def test_a_server_that_is_gone_without_a_word_is_found_out(address: str) -> None:
    seen = list[dict[str, str]]()

    async def using(store: PostgresRateStore) -> None:
        await store.take("k", RATE, 1)
        async with vars(store)["_pool"].connection() as connection:
            seen.append(connection.info.get_parameters())

    use(postgres_rate_limit_store(address, fresh_table(address)), using)
    assert seen[0]["tcp_user_timeout"] == "10000"


def nothing() -> str:
    return "nothing"


def test_a_store_is_closed_with_its_app_and_opens_again(address: str) -> None:
    store = postgres_rate_limit_store(address, fresh_table(address))

    def sessions() -> int:
        return (
            len(sql(address, "select 1 from pg_stat_activity where query like '%nonsuch_rate_limits_%'")) - 1
        )

    async def scene() -> tuple[int, int]:
        async with Open(stage(nothing, rate_limit_store=store)):
            await store.take("k", RATE, 1)
            during = sessions()
        return during, sessions()

    for _ in range(2):
        during, after = asyncio.run(scene())
        assert during > 0
        assert after == 0
