"""Who can see, use and call what: for every declared role and tool, what the policies say of the role alone.

A part of a condition that reads nothing but roles is put before the judge; what else must hold stays as
text. Runs no handler, loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ...kernel import cedar_parts
from ...kernel.catalog import Catalog, Entry
from ...kernel.cedar_text import Policy
from ...kernel.compile import Base
from ...kernel.judge import NO_ARGUMENTS, Judge
from ...kernel.model import NO_SCOPE, Agent, Human, Principal
from ...kernel.policies import Policies
from .condition_text import may_err, negated, of_roles_only, tidy

Answer = Literal["always", "depends", "never"]
Token = Literal["none", "needed", "never"]
_ANSWERS: Final[tuple[Answer, ...]] = ("never", "depends", "always")
_TOKENS: Final[tuple[Token, ...]] = ("never", "needed", "none")
NOBODY: Final = ""
_PREDICATE: Final = "nonsuch.visibility.predicate"
_TRIAL: Final = "somebody"


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy that can still take effect for a role, and the conditions that decide whether it does."""

    policy: str
    permit: bool
    conditions: tuple[str, ...]

    def __str__(self) -> str:
        body = " && ".join(self.conditions) or "always"
        if self.permit:
            return body
        inner = negated(body) if len(self.conditions) == 1 else None
        return f"not if {body}" if inner is None else f"only if {inner}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the policies of a gate say of a role."""

    answer: Answer
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One role and one tool. ``role`` is empty for a caller without any."""

    tool: str
    role: str
    sees: Verdict
    scope: str | None
    token: Token
    calls: Verdict

    @property
    def word(self) -> str:
        """The cell in one word: hidden, or whether a call is permitted."""
        if self.sees.answer == "never":
            return "hidden"
        return "never" if self.token == "never" else self.calls.answer  # noqa: S105  (no password)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Every role by every tool."""

    roles: tuple[str, ...]
    tools: tuple[Entry, ...]
    cells: Mapping[tuple[str, str], Cell]


def who(
    catalog: Catalog,
    base: Base,
    policies: Policies,
    *,
    human: bool = False,
    tools: Iterable[str] | None = None,
    roles: Iterable[str] | None = None,
) -> Matrix:
    """Return the matrix: of agents that act for a person of the same role, or with ``human`` of persons."""
    chosen = None if tools is None else frozenset(tools)
    served = (each for each in catalog.entries if each.exposed)
    rows = tuple(each for each in served if chosen is None or each.name in chosen)
    columns = (*sorted(catalog.roles), NOBODY) if roles is None else tuple(roles)
    sides = [_Side(catalog, base, policies, Human)]
    if not human:
        sides.append(_Side(catalog, base, policies, Agent))
    cells = {(entry.name, role): _cell(sides, entry, role) for entry in rows for role in columns}
    return Matrix(columns, rows, cells)


def changed(before: Matrix, after: Matrix) -> list[tuple[Cell, Cell]]:
    """Return the cells that differ in what they mean, not in how a policy is named."""
    pairs = ((cell, after.cells[key]) for key, cell in before.cells.items() if key in after.cells)
    return [(old, new) for old, new in pairs if _meaning(old) != _meaning(new)]


def _meaning(cell: Cell) -> object:
    return cell.sees.answer, _texts(cell.sees), cell.scope, cell.token, cell.calls.answer, _texts(cell.calls)


def _texts(verdict: Verdict) -> frozenset[tuple[bool, frozenset[str]]]:
    return frozenset((each.permit, frozenset(each.conditions)) for each in verdict.rules)


def _cell(sides: Sequence[_Side], entry: Entry, role: str) -> Cell:
    sees, calls = [each.sees(entry, role) for each in sides], [each.calls(entry, role) for each in sides]
    tokens: list[Token] = [each.token(entry, role) for each in sides]
    strictest = min(tokens, key=_TOKENS.index)
    return Cell(entry.name, role, _both(sees), entry.scope, strictest, _both(calls))


def _both(verdicts: Iterable[Verdict]) -> Verdict:
    """Both the agent and its human must be allowed."""
    held = list(verdicts)
    answers: list[Answer] = [each.answer for each in held]
    answer = min(answers, key=_ANSWERS.index)
    deciding = [each for each in held if each.answer == answer]
    return Verdict(answer, tuple(dict.fromkeys(rule for each in deciding for rule in each.rules)))


