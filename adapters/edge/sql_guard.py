"""The guard of ``db.query`` as an app has it: the shipped catalogue and policies, and a verdict for a text.

Runs no SQL. What the kernel reads as text is read from the package here. What is told of a text rests on the
text and on the guard alone, and a guard does not change: so the texts that came last are remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from ...kernel import sql_catalog, sql_verdict
from ...kernel.compile import PolicySource
from ...kernel.sql_catalog import NOTHING, Catalogue, Own
from ...kernel.sql_facts import SqlFacts
from ...kernel.sql_verdict import QueryPolicies, Verdict
from . import sql_parse
from .extras import require

_PACKAGE: Final = __name__.partition(".")[0]
_SHIPPED: Final = ("never.cedar", "sql.cedar")
TEXTS: Final = 64  # are remembered
LONGEST: Final = 2 * 1024  # characters of one of them
PIECES: Final = 128  # that one of them may have: what is told of it takes less than 128 KiB then


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, and the facts that it was made from."""

    verdict: Verdict
    facts: SqlFacts


@dataclass(slots=True)
class _Seen:
    """What was told of a text so far."""

    facts: SqlFacts | None = None
    verdict: Verdict | None = None

    def keep(self, facts: SqlFacts) -> SqlFacts:
        """Return facts, and remember those that are few."""
        pieces = (facts.relations, facts.calls, facts.attributes, facts.fields, facts.operators, facts.types)
        if sum(map(len, (*pieces, facts.offences))) <= PIECES:
            self.facts = facts
        return facts


def _memory() -> Callable[[str], _Seen]:
    @lru_cache(TEXTS)
    def place(text: str) -> _Seen:
        del text
        return _Seen()

    return place


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """Judges the text of queries for one app."""

    catalogue: Catalogue
    policies: QueryPolicies
    own: Own = NOTHING
    _seen: Callable[[str], _Seen] = field(init=False, repr=False, default_factory=_memory)

    def judge(self, text: object) -> Judged:
        """Return whether something is the text of one statement that reads. Raises: RuntimeError."""
        seen = self._place(text)
        facts = seen.facts or seen.keep(sql_parse.facts_of(text, self.catalogue, self.own))
        return self._judged(seen, facts, text)

    async def judge_async(self, text: object) -> Judged:
        """Return the same; the event loop goes on. Raises: RuntimeError."""
        seen = self._place(text)
        return self._judged(seen, await self._read(seen, text), text)

    async def facts_async(self, text: object) -> SqlFacts:
        """Return the facts of a text; the event loop goes on. Raises: RuntimeError."""
        return await self._read(self._place(text), text)

    async def _read(self, seen: _Seen, text: object) -> SqlFacts:
        read = sql_parse.facts_of_async
        return seen.facts or seen.keep(await read(text, self.catalogue, self.own))

    def _judged(self, seen: _Seen, facts: SqlFacts, text: object) -> Judged:
        seen.verdict = seen.verdict or sql_verdict.judge(
            facts, text if isinstance(text, str) else "", self.policies
        )
        return Judged(seen.verdict, facts)

    def _place(self, text: object) -> _Seen:
        """Return where to keep what is told of a text: for long, or for this time only."""
        return self._seen(text) if type(text) is str and len(text) <= LONGEST else _Seen()


async def facts_of_async(text: str, asked: Guard) -> SqlFacts:
    """Return the facts of a text, as a guard reads it. Raises: RuntimeError."""
    return await asked.facts_async(text)


def guard(own: Own = NOTHING, more: tuple[PolicySource, ...] = ()) -> Guard:
    """Return the guard of an app that lists ``own`` names and adds policies of its own.

    Raises: ExtraMissing, without pglast; PolicyRefused, for a policy that is not about ``db.query`` or does
    not fit its context.
    """
    require("pglast", "nonsuch[sql]")
    return Guard(catalogue(), sql_verdict.policies((*shipped(), *more)), own)


@cache
def catalogue() -> Catalogue:
    """Return the names of the PostgreSQL that the package knows."""
    return sql_catalog.read((files(_PACKAGE) / "adapters/edge/sql_catalog.json").read_text("utf-8"))


def shipped() -> tuple[PolicySource, ...]:
    """Return the policies about queries that the package ships."""
    directory = files(_PACKAGE) / "policies"
    return tuple(PolicySource(f"nonsuch/{name}", (directory / name).read_text("utf-8")) for name in _SHIPPED)
