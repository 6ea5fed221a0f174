"""What counting a request in PostgreSQL costs, beside `select 1` by the same driver in the same run.

The server is the embedded one, on a unix socket.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from itertools import count
from statistics import median
from typing import Any, Final, cast

import psycopg

from nonsuch import Rate, postgres_rate_limit_store
from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.postgres.limits import SQL_LIMITS_TABLE, PostgresRateStore

from .blocks import Lane, Plan, Sample, Series, interleave
from .report import Row, at_least, at_most

RATE: Final = Rate(1_000_000)
KEYS: Final = 1_000
CALLERS: Final = 8
Once = Callable[[int], Awaitable[object]]


def alone(runner: asyncio.Runner, once: Once) -> Lane:
    """One caller, who sends the next request when the last is answered."""

    async def run(operations: int) -> Sample:
        taken, cpu, began = list[float](), time.process_time(), time.perf_counter()
        for number in range(operations):
            before = time.perf_counter()
            await once(number)
            taken.append(time.perf_counter() - before)
        return Sample(
            operations, time.perf_counter() - began, time.process_time() - cpu, median(taken), max(taken)
        )

    return lambda operations: runner.run(run(operations))


def crowd(runner: asyncio.Runner, once: Callable[[int, int], Awaitable[object]]) -> Lane:
    """Eight callers at once; each is told its number and its turn."""

    async def run(operations: int) -> Sample:
        async def caller(who: int) -> None:
            for turn in range(operations // CALLERS + 1):
                await once(who, turn)

        cpu, began = time.process_time(), time.perf_counter()
        await asyncio.gather(*map(caller, range(CALLERS)))
        made = CALLERS * (operations // CALLERS + 1)
        return Sample(made, time.perf_counter() - began, time.process_time() - cpu)

    return lambda operations: runner.run(run(operations))


def measure(plan: Plan) -> Iterator[tuple[str, dict[str, Series]]]:
    """The lanes in turns, on each kind of event loop."""
    with embedded_postgres() as address, psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SQL_LIMITS_TABLE.encode())
        for loop in ("asyncio", "uvloop"):
            with _lanes(address, loop) as made:
                yield loop, interleave(made, plan)


@contextmanager
def _lanes(address: str, loop: str) -> Generator[dict[str, Lane]]:
    """What runs on one kind of event loop: the driver alone, its statement, the store."""
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner(loop_factory=_factory(loop)))
        connection = runner.run(psycopg.AsyncConnection[Any].connect(address, autocommit=True))
        stack.callback(lambda: runner.run(connection.close()))
        store = postgres_rate_limit_store(address, connections=CALLERS)
        stack.callback(lambda: runner.run(store.close()))
        fresh = count()

        async def nothing(_number: int) -> object:
            return await (await connection.execute("select 1", prepare=True)).fetchone()

        statement = _statement(store, connection)
        yield {
            f"{loop}: select 1": alone(runner, nothing),
            f"{loop}: the statement": alone(runner, statement),
            f"{loop}: take": alone(runner, lambda number: store.take(f"k{number % KEYS}", RATE, 1)),
            f"{loop}: look": alone(runner, lambda number: store.take(f"k{number % KEYS}", RATE, 0)),
            f"{loop}: 8 callers, one key": crowd(runner, lambda _who, _turn: store.take("hot", RATE, 1)),
            f"{loop}: 8 callers, a key each": crowd(runner, lambda who, _turn: store.take(f"{who}", RATE, 1)),
            f"{loop}: 8 callers, new keys": crowd(
                runner, lambda _who, _turn: store.take(f"n{next(fresh)}", RATE, 1)
            ),
        }


def _statement(store: PostgresRateStore, connection: psycopg.AsyncConnection[Any]) -> Once:
    """The statement of the store on a connection of its own: what is left is what the store adds."""
    keys = [sha256(f"s{number}".encode()).digest() for number in range(KEYS)]
    text: bytes = vars(store)["_take"]

    async def once(number: int) -> object:
        given = {"key": keys[number % KEYS], "cost": RATE.interval, "ahead": RATE.window - RATE.interval}
        return await (await connection.execute(text, given, prepare=True)).fetchone()

    return once


def _factory(loop: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if loop == "asyncio":
        return None
    import uvloop

    return cast("Callable[[], asyncio.AbstractEventLoop]", uvloop.new_event_loop)


def rows(found: dict[str, Series], loop: str) -> Iterator[Row]:
    """The figures of one event loop beside their bars."""
    base = found[f"{loop}: select 1"].p50

    def times(lane: str) -> float:
        return found[f"{loop}: {lane}"].p50 / base

    bar = at_most(2.2)
    yield Row(f"{loop}: the statement alone, p50 to `select 1`", times("the statement"), bar, bar)
    yield Row(f"{loop}: one request counted, p50 to `select 1`", times("take"), None, bar)
    yield Row(f"{loop}: one request looked at, p50 to `select 1`", times("look"), None, bar)
    hot, spread = (found[f"{loop}: 8 callers, {keys}"].rate for keys in ("one key", "a key each"))
    yield Row(f"{loop}: 8 callers on one key to 8 keys", hot / spread, at_least(0.8), at_least(0.8))
    fresh = found[f"{loop}: 8 callers, new keys"].rate
    yield Row(f"{loop}: 8 callers on one key to new keys", hot / fresh, None, at_least(0.8))
