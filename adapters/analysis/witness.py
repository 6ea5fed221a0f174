"""Asks the judge about one party of a call, and about single policies and parts of their conditions.

Every answer is the engine's, to a policy set that holds only what is asked about. Decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import BaseModel

from ...kernel import cedar
from ...kernel.catalog import Catalog, Entry
from ...kernel.cedar import Decision, Policy
from ...kernel.compile import Base
from ...kernel.judge import Judge
from ...kernel.model import Agent, Principal
from ...kernel.policies import Policies
from ...kernel.schema import InputBroken
from ...kernel.shapes import Field, Unencodable, encode_fields
from ...kernel.strict_json import Json
from .attempts import UNLOADED, Facts
from .condition_text import mentions, reads, tidy

Truth = Literal["true", "false", "error", "unknown"]
_HUMANS: Final = tuple(
    cedar.parse(f"permit (principal is Human, action{action}, resource);", f"<every human, {gate}>")[0]
    for gate, action in (
        ("visibility", ' == Action::"see"'),
        ("scope", ' == Action::"present"'),
        ("policy", ' in Action::"any"'),
    )
)


@dataclass(frozen=True, slots=True)
class Condition:
    """One part of a policy's condition, what the engine says of it, and the values it reads."""

    text: str
    holds: Truth
    values: tuple[tuple[str, Json], ...] = ()


