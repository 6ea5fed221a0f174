"""The properties see every mutant and let the real code live."""

from __future__ import annotations

import pytest

from .policy_table import POLICY_MUTANTS
from .rewrite import Edit, PolicyEdit, Stale, applied
from .runner import EVERY, PROPERTIES, REAL, Killed, run, table, write


@pytest.fixture(scope="module")
def results() -> list[Killed]:
    found = run((REAL, *EVERY))
    write(found)
    return found


def test_every_mutant_still_applies_to_the_code(results: list[Killed]) -> None:
    assert [each.stale for each in results if each.stale] == []


def test_the_real_code_survives_every_property(results: list[Killed]) -> None:
    assert [each.by for each in results if each.mutant == REAL.name] == [()]


def test_every_mutant_is_killed(results: list[Killed], capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print("\n" + table(results))  # noqa: T201 - the table is what a reader wants to see
    assert [each.mutant for each in results if not each.by and each.mutant != REAL.name] == []


def test_there_are_mutants_of_every_kind() -> None:
    assert len({mutant.name for mutant in EVERY}) == len(EVERY)
    assert len(POLICY_MUTANTS) >= 20
    assert len(EVERY) - len(POLICY_MUTANTS) >= 20
    assert {mutant.first for mutant in EVERY} <= {"", *(each.name for each in PROPERTIES)}


@pytest.mark.parametrize(
    "edit",
    [
        Edit("kernel.gates:_decide", (("no such text", ""),)),
        Edit("kernel.gates:no_such_function", (("a", "b"),)),
        Edit("kernel.gates:_decide", (("if missing:", "if missing"),)),
        PolicyEdit("no such text", ""),
    ],
)
def test_an_edit_that_no_longer_applies_says_so(edit: Edit | PolicyEdit) -> None:
    with pytest.raises(Stale), applied([edit]):
        pass
