"""Attacks on the MCP adapter by callers with a token, and application code that helps them unknowingly."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final

import pytest
from pydantic import BaseModel

from nonsuch import (
    Agent,
    App,
    Completing,
    Context,
    Elicit,
    ListRoots,
    Sample,
    asgi,
    can,
    prompt,
    resource,
    tool,
)
from nonsuch.adapters.edge import client
from nonsuch.adapters.edge.limits import RateStore
from nonsuch.adapters.edge.task_store import MemoryTaskStore
from nonsuch.kernel.meter import Limits

from ..adapters.edge.talkers import message
from ..adapters.edge.test_stdio import connected
from ..adapters.mcp.live import LEGACY, MODERN, REVISIONS, Live, play, request
from ..adapters.mcp.stage import reading, stage

SECRET: Final = "s3ntinel"
HALF: Final = "\ud800"
TASKS: Final[dict[str, Any]] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
EVERYTHING: Final[dict[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


class Odd(BaseException):
    """Neither an Exception nor one of Python's own."""


RAISED: Final[dict[str, Callable[[], BaseException]]] = {
    "SystemExit": lambda: SystemExit(SECRET),
    "a BaseException": lambda: Odd(SECRET),
    "its own CancelledError": lambda: asyncio.CancelledError(SECRET),
    "an Exception": lambda: ValueError(SECRET),
}


class Named(BaseModel):
    who: str


class Numbered(BaseModel):
    id: str


def words() -> str:
    return "words"


def greet(given: Named) -> str:
    return given.who


def once(app: App, sent: tuple[list[tuple[str, str]], bytes]) -> list[Any]:
    """Every message of an answer to one request."""
    return play(Live(app).ask(sent))


def introduced(revision: str) -> tuple[list[tuple[str, str]], bytes]:
    return request(revision, "server/discover" if revision == MODERN else "initialize")


# what the application answers


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("raised", RAISED)
def test_instructions_that_raise_are_none_and_end_no_server(raised: str, revision: str) -> None:
    def told(_view: object) -> str:
        raise RAISED[raised]()

    app = stage(words, instructions=told)
    assert once(app, introduced(revision)) == once(stage(words), introduced(revision))


@pytest.mark.parametrize("given", [HALF, lambda _: HALF], ids=["said", "answered"])
def test_instructions_that_cannot_be_sent_are_none(given: Any) -> None:
    app = stage(words, instructions=given)
    for revision in REVISIONS:
        assert once(app, introduced(revision)) == once(stage(words), introduced(revision))


def half(given: Completing) -> list[str]:
    return [given.value, HALF]


@pytest.mark.parametrize("how", [half, [HALF]], ids=["function", "list"])
def test_a_completion_that_cannot_be_sent_fails_without_a_word_of_it(how: Any) -> None:
    app = stage(prompts=[prompt(greet, description="P", name="p", complete={"who": how})])
    asked: dict[str, Any] = {
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "who", "value": ""},
    }
    for revision in REVISIONS:
        [told] = once(app, request(revision, "completion/complete", **asked))
        assert told["error"]["data"]["code"] == "X_OUTPUT_INVALID"


class Called(BaseModel):
    back: Callable[[int], int]


UNASKABLE: Final[dict[str, Callable[[], Any]]] = {
    "a model without a schema": lambda: Elicit(SECRET, Called),
    "no model": lambda: Elicit(SECRET, 5),  # type: ignore[arg-type]  # as an untyped application may
    "messages that are none": lambda: Sample(5, 5),  # type: ignore[arg-type]  # as above
    "stops that are none": lambda: Sample([], 5, stop_sequences=7),  # type: ignore[arg-type]  # as above
}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("what", UNASKABLE)
def test_a_question_that_is_none_fails_without_a_word_of_it(what: str, revision: str) -> None:
    async def ask(ctx: Context[Any]) -> str:
        await ctx.client.ask({"k": UNASKABLE[what]()})
        return "asked"

    [told] = once(stage(ask), request(revision, "tools/call", name="t", capabilities=EVERYTHING))
    assert "X_INTERNAL" in json.dumps(told)
    assert SECRET not in json.dumps(told)


def strictly(raw: bytes) -> Any:
    def refuse(what: str) -> None:
        raise AssertionError(f"{what} is no JSON")

    return json.loads(raw, parse_constant=refuse)


def test_a_question_with_numbers_that_json_lacks_is_still_json() -> None:
    async def ask(ctx: Context[Any]) -> str:
        await ctx.client.ask({"k": Sample([], 5, temperature=math.nan)})
        return "asked"

    async def scene() -> None:
        app = stage(ask, ask_seconds=0.01)
        for revision in REVISIONS:
            sent = request(revision, "tools/call", name="t", capabilities=EVERYTHING)
            stream = Live(app).open(sent)
            await stream.rest()
            for each in [stream.raw] if not stream.streams else stream.raw.split(b"\n"):
                if each.startswith((b"data: ", b"{")):
                    strictly(each.removeprefix(b"data: "))

    play(scene())


