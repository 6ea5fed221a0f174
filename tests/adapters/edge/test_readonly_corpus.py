"""The corpus over a real database: what only a database shows is refused too, and every read really runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Final

import pytest

from nonsuch.adapters.edge.postgres.readonly import GUARDS, Asked, ReadOnly
from nonsuch.adapters.edge.postgres.readonly_judge import judged_by
from nonsuch.adapters.edge.postgres.readonly_live import LiveCheck
from nonsuch.adapters.edge.postgres.refused import DatabaseRefused
from nonsuch.adapters.edge.sql_guard import Judged

from ...kernel.queries import Row, corpus
from .readonly_lab import GUARD, VECTORS, Lab, laboratory, ran

ROWS: Final = corpus()
REVIEWED: Final = json.loads((VECTORS / "reviewed.json").read_text("utf-8"))
MOST_REFUSED: Final = 0.01


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with laboratory() as made:
        yield made


@pytest.fixture(scope="module")
def told(lab: Lab) -> dict[str, Judged]:
    """What the guard says of every row with the database at hand."""
    found = asyncio.run(judged_by(lab.of("agent_login"), GUARD, [each.text for each in ROWS]))
    return {row.id: each for row, each in zip(ROWS, found, strict=True)}


def _ids(verdict: str, *, firm: bool | None = None) -> list[Row]:
    return [each for each in ROWS if each.verdict == verdict and firm in (None, each.firm)]


def test_every_attack_is_refused_once_the_database_is_asked(told: dict[str, Judged]) -> None:
    passed = [each.id for each in _ids("refuse") if told[each.id].verdict.allow]
    assert passed == []
    assert {told[each.id].verdict.code for each in _ids("refuse")} == {"X_MCP_QUERY_REJECTED"}


def test_few_reads_are_refused_and_each_is_reviewed(told: dict[str, Judged]) -> None:
    reads = _ids("accept", firm=True)
    refused = {each.id for each in reads if not told[each.id].verdict.allow}
    assert refused == REVIEWED["accepts that are refused with a database"].keys()
    assert len(refused) <= MOST_REFUSED * len(reads)


def test_a_database_shows_what_the_text_cannot(told: dict[str, Judged]) -> None:
    """Or the one about attacks could not fail: without it these pass, and these reads are refused."""
    hidden = REVIEWED["attacks that only the catalogue of the database shows"].keys()
    assert {each.id for each in ROWS if each.id in hidden and GUARD.judge(each.text).verdict.allow} == hidden
    honest = REVIEWED["accepts that are refused"].keys()
    assert all(told[each].verdict.allow for each in honest)


def test_every_read_runs_through_all_layers(lab: Lab, told: dict[str, Judged]) -> None:
    reads = [each for each in _ids("accept") if told[each.id].verdict.allow]
    assert ran(_ran(lab, reads, told)) == REVIEWED["reads that the server itself refuses"]


async def _ran(lab: Lab, reads: list[Row], told: dict[str, Judged]) -> dict[str, str]:
    """The reads that failed, and the server's words; each of the others reports every layer that it has."""
    database = ReadOnly(lab.of("agent_login"), seconds=20, check=LiveCheck(GUARD))
    failed: dict[str, str] = {}
    try:
        for row in reads:
            try:
                found = await database.query(Asked(row.text, told[row.id].facts))
            except DatabaseRefused as refusal:
                failed[row.id] = refusal.cause
                continue
            caps = {"row-limit", "cell-limit"} if told[row.id].facts.kinds[0] != "explain" else set[str]()
            every = {*GUARDS} - {"role:set", "execute-revoked", "row-limit", "cell-limit"} | caps
            assert set(found.guards) == every, (row.id, found.guards)
            assert found.bytes <= 256 * 1024
    finally:
        await database.close()
    return failed
