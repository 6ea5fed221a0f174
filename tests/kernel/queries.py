"""The guard as an app without names of its own has it, and the corpus of queries that it is judged by."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from nonsuch.adapters.edge.sql_guard import Guard, Judged, guard
from nonsuch.kernel.sql_catalog import Own
from nonsuch.kernel.sql_facts import SqlFacts

VECTORS: Final = Path(__file__).resolve().parents[1] / "vectors" / "sql"


@dataclass(frozen=True, slots=True)
class Row:
    """One statement of the corpus, and what a guard ought to say of it."""

    id: str
    verdict: str
    tier: str
    confidence: str
    family: str
    text: str

    @property
    def firm(self) -> bool:
        """Whether there is no doubt about it."""
        return self.confidence == "firm"


def lines(name: str) -> list[dict[str, Any]]:
    """The objects of a file of lines."""
    return [json.loads(line) for line in (VECTORS / name).read_text("utf-8").splitlines()]


def corpus() -> list[Row]:
    """Every row; a large text is written as pieces and how often each is repeated."""
    return [
        Row(held["id"], held["verdict"], held["tier"], held["confidence"], held["family"], _text(held))
        for held in lines("corpus.jsonl")
    ]


def _text(held: dict[str, Any]) -> str:
    return "".join(piece * times for piece, times in held["gen"]) if "gen" in held else held["sql"]


@cache
def shipped() -> Guard:
    """The guard of an app that lists nothing."""
    return guard()


def judged(text: object, own: Own | None = None) -> Judged:
    """What the guard says of a text."""
    asked = shipped()
    return (asked if own is None else Guard(asked.catalogue, asked.policies, own)).judge(text)


def facts(text: str, own: Own | None = None) -> SqlFacts:
    """The facts of a text that is accepted."""
    told = judged(text, own)
    assert told.verdict.allow, (text, told.verdict)
    return told.facts


def refusal(text: object, own: Own | None = None) -> tuple[str | None, str | None, str | None]:
    """Family, cause and place of a text that is refused."""
    verdict = judged(text, own).verdict
    assert not verdict.allow, text
    assert verdict.fix
    return verdict.family, verdict.cause, None if verdict.place is None else str(verdict.place)
