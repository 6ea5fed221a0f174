"""Every broken directory of ``tests/vectors/policies`` is refused with all of its faults, each at its place.

A vector is a directory ``policies`` and ``expected.json``: where, code, fix, and a part of the cause, of each
fault; ``"warning": true`` where the app boots all the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from .newsroom import newsroom, told

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "vectors" / "policies"
NAMES = sorted(path.name for path in VECTORS.iterdir())
MAY_DIE = "ten-thousand-levels"
PATIENCE = 120

Told = list[dict[str, str]]


def apart(policies: Path) -> tuple[int, Told, Told]:
    """Boot in a process of its own: its exit status, the faults and the warnings."""
    command = [sys.executable, "-m", "tests.kernel.newsroom", str(policies)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    faults, warnings = json.loads(ended.stdout or "[[], []]")
    return ended.returncode, faults, warnings


def said(name: str) -> tuple[Told, Told]:
    """The faults and warnings of a vector."""
    policies = VECTORS / name / "policies"
    if MAY_DIE in name:
        return apart(policies)[1:]
    faults, warnings = ([asdict(each) for each in part] for part in told(policies))
    return faults, warnings


def placed(faults: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return sorted((each["where"], each["code"], each["fix"]) for each in faults)


def expected(name: str) -> list[dict[str, Any]]:
    wanted: list[dict[str, Any]] = json.loads((VECTORS / name / "expected.json").read_text())
    return wanted


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_directory_is_told_with_places_codes_and_fixes(name: str) -> None:
    wanted = expected(name)
    faults, warnings = said(name)
    assert placed(faults) == placed([each for each in wanted if not each.get("warning")])
    assert placed(warnings) == placed([each for each in wanted if each.get("warning")])


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_says_what_is_wrong(name: str) -> None:
    faults, warnings = said(name)
    causes = [(each["code"], each["cause"]) for each in (*faults, *warnings)]
    for each in expected(name):
        assert [cause for code, cause in causes if code == each["code"] and each["cause"] in cause], each


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_is_one_line_of_reasonable_length(name: str) -> None:
    faults, warnings = said(name)
    assert [each for each in (*faults, *warnings) if "\n" in each["cause"] or len(each["cause"]) > 300] == []


def test_the_vectors_are_numbered_without_a_gap() -> None:
    assert [name[:3] for name in NAMES] == [f"{number:02}-" for number in range(1, len(NAMES) + 1)]
    assert len(NAMES) >= 30


def test_the_app_of_the_vectors_boots_without_their_faults(tmp_path: Path) -> None:
    """Or every vector would be refused for a reason of the app's own."""
    assert told(tmp_path) == ((), ())
    assert newsroom(tmp_path).kernel.catalog.tools == {"publish", "erase", "report"}


# what could kill the process

MANY = 10_000
HEAD = 'permit (principal, action == Action::"report", resource)'


def nested(opening: str, inner: str, closing: str) -> str:
    return opening * MANY + inner + closing * MANY


CONDITIONS = {
    "branches": nested("if true then ", "true", " else true"),
    "sets": nested("[", "", "]") + " == []",
    "records": nested("{a: ", "1", "}") + " == {}",
    "indices": "resource" + '["a"]' * MANY,
    "sums": "1 + " * MANY + "1 == 1",
    "relations": "1 == " * MANY + "1",
    "brackets that nobody closes": "(" * MANY,
}
DEEP = {
    **{what: ("own.cedar", f"{HEAD} when {{ {text} }};") for what, text in CONDITIONS.items()},
    "clauses": ("own.cedar", HEAD + '\nwhen { principal.id == "x" }' * MANY + ";"),
    "a thousand clauses": ("own.cedar", HEAD + '\nunless { principal.id == "x" }' * 1_000 + ";"),
    "records in a schema": ("own.cedarschema", f"entity A = {{ x: {nested('{x: ', 'Long', '}')} }};"),
    "sets in a schema": ("own.cedarschema", f"entity A = {{ x: {nested('Set<', 'Long', '>')} }};"),
    "links": ("own.links.json", nested("[", "", "]")),
}


@pytest.mark.parametrize("what", DEEP)
def test_ten_thousand_levels_are_refused_and_the_process_lives(what: str, tmp_path: Path) -> None:
    name, text = DEEP[what]
    (tmp_path / name).write_text(text)
    status, faults, _ = apart(tmp_path)
    assert status == 0
    assert {each["where"].partition(":")[0] for each in faults} == {name}


# what is sound


def test_types_of_one_schema_file_may_name_those_of_another(tmp_path: Path) -> None:
    (tmp_path / "a.cedarschema").write_text("entity Team in [Org] = { lead: Person };\n")
    (tmp_path / "b.cedarschema").write_text("entity Org;\nentity Person;\n")
    assert told(tmp_path) == ((), ())


def test_types_in_a_namespace_are_known_to_policies(tmp_path: Path) -> None:
    (tmp_path / "own.cedarschema").write_text('namespace App {\n  entity Tier enum ["gold"];\n}\n')
    (tmp_path / "own.cedar").write_text(f'{HEAD} when {{ principal == App::Tier::"gold" }};')
    faults, _ = told(tmp_path)
    assert faults == ()
