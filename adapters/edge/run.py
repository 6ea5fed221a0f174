"""The enforcement point: answers the kernel's steps, async and sync, one loop each.

Application code runs here and nowhere else; a handler runs for a Permit and for nothing else.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ...kernel.audit import Event
from ...kernel.client import NOBODY, Client
from ...kernel.declare import Context
from ...kernel.idempotency import Kept
from ...kernel.model import Agent, Call, Human, Outcome, Principal, Surface, owner_key
from ...kernel.signatures import Handler
from ...kernel.steps import (
    Answer,
    Audit,
    Change,
    ChangeTask,
    Deliver,
    FindTask,
    Launch,
    Launched,
    ListConfirmations,
    Listen,
    Load,
    MoveConfirmation,
    OpenConfirmation,
    Permit,
    Raised,
    ReadBody,
    Recall,
    Remember,
    Reserve,
    ResolvePrincipal,
    ResolveToken,
    Returned,
    Step,
    Steps,
    TakeToken,
    UnknownStep,
    Watch,
    Write,
)
from ...kernel.strict_json import Json
from .app import App
from .audit import record
from .client import StreamClient, Waiting, spoken
from .confirming_lists import confirmations_for
from .idempotency import IdempotencyBook, atomic_of
from .streams import Streams
from .task_store import TaskBook
from .task_work import Labour
from .tasks import Works

if TYPE_CHECKING:
    from .telemetry_spans import Recorder

T = TypeVar("T")
log: Final = logging.getLogger("nonsuch.run")

Clock = Callable[[], datetime]
utc_now: Final[Clock] = partial(datetime.now, UTC)  # the wall clock
Read = Callable[[int], Awaitable[bytes | None]]
KEEP_ALIVE_SECONDS: Final = 15
MAX_TALKING: Final = 1_024  # threads of plain handlers that can wait for their clients; made when needed


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """An app whose lifespan was entered."""

    app: App
    resources: Any = None
    clock: Clock = utc_now
    streams: Streams = field(init=False)
    waiting: Waiting = field(init=False)
    works: Works = field(init=False)
    replays: IdempotencyBook = field(init=False)
    talking: ThreadPoolExecutor = field(init=False)
    recorder: Recorder | None = field(init=False)

    def __post_init__(self) -> None:
        replays = IdempotencyBook(self.app.idempotency_store, self.app.idempotency_seconds, self.clock)
        object.__setattr__(self, "replays", replays)
        object.__setattr__(self, "streams", Streams(self.app.streams))
        object.__setattr__(self, "waiting", Waiting(self.streams))
        book = TaskBook(self.app.task_store, self.app.tasks, self.clock)
        object.__setattr__(self, "works", Works(book))
        object.__setattr__(self, "talking", ThreadPoolExecutor(MAX_TALKING, "nonsuch-talking"))
        telemetry = self.app.telemetry
        object.__setattr__(self, "recorder", None if telemetry is None else telemetry.begin(self.app))

    async def invoke(
        self, principal: Principal, name: str, arguments: Mapping[str, Json], surface: Surface = "agent"
    ) -> Outcome:
        """Call a tool in process, through every gate that a call from outside passes."""
        edge = Edge(self)
        try:
            return await run(self._steps(principal, name, arguments, surface), edge)
        finally:
            edge.flush()

    async def permitted(self, principal: Principal, path: str, arguments: Mapping[str, Json]) -> bool:
        """Say whether a call at a path under ``/api/`` would be permitted now. Asking is no event."""
        kernel = self.app.kernel
        view = kernel.view_for(principal)
        entry = view.find(path, "http")
        return entry is not None and await run(kernel.permitted(view, entry, arguments), Edge(self))

    def _steps(
        self, principal: Principal, name: str, arguments: Mapping[str, Json], surface: Surface
    ) -> Steps[Outcome]:
        kernel = self.app.kernel
        steps = kernel.invoke(kernel.view_for(principal), Call(name, arguments, surface))
        return steps if self.recorder is None else self.recorder.call(steps, principal)


class Outlet(Protocol):
    """Where the messages of one request go that come before its answer."""

    async def write(self, message: bytes) -> None:
        """Send one message."""
        ...

    async def rest(self) -> None:
        """Send a sign of life that is no message."""
        ...

    async def departure(self) -> None:
        """Return once the client has left."""
        ...

    def stoppable(self) -> None:
        """Stop this request once its client is gone."""
        ...


_DONE: Final = Returned(None)


@dataclass(slots=True, eq=False)
class Edge:
    """Answers the steps of one request, and keeps its audit events until the answer has left.

    ``client`` and ``threads`` are those of a handler that runs as a task, ``listens`` is who has a stream
    open through it, ``kept`` the record whose transaction the handler shares.
    """

    running: Running
    read: Read | None = None
    outlet: Outlet | None = None
    events: list[Event] = field(default_factory=list[Event])
    rests_at: float = 0
    client: Client | None = None
    threads: Executor | None = None
    listens: str | None = None
    kept: Kept | None = None

    async def answer(self, step: Step) -> Answer:  # noqa: C901  (a closed union, a few lines each)
        """Carry out one step; an unknown one is refused, which the kernel reads as a denial."""
        match step:  # what every request asks comes first
            case TakeToken():
                return await self._counted(step)
            case ResolveToken(token, facts):
                return await self._resolve(self.running.app.resolve_token, token, facts)
            case ReadBody() if self.read is not None:
                return Returned(await self.read(step.limit))
            case Permit():
                if step.line is not None and step.line.ends_with_client and self.outlet is not None:
                    self.outlet.stoppable()
                held = self._context(step.principal, step.resource, self._client(step))
                work = self._apply(step.handler, step.input, held)
                return await (work if self.kept is None else self.running.replays.within(self.kept, work))
            case Audit():
                self.events.append(step.event)
                return _DONE
            case Load():
                return await self._apply(step.loader, step.input, self._context(step.principal, None, NOBODY))
            case ResolvePrincipal(facts):
                return await self._resolve(self.running.app.resolve_principal, facts)
            case Launch():
                return await _kept(self._launched(step))
            case FindTask():
                return await _kept(self.running.works.find(step.ident, step.owner))
            case ChangeTask():
                return await _kept(self.running.works.change(step.ident, step.owner, step.change))
            case Recall():
                return await _kept(self.running.replays.recall(step))
            case Reserve():
                begun = await _kept(self.running.replays.reserve(step))
                self.kept = atomic_of(step, begun)
                return begun
            case Remember():
                return await _kept(self.running.replays.remember(step))
            case OpenConfirmation() if (desk := self.running.app.confirmations) is not None:
                return await _kept(desk.open(step, self.running.clock()))
            case MoveConfirmation() if (desk := self.running.app.confirmations) is not None:
                return await _kept(desk.move(step, self.running.clock()))
            case ListConfirmations(principal, which):
                return await _kept(confirmations_for(self.running, principal, which))
            case Write() if self.outlet is not None:
                await self.outlet.write(step.message)
                return _DONE
            case Listen() if self.outlet is not None:
                return Returned(self._listening(step))
            case Watch() if self.outlet is not None:
                return await self._watched(step, self.outlet)
            case Deliver():
                self.running.waiting.deliver(step.ident, step.principal, step.answer)
                return _DONE
            case _:
                return Raised(UnknownStep(type(step).__name__))

    async def _counted(self, step: TakeToken) -> Answer:
        """Ask the rate store; whatever it raises refuses the request."""
        try:
            return Returned(await self.running.app.rate_store.take(step.key, step.rate, step.count))
        except BaseException as fault:  # a store of the application's can raise anything
            if _stops_us(fault):
                raise
            log.error("the rate store raised %s", _kind(fault))
            return Raised(fault)

    def flush(self) -> None:
        """Record the events of this request, and give back the stream that it had open."""
        events, self.events = self.events, []
        if self.listens is not None:
            self.running.streams.give(self.listens)
            self.listens = None
        record(self.running.app, events, self.running.clock())

    def _context(self, principal: Principal, resource: object, client: Client) -> Context[Any]:
        return Context(principal, resource, self.running.resources, self.running.clock(), client)

    def _client(self, permit: Permit) -> Client:
        """Return the line of a handler that takes a context; one that takes none says nothing."""
        line = permit.line
        if self.client is not None:
            return self.client
        if line is None or "context" not in permit.handler.takes:
            return NOBODY
        loop = None if permit.handler.is_async else _loop()
        return StreamClient(
            line, permit.principal, self.running.waiting, self.outlet, self.running.app.ask_seconds, loop
        )

    async def _launched(self, step: Launch) -> Launched:
        """Run a handler that becomes a task; its events are its own, for they come after this request's."""
        own = Edge(self.running, threads=self.running.works.threads, kept=self.kept)
        if step.permit.entry.asks_first and self.outlet is not None:
            self.outlet.stoppable()

        async def perform(client: Client) -> Answer:
            own.client = client
            return await own.answer(step.permit)

        async def settle(answer: Answer, ident: str) -> Outcome:
            return await run(step.finish(answer, ident), own)

        labour = Labour(perform, settle, own.flush)
        return await self.running.works.launch(step, labour, self._client(step.permit))

    def _listening(self, step: Listen) -> bool:
        owner = owner_key("", step.principal)
        if self.listens is not None or not self.running.streams.take(owner):
            return False
        self.listens = owner
        return True

    async def _watched(self, step: Watch, outlet: Outlet) -> Answer:
        """Wait for a change, or until the next sign of life, which comes as often whatever changes between.

        A listener is told of that too, as of a change of nothing, to see whether it may still listen.
        """
        changes, loop = self.running.app.notify, asyncio.get_running_loop()
        outlet.stoppable()
        if self.rests_at == 0:
            self.rests_at = loop.time() + KEEP_ALIVE_SECONDS
        seconds = max(self.rests_at - loop.time(), 0)
        works = self.running.works
        await asyncio.sleep(0)  # who always finds something leaves a turn to others
        answer = await _kept(
            works.watch(step, changes, seconds) if step.tasks else changes.wait(step.count, seconds)
        )
        if isinstance(answer, Raised) or answer.value is not None or changes.closed:
            return answer
        self.rests_at += KEEP_ALIVE_SECONDS
        await outlet.rest()
        return Returned(Change(step.count, frozenset()))

    async def _apply(self, handler: Handler, given: object, context: Context[Any]) -> Answer:
        arguments = [given if each == "input" else context for each in handler.takes]
        try:
            if handler.is_async:
                value = await handler.function(*arguments)
            else:
                call = partial(_called, handler.function, arguments)
                run_in_copy = contextvars.copy_context().run
                threads = self._threads(context)
                value = await asyncio.get_running_loop().run_in_executor(threads, run_in_copy, call)
                value = await value if inspect.isawaitable(value) else value
        except BaseException as fault:
            if _stops_us(fault):
                raise
            said = spoken(fault)
            if said is not None:
                return Raised(said)
            _complain(handler.function, fault)
            return Raised(fault if isinstance(fault, Exception) else RuntimeError("not an Exception"))
        return Returned(value)

    def _threads(self, context: Context[Any]) -> Executor | None:
        """Return where a plain function runs: what may wait for a client keeps no thread from the others."""
        talks = self.threads is None and context.client is not NOBODY
        return self.running.talking if talks else self.threads

    async def _resolve(self, resolver: Callable[..., object] | None, *given: object) -> Answer:
        if resolver is None:
            return Returned(None)
        try:
            found = resolver(*given)
            known = found is None or isinstance(found, (Agent, Human))
            return Returned(found if known or not inspect.isawaitable(found) else await found)
        except BaseException as fault:
            if _stops_us(fault):
                raise
            _complain(resolver, fault)  # application code: whatever it raises lets nobody in
            return Raised(fault)


