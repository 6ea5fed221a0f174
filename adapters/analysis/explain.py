"""Why a call is decided as it is: every answer is the kernel's own, asked again about parts of policies.

A condition is taken apart at ``&&`` and each part is put before the judge as a policy of its own.
Runs no handler and loads nothing: facts arrive as a value, or are said to be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from ...kernel.catalog import Catalog, Entry
from ...kernel.compile import Base
from ...kernel.gates import Kernel
from ...kernel.model import Call, Principal, parties
from ...kernel.policies import Policies
from ...kernel.schema import InputBroken, Invalid
from .attempts import Attempt, Facts, attempt, with_role
from .condition_text import reads
from .witness import Scene, Verdict, Witness

GateName = Literal["visibility", "scope", "arguments", "policy", "facts"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a call ends as it does.

    ``gate`` is the one that decided, ``None`` when every gate permits; ``helps`` names roles of which one
    more would do; ``reads`` is what policies read; ``missing`` says that there is no such resource.
    """

    call: Call
    attempt: Attempt
    entry: Entry | None
    gate: GateName | None
    verdicts: tuple[Verdict, ...] = ()
    helps: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    missing: bool = False


class Explainer:
    """Explains calls of one app under one set of policies."""

    def __init__(self, catalog: Catalog, base: Base, policies: Policies) -> None:
        self.catalog = catalog
        self._witness = Witness(catalog, base, policies)
        self.kernel = Kernel(catalog, self._witness.judge)
        self._entries = {entry.name: entry for entry in catalog.entries}

    def explain(self, principal: Principal, call: Call, facts: Facts) -> Explanation:
        """Return which gate decided, what every policy about the call says, and which roles would help."""
        tried = attempt(self.kernel, principal, call, facts)
        entry = self._entries.get(call.name)
        match tried.outcome:
            case "hidden" if entry is None or not entry.exposed:
                return Explanation(call, tried, None, "visibility")
            case _ if entry is None:
                return Explanation(call, tried, None, None)
            case "hidden":
                seen = tuple(self._witness.sees(party, principal, entry) for party in parties(principal))
                return Explanation(
                    call, tried, entry, "visibility", seen, self._helping(principal, call, facts, "hidden")
                )
            case "scope-denied":
                scope = entry.scope or ""
                shown = tuple(self._witness.presents(party, principal, scope) for party in parties(principal))
                return Explanation(call, tried, entry, "scope", shown)
            case "invalid-args":
                return Explanation(call, tried, entry, "arguments")
            case _:
                return self._policy(principal, call, facts, entry, tried)

    def _policy(
        self, principal: Principal, call: Call, facts: Facts, entry: Entry, tried: Attempt
    ) -> Explanation:
        given = _given(entry, call)
        if given is None:
            return Explanation(call, tried, entry, "arguments")
        scene = Scene(self._witness, principal, entry, given, facts)
        verdicts = tuple(scene.verdict(party) for party in parties(principal))
        texts = (each.text for verdict in verdicts for one in verdict.considered for each in one.conditions)
        attributes = tuple(sorted({name for text in texts for name in reads(text)}))
        gate: GateName | None = "policy"
        if tried.outcome in ("ok", "undecided"):
            gate = None if tried.outcome == "ok" else "facts"
        helps = self._helping(principal, call, facts, tried.outcome) if gate == "policy" else ()
        missing = facts is None and entry.resource is not None
        return Explanation(call, tried, entry, gate, verdicts, helps, attributes, missing)

    def determining(self, principal: Principal, call: Call, facts: Facts) -> tuple[str, ...]:
        """Return the policies of every gate that decide a call, for the agent and for its human."""
        entry, tried = self._entries.get(call.name), attempt(self.kernel, principal, call, facts)
        if entry is None or tried.outcome == "hidden":
            return ()
        found: list[str] = []
        for party in parties(principal):
            found += self._witness.sees(party, principal, entry).determining
            if entry.scope is not None:
                found += self._witness.presents(party, principal, entry.scope).determining
        given = None if tried.outcome in ("scope-denied", "invalid-args") else _given(entry, call)
        if given is None:
            return tuple(dict.fromkeys(found))
        scene = Scene(self._witness, principal, entry, given, facts)
        for party in parties(principal):
            found += scene.decided(party)
        return tuple(dict.fromkeys(found))

    def _helping(self, principal: Principal, call: Call, facts: Facts, outcome: str) -> tuple[str, ...]:
        """Return the roles of which one more would take the caller past this outcome."""
        roles = sorted(self.catalog.roles - principal.roles)
        more = ((role, attempt(self.kernel, with_role(principal, role), call, facts)) for role in roles)
        if outcome == "hidden":
            return tuple(role for role, got in more if got.outcome != "hidden")
        return tuple(role for role, got in more if got.outcome in ("ok", "undecided"))


def _given(entry: Entry, call: Call) -> BaseModel | None:
    """Return the input of a call, ``None`` if it does not fit or a validator of the application raises."""
    try:
        given = entry.input.parse(call.arguments)
    except InputBroken:
        return None
    return None if isinstance(given, Invalid) else given
