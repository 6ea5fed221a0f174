"""A call of a tool that a person confirms: it waits, is refused, or may run once. Makes no Permit.

Asks the world for rows; what may follow what is ``confirmation.py``'s table. The order is that of the gates:
nothing is asked for a call that visibility, scope or arguments refuse, or whose caller nothing permits; and
nothing of a policy is known to a caller whose call nobody approved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from pydantic import BaseModel
from pydantic_core import to_json

from .catalog import Entry
from .codes import CODES
from .confirmation import IDENT, ActorKind, Asking, Confirmation, Gated, Opened, Slip, Status
from .denials import denied, failed
from .idempotency import Asked, Parsed, canonical
from .model import Agent, Failed, Ok, Outcome, Principal, Unconfirmed, owner_key
from .schema import InputBroken, Invalid
from .steps import Answer, MoveConfirmation, OpenConfirmation, Raised, Returned, Steps
from .strict_json import Json
from .view import View

ATTEMPTS: Final = 3
ROUNDS: Final = 16


def confirmed(
    view: View, entry: Entry, gated: Gated, asked: Asked, parsed: Parsed, slip: Slip
) -> Steps[Confirmation | Outcome]:
    """Return the approved row of a call; or why it does not run now: it waits, or is refused.

    1. whether anything could permit it to its caller  2. its open row, which is made if there is none
    3. what came of that, told once. Who loses a race for the telling looks again.
    """
    admission = view.judge.admits(view.caller, entry)  # 1
    if not admission.allow:
        return denied(view.judge, entry, admission, missing=False)
    asking = _asking(view, entry, gated, asked, parsed.input)
    if isinstance(asking, Failed):
        return asking
    for _ in range(ATTEMPTS):
        answer = yield OpenConfirmation(gated, asking)  # 2
        match answer:
            case Returned(Opened(row, at)):
                slip.confirmation = row.ident
                came = yield from _came(entry, gated, row, row.status_at(at))  # 3
                if came is not None:
                    return came
            case Returned(None):
                return failed("X_MCP_CONFIRMATIONS_FULL")
            case _:
                return failed("X_MCP_CONFIRMATION_STORE_FAILED")
    return _said("X_MCP_CONFIRMATION_CONTESTED", slip.confirmation or "")


def _came(
    entry: Entry, gated: Gated, row: Confirmation, status: Status
) -> Steps[Confirmation | Outcome | None]:
    """Return what came of a row; nothing, if somebody else was told of it meanwhile."""
    match status:
        case "pending":
            return _pending(entry, gated, row)
        case "approved":
            return row
        case "running":
            return _said("X_MCP_CONFIRMATION_CONTESTED", row.ident)
        case "rejected":
            told: Outcome = _said("X_MCP_CONFIRMATION_REJECTED", row.ident)
            return (yield from _once(row, "refused", told))
        case "expired":
            return (yield from _once(row, "expired", _said("X_MCP_CONFIRMATION_EXPIRED", row.ident)))
        case "interrupted":
            return (yield from _once(row, "interrupted", failed("X_INTERRUPTED")))
        case "ran" | "refused":  # not open any more: somebody else was told
            return None
        case _:
            assert_never(status)


def _once(row: Confirmation, to: Status, told: Outcome) -> Steps[Outcome | None]:
    """Say something once: to whoever changes the row."""
    answer = yield MoveConfirmation(row, to)
    if not isinstance(answer, Returned):
        return failed("X_MCP_CONFIRMATION_STORE_FAILED")
    return told if isinstance(answer.value, Confirmation) else None


def claimed(row: Confirmation) -> Steps[Confirmation | Outcome]:
    """Take the one run that an approval is good for; of any number of callers one gets it."""
    answer = yield MoveConfirmation(row, "running")
    match answer:
        case Returned(Confirmation() as running):
            return running
        case Returned(None):
            return _said("X_MCP_CONFIRMATION_CONTESTED", row.ident)
        case _:
            return failed("X_MCP_CONFIRMATION_STORE_FAILED")


def spent(row: Confirmation | None, answer: Answer, outcome: Outcome) -> Steps[None]:
    """Keep how the run of an approval ended.

    One that only asked its client something has not ended, and its next round needs no other approval: 16
    rounds, because each of them runs the handler up to its question again. One that was interrupted stays
    begun: what it did is not known, so it is not run again.
    """
    if row is None:
        return
    if not isinstance(outcome, (Ok, Failed)):
        yield MoveConfirmation(row, "approved" if row.version < 2 * ROUNDS else "ran")
    elif not isinstance(answer, Raised) or isinstance(answer.error, Exception):
        yield MoveConfirmation(row, "ran")


def unspent(row: Confirmation | None) -> Steps[None]:
    """Give an approval back whose run never began."""
    if row is not None:
        yield MoveConfirmation(row, "approved")


def fingerprint(
    gated: Gated, owner: str, entry: Entry, given: BaseModel, sent: Mapping[str, Json]
) -> str | None:
    """Return what tells a call of these arguments from every other; nothing for what no wire carries."""
    try:
        return gated.fingerprint(owner, entry.name, canonical(given, dict(sent)))
    except (ValueError, RecursionError):  # an integer without end, a value in itself
        return None


def carried(gated: Gated, row: Confirmation, entry: Entry, sent: Mapping[str, Json]) -> str | None:
    """Return the fingerprint of a row's call with the arguments that an approval carries.

    ``None`` for arguments that the tool would refuse. It is the row's own only for the very call that was
    asked for, under the input schema and the key of then.
    """
    try:
        given = entry.input.parse(sent)
    except InputBroken:
        return None
    return None if isinstance(given, Invalid) else fingerprint(gated, row.owner, entry, given, sent)


def noted(slip: Slip, given: BaseModel) -> None:
    """Write down which confirmation a person's call is about, and what they do with it."""
    ident, decision = getattr(given, "id", None), getattr(given, "decision", None)
    slip.confirmation = ident if isinstance(ident, str) and IDENT.fullmatch(ident) else None
    slip.decision = decision if isinstance(decision, str) else None