async def _kept(work: Awaitable[object]) -> Answer:
    """Whatever a store raises is told as no more than that."""
    try:
        return Returned(await work)
    except BaseException as fault:  # a driver's, of any kind
        if _stops_us(fault):
            raise
        log.error("a store of this app raised %s", _kind(fault))
        return Raised(fault)


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # driven by hand: nothing waits
        return None


def _stops_us(fault: BaseException) -> bool:
    """Whether a fault is about this task or process, and not the application's own."""
    if isinstance(fault, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(fault, KeyboardInterrupt)


def _called(function: Callable[..., Any], arguments: list[object]) -> Any:
    """Call a plain function; what steers generators cannot cross a future: its caller would wait or break."""
    try:
        return function(*arguments)
    except (StopIteration, GeneratorExit) as fault:
        raise RuntimeError(f"the handler raised {type(fault).__name__}") from fault


async def run(steps: Steps[T], edge: Edge) -> T:
    """Drive a generator of steps to its end."""
    try:
        step = steps.send(None)  # type: ignore[arg-type]  # a generator starts with None
        while True:
            try:
                answer = await edge.answer(step)
            except BaseException as stopped:
                _settle(steps, stopped, edge)
                raise
            step = steps.send(answer)
    except StopIteration as done:
        value: T = done.value
        return value


def _settle(steps: Steps[Any], stopped: BaseException, edge: Edge) -> None:
    """A cancelled call has an outcome too: let the kernel fix it and keep what it wants audited."""
    try:
        step = steps.send(Raised(stopped))
        while isinstance(step, Audit):
            edge.events.append(step.event)
            step = steps.send(Returned(None))
        steps.close()
    except StopIteration:
        pass


def _kind(fault: BaseException) -> str:
    """Return what a store's fault is, never its words: they can hold rows."""
    name = type(fault).__name__
    return f"{name}: make its table, `SQL_..._TABLE` of `nonsuch`" if name == "UndefinedTable" else name


def _complain(function: Callable[..., Any], fault: BaseException) -> None:
    """Say what raised and where, never its message: that can hold arguments or rows."""
    trace, place = fault.__traceback__, ""
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    name = getattr(function, "__name__", type(function).__name__)
    log.error("%s raised %s at %s", name, type(fault).__name__, place)
