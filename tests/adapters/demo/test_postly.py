"""The demo app as a stranger runs it: one command, a real server, a real client, a real database."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from nonsuch import Agent, OpenSync
from nonsuch.adapters.demo.postly import db as tables
from nonsuch.adapters.demo.postly.app import postly
from nonsuch.adapters.demo.postly.models import OrgExport
from nonsuch.adapters.demo.postly.queries import export
from nonsuch.adapters.demo.postly.tokens import CALLERS, issue
from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.opening import RunningSync
from nonsuch.kernel.model import Failed, Ok, Outcome, PolicyDenied, Unconfirmed
from nonsuch.kernel.strict_json import Json

DEMO = [sys.executable, "-m", "nonsuch.adapters.demo.postly"]
PATIENCE = 60


def environment(**more: str) -> dict[str, str]:
    """The environment of the demo: an embedded server, whatever this machine's own settings are."""
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return {**kept, "PYTHONUNBUFFERED": "1", **more}


def demo(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEMO, *arguments],
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a PostgreSQL with prepared tables."""
    with embedded_postgres() as dsn:
        asyncio.run(tables.prepare(dsn))
        yield dsn


@pytest.fixture(scope="module")
def running(server: str) -> Iterator[RunningSync]:
    """The app, called in process."""
    with OpenSync(postly(server, issue())) as opened:
        yield opened


def agent_of(person: str) -> Agent:
    return next(each.agent for each in CALLERS if each.person == person)


def call(running: RunningSync, person: str, tool: str, arguments: dict[str, Json]) -> Outcome:
    """Call as a person's agent; what waits for a person is approved and called again."""
    outcome = running.invoke(agent_of(person), tool, arguments)
    if not isinstance(outcome, Unconfirmed):
        return outcome
    by = next(
        each.human for each in CALLERS if each.person == ("greta" if person in ("gil", "greta") else "ada")
    )
    approval: dict[str, Json] = {"id": outcome.ident, "decision": "approve", "arguments": arguments}
    assert isinstance(running.invoke(by, "decideConfirmation", approval, "http"), Ok)
    return running.invoke(agent_of(person), tool, arguments)


# The command.


@pytest.fixture(scope="module")
def tour() -> subprocess.CompletedProcess[str]:
    return demo("--once")


def test_the_tour_shows_the_three_outcomes_and_ends_well(tour: subprocess.CompletedProcess[str]) -> None:
    assert (tour.returncode, tour.stderr) == (0, "")
    editors = "getPost, listOrders, listPosts, publishPost, refundOrder"
    for line in (
        "   vera, viewer: getPost, listPosts",
        f"   eli, editor whose token lacks posts:write: {editors}",
        f"   edda, editor with posts:write: {editors}",
        "   -> isError X_FORBIDDEN: the post is published already",
        "   -> fix: choose a draft: call listPosts with status `draft`",
        "   post-2 in the database: draft",
        "   -> approved: refundOrder null",
        '   -> pending: refundOrder {"orderId": "order-2", "amountMinor": 1}',
    ):
        assert line in tour.stdout.splitlines()
    assert (
        "tool not found: publishPost - call tools/list to read the catalog this caller may use" in tour.stdout
    )
    assert (
        "tool not found: noSuchTool - call tools/list to read the catalog this caller may use" in tour.stdout
    )
    assert "-> code X_MCP_SCOPE_DENIED, scope posts:write\n   -> fix: ask for a token with" in tour.stdout
    assert re.search(r"^   post-2 in the database: published at \d{4}-", tour.stdout, re.MULTILINE)
    audited = [json.loads(line) for line in tour.stdout.splitlines() if line.startswith("   {")]
    assert [event["outcome"] for event in audited] == [
        "hidden",
        "hidden",
        "scope-denied",
        "policy-denied",
        "policy-denied",
        "policy-denied",
        "ok",
        "unconfirmed",
        "ok",
        "ok",
        "ok",
    ]


def test_the_tour_shows_no_token(tour: subprocess.CompletedProcess[str]) -> None:
    assert not re.search(r"Bearer|postly_[A-Za-z0-9_-]{16}", tour.stdout + tour.stderr)


def test_it_runs_again_on_the_same_data(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert [demo("--once", "--data", data).returncode for _ in range(2)] == [0, 0]


def test_it_uses_the_server_of_database_url(server: str) -> None:
    ran = demo("--once", DATABASE_URL=server)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_tour_that_comes_out_otherwise_ends_with_status_1(server: str) -> None:
    with psycopg.connect(server) as connection:
        connection.execute("update postly.posts set published_at = null where org = 'acme' and id = 'post-1'")
    ran = demo("--once", DATABASE_URL=server)
    told = (
        "the tour failed: a result that the model reads as an error: missing\nfix: read the step above it\n"
    )
    assert (ran.returncode, ran.stderr) == (1, told)
    assert not re.search(r"^5\. ", ran.stdout, re.MULTILINE)


def test_a_server_that_does_not_answer_is_said_without_its_password() -> None:
    ran = demo("--once", DATABASE_URL="postgresql://someone:sesame@127.0.0.1:1/none")
    assert ran.returncode == 1
    assert ran.stderr.startswith("PostgreSQL does not answer: ")
    assert "sesame" not in ran.stderr + ran.stdout


def test_a_taken_port_is_said_before_anything_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = demo("--once", "--port", port)
    told = f"port {port} on 127.0.0.1 is in use\nfix: --port with another number\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", told)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_it_serves_until_it_is_stopped(tmp_path: Path, number: signal.Signals, status: int) -> None:
    command = [*DEMO, "--port", "0", "--data", str(tmp_path)]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        shown = b""
        for line in running.stdout:
            shown += line
            if line.startswith(b"or: claude mcp add --transport http postly http://127.0.0.1:"):
                break
        running.send_signal(number)
        assert running.wait(PATIENCE) == status
        assert running.stderr is not None
        assert running.stderr.read() == b""
    settings = next(line for line in shown.decode().splitlines() if line.startswith("client configuration: "))
    entry = json.loads(settings.removeprefix("client configuration: "))["mcpServers"]["postly"]
    assert (entry["type"], list(entry["headers"])) == ("http", ["Authorization"])
    assert not (tmp_path / "pgdata" / "postmaster.pid").exists()


