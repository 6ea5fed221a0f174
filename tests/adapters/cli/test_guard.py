"""`nonsuch db guard`: SQL or lines of it on standard input, a verdict for each; no app and no server."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nonsuch.adapters.cli.main import main

REFUSED: dict[str, Any] = {
    "id": "a",
    "verdict": "refuse",
    "code": "X_MCP_QUERY_REJECTED",
    "family": "sleep",
    "cause": "the query waits: `pg_sleep` at 1:8",
    "fix": "leave the call out",
    "position": {"line": 1, "column": 8},
    "policies": ["nonsuch.never.sleep"],
    "facts": {
        "kinds": ["select"],
        "families": ["sleep"],
        "relations": ["public.t"],
        "columns": ["public.t.x"],
        "functions": ["pg_catalog.pg_sleep"],
        "attributes": ["f"],
        "operators": ["pg_catalog.+"],
        "types": ["pg_catalog.text"],
        "schemas": ["pg_catalog", "public"],
        "explain": [],
        "settings": [],
    },
}
ACCEPTED: dict[str, Any] = {
    "id": 7,
    "verdict": "accept",
    **dict.fromkeys(("code", "family", "cause", "fix", "position")),
    "policies": [],
    "facts": {
        **{name: list[str]() for name in REFUSED["facts"]},
        "kinds": ["show"],
        "settings": ["timezone"],
    },
}


class Told:
    """What the command said to some bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capture = monkeypatch, capture

    def __call__(self, given: bytes, *arguments: str) -> tuple[int, str, str]:
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        status = main(["db", "guard", *arguments])
        told = self._capture.readouterr()
        return status, told.out, told.err


@pytest.fixture
def guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    monkeypatch.chdir(tmp_path)  # a directory without an app
    return Told(monkeypatch, capsys)


def test_lines_are_answered_by_lines(guard: Told) -> None:
    rows = [
        {"id": "a", "sql": "SELECT pg_sleep(x + 1), (y::text).f FROM t".replace("y", "'y'")},
        {"id": 7, "sql": "SHOW TIME ZONE"},
    ]
    given = b"\n".join(json.dumps(row).encode() for row in rows) + b"\n\n"
    status, out, err = guard(given, "--jsonl", "--json")
    assert (status, err) == (1, "")
    assert [json.loads(line) for line in out.splitlines()] == [REFUSED, ACCEPTED]


def test_lines_are_told_to_people_too(guard: Told) -> None:
    given = b'{"id": 1, "sql": "SELECT 1"}\n{"id": null, "sql": "DELETE FROM t"}\n'
    assert guard(given, "--jsonl") == (
        1,
        "1: accept\n"
        "refuse: X_MCP_QUERY_REJECTED: the query writes: `DELETE` at 1:1: send exactly one read-only"
        " statement; use an action of the app to change something\n",
        "",
    )


@pytest.mark.parametrize(
    ("given", "status", "told"),
    [
        (b"SELECT 'caf\xc3\xa9'", 0, "accept"),
        (b"", 1, "there is no statement"),
        (b"SELECT \xff", 1, "it is no UTF-8 at 1:8"),
        (b"x" * 1_048_576, 1, "longer than 16384 bytes"),
        (b"SELECT 1\nFROM t FOR UPDATE", 1, "`FOR` at 2:8"),
        (b'SELECT "\xe2\x80\xae\x07"()', 1, "`\\u{202e}\\u{7}`"),
    ],
)
def test_sql_is_read_as_it_comes(guard: Told, given: bytes, status: int, told: str) -> None:
    found, out, err = guard(given)
    assert (found, err, len(out.splitlines())) == (status, "", 1)
    assert told in out
    found, out, _ = guard(given, "--json")
    assert (found, len(out.splitlines())) == (status, 1)
    assert json.loads(out)["id"] is None


def test_no_more_is_read_than_is_needed(guard: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            assert 0 < size < 100_000
            return b"x" * size

        def readable(self) -> bool:
            return True

    class Input:
        buffer = Endless()

    guard(b"SELECT 1")
    monkeypatch.setattr(sys, "stdin", Input())
    assert main(["db", "guard"]) == 1


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT label(1)", ["--function", "public.label"]),
        ("SELECT 1 @#@ 2", ["--operator", "public.@#@"]),
        ("SELECT 1::level", ["--type", "app.level", "--schema", "public", "--schema", "app"]),
    ],
)
def test_what_an_app_lists_is_given_by_name(guard: Told, sql: str, words: list[str]) -> None:
    assert guard(sql.encode())[0] == 1
    assert guard(sql.encode(), *words) == (0, "accept\n", "")


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b"{", 1),
        (b"[]", 1),
        (b"{}", 1),
        (b'{"id": 1}', 1),
        (b'{"sql": "SELECT 1"}\n"x"', 2),
        (b"[" * 100_000, 1),
    ],
)
def test_a_line_that_is_none_is_wrong_use(guard: Told, line: bytes, number: int) -> None:
    status, out, err = guard(line, "--jsonl", "--json")
    assert status == 2
    assert json.loads(out)["error"]["cause"] == f'line {number} is no `{{"id": ..., "sql": ...}}`'
    assert err.startswith("X_CLI_USAGE")


@pytest.mark.parametrize("value", ["null", "1", '["SELECT 1"]', '"\\ud800"'])
def test_what_is_no_text_is_refused_like_any_statement(guard: Told, value: str) -> None:
    status, out, _ = guard(f'{{"id": 1, "sql": {value}}}'.encode(), "--jsonl", "--json")
    assert (status, json.loads(out)["family"]) == (1, "malformed")
