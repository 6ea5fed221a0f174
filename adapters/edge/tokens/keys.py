"""The public keys of an issuer: fetched when one is missing, and never more often than twice a minute.

A caller chooses which key its token names: without a pause each request could make us fetch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jwt import PyJWK, PyJWKClient

KEEP_SECONDS: Final = 300
PAUSE_SECONDS: Final = 30
RETRY_SECONDS: Final = 5  # after a fetch that failed
FETCH_SECONDS: Final = 30.0  # then another one may begin: an answer that comes drop by drop never ends


class KeysMissing(Exception):
    """The issuer's keys could not be had a moment ago, and are not asked for again yet."""


class Keys:
    """The keys of one address. One event loop's own."""

    def __init__(self, client: PyJWKClient, clock: Callable[[], float], timeout_seconds: float) -> None:
        self._client, self._clock, self._timeout = client, clock, timeout_seconds
        self._keys: Mapping[str, PyJWK] = {}
        self._fetched, self._asked, self._pause = float("-inf"), float("-inf"), PAUSE_SECONDS
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, ident: str) -> PyJWK | None:
        """Return the key of an id. A key that the issuer takes back is trusted for five minutes more.

        Raises: KeysMissing, TimeoutError or whatever the fetching raised, when there are no current keys.
        """
        if self._current() and ident in self._keys:
            return self._keys[ident]
        if self._fetching is not None:
            await self._wait(self._fetching)
        elif not self._within(self._asked, self._pause):
            self._asked = self._clock()
            self._fetching = asyncio.create_task(self._fetch())
            self._fetching.add_done_callback(self._done)
            await self._wait(self._fetching)
        if not self._current():
            raise KeysMissing("the issuer's keys cannot be had")
        return self._keys.get(ident)

    def _current(self) -> bool:
        return self._within(self._fetched, KEEP_SECONDS)

    def _within(self, since: float, span: float) -> bool:
        """Whether a time is no longer ago than a span; one that is to come was read off a clock set back."""
        return 0 <= self._clock() - since < span

    async def _wait(self, fetching: asyncio.Task[None]) -> None:
        """Wait as long as a request may; the fetching goes on for those who come after."""
        await asyncio.wait_for(asyncio.shield(fetching), self._timeout)

    async def _fetch(self) -> None:
        told = await asyncio.wait_for(asyncio.to_thread(self._client.fetch_data), FETCH_SECONDS)
        self._keys, self._fetched = _usable(told), self._clock()

    def _done(self, fetching: asyncio.Task[None]) -> None:
        failed = fetching.cancelled() or fetching.exception() is not None
        self._fetching, self._pause = None, RETRY_SECONDS if failed else PAUSE_SECONDS


def _usable(told: Any) -> Mapping[str, PyJWK]:
    """Return the keys that verify signatures."""
    from jwt import PyJWKSet

    return {
        key.key_id: key
        for key in PyJWKSet.from_dict(told).keys
        if key.key_id and key.public_key_use in ("sig", None)
    }
