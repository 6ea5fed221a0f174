"""Who sent a request: its bearer token or its session, asked of the application; failures count by address.

The token goes to the resolver and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ..kernel.audit import AuthReason
from ..kernel.errors import Refusal, refused
from ..kernel.meter import Verdict, address_key
from ..kernel.model import Agent, Human, Principal
from ..kernel.steps import Audit, ResolvePrincipal, ResolveToken, Returned, Steps, TakeToken
from .door import AuthStatus, Door, auth_refused, facts_of
from .wire import Head

REALM: Final = "nonsuch-mcp"


@dataclass(frozen=True, slots=True)
class Unauthenticated:
    """No caller came of the request."""

    reason: AuthReason
    status: AuthStatus
    refusal: Refusal
    retry_after: int = 0

    def headers(self, where: Mapping[str, str] = MappingProxyType({})) -> tuple[tuple[str, str], ...]:
        """Return the challenge (RFC 6750 3, RFC 9728 5.1), or how long to wait (RFC 9110 10.2.3)."""
        if self.retry_after:
            return (("retry-after", str(self.retry_after)),)
        if self.status != 401:
            return ()
        told = {} if self.reason == "no-token" else {"error": "invalid_token"}
        return (challenge({**told, **where}),)


def challenge(parameters: Mapping[str, str]) -> tuple[str, str]:
    """Return a ``WWW-Authenticate`` header (RFC 6750 3) with these parameters after the realm."""
    told = "".join(f', {name}="{_quoted(value)}"' for name, value in parameters.items())
    return "www-authenticate", f'Bearer realm="{REALM}"{told}'


def _quoted(value: str) -> str:
    """Return text for a quoted string (RFC 9110 5.6.4): what the header cannot hold is replaced."""
    plain = "".join(char if " " <= char <= "~" else "?" for char in value)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def authenticate(
    head: Head,
    door: Door,
    *,
    agents_only: bool,
    session: ResolvePrincipal | None = None,
    shows: bool = True,
) -> Steps[Principal | Unauthenticated]:
    """Resolve the bearer token of a request to a principal. The token goes nowhere else.

    1. whether this address failed too often  2. the token  3. who it is  4. what kind of caller that is.
    Only failures count against an address, so that nobody is kept out by what callers behind it do; and
    who shows nothing has failed at nothing: clients ask so to find out where tokens come from.
    ``session`` is what to ask instead about a request without a token, which ``shows`` something for it.
    """
    held = yield from _held(head, door)  # 1
    if held is not None:
        return held
    token = bearer(head.headers.get("authorization"))  # 2
    asked = session if token is None else ResolveToken(token, facts_of(head))
    if asked is None:
        tried = "authorization" in head.headers
        return (yield from _refuse(head, door, "no-token", 401, tried=tried))
    answer = yield asked  # 3
    if not isinstance(answer, Returned):
        return (yield from _refuse(head, door, "resolver-failed", 503))
    if answer.value is not None and type(answer.value) not in (Agent, Human):
        return (yield from _refuse(head, door, "resolver-failed", 503))
    if not isinstance(answer.value, (Agent, Human)):
        reason: AuthReason = "no-token" if token is None else "unknown-token"
        return (yield from _refuse(head, door, reason, 401, tried=shows or token is not None))
    if agents_only and not isinstance(answer.value, Agent):  # 4
        return (yield from _refuse(head, door, "not-an-agent", 403))
    return answer.value


def _held(head: Head, door: Door) -> Steps[Unauthenticated | None]:
    """Refuse an address whose failures are used up, before its token is looked at."""
    if door.rates is None or head.address is None:
        return None
    key = address_key(door.server, head.address)
    answer = yield TakeToken(key, door.rates.unauthenticated, 0)
    verdict = answer.value if isinstance(answer, Returned) else None
    if not isinstance(verdict, Verdict):
        return (yield from _unauthenticated(head, door, "store-failed", 503, 1))
    if verdict.passes:
        return None
    return (yield from _unauthenticated(head, door, "address-limited", 429, verdict.retry_after))


def _refuse(
    head: Head, door: Door, reason: AuthReason, status: AuthStatus, *, tried: bool = True
) -> Steps[Unauthenticated]:
    """Refuse, and count the failure; one that nobody could count is told nothing of its token."""
    if tried and door.rates is not None and head.address is not None and status != 503:
        answer = yield TakeToken(address_key(door.server, head.address), door.rates.unauthenticated)
        if not isinstance(answer, Returned) or not isinstance(answer.value, Verdict):
            return (yield from _unauthenticated(head, door, "store-failed", 503, 1))
    return (yield from _unauthenticated(head, door, reason, status))


_CODES: Final[Mapping[AuthReason, str]] = {
    "no-token": "X_UNAUTHENTICATED",
    "unknown-token": "X_UNAUTHENTICATED",
    "not-an-agent": "X_MCP_AGENTS_ONLY",
    "resolver-failed": "X_INTERNAL",
    "address-limited": "X_MCP_RATE_LIMITED",
    "store-failed": "X_RATE_STORE_FAILED",
}


def _unauthenticated(
    head: Head, door: Door, reason: AuthReason, status: AuthStatus, retry_after: int = 0
) -> Steps[Unauthenticated]:
    yield Audit(auth_refused(reason, status, head))
    return Unauthenticated(reason, status, refused(_CODES[reason], door.audience), retry_after)


MAX_TOKEN_CHARS: Final = 16_384
# RFC 6750 2.1, and whatever else is visible ASCII but a comma, with which repeated headers are joined
_BEARER: Final = re.compile(rf"bearer +([!-+\--~]{{1,{MAX_TOKEN_CHARS}}}) *", re.IGNORECASE | re.ASCII)


def bearer(header: str | None) -> str | None:
    """Return the token of an ``Authorization: Bearer`` header; what no token can be reaches no resolver."""
    found = _BEARER.fullmatch(header or "")
    return None if found is None else found[1]