def _asking(view: View, entry: Entry, gated: Gated, asked: Asked, given: BaseModel) -> Asking | Failed:
    server, who = view.judge.server, view.principal
    owner = owner_key(server, who)
    print_ = fingerprint(gated, owner, entry, given, asked.arguments)
    if print_ is None:
        return failed("X_INTERNAL")
    person = who.acts_for.id if isinstance(who, Agent) and who.acts_for is not None else None
    kind: ActorKind = "agent" if isinstance(who, Agent) else "human"
    sent = to_json(dict(asked.arguments))
    return Asking(owner, _org(who), who.id, kind, person, server, entry.name, print_, sent)


def _org(who: Principal) -> str | None:
    """Return the organisation that a call is asked for: the agent's, or that of whom it acts for."""
    if who.org is None and isinstance(who, Agent) and who.acts_for is not None:
        return who.acts_for.org
    return who.org


# in words


def _pending(entry: Entry, gated: Gated, row: Confirmation) -> Unconfirmed:
    code, until = CODES["X_MCP_CONFIRMATION_PENDING"], row.expires.isoformat(timespec="seconds")
    cause = f"`{entry.shown}` waits for a person: confirmation `{row.ident}`, until {until}"
    fix = f"let a person decide it at {gated.place(row.ident)}, then send the very same call again"
    return Unconfirmed(code.code, row.ident, cause, fix, fix)


def _said(code: str, ident: str) -> Unconfirmed:
    standard = CODES[code]
    cause = f"{standard.cause}: confirmation `{ident}`" if ident else standard.cause
    return Unconfirmed(code, ident, cause, standard.fix, standard.caller_fix)