@dataclass(frozen=True, slots=True)
class Considered:
    """A policy about the call. ``applies`` is whether its head fits; ``conditions`` only stand if it does."""

    policy: Policy
    applies: bool
    conditions: tuple[Condition, ...] = ()

    @property
    def holds(self) -> Truth:
        """Whether the policy takes effect: the first part that is not true decides, as in the engine."""
        if not self.applies:
            return "false"
        states: list[Truth] = [each.holds for each in self.conditions]
        if "false" in states and "error" not in states[: states.index("false")]:
            return "false"
        if "error" in states:
            return "error"
        return "unknown" if "unknown" in states else "true"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of one gate about one party: the agent, or the human it acts for."""

    party: Principal
    holds: Truth
    determining: tuple[str, ...]
    considered: tuple[Considered, ...] = ()


class Witness:
    """The policies of an app, asked in any selection."""

    def __init__(self, catalog: Catalog, base: Base, policies: Policies) -> None:
        self.catalog, self.policies, self._base = catalog, policies, base
        self.judge = Judge(catalog, base, policies)

    def judge_of(
        self,
        visibility: Iterable[Policy] = (),
        scope: Iterable[Policy] = (),
        policy: Iterable[Policy] = (),
        *,
        filled: bool = False,
    ) -> Judge:
        """Return the judge of some policies; ``filled`` permits all to humans, so that the agent decides."""
        gates = [tuple(visibility), tuple(scope), tuple(policy)]
        if filled:
            gates = [(*gate, human) for gate, human in zip(gates, _HUMANS, strict=True)]
        return Judge(self.catalog, self._base, Policies(*gates))

    def sees(self, party: Principal, principal: Principal, entry: Entry) -> Verdict:
        """Return whether a party sees an entry, and by which policies."""
        kind, who, filled = alone(party, principal)

        def seen(policies: Iterable[Policy]) -> bool:
            judge = self.judge_of(visibility=[cedar.confined(each, kind) for each in policies], filled=filled)
            return entry.audience in judge.visible(judge.caller(who))

        if not seen(self.policies.visibility):
            return Verdict(party, "false", ())
        by = tuple(each.id for each in self.policies.visibility if each.permit and seen([each]))
        return Verdict(party, "true", by)

    def presents(self, party: Principal, principal: Principal, scope: str) -> Verdict:
        """Return whether a party presents a scope, and by which policies."""
        kind, who, filled = alone(party, principal)

        def shown(policies: Iterable[Policy]) -> Decision:
            judge = self.judge_of(scope=[cedar.confined(each, kind) for each in policies], filled=filled)
            return judge.presents(judge.caller(who), scope)

        decision = shown(self.policies.scope)
        if not decision.allow:
            return Verdict(party, truth(decision), decision.determining or decision.errors)
        by = tuple(each.id for each in self.policies.scope if each.permit and shown([each]).allow)
        return Verdict(party, "true", by)


def alone(party: Principal, whole: Principal) -> tuple[str | None, Principal, bool]:
    """Return how to ask about a party alone: the type to confine policies to, who calls, ``filled``."""
    if isinstance(party, Agent) and party.acts_for is not None:
        return "Agent", whole, True
    return None, party, False


class Scene:
    """One call at the policy gate, whose policies are asked about one by one."""

    def __init__(
        self, witness: Witness, principal: Principal, entry: Entry, given: BaseModel, facts: Facts
    ) -> None:
        self.witness, self.principal, self.entry, self.given = witness, principal, entry, given
        self.loaded = facts != UNLOADED or entry.resource is None
        self.facts = facts if isinstance(facts, BaseModel) else None
        self.ident = witness.judge.server if entry.resource is None else str(getattr(self.facts, "id", ""))
        self.about = witness.policies.about(entry).policies

    def verdict(self, party: Principal) -> Verdict:
        considered = tuple(self._considered(each, party) for each in self.about)
        if not self.loaded:
            return Verdict(party, _undecided(considered), (), considered)
        return Verdict(party, truth(self._decision(party)), self.decided(party), considered)

    def decided(self, party: Principal) -> tuple[str, ...]:
        """Return the policies that decide for a party: what forbids or errs, else what permits."""
        kind, who, filled = alone(party, self.principal)
        decision = self._decision(party)
        if not decision.allow or not filled:
            return decision.determining or decision.errors
        single = ((each, [cedar.confined(each, kind)]) for each in self.about if each.permit)
        return tuple(each.id for each, own in single if self._ask(own, who, filled=True).allow)

    def _decision(self, party: Principal) -> Decision:
        kind, who, filled = alone(party, self.principal)
        return self._ask([cedar.confined(each, kind) for each in self.about], who, filled=filled)

    def _considered(self, policy: Policy, party: Principal) -> Considered:
        kind, who, filled = alone(party, self.principal)
        (_, head), *parts = cedar.conditions(policy, kind)
        if not self._ask([head], who, filled=filled).allow:
            return Considered(policy, False)
        return Considered(policy, True, tuple(self._condition(text, part, party) for text, part in parts))

    def _condition(self, raw: str, part: Policy, party: Principal) -> Condition:
        text = tidy(raw)
        if not self.loaded and mentions(text, "resource"):
            return Condition(text, "unknown", self._values(text, party))
        _, who, filled = alone(party, self.principal)
        return Condition(text, truth(self._ask([part], who, filled=filled)), self._values(text, party))

    def _ask(self, policies: Sequence[Policy], who: Principal, *, filled: bool) -> Decision:
        judge = self.witness.judge_of(policy=policies, filled=filled)
        try:
            context = judge.context(self.entry, self.given)
        except (Unencodable, InputBroken):
            return Decision(False, errors=("<request>",))
        return judge.permits(judge.caller(who), self.entry, self.facts, self.ident, context)

    def _values(self, text: str, party: Principal) -> tuple[tuple[str, Json], ...]:
        return tuple((name, self._value(name, party)) for name in reads(text) if self._known(name, party))

    def _known(self, name: str, party: Principal) -> bool:
        return not name.startswith("resource.") or self.facts is not None

    def _value(self, name: str, party: Principal) -> Json:
        owner, _, attribute = name.rpartition(".")
        if owner == "principal":
            return _of_party(party, attribute)
        if owner == "resource":
            fields = self.entry.resource.fields if self.entry.resource else ()
            return _of_record(fields, self.facts, attribute)
        return _of_record(self.entry.arguments, self.given, attribute)


def _of_party(party: Principal, attribute: str) -> Json:
    person = party.acts_for if isinstance(party, Agent) else party
    match attribute:
        case "roles":
            return list[Json](sorted(party.roles))
        case "scopes":
            return None if party.scopes is None else list[Json](sorted(party.scopes))
        case "org":
            return party.org
        case "id":
            return party.id
        case "user" | "actsFor":
            return None if person is None else person.id
        case _:
            return None


def _of_record(fields: Iterable[Field], value: BaseModel | None, attribute: str) -> Json:
    chosen = [
        Field(each.name, each.attribute, each.shape, False) for each in fields if each.name == attribute
    ]
    try:
        return encode_fields(chosen, value).get(attribute) if value is not None else None
    except Unencodable:
        return None


def truth(decision: Decision) -> Truth:
    return "true" if decision.allow else "error" if decision.errors else "false"


def _undecided(considered: Iterable[Considered]) -> Truth:
    """What is certain without facts: a forbid that holds, or that no permit could."""
    held = list(considered)
    if any(each.holds == "true" and not each.policy.permit for each in held):
        return "false"
    if all(each.holds == "false" for each in held if each.policy.permit):
        return "false"
    if all(each.holds == "false" for each in held if not each.policy.permit):
        return "true" if any(each.holds == "true" for each in held) else "unknown"
    return "unknown"
