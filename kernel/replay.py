"""A call under an idempotency key: it runs once, and is answered again as it was answered first.

Asks the world for records; whether two calls are the same one is ``idempotency.py``'s rule. Makes no Permit.

A replay is judged anew: by today's view, scopes and policies, on the facts that the call was permitted on.
So nobody is answered whose right is gone, and what the call itself changed does not refuse its retry.
"""

from __future__ import annotations

from pydantic import BaseModel

from .catalog import Entry
from .denials import denied, failed
from .idempotency import Asked, Attempt, Judged, Kept, Parsed, attempt_of, frozen, packed, thawed, unpacked
from .model import Failed, Ok, Outcome, owner_key
from .seal import Seal
from .steps import Answer, Raised, Recall, Remember, Reserve, Reserved, Returned, Steps
from .view import View


def admitted(
    view: View, entry: Entry, asked: Asked, parsed: Parsed, seal: Seal | None
) -> Steps[Attempt | Outcome]:
    """Return the attempt that a keyed call is; or the answer it has already, or why it is none."""
    attempt = _attempted(view, entry, asked, parsed.input, seal)
    if not isinstance(attempt, Attempt):
        return attempt
    known = yield from _recalled(view, entry, attempt, parsed.context)
    return attempt if known is None else known


def _attempted(
    view: View, entry: Entry, asked: Asked, given: BaseModel, seal: Seal | None
) -> Attempt | Failed:
    if asked.key is None:
        return failed("X_IDEMPOTENCY_KEY_REQUIRED")
    if seal is None:
        return failed("X_IDEMPOTENCY_STORE_FAILED")
    try:
        owner = owner_key(view.judge.server, view.principal)
        return attempt_of(seal, owner, entry, asked.key, given, dict(asked.arguments))
    except (ValueError, RecursionError):  # what no wire carries: an integer without end, a value in itself
        return failed("X_INTERNAL")


def _recalled(view: View, entry: Entry, one: Attempt, context: str) -> Steps[Outcome | None]:
    answer = yield Recall(one.slot)
    match answer:
        case Returned(None):
            return None
        case Returned(Kept() as kept):
            return _again(view, entry, one, kept, context)
        case _:
            return failed("X_IDEMPOTENCY_STORE_FAILED")


def reserved(view: View, entry: Entry, one: Attempt, judged: Judged, context: str) -> Steps[Kept | Outcome]:
    """Begin the record of a call that was permitted; of several at once, one only is begun."""
    answer = yield Reserve(one.slot, one.digests[0], packed(judged), entry.atomic)
    match answer:
        case Returned(Reserved(kept, ours)):
            return kept if ours else _again(view, entry, one, kept, context)
        case _:
            return failed("X_IDEMPOTENCY_STORE_FAILED")


def remembered(kept: Kept | None, entry: Entry, answer: Answer, outcome: Outcome) -> Steps[Outcome]:
    """Keep how a call ended, and return what its caller is told.

    One that only asked its client something has not ended, and its next round is the same call. One that
    was interrupted stays begun: what it did is not known, so it is not run again. What an atomic one did is
    undone where it cannot be kept: then it is no success.
    """
    if kept is None:
        return outcome
    if not isinstance(outcome, (Ok, Failed)):
        yield Remember(kept, None)
    elif not isinstance(answer, Raised) or isinstance(answer.error, Exception):
        told = yield Remember(kept, frozen(outcome))
        if entry.atomic and not isinstance(told, Returned):
            return failed("X_IDEMPOTENCY_STORE_FAILED")
    return outcome


def _again(view: View, entry: Entry, one: Attempt, kept: Kept, context: str) -> Outcome:
    if kept.digest not in one.digests:
        return failed("X_IDEMPOTENCY_CONFLICT")
    judged = unpacked(kept.judged)
    if judged is None:
        return failed("X_IDEMPOTENCY_STORE_FAILED")
    decision = view.judge.permits_as_then(view.caller, entry, judged.ident, judged.facts, context)
    if not decision.allow:
        return denied(view.judge, entry, decision, missing=False)
    if kept.outcome is None:
        return failed("X_IDEMPOTENCY_IN_PROGRESS")
    return thawed(kept.outcome) or failed("X_IDEMPOTENCY_STORE_FAILED")
