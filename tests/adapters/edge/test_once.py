"""How often a keyed call runs where processes race and die: each store's own rule, on a database of its own.

In memory a record lives as long as its process. In PostgreSQL what began is never run again; and what an
atomic action did is there exactly once, because its record is committed with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from itertools import count
from typing import Any, Final

import httpx
import psycopg
import pytest
from psycopg import sql

from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.postgres.idempotency import SQL_IDEMPOTENCY_TABLE, TABLE

from ...conformance.environment import ROOT

ROUNDS: Final = 1_000 if os.environ.get("NONSUCH_PROFILE") == "review" else 24
SEED: Final = "1"
AT_ONCE: Final = 200
IN_PROGRESS: Final = "X_IDEMPOTENCY_IN_PROGRESS"
_numbers: Final = count()


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    with embedded_postgres() as held:
        yield held


@pytest.fixture
def table(address: str) -> str:
    return made(address)


def made(address: str) -> str:
    """Make a table of records, and beside it one of what was paid."""
    name = f"{TABLE}_{next(_numbers)}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SQL_IDEMPOTENCY_TABLE.replace(TABLE, name).encode())
        connection.execute(sql.SQL("create table {} (order_id text)").format(paid_in(name)))
    return name


def paid_in(table: str) -> sql.Identifier:
    return sql.Identifier(f"{table}_paid")


def paid(address: str, table: str) -> Mapping[str, int]:
    """How often each order was paid."""
    query = sql.SQL("select order_id, count(*) from {} group by 1").format(paid_in(table))
    with psycopg.connect(address) as connection:
        return Counter(dict(connection.execute(query).fetchall()))


def command(*given: str) -> list[str]:
    return [sys.executable, "-m", "tests.adapters.edge.paying", *given]


# processes that race


def started(address: str, table: str) -> subprocess.Popen[str]:
    given = command("serve", address, table)
    return subprocess.Popen(given, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def two(address: str) -> Generator[tuple[str, str, str]]:
    """Two servers of one app, and their table."""
    table = made(address)
    with started(address, table) as one, started(address, table) as other:
        assert one.stdout is not None
        assert other.stdout is not None
        yield one.stdout.readline().strip(), other.stdout.readline().strip(), table
        for each in (one, other):
            each.communicate(timeout=30)


async def at_once(urls: Sequence[str], path: str) -> list[tuple[int, str]]:
    """Send one call to both processes many times at once; return each status, and the code or the order."""
    limits = httpx.Limits(max_connections=AT_ONCE)
    headers = {"authorization": "Bearer t", "idempotency-key": '"k"'}

    async def send(client: httpx.AsyncClient, number: int) -> tuple[int, str]:
        answer = await client.post(f"{urls[number % 2]}/api/{path}", json={"orderId": path}, headers=headers)
        told = answer.json()
        return answer.status_code, str(told.get("code", told.get("orderId")))

    async with httpx.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:
        return list(await asyncio.gather(*(send(client, number) for number in range(AT_ONCE))))


@pytest.mark.parametrize("path", ["pay", "payAtomic"])
def test_of_two_hundred_at_once_to_two_processes_one_runs(
    address: str, two: tuple[str, str, str], path: str
) -> None:
    *urls, table = two
    told = asyncio.run(at_once(urls, path))
    assert set(told) <= {(200, path), (409, IN_PROGRESS)}
    assert (200, path) in told
    assert set(asyncio.run(at_once(urls, path))) == {(200, path)}
    assert paid(address, table)[path] == 1


# processes that die


def rounds(address: str, table: str, rule: str, many: int) -> list[Any]:
    """Each round: a call that dies at some moment, and the same call again, in another process."""
    done = subprocess.run(
        command("crash", address, table, rule, str(many), SEED),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == many
    assert {each["dies"] for each in told} == {"never", "before", "within", "recorded", "whenever"}
    return told


# What a named moment leaves behind, by the rule of the store: (told first, told then, times paid).
LEFT: Final[Mapping[str, Mapping[str, tuple[str, str, int]]]] = {
    "memory": {
        "never": ("ok", "ok", 2),
        "before": ("", "ok", 1),
        "within": ("", "ok", 2),
        "recorded": ("", "ok", 2),
    },
    "durable": {
        "never": ("ok", "ok", 1),
        "before": ("", IN_PROGRESS, 0),
        "within": ("", IN_PROGRESS, 1),
        "recorded": ("", "ok", 1),
    },
    "atomic": {
        "never": ("ok", "ok", 1),
        "before": ("", "ok", 1),
        "within": ("", "ok", 1),
        "recorded": ("", "ok", 1),
    },
}
ONCE: Final = {("ok", "ok", 1), ("", "ok", 1)}
UNKNOWN: Final = {("", IN_PROGRESS, 0), ("", IN_PROGRESS, 1)}  # never run again, and never said to be done
AT_ANY_MOMENT: Final = {"durable": ONCE | UNKNOWN, "atomic": ONCE}


@pytest.mark.parametrize("rule", LEFT)
def test_what_a_killed_process_leaves_is_what_its_store_says(address: str, table: str, rule: str) -> None:
    told = rounds(address, table, rule, 8 if rule == "memory" else ROUNDS)
    times = paid(address, table)
    left = [(each["dies"], (each["first"], each["last"], times[each["order"]])) for each in told]
    named = [each for each in left if each[0] != "whenever"]
    assert set(named) == set(LEFT[rule].items())
    if rule in AT_ANY_MOMENT:
        assert {each for _, each in left} <= AT_ANY_MOMENT[rule]
