"""A call that an application runs itself: the same gates decide it, and then nothing runs here.

Makes no Permit: what follows a yes is the application's own code, in its own hands.
"""

from __future__ import annotations

from collections.abc import Mapping

from .audit import tool_call
from .catalog import Entry
from .denials import denied, failed, unscoped
from .judge import NO_ARGUMENTS, Judge
from .model import Failed, Hidden, InvalidArguments, Issue, Ok, Outcome, PolicyError
from .schema import InputBroken, Invalid
from .shapes import Unencodable
from .steps import Audit, Steps
from .strict_json import Json
from .view import View

PERMITTED = Ok(b"null")


def guarded(
    view: View, entry: Entry, facts: object, arguments: Mapping[str, Json] | None = None
) -> Steps[Outcome]:
    """Decide a call of an entry on a resource that the application loaded; ``Ok`` says that it may go on.

    1. visibility  2. scope  3. arguments  4. policy  5. audit. ``facts`` is an instance of the model that
    the entry acts on, ``None`` where there is no such row. Without ``arguments`` a policy that reads them
    cannot be asked, which denies.
    """
    outcome = _decided(view, entry, facts, arguments)
    name = entry.path or entry.name if isinstance(outcome, Hidden) else entry.name  # as a path is audited
    yield Audit(tool_call(view.principal, name, "http", outcome))
    return outcome


def stops_early(view: View, entry: Entry) -> bool:
    """Whether a call is refused whatever it acts on, by 1. visibility or 2. scope: nothing need be loaded."""
    return not view.holds(entry) or unscoped(view, entry) is not None


def _decided(view: View, entry: Entry, facts: object, arguments: Mapping[str, Json] | None) -> Outcome:
    if not view.holds(entry):  # 1
        return Hidden(entry.name)
    if entry.confirming is not None:  # nobody could wait here, and nobody decides here
        return failed("X_INTERNAL")
    refused = unscoped(view, entry)  # 2
    if refused is not None:
        return refused
    context = _context(view.judge, entry, arguments)  # 3
    if not isinstance(context, str):
        return context
    return _judged(view, entry, facts, context)  # 4


def _context(
    judge: Judge, entry: Entry, arguments: Mapping[str, Json] | None
) -> str | InvalidArguments | PolicyError | Failed:
    if arguments is None:
        return PolicyError(("<arguments>",)) if judge.gate(entry).fields else NO_ARGUMENTS
    try:
        given = entry.input.parse(arguments)
        return InvalidArguments(given.issues) if isinstance(given, Invalid) else judge.context(entry, given)
    except InputBroken:
        return failed("X_INTERNAL")
    except Unencodable as fault:
        return InvalidArguments((Issue(fault.path, fault.problem),))


def _judged(view: View, entry: Entry, facts: object, context: str) -> Outcome:
    judge, kind = view.judge, entry.resource
    if kind is None:
        decision = judge.permits(view.caller, entry, None, judge.server, context)
    elif facts is None:
        decision = judge.permits(view.caller, entry, None, "", context)
    elif isinstance(facts, kind.model) and isinstance(ident := getattr(facts, "id", None), str):
        decision = judge.permits(view.caller, entry, facts, ident, context)
    else:
        return failed("X_INTERNAL")
    missing = kind is not None and facts is None
    if not decision.allow:
        return denied(judge, entry, decision, missing=missing)
    return failed("X_NOT_FOUND") if missing else PERMITTED
