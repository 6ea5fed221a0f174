"""`nonsuch confirmations`: a person decides at a terminal what an agent asked another process for."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from nonsuch import Agent
from nonsuch.adapters.cli.locate import apps
from nonsuch.adapters.cli.main import main
from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.opening import Open
from nonsuch.adapters.edge.postgres.confirmations import SQL_MCP_CONFIRMATIONS_TABLE
from nonsuch.kernel.confirm_seal import SealKeys
from nonsuch.kernel.model import Ok, Outcome, Unconfirmed

from .desk import Answer

APP = """
import os
from datetime import timedelta
from pydantic import BaseModel
from nonsuch import *

class Transfer(BaseModel):
    to: str
    amount: int = 1

registry = Registry()

@registry.action(policy=can("bank:send"), mcp=expose("Send money"))
async def transfer(input: Transfer) -> str:
    return f"sent to {input.to}"

dsn = os.environ.get("BANK")
store = memory_confirmation_store() if dsn is None else postgres_confirmation_store(dsn)
decides = registry.add(mcp_confirmations(tools=["transfer"], store=store, permission="bank:confirm"))
mcp = define_app_mcp(registry, name="bank", include="exposed", confirmations=decides,
    grants=[grant("teller", "bank:send"), grant("manager", "bank:confirm")])
"""
BARE = """
from nonsuch import *
mcp = define_app_mcp(Registry(), name="bare")
"""
BOT = Agent("bot", roles={"teller"}, org="acme")
ANN = ("--as", "ann", "--roles", "manager", "--org", "acme")
HOSTILE = {"to": "moc\u202e@bob", "amount": 5}


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with embedded_postgres() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(SQL_MCP_CONFIRMATIONS_TABLE.encode())
        yield address


class Till:
    """The bank's app in this process, as the agent calls it, and the command line."""

    def __init__(self, module: str, capture: pytest.CaptureFixture[str]) -> None:
        self.module, self.capture = module, capture

    def call(self, **arguments: Any) -> Outcome:
        return asyncio.run(self._call(arguments))

    async def _call(self, arguments: dict[str, Any]) -> Outcome:
        async with Open(apps(self.module)[0]) as running:
            return await running.invoke(BOT, "transfer", arguments, "agent")

    def ask(self, **arguments: Any) -> str:
        told = self.call(**arguments)
        assert isinstance(told, Unconfirmed)
        return told.ident

    def run(self, *arguments: str) -> Answer:
        self.capture.readouterr()
        status = main(["confirmations", *arguments, "--app", self.module])
        told = self.capture.readouterr()
        return Answer(status, told.out, told.err)

    def json(self, *arguments: str) -> Any:
        found = self.run(*arguments, "--json")
        assert (found.status, found.err) == (0, ""), found
        return found.value

    def error(self, *arguments: str) -> str:
        found = self.run(*arguments, "--json")
        assert found.status == 2
        code: str = found.value["error"]["code"]
        return code


@pytest.fixture
def till(
    dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> Iterator[Till]:
    name = f"bank_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("BANK", dsn)
    monkeypatch.setenv("NONSUCH_SEAL_KEYS", KEY)
    yield Till(name, capsys)
    sys.modules.pop(name, None)


KEY = "k1:" + "A" * 43 + "="


def test_a_call_is_listed_viewed_approved_and_runs(till: Till) -> None:
    ident = till.ask(to="bob", amount=2)
    (row,) = [each for each in till.json("list", *ANN) if each["id"] == ident]
    assert (row["tool"], row["status"], row["askedBy"]) == ("transfer", "pending", "bot")
    told = till.json("view", ident, *ANN)
    assert told["arguments"] == {"to": "bob", "amount": 2}
    approved = till.json("approve", ident, *ANN, "--arguments", json.dumps(told["arguments"]))
    assert (approved["status"], approved["decidedBy"]) == ("approved", "ann")
    assert isinstance(till.call(to="bob", amount=2), Ok)
    assert ident not in till.run("list", *ANN).out
    assert "ran" in till.run("list", *ANN, "--ended").out


def test_a_call_is_rejected(till: Till) -> None:
    ident = till.ask(to="rob")
    assert till.json("reject", ident, *ANN)["status"] == "rejected"
    told = till.call(to="rob")
    assert isinstance(told, Unconfirmed)
    assert told.code == "X_MCP_CONFIRMATION_REJECTED"
    assert till.error("reject", ident, *ANN) == "X_MCP_CONFIRMATION_DECIDED"


def test_what_shows_nothing_is_named(till: Till) -> None:
    shown = till.run("view", till.ask(**HOSTILE), *ANN)
    assert '"to": "mocU+202E@bob"' in shown.out
    assert "\u202e" not in shown.out


@pytest.mark.parametrize("typed", ["yes\n", "y\n", "", "no\n"])
def test_a_person_at_a_terminal_is_shown_what_they_approve(
    till: Till, monkeypatch: pytest.MonkeyPatch, typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    ident = till.ask(to=f"tia{typed.strip()}")
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    status = main(["confirmations", "approve", ident, *ANN, "--app", till.module])
    assert '"amount"' not in capsys.readouterr().out  # what is asked is no answer
    assert status == (0 if typed == "yes\n" else 2)
    assert till.json("view", ident, *ANN)["status"] == ("approved" if typed == "yes\n" else "pending")


def test_nobody_approves_what_nobody_saw(till: Till) -> None:
    ident = till.ask(to="una")
    assert till.error("approve", ident, *ANN) == "X_CLI_USAGE"
    other = till.error("approve", ident, *ANN, "--arguments", '{"to":"una","amount":9}')
    assert other == "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"
    assert till.json("view", ident, *ANN)["status"] == "pending"


@pytest.mark.parametrize(
    "who",
    [
        ("--as", "eve", "--roles", "manager", "--org", "other"),
        ("--as", "eve", "--roles", "manager"),
        ("--as", "eve", "--org", "acme"),
    ],
)
def test_others_see_and_decide_nothing(till: Till, who: tuple[str, ...]) -> None:
    ident = till.ask(to="sue")
    assert till.json("list", *who) == []
    for given in (ident, "n" * 32):
        assert till.error("view", given, *who) == "X_FORBIDDEN"
        assert till.error("reject", given, *who) == "X_FORBIDDEN"


def test_wrong_use_is_explained(till: Till, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert till.error("list", "--as", "") == "X_CLI_USAGE"
    assert till.error("list") == "X_CLI_USAGE"
    (tmp_path / "bare_app.py").write_text(BARE)
    bare = Till("bare_app", till.capture)
    assert "waits for a person" in bare.run("list", *ANN).err
    monkeypatch.delenv("BANK")
    assert "in the memory of the serving `bank`" in till.run("list", *ANN).err


def test_it_is_a_command_of_the_program(till: Till) -> None:
    ident = till.ask(to="cli")
    program = [sys.executable, "-m", "nonsuch.adapters.cli", "confirmations", "list", *ANN]
    done = subprocess.run(
        [*program, "--app", till.module, "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
        timeout=60,
    )
    assert ident in [each["id"] for each in json.loads(done.stdout)]
    assert SealKeys.__name__ not in done.stdout