class _Split:
    """A policy as the part that roles decide, and the texts of the rest."""

    def __init__(self, policy: Policy) -> None:
        (_, head), *parts = cedar_parts.conditions(policy)
        texts = [(tidy(text), part) for text, part in parts]
        self.policy = policy
        self.parts = [head, *(part for text, part in texts if of_roles_only(text))]
        self.rest = tuple(text for text, _ in texts if not of_roles_only(text))
        named = [(key, who) for key, who in ((policy.principal, "principal"), (policy.resource, "resource"))]
        self.heads = tuple(f'{who} == {key[0]}::"{key[1]}"' for key, who in named if _is_one(key))

    def rule(self, held: frozenset[str]) -> Rule | None:
        """Return what is left of the policy for a role, ``None`` if it can take no effect."""
        head, *others = self.parts
        if not all(each.id in held for each in others) or (head.id not in held and not self.heads):
            return None
        return Rule(self.policy.id, self.policy.permit, (*self.heads, *self.rest))


def _is_one(key: tuple[str, ...]) -> bool:
    """Whether a head names one entity that is neither a role nor an audience."""
    return len(key) == 2 and key[0] not in ("Role", "Audience", "Scope", "Server")


class _Side:
    """One kind of principal, asked about every role."""

    def __init__(self, catalog: Catalog, base: Base, policies: Policies, kind: type[Principal]) -> None:
        self._catalog, self._kind, self._policies = catalog, kind, policies
        self._split = {id(each): _Split(each) for each in (*policies.visibility, *policies.policy)}
        self._seeing = {
            part.id: Judge(catalog, base, Policies([part], (), ()))
            for each in policies.visibility
            for part in self._split[id(each)].parts
        }
        parts = [part for each in policies.policy for part in self._split[id(each)].parts]
        self._calling = Judge(catalog, base, Policies((), (), parts))
        self._judge = Judge(catalog, base, policies)
        self._seen: dict[tuple[str, str], Verdict] = {}

    def sees(self, entry: Entry, role: str) -> Verdict:
        key = (entry.audience, role)
        if key not in self._seen:
            self._seen[key] = self._sees(entry.audience, role)
        return self._seen[key]

    def _sees(self, audience: str, role: str) -> Verdict:
        principal = self._somebody(role)
        asked = audience in self._catalog.predicates
        held = frozenset(
            ident
            for ident, judge in self._seeing.items()
            if audience in judge.visible(judge.caller(principal))
        )
        about = [each for each in self._policies.visibility if asked or each.id != _PREDICATE]
        return _verdict([self._split[id(each)] for each in about], held)

    def token(self, entry: Entry, role: str) -> Token:
        if entry.scope is None:
            return "none"
        if self._presents(role, entry.scope, ()):
            return "none"
        return "needed" if self._presents(role, entry.scope, self._catalog.scopes - {NO_SCOPE}) else "never"

    def _presents(self, role: str, scope: str, scopes: Iterable[str]) -> bool:
        caller = self._judge.caller(self._somebody(role, scopes))
        return self._judge.presents(caller, scope).allow

    def calls(self, entry: Entry, role: str) -> Verdict:
        about = [self._split[id(each)] for each in self._policies.about(entry).policies]
        return _verdict(about, self._held(entry, role))

    def _held(self, entry: Entry, role: str) -> frozenset[str]:
        caller = self._calling.caller(self._somebody(role))
        ident = self._calling.server if entry.resource is None else ""
        told = entry.resource.model() if entry.resource is not None and entry.resource.told else None
        return frozenset(self._calling.permits(caller, entry, told, ident, NO_ARGUMENTS).determining)

    def _somebody(self, role: str, scopes: Iterable[str] = ()) -> Principal:
        roles = [role] if role else []
        if self._kind is Agent:
            return Agent(_TRIAL, roles=roles, scopes=scopes)
        return Human(_TRIAL, roles=roles)


def _verdict(about: Iterable[_Split], held: frozenset[str]) -> Verdict:
    rules = [rule for each in about if (rule := each.rule(held)) is not None]
    permits = [each for each in rules if each.permit]
    forbids = [each for each in rules if not each.permit]
    certain = [each for each in forbids if not each.conditions]
    if certain or not permits:
        return Verdict("never", tuple(certain))
    free = [each for each in permits if not each.conditions]
    risky = [each for each in permits if any(may_err(text) for text in each.conditions)]  # an error denies
    if free and not forbids and not risky:
        return Verdict("always", tuple(free))
    return Verdict("depends", (*(free or permits), *(risky if free else ()), *forbids))
