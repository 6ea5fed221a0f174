"""Signed tokens (JWT, RFC 9068) checked against an issuer's published keys; the checking is PyJWT's.

A token is for this endpoint only if its audience says so: one that was issued for another is refused
(RFC 8707; MCP 2026-07-28, authorization, token audience).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ....kernel.model import Principal
from ...mcp.oauth import secure
from ..extras import require
from .claims import Claims, OfClaims, agent_of, caller_of, seconds
from .keys import Keys
from .remembered import Remembered, digest

if TYPE_CHECKING:
    from jwt import PyJWK

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
KEEP_SECONDS: Final = 60
LEEWAY_SECONDS: Final = 30
MAX_CHARS: Final = 16_384
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt"})


class SignedTokens:
    """A resolver for ``resolve_token=``: tokens of one issuer for one audience.

    ``audience`` is this endpoint's address exactly as in ``oauth(resource=...)``. ``principal`` makes a
    caller of the claims, or ``None`` of claims that are nobody here; it is asked for each request. Only
    algorithms with a public key are taken; ``exp``, ``iss`` and ``aud`` must be there. Keys are fetched
    from ``jwks_url`` when one is missing, at most once in half a minute; one that the issuer takes back
    is trusted for up to six minutes more.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str,
        jwks_url: str,
        principal: OfClaims = agent_of,
        algorithms: Sequence[str] = ALGORITHMS,
        clock: Callable[[], float] = time.time,
        timeout_seconds: float = 5,
    ) -> None:
        """Raises: ExtraMissing, without PyJWT; ValueError, for keys that anybody could have sent."""
        require("cryptography", "nonsuch[jwt]")
        require("jwt", "nonsuch[jwt]", "pyjwt")
        import jwt

        if not algorithms or not set(algorithms) <= set(ALGORITHMS):
            raise ValueError("only algorithms with a public key are taken")
        if not secure(jwks_url):
            raise ValueError("`jwks_url` must be https, or http on this machine")
        self._issuer, self._audience, self._principal = issuer, audience, principal
        self._algorithms, self._clock = list(algorithms), clock
        client = jwt.PyJWKClient(jwks_url, timeout=timeout_seconds, cache_jwk_set=False)
        self._keys = Keys(client, clock, timeout_seconds)
        self._known = Remembered[Claims](clock)

    async def __call__(self, token: str) -> Principal | None:
        """Return whose token it is.

        Raises: anything, when the issuer's keys cannot be had; the request is then refused with 503.
        """
        key = digest(token)
        claims = self._known.find(key)
        if claims is None:
            claims = await self._checked(token)
            until = self._until(claims)
            if claims is None or until is None:
                return None
            self._known.keep(key, claims, until)
        return caller_of(self._principal, claims)

    def _until(self, claims: Claims | None) -> float | None:
        """Return how long claims hold; claims that are over hold no longer."""
        ends, now = None if claims is None else seconds(claims["exp"]), self._clock()
        if ends is None or ends + LEEWAY_SECONDS <= now:
            return None
        return min(ends + LEEWAY_SECONDS, now + KEEP_SECONDS)

    async def _checked(self, token: str) -> Claims | None:
        ident = _key_of(token, self._algorithms)
        key = None if ident is None else await self._keys.find(ident)
        return None if key is None else self._verified(token, key)

    def _verified(self, token: str, key: PyJWK) -> Claims | None:
        """Return the claims of a token that is what it says, or nothing."""
        import jwt

        try:
            return jwt.decode(
                token,
                key,
                algorithms=self._algorithms,
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True},
            )
        except Exception:  # noqa: BLE001  (a caller's text: whatever it makes a parser raise, it is no token)
            return None

    def __repr__(self) -> str:
        return f"SignedTokens(issuer={self._issuer!r}, audience={self._audience!r})"


def _key_of(token: str, algorithms: Sequence[str]) -> str | None:
    """Return the id of the key that a token names, if it looks like one of ours at all."""
    import jwt

    if len(token) > MAX_CHARS:
        return None
    try:
        header: Mapping[str, object] = jwt.get_unverified_header(token)
    except Exception:  # noqa: BLE001  (the same)
        return None
    ident, kind = header.get("kid"), header.get("typ", "JWT")
    if header.get("alg") not in algorithms or not isinstance(kind, str) or kind.lower() not in _TYPES:
        return None
    return ident if isinstance(ident, str) and ident else None
