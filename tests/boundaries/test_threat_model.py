"""The threat model holds for this tree, and its checker finds each kind of fault in made-up ones."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from .sources import ROOT

Files = Mapping[str, str]
TODAY: Final = date(2026, 12, 1)


def _checker() -> Any:
    """``threat-model/check.py``, which no package can hold under that name."""
    spec = importlib.util.spec_from_file_location("threat_model_check", ROOT / "threat-model/check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


check: Final = _checker()


def test_every_row_of_the_threat_model_holds() -> None:
    """A threat whose date has passed fails here: build it, or decide again and say why."""
    assert check.faults(ROOT, date.today()) == []  # noqa: DTZ011 - a day more or less does no harm


def test_the_checker_reads_the_whole_model() -> None:
    threats, malformed = check.read(ROOT)
    assert (malformed, {threat.file for threat in threats}) == ([], {each.name for each in _rows()})
    assert len(threats) == sum(each.read_text().splitlines().count("[[threat]]") for each in _rows())


def _rows() -> list[Path]:
    return list((ROOT / "threat-model/threats").glob("*.toml"))


# Made-up trees.

ROW: Final = """
[[threat]]
id = "NS-DEC-001"
title = "a policy that errs"
boundary = "engine"
attacker = "agent client"
asset = "every forbid policy"
threat = "It stops forbidding."
claim = "For every error: denied."
status = "mitigated"
code = ["kernel/cedar.py::decide", "kernel/cedar.py::Engine.ask", "kernel/cedar.py::LIMIT", "lock"]
tests = ["tests/test_cedar.py::test_it_denies", "tests/test_cedar.py::TestMachine::runTest"]
mutants = ["M01"]
sources = ["cedar-policy/cedar#2428"]
"""
OPEN: Final = ROW.replace('"mitigated"', '"open"') + 'why = "later"\nuntil = 2026-12-01\n'
TEST: Final = "def test_it_denies(): ...\n\nTestMachine = Machine.TestCase\n"
GOOD: Final[Files] = {
    "threat-model/threats/decision.toml": ROW,
    "threat-model/README.md": "See `kernel/cedar.py` and `tests/`.\n",
    "kernel/cedar.py": "LIMIT: int = 1\ndef decide(): ...\nclass Engine:\n    def ask(self): ...\n",
    "tests/test_cedar.py": TEST,
    "tests/mutants/table.py": 'ALL = (_mutant("M01", "shows M03"), Mutant("late", "late"), other("M02"))\n',
    "tests/mutants/policy_table.py": 'ALL = (mutant("anyone-lost", "shows M04"),)\n',
    "tests/mutants/mutant.py": 'NONE = mutant("M05", "no table")\n',
    "lock": "",
}


def told(root: Path, changes: Mapping[str, str | None]) -> list[str]:
    """The faults of the good tree with some files changed or gone; the table is written anew."""
    files = {path: text for path, text in {**GOOD, **changes}.items() if text is not None}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    if check.TABLE not in files:
        (root / check.TABLE).write_text(check.table(check.read(root)[0]))
    found: list[str] = check.faults(root, TODAY)
    return found


def row(old: str, new: str, source: str = ROW) -> Files:
    assert old in source
    return {"threat-model/threats/decision.toml": source.replace(old, new)}


def source_of_test(text: str) -> Files:
    return {"tests/test_cedar.py": text}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        row("", "", OPEN),
        row('tests = ["tests/test_cedar.py::test_it_denies", ', "tests = [", OPEN),
        row('["M01"]', "[]"),
        row('["M01"]', '["late"]'),
        row('["M01"]', '["M01", "anyone-lost"]'),
        {"tests/mutants/table.py": None, "tests/mutants/policy_table.py": None},
        source_of_test(f"class TestCedar:\n    {TEST.splitlines()[0]}\n{TEST}"),
        source_of_test(
            f"@pytest.mark.parametrize('error', ERRORS)\nasync {TEST}\n@pytest.mark.skip\ndef test_b(): ..."
        ),
    ],
)
def test_a_tree_in_order_is_told_nothing(tmp_path: Path, changes: Mapping[str, str | None]) -> None:
    assert told(tmp_path, changes) == []


MISSING: Final = "NS-DEC-001: test `tests/test_cedar.py::test_it_denies` does not exist"
SKIPPED: Final = "NS-DEC-001: test `tests/test_cedar.py::test_it_denies` is skipped or expected to fail"
MACHINE: Final = SKIPPED.replace("test_it_denies", "TestMachine::runTest")
TESTS: Final = 'tests = ["tests/test_cedar.py::test_it_denies", "tests/test_cedar.py::TestMachine::runTest"]'

BROKEN: Final[dict[str, tuple[Mapping[str, str | None], list[str]]]] = {
    "mitigated without a test": (row(TESTS, "tests = []"), ["NS-DEC-001: mitigated without a test"]),
    "mitigated without code": (
        row(
            '["kernel/cedar.py::decide", "kernel/cedar.py::Engine.ask", "kernel/cedar.py::LIMIT", "lock"]',
            "[]",
        ),
        ["NS-DEC-001: mitigated without code"],
    ),
    "mitigated, and why not": (
        row('"open"', '"mitigated"', OPEN),
        ["NS-DEC-001: mitigated: `why` and `until` are for what is not"],
    ),
    "the test file is gone": (
        {"tests/test_cedar.py": None},
        [MISSING, MISSING.replace("test_it_denies", "TestMachine::runTest")],
    ),
    "the test is gone": (source_of_test(TEST.replace("test_it_denies", "test_it")), [MISSING]),
    "the test is no longer a test": (
        source_of_test(TEST.replace("def test_it_denies(): ...", "test_it_denies = 1")),
        [MISSING],
    ),
    "the test moved into a class": (source_of_test(f"class TestCedar:\n    {TEST}"), [MISSING]),
    "the state machine is gone": (
        source_of_test(TEST.replace("TestMachine", "Machine")),
        [MISSING.replace("test_it_denies", "TestMachine::runTest")],
    ),
    "a class that is not collected": (
        {
            **row("::test_it_denies", "::Cedar::test_it_denies"),
            **source_of_test(f"class Cedar:\n    def test_it_denies(self): ...\n{TEST}"),
        },
        [MISSING.replace("test_it", "Cedar::test_it")],
    ),
    "a file that is not collected": (
        {
            **row("tests/test_cedar.py::test_it_denies", "tests/cedar.py::test_it_denies"),
            "tests/cedar.py": TEST,
        },
        [MISSING.replace("test_cedar", "cedar")],
    ),
    "no node": (
        row("tests/test_cedar.py::test_it_denies", "tests/test_cedar.py"),
        ["NS-DEC-001: test `tests/test_cedar.py` is no node `tests/file.py::test_name`"],
    ),
    "skipped by a mark": (source_of_test(f"@pytest.mark.skip(reason='later')\n{TEST}"), [SKIPPED]),
    "skipped on a condition": (
        source_of_test(f"@pytest.mark.skipif(True, reason='later')\n{TEST}"),
        [SKIPPED],
    ),
    "skipped by a name of its own": (source_of_test(f"@skip('later')\n{TEST}"), [SKIPPED]),
    "expected to fail": (source_of_test(f"@pytest.mark.xfail\n{TEST}"), [SKIPPED]),
    "expected to fail for one case": (
        source_of_test(f"@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.xfail)])\n{TEST}"),
        [SKIPPED],
    ),
    "skipped inside": (source_of_test(TEST.replace("...", "pytest.skip('later')", 1)), [SKIPPED]),
    "skipped with its module": (source_of_test(f"pytestmark = pytest.mark.skip\n{TEST}"), [SKIPPED, MACHINE]),
    "skipped with what it imports": (
        source_of_test(f"pytest.importorskip('atheris')\n{TEST}"),
        [SKIPPED, MACHINE],
    ),
    "skipped with its class": (
        {
            **row("::test_it_denies", "::TestCedar::test_it_denies"),
            **source_of_test(
                f"@pytest.mark.skip\nclass TestCedar:\n    def test_it_denies(self): ...\n{TEST}"
            ),
        },
        [SKIPPED.replace("test_it", "TestCedar::test_it")],
    ),
    "the code file is gone": (row('"lock"', '"gone"'), ["NS-DEC-001: code `gone` is gone"]),
    "the function is gone": (
        row("::decide", "::decided"),
        ["NS-DEC-001: code `kernel/cedar.py::decided` is gone"],
    ),
    "the method is gone": (
        row("Engine.ask", "Engine.answer"),
        ["NS-DEC-001: code `kernel/cedar.py::Engine.answer` is gone"],
    ),
    "the constant is gone": (
        row("::LIMIT", "::LIMITS"),
        ["NS-DEC-001: code `kernel/cedar.py::LIMITS` is gone"],
    ),
    "a method is no function": (
        row("::Engine.ask", "::ask"),
        ["NS-DEC-001: code `kernel/cedar.py::ask` is gone"],
    ),
    "the date has passed": (
        row("2026-12-01", "2026-11-30", OPEN),
        ["NS-DEC-001: open until 2026-11-30, which has passed"],
    ),
    "open without a date": (
        row("until = 2026-12-01\n", "", OPEN),
        ["NS-DEC-001: open without `why` and `until`"],
    ),
    "accepted without a reason": (
        row('why = "later"\n', "", OPEN.replace('"open"', '"accepted"')),
        ["NS-DEC-001: accepted without `why` and `until`"],
    ),
    "out of scope without a reason": (
        row('"mitigated"', '"out-of-scope"'),
        ["NS-DEC-001: out-of-scope without `why`"],
    ),
    "an unknown status": (
        row('"mitigated"', '"done"'),
        ["NS-DEC-001: `done` is none of mitigated, accepted, open, out-of-scope"],
    ),
    "an unknown boundary": (
        row('"engine"', '"cellar"'),
        ["NS-DEC-001: `cellar` is none of wire, view, engine, permit, handler, installation"],
    ),
    "no source": (row('["cedar-policy/cedar#2428"]', "[]"), ["NS-DEC-001: no source"]),
    "an id of another form": (row("NS-DEC-001", "DEC-1"), ["DEC-1: an id is NS-AREA-NNN"]),
    "an id twice": (row(ROW, ROW + ROW), ["NS-DEC-001: the id is used twice"]),
    "an id twice in two files": (
        {"threat-model/threats/view.toml": ROW},
        ["NS-DEC-001: the id is used twice"],
    ),
    "two areas in one file": (
        row(ROW, ROW + ROW.replace("DEC-001", "VIS-001")),
        ["NS-VIS-001: decision.toml holds the area DEC"],
    ),
    "a mutant that nobody made": (
        row("M01", "M02"),
        ["NS-DEC-001: mutant `M02` is in no table of tests/mutants"],
    ),
    "a mutant that a text mentions": (
        row("M01", "M03"),
        ["NS-DEC-001: mutant `M03` is in no table of tests/mutants"],
    ),
    "a mutant of no table": (
        row("M01", "M05"),
        ["NS-DEC-001: mutant `M05` is in no table of tests/mutants"],
    ),
    "a mutant whose table is gone": (
        {"tests/mutants/table.py": None},
        ["NS-DEC-001: mutant `M01` is in no table of tests/mutants"],
    ),
    "a key that is missing": (
        row('asset = "every forbid policy"\n', ""),
        ["decision.toml row 1: `asset` is missing"],
    ),
    "a key that is empty": (row('"every forbid policy"', '" "'), ["decision.toml row 1: `asset` is missing"]),
    "a key of another name": (
        row("asset =", 'assets = "x"\nasset ='),
        ["decision.toml row 1: `assets` is no key of a threat"],
    ),
    "a list that is none": (row('["M01"]', '"M01"'), ["decision.toml row 1: `mutants` is no list of texts"]),
    "a date as a text": (
        row("2026-12-01", '"2026-12-01"', OPEN),
        ["decision.toml row 1: `why` is a text and `until` a date"],
    ),
    "not a table": (
        row(ROW, "[[threat"),
        ["decision.toml: Expected ']]' at the end of an array declaration (at end of document)"],
    ),
    "no threat at all": (row(ROW, ""), ["threat-model/threats holds no threat"]),
    "a page that names what is gone": (
        {"threat-model/README.md": "See `kernel/gone.py`."},
        ["threat-model/README.md: `kernel/gone.py` is gone"],
    ),
    "a decision that names what is gone": (
        {"threat-model/decisions/0001-x.md": "See `tests/gone/`."},
        ["threat-model/decisions/0001-x.md: `tests/gone/` is gone"],
    ),
    "a stale table": (
        {"threat-model/TABLE.md": "# Threats\n"},
        ["threat-model/TABLE.md is stale: run `python threat-model/check.py --write`"],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_tree_is_told(tmp_path: Path, name: str) -> None:
    changes, expected = BROKEN[name]
    assert told(tmp_path, changes) == expected


def test_a_missing_table_is_stale(tmp_path: Path) -> None:
    told(tmp_path, {})
    (tmp_path / check.TABLE).unlink()
    assert check.faults(tmp_path, TODAY) == [
        "threat-model/TABLE.md is stale: run `python threat-model/check.py --write`"
    ]


def test_the_table_says_what_the_rows_say(tmp_path: Path) -> None:
    told(tmp_path, {"threat-model/threats/view.toml": OPEN.replace("DEC-001", "VIS-001")})
    lines = (tmp_path / check.TABLE).read_text().splitlines()
    assert lines[4] == "2 threats: 1 mitigated, 0 accepted, 1 open, 0 out-of-scope."
    linked = "[a policy that errs](threats/{}) | engine | {}"
    held = "[test_it_denies](../tests/test_cedar.py)<br>[TestMachine::runTest](../tests/test_cedar.py)"
    assert lines[8:] == [
        f"| NS-DEC-001 | {linked.format('decision.toml', 'mitigated')} | {held} | M01 |",
        f"| NS-VIS-001 | {linked.format('view.toml', 'open until 2026-12-01')} | {held} | M01 |",
    ]
