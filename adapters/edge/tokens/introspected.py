"""Tokens that only their issuer can read: each is asked about, and the answer kept for a short while.

RFC 7662. The endpoint's own credentials go to the issuer and nowhere else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote_plus

from ....kernel.model import Principal
from ...mcp.oauth import secure
from ..extras import require
from .claims import Claims, OfClaims, addressed_to, agent_of, caller_of, seconds
from .remembered import Remembered, digest

if TYPE_CHECKING:
    from httpx import AsyncClient

KEEP_SECONDS: Final = 30


class IntrospectedTokens:
    """A resolver for ``resolve_token=``: asks ``url`` about each token.

    ``client_id`` and ``client_secret`` are this endpoint's own at the issuer. ``audience`` must be in the
    answer's ``aud``: an issuer that does not say whom a token is for says nothing of use here.
    ``principal`` makes a caller of the answer, or ``None`` of one that is nobody here; it is asked for each
    request. A revoked token is still taken for as long as ``keep_seconds`` after it was last asked about.
    ``client`` is one of the app's own, to ask with.
    """

    def __init__(
        self,
        url: str,
        *,
        client_id: str,
        client_secret: str,
        audience: str,
        principal: OfClaims = agent_of,
        keep_seconds: float = KEEP_SECONDS,
        clock: Callable[[], float] = time.time,
        timeout_seconds: float = 5,
        client: AsyncClient | None = None,
    ) -> None:
        """Raises: ExtraMissing, when httpx is not installed; ValueError, for an address without TLS."""
        require("httpx", "nonsuch[introspection]")
        import httpx

        if not secure(url):
            raise ValueError("the address of the issuer must be https, or http on this machine")
        self._url, self._audience, self._principal = url, audience, principal
        self._keep, self._clock, self._timeout = keep_seconds, clock, timeout_seconds
        self._client, self._tls = client, httpx.create_ssl_context()
        # RFC 6749 2.3.1: both are encoded as in a form before they are put together
        self._auth = httpx.BasicAuth(quote_plus(client_id), quote_plus(client_secret))
        self._known = Remembered[Claims](clock)

    async def __call__(self, token: str) -> Principal | None:
        """Return whose token it is.

        Raises: anything, when the issuer cannot be asked; the request is then refused with 503.
        """
        key = digest(token)
        claims = self._known.find(key)
        if claims is None:
            claims = await self._asked(token)
            until = self._until(claims)
            if until is None or not addressed_to(claims, self._audience):
                return None
            self._known.keep(key, claims, until)
        return caller_of(self._principal, claims)

    def _until(self, claims: Claims) -> float | None:
        """Return how long an answer holds; of one that is not of a live token there is no such time."""
        now = self._clock()
        ends = seconds(claims["exp"]) if "exp" in claims else now + self._keep
        if claims.get("active") is not True or ends is None or ends <= now:
            return None
        return min(ends, now + self._keep)

    async def _asked(self, token: str) -> Claims:
        form = {"token": token, "token_type_hint": "access_token"}
        async with asyncio.timeout(self._timeout), self._asking() as client:
            answer = await client.post(self._url, data=form, auth=self._auth, follow_redirects=False)
        answer.raise_for_status()
        claims: object = answer.json()
        if not isinstance(claims, dict):
            raise ValueError("the issuer's answer is no object")
        return cast("Claims", claims)

    def _asking(self) -> AbstractAsyncContextManager[AsyncClient]:
        """Return the app's own client, or one for this question: then none is left open at the end."""
        import httpx

        if self._client is not None:
            return nullcontext(self._client)
        return httpx.AsyncClient(timeout=self._timeout, verify=self._tls)

    def __repr__(self) -> str:
        return f"IntrospectedTokens({self._url!r}, audience={self._audience!r})"
