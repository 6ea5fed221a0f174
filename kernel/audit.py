"""Outcome -> audit event: who, what, how it ended and by which code; never arguments, rows or tokens.

Writes nothing. ``declared`` is filled in after the answer has left, because a second look-up of a
name before that would show in the time it takes; ``at`` as well, by the edge's clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, assert_never

from .confirmation import Slip
from .model import (
    Agent,
    Begun,
    Failed,
    Hidden,
    InputRequired,
    InvalidArguments,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    Principal,
    ScopeDenied,
    Surface,
    Unconfirmed,
    Unfit,
)
from .tasks import fingerprint
from .values import value

OutcomeName = Literal[
    "ok",
    "hidden",
    "scope-denied",
    "invalid-args",
    "unconfirmed",
    "policy-denied",
    "policy-error",
    "input-required",
    "begun",
    "rate-limited",
    "failed",
]
CallerKind = Literal["agent", "human"]
Asked = Literal["look", "answer", "cancel"]
AuthReason = Literal[
    "no-token",
    "unknown-token",
    "not-an-agent",
    "resolver-failed",
    "address-limited",
    "store-failed",
    "foreign-host",
    "foreign-origin",
]
MAX_NAME_CHARS: Final = 128
REJECTED: Final = "X_MCP_CONFIRMATION_REJECTED"  # a person's no is a denial


@value
class ToolCall:
    """One call and its outcome.

    A call that goes on as a task is ``begun``, and has another outcome when that ends: ``task`` is one
    fingerprint in both. ``policies`` are ids for the operator. ``declared`` tells a hidden name from an
    absent one and is ``None`` where the outcome already says that the entry exists. A call is
    ``rate-limited`` when its caller's allowance is spent, or when nobody could count it. ``replayed``:
    it did not run, and was answered as an earlier call of its idempotency key was. ``confirmation`` is the
    id of the one that the call waits for, ran by or decides, and ``decision`` what a person did with it.
    """

    tool: str
    outcome: OutcomeName
    surface: Surface
    caller: str
    caller_kind: CallerKind
    acts_for: str | None = None
    scope: str | None = None
    code: str | None = None
    policies: tuple[str, ...] = ()
    declared: bool | None = None
    task: str | None = None
    replayed: bool | None = None
    confirmation: str | None = None
    decision: str | None = None
    kind: Literal["tool-call"] = "tool-call"
    at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ResourceRead:
    """One reading of a resource, by the URI that was sent, and its outcome."""

    uri: str
    outcome: OutcomeName
    caller: str
    caller_kind: CallerKind
    acts_for: str | None = None
    scope: str | None = None
    code: str | None = None
    policies: tuple[str, ...] = ()
    kind: Literal["resource-read"] = "resource-read"
    at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PromptGet:
    """One prompt asked for, or with ``completes`` one argument of it (or of a template) to be completed."""

    prompt: str
    outcome: OutcomeName
    caller: str
    caller_kind: CallerKind
    acts_for: str | None = None
    scope: str | None = None
    code: str | None = None
    policies: tuple[str, ...] = ()
    completes: str | None = None
    kind: Literal["prompt-get", "completion"] = "prompt-get"
    at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TaskAsked:
    """A task asked after by its id, and what came of it. A look that was granted is no event.

    What the task gives away was audited when its call was; ``tool`` is set where it is known.
    """

    asked: Asked
    outcome: OutcomeName
    task: str
    caller: str
    caller_kind: CallerKind
    acts_for: str | None = None
    tool: str | None = None
    scope: str | None = None
    code: str | None = None
    policies: tuple[str, ...] = ()
    kind: Literal["task"] = "task"
    at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RateLimited:
    """A request that is no call and no reading, and that was not taken up: its method, and why."""

    method: str
    code: str
    caller: str
    caller_kind: CallerKind
    acts_for: str | None = None
    outcome: Literal["rate-limited"] = "rate-limited"
    kind: Literal["rate-limited"] = "rate-limited"
    at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class AuthRefused:
    """A request that never became a caller, and what is known of it; who sent it says what it likes."""

    reason: AuthReason
    status: int
    address: str | None
    path: str
    user_agent: str | None = None
    origin: str | None = None
    kind: Literal["auth-refused"] = "auth-refused"
    at: datetime | None = field(default=None, compare=False)


Event = ToolCall | ResourceRead | PromptGet | TaskAsked | RateLimited | AuthRefused


def tool_call(
    principal: Principal, name: str, surface: Surface, outcome: Outcome, ident: str | None = None
) -> ToolCall:
    """Return the event of a call's outcome; ``ident`` is the task that the call went on as."""
    word, scope, code, policies = _classified(outcome)
    who, kind, behind = _caller(principal)
    task = None if ident is None else fingerprint(ident)
    replayed = True if isinstance(outcome, (Ok, Failed)) and outcome.replayed else None
    return ToolCall(
        name, word, surface, who, kind, behind, scope, code, policies, task=task, replayed=replayed
    )


