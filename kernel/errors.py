"""Faults at boot, errors of application code, and what a caller is told of a refusal.

Knows no wire: adapters choose where a code, a cause and a fix go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, assert_never

from .codes import CODES
from .model import (
    NO_SCOPE,
    Begun,
    Failed,
    Hidden,
    InputRequired,
    InvalidArguments,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    ScopeDenied,
    Unconfirmed,
    Unfit,
)

ErrorAudience = Literal["caller", "developer"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with the declarations or policies, found at boot.

    ``where`` is ``file:line:column`` for what stands in a file.
    """

    code: str
    cause: str
    fix: str
    where: str = ""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.code}: {self.cause}: {self.fix}"


def fault(code: str, cause: str, fix: str | None = None, *, where: str = "") -> Fault:
    """Return a fault of a registered code, with the code's own fix unless a better one is known."""
    return Fault(code, cause, fix or CODES[code].fix, where)


class BootError(Exception):
    """The app cannot start; ``faults`` holds every reason at once, not the first."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(self.faults)

    def __str__(self) -> str:
        head = "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        return "\n".join([f"the app cannot start: {head}", *(str(each) for each in self.faults)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BootError) and self.faults == other.faults

    __hash__ = Exception.__hash__


class ActionError(Exception):
    """Raise this in a handler to answer an application error that the caller can act on."""

    def __init__(self, code: str, cause: str, fix: str, caller_fix: str | None = None) -> None:
        self.code, self.cause, self.fix = _text(code), _text(cause), _text(fix)
        self.caller_fix = self.fix if caller_fix is None else _text(caller_fix)
        super().__init__(self.code, self.cause, self.fix, self.caller_fix)

    def words(self) -> tuple[str, str, str, str] | None:
        """Return code, cause, fix and caller fix as every surface can send them, if they are all there."""
        held = [getattr(self, name, None) for name in ("code", "cause", "fix", "caller_fix")]
        code, cause, fix, caller_fix = (None if each is None else _text(each) for each in held)
        if code is None or cause is None or fix is None or caller_fix is None:
            return None
        return code, cause, fix, caller_fix

    def __str__(self) -> str:
        return f"{self.code}: {self.cause}"


def _text(value: object) -> str:
    """Return words that every surface can send."""
    return str(value).encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a caller is told: the same words on every surface."""

    code: str
    cause: str
    fix: str

    @property
    def docs(self) -> str:
        """Where the code is explained."""
        return f"nonsuch://errors/{self.code}"


def refused(code: str, audience: ErrorAudience = "caller") -> Refusal:
    """Return the standard words of a registered code for an audience."""
    entry = CODES[code]
    return Refusal(code, entry.cause, _for(audience, entry.fix, entry.caller_fix))


def unpermitted(permission: str, *, of_a_resource: bool) -> tuple[str, str, str]:
    """Return cause, fix and caller fix of a denial that no policy explains."""
    ask = f"ask the account owner for the permission `{permission}`"
    if of_a_resource:
        ask += ", or name one that you may act on"
    return f"no policy permits `{permission}` here", CODES["X_FORBIDDEN"].fix, ask


def refusal(outcome: Outcome, tool: str, audience: ErrorAudience) -> Refusal:
    """Return what a caller is told of an outcome that is not ``Ok``."""
    match outcome:
        case Ok() | InputRequired() | Begun():
            raise TypeError("a call that goes on has no refusal")
        case Hidden():
            return refused("X_MCP_TOOL_UNKNOWN", audience)
        case ScopeDenied(scope) if scope == NO_SCOPE:
            cause = f"`{tool}` is under no scope, so no token opens it"
            fix = f"name `{tool}` in `scopes` of `define_app_mcp`"
            return Refusal("X_MCP_SCOPE_DENIED", cause, _for(audience, fix, "ask the app's developer"))
        case ScopeDenied(scope):
            cause = f"`{tool}` needs the scope `{scope}`, which this connection's token does not carry"
            caller_fix = f"ask for a token with the scope `{scope}`"
            fix = f"let `resolve_token` return the scope `{scope}` for this token"
            return Refusal("X_MCP_SCOPE_DENIED", cause, _for(audience, fix, caller_fix))
        case Unfit(cause, needs):
            code = "X_MCP_CAPABILITY_MISSING" if needs else "X_MCP_PROTOCOL"
            return Refusal(code, cause, refused(code, audience).fix)
        case InvalidArguments(issues):
            cause = f"input for tool `{tool}` failed validation: {'; '.join(str(each) for each in issues)}"
            return Refusal("X_INPUT_INVALID", cause, refused("X_INPUT_INVALID", audience).fix)
        case PolicyError(policies, cause, fix, caller_fix):
            return Refusal("X_FORBIDDEN", _named(audience, cause, policies), _for(audience, fix, caller_fix))
        case PolicyDenied(code, cause, fix, caller_fix, policies):
            return Refusal(code, _named(audience, cause, policies), _for(audience, fix, caller_fix))
        case Failed(code, cause, fix, caller_fix) | Unconfirmed(code, _, cause, fix, caller_fix):
            return Refusal(code, cause, _for(audience, fix, caller_fix))
        case _:
            assert_never(outcome)


def _named(audience: ErrorAudience, cause: str, policies: tuple[str, ...]) -> str:
    """Name the policies to a developer; a caller is told the words of a policy, never its id."""
    ids = ", ".join(f"`{each}`" for each in policies)
    return f"{cause} (policies: {ids})" if audience == "developer" and ids else cause


def _for(audience: ErrorAudience, fix: str, caller_fix: str) -> str:
    return fix if audience == "developer" or not caller_fix else caller_fix
