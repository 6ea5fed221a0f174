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
from .errors import ActionError, Fault, unpermitted
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
from .shapes import Unencodable, copied
from .steps import Audit, Load, Permit, Raised, Returned, Steps, UnknownStep
from .view import View, Viewer


class Kernel:
    """One app's catalog and judge. Stateless but for memos; safe to share between threads."""

    def __init__(self, catalog: Catalog, judge: Judge, warnings: tuple[Fault, ...] = ()) -> None:
        self.catalog, self.warnings = catalog, warnings
        self._viewer = Viewer(catalog, judge)

    @property
    def judge(self) -> Judge:
        """The judge of requests that begin now."""
        return self._viewer.judge

    def swap(self, judge: Judge, warnings: tuple[Fault, ...] = ()) -> None:
        """Judge every request that begins from now on by other policies; those under way keep theirs.

        The memos of the old judge go with it, so that what it permitted is not remembered.
        """
        self.warnings, self._viewer = warnings, Viewer(self.catalog, judge)

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
            outcome = yield from _decide(view.judge, view, entry, call)
        name = call.name if entry is None else entry.name
        yield Audit(tool_call(view.principal, name, call.surface, outcome))
        return outcome


_NOTES: Final = frozenset({"code", "reason", "fix"})
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
            return _unpresented(entry, entry.scope, presented)
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


def _unpresented(entry: Entry, scope: str, presented: Decision) -> ScopeDenied | PolicyError:
    if not presented.errors:
        return ScopeDenied(scope)
    return PolicyError(presented.errors, *unpermitted(entry.permission, of_a_resource=False))


def _load(
    judge: Judge, entry: Entry, given: BaseModel, principal: Principal
) -> Steps[_Loaded | Failed | PolicyError]:
    if entry.resource is None:
        return _Loaded(None, judge.server)
    # a loader may change what it gets; the handler gets what was judged
    answer = yield Load(entry.resource.loader, copied(given), principal)
    match answer:
        case Raised(error):
            return _edge_denied(error) or _failed("X_INTERNAL")  # no word of it: no policy was asked yet
        case Returned(None):
            return _Loaded(None, "")
        case Returned(facts):
            return _identified(facts, entry.resource.model)
        case _:
            assert_never(answer)


def _identified(facts: object, model: type[BaseModel]) -> _Loaded | Failed:
    ident = getattr(facts, "id", None)
    if not (isinstance(facts, model) and isinstance(ident, str)):
        return _failed("X_INTERNAL")
    try:
        return _Loaded(copied(facts), ident)  # a row that others share may change meanwhile
    except Exception:  # noqa: BLE001  (a row of the application's may refuse to be copied in any way)
        return _failed("X_INTERNAL")


def _denied(judge: Judge, entry: Entry, decision: Decision, *, missing: bool) -> PolicyDenied | PolicyError:
    """A missing resource reads like a foreign one that nothing permits; only the audit knows of errors."""
    cause, fix, caller_fix = unpermitted(entry.permission, of_a_resource=entry.resource is not None)
    if decision.errors and not missing:
        return PolicyError(decision.errors, cause, fix, caller_fix)
    told = (judge.annotations[each] for each in decision.determining)
    notes = next((each for each in told if not _NOTES.isdisjoint(each)), _NO_NOTES)
    return PolicyDenied(
        code=notes.get("code", "X_FORBIDDEN"),
        cause=notes.get("reason", cause),
        fix=notes.get("fix", fix),
        caller_fix=notes.get("fix", caller_fix),
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
    denied = _edge_denied(error)
    if denied is not None:
        return denied
    if not isinstance(error, Exception):
        return _failed("X_INTERRUPTED")
    if isinstance(error, ActionError):
        words = error.words()
        return Failed(*words) if words is not None else _failed("X_INTERNAL")
    return _failed("X_INTERNAL")


def _edge_denied(error: BaseException) -> PolicyError | None:
    standard = CODES["X_FORBIDDEN"]
    unknown = isinstance(error, UnknownStep)
    return PolicyError(("<edge>",), standard.cause, standard.fix, standard.caller_fix) if unknown else None


def _failed(code: str) -> Failed:
    standard = CODES[code]
    return Failed(code, standard.cause, standard.fix, standard.caller_fix)
