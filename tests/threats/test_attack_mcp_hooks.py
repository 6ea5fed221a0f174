"""What an application answers, asks or raises behind the MCP adapter: no caller is told, no server ends."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from nonsuch import (
    App,
    BootError,
    Completing,
    Context,
    Elicit,
    Sample,
    prompt,
)
from nonsuch.adapters.edge.limits import RateStore
from nonsuch.adapters.edge.task_store import MemoryTaskStore
from nonsuch.kernel.meter import Limits

from ..adapters.mcp.live import MODERN, REVISIONS, Live, play, request
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


def halved(_view: object) -> str:
    return HALF


@pytest.mark.parametrize("given", [HALF, halved], ids=["said", "answered"])
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


@pytest.mark.parametrize("slot", ["_x", "__class__"])
def test_a_prompt_file_with_a_slot_that_no_model_has_is_a_fault(slot: str, tmp_path: Path) -> None:
    file = tmp_path / "p.md"
    file.write_text(f"words {{{{{slot}}}}}")
    with pytest.raises(BootError) as refused:
        stage(prompts=[prompt(file, description="P")])
    assert "X_DECLARATION_INVALID" in [each.code for each in refused.value.faults]
    assert f"`{slot}`" in str(refused.value)


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
