"""Signed tokens (JWT, RFC 9068) checked against an issuer's published keys; the checking is PyJWT's.

A token is for this endpoint only if its audience says so: one that was issued for another is refused
(RFC 8707; MCP 2026-07-28, authorization, token audience).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ....kernel.model import Agent, Principal
from ..extras import require
from .remembered import Remembered, digest

if TYPE_CHECKING:
    from jwt import PyJWKClient

Claims = Mapping[str, Any]
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
KEEP_SECONDS: Final = 300
LEEWAY_SECONDS: Final = 30


def agent_of(claims: Claims) -> Agent | None:
    """Return the agent that a token speaks of: its client, or its subject, with the scopes it carries."""
    ident = claims.get("client_id") or claims.get("sub")
    scopes = claims.get("scope", claims.get("scp", ""))
    held = scopes.split() if isinstance(scopes, str) else scopes
    roles = claims.get("roles", ())
    if not isinstance(ident, str) or not _names(held) or not _names(roles):
        return None
    org = claims.get("org")
    return Agent(ident, roles=roles, scopes=held, org=org if isinstance(org, str) else None)


def _names(held: object) -> bool:
    if not isinstance(held, (list, tuple)):
        return False
    return all(isinstance(each, str) for each in cast("Iterable[object]", held))


class SignedTokens:
    """A resolver for ``resolve_token=``: tokens of one issuer for one audience.

    ``audience`` is this endpoint's address exactly as in ``oauth(resource=...)``. ``principal`` makes a
    caller of the claims, or ``None`` of claims that are nobody here. Only asymmetric algorithms are taken,
    ``exp``, ``iss`` and ``aud`` must be there, and keys are fetched from ``jwks_url`` as they are needed.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str,
        jwks_url: str,
        principal: Callable[[Claims], Principal | None] = agent_of,
        algorithms: Sequence[str] = ALGORITHMS,
        clock: Callable[[], float] = time.time,
        timeout_seconds: float = 5,
    ) -> None:
        """Raises: ExtraMissing, without PyJWT; ValueError, for an algorithm with a shared key."""
        require("jwt", "nonsuch[jwt]", "pyjwt")
        import jwt

        if not set(algorithms) <= set(ALGORITHMS):
            raise ValueError("only algorithms with a public key are taken")
        self._issuer, self._audience, self._principal = issuer, audience, principal
        self._algorithms, self._clock = list(algorithms), clock
        self._keys: PyJWKClient = jwt.PyJWKClient(jwks_url, timeout=timeout_seconds, cache_keys=True)
        self._known = Remembered(clock)

    async def __call__(self, token: str) -> Principal | None:
        """Return whose token it is.

        Raises: anything, when the issuer's keys cannot be had; the request is then refused with 503.
        """
        key = digest(token)
        known = self._known.find(key)
        if known is not None:
            return known.principal
        claims = await asyncio.to_thread(self._claims, token)
        if claims is None:
            return None
        principal = self._principal(claims)
        self._known.keep(key, principal, min(float(claims["exp"]), self._clock() + KEEP_SECONDS))
        return principal

    def _claims(self, token: str) -> Claims | None:
        """Return the claims of a token that is what it says, or nothing."""
        import jwt

        try:
            signer = self._keys.get_signing_key_from_jwt(token)
            return jwt.decode(
                token,
                signer,
                algorithms=self._algorithms,
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWKClientConnectionError:
            raise
        except (jwt.PyJWTError, ValueError):
            return None

    def __repr__(self) -> str:
        return f"SignedTokens(issuer={self._issuer!r}, audience={self._audience!r})"
