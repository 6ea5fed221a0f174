"""``ctx.client`` of a handler that may go on as a task: the client of its call first, then of the task.

Knows no store: what it says and asks goes into the task through its work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from ...kernel.asks import Ask, Capability, Given, Incapable, Level, needed
from ...kernel.client import Client, unasked
from ...kernel.line import TaskLine
from ...kernel.strict_json import Json
from .client import abandon, waited

T = TypeVar("T")
MAX_DIGITS: Final = 20


class Work(Protocol):
    """The work of a call that may go on as a task."""

    @property
    def begun(self) -> bool:
        """Whether it is a task by now."""
        ...

    @property
    def over(self) -> bool:
        """Whether it has ended, or nobody wants it any more."""
        ...

    async def hand_over(self) -> None:
        """Become a task, if it is none. Raises: ActionError."""
        ...

    async def note(self, message: str) -> None:
        """Say in the task how it is doing."""
        ...

    async def answers(self, asks: Mapping[str, Json]) -> Mapping[str, Json]:
        """Ask in the task, and return the answers once all are there."""
        ...

    async def unless_stopped(self, waiting: Awaitable[T]) -> T:
        """Wait for something, but no longer than this work is wanted."""
        ...


@dataclass(slots=True, eq=False)
class TaskClient:
    """The client of one such handler. ``front`` is the client of its call."""

    work: Work
    tasks: TaskLine
    front: Client
    loop: asyncio.AbstractEventLoop
    _asked: set[str] = field(default_factory=set[str])

    @property
    def state(self) -> Json:
        """What an earlier round of the call remembered."""
        return self.front.state

    def can(self, capability: Capability) -> bool:
        """Whether the client said in its call that it can be asked this."""
        return self.front.can(capability)

    async def background(self) -> bool:
        """Become a task.

        Raises: ActionError.
        """
        await self.work.hand_over()
        return True

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Make it the task's status message: clients are sent no progress of tasks."""
        if not self.work.begun:
            return await self.front.progress(done, total, message)
        far = _far(done) if total is None else f"{_far(done)} of {_far(total)}"
        return await self.work.note(far if message is None else message)

    async def log(self, level: Level, data: Json, logger: str | None = None) -> None:
        """Send a log message of the call; a task has none."""
        if not self.work.begun:
            await self.front.log(level, data, logger)

    async def ask(self, asks: Mapping[str, Ask], state: Any = None) -> Mapping[str, Given]:
        """Ask in the task, or before it in a round of its call."""
        if not self.work.begun:
            return await self.front.ask(asks, state)
        kinds: dict[Capability, None] = {needed(each): None for each in asks.values()}
        lacking: tuple[Capability, ...] = tuple(each for each in kinds if not self.can(each))
        if lacking:
            raise Incapable(lacking)
        names = {key: self._unused(key) for key in asks}
        answers = await self.work.answers({names[key]: self.tasks.question(ask) for key, ask in asks.items()})
        return {key: self._understood(ask, answers[names[key]]) for key, ask in asks.items()}

    def _unused(self, key: str) -> str:
        """Return a key that no question of this task had: a client remembers what it has answered."""
        name, count = key, 1
        while name in self._asked:
            count += 1
            name = f"{key}-{count}"
        self._asked.add(name)
        return name

    def _understood(self, ask: Ask, answer: Json) -> Given:
        given = self.tasks.understood(ask, answer)
        if given is None:  # refused when it came, by the very same rules
            raise unasked()
        return given

    def wait(self, work: Awaitable[T]) -> T:
        """Wait in a thread for what the event loop does.

        Raises: concurrent.futures.CancelledError, when nobody wants the task any more.
        """
        if self.work.over:
            abandon(work)
            raise CancelledError
        try:
            return waited(self.work.unless_stopped(work), self.loop)
        except CancelledError:
            if self.loop.is_closed():
                abandon(work)
            raise


def _far(number: float) -> str:
    """Return a number in a few characters; whole ones of any size have no such form."""
    return str(number)[:MAX_DIGITS] if isinstance(number, int) else f"{number:g}"
