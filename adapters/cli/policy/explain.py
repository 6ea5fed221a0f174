"""`nonsuch policy explain`: why a call is decided as it is. Runs no handler and loads no resource."""

from __future__ import annotations

from json import dumps
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from ....kernel.model import Agent, Call, Principal
from ...analysis.explain import Explainer, Explanation
from ...analysis.witness import Condition, Considered, Verdict
from ..caller import entry_of, facts, known, names, principal, record
from ..options import ASKED, Asked
from ..render import FINDINGS, FINE, Result
from .words import Told, tell

_MARK = {"true": "yes", "false": "NO", "error": "ERR", "unknown": "?"}


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
    held = _scopes(scopes, catalog.scopes, human=human)
    who = principal(roles, held, org, human=human)
    arguments, entry = record("--input", input), entry_of(catalog, tool)
    loaded = facts(entry, facts_)
    found = Explainer(catalog, rules.base, rules.policies).explain(who, Call(tool, arguments, "mcp"), loaded)
    told = tell(found, who, catalog)
    assumed = scopes is None and not human and bool(catalog.scopes)

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
    for title, lines in (("Why", told.because), ("What would have to change", told.changes)):
        if lines:
            console.print(f"\n{title}:")
        for line in lines:
            console.print(f"  - {line}", soft_wrap=True)
    for verdicts, name in _parties(found):
        if verdicts.considered:
            console.print(f"\nPolicies considered for {name}:")
        for each in verdicts.considered:
            _show_policy(console, each)


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


def _show_policy(console: Console, each: Considered) -> None:
    effect = "permit" if each.policy.permit else "forbid"
    state = "is about other callers or resources" if not each.applies else _state(each)
    console.print(f"  {effect} {each.policy.id} ({each.policy.where}): {state}", soft_wrap=True)
    for part in each.conditions:
        console.print(f"    {_MARK[part.holds]:<4} {part.text}{_values(part)}", soft_wrap=True)


def _state(each: Considered) -> str:
    effect = "permits" if each.policy.permit else "forbids"
    return {
        "true": effect,
        "false": f"does not {effect[:-1]}",
        "error": "cannot be evaluated, which denies",
        "unknown": "depends on the facts",
    }[each.holds]


def _values(part: Condition) -> str:
    told = [f"{name} = {_value(value)}" for name, value in part.values]
    return f"   [{', '.join(told)}]" if told else ""


def _value(value: Any) -> str:
    return "absent" if value is None else dumps(value, ensure_ascii=False)


def _document(found: Explanation, told: Told, who: Principal) -> dict[str, Any]:
    event = found.attempt.event
    return {
        "tool": found.call.name,
        "outcome": found.attempt.outcome,
        "code": event.code if event else None,
        "gate": found.gate,
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
        "effect": "permit" if each.policy.permit else "forbid",
        "where": each.policy.where,
        "head_applies": each.applies,
        "holds": each.holds,
        "conditions": [
            {"text": part.text, "holds": part.holds, "values": dict(part.values)} for part in each.conditions
        ],
    }
