"""``ctx.client``: what a handler says and asks, sent over the stream of its own request."""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import Awaitable, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar, cast

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
from ...kernel.codes import CODES
from ...kernel.errors import ActionError
from ...kernel.line import Line
from ...kernel.model import Principal, owner_key
from ...kernel.strict_json import Json
from .streams import Streams

T = TypeVar("T")
REST_SECONDS: Final = 15.0  # between two signs of life on a stream that waits for a person
LOOK_SECONDS: Final = 1.0  # how soon a thread that waits notices that its loop has ended


class Peer(Protocol):
    """Whoever hears what comes before the answer of one request (``run.Outlet``)."""

    async def write(self, message: bytes) -> None:
        """Send one message."""
        ...

    async def rest(self) -> None:
        """Send a sign of life that is no message."""
        ...

    async def departure(self) -> None:
        """Return once nobody hears any more."""
        ...


class Waiting:
    """Questions that wait for their answers, each by an id that nobody guesses. One event loop's own."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._held: dict[str, tuple[str, asyncio.Future[Json]]] = {}

    def open(self, who: Principal) -> tuple[str, asyncio.Future[Json]]:
        """Return the id of a new question of this principal's, and what its answer arrives in.

        Raises: ActionError, when too many streams wait.
        """
        owner = owner_key("", who)
        if not self._streams.take(owner):
            told = CODES["X_MCP_STREAMS_FULL"]
            raise ActionError(told.code, told.cause, told.fix, told.caller_fix)
        ident = secrets.token_urlsafe(24)
        future = asyncio.get_running_loop().create_future()
        self._held[ident] = (owner, future)
        future.add_done_callback(lambda _: self._forget(ident))
        return ident, future

    def _forget(self, ident: str) -> None:
        owner, _ = self._held.pop(ident)
        self._streams.give(owner)

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
    peer: Peer | None
    seconds: float
    loop: asyncio.AbstractEventLoop | None = field(default=None)
    ended: RoundEnded | None = field(default=None)

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
        """Return what the rounds of this request brought, or end this one to ask for all of it.

        Whoever asks once a round has ended (another task of the handler's) ends it as it did: what is asked
        first is what the client is asked.
        """
        if self.ended is not None:
            raise RoundEnded(self.ended.asks, self.ended.state)
        lacking: dict[Capability, None] = {
            needed(each): None for each in asks.values() if not self.can(needed(each))
        }
        if lacking:
            raise Incapable(tuple(lacking))
        given = self.line.answered(asks)
        if given is None:
            self.ended = RoundEnded(asks, state)
            raise self.ended
        return given

    async def background(self) -> bool:
        """This call waits for its result."""
        return False

    async def _requested(self, ask: Ask) -> Given:
        """Send one question and wait for its answer, for as long as there is somebody to give it."""
        if self.peer is None:
            raise unasked()
        ident, future = self.waiting.open(self.who)
        departure = asyncio.ensure_future(self.peer.departure())
        try:
            await self._send(self.line.ask(ident, ask))
            async with asyncio.timeout(self.seconds):
                answer = self.line.understood(ask, await _unless(departure, future, self.peer))
        except TimeoutError:
            raise unasked() from None
        finally:
            future.cancel()
            departure.cancel()
        if answer is None:
            raise unasked()
        return answer

    async def _send(self, message: bytes | None) -> None:
        if message is not None and self.peer is not None:
            await self.peer.write(message)

    def wait(self, work: Awaitable[T]) -> T:
        """Wait in a thread for what the event loop does.

        Raises: concurrent.futures.CancelledError, when that loop has ended.
        """
        if self.loop is None:
            abandon(work)
            raise RuntimeError("`wait` is for plain functions, which run in a thread of their own")
        return waited(work, self.loop)


async def _unless(departure: asyncio.Future[None], future: asyncio.Future[Json], peer: Peer) -> Json:
    """Return an answer. Meanwhile signs of life keep the stream open and show who has left.

    Raises: ActionError, when the client has left.
    """
    either: set[asyncio.Future[Any]] = {departure, future}
    while True:
        await asyncio.wait(either, timeout=REST_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        if departure.done():
            raise unasked()
        await peer.rest()


def waited(work: Awaitable[T], loop: asyncio.AbstractEventLoop) -> T:
    """Wait in a thread for what an event loop does; what it will never do is let go of.

    Raises: concurrent.futures.CancelledError, when the loop has ended.
    """

    async def whole() -> T:
        return await work

    begun = whole()
    try:
        future = asyncio.run_coroutine_threadsafe(begun, loop)
    except RuntimeError:  # the loop is closed
        abandon(begun, work)
        raise CancelledError from None
    while True:
        try:
            return future.result(LOOK_SECONDS)
        except TimeoutError:
            if future.done():  # meanwhile, or it is the work's own
                return future.result()
        if loop.is_closed():
            abandon(begun, work)
            raise CancelledError


def abandon(*works: Awaitable[Any]) -> None:
    """Let go of what nobody will await."""
    for work in works:
        if inspect.iscoroutine(work):
            work.close()


def spoken(fault: BaseException) -> ActionError | RoundEnded | Incapable | None:
    """Return what a handler said by raising, be it wrapped by the task groups it used; nothing for a bug.

    Of several an application's error counts before what the client is asked.
    """
    leaves = [each for each in _leaves(fault) if not isinstance(each, asyncio.CancelledError)]
    if not all(isinstance(leaf, _SPOKEN) for leaf in leaves):
        return None
    return next((leaf for kind in _SPOKEN for leaf in leaves if isinstance(leaf, kind)), None)


_SPOKEN: Final = (ActionError, Incapable, RoundEnded)


def _leaves(fault: BaseException) -> Iterator[BaseException]:
    if isinstance(fault, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", fault).exceptions:
            yield from _leaves(each)
    else:
        yield fault
