"""Outcome -> audit event: who, what, how it ended and by which code; never arguments, rows or tokens.

Writes nothing. ``declared`` is filled in after the answer has left, because a second look-up of a
name before that would show in the time it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, assert_never

from .model import (
    Agent,
    Failed,
    Hidden,
    InvalidArguments,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    Principal,
    ScopeDenied,
    Surface,
)

OutcomeName = Literal[
    "ok", "hidden", "scope-denied", "invalid-args", "policy-denied", "policy-error", "failed"
]
AuthReason = Literal["no-token", "unknown-token", "not-an-agent", "resolver-failed"]
MAX_NAME_CHARS: Final = 128


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call and its outcome.

    ``policies`` are ids for the operator. ``declared`` tells a hidden name from an absent one and is
    ``None`` where the outcome already says that the entry exists.
    """

    tool: str
    outcome: OutcomeName
    surface: Surface
    caller: str
    caller_kind: Literal["agent", "human"]
    acts_for: str | None = None
    scope: str | None = None
    code: str | None = None
    policies: tuple[str, ...] = ()
    declared: bool | None = None
    kind: Literal["tool-call"] = "tool-call"


@dataclass(frozen=True, slots=True)
class AuthRefused:
    """A request that never became a caller."""

    reason: AuthReason
    status: int
    address: str | None
    path: str
    kind: Literal["auth-refused"] = "auth-refused"


Event = ToolCall | AuthRefused


def tool_call(principal: Principal, name: str, surface: Surface, outcome: Outcome) -> ToolCall:
    """Return the event of a call's outcome."""
    person = principal.acts_for if isinstance(principal, Agent) else None
    word, scope, code, policies = _classified(outcome)
    return ToolCall(
        tool=name,
        outcome=word,
        surface=surface,
        caller=principal.id,
        caller_kind="agent" if isinstance(principal, Agent) else "human",
        acts_for=person.id if person is not None else None,
        scope=scope,
        code=code,
        policies=policies,
    )


_Class = tuple[OutcomeName, str | None, str | None, tuple[str, ...]]


def _classified(outcome: Outcome) -> _Class:
    match outcome:
        case Ok():
            return "ok", None, None, ()
        case Hidden():
            return "hidden", None, "X_MCP_TOOL_UNKNOWN", ()
        case ScopeDenied(scope):
            return "scope-denied", scope, "X_MCP_SCOPE_DENIED", ()
        case InvalidArguments():
            return "invalid-args", None, "X_INPUT_INVALID", ()
        case PolicyDenied():
            return "policy-denied", None, outcome.code, outcome.policies
        case PolicyError(policies):
            return "policy-error", None, "X_FORBIDDEN", policies
        case Failed(code):
            return "failed", None, code, ()
        case _:
            assert_never(outcome)
