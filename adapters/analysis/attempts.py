"""A call put before the kernel without running anything: facts are given, a permit ends it.

Knows no policy; the kernel decides as it does for a real caller. A call that waits for a person is put as one
that a person has approved.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from pydantic import BaseModel

from ...kernel.audit import ToolCall
from ...kernel.confirmation import Asking, Confirmation, Opened, moved
from ...kernel.gates import Kernel
from ...kernel.model import Agent, Call, Human, InvalidArguments, Issue, Principal
from ...kernel.steps import Audit, Load, MoveConfirmation, OpenConfirmation, Permit, Returned

Unloaded = Literal["unloaded"]
UNLOADED: Final[Unloaded] = "unloaded"
Facts = BaseModel | None | Unloaded


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the kernel answered. ``event`` is its own audit of it; without one it waits for facts or ran."""

    outcome: str
    event: ToolCall | None = None
    issues: tuple[Issue, ...] = ()


def attempt(kernel: Kernel, principal: Principal, call: Call, facts: Facts) -> Attempt:
    """Put a call before the kernel. A permit is ``ok`` and runs nothing; ``undecided`` waits for facts."""
    steps = kernel.invoke(kernel.view_for(principal), call)
    event: ToolCall | None = None
    try:
        step = next(steps)
        while True:
            match step:
                case Permit():
                    return Attempt("ok")
                case Load() if facts == UNLOADED:
                    return Attempt("undecided")
                case OpenConfirmation():
                    answer = Returned(Opened(_approved(step.asking), _THEN))
                case MoveConfirmation():
                    answer = Returned(moved(step.row, step.to, _THEN))
                case Audit(ToolCall() as told):
                    event, answer = told, Returned(None)
                case _:
                    answer = Returned(facts)
            step = steps.send(answer)
    except StopIteration as done:
        issues = done.value.issues if isinstance(done.value, InvalidArguments) else ()
    return Attempt(event.outcome if event else "failed", event, issues)


_THEN: Final = datetime(2026, 1, 1, tzinfo=UTC)


def _approved(asking: Asking) -> Confirmation:
    who = (asking.server, asking.owner, asking.org, asking.actor, asking.actor_kind, asking.person)
    times = (_THEN, _THEN + timedelta(1), _THEN)
    return Confirmation("-", *who, asking.tool, asking.fingerprint, b"", *times, "approved")


def with_role(principal: Principal, role: str) -> Principal:
    """Return a principal, and the human it acts for, with one more role."""
    match principal:
        case Human():
            return Human(
                principal.id, roles=principal.roles | {role}, org=principal.org, scopes=principal.scopes
            )
        case Agent():
            person = None if principal.acts_for is None else with_role(principal.acts_for, role)
            return Agent(
                principal.id,
                roles=principal.roles | {role},
                org=principal.org,
                scopes=principal.scopes,
                acts_for=person if isinstance(person, Human) else None,
            )