def with_slip(event: ToolCall, slip: Slip) -> ToolCall:
    """Return the event of a call that had to do with a confirmation."""
    return replace(event, confirmation=slip.confirmation, decision=slip.decision)


def task_asked(
    principal: Principal, asked: Asked, ident: str, tool: str | None, refused: Outcome | None
) -> TaskAsked:
    """Return the event of a task that was asked after, and refused or not."""
    word, scope, code, policies = ("ok", None, None, ()) if refused is None else _classified(refused)
    code = "X_MCP_TASK_UNKNOWN" if word == "hidden" else code
    who, kind, behind = _caller(principal)
    return TaskAsked(asked, word, fingerprint(ident), who, kind, behind, tool, scope, code, policies)


def resource_read(principal: Principal, uri: str, outcome: Outcome) -> ResourceRead:
    """Return the event of a reading's outcome."""
    word, scope, code, policies = _classified(outcome)
    code = "X_MCP_RESOURCE_UNKNOWN" if word == "hidden" else code
    who, kind, behind = _caller(principal)
    return ResourceRead(uri, word, who, kind, behind, scope, code, policies)


def prompt_get(principal: Principal, name: str, outcome: Outcome, completes: str | None = None) -> PromptGet:
    """Return the event of a prompt's, or of a completion's, outcome."""
    word, scope, code, policies = _classified(outcome)
    code = "X_MCP_PROMPT_UNKNOWN" if word == "hidden" else code
    who, kind, behind = _caller(principal)
    what: Literal["prompt-get", "completion"] = "prompt-get" if completes is None else "completion"
    return PromptGet(name, word, who, kind, behind, scope, code, policies, completes, what)


def limited_call(
    principal: Principal, name: str, surface: Surface, code: str, *, seen: bool = False
) -> ToolCall:
    """Return the event of a call that was not taken up; ``seen``: its caller sees a tool of that name."""
    who, kind, behind = _caller(principal)
    return ToolCall(name, "rate-limited", surface, who, kind, behind, code=code, declared=seen or None)


def limited_read(principal: Principal, uri: str, code: str) -> ResourceRead:
    """Return the event of a reading that was not taken up."""
    who, kind, behind = _caller(principal)
    return ResourceRead(uri, "rate-limited", who, kind, behind, code=code)


def limited_prompt(principal: Principal, name: str, code: str) -> PromptGet:
    """Return the event of a prompt that was not given."""
    who, kind, behind = _caller(principal)
    return PromptGet(name, "rate-limited", who, kind, behind, code=code)


def limited_other(principal: Principal, method: str, code: str) -> RateLimited:
    """Return the event of any other request that was not taken up."""
    return RateLimited(method, code, *_caller(principal))


def malformed_call(principal: Principal, name: str, surface: Surface, code: str) -> ToolCall:
    """Return the event of a call that was none, for it had no shape or no id. It did not run."""
    who, kind, behind = _caller(principal)
    return ToolCall(name, "invalid-args", surface, who, kind, behind, code=code)


def malformed_read(principal: Principal, uri: str) -> ResourceRead:
    """Return the event of a reading that was none."""
    return resource_read(principal, uri, Unfit(""))


def malformed_prompt(principal: Principal, name: str, completes: str | None = None) -> PromptGet:
    """Return the event of a prompt, or of a completion, that was none."""
    return prompt_get(principal, name, Unfit(""), completes)


def _caller(principal: Principal) -> tuple[str, CallerKind, str | None]:
    if not isinstance(principal, Agent):
        return principal.id, "human", None
    return principal.id, "agent", principal.acts_for.id if principal.acts_for is not None else None


_Class = tuple[OutcomeName, str | None, str | None, tuple[str, ...]]


def _classified(outcome: Outcome) -> _Class:  # noqa: C901  (a closed union, a line each)
    match outcome:
        case Ok():
            return "ok", None, None, ()
        case Hidden():
            return "hidden", None, "X_MCP_TOOL_UNKNOWN", ()
        case ScopeDenied(scope):
            return "scope-denied", scope, "X_MCP_SCOPE_DENIED", ()
        case Unfit(_, needs):
            code = "X_MCP_CAPABILITY_MISSING" if needs else "X_MCP_PROTOCOL"
            return "invalid-args", None, code, ()
        case InvalidArguments():
            return "invalid-args", None, "X_INPUT_INVALID", ()
        case Unconfirmed(code):
            return "policy-denied" if code == REJECTED else "unconfirmed", None, code, ()
        case InputRequired():
            return "input-required", None, None, ()
        case Begun():
            return "begun", None, None, ()
        case PolicyDenied():
            return "policy-denied", None, outcome.code, outcome.policies
        case PolicyError(policies):
            return "policy-error", None, "X_FORBIDDEN", policies
        case Failed(code):
            return "failed", None, code, ()
        case _:
            assert_never(outcome)
