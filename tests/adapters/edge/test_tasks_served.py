"""Two processes of one app over one PostgreSQL: what one begins the other shows, answers and stops."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Generator
from typing import Any, Final

import pytest

from .task_server import LEASE_SECONDS, Server, running
from .task_shelves import fresh_table, server

PATIENCE: Final = 20.0
STOPPED: Final = "the server stopped before the work ended"


@pytest.fixture(scope="module")
def fleet() -> Generator[tuple[Server, Server]]:
    with server() as dsn:
        table = fresh_table(dsn)
        with running(dsn, table) as one, running(dsn, table) as other:
            yield one, other


@pytest.fixture
def mortal(fleet: tuple[Server, Server]) -> Generator[Server]:
    """Another process of the same app, to be ended by the test."""
    with running(fleet[0].dsn, fleet[0].table) as held:
        yield held


def until(looking: Callable[[], dict[str, Any]], *statuses: str) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE
    while (held := looking())["status"] not in statuses:
        assert time.monotonic() < deadline, held
        time.sleep(0.05)
    return held


def test_a_task_is_one_task_in_every_process(fleet: tuple[Server, Server]) -> None:
    one, other = fleet
    ident = one.begin("confirm")
    until(lambda: one.get(ident), "input_required")
    assert other.get(ident) == one.get(ident)
    assert other.ask("tasks/get", {"taskId": ident}, who="bob")["code"] == -32602
    assert other.update(ident, {"sure": {"action": "accept", "content": {"sure": "no boolean"}}})
    assert one.get(ident)["status"] == "input_required"
    other.update(ident, {"sure": {"action": "accept", "content": {"sure": True}}})
    done = until(lambda: other.get(ident), "completed")
    assert "'sure': True" in done["result"]["content"][0]["text"]
    assert one.get(ident) == done


def test_a_task_is_stopped_by_another_process(fleet: tuple[Server, Server]) -> None:
    one, other = fleet
    ident = one.begin("hold")
    assert one.says() == "holding"
    other.cancel(ident)
    assert one.get(ident)["status"] == "cancelled"
    assert one.says() == "stopped"


def test_a_long_work_outlives_many_leases(fleet: tuple[Server, Server]) -> None:
    one, other = fleet
    ident = one.begin("hold")
    time.sleep(2 * LEASE_SECONDS)
    assert other.get(ident)["status"] == "working"
    other.cancel(ident)
    assert [one.says(), one.says()] == ["holding", "stopped"]


def test_a_process_that_dies_leaves_no_task_working(fleet: tuple[Server, Server], mortal: Server) -> None:
    ident, asking = mortal.begin("hold"), mortal.begin("confirm")
    assert fleet[0].get(ident)["status"] == "working"
    mortal.process.kill()
    for each in (ident, asking):
        failed = until(lambda each=each: fleet[0].get(each), "failed")  # type: ignore[misc]  # its default
        assert failed["statusMessage"] == STOPPED
        assert (failed["error"]["code"], failed["error"]["data"]["code"]) == (-32603, "X_INTERRUPTED")
        assert fleet[1].get(each) == failed
        assert fleet[1].update(each, {"sure": {"action": "decline"}})["resultType"] == "complete"
        assert fleet[1].get(each) == failed


def test_a_process_that_is_stopped_says_so_of_its_tasks(fleet: tuple[Server, Server], mortal: Server) -> None:
    ident = mortal.begin("hold")
    assert mortal.says() == "holding"
    mortal.process.send_signal(signal.SIGTERM)
    assert mortal.says() == "stopped"
    mortal.process.wait(PATIENCE)
    held = fleet[0].get(ident)
    assert (held["status"], held["statusMessage"]) == ("failed", STOPPED)
