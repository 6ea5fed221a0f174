"""What the layers of `db.query` cost over a bare query of a pool, on a unix socket; one caller at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from itertools import count
from typing import Any

import psycopg
import uvloop
from psycopg_pool import AsyncConnectionPool

from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.postgres.readonly import Asked, ReadOnly
from nonsuch.adapters.edge.postgres.readonly_grant import Wish, grant_readonly
from nonsuch.adapters.edge.postgres.readonly_live import LiveCheck
from nonsuch.adapters.edge.sql_guard import Guard, guard

from .blocks import Lane, Plan, Sample, Series, interleave

TEXT = "SELECT id, name, email FROM customers ORDER BY id LIMIT 10"
BARE, LAYERS, LIVE, WHOLE = "bare", "layers", "layers and live catalogue", "guard and all layers"
NEW = "guard and all layers, a new text each time"
SMALL = (
    "SELECT c.id, c.name, count(*) AS n, sum(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id"
    " WHERE o.status = 'paid' AND c.region = 'north' GROUP BY c.id, c.name ORDER BY 4 DESC LIMIT 10"
)
GUARDED = {
    "guard alone, 200 bytes": SMALL,
    "guard alone, 1 KB": " UNION ALL ".join([f"SELECT * FROM ({SMALL}) q"] * 4),  # noqa: S608  (for the bench)
}
_TABLE = (
    "CREATE TABLE customers AS SELECT g AS id, 'name ' || g AS name, g || '@example.test' AS email"
    " FROM generate_series(1, 1000) g; ALTER TABLE customers ADD PRIMARY KEY (id); ANALYZE customers"
)


def measure(plan: Plan) -> dict[str, Series]:
    """The lanes in turns, on a server of their own."""
    with embedded_postgres() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(_TABLE)
            assert grant_readonly(connection, Wish()).whole
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            asking, close = runner.run(_opened(address))
            lanes = {name: _lane(runner, once) for name, once in asking.items()}
            series = interleave(lanes, plan)
            runner.run(close())
            return series


Asking = Callable[[], Awaitable[object]]


async def _opened(address: str) -> tuple[dict[str, Asking], Callable[[], Coroutine[Any, Any, None]]]:
    pool = AsyncConnectionPool(address, min_size=1, max_size=2, open=False, kwargs={"autocommit": True})
    await pool.open(wait=True)
    asked = guard()
    layers, live = ReadOnly(address), ReadOnly(address, check=LiveCheck(asked))
    facts, numbers = asked.judge(TEXT).facts, count()

    async def bare() -> object:
        async with pool.connection() as connection:
            return await (await connection.execute(TEXT)).fetchall()

    async def whole() -> object:
        told = await asked.judge_async(TEXT)
        return await live.query(Asked(TEXT, told.facts))

    async def new() -> object:
        text = f"{TEXT} -- {next(numbers)}"
        told = await asked.judge_async(text)
        return await live.query(Asked(text, told.facts))

    async def close() -> None:
        await pool.close()
        await layers.close()
        await live.close()

    asking: dict[str, Asking] = {
        BARE: bare,
        LAYERS: lambda: layers.query(Asked(TEXT, facts)),
        LIVE: lambda: live.query(Asked(TEXT, facts)),
        WHOLE: whole,
        NEW: new,
        **{name: partial(_judged, asked, text) for name, text in GUARDED.items()},
    }
    return asking, close


async def _judged(asked: Guard, text: str) -> object:
    """As the first time that a guard sees the text; what the policies say of its names is remembered."""
    return await Guard(asked.catalogue, asked.policies, asked.own).judge_async(text)


def _lane(runner: asyncio.Runner, once: Asking) -> Lane:
    async def block(operations: int) -> list[float]:
        taken: list[float] = []
        for _ in range(operations):
            start = time.perf_counter()
            await once()
            taken.append(time.perf_counter() - start)
        return sorted(taken)

    def run(operations: int) -> Sample:
        began, used = time.perf_counter(), time.process_time()
        taken = runner.run(block(operations))
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
        return Sample(operations, seconds, cpu, taken[len(taken) // 2], taken[len(taken) * 99 // 100])

    return run
