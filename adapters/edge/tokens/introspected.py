"""Tokens that only their issuer can read: each is asked about, and the answer kept for a short while.

RFC 7662. The endpoint's own credentials go to the issuer and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from ....kernel.model import Principal
from ..extras import require
from .remembered import Remembered, digest
from .signed import Claims, agent_of

if TYPE_CHECKING:
    from httpx import AsyncClient

KEEP_SECONDS: Final = 30


class IntrospectedTokens:
    """A resolver for ``resolve_token=``: asks ``url`` about each token.

    ``client_id`` and ``client_secret`` are this endpoint's own at the issuer. ``audience`` is checked
    against the answer's ``aud``. A revoked token is still taken for as long as ``keep_seconds`` after it
    was last asked about.
    """

    def __init__(
        self,
        url: str,
        *,
        client_id: str,
        client_secret: str,
        audience: str,
        principal: Callable[[Claims], Principal | None] = agent_of,
        keep_seconds: float = KEEP_SECONDS,
        clock: Callable[[], float] = time.time,
        timeout_seconds: float = 5,
        client: AsyncClient | None = None,
    ) -> None:
        """Raises: ExtraMissing, when httpx is not installed."""
        require("httpx", "nonsuch[introspection]")
        import httpx

        self._url, self._audience, self._principal = url, audience, principal
        self._keep, self._clock = keep_seconds, clock
        self._client = client or httpx.AsyncClient(timeout=timeout_seconds, follow_redirects=False)
        self._auth = httpx.BasicAuth(client_id, client_secret)
        self._known = Remembered(clock)

    async def __call__(self, token: str) -> Principal | None:
        """Return whose token it is.

        Raises: anything, when the issuer cannot be asked; the request is then refused with 503.
        """
        key = digest(token)
        known = self._known.find(key)
        if known is not None:
            return known.principal
        claims = await self._asked(token)
        principal = self._principal(claims) if self._for_us(claims) else None
        if principal is not None:
            until = min(self._clock() + self._keep, float(claims.get("exp", "inf")))
            self._known.keep(key, principal, until)
        return principal

    async def _asked(self, token: str) -> Mapping[str, Any]:
        answer = await self._client.post(
            self._url, data={"token": token, "token_type_hint": "access_token"}, auth=self._auth
        )
        answer.raise_for_status()
        claims: object = answer.json()
        if not isinstance(claims, dict):
            raise ValueError("the issuer's answer is no object")
        return cast("Mapping[str, Any]", claims)

    def _for_us(self, claims: Claims) -> bool:
        audience = claims.get("aud")
        listed = cast("list[object]", audience) if isinstance(audience, list) else [audience]
        return claims.get("active") is True and self._audience in listed

    def __repr__(self) -> str:
        return f"IntrospectedTokens({self._url!r}, audience={self._audience!r})"
