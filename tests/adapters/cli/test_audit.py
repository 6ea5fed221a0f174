"""`nonsuch audit`: exit status, the first fault with its place, and keys that nobody reads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from nonsuch.adapters.cli.main import main
from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.postgres.audit import SQL_AUDIT_TABLE
from nonsuch.kernel.codes import CODES

from ...kernel.links import KEYS, chain, events, heads
from .desk import Answer, command

ASK: Final = "ask who could write there; what stands before it is as it was written"
TEXT: Final = " ".join(f"{name}:{key.hex()}" for name, key in KEYS.items())
WHOLE: Final = chain(
    [
        '{"writer":"w","kind":"chain-opened"}',
        *events(2),
        '{"lost":4,"kind":"chain-gap"}',
        '{"next":"k2","kind":"chain-key"}',
        ("k2", '{"writer":"w","kind":"chain-closed"}'),
    ]
)
HEADS: Final = [str(each) for each in heads(WHOLE)]
GONE: Final = "`gone`: No such file or directory"
NO_KEYS: Final = "`gone` holds no keys: No such file or directory"
Run = Callable[..., Answer]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NONSUCH_AUDIT_KEYS", TEXT)

    def go(*arguments: str) -> Answer:
        status = main(["audit", *arguments])
        told = capsys.readouterr()
        return Answer(status, told.out, told.err)

    return go


def put(lines: Sequence[bytes], name: str = "audit.jsonl") -> str:
    Path(name).write_bytes(b"".join(lines))
    return name


def document(**members: Any) -> dict[str, Any]:
    """What is told of the whole chain, but for some members."""
    whole = {
        "ok": True,
        "records": 6,
        "head": HEADS[5],
        "keys": [{"key": "k1", "from": 1}, {"key": "k2", "from": 6}],
        "gaps": 1,
        "lost": 4,
        "torn": 0,
        "unfinished": False,
        "open": [],
        "fault": None,
    }
    return {**whole, **members}


def test_a_whole_chain_is_told_in_both_forms(run: Run) -> None:
    name = put(WHOLE)
    told = run("verify", name, "--head", HEADS[2], "--head", HEADS[5], "--closed")
    assert (told.status, told.err) == (0, "")
    assert told.out.splitlines() == [
        f"6 records are as they were written, the head is {HEADS[5]}",
        "keys: k1 from record 1, k2 from record 6",
        "gaps: 1, 4 events are told to be lost",
    ]
    told = run("verify", name, "--json")
    assert (told.status, told.value) == (0, document())


def test_a_chain_that_nobody_ended_is_told(run: Run) -> None:
    name = put(WHOLE[:3])
    assert (
        "writers that did not end: 1; they run, were killed, or the end was cut off"
        in run("verify", name).out
    )
    assert run("verify", name, "--json").value["open"] == ["w"]
    told = run("verify", name, "--closed", "--json")
    assert (told.status, told.value["fault"]["code"]) == (1, "X_AUDIT_UNCLOSED")


def test_the_first_fault_is_told_by_record_line_and_byte(run: Run) -> None:
    name = put([*WHOLE[:2], WHOLE[2].replace(b"t1", b"t9"), *WHOLE[3:]])
    cause = "the record is not the one that was written here, or `k1` is another key"
    offset = len(WHOLE[0]) + len(WHOLE[1])
    told = run("verify", name)
    assert (told.status, told.err) == (1, "")
    assert told.out.splitlines() == [
        f"audit.jsonl:3: record 3, byte {offset}: X_AUDIT_CHANGED: {cause}: {ASK}",
        "2 records before that are as they were written",
    ]
    told = run("verify", name, "--json")
    assert told.status == 1
    assert told.value["ok"] is False
    assert told.value["records"] == 2
    assert told.value["fault"] == {
        "code": "X_AUDIT_CHANGED",
        "cause": cause,
        "fix": ASK,
        "record": 3,
        "line": 3,
        "offset": offset,
    }


@pytest.mark.parametrize(
    ("lines", "arguments", "code"),
    [
        (WHOLE[:4], ["--head", HEADS[5]], "X_AUDIT_CUT"),
        ([], ["--head", HEADS[0]], "X_AUDIT_CUT"),
        (WHOLE, ["--head", HEADS[3][:-1] + ("0" if HEADS[3][-1] != "0" else "1")], "X_AUDIT_REWRITTEN"),
        ([WHOLE[0], *WHOLE[2:]], [], "X_AUDIT_ORDER"),
        ([*WHOLE, b"junk\n"], [], "X_AUDIT_LINE"),
        ([*WHOLE[:4], *chain([("k2", "{}")], before=heads(WHOLE)[3].mac, first=5)], [], "X_AUDIT_KEY"),
    ],
)
def test_each_fault_ends_with_1(run: Run, lines: list[bytes], arguments: list[str], code: str) -> None:
    told = run("verify", put(lines), *arguments, "--json")
    assert (told.status, told.value["fault"]["code"], told.err) == (1, code, "")


def test_a_torn_last_line_is_told_apart(run: Run) -> None:
    name = put([*WHOLE[:5], WHOLE[5][:40]])
    told = run("verify", name)
    assert (told.status, told.err) == (3, "")
    assert told.out.splitlines()[:2] == [
        f"audit.jsonl: X_AUDIT_TORN: the last line was not written to its end: {CODES['X_AUDIT_TORN'].fix}",
        f"5 records are as they were written, the head is {HEADS[4]}",
    ]
    told = run("verify", name, "--json")
    assert (told.status, told.value["unfinished"], told.value["ok"], told.value["fault"]) == (
        3,
        True,
        True,
        None,
    )
    assert run("verify", name, "--head", HEADS[5]).status == 1


def test_heads_are_read_from_their_file(run: Run) -> None:
    name = put(WHOLE)
    Path("heads").write_text("\n".join(HEADS) + "\n")
    assert run("verify", name, "--heads", "heads").status == 0
    assert run("verify", put(WHOLE[:5]), "--heads", "heads").status == 1


def test_the_head_of_a_sound_chain_is_printed_and_of_no_other(run: Run) -> None:
    name = put(WHOLE)
    assert run("head", name) == Answer(0, f"{HEADS[5]}\n", "")
    assert run("head", name, "--json").value == {"head": HEADS[5], "records": 6}
    assert run("verify", name, "--head", run("head", name).out.strip()).status == 0
    told = run("head", put(WHOLE[1:]))
    assert (told.status, told.out) == (2, "")
    assert told.err == (
        "X_AUDIT_ORDER: audit.jsonl:1: record 1, byte 0: record 2 stands where record 1 belongs\n"
        f"fix: {ASK}\n"
    )


def test_keys_come_from_a_file_and_never_from_the_command_line(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = put(WHOLE)
    monkeypatch.delenv("NONSUCH_AUDIT_KEYS")
    told = run("verify", name)
    assert told.status == 2
    assert told.err.startswith(
        "X_AUDIT_KEYS_INVALID: neither `NONSUCH_AUDIT_KEYS_FILE` nor `NONSUCH_AUDIT_KEYS`"
    )
    Path("keys").write_text(TEXT)
    assert run("verify", name, "--keys", "keys").status == 0
    monkeypatch.setenv("NONSUCH_AUDIT_KEYS_FILE", "keys")
    assert run("verify", name).status == 0
    Path("keys").write_text("k1:" + "zz" * 32)
    told = run("verify", name, "--json")
    assert (told.status, told.value["error"]["code"]) == (2, "X_AUDIT_KEYS_INVALID")
    assert "zz" not in told.out + told.err


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        (["verify"], "X_CLI_USAGE", "name one chain: a file, or `--database`"),
        (["verify", "a", "--database", "b"], "X_CLI_USAGE", "name one chain: a file, or `--database`"),
        (["head"], "X_CLI_USAGE", "name one chain: a file, or `--database`"),
        (["verify", "gone"], "X_AUDIT_UNREADABLE", GONE),
        (["head", "."], "X_AUDIT_UNREADABLE", "`.`: Is a directory"),
        (["verify", "whole", "--head", "6"], "X_CLI_USAGE", "`--head` is no head"),
        (["verify", "whole", "--heads", "gone"], "X_AUDIT_UNREADABLE", GONE),
        (["verify", "whole", "--heads", "whole"], "X_CLI_USAGE", "line 1 of `whole` is no head"),
        (["verify", "whole", "--keys", "gone"], "X_AUDIT_KEYS_INVALID", NO_KEYS),
    ],
)
def test_wrong_use_has_a_code_a_cause_and_a_fix(
    run: Run, arguments: list[str], code: str, cause: str
) -> None:
    put(WHOLE, "whole")
    told = run(*arguments, "--json")
    assert told.status == 2
    error = told.value["error"]
    assert (error["code"], error["cause"]) == (code, cause)
    assert told.err == f"{code}: {cause}\nfix: {error['fix']}\n"


def test_a_chain_of_the_package_is_verified_by_the_program(tmp_path: Path) -> None:
    """From outside, as an operator runs it: written by one process, verified by another."""
    code = (
        "from nonsuch import audit_keys, file_audit_chain; from nonsuch.kernel.audit import ToolCall;"
        "chain = file_audit_chain('audit.jsonl', audit_keys('keys'), heads='heads');"
        "[chain(ToolCall(str(each), 'ok', 'mcp', 'a', 'agent')) for each in range(3)]"
    )
    (tmp_path / "keys").write_text(TEXT)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    asked = ("--keys", "keys", "--heads", "heads", "--closed", "--json")
    told = command("audit", "verify", "audit.jsonl", *asked, at=tmp_path)
    assert (told.status, told.err, told.value["records"]) == (0, "", 5)
    held = [json.loads(each) for each in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [each["event"].get("tool") for each in held] == [None, "0", "1", "2", None]


def test_a_chain_in_a_table_is_verified(run: Run) -> None:
    put(WHOLE)
    with embedded_postgres() as address, psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SQL_AUDIT_TABLE.encode())
        for line in WHOLE:
            held = json.loads(line)
            event = json.dumps(held["event"], separators=(",", ":"))
            row = (held["seq"], held["key"], event, bytes.fromhex(held["mac"]))
            connection.execute("insert into nonsuch_audit values (%s, %s, %s, %s)", row)
        assert run("verify", "--database", address, "--head", HEADS[5], "--json").value == document()
        assert run("head", "--database", address).out == f"{HEADS[5]}\n"
        connection.execute("delete from nonsuch_audit where seq = 3")
        told = run("verify", "--database", address, "--json")
        assert told.status == 1
        assert told.value["fault"]["record"] == 3
        assert (told.value["fault"]["line"], told.value["fault"]["offset"]) == (None, None)
        assert run("verify", "--database", address).out.startswith("nonsuch_audit: record 3: X_AUDIT_ORDER: ")
        told = run("verify", "--database", address, "--table", "gone")
        assert told.status == 2
        assert told.err.startswith('X_AUDIT_UNREADABLE: `gone`: relation "gone" does not exist\n')
    told = run("verify", "--database", "postgresql://127.0.0.1:1/none")
    assert told.status == 2
    assert told.err.startswith("X_AUDIT_UNREADABLE: `nonsuch_audit`: connection failed: ")
