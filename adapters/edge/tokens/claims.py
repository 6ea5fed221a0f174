"""What an issuer says of a token, and the caller that it speaks of. Trusts whoever hands the claims over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from ....kernel.model import Agent, Human, Principal, PrincipalInvalid

Claims = Mapping[str, Any]
OfClaims = Callable[[Claims], Principal | None]


def agent_of(claims: Claims) -> Agent | None:
    """Return the agent that a token speaks of: its client, with the scopes it carries.

    A subject that is not the client is the person it acts for (RFC 9068 2.2, RFC 7662 2.2): two people who
    use one client are two callers, and neither is answered what the other asked. Without a client the
    subject itself is the agent. ``roles`` and ``org`` are the subject's, taken where they are there and are
    what they should be.
    """
    ident = claims.get("client_id") or claims.get("sub")
    subject = claims.get("sub") or ident
    scopes = claims.get("scope", claims.get("scp", ""))
    held = scopes.split(" ") if isinstance(scopes, str) else scopes
    roles, org = claims.get("roles", ()), claims.get("org")
    if not isinstance(ident, str) or not isinstance(subject, str) or not _names(held) or not _names(roles):
        return None
    if org is not None and not isinstance(org, str):
        return None
    person = None if subject == ident else Human(subject, roles=roles, org=org)
    return Agent(ident, roles=roles, scopes=[each for each in held if each], org=org, acts_for=person)


def caller_of(principal: OfClaims, claims: Claims) -> Principal | None:
    """Return whom claims speak of; nobody, where they name one that no policy could be asked about."""
    try:
        return principal(claims)
    except PrincipalInvalid:
        return None


def addressed_to(claims: Claims, audience: str) -> bool:
    """Whether ``aud`` names this audience, character for character (RFC 7519 4.1.3)."""
    told = claims.get("aud")
    return told == audience or (isinstance(told, list) and audience in told)


def seconds(value: object) -> float | None:
    """Return a time of the claims (RFC 7519 2, NumericDate), if it is one."""
    return float(value) if isinstance(value, (int, float)) and abs(value) < 2**53 else None


def _names(held: object) -> bool:
    if not isinstance(held, (list, tuple)):
        return False
    return all(isinstance(each, str) for each in cast("Iterable[object]", held))
