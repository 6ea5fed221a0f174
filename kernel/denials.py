"""Why a call is refused, in words: by scope, by policy, or by a code of ours. Decides nothing itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .catalog import Entry
from .cedar import Decision
from .codes import CODES
from .confirmation import Deciding
from .errors import unpermitted
from .judge import Judge
from .model import Failed, PolicyDenied, PolicyError, ScopeDenied
from .told import Told
from .view import View

_NOTES: Final = frozenset({"code", "reason", "fix"})
_NO_NOTES: Final[Mapping[str, str]] = {}


def unscoped(view: View, entry: Entry) -> ScopeDenied | PolicyError | None:
    """Ask the scope gate, and return its refusal."""
    if entry.scope is None:
        return None
    presented = view.judge.presents(view.caller, entry.scope)
    if presented.allow:
        return None
    if not presented.errors:
        return ScopeDenied(entry.scope)
    return PolicyError(presented.errors, *unpermitted(entry.permission, of_a_resource=False))


def denied(
    judge: Judge, entry: Entry, decision: Decision, *, missing: bool, facts: object = None
) -> PolicyDenied | PolicyError:
    """Return a denial. A missing resource reads like a foreign one that nothing permits.

    Only the audit knows of errors. That an agent is no principal of what only people do is none.
    """
    cause, fix, caller_fix = unpermitted(entry.permission, of_a_resource=entry.resource is not None)
    of_people = isinstance(entry.confirming, Deciding) and decision.errors == ("<request>",)
    if decision.errors and not missing and not of_people:
        return PolicyError(decision.errors, cause, fix, caller_fix)
    words = (
        facts.words([judge.by_id[each] for each in decision.determining]) if isinstance(facts, Told) else None
    )
    if words is not None:
        return PolicyDenied(words.code, words.cause, words.fix, words.fix, decision.determining)
    told = (judge.annotations[each] for each in decision.determining)
    notes = next((each for each in told if not _NOTES.isdisjoint(each)), _NO_NOTES)
    return PolicyDenied(
        code=notes.get("code", "X_FORBIDDEN"),
        cause=notes.get("reason", cause),
        fix=notes.get("fix", fix),
        caller_fix=notes.get("fix", caller_fix),
        policies=decision.determining,
    )


def failed(code: str) -> Failed:
    """Return a failure in the standard words of a code."""
    standard = CODES[code]
    return Failed(code, standard.cause, standard.fix, standard.caller_fix)
