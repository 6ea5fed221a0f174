"""Attacks on the MCP adapter by callers with a token: streams, listeners, and what callers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

import pytest
from pydantic import BaseModel

from nonsuch import (
    ActionError,
    Agent,
    App,
    Context,
    ListRoots,
    StreamLimits,
    asgi,
    can,
    resource,
    tool,
)
from nonsuch.adapters.edge.changes import Changes
from nonsuch.adapters.edge.task_store import MemoryTaskStore
from nonsuch.kernel.tasks import Task, TaskLimits

from ..adapters.edge.talkers import message
from ..adapters.edge.test_stdio import connected
from ..adapters.mcp.live import LEGACY, MODERN, REVISIONS, Live, play, request
from ..adapters.mcp.stage import stage

TASKS: Final[dict[str, Any]] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


class Numbered(BaseModel):
    id: str


def words() -> str:
    return "words"


# after the end of a request


class Late:
    """A handler whose child says things once its parent's request has been answered."""

    def __init__(self) -> None:
        self.answered = asyncio.Event()
        self.said: list[str] = []
        self.child: asyncio.Task[None]

    async def handler(self, ctx: Context[Any]) -> str:
        self.child = asyncio.create_task(self._talk(ctx))
        return "answered"

    async def _talk(self, ctx: Context[Any]) -> None:
        await self.answered.wait()
        await ctx.client.progress(1)
        self.said.append("progress")
        await ctx.client.log("info", "late")
        self.said.append("log")


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_a_child_says_after_the_answer_goes_nowhere(revision: str) -> None:
    async def scene() -> None:
        late = Late()
        sent = request(revision, "tools/call", name="t", meta={"progressToken": 0, ".logLevel": "debug"})
        stream = Live(stage(late.handler)).open(sent)
        [told] = await stream.rest()
        late.answered.set()
        await late.child
        assert late.said == ["progress", "log"]
        assert stream.messages() == [told], "nothing follows an answer"

    play(scene())


def test_what_a_child_says_after_the_answer_goes_nowhere_over_a_pipe() -> None:
    async def scene() -> None:
        late = Late()
        async with connected(stage(late.handler), Agent("a", roles={"r"})) as peer:
            await peer.initialize()
            params = {"name": "t", "_meta": {"progressToken": 0}}
            await peer.ask(message("tools/call", params, ident=1))
            late.answered.set()
            await late.child
            peer.say(message("ping", ident=2))
            assert (await peer.next())["id"] == 2

    asyncio.run(scene())


class SlowShelf(MemoryTaskStore):
    """A store that takes its time to keep a task."""

    async def create(self, task: Task, limits: TaskLimits) -> bool:
        await asyncio.sleep(0.05)
        return await super().create(task, limits)

    @property
    def statuses(self) -> list[str]:
        return [task.status for task in vars(self)["_kept"].values()]


@pytest.mark.parametrize("pause", [0.1, 0], ids=["after the end", "while it ends"])
def test_a_child_that_hands_over_late_leaves_no_task_behind_that_never_ends(pause: float) -> None:
    children: list[asyncio.Task[None]] = []

    async def hand_over(ctx: Context[Any]) -> None:
        await asyncio.sleep(pause)
        with suppress(ActionError):
            await ctx.client.background()

    async def work(ctx: Context[Any]) -> str:
        children.append(asyncio.create_task(hand_over(ctx)))
        await asyncio.sleep(0.02)
        return "worked"

    async def scene() -> None:
        shelf = SlowShelf()
        live = Live(stage(work, face={"task": "optional", "asks_first": True}, task_store=shelf))
        await live.ask(request(MODERN, "tools/call", name="t", capabilities=TASKS))
        await asyncio.gather(*children)
        await asyncio.sleep(0.05)
        assert set(shelf.statuses) <= {"completed"}
        for each in asyncio.all_tasks() - {asyncio.current_task()}:
            each.cancel()
        await asyncio.sleep(0)

    asyncio.run(scene())


@pytest.mark.parametrize("gives_in", [True, False])
def test_a_client_that_leaves_takes_no_time_limit_of_the_host_with_it(gives_in: bool) -> None:
    """Whoever awaits the application in one task with something else still has its own cancellations."""

    async def wait(ctx: Context[Any]) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if gives_in:
                raise
        return "waited"

    async def scene() -> None:
        headers, body = request(MODERN, "tools/call", name="t")
        told = iter([{"type": "http.request", "body": body}])

        async def receive() -> MutableMapping[str, Any]:
            return next(told, {"type": "http.disconnect"})

        async def send(_message: MutableMapping[str, Any]) -> None:
            return None

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "headers": [(name.encode(), value.encode()) for name, value in headers],
        }

        async def host() -> None:
            async with asyncio.timeout(0.3):
                await asgi(stage(wait))(scope, receive, send)
                await asyncio.sleep(60)

        with pytest.raises(TimeoutError):
            await host()

    asyncio.run(scene())


# what a listener learns


class Post(BaseModel):
    id: str
    owner: str


def post_of(given: Numbered, ctx: Context[Any]) -> Post | None:
    return None if given.id == "absent" else Post(id=given.id, owner="somebody")


def read_post(given: Numbered) -> str:
    return given.id


