"""Works that go on: a store that fails, handlers that will not stop, threads of their own, and beats."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from nonsuch import Agent, App, Context, Open, Registry, Text, define_app_mcp, grant, tool
from nonsuch.adapters.edge import task_work, tasks
from nonsuch.adapters.edge.run import Edge, Running, run
from nonsuch.adapters.edge.task_store import MemoryTaskStore
from nonsuch.kernel.audit import Event, ToolCall
from nonsuch.kernel.line import TaskLine
from nonsuch.kernel.model import Begun, Call, Failed, Ok, Outcome, owner_key
from nonsuch.kernel.strict_json import Json
from nonsuch.kernel.tasks import Ending, Support, Task, TaskLimits, cancelled, ended

ANN: Final = Agent("ann", roles=["r"])
STARTED: Final = datetime(2026, 7, 28, tzinfo=UTC)
Handler = Callable[..., Any]


class Spelling:
    """A wire that spells everything plainly."""

    def question(self, ask: object) -> Json:
        """Return a question."""
        return str(ask)

    def understood(self, ask: object, answer: Json) -> None:
        """Understand nothing."""

    def ended(self, outcome: Outcome) -> Ending:
        """Return an end."""
        return Ending("completed", outcome.json if isinstance(outcome, Ok) else b"no")


class Line:
    """The line of a call that may go on."""

    ends_with_client = False
    state: Json = None

    def __init__(self) -> None:
        self.tasks: TaskLine = Spelling()

    def unfit(self, *_: object) -> None:
        """Fit."""

    def progress(self, *_: object) -> None:
        """Say nothing."""

    def log(self, *_: object) -> None:
        """Say nothing."""

    def ask(self, *_: object) -> None:
        """Ask nothing."""

    def answered(self, *_: object) -> None:
        """Know no answer."""

    def understood(self, *_: object) -> None:
        """Understand nothing."""

    def can(self, *_: object) -> bool:
        """Can do nothing."""
        return False


@dataclass
class Store(MemoryTaskStore):
    """A store whose steps fail for as long as a test wants."""

    failing: set[str] = field(default_factory=set[str])
    swaps: int = 0
    closed: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def _perhaps(self, step: str) -> None:
        if step in self.failing:
            raise ConnectionError("the password is hunter2")

    async def create(self, task: Task, limits: TaskLimits) -> bool:
        """Create, perhaps."""
        self._perhaps("create")
        return await super().create(task, limits)

    async def read(self, idents: Collection[str], now: datetime) -> Mapping[str, Task]:
        """Read, perhaps."""
        self._perhaps("read")
        return await super().read(idents, now)

    async def swap(self, task: Task) -> bool:
        """Swap, perhaps."""
        self.swaps += 1
        self._perhaps("swap")
        return await super().swap(task)

    async def close(self) -> None:
        """Note it."""
        self.closed = True


@dataclass
class Bench:
    """A running app of one tool that goes on."""

    running: Running
    store: Store
    events: list[Event]

    async def call(self) -> Outcome:
        """Call it."""
        kernel, edge = self.running.app.kernel, Edge(self.running)
        line: Any = Line()
        steps = kernel.invoke(kernel.view_for(ANN), Call("work", {}, "mcp"), line)
        outcome = await run(steps, edge)
        edge.flush()
        return outcome

    async def begin(self) -> Task:
        """Call it, and return its task."""
        outcome = await self.call()
        assert isinstance(outcome, Begun)
        return outcome.task

    async def find(self, task: Task) -> Task | None:
        """Look at it."""
        return await self.running.works.find(task.ident, owner_key("bench", ANN))

    async def until(self, task: Task, status: str) -> Task:
        """Look until it has a status: a client polls."""
        async with asyncio.timeout(10):
            while (held := await self.find(task)) is None or held.status != status:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            return held

    def outcomes(self) -> list[str]:
        """How the calls ended, as audited."""
        return [event.outcome for event in self.events if isinstance(event, ToolCall)]


def at_bench(
    handler: Handler,
    doing: Callable[[Bench], Awaitable[None]],
    limits: TaskLimits | None = None,
    *,
    task: Support = "optional",
    asks_first: bool = False,
) -> None:
    """Do something with an app whose one tool is this handler."""
    store, events = Store(), list[Event]()
    app: App = define_app_mcp(
        Registry(),
        name="bench",
        tools={"work": tool("d", handler, policy="a:b", task=task, asks_first=asks_first)},
        grants=[grant("r", "a:b")],
        on_audit=events.append,
        tasks=limits,
        task_store=store,
    )

    async def whole() -> None:
        async with asyncio.timeout(30), Open(app) as running:
            await doing(Bench(running, store, events))
        assert store.closed

    asyncio.run(whole())


async def quick() -> Text:
    return Text("done")


def test_a_tool_that_never_goes_on_does_not_whatever_its_line_could_spell() -> None:
    async def doing(bench: Bench) -> None:
        assert isinstance(await bench.call(), Ok)
        assert bench.outcomes() == ["ok"]

    at_bench(quick, doing, task="never")


# A store that fails


def test_a_call_whose_task_cannot_be_kept_fails_and_does_not_run(caplog: pytest.LogCaptureFixture) -> None:
    ran = list[str]()

    async def work() -> Text:
        ran.append("work")
        return Text("x")

    async def doing(bench: Bench) -> None:
        bench.store.failing = {"create"}
        outcome = await bench.call()
        assert isinstance(outcome, Failed)
        assert (outcome.code, ran, bench.outcomes()) == ("X_INTERNAL", [], ["failed"])
        assert "hunter2" not in caplog.text
        assert "ConnectionError" in caplog.text

    at_bench(work, doing)


def test_a_store_that_is_away_for_a_moment_costs_no_result(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(task_work, "PAUSE_SECONDS", 0.01)

    async def doing(bench: Bench) -> None:
        bench.store.failing = {"swap"}
        task = await bench.begin()
        while bench.store.swaps < 3:  # noqa: ASYNC110  (the store tells nobody)
            await asyncio.sleep(0.005)
        bench.store.failing = set()
        held = await bench.until(task, "completed")
        assert held.body == b'{"text":"done","type":"text"}'
        assert bench.outcomes() == ["begun", "ok"]
        assert "hunter2" not in caplog.text

    at_bench(quick, doing)


def test_a_store_that_stays_away_costs_the_result_and_no_audit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The task is then nobody's, and fails when its lease runs out."""
    monkeypatch.setattr(task_work, "PAUSE_SECONDS", 0.001)

    async def doing(bench: Bench) -> None:
        bench.store.failing = {"swap"}
        task = await bench.begin()
        while "without an end" not in caplog.text:  # noqa: ASYNC110  (a log tells nobody)
            await asyncio.sleep(0.005)
        assert bench.store.swaps == task_work.WRITES
        assert bench.outcomes() == ["begun", "ok"]
        bench.store.failing = set()
        held = await bench.until(task, "failed")
        assert held.message == "the server stopped before the work ended"
        assert "hunter2" not in caplog.text

    at_bench(quick, doing, TaskLimits(lease_seconds=0.2))


