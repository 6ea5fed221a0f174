"""Whatever is killed and whoever races: one decision, one run, and no approval that comes to nothing unsaid.

Two processes on one PostgreSQL; then a process that is killed at random points of asking, approving, running
and answering. What the handler did is read from a ledger that it writes itself, and what is on the disk from
the bytes of the data directory. 20 rounds by default, 200 under the review profile.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from nonsuch import postgres_confirmation_store
from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.postgres.confirmations import SQL_MCP_CONFIRMATIONS_TABLE, TABLE
from nonsuch.adapters.edge.run import Running

from ..adapters.edge.shop import TTL, Shop, call, code_of
from .confirming_process import SENTINEL, sent

ROUNDS: Final = 200 if os.environ.get("NONSUCH_PROFILE") == "review" else 20
ROOT: Final = Path(__file__).resolve().parents[2]
CONTROL: Final = "c0ntrol-that-must-be-found"
CONTESTED, PENDING = "X_MCP_CONFIRMATION_CONTESTED", "X_MCP_CONFIRMATION_PENDING"
EXPIRED, INTERRUPTED = "X_MCP_CONFIRMATION_EXPIRED", "X_INTERRUPTED"


@dataclass(frozen=True)
class Database:
    """A server of its own, and where its files are."""

    address: str
    files: Path


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Generator[Database]:
    folder = tmp_path_factory.mktemp("data") / "files"
    with embedded_postgres(folder) as address:
        yield Database(address, folder)


def fresh(database: Database, name: str) -> str:
    """Make a table and return its name."""
    table = f"{TABLE}_{name}"
    with psycopg.connect(database.address, autocommit=True) as connection:
        connection.execute(SQL_MCP_CONFIRMATIONS_TABLE.replace(TABLE, table).encode())
    return table


class Process:
    """An app in a process of its own."""

    def __init__(self, database: Database, table: str, ledger: Path) -> None:
        program = [sys.executable, "-m", "tests.properties.confirming_process"]
        self.process = subprocess.Popen(
            [*program, database.address, table, str(ledger)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def rest(self) -> Iterator[Any]:
        """What it still said before it died; a last line may be cut."""
        assert self.process.stdout is not None
        for line in self.process.stdout.read().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                return

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def processes(database: Database, table: str, ledger: Path, number: int = 1) -> Generator[list[Process]]:
    started = [Process(database, table, ledger) for _ in range(number)]
    try:
        assert [each.read() for each in started] == [["ready"]] * number
        yield started
    finally:
        for each in started:
            each.close()


def ran(ledger: Path) -> Counter[int]:
    """How often the handler ran for each amount."""
    return Counter(int(line) for line in ledger.read_text().splitlines()) if ledger.exists() else Counter()


# races


@pytest.mark.parametrize("attempt", range(3))
def test_of_fifty_decisions_and_fifty_retries_over_two_processes_one_counts(
    database: Database, tmp_path: Path, attempt: int
) -> None:
    ledger, table = tmp_path / "ledger", fresh(database, f"race{attempt}")
    with processes(database, table, ledger, 2) as pair:
        for each in pair:
            each.tell("ask 25")
        [asked] = each_once = {tuple(told) for each in pair for [told] in [each.read()] for told in told}
        assert len(each_once) == 1
        assert asked[0] == PENDING
        for each in pair:
            each.tell(f"approve {asked[1]} 25")
        decided = Counter(code for each in pair for [codes] in [each.read()] for code in codes)
        assert decided == {"ok": 1, "X_MCP_CONFIRMATION_DECIDED": 49}
        for each in pair:
            each.tell("call 25")
        told = Counter(code for each in pair for [codes] in [each.read()] for code, _ in codes)
    assert told["ok"] == 1
    assert set(told) <= {"ok", CONTESTED, PENDING}
    assert ran(ledger) == {5: 1}


# crashes


def test_no_kill_loses_an_approval_runs_it_twice_or_leaves_an_argument_on_disk(
    database: Database, tmp_path: Path
) -> None:
    ledger, table = tmp_path / "ledger", fresh(database, "crash")
    chance, first, points = random.Random(7), 0, Counter[str]()  # noqa: S311  (when to kill is no secret)
    for _ in range(ROUNDS):
        with processes(database, table, ledger) as (one,):
            one.tell(f"cycle {first}")
            said = [one.read() for _ in range(chance.randrange(8))]
            time.sleep(chance.uniform(0, 0.03 if said else 0.5))
            one.kill()
            said += one.rest()
        steps = {amount: step for step, amount, *_ in said}
        amounts = range(first, max(steps, default=first) + 2)
        points.update(after_a_crash(database, table, ledger, {each: steps.get(each, "") for each in amounts}))
        first = amounts[-1] + 1
    assert set(ran(ledger).values()) <= {1}
    assert points.keys() >= {"nothing or asked", "told", "approved"}  # kills fell at every point
    at_rest(database)


def after_a_crash(database: Database, table: str, ledger: Path, steps: dict[int, str]) -> Iterator[str]:
    """Come back as the agent does, with the very same calls: now, and after everything has lapsed."""
    before = ran(ledger)
    shop = Shop(postgres_confirmation_store(database.address, table), ledger=ledger, now=datetime.now(UTC))

    async def using() -> tuple[dict[int, str], dict[int, str]]:
        async with shop.open() as running:
            now = {amount: await told(running, amount) for amount in steps}
            shop.now += TTL + TTL
            return now, {amount: await told(running, amount) for amount in steps}

    now, later = asyncio.run(using())
    runs = ran(ledger)
    for amount, step in steps.items():
        yield outcome(step, (before[amount], runs[amount], now[amount], later[amount]))


def outcome(step: str, met: tuple[int, int, str, str]) -> str:
    """Hold what was met against the last thing that the killed process had said of it.

    ``met`` are the runs before and after the call came back, and what it was told, then and much later.
    """
    before, after, now, later = met
    waits = (before, after, now, later) == (0, 0, PENDING, EXPIRED)
    used = (before, after, now, later) == (0, 1, "ok", PENDING)  # the approval still held
    cut = before == after <= 1 and (now, later) == (CONTESTED, INTERRUPTED)  # begun, and said so, once
    lost = (before, after, now, later) == (1, 1, PENDING, EXPIRED)  # it ended, and only the answer was lost
    match step:
        case "ran":
            assert lost, met
            return "told"
        case "approved":
            assert used or cut or lost, met
            return "approved"
        case _:
            assert waits or (step == "asked" and used), met
            return "nothing or asked"


async def told(running: Running, amount: int) -> str:
    return code_of(await call(running, sent=sent(amount)))


def at_rest(database: Database) -> None:
    """No file of the server holds an argument, its log of writes included; a control shows it would."""
    with psycopg.connect(database.address, autocommit=True) as connection:
        connection.execute("create table if not exists control (text text)")
        connection.execute("insert into control values (%s)", (CONTROL,))
        connection.execute("checkpoint")
    held = [(path, path.read_bytes()) for path in database.files.rglob("*") if path.is_file()]
    assert any("pg_wal" in str(path) and CONTROL.encode() in held for path, held in held)
    assert any("base" in str(path) and CONTROL.encode() in held for path, held in held)
    assert [path for path, bytes_ in held if SENTINEL.encode() in bytes_] == []
    assert any(b"decideConfirmation" in bytes_ or b"shop" in bytes_ for _, bytes_ in held)
