"""The guard of ``db.query`` as an app has it: the shipped catalogue and policies, and a verdict for a text.

Runs no SQL. What the kernel reads as text is read from the package here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from ...kernel import sql_catalog, sql_verdict
from ...kernel.compile import PolicySource
from ...kernel.sql_catalog import NOTHING, Catalogue, Own
from ...kernel.sql_facts import SqlFacts
from ...kernel.sql_verdict import QueryPolicies, Verdict
from .extras import require
from .sql_parse import facts_of, facts_of_async

_PACKAGE: Final = __name__.partition(".")[0]
_SHIPPED: Final = ("never.cedar", "sql.cedar")


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, and the facts that it was made from."""

    verdict: Verdict
    facts: SqlFacts


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """Judges the text of queries for one app."""

    catalogue: Catalogue
    policies: QueryPolicies
    own: Own = NOTHING

    def judge(self, text: object) -> Judged:
        """Return whether something is the text of one statement that reads. Raises: RuntimeError."""
        return self._judged(facts_of(text, self.catalogue, self.own), text)

    async def judge_async(self, text: object) -> Judged:
        """Return the same; the event loop goes on. Raises: RuntimeError."""
        return self._judged(await facts_of_async(text, self.catalogue, self.own), text)

    def _judged(self, facts: SqlFacts, text: object) -> Judged:
        return Judged(sql_verdict.judge(facts, text if isinstance(text, str) else "", self.policies), facts)


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
