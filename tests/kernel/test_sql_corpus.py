"""The corpus: every attack that a text shows is refused; the reads that are refused are named and few."""

from __future__ import annotations

import json
from typing import Final

import pytest

from nonsuch.kernel.sql_catalog import Own

from .queries import VECTORS, Row, corpus, judged

ROWS: Final = corpus()
REVIEWED: Final = json.loads((VECTORS / "reviewed.json").read_text("utf-8"))
MOST_REFUSED: Final = 0.01


def _chosen(verdict: str, tier: str, *, firm: bool) -> list[Row]:
    return [each for each in ROWS if (each.verdict, each.tier, each.firm) == (verdict, tier, firm)]


def _answer(row: Row) -> str:
    return "accept" if judged(row.text).verdict.allow else "refuse"


def _wrong(rows: list[Row]) -> set[str]:
    return {each.id for each in rows if _answer(each) != each.verdict}


def test_the_corpus_is_whole() -> None:
    assert len(ROWS) == len({each.id for each in ROWS}) == 521
    assert len(_chosen("refuse", "parse", firm=True)) == 319
    assert len(_chosen("accept", "parse", firm=True)) == 149


@pytest.mark.parametrize("row", _chosen("refuse", "parse", firm=True), ids=lambda row: row.id)
def test_an_attack_that_the_text_shows_is_refused(row: Row) -> None:
    verdict = judged(row.text).verdict
    assert (verdict.allow, verdict.code) == (False, "X_MCP_QUERY_REJECTED")
    assert verdict.family
    assert verdict.cause
    assert verdict.fix


def test_a_doubtful_attack_is_refused_too() -> None:
    assert _wrong(_chosen("refuse", "parse", firm=False)) == set()


def test_few_reads_are_refused_and_each_is_reviewed() -> None:
    reads = [*_chosen("accept", "parse", firm=True), *_chosen("accept", "catalog", firm=True)]
    refused = _wrong(reads)
    assert refused == REVIEWED["accepts that are refused"].keys()
    of_the_text = refused & {each.id for each in _chosen("accept", "parse", firm=True)}
    assert len(of_the_text) <= MOST_REFUSED * len(_chosen("accept", "parse", firm=True))
    assert (
        _wrong(_chosen("accept", "parse", firm=False)) == REVIEWED["doubtful accepts that are refused"].keys()
    )


def test_what_only_the_database_shows_is_reviewed() -> None:
    missed = _wrong([each for each in ROWS if (each.verdict, each.tier) == ("refuse", "catalog")])
    assert missed == REVIEWED["attacks that only the catalogue of the database shows"].keys()


def test_the_reads_of_an_apps_own_functions_pass_once_it_lists_them() -> None:
    own = Own(functions=frozenset({"public.full_label", "public.price_with_tax"}))
    reads = [each for each in ROWS if each.verdict == "accept" and each.firm]
    assert [each.id for each in reads if not judged(each.text, own).verdict.allow] == []


def test_a_refusal_says_where() -> None:
    """A place is missing only where the text as a whole is wrong."""
    refused = [(each, judged(each.text).verdict) for each in ROWS if each.verdict == "refuse"]
    placeless = {each.family for each, verdict in refused if not verdict.allow and verdict.place is None}
    assert placeless == {"malformed", "oversize"}