def test_progress_that_is_no_number_is_no_progress() -> None:
    async def report(ctx: Context[Any]) -> str:
        for done in (math.nan, 1, math.nan, math.inf, 1, -math.inf, 2):
            await ctx.client.progress(done, math.inf)
        return "reported"

    told = once(stage(report), request(MODERN, "tools/call", name="t", meta={"progressToken": 0}))
    assert [each["params"] for each in told[:-1]] == [
        {"progressToken": 0, "progress": 1},
        {"progressToken": 0, "progress": 2},
    ]


def test_a_plain_handler_that_raises_generator_exit_fails() -> None:
    def read() -> str:
        raise GeneratorExit(SECRET)

    for revision in REVISIONS:
        [told] = once(reading(read), request(revision, "resources/read", uri="a:b"))
        assert told["error"]["data"]["code"] == "X_INTERNAL"


# stores that are away


class AwayRates:
    """A store of rates that raises what its driver raises."""

    def __init__(self, raised: BaseException) -> None:
        self.raised = raised

    async def take(self, key: str, rate: object, count: int) -> Any:
        raise self.raised


@pytest.mark.parametrize("raised", RAISED)
def test_a_store_of_rates_that_raises_anything_refuses_the_request(raised: str) -> None:
    store: RateStore = AwayRates(RAISED[raised]())
    app = stage(words, rate_limits=Limits(), rate_limit_store=store)
    [told] = once(app, request(MODERN, "tools/list"))
    assert told["error"]["data"]["code"] == "X_RATE_STORE_FAILED"


class AwayTasks(MemoryTaskStore):
    """A store of tasks that raises once it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.raised: BaseException | None = None

    async def read(self, idents: Any, now: datetime) -> Any:
        if self.raised is not None:
            raise self.raised
        return await super().read(idents, now)


@pytest.mark.parametrize("raised", RAISED)
def test_a_store_of_tasks_that_raises_anything_fails_the_request(raised: str) -> None:
    store = AwayTasks()
    store.raised = RAISED[raised]()
    app = stage(words, task_store=store)
    [told] = once(app, request(MODERN, "tasks/get", capabilities=TASKS, taskId="a" * 20))
    assert told["error"]["data"]["code"] == "X_INTERNAL"


def test_a_store_of_tasks_that_goes_away_ends_a_listener_in_good_order() -> None:
    async def work(ctx: Context[Any]) -> str:
        await asyncio.sleep(60)
        return "worked"

    async def scene() -> None:
        store = AwayTasks()
        app = stage(work, face={"task": "required"}, task_store=store)
        live = Live(app)
        begun = await live.result(request(MODERN, "tools/call", name="t", capabilities=TASKS))
        wanted = {"taskIds": [begun["taskId"]]}
        sent = request(MODERN, "subscriptions/listen", capabilities=TASKS, notifications=wanted)
        stream = live.open(sent)
        await stream.message()
        store.raised = ConnectionError(SECRET)
        told = await stream.rest()
        assert told[-1]["result"]["resultType"] == "complete"
        assert SECRET.encode() not in stream.raw
        store.raised = None
        gone = await live.result(request(MODERN, "tasks/cancel", capabilities=TASKS, taskId=begun["taskId"]))
        assert gone["resultType"] == "complete"
        for each in asyncio.all_tasks() - {asyncio.current_task()}:
            each.cancel()
        await asyncio.sleep(0)

    asyncio.run(scene())


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


def test_a_client_that_leaves_takes_no_time_limit_of_the_host_with_it() -> None:
    """Whoever awaits the application in one task with something else still has its own cancellations."""

    async def wait(ctx: Context[Any]) -> str:
        await asyncio.sleep(60)
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


def test_questions_that_one_caller_leaves_open_keep_nobody_else_from_asking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "MAX_EACH", 2)

    async def ask(ctx: Context[Any]) -> str:
        await ctx.client.ask({"k": ListRoots()})
        return "asked"

    async def scene() -> None:
        live = Live(stage(ask, ask_seconds=0.3))
        streams = [live.open(request(LEGACY[1], "tools/call", "ann", name="t")) for _ in range(2)]
        for each in streams:
            assert (await each.message())["method"] == "roots/list"
        [refused] = await live.ask(request(LEGACY[1], "tools/call", "ann", name="t"))
        assert "X_MCP_CLIENT_SILENT" in refused["result"]["content"][0]["text"]
        other = live.open(request(LEGACY[1], "tools/call", "bob", name="t"))
        assert (await other.message())["method"] == "roots/list"
        for each in (*streams, other):
            await each.rest()
        again = live.open(request(LEGACY[1], "tools/call", "ann", name="t"))
        assert (await again.message())["method"] == "roots/list", "what is over counts no more"
        await again.rest()

    play(scene())
