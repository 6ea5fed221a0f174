"""`nonsuch db query`, `db grant-readonly`, `db guard --database`: one query, one role, a verdict."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from nonsuch.adapters.cli.main import main

from ..edge.readonly_lab import Lab, laboratory

STOOD: Final = [
    *("text", "catalogue", "role:set", "read-only-transaction", "one-statement", "settings"),
    *("statement-timeout", "transaction-timeout", "row-limit", "cell-limit", "byte-limit", "session-check"),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with laboratory() as made:
        with made.admin() as connection:
            connection.execute("GRANT ALL ON SCHEMA public TO app_owner")
        yield made


class Told:
    """What a command said."""

    def __init__(self, lab: Lab, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self._lab, self._capture, self._patch = lab, capture, patch

    def __call__(self, *words: str, given: bytes = b"", address: str | None = None) -> tuple[int, str, str]:
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        status = main(["db", *words, "--database", address or self._lab.address])
        told = self._capture.readouterr()
        return status, told.out, told.err


@pytest.fixture
def db(lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Told:
    return Told(lab, capsys, monkeypatch)


def test_the_role_is_made_and_a_query_takes_it_on(db: Told) -> None:
    status, out, _ = db("grant-readonly", "--schema", "public", "--schema", "stock", "--to", "app_owner")
    assert (status, out.splitlines()[-1].startswith("`nonsuch_readonly`: ")) == (0, True)
    status, out, err = db("query", "SELECT id, name FROM customers ORDER BY id LIMIT 1", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == {
        "columns": [{"name": "id", "type": "integer"}, {"name": "name", "type": "text"}],
        "rows": [[1, "name 1"]],
        "guards": STOOD,
        "truncatedBy": [],
        "bytes": 13,
    }


def test_a_query_is_told_to_people_too(db: Told) -> None:
    status, out, _ = db("query", "--limit", "1", given=b"SELECT id, 'a\x07b' AS word FROM orders ORDER BY id")
    assert status == 0
    assert "1  \u2502 a\\u{7}b" in out
    assert "not the whole answer: cut by the limit of rows" in out
    assert "\n1 row, 15 bytes; stood: text, catalogue" in out


def test_a_plan_is_asked_for_by_an_option(db: Told) -> None:
    status, out, _ = db("query", "--explain", "SELECT id FROM orders", "--json")
    assert (status, json.loads(out)["columns"]) == (0, [{"name": "QUERY PLAN", "type": "text"}])


@pytest.mark.parametrize(
    ("words", "status", "code", "cause"),
    [
        (["SELECT pg_sleep(1)"], 1, "X_MCP_QUERY_REJECTED", "the query waits: `pg_sleep` at 1:8"),
        (["SELECT * FROM v_next"], 1, "X_MCP_QUERY_REJECTED", "`v_next` does more than read"),
        (["SELECT x FROM orders"], 1, "X_DB_QUERY_FAILED", 'column "x" does not exist at 1:8'),
        (["SELECT 1", "--require", "role:login"], 1, "X_DB_GUARD_MISSING", "`role:login`"),
        (["SELECT 1", "--require", "everything"], 2, "X_CLI_USAGE", "no guards are called everything"),
    ],
)
def test_a_query_that_is_refused_says_why(
    db: Told, words: list[str], status: int, code: str, cause: str
) -> None:
    found, out, _ = db("query", *words, "--json")
    error = json.loads(out)["error"]
    assert (found, error["code"]) == (status, code)
    assert cause in error["cause"]
    assert error["fix"]


def test_where_nothing_answers_it_is_told(db: Told) -> None:
    for command in (["query", "SELECT 1"], ["grant-readonly"], ["guard"]):
        status, out, err = db(
            *command, address="host=127.0.0.1 port=1 password=hidden-word", given=b"SELECT 1"
        )
        assert status > 0
        assert "X_DB_UNREACHABLE" in out + err
        assert "hidden-word" not in out + err


def test_a_guard_asks_the_database_for_what_a_text_does_not_show(db: Told) -> None:
    rows = [
        {"id": 1, "sql": "SELECT price_with_tax(10)"},
        {"id": 2, "sql": "SELECT * FROM v_next"},
        {"id": 3, "sql": "SELECT id FROM orders"},
        {"id": 4, "sql": None},
        {"id": 5, "sql": "SELECT 1; SELECT 2"},
    ]
    given = b"\n".join(json.dumps(row).encode() for row in rows)
    status, out, err = db("guard", "--jsonl", "--json", given=given)
    assert (status, err) == (1, "")
    found: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    assert [(each["id"], each["verdict"], each["family"]) for each in found] == [
        (1, "accept", None),
        (2, "refuse", "unlisted-relation"),
        (3, "accept", None),
        (4, "refuse", "malformed"),
        (5, "refuse", "several-statements"),
    ]
    assert found[1]["position"] == {"line": 1, "column": 15}


def test_the_statements_of_the_role_can_be_printed(db: Told) -> None:
    status, out, _ = db("grant-readonly", "--role", "printed", "--print", "--json")
    lines = [json.loads(line)["statement"] for line in out.splitlines()]
    assert (status, lines[0][:30]) == (0, 'CREATE ROLE "printed" NOLOGIN ')
    _, text, _ = db("grant-readonly", "--role", "printed", "--print")
    assert text.splitlines() == [f"{each};" for each in lines]


def test_a_server_that_refuses_the_role_is_told(db: Told, lab: Lab) -> None:
    owner = make_conninfo(lab.address, user="app_owner")
    status, out, _ = db("grant-readonly", "--role", "refused", address=owner)
    assert status == 1
    assert "X_DB_GRANT_REFUSED: the server refuses `CREATE ROLE" in out
    assert "permission denied to create role" in out
    status, out, _ = db("grant-readonly", "--role", "refused", "--json", address=owner)
    document = json.loads(out)
    assert (status, document["whole"], len(document["steps"])) == (1, False, 1)


def test_the_commands_need_no_address_on_the_line(
    lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", lab.address)
    assert main(["db", "query", "SELECT 1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[1]]
    with psycopg.connect(lab.address) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
