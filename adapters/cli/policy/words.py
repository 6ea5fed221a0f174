"""An explanation in sentences that a new user understands. Decides nothing."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from ....kernel.catalog import Catalog, Entry
from ....kernel.declare import EVERYONE
from ....kernel.model import Agent, Principal
from ....kernel.schema import Invalid
from ...analysis.explain import Explanation
from ...analysis.witness import Considered, Verdict
from ..caller import skeleton
from ..render import words
from .sentences import because, named, sentence, unwanted, wanted


@dataclass(frozen=True, slots=True)
class Told:
    """A headline, why, and what would have to change."""

    headline: str
    because: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


def tell(found: Explanation, who: Principal, catalog: Catalog) -> Told:
    """Return an explanation in words."""
    entry = found.entry
    if entry is None:
        return _unknown(found.call.name, catalog)
    match found.gate:
        case "visibility":
            return _hidden(found, entry, who, catalog)
        case "scope":
            return _scope(found, entry, who)
        case "arguments":
            return _arguments(found, entry)
        case "facts":
            return _facts(found, entry)
        case "policy":
            return _policy(found, entry)
        case None:
            return _permitted(found, entry)


def _unknown(name: str, catalog: Catalog) -> Told:
    close = difflib.get_close_matches(name, sorted(catalog.tools), n=3)
    hint = f"did you mean {words(close, 'or')}?" if close else "read the names with `nonsuch policy who`"
    return Told(f"`{name}` is no tool of this app (X_MCP_TOOL_UNKNOWN).", (), (hint,))


def _hidden(found: Explanation, entry: Entry, who: Principal, catalog: Catalog) -> Told:
    outside = [_name(each, who) for each in found.verdicts if each.holds != "true"]
    because = [
        _audience(entry, catalog),
        f"the caller has {_roles_of(who)}, so {' and '.join(outside)}"
        f" {'is' if len(outside) == 1 else 'are'} not in that audience",
    ]
    if isinstance(who, Agent) and who.acts_for is not None:
        because.append("an agent sees only what the human it acts for sees too")
    changes: list[str] = []
    if found.helps:
        changes.append(f"give the person the role {words(found.helps, 'or')}")
    changes.append(f"or let `{entry.name}` be seen by more: `visible_to` in its `expose(...)`")
    return Told(
        f"HIDDEN: for this caller `{entry.name}` does not exist; a call is answered like a name that nobody"
        " declared (X_MCP_TOOL_UNKNOWN).",
        tuple(because),
        tuple(changes),
    )


def _roles_of(who: Principal) -> str:
    return (
        f"the role{'s' if len(who.roles) > 1 else ''} {words(sorted(who.roles))}" if who.roles else "no role"
    )


def _audience(entry: Entry, catalog: Catalog) -> str:
    roles = catalog.role_audiences.get(entry.audience)
    if roles is not None:
        listed = words(roles, "or")
        return (
            f"`{entry.name}` is visible to callers with the role {listed}"
            if roles
            else "it is visible to nobody"
        )
    if entry.audience in catalog.conditions:
        return f"`{entry.name}` is visible where this holds: `{catalog.conditions[entry.audience]}`"
    if entry.audience == EVERYONE:
        return f"`{entry.name}` is visible to everyone, unless a policy about `see` forbids it"
    asked = getattr(catalog.predicates.get(entry.audience), "__name__", "a function")
    return f"`{entry.name}` is visible where `{asked}` of the app's code answers `True`"


def _scope(found: Explanation, entry: Entry, who: Principal) -> Told:
    carried = "no scope" if not who.scopes else words(sorted(who.scopes))
    short = [each for each in found.verdicts if each.holds != "true"]
    by_human = bool(short) and not any(isinstance(each.party, Agent) for each in short)
    holder = "the human's token" if by_human else "the caller's token"
    because = (
        f"`{entry.name}` needs the scope `{entry.scope}` (`scopes` in `define_app_mcp`)",
        f"{holder} carries {carried}",
        "a scope is a right of the token, so another role of the person does not help",
    )
    changes = (
        f"connect with a token that carries `{entry.scope}`: let `resolve_token` return it among the scopes",
        f"or move `{entry.name}` to another scope",
    )
    return Told(
        f"SCOPE DENIED: `{entry.name}` is visible, but the token may not use it (X_MCP_SCOPE_DENIED).",
        because,
        changes,
    )


def _arguments(found: Explanation, entry: Entry) -> Told:
    issues = tuple(str(each) for each in found.attempt.issues)
    if found.attempt.outcome == "failed":
        return Told(
            f"FAILED: a validator in the input of `{entry.name}` raised (X_INTERNAL): no policy was asked.",
            (),
            ("let it raise `ValueError` for what it refuses",),
        )
    if not isinstance(entry.input.parse(found.call.arguments), Invalid):
        return Told(
            f"INVALID ARGUMENTS: the schema of `{entry.name}` is satisfied, but a policy about it reads what"
            " no policy can hold (X_INPUT_INVALID).",
            (*issues, "the argument is bounded because a policy reads it: one that none reads is not"),
            ("correct the named fields of `--input`", "or bound them in the schema of the action"),
        )
    return Told(
        f"INVALID ARGUMENTS: the input does not satisfy the schema of `{entry.name}` (X_INPUT_INVALID), so no"
        " policy was asked.",
        issues,
        ("correct the named fields of `--input`",),
    )


def _facts(found: Explanation, entry: Entry) -> Told:
    kind = entry.resource.name if entry.resource else "resource"
    needed = [each for each in found.reads if each.startswith("resource.")]
    why = [f"visibility, scope and arguments are fine; the policy gate judges the {kind} that is acted on"]
    if needed:
        why.append(
            f"the policies read {words(needed)}, and no `--facts` were given: no resource is loaded here"
        )
    denied = next((each for each in found.verdicts if each.holds in ("false", "error")), None)
    if denied is not None:
        why += ["whatever the facts are, this call would be denied", *_why(denied, entry)]
    facts = (f"say what the resource is: --facts '{skeleton(entry)}'", "or --facts null: no such resource")
    changes = facts if denied is None else (*_changes(denied, entry), *_no_org(denied))
    return Told(f"UNDECIDED: whether `{entry.name}` is permitted depends on facts.", tuple(why), changes)


def _permitted(found: Explanation, entry: Entry) -> Told:
    by = dict.fromkeys(policy for each in found.verdicts for policy in each.determining)
    because = [f"{_sources(found, policy)} permits `{entry.permission}`" for policy in by]
    because += _reasons(found, tuple(by))
    return Told(
        f"PERMITTED: every gate lets `{entry.name}` through, and its handler would run.", tuple(because)
    )


def _sources(found: Explanation, policy: str) -> str:
    places = {each.policy.id: each.policy.where for verdict in found.verdicts for each in verdict.considered}
    return f"`{policy}` ({places[policy]})" if policy in places else f"`{policy}`"


def _reasons(found: Explanation, policies: tuple[str, ...]) -> Iterator[str]:
    """Yield which parts made these policies hold."""
    first = found.verdicts[0].considered if found.verdicts else ()
    for each in first:
        if each.policy.id in policies:
            yield from (sentence(part) for part in each.conditions)


def _policy(found: Explanation, entry: Entry) -> Told:
    event = found.attempt.event
    code = event.code if event else None
    if found.attempt.outcome == "failed" and code == "X_NOT_FOUND":
        return Told(
            f"NOT FOUND: every policy permits, but there is no such resource ({code}).", (), ("check the id",)
        )
    refused = next((each for each in found.verdicts if each.holds != "true"), None)
    if refused is None:
        return Told(f"REFUSED ({code or found.attempt.outcome}).")
    denied = "both the agent and its human are refused" if _all_refused(found) else _party(refused)
    head = "POLICY ERROR" if found.attempt.outcome == "policy-error" else "POLICY DENIED"
    return Told(
        f"{head}: the policies about `{entry.permission}` refuse `{entry.name}` ({code or 'X_FORBIDDEN'}).",
        (*([denied] if len(found.verdicts) > 1 else []), *_missing(found, refused), *_why(refused, entry)),
        (*_changes(refused, entry), *_no_org(refused), *_roles(found)),
    )


def _missing(found: Explanation, refused: Verdict) -> Iterator[str]:
    if found.missing and found.entry is not None and found.entry.resource is not None:
        unasked = [each.policy.id for each in refused.considered if _unasked(each)]
        read = f": {words(unasked)} read it and cannot be asked, and that denies" if unasked else ""
        yield f"there is no such {found.entry.resource.name}{read}"


def _unasked(each: Considered) -> bool:
    return each.applies != "false" and not each.asked


def _all_refused(found: Explanation) -> bool:
    return all(each.holds != "true" for each in found.verdicts)


def _party(refused: Verdict) -> str:
    if isinstance(refused.party, Agent):
        return "the agent is refused; its human alone would be permitted"
    return "the human is refused, and an agent never exceeds its human"


def _why(refused: Verdict, entry: Entry) -> Iterator[str]:
    forbids = [each for each in refused.considered if not each.policy.permit and each.holds == "true"]
    permits = [each for each in refused.considered if each.policy.permit]
    erred = [each for each in refused.considered if each.holds == "error" and each.asked]
    for each in forbids:
        yield f"{named(each)} forbids it{because(each.conditions)}"
    for each in erred:
        broken = next(part for part in each.conditions if part.holds == "error")
        yield f"{named(each)} cannot be evaluated, which denies: {sentence(broken)}"
    if any(each.holds == "true" for each in permits):
        winner = "one that forbids always wins" if forbids else "one that cannot be evaluated always denies"
        yield f"a policy would permit it, but {winner}"
        return
    if not permits:
        yield f"no policy is about `{entry.permission}`, and what nothing permits is denied"
    for each in permits:
        if each.applies == "false":
            yield f"{named(each)} is about other callers or resources"
        elif each.holds == "false":
            failing = [part for part in each.conditions if part.reached and part.holds == "false"]
            yield f"{named(each)} does not permit it{because(failing)}"


def _changes(refused: Verdict, entry: Entry) -> Iterator[str]:
    for each in refused.considered:
        fix = each.policy.annotations.get("fix")
        if each.holds == "true" and not each.policy.permit:
            ways = unwanted(each.conditions)
            yield fix or f"for `{each.policy.id}` to let it pass, {ways or 'the policy must go'}"
    if entry.resource is not None and any(_unasked(each) for each in refused.considered):
        yield "check the id: name one that exists"
    permits = [each for each in refused.considered if each.policy.permit and each.applies != "false"]
    if any(each.holds == "true" for each in permits):
        return
    for each in permits:
        if each.asked and each.holds != "unknown":
            yield f"for `{each.policy.id}` to permit it, {wanted(each.conditions)}"
    if not permits:
        example = f'permit (principal in Role::"...", action in Action::"{entry.permission}", resource);'
        yield f"write a policy: `{example}`"


def _no_org(refused: Verdict) -> Iterator[str]:
    parts = [part for each in refused.considered for part in each.conditions if part.reached]
    read = {name for part in parts for name, _ in part.values}
    if refused.party.org is None and "principal.org" in read:
        yield "the caller has no organisation: give one with `--org`; in the app `resolve_token` names it"


def _roles(found: Explanation) -> Iterator[str]:
    if found.helps:
        yield f"with the role {words(found.helps, 'or')} the same call would be permitted"


def _name(verdict: Verdict, who: Principal) -> str:
    if not isinstance(who, Agent) or who.acts_for is None:
        return "this caller"
    return "the agent" if isinstance(verdict.party, Agent) else "its human"