def test_a_beat_that_fails_is_told_and_the_next_one_tries_again(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> Text:
        await asyncio.sleep(0.5)
        return Text("done")

    async def doing(bench: Bench) -> None:
        task = await bench.begin()
        bench.store.failing = {"read"}
        while "looked after: ConnectionError" not in caplog.text:  # noqa: ASYNC110  (a log tells nobody)
            await asyncio.sleep(0.005)
        bench.store.failing = set()
        await bench.until(task, "completed")
        assert "hunter2" not in caplog.text

    at_bench(work, doing, TaskLimits(lease_seconds=0.3))


# A result that is too large


def test_a_work_whose_result_is_too_large_ends_as_failed(caplog: pytest.LogCaptureFixture) -> None:
    """It was done all the same, and that is what is audited; nobody waits for its task for ever."""

    async def work() -> Text:
        return Text("s3cret" * 1_000)

    async def doing(bench: Bench) -> None:
        held = await bench.until(await bench.begin(), "failed")
        assert (held.body, bench.outcomes()) == (b"", ["begun", "ok"])
        assert held.message == "the work ended, and its result is larger than a task keeps"
        assert "the result of `work` has 6025 bytes, and a task keeps 6024" in caplog.text
        assert "s3cret" not in caplog.text

    size = len(b'{"text":"","type":"text"}') + 6_000
    assert size == 6_025
    at_bench(work, doing, TaskLimits(result_bytes=6_024))


# Leases


def test_a_work_that_takes_many_leases_keeps_its_task() -> None:
    async def work() -> Text:
        await asyncio.sleep(0.8)
        return Text("done")

    async def doing(bench: Bench) -> None:
        await bench.until(await bench.begin(), "completed")
        assert bench.outcomes() == ["begun", "ok"]

    at_bench(work, doing, TaskLimits(lease_seconds=0.3))


def test_a_work_whose_task_failed_behind_its_back_is_stopped() -> None:
    """As one whose process was not scheduled for longer than its lease."""
    stopped = asyncio.Event()

    async def work() -> Text:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.set()
            raise
        return Text("never")

    async def doing(bench: Bench) -> None:
        task = await bench.begin()
        await asyncio.sleep(0.01)
        failed = await bench.store.read([task.ident], task.created)
        assert await bench.store.swap(_failed(failed[task.ident]))
        await asyncio.wait_for(stopped.wait(), 5)
        held = await bench.find(task)
        assert held is not None
        assert held.message == "by somebody else"

    at_bench(work, doing, TaskLimits(lease_seconds=0.3))


def _failed(task: Task) -> Task:
    failed = ended(task, task.updated, Ending("failed", message="by somebody else"))
    assert failed is not None
    return failed


# The end


def test_a_handler_that_will_not_stop_holds_the_end_up_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "GRACE_SECONDS", 0.05)
    begun, release = asyncio.Event(), asyncio.Event()
    kept = list[tuple[Bench, Task]]()

    async def work() -> Text:
        begun.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return Text("late")

    async def doing(bench: Bench) -> None:
        kept.append((bench, await bench.begin()))
        await begun.wait()
        await bench.running.works.close()
        held = await bench.find(kept[0][1])
        assert held is not None
        assert (held.status, held.message) == ("failed", "the server stopped before the work ended")
        release.set()
        await asyncio.sleep(0.02)
        assert await bench.find(kept[0][1]) == held  # what came of it came too late
        assert bench.outcomes() == ["begun", "ok"]

    at_bench(work, doing)


