"""A rate store that stops under load: nothing passes uncounted, and counting goes on once it is back."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

import psycopg
import pytest

from nonsuch import Limits, Rate, postgres_rate_limit_store, wsgi
from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.postgres.limits import SQL_LIMITS_TABLE, TABLE
from nonsuch.kernel.audit import Event, ToolCall

from ..mcp.live import LEGACY, MODERN, request
from ..mcp.stage import stage
from .environs import Answered, asked

PATIENCE: Final = 20.0
MANY: Final = Rate(1_000_000)


class Database:
    """A PostgreSQL that is stopped and started again, at one address."""

    def __init__(self, home: Path) -> None:
        self._home, self._socket, self._running = home, home / "at", ExitStack()
        self.address = f"postgresql://postgres@/postgres?host={quote(str(self._socket), safe='')}&port=5432"

    def start(self) -> None:
        """Start it, as it was left."""
        dsn = self._running.enter_context(embedded_postgres(self._home / "data"))
        (host,) = parse_qs(urlsplit(dsn).query)["host"]
        self._socket.unlink(missing_ok=True)
        self._socket.symlink_to(host)

    def stop(self) -> None:
        """End every session and stop."""
        self._running.close()

    def kill(self) -> None:
        """Have it die where it stands."""
        pid = int((self._home / "data" / "pgdata" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGKILL)
        self.stop()

    def run(self, statement: str) -> None:
        """Run a statement in a session of its own."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(statement.encode())


@pytest.fixture
def database() -> Generator[Database]:
    with tempfile.TemporaryDirectory(prefix="ns-") as home:
        Path(home).chmod(0o755)  # the server may run as another account
        held = Database(Path(home))
        held.start()
        held.run(SQL_LIMITS_TABLE)
        try:
            yield held
        finally:
            held.stop()


class World:
    """An app with one tool that counts its calls, counted by a store that can stop."""

    def __init__(self, database: Database) -> None:
        self.ran, self.events = list[int](), list[Event]()
        store = postgres_rate_limit_store(database.address, timeout_seconds=0.5)
        self.app = stage(
            self.run,
            rate_limits=Limits(MANY, MANY, MANY),
            rate_limit_store=store,
            on_audit=self.events.append,
        )
        self.serve = wsgi(self.app)

    def run(self) -> int:
        self.ran.append(1)
        return len(self.ran)

    def call(self, caller: str = "t") -> Answered:
        """Call the tool."""
        headers, body = request(MODERN, "tools/call", caller, name="t", arguments={})
        return asked(self.serve, "POST", "/mcp", headers, body)


@contextmanager
def under_load(world: World) -> Generator[list[tuple[float, Answered]]]:
    """Four callers without rest; what they were answered, and when."""
    answers, done = list[tuple[float, Answered]](), threading.Event()

    def caller() -> None:
        while not done.is_set():
            answers.append((time.monotonic(), world.call()))

    threads = [threading.Thread(target=caller) for _ in range(4)]
    for each in threads:
        each.start()
    try:
        yield answers
    finally:
        done.set()
        for each in threads:
            each.join()


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def told(answer: Answered) -> tuple[int, Any]:
    return answer.status, json.loads(answer.body)["error"]["data"]["code"] if answer.status != 200 else None


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_store_that_stops_under_load_lets_nothing_pass_and_counts_again_once_it_is_back(
    database: Database, end: str
) -> None:
    world = World(database)
    with under_load(world) as answers:
        until(lambda: len(answers) > 20)
        getattr(database, end)()
        down = len(answers)
        time.sleep(1.5)
        until(lambda: len(answers) > down + 12)
        ran, began = len(world.ran), time.monotonic()
        time.sleep(0.5)
        assert len(world.ran) == ran
        until(lambda: [at > began for at, _ in answers].count(True) > 4)
        seen = [told(answer) for at, answer in answers if at > began]
        assert set(seen) == {(503, "X_RATE_STORE_FAILED")}
        database.start()
        again = time.monotonic()
        until(lambda: len(world.ran) > ran + 20)
        assert time.monotonic() - again < 10
    counted = Counter(told(answer) for _, answer in answers)
    assert set(counted) == {(200, None), (503, "X_RATE_STORE_FAILED")}
    assert counted[200, None] == len(world.ran)
    assert {dict(each.headers).get("retry-after") for _, each in answers if each.status == 503} == {"1"}
    world.serve.close()
    calls = Counter((each.outcome, each.code) for each in world.events if isinstance(each, ToolCall))
    refused = [each for each in world.events if not isinstance(each, ToolCall)]
    assert calls["ok", None] == counted[200, None]
    assert calls["rate-limited", "X_RATE_STORE_FAILED"] + len(refused) == counted[503, "X_RATE_STORE_FAILED"]
    assert {(each.kind, getattr(each, "reason", None)) for each in refused} <= {
        ("auth-refused", "store-failed")
    }


def test_a_store_that_hangs_is_not_waited_for(database: Database) -> None:
    world = World(database)
    assert world.call().status == 200
    with psycopg.connect(database.address) as blocker:
        blocker.execute(f"lock table {TABLE} in access exclusive mode".encode())
        began = time.monotonic()
        assert told(world.call()) == (503, "X_RATE_STORE_FAILED")
        assert time.monotonic() - began < 3
        assert len(world.ran) == 1
        blocker.rollback()
    until(lambda: world.call().status == 200)
    world.serve.close()


@pytest.mark.parametrize("revision", [*LEGACY, MODERN])
def test_before_the_store_was_ever_there_nothing_passes(database: Database, revision: str) -> None:
    world = World(database)
    database.stop()
    headers, body = request(revision, "tools/list")
    assert told(asked(world.serve, "POST", "/mcp", headers, body)) == (503, "X_RATE_STORE_FAILED")
    database.start()
    until(lambda: asked(world.serve, "POST", "/mcp", headers, body).status == 200)
    world.serve.close()


def test_a_failure_that_nobody_counts_is_told_nothing_of_its_token(database: Database) -> None:
    world = World(database)
    assert world.call("nobody knows").status == 401
    database.run(f"drop table {TABLE}")
    assert {told(world.call(caller)) for caller in ("nobody knows", "t")} == {(503, "X_RATE_STORE_FAILED")}
    world.serve.close()