# The rows.


def test_seeding_twice_changes_nothing(server: str) -> None:
    async def counted() -> list[OrgExport | None]:
        async with tables.open_db(server) as db:
            before = [await export(db, org) for org in ("acme", "globex")]
            await asyncio.gather(tables.prepare(server), tables.prepare(server))
            return [*before, *[await export(db, org) for org in ("acme", "globex")]]

    acme, globex, acme_again, globex_again = asyncio.run(counted())
    assert acme == acme_again == OrgExport(org="acme", name="Acme Publishing", people=5, posts=3, orders=3)
    assert globex == globex_again == OrgExport(org="globex", name="Globex Media", people=2, posts=1, orders=1)


@pytest.mark.parametrize(
    ("person", "tool", "arguments", "foreign"),
    [
        ("edda", "publishPost", {"postId": "{}"}, "post-9"),
        ("edda", "getPost", {"postId": "{}"}, "post-9"),
        ("edda", "refundOrder", {"orderId": "{}", "amountMinor": 100}, "order-9"),
        ("ada", "previewPayoutBatch", {"batchId": "{}"}, "batch-9"),
    ],
)
def test_a_foreign_row_is_answered_as_a_missing_one(
    running: RunningSync, person: str, tool: str, arguments: dict[str, Json], foreign: str
) -> None:
    def answer(ident: str) -> Outcome:
        filled = {
            key: value.format(ident) if isinstance(value, str) else value for key, value in arguments.items()
        }
        return call(running, person, tool, filled)

    assert answer(foreign) == answer("none")
    assert isinstance(answer(foreign), (PolicyDenied, Failed))


def test_lists_hold_the_rows_of_the_callers_organisation_only(running: RunningSync) -> None:
    def ids(person: str, tool: str) -> list[str]:
        outcome = call(running, person, tool, {})
        assert isinstance(outcome, Ok)
        return [row["id"] for row in json.loads(outcome.json)]

    assert ids("ada", "listPosts") == ["post-1", "post-2", "post-3"]
    assert ids("greta", "listPosts") == ["post-9"]
    assert ids("greta", "listOrders") == ["order-9"]
    assert ids("greta", "listPayoutBatches") == ["batch-9"]


# The policies.


@pytest.mark.parametrize(
    ("person", "order", "minor", "cause"),
    [
        ("edda", "order-2", 10_001, "editors and staff refund at most 100.00 at once"),
        ("stan", "order-2", 10_001, "editors and staff refund at most 100.00 at once"),
        ("edda", "order-1", 4_001, "the refund is more than what is left of the order total"),
        ("ada", "order-2", 25_001, "the refund is more than what is left of the order total"),
        ("edda", "order-3", 1, "the refund is more than what is left of the order total"),
    ],
)
def test_a_refund_stays_within_limit_and_total(
    running: RunningSync, person: str, order: str, minor: int, cause: str
) -> None:
    outcome = call(running, person, "refundOrder", {"orderId": order, "amountMinor": minor})
    assert isinstance(outcome, PolicyDenied)
    assert (outcome.code, outcome.cause) == ("X_FORBIDDEN", cause)


def test_refunds_add_up_and_never_pass_the_total(running: RunningSync) -> None:
    first = call(running, "greta", "refundOrder", {"orderId": "order-9", "amountMinor": 110_000})
    assert isinstance(first, Ok)
    assert json.loads(first.json)["refundableMinor"] == 10_000
    last = call(running, "gil", "refundOrder", {"orderId": "order-9", "amountMinor": 10_000})
    assert isinstance(last, Ok)
    assert json.loads(last.json)["refundableMinor"] == 0
    assert isinstance(
        call(running, "gil", "refundOrder", {"orderId": "order-9", "amountMinor": 1}), PolicyDenied
    )


def test_a_paid_batch_is_not_previewed_again(running: RunningSync) -> None:
    outcome = call(running, "stan", "previewPayoutBatch", {"batchId": "batch-1"})
    assert isinstance(outcome, PolicyDenied)
    assert outcome.cause == "the batch is paid already"


def test_the_seat_report_is_for_admins(running: RunningSync) -> None:
    outcome = call(running, "ada", "seatReport", {})
    assert isinstance(outcome, Ok)
    assert json.loads(outcome.json) == {"org": "acme", "plan": "team", "used": 5, "remaining": 5, "limit": 10}


# The tokens.


def test_a_token_resolves_to_its_caller_and_nothing_else_does() -> None:
    tokens = issue()
    for each in CALLERS:
        assert tokens.resolve(tokens.by_person[each.person]) == each.agent
    for person, token in tokens.of_people.items():
        assert tokens.resolve(token) == next(each.human for each in CALLERS if each.person == person)
    for wrong in ("", "postly_", tokens.by_person["vera"][:-1], "\ud800", issue().by_person["vera"]):
        assert tokens.resolve(wrong) is None


def test_tokens_do_not_show_in_a_log() -> None:
    tokens = issue()
    issued = (*tokens.by_person.values(), *tokens.of_people.values())
    assert not any(token in repr(tokens) for token in issued)
