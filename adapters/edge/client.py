"""``ctx.client``: what a handler says and asks, sent over the stream of its own request."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ...kernel.asks import (
    Ask,
    Capability,
    Given,
    Incapable,
    Level,
    Logged,
    Progress,
    RoundEnded,
    needed,
)
from ...kernel.client import unasked
from ...kernel.line import Line
from ...kernel.model import Principal, owner_key
from ...kernel.strict_json import Json

T = TypeVar("T")
Send = Callable[[bytes], Awaitable[None]]
MAX_WAITING: Final = 10_000
MAX_EACH: Final = 1_000  # of one caller's, so that nobody's unanswered questions keep others from asking


class Waiting:
    """Questions that wait for their answers, each by an id that nobody guesses. One event loop's own."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, asyncio.Future[Json]]] = {}
        self._count = Counter[str]()

    def open(self, who: Principal) -> tuple[str, asyncio.Future[Json]]:
        """Return the id of a new question of this principal's, and what its answer arrives in.

        Raises: ActionError, when too many wait.
        """
        owner = owner_key("", who)
        if len(self._held) >= MAX_WAITING or self._count[owner] >= MAX_EACH:
            raise unasked()
        ident = secrets.token_urlsafe(24)
        future = asyncio.get_running_loop().create_future()
        self._held[ident] = (owner, future)
        self._count[owner] += 1
        future.add_done_callback(lambda _: self._forget(ident))
        return ident, future

    def _forget(self, ident: str) -> None:
        owner, _ = self._held.pop(ident)
        self._count[owner] -= 1
        if not self._count[owner]:
            del self._count[owner]

    def deliver(self, ident: str, who: Principal, answer: Json) -> None:
        """Take an answer, if this principal was asked and nobody answered yet."""
        asked, future = self._held.get(ident, (None, None))
        if asked == owner_key("", who) and future is not None and not future.done():
            future.set_result(answer)


@dataclass(slots=True, eq=False)
class StreamClient:
    """The client of one request (``kernel/line.py``)."""

    line: Line
    who: Principal
    waiting: Waiting
    send: Send | None
    seconds: float
    loop: asyncio.AbstractEventLoop | None = field(default=None)

    @property
    def state(self) -> Json:
        """What an earlier round remembered."""
        return self.line.state

    def can(self, capability: Capability) -> bool:
        """Whether the client can be asked this."""
        return self.line.can(capability)

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Send a progress notification, if the client wants them."""
        await self._send(self.line.progress(Progress(done, total, message)))

    async def log(self, level: Level, data: Json, logger: str | None = None) -> None:
        """Send a log notification, if the client wants them."""
        await self._send(self.line.log(Logged(level, data, logger)))

    async def ask(self, asks: Mapping[str, Ask], state: Any = None) -> Mapping[str, Given]:
        """Ask the client, by a new round or by requests on this stream.

        Raises: ActionError, where nobody can be asked or nobody answers.
        """
        if any(self.line.ask("", each) is None for each in asks.values()):
            return self._round(asks, state)
        if not all(self.can(needed(each)) for each in asks.values()):
            raise unasked()
        return {key: await self._requested(each) for key, each in asks.items()}

    def _round(self, asks: Mapping[str, Ask], state: Any) -> Mapping[str, Given]:
        """Return what this round of the request brought, or end it to ask for all of it."""
        lacking: dict[Capability, None] = {
            needed(each): None for each in asks.values() if not self.can(needed(each))
        }
        if lacking:
            raise Incapable(tuple(lacking))
        given = {key: self.line.answered(key, each) for key, each in asks.items()}
        known = {key: answer for key, answer in given.items() if answer is not None}
        if len(known) < len(asks):
            raise RoundEnded(asks, state)
        return known

    async def background(self) -> bool:
        """This call waits for its result."""
        return False

    async def _requested(self, ask: Ask) -> Given:
        """Send one question and wait for its answer."""
        if self.send is None:
            raise unasked()
        ident, future = self.waiting.open(self.who)
        try:
            await self._send(self.line.ask(ident, ask))
            async with asyncio.timeout(self.seconds):
                answer = self.line.understood(ask, await future)
        except TimeoutError:
            raise unasked() from None
        finally:
            future.cancel()
        if answer is None:
            raise unasked()
        return answer

    async def _send(self, message: bytes | None) -> None:
        if message is not None and self.send is not None:
            await self.send(message)

    def wait(self, work: Awaitable[T]) -> T:
        """Wait in a thread for what the event loop does."""
        if self.loop is None:
            raise RuntimeError("`wait` is for plain functions, which run in a thread of their own")

        async def whole() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(whole(), self.loop).result()