CLOSED: Final[dict[str, tuple[str, Any]]] = {
    "a scope that is lacking": ("p:1", resource("p:1", "one", "One", words, scope="s")),
    "a permission that is lacking": ("p:1", resource("p:1", "one", "One", words, policy="x:y")),
    "another's row": ("p:1", resource("p:{id}", "of", "Of", read_post, policy=can("x:y", post_of))),
    "a row that is not there": (
        "p:absent",
        resource("p:{id}", "of", "Of", read_post, policy=can("x:y", post_of)),
    ),
}


@pytest.mark.parametrize("why", CLOSED)
def test_a_listener_hears_no_update_of_what_it_may_not_read(why: str) -> None:
    uri, closed = CLOSED[why]

    async def scene() -> None:
        app = stage(resources=[closed, resource("p:open", "open", "Open", words)], grants=[])
        live = Live(app)
        [refused] = await live.ask(request(MODERN, "resources/read", uri=uri))
        assert "error" in refused
        wanted = {"resourceSubscriptions": [uri, "p:open"]}
        stream = live.open(request(MODERN, "subscriptions/listen", notifications=wanted))
        await stream.message()
        app.notify.resource_updated(uri)
        await stream.silence()
        app.notify.resource_updated("p:open")
        assert (await stream.message())["params"]["uri"] == "p:open"
        app.notify.close()
        await stream.rest()

    play(scene())


@pytest.mark.parametrize("why", CLOSED)
def test_a_subscriber_over_a_pipe_hears_no_update_of_what_it_may_not_read(why: str) -> None:
    uri, closed = CLOSED[why]

    async def scene() -> None:
        app = stage(resources=[closed, resource("p:open", "open", "Open", words)], grants=[])
        async with connected(app, Agent("a", roles={"r"})) as peer:
            await peer.initialize()
            for each in (uri, "p:open"):
                await peer.ask(message("resources/subscribe", {"uri": each}, ident=each))
            app.notify.resource_updated(uri)
            await asyncio.sleep(0.05)
            app.notify.resource_updated("p:open")
            assert (await peer.next())["params"] == {"uri": "p:open"}

    asyncio.run(scene())


# what one caller takes from the others


def test_plain_handlers_whose_clients_never_answer_keep_no_thread_from_others() -> None:
    def ask(ctx: Context[Any]) -> str:
        ctx.client.wait(ctx.client.ask({"k": ListRoots()}))
        return "asked"

    async def scene() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        live = Live(stage(ask, tools={"other": tool("O", words, policy="a:b")}, ask_seconds=0.5))
        asking = [live.open(request(LEGACY[1], "tools/call", name="t")) for _ in range(3)]
        for each in asking:
            await each.message()
        told = await live.result(request(LEGACY[1], "tools/call", "other", name="other"))
        assert told["content"] == [{"type": "text", "text": "words"}]
        assert not any(each.task.done() for each in asking), "the others wait on"
        for each in asking:
            await each.rest()

    play(scene())


def test_questions_that_one_caller_leaves_open_keep_nobody_else_from_asking() -> None:
    async def ask(ctx: Context[Any]) -> str:
        await ctx.client.ask({"k": ListRoots()})
        return "asked"

    async def scene() -> None:
        live = Live(stage(ask, ask_seconds=0.3, streams=StreamLimits(per_principal=2)))
        streams = [live.open(request(LEGACY[1], "tools/call", "ann", name="t")) for _ in range(2)]
        for each in streams:
            assert (await each.message())["method"] == "roots/list"
        [refused] = await live.ask(request(LEGACY[1], "tools/call", "ann", name="t"))
        assert "X_MCP_STREAMS_FULL" in refused["result"]["content"][0]["text"]
        other = live.open(request(LEGACY[1], "tools/call", "bob", name="t"))
        assert (await other.message())["method"] == "roots/list"
        for each in (*streams, other):
            await each.rest()
        again = live.open(request(LEGACY[1], "tools/call", "ann", name="t"))
        assert (await again.message())["method"] == "roots/list", "what is over counts no more"
        await again.rest()

    play(scene())


def test_a_storm_of_changes_wakes_each_listener_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what nobody could look at yet piles up in the event loop, for each listener."""

    async def scene() -> None:
        changes, loop = Changes(), asyncio.get_running_loop()
        waits = [asyncio.create_task(changes.wait(1, 5)) for _ in range(3)]
        await asyncio.sleep(0)
        woken: list[Callable[[], object]] = []
        wake = loop.call_soon_threadsafe

        def counted(what: Callable[[], object]) -> None:
            woken.append(what)
            wake(what)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        for each in range(100):
            changes.resource_updated(f"a:{each}")
        assert len(woken) == len(waits)
        assert [len(told.uris) for told in await asyncio.gather(*waits) if told is not None] == [100] * 3

    asyncio.run(scene())


def test_a_listener_that_always_finds_a_change_leaves_a_turn_to_others() -> None:
    asked: list[str] = []
    apps: list[App] = []

    def changing(token: str) -> Agent:
        """Every look at the token is another change: a listener would go on for ever."""
        asked.append(token)
        for app in apps:
            app.notify.lists_changed()
        if len(asked) > 1_000:
            apps.clear()
        return Agent("a", roles={"r"})

    async def scene() -> None:
        live = Live(stage(words, resolve_token=changing))
        stream = live.open(request(MODERN, "subscriptions/listen", notifications={"toolsListChanged": True}))
        await stream.message()
        apps.append(live.app)
        live.app.notify.lists_changed()
        for _ in range(20):
            await asyncio.sleep(0)
        assert 1 < len(asked) < 50
        apps.clear()
        live.app.notify.close()
        await stream.rest()

    play(scene())
