"""The sessions of ``db.query``: a few, opened when they are needed, each with one query at a time.

Knows no SQL. A session whose query did not end as it should is closed, and so is one that grew old: what is
known of its role was asked when it was opened. psycopg's own pool opens behind the caller's back and tells
it nothing but that it waited; here whoever waits is told what the server said.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from .readonly_session import Session
from .readonly_standing import LEFT_CLEAN
from .refused import DatabaseRefused

LIFE_SECONDS: Final = 300.0


@dataclass(slots=True, eq=False)
class _Shelf:
    """The sessions of one event loop."""

    loop: asyncio.AbstractEventLoop
    room: asyncio.Semaphore
    idle: list[Session] = field(default_factory=list[Session])


class Sessions:
    """Lends sessions; ``make`` opens one, as of a time of the loop's clock.

    ``given_up`` is told of each that was closed because its query did not end as it should.
    """

    def __init__(
        self,
        make: Callable[[float], Coroutine[Any, Any, Session]],
        size: int,
        wait_seconds: float,
        given_up: Callable[[Session], None],
    ) -> None:
        self._make, self._size, self._wait, self._given_up = make, size, wait_seconds, given_up
        self._shelf: _Shelf | None = None

    @asynccontextmanager
    async def one(self, *, fresh: bool = False) -> AsyncGenerator[Session]:
        """Lend a session, a new one if asked for. It is kept only if it was left clean.

        Raises: DatabaseRefused, when all are in use for too long, or none can be opened.
        """
        shelf = self._of_this_loop()
        await self._entered(shelf)
        session: Session | None = None
        try:
            session = await self._taken(shelf, fresh=fresh)
            yield session
            if LEFT_CLEAN in session.guards:
                shelf.idle.append(session)
                session = None
        finally:
            shelf.room.release()
            if session is not None:
                session.close()
                self._given_up(session)

    def close(self) -> None:
        """Close what is idle; a later query opens others."""
        shelf, self._shelf = self._shelf, None
        for each in shelf.idle if shelf is not None else ():
            each.close()

    def _of_this_loop(self) -> _Shelf:
        loop = asyncio.get_running_loop()
        if self._shelf is None or self._shelf.loop is not loop:
            self.close()
            self._shelf = _Shelf(loop, asyncio.Semaphore(self._size))
        return self._shelf

    async def _entered(self, shelf: _Shelf) -> None:
        if not shelf.room.locked():
            await shelf.room.acquire()  # without waiting
            return
        try:
            async with asyncio.timeout(self._wait):
                await shelf.room.acquire()
        except TimeoutError:
            cause = f"all {self._size} connections for queries are in use"
            raise DatabaseRefused("X_DB_BUSY", cause) from None

    async def _taken(self, shelf: _Shelf, *, fresh: bool) -> Session:
        while shelf.idle:
            found = shelf.idle.pop()
            if not fresh and shelf.loop.time() - found.since < LIFE_SECONDS:
                return found
            found.close()
        return await self._make(shelf.loop.time())
