"""`nonsuch policy explain`: why a call is decided as it is. Runs no handler and loads no resource."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

from cyclopts import Parameter
from rich.console import Console

from ....kernel.model import NO_SCOPE, Agent, Call, Principal
from ...analysis.condition_text import Join
from ...analysis.explain import Explainer, Explanation
from ...analysis.parts import Condition
from ...analysis.witness import Considered, Verdict
from ..caller import SURFACE, entry_of, facts, known, names, principal, record
from ..options import ASKED, Asked
from ..render import FINDINGS, FINE, Result, effect
from .sentences import LEGEND, lines
from .words import Told, tell

_JOINS: Final[dict[Join, str]] = {"and": "all", "or": "any"}


def explain(
    *,
    as_: Annotated[str, Parameter(name="--as", help="roles of the caller, with commas; '' for none")],
    tool: str,
    input: Annotated[str, Parameter(help="arguments as JSON, `@file`, or `-` for stdin")] = "{}",
    facts_: Annotated[
        str | None,
        Parameter(name="--facts", help="what the resource loader would return; `null`: no such resource"),
    ] = None,
    scopes: Annotated[
        str | None, Parameter(help="scopes of the token, with commas; all if not given")
    ] = None,
    org: Annotated[str | None, Parameter(help="organisation of the caller")] = None,
    human: Annotated[
        bool,
        Parameter(name="--human", negative="--agent", help="a person instead of an agent that acts for one"),
    ] = False,
    asked: Asked = ASKED,
) -> Result:
    """Say which gate decides a call, what every policy about it says, and what would have to change.

    Exits with 1 where the call is refused or cannot be decided.
    """
    rules = asked.rules()
    catalog = rules.catalog
    roles = known("role", names(as_), catalog.roles)
    held = _scopes(scopes, catalog.scopes - {NO_SCOPE}, human=human)
    who = principal(roles, held, org, human=human)
    arguments, entry = record("--input", input), entry_of(catalog, tool)
    loaded = facts(entry, facts_)
    found = Explainer(catalog, rules.base, rules.policies).explain(
        who, Call(tool, arguments, SURFACE), loaded
    )
    told = tell(found, who, catalog)
    assumed = scopes is None and not human and bool(catalog.scopes - {NO_SCOPE})

    def show(console: Console) -> None:
        _show(console, found, told, who, assumed=assumed)

    return Result(_document(found, told, who), show, FINE if found.attempt.outcome == "ok" else FINDINGS)


def _scopes(given: str | None, declared: frozenset[str], *, human: bool) -> tuple[str, ...] | None:
    if given is not None:
        return known("scope", names(given), declared)
    return None if human else tuple(sorted(declared))


def _show(console: Console, found: Explanation, told: Told, who: Principal, *, assumed: bool) -> None:
    console.print(_caller(who, assumed=assumed), soft_wrap=True)
    console.print(f"\n{told.headline}", style="bold", soft_wrap=True)
    console.print(_gates(found))
    for title, lines_ in (("Why", told.because), ("What would have to change", told.changes)):
        if lines_:
            console.print(f"\n{title}:")
        for line in lines_:
            console.print(f"  - {line}", soft_wrap=True)
    marks = [mark for verdict, name in _parties(found) for mark in _show_policies(console, verdict, name)]
    if marks:
        used = [f"{mark} {meaning}" for mark, meaning in LEGEND.items() if mark in marks]
        console.print(f"\n{'; '.join(used)}", style="dim", soft_wrap=True)


def _gates(found: Explanation) -> str:
    loud = ("refused", "undecided")
    told = [f"{gate} {state.upper() if state in loud else state}" for gate, state in gates(found).items()]
    return f"Gates in order: {', '.join(told)}"


def gates(found: Explanation) -> dict[str, str]:
    """Return what each gate said: those before the one that decided passed, those after were not asked."""
    order = ("visibility", "scope", "arguments", "policy")
    if found.gate is None:
        return dict.fromkeys(order, "passed")
    at = order.index("policy" if found.gate == "facts" else found.gate)
    decided = "undecided" if found.gate == "facts" else "refused"
    return dict(zip(order, [*["passed"] * at, decided, *["not asked"] * (len(order) - at - 1)], strict=True))


def _caller(who: Principal, *, assumed: bool) -> str:
    kind = "an agent that acts for a person" if isinstance(who, Agent) and who.acts_for else "a person"
    roles = ", ".join(sorted(who.roles)) or "none"
    scopes = "a session, no token" if who.scopes is None else ", ".join(sorted(who.scopes)) or "none"
    note = " (every declared scope: none were given)" if assumed else ""
    return f"Caller: {kind}; roles: {roles}; organisation: {who.org or 'none'}; scopes: {scopes}{note}"


def _parties(found: Explanation) -> list[tuple[Verdict, str]]:
    """Return verdicts with a name; one for both where the agent and its human get the same."""
    held = found.verdicts
    if len(held) == 2 and held[0].considered == held[1].considered:
        return [(held[0], "the agent and its human alike")]
    return [(each, "the agent" if isinstance(each.party, Agent) else "the human") for each in held]


def _show_policies(console: Console, verdict: Verdict, name: str) -> Iterator[str]:
    """Print the policies of a verdict, and yield the marks that were used."""
    if verdict.considered:
        console.print(f"\nPolicies considered for {name}:")
    for each in verdict.considered:
        console.print(
            f"  {effect(each.policy)} {each.policy.id} ({each.policy.where}): {_state(each)}", soft_wrap=True
        )
        for mark, line in lines(each.conditions if each.asked else (), " " * 4):
            console.print(line, soft_wrap=True)
            yield mark


def _state(each: Considered) -> str:
    if each.applies == "false":
        return "is about other callers or resources"
    if not each.asked:
        return "reads a resource that is not there, so it is not asked, which denies"
    does = effect(each.policy)
    return {
        "true": f"{does}s",
        "false": f"does not {does}",
        "error": "cannot be evaluated, which denies",
        "unknown": "depends on the facts",
    }[each.holds]


def _document(found: Explanation, told: Told, who: Principal) -> dict[str, Any]:
    event = found.attempt.event
    return {
        "tool": found.call.name,
        "outcome": found.attempt.outcome,
        "code": event.code if event else None,
        "gate": found.gate,
        "gates": gates(found),
        "headline": told.headline,
        "why": list(told.because),
        "changes": list(told.changes),
        "roles_that_would_help": list(found.helps),
        "attributes_read": list(found.reads),
        "parties": [_party(each, who) for each in found.verdicts],
    }


def _party(each: Verdict, who: Principal) -> dict[str, Any]:
    kind = "human" if not isinstance(each.party, Agent) else "agent"
    return {
        "party": kind,
        "acts_for": isinstance(who, Agent) and kind == "agent" and who.acts_for is not None,
        "allowed": {"true": True, "false": False, "error": False, "unknown": None}[each.holds],
        "erred": each.holds == "error",
        "determining": list(each.determining),
        "considered": [_considered(one) for one in each.considered],
    }


def _considered(each: Considered) -> dict[str, Any]:
    return {
        "policy": each.policy.id,
        "effect": effect(each.policy),
        "where": each.policy.where,
        "head_applies": {"true": True, "false": False}.get(each.applies),
        "holds": each.holds if each.asked else "not asked",
        "conditions": [_condition(part) for part in each.conditions],
    }


def _condition(part: Condition) -> dict[str, Any]:
    told: dict[str, Any] = {"text": part.text, "holds": part.holds if part.reached else "not evaluated"}
    if part.reached:
        told["values"] = dict(part.values)
    if part.join is not None:
        told[_JOINS[part.join]] = [_condition(each) for each in part.parts]
    return told
