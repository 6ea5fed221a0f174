"""The gates, in their one order: visibility, scope, arguments, policy; then a Permit and the handler.

A generator: it yields what it asks of the world and is sent answers. The only maker of a Permit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from pydantic import BaseModel

from .audit import tool_call
from .catalog import Catalog, Entry
from .cedar import Decision
from .codes import CODES
from .errors import ActionError
from .judge import Judge
from .model import (
    Call,
    Failed,
    Hidden,
    InvalidArguments,
    Issue,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    Principal,
    ScopeDenied,
)
from .schema import InputBroken, Invalid, OutputRefused
from .shapes import Unencodable
from .steps import Audit, Load, Permit, Raised, Returned, Steps, UnknownStep
from .view import View, Viewer


class Kernel:
    """One app's catalog and judge. Stateless but for memos; safe to share between threads."""

    def __init__(self, catalog: Catalog, judge: Judge) -> None:
        self.catalog, self.judge = catalog, judge
        self._viewer = Viewer(catalog, judge)

    def view_for(self, principal: Principal) -> View:
        """Return what ``principal`` may see."""
        return self._viewer.view_for(principal)

    def invoke(self, view: View, call: Call) -> Steps[Outcome]:
        """Decide a call, run it if every gate permits, and have the outcome audited.

        1. visibility  2. scope  3. arguments  4. policy  5. the handler  6. serialise  7. audit.
        The caller must still turn the outcome into an answer, and record the audit event only
        after that answer has left.
        """
        entry = view.find(call.name, call.surface)  # 1. hidden and absent are this one miss
        if entry is None:
            outcome: Outcome = Hidden(call.name)
        else:
            outcome = yield from _decide(self.judge, view, entry, call)
        name = call.name if entry is None else entry.name
        yield Audit(tool_call(view.principal, name, call.surface, outcome))
        return outcome


_NO_NOTES: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What a call acts on: its facts (``None``: no such resource) and its id."""

    facts: BaseModel | None
    id: str


def _decide(judge: Judge, view: View, entry: Entry, call: Call) -> Steps[Outcome]:
    # 2. scope
    if entry.scope is not None:
        presented = judge.presents(view.caller, entry.scope)
        if not presented.allow:
            return PolicyError(presented.errors) if presented.errors else ScopeDenied(entry.scope)
    # 3. arguments
    try:
        given = entry.input.parse(call.arguments)
        if isinstance(given, Invalid):
            return InvalidArguments(given.issues)
        context = judge.context(entry, given)
    except InputBroken:
        return _failed("X_INTERNAL")
    except Unencodable as fault:
        return InvalidArguments((Issue(fault.path, fault.problem),))
    # 4. policy
    loaded = yield from _load(judge, entry, given, view.principal)
    if isinstance(loaded, (Failed, PolicyError)):
        return loaded
    missing = entry.resource is not None and loaded.facts is None
    decision = judge.permits(view.caller, entry, loaded.facts, loaded.id, context)
    if not decision.allow:
        return _denied(judge, entry, decision, missing=missing)
    if missing:
        return _failed("X_NOT_FOUND")
    # 5. the handler, 6. its answer
    answer = yield Permit(entry, given, view.principal, loaded.facts)
    return _answered(entry, answer.value) if isinstance(answer, Returned) else _raised(answer)


def _load(
    judge: Judge, entry: Entry, given: BaseModel, principal: Principal
) -> Steps[_Loaded | Failed | PolicyError]:
    if entry.resource is None:
        return _Loaded(None, judge.server)
    answer = yield Load(entry.resource.loader, given, principal)
    match answer:
        case Raised():
            return _raised(answer)
        case Returned(None):
            return _Loaded(None, "")
        case Returned(facts) if isinstance(facts, entry.resource.model):
            return _Loaded(facts, str(getattr(facts, "id")))  # noqa: B009  (checked at boot)
        case Returned():
            return _failed("X_INTERNAL")
        case _:
            assert_never(answer)


def _denied(judge: Judge, entry: Entry, decision: Decision, *, missing: bool) -> PolicyDenied | PolicyError:
    """A missing resource reads like a foreign one that nothing permits; only the audit knows of errors."""
    if decision.errors and not missing:
        return PolicyError(decision.errors)
    standard, permission = CODES["X_FORBIDDEN"], entry.permission
    ask = f"ask the account owner for the permission `{permission}`"
    if entry.resource is not None:
        ask += ", or name one that you may act on"
    notes = judge.annotations[decision.determining[0]] if decision.determining else _NO_NOTES
    return PolicyDenied(
        code=notes.get("code", standard.code),
        cause=notes.get("reason", f"no policy permits `{permission}` here"),
        fix=notes.get("fix", standard.fix),
        caller_fix=notes.get("fix", ask),
        policies=decision.determining,
    )


def _answered(entry: Entry, value: object) -> Outcome:
    if entry.single and value is None:
        return _failed("X_NOT_FOUND")
    try:
        return Ok(entry.output.serialise(value))
    except OutputRefused:
        return _failed("X_OUTPUT_INVALID")


def _raised(answer: Raised) -> Failed | PolicyError:
    """Application errors are told to the caller in their own words; anything else never is."""
    error = answer.error
    if isinstance(error, UnknownStep):
        return PolicyError(("<edge>",))
    if isinstance(error, ActionError):
        return Failed(error.code, error.cause, error.fix, error.caller_fix)
    return _failed("X_INTERNAL")


def _failed(code: str) -> Failed:
    standard = CODES[code]
    return Failed(code, standard.cause, standard.fix, standard.caller_fix)
