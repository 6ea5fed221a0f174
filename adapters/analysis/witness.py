"""Asks the judge about one party of a call, and about single policies and parts of their conditions.

Every answer is the engine's, to a policy set that holds only what is asked about. Decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from ...kernel import cedar, cedar_parts, cedar_text
from ...kernel.catalog import Catalog, Entry
from ...kernel.cedar import Decision
from ...kernel.cedar_text import Policy
from ...kernel.compile import Base
from ...kernel.judge import Judge
from ...kernel.model import Agent, Principal
from ...kernel.policies import Policies
from ...kernel.schema import InputBroken
from ...kernel.shapes import Field, Unencodable, encode_fields
from ...kernel.strict_json import Json
from .attempts import UNLOADED, Facts
from .condition_text import mentions, reads
from .parts import Condition, Oracle, Truth, Values, combined, in_order

_HUMANS: Final = tuple(
    cedar_text.parse(f"permit (principal is Human, action{action}, resource);", f"<every human, {gate}>")[0]
    for gate, action in (
        ("visibility", ' == Action::"see"'),
        ("scope", ' == Action::"present"'),
        ("policy", ' in Action::"any"'),
    )
)


@dataclass(frozen=True, slots=True)
class Considered:
    """A policy about the call. ``applies`` is whether its head fits; ``conditions`` only stand if it may.

    A policy that reads a resource that is not there is not ``asked``, and that denies.
    """

    policy: Policy
    applies: Truth
    conditions: tuple[Condition, ...] = ()
    asked: bool = True

    @property
    def holds(self) -> Truth:
        """Whether the policy takes effect."""
        if self.applies == "false":
            return "false"
        if not self.asked:
            return "error"
        inner = combined("and", self.conditions)
        return "unknown" if self.applies == "unknown" and inner != "false" else inner


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
            judge = self.judge_of(
                visibility=[cedar_parts.confined(each, kind) for each in policies], filled=filled
            )
            return entry.audience in judge.visible(judge.caller(who))

        if not seen(self.policies.visibility):
            return Verdict(party, "false", ())
        by = tuple(each.id for each in self.policies.visibility if each.permit and seen([each]))
        return Verdict(party, "true", by)

    def presents(self, party: Principal, principal: Principal, scope: str) -> Verdict:
        """Return whether a party presents a scope, and by which policies."""
        kind, who, filled = alone(party, principal)

        def shown(policies: Iterable[Policy]) -> Decision:
            judge = self.judge_of(
                scope=[cedar_parts.confined(each, kind) for each in policies], filled=filled
            )
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
        self.missing = facts is None and entry.resource is not None
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
        single = ((each, [cedar_parts.confined(each, kind)]) for each in self.about if each.permit)
        return tuple(each.id for each, own in single if self._ask(own, who, filled=True).allow)

    def _decision(self, party: Principal) -> Decision:
        kind, who, filled = alone(party, self.principal)
        return self._ask([cedar_parts.confined(each, kind) for each in self.about], who, filled=filled)

    def _considered(self, policy: Policy, party: Principal) -> Considered:
        kind, who, filled = alone(party, self.principal)
        (_, head), *parts = cedar_parts.conditions(policy, kind)
        texts, whole = [text for text, _ in parts], dict(parts)
        supposed = self._supposed(policy)
        if not self._ask([head], who, supposed, filled=filled).allow:
            return Considered(policy, "false")
        applies: Truth = "true" if supposed == self.ident else "unknown"

        def holds(text: str) -> Truth:
            if not self.loaded and mentions(text, "resource"):
                return "unknown"
            asked = whole.get(text) or _part(head, text)
            return truth(self._ask([asked], who, supposed, filled=filled))

        oracle = Oracle(holds, lambda text: self._values(text, party))
        asked = not (self.missing and policy.reads_resource)
        return Considered(policy, applies, in_order("and", texts, oracle, reached=asked), asked)

    def _supposed(self, policy: Policy) -> str:
        """Return the id to ask a policy about: the one its head names, where none is loaded."""
        return policy.resource[1] if not self.loaded and len(policy.resource) == 2 else self.ident

    def _ask(
        self, policies: Sequence[Policy], who: Principal, ident: str | None = None, *, filled: bool
    ) -> Decision:
        judge = self.witness.judge_of(policy=policies, filled=filled)
        try:
            context = judge.context(self.entry, self.given)
        except (Unencodable, InputBroken):
            return Decision(False, errors=("<request>",))
        over = self.ident if ident is None else ident
        return judge.permits(judge.caller(who), self.entry, self.facts, over, context)

    def _values(self, text: str, party: Principal) -> Values:
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


def _part(head: Policy, text: str) -> Policy:
    """Return the permit of a head and one condition. Raises: PolicyRefused."""
    written = str(cedar.policy_set([head])).strip().removesuffix(";")
    return cedar_text.parse(f"{written} when {{ {text} }};", head.where)[0]


def _undecided(considered: Iterable[Considered]) -> Truth:
    """What is certain whatever the facts are, and also if there is no such resource."""
    held = [each for each in considered if each.holds != "false"]
    if any(each.holds == "error" for each in held):
        return "error"
    if any(each.holds == "true" and not each.policy.permit for each in held):
        return "false"
    if not any(each.policy.permit for each in held):
        return "false"
    certain = all(each.holds == "true" for each in held) and not any(
        each.policy.reads_resource for each in considered if each.applies != "false"
    )
    return "true" if certain else "unknown"
