"""Cases in the format of Cedar's public integration tests, answered by our wrapper and by our slices.

``make review`` runs a whole corpus when ``NONSUCH_CEDAR_CORPUS`` names a checkout of
``cedar-policy/cedar-integration-tests``; the cases in ``tests/vectors/cedar_corpus`` are ours.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from nonsuch.kernel import cedar, cedar_text
from nonsuch.kernel.cedar import Decision
from nonsuch.kernel.cedar_text import Key, Policy
from nonsuch.kernel.policies import Index

SMOKE: Final = Path(__file__).resolve().parents[1] / "vectors" / "cedar_corpus"
CORPUS: Final = os.environ.get("NONSUCH_CEDAR_CORPUS", "")
Case = dict[str, Any]


@dataclass
class Tally:
    """What came of some cases: how many requests were answered, what was not asked and why, what differed."""

    asked: int = 0
    left: Counter[str] = field(default_factory=Counter[str])
    differ: list[str] = field(default_factory=list[str])


def cases(root: Path) -> list[Path]:
    """Return the cases below a directory: JSON files with requests. Entities are lists, so they have none."""
    return sorted(path for path in root.rglob("*.json") if '"requests"' in path.read_text("utf-8"))


def run(root: Path, path: Path, tally: Tally) -> None:
    """Ask every request of a case; paths in it are relative to ``root``."""
    case: Case = json.loads(path.read_text("utf-8"))
    text, entities, schema = (
        (root / case[name]).read_text("utf-8") for name in ("policies", "entities", "schema")
    )
    try:
        policies = cedar_text.parse(text, "policy")
    except cedar_text.PolicyRefused as refusal:  # too deep, or an extension that no tree holds
        tally.left[type(refusal).__name__] += len(case["requests"])
        return
    of = cedar.schema(schema)
    if (not cedar.invalid(policies, of)) is not case["shouldValidate"]:
        tally.differ.append(f"{path.name}: should validate: {case['shouldValidate']}")
    held = cedar.entities(entities, of)
    parents = lineage(json.loads(entities))
    positions = {policy.id: f"policy{number}" for number, policy in enumerate(policies)}
    for request in case["requests"]:
        if request["action"]["type"] != "Action":  # our apps declare actions without a namespace
            tally.left["namespaced action"] += 1
            continue
        tally.asked += 1
        answers = {
            "the set": policies,
            "the slice": Index(policies).slice(
                *(keys(request[it], parents) for it in ("principal", "resource"))
            ),
        }
        for what, asked in answers.items():
            told = answer(request, asked, held, of, positions)
            if told != wanted(request):
                tally.differ.append(f"{path.name}: {request['description']}: {what}: {told}")


def answer(
    request: Case, policies: Any, held: cedar.Entities, of: cedar.Schema, positions: dict[str, str]
) -> Decision:
    """Ask the wrapper, and name policies by position as the corpus does."""
    chosen: tuple[Policy, ...] = tuple(policies)
    context = json.dumps(request["context"])
    principal, resource = request["principal"], request["resource"]
    told = cedar.decide(
        principal, request["action"]["id"], resource, context, cedar.policy_set(chosen), held, of
    )
    named = [
        tuple(sorted(positions.get(each, each) for each in ids)) for ids in (told.determining, told.errors)
    ]
    return Decision(told.allow, *named)


def wanted(request: Case) -> Decision:
    """What our rule makes of the expected answer: an error denies, and then nothing determined it."""
    if request["errors"]:
        return Decision(False, errors=tuple(sorted(request["errors"])))
    return Decision(request["decision"].lower() == "allow", tuple(sorted(request["reason"])))


def uid_of(node: Case) -> tuple[str, str]:
    plain: Case = node.get("__entity", node)
    return plain["type"], plain["id"]


def lineage(entities: list[Case]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    return {uid_of(each["uid"]): [uid_of(parent) for parent in each["parents"]] for each in entities}


def keys(node: Case, parents: dict[tuple[str, str], list[tuple[str, str]]]) -> set[Key]:
    """Return the keys of a request's entity: its type, itself and everything above it."""
    above, found = [uid_of(node)], set[tuple[str, str]]()
    while above:
        if (one := above.pop()) not in found:
            found.add(one)
            above.extend(parents.get(one, ()))
    return {(node["type"],), *found}


@pytest.mark.parametrize("name", [str(path.relative_to(SMOKE)) for path in cases(SMOKE)])
def test_a_case_of_ours(name: str) -> None:
    tally = Tally()
    run(SMOKE, SMOKE / name, tally)
    assert (tally.differ, tally.left) == ([], {})
    assert tally.asked > 0


def test_the_cases_of_ours_hold_every_kind_of_answer() -> None:
    """Allowed, denied by a policy, denied by none, denied by an error; a set that must not validate."""
    read = [json.loads(path.read_text()) for path in cases(SMOKE)]
    answers = [(wanted(each), each["decision"]) for case in read for each in case["requests"]]
    kinds = {(told.allow, bool(told.determining), bool(told.errors), said) for told, said in answers}
    assert kinds == {
        (True, True, False, "allow"),
        (False, True, False, "deny"),
        (False, False, False, "deny"),
        (False, False, True, "deny"),
        (False, False, True, "allow"),
    }
    assert {case["shouldValidate"] for case in read} == {True, False}
    assert len(read) >= 15


BROKEN: dict[str, Any] = {"decision": "deny", "reason": ["policy1"], "errors": ["policy0"]}


@pytest.mark.parametrize("member", BROKEN)
def test_another_expected_answer_differs(member: str, tmp_path: Path) -> None:
    """Or the runner could not fail."""
    case = json.loads((SMOKE / "tests/heads/1.json").read_text())
    request = case["requests"][0]
    assert request["decision"] == "allow"
    request[member] = BROKEN[member]
    if member == "decision":
        request["reason"] = []
    path = tmp_path / "case.json"
    path.write_text(json.dumps(case))
    tally = Tally()
    run(SMOKE, path, tally)
    assert [each.split(": ")[2] for each in tally.differ] == ["the set", "the slice"]


def test_another_answer_of_the_validator_differs(tmp_path: Path) -> None:
    case = json.loads((SMOKE / "tests/heads/1.json").read_text()) | {"shouldValidate": False}
    (tmp_path / "case.json").write_text(json.dumps(case))
    tally = Tally()
    run(SMOKE, tmp_path / "case.json", tally)
    assert tally.differ == ["case.json: should validate: False"]


@pytest.mark.skipif(not CORPUS, reason="NONSUCH_CEDAR_CORPUS names no corpus")
def test_the_public_corpus(tmp_path: Path) -> None:
    tally = Tally()
    for root in corpora(Path(CORPUS), tmp_path):
        for path in cases(root):
            run(root, path, tally)
    assert tally.differ == []
    assert tally.asked > 4 * tally.left.total(), tally.left


def corpora(root: Path, spare: Path) -> Iterator[Path]:
    """Yield the corpus, and what its archive holds where nobody unpacked it."""
    archive = root / "corpus-tests.tar.gz"
    yield root
    if archive.exists() and not (root / "corpus-tests").is_dir():
        with tarfile.open(archive) as packed:
            packed.extractall(spare, filter="data")
        yield spare
