"""One handler that runs as a task, or may become one: it is run, listened to, stopped and written down.

Knows no wire and no store: its tasks spell it, its host keeps it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from ...kernel.client import Client
from ...kernel.codes import CODES
from ...kernel.errors import ActionError
from ...kernel.model import Outcome
from ...kernel.steps import Answer, Launch, Raised
from ...kernel.strict_json import Json
from ...kernel.tasks import STOPPED, Ending, Task, asked, ended, noted, taken
from .task_client import TaskClient
from .task_store import Changing

T = TypeVar("T")
log: Final = logging.getLogger("nonsuch.tasks")

NOTE_SECONDS: Final = 1.0  # how often a word on the progress is written down
WRITES: Final = 5
PAUSE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Labour:
    """How the enforcement point runs one handler, settles what came of it, and records that."""

    run: Callable[[Client], Awaitable[Answer]]
    settle: Callable[[Answer, str], Awaitable[Outcome]]
    record: Callable[[], None]


class Host(Protocol):
    """Whoever keeps the tasks of this process."""

    async def create(self, work: TaskWork, owner: str, tool: str) -> Task | None:
        """Keep a new task for a work; nothing, when there is no room."""
        ...

    async def find(self, ident: str, owner: str) -> Task | None:
        """Return a task."""
        ...

    async def change(self, ident: str, owner: str, changing: Changing) -> Task | None:
        """Change a task."""
        ...

    def let_go(self, ident: str) -> None:
        """Forget a work that is over."""
        ...


class TaskWork:
    """The work of one call. Its methods are called on its event loop."""

    def __init__(self, host: Host, step: Launch, labour: Labour) -> None:
        self._host, self._step, self._labour = host, step, labour
        self._handing, self.handed = asyncio.Lock(), asyncio.Event()
        self._stopped, self._news = asyncio.Event(), asyncio.Event()
        self._seen = 0
        self._note: str | None = None
        self._noted = float("-inf")
        self.task: Task | None = None
        self.running: asyncio.Task[Answer] | None = None

    # its life

    def start(self, front: Client) -> asyncio.Task[Answer]:
        """Begin to run; ``front`` is the client of the call."""
        client = TaskClient(self, self._step.tasks, front, asyncio.get_running_loop())
        self.running = asyncio.ensure_future(self._run(client))
        self.running.add_done_callback(_complain)
        return self.running

    @property
    def begun(self) -> bool:
        """Whether it is a task by now."""
        return self.task is not None

    @property
    def over(self) -> bool:
        """Whether it has ended, or nobody wants it any more."""
        return self._stopped.is_set()

    async def begin(self) -> bool:
        """Become a task, if it is none and still runs; false, when there is no room."""
        async with self._handing:
            if self.task is None and not self.over:
                permit = self._step.permit
                self.task = await self._host.create(self, self._step.owner, permit.entry.name)
            if self.task is not None:
                self.handed.set()
        return self.begun

    async def hand_over(self) -> None:
        """Become a task.

        Raises: ActionError.
        """
        if not await self.begin():
            told = CODES["X_MCP_TASKS_FULL"]
            raise ActionError(told.code, told.cause, told.fix, told.caller_fix)

    async def _run(self, client: Client) -> Answer:
        stopped: asyncio.CancelledError | None = None
        try:
            answer = await self._labour.run(client)
        except asyncio.CancelledError as fault:
            answer, stopped = Raised(fault), fault
        finally:
            self._stopped.set()
        async with self._handing:  # who still hands over comes first: a task that nobody ends would stay
            task = self.task
        if task is not None:
            await self._conclude(answer, task)
        elif stopped is not None:
            raise stopped
        return answer

    async def _conclude(self, answer: Answer, task: Task) -> None:
        """Write down what came of it, then have it recorded: an answer is fixed before it is audited."""
        try:
            outcome = await self._labour.settle(answer, task.ident)
            interrupted = isinstance(answer, Raised) and isinstance(answer.error, asyncio.CancelledError)
            ending = Ending("failed", message=STOPPED) if interrupted else self._step.tasks.ended(outcome)
            await self._write(task, ending)
        finally:
            self._labour.record()
            self._host.let_go(task.ident)

    async def _write(self, task: Task, ending: Ending) -> None:
        """A store that is away for a moment must not cost the result of a long work."""
        for last in (False,) * (WRITES - 1) + (True,):
            try:
                await self._host.change(task.ident, task.owner, partial(ended, ending=ending))
                return
            except Exception as fault:  # a driver's, of any kind; the last one is raised on
                if last:
                    raise
                log.error("the end of a task was not written: %s", type(fault).__name__)
                await asyncio.sleep(PAUSE_SECONDS)

    def stop(self) -> None:
        """Cancel the handler, once: it may take its time, and may even go on."""
        if not self._stopped.is_set():
            self._stopped.set()
            if self.running is not None:
                self.running.cancel()

    def tell(self, version: int) -> None:
        """Let whoever waits for answers look again, if the task has changed."""
        if version != self._seen:
            self._seen = version
            self._news.set()
            self._news = asyncio.Event()

    async def unless_stopped(self, waiting: Awaitable[T]) -> T:
        """Wait for something in the name of a handler that runs in a thread.

        Raises: CancelledError, once nobody wants the task any more.
        """
        one, other = asyncio.ensure_future(waiting), asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait({one, other}, return_when=asyncio.FIRST_COMPLETED)
            if not one.done():
                raise asyncio.CancelledError
            return one.result()
        finally:
            one.cancel()
            other.cancel()

    # what its handler says and asks

    async def note(self, message: str) -> None:
        """Keep the last word on the progress, and write it down now and then."""
        self._note = message
        if asyncio.get_running_loop().time() - self._noted >= NOTE_SECONDS:
            await self.flush()

    async def flush(self) -> None:
        """Write the last word down. That it is lost harms no work."""
        message, self._note = self._note, None
        if message is None or self.task is None:
            return
        self._noted = asyncio.get_running_loop().time()
        try:
            await self._host.change(self.task.ident, self.task.owner, partial(noted, message=message))
        except Exception as fault:  # noqa: BLE001  (a driver's, of any kind)
            log.warning("the progress of a task was not written: %s", type(fault).__name__)

    async def answers(self, asks: Mapping[str, Json]) -> Mapping[str, Json]:
        """Ask in the task, and return the answers once all are there."""
        task = self.task
        if task is None or not asks:
            return {}
        await self._host.change(task.ident, task.owner, partial(asked, asks=asks))
        while True:
            news = self._news
            held = await self._host.find(task.ident, task.owner)
            if held is None or held.finished:
                self.stop()
                await asyncio.Event().wait()  # until the cancellation arrives here
            elif asks.keys() <= held.answers.keys():
                await self._host.change(task.ident, task.owner, partial(taken, keys=asks.keys()))
                return {key: held.answers[key] for key in asks}
            else:
                await news.wait()


def _complain(running: asyncio.Task[Answer]) -> None:
    """Say that a task came to no end of its own; whoever waits for it is told by other means."""
    fault = None if running.cancelled() else running.exception()
    if fault is not None:
        log.error("a task was left without an end: %s", type(fault).__name__)