def test_a_cancelled_handler_may_clean_up_undisturbed() -> None:
    """A second cancellation, at the next beat, would break off what it does in its ``finally``."""
    cleaned = asyncio.Event()

    async def work() -> Text:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.5)
            cleaned.set()
        return Text("never")

    async def doing(bench: Bench) -> None:
        task = await bench.begin()
        await asyncio.sleep(0.01)
        assert await bench.running.works.change(task.ident, task.owner, cancelled)
        await asyncio.wait_for(cleaned.wait(), 5)

    at_bench(work, doing, TaskLimits(lease_seconds=0.3))


def test_a_request_that_is_stopped_just_after_the_hand_over_stops_nothing() -> None:
    requests, went_on = list[asyncio.Task[Outcome]](), asyncio.Event()

    async def work(ctx: Context[None]) -> Text:
        await ctx.client.background()
        requests[0].cancel()
        await asyncio.sleep(0.02)
        went_on.set()
        return Text("done")

    async def doing(bench: Bench) -> None:
        requests.append(asyncio.ensure_future(bench.call()))
        with pytest.raises(asyncio.CancelledError):
            await requests[0]
        await asyncio.wait_for(went_on.wait(), 5)

    at_bench(work, doing, asks_first=True)


# Threads


def test_plain_handlers_that_run_as_tasks_take_no_thread_from_plain_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "MAX_THREADS", 2)
    release, names = threading.Event(), set[str]()

    def work(ctx: Context[None]) -> Text:
        names.add(threading.current_thread().name.rpartition("_")[0])
        release.wait(10)
        return Text("done")

    async def doing(bench: Bench) -> None:
        held = [await bench.begin() for _ in range(40)]
        await asyncio.sleep(0.05)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"
        release.set()
        for task in held:
            await bench.until(task, "completed")
        assert names == {"nonsuch-task"}

    at_bench(work, doing)
