"""What a handler says while it works: messages on the stream of its own request, and the answer as the last.

Framing is checked by readers that split lines where HTML does and where Python does.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types.methods import parse_server_notification
from pydantic import BaseModel

from nonsuch import ActionError, App, Context
from nonsuch.adapters.wire import event
from nonsuch.kernel.asks import LEVELS

from .live import BOTH, LEGACY, MODERN, REVISIONS, Json, Live, Reader, play, request
from .stage import prompting, reading, stage

STREAM = "text/event-stream"
STREAMED = {"content-type": STREAM, "cache-control": "no-store", "x-accel-buffering": "no"}
WANTS: Json = {"progressToken": "k", ".logLevel": "debug"}


class Script(BaseModel):
    """What to say: `[done, total, message]` is progress, `[level, data, logger]` a log message."""

    says: list[list[Any]] = []


async def speak(input: Script, ctx: Context[None]) -> str:
    for first, *more in input.says:
        if isinstance(first, str):
            await ctx.client.log(cast("Any", first), *more)
        else:
            await ctx.client.progress(first, *more)
    return "done"


SPEAKER = stage(speak)


async def said(revision: str, *says: list[Any], app: App = SPEAKER, **more: Any) -> list[Json]:
    """The messages of a call that speaks."""
    sent = request(revision, "tools/call", name="t", arguments={"says": list(says)}, **more)
    return await Live(app).ask(sent)


def notes(messages: list[Json]) -> list[tuple[str, Json]]:
    """What precedes the answer, which is the last."""
    assert "result" in messages[-1]
    assert messages[-1]["id"] == 1
    assert all("id" not in each for each in messages[:-1])
    return [(each["method"], each["params"]) for each in messages[:-1]]


def progress(messages: list[Json]) -> list[Json]:
    return [params for method, params in notes(messages) if method == "notifications/progress"]


def logged(messages: list[Json]) -> list[Json]:
    return [params for method, params in notes(messages) if method == "notifications/message"]


# an answer, or a stream


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_answer_that_nothing_precedes_is_no_stream(revision: str) -> None:
    async def scene() -> None:
        stream = Live(SPEAKER).open(request(revision, "tools/call", name="t", arguments={}))
        assert [each["id"] for each in await stream.rest()] == [1]
        assert stream.headers == {"content-type": "application/json", "content-length": str(len(stream.raw))}

    play(scene())


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_answer_that_something_precedes_is_a_stream_and_its_last_event(revision: str) -> None:
    async def scene() -> None:
        live = Live(SPEAKER)
        sent = request(revision, "tools/call", name="t", arguments={"says": [[1], ["info", "x"]]}, meta=WANTS)
        stream = live.open(sent)
        messages = await stream.rest()
        assert (stream.status, stream.headers) == (200, STREAMED)
        assert [each.get("method") for each in messages] == [
            "notifications/progress",
            "notifications/message",
            None,
        ]
        plain = await live.ask(request(revision, "tools/call", name="t", arguments={}))
        assert messages[-1] == plain[-1]
        for each in messages[:-1]:
            parse_server_notification(each["method"], revision, each["params"])

    play(scene())


@pytest.mark.parametrize(
    "accept", ["application/json", None, "application/*", "text/event-stream;q=0, */*;q=0.0", ""]
)
def test_who_takes_no_stream_is_sent_the_answer_alone(accept: str | None) -> None:
    async def scene() -> None:
        for revision in REVISIONS:
            sent = request(
                revision, "tools/call", name="t", arguments={"says": [[1]]}, meta=WANTS, accept=accept
            )
            stream = Live(SPEAKER).open(sent)
            messages = await stream.rest()
            if stream.status != 406:
                assert (len(messages), stream.headers["content-type"]) == (1, "application/json")

    play(scene())


@pytest.mark.parametrize("accept", [STREAM, "text/*", "application/json;q=0, text/event-stream"])
def test_who_takes_a_stream_alone_is_sent_one(accept: str) -> None:
    async def scene() -> None:
        for revision in REVISIONS:
            for says in ([], [[1]]):
                sent = request(
                    revision, "tools/call", name="t", arguments={"says": says}, meta=WANTS, accept=accept
                )
                stream = Live(SPEAKER).open(sent)
                assert [each.get("method") for each in await stream.rest()] == [
                    *(["notifications/progress"] * len(says)),
                    None,
                ]
                assert stream.headers["content-type"] == STREAM

    play(scene())


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_message_leaves_when_it_is_said(revision: str) -> None:
    async def scene() -> None:
        gate = asyncio.Event()

        async def wait(ctx: Context[None]) -> str:
            await ctx.client.progress(1)
            await gate.wait()
            return "done"

        wait.__annotations__ = {"ctx": Context[None], "return": str}
        stream = Live(stage(wait)).open(request(revision, "tools/call", name="t", meta=WANTS))
        assert (await stream.message())["method"] == "notifications/progress"
        await stream.silence()
        gate.set()
        assert "result" in (await stream.rest())[-1]

    play(scene())


# framing


def split_as_python_does(raw: bytes) -> list[Json]:
    """A reader that splits lines wherever Python does, as several clients in the field do."""
    lines = [each for each in raw.decode().splitlines() if each.startswith("data:")]
    return [json.loads(each.removeprefix("data:")) for each in lines]


NASTY = (
    "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r\n\n\ndata: x\r\revent: y\x00\x7f\u00a0\ufeff\U0001f600: \\u2028"
)


def test_an_event_is_one_line_of_data_for_every_reader() -> None:
    body = json.dumps({"a": NASTY}, ensure_ascii=False).encode()
    framed = event(body)
    assert framed.startswith(b"event: message\ndata: ")
    assert framed.endswith(b"\n\n")
    assert len(framed.decode().splitlines()) == 3
    assert split_as_python_does(framed) == [{"a": NASTY}]


def test_a_line_end_of_another_alphabet_is_escaped_and_nothing_else() -> None:
    assert event('"a\u2028b\u2029c\u0085d\u00c2e\u0080"'.encode()) == (
        'event: message\ndata: "a\\u2028b\\u2029c\\u0085d\u00c2e\u0080"\n\n'.encode()
    )


texts = st.text(st.characters(codec="utf-8") | st.sampled_from(NASTY), max_size=30)


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(st.lists(texts, min_size=1, max_size=4), st.integers(1, 9), st.sampled_from(REVISIONS))
def test_a_stream_is_one_list_of_messages_however_it_is_cut(
    words: list[str], size: int, revision: str
) -> None:
    async def scene() -> bytes:
        sent = request(
            revision,
            "tools/call",
            name="t",
            arguments={"says": [["error", each] for each in words]},
            meta=WANTS,
        )
        stream = Live(SPEAKER).open(sent)
        await stream.rest()
        return stream.raw

    raw = play(scene())
    whole, cut = Reader(), Reader()
    whole.feed(raw)
    for at in range(0, len(raw), size):
        cut.feed(raw[at : at + size])
    assert whole.events == cut.events
    messages = [json.loads(data) for _, data in whole.events]
    assert split_as_python_does(raw) == messages
    assert [each["params"]["data"] for each in messages[:-1]] == words


# progress


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("token", [0, 7, -1, 2**53, "", "k", "0"], ids=repr)
def test_progress_has_the_clients_own_token(revision: str, token: str | int) -> None:
    async def scene() -> None:
        told = progress(await said(revision, [1, 3, "one"], [2.5, 3], [3], meta={"progressToken": token}))
        assert told == [
            {"progressToken": token, "progress": 1, "total": 3, "message": "one"},
            {"progressToken": token, "progress": 2.5, "total": 3},
            {"progressToken": token, "progress": 3},
        ]
        assert all(type(each["progressToken"]) is type(token) for each in told)

    play(scene())


NO_TOKENS: tuple[object, ...] = (None, True, False, 1.5, [], {"a": 1})


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("meta", [{}, *({"progressToken": each} for each in NO_TOKENS)], ids=str)
def test_without_a_token_there_is_no_progress_and_no_stream(revision: str, meta: Json) -> None:
    async def scene() -> None:
        assert notes(await said(revision, [1], [2], meta=meta)) == []

    play(scene())


@given(st.lists(st.integers(-3, 3) | st.sampled_from([0.5, -0.5, 2.5]), max_size=8))
def test_progress_only_increases(steps: list[float]) -> None:
    """MCP, progress: the value must increase with each notification."""
    told = [each["progress"] for each in play(told_of(steps))]
    expected: list[float] = []
    for each in steps:
        if not expected or each > expected[-1]:
            expected.append(each)
    assert told == expected


def test_progress_is_told_once() -> None:
    assert [each["progress"] for each in play(told_of([1, 1, 0, 2, 2]))] == [1, 2]


@pytest.mark.parametrize("total", [10**400, -(10**400)], ids=["large", "small"])
def test_whole_numbers_of_any_size_are_no_fault_of_a_handler(total: int) -> None:
    """A total is often a number that the caller sent."""

    async def scene() -> None:
        (only,) = progress(await said(MODERN, [1, total], meta={"progressToken": 0}))
        assert only["total"] == total

    play(scene())


async def told_of(steps: list[float]) -> list[Json]:
    return progress(await said(MODERN, *([each] for each in steps), meta={"progressToken": 0}))


# log messages


@pytest.mark.parametrize("wanted", LEVELS)
def test_a_client_of_the_newest_revision_is_sent_the_levels_that_it_wants(wanted: str) -> None:
    async def scene() -> None:
        told = logged(await said(MODERN, *([each, each] for each in LEVELS), meta={".logLevel": wanted}))
        assert [each["level"] for each in told] == list(LEVELS[LEVELS.index(wanted) :])

    play(scene())


@pytest.mark.parametrize("revision", LEGACY)
def test_a_client_of_an_older_revision_is_sent_every_level(revision: str) -> None:
    async def scene() -> None:
        told = logged(await said(revision, *([each, {"n": [1]}, "own"] for each in LEVELS)))
        assert told == [{"level": each, "data": {"n": [1]}, "logger": "own"} for each in LEVELS]

    play(scene())


def test_a_client_of_the_newest_revision_that_names_no_level_is_sent_none() -> None:
    async def scene() -> None:
        assert notes(await said(MODERN, ["emergency", "x"])) == []

    play(scene())


@pytest.mark.parametrize("wanted", ["INFO", "trace", "", None, 1, True, ["info"], {}])
def test_a_level_that_is_none_is_refused_before_anything_runs(wanted: Any) -> None:
    """MCP 2026-07-28, logging: an unrecognised level is -32602; hidden and absent tools refuse alike."""

    async def scene() -> None:
        live = Live(SPEAKER)
        told: list[Json] = []
        for name in ("t", "absent"):
            sent = request(MODERN, "tools/call", name=name, arguments={}, meta={".logLevel": wanted})
            told += await live.ask(sent)
        assert told[0] == told[1]
        assert told[0]["error"]["code"] == -32602

    play(scene())


# every kind of request


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_resource_and_a_prompt_speak_on_their_own_streams(revision: str) -> None:
    async def whispers(ctx: Context[None]) -> str:
        await ctx.client.progress(1)
        return "words"

    async def scene() -> None:
        asked: list[tuple[App, str, Json]] = [
            (reading(whispers), "resources/read", {"uri": "a:b"}),
            (prompting(whispers), "prompts/get", {"name": "p"}),
        ]
        for app, method, params in asked:
            messages = await Live(app).ask(request(revision, method, meta=WANTS, **params))
            assert [each.get("method") for each in messages] == ["notifications/progress", None]
            assert "result" in messages[-1]

    whispers.__annotations__ = {"ctx": Context[None], "return": str}
    play(scene())


@pytest.mark.parametrize("revision", REVISIONS)
def test_two_calls_at_once_have_two_streams(revision: str) -> None:
    async def scene() -> None:
        live = Live(SPEAKER)
        streams = [
            live.open(
                request(
                    revision,
                    "tools/call",
                    name="t",
                    arguments={"says": [[1, None, str(at)], [2, None, str(at)]]},
                    meta={"progressToken": at},
                    ident=at,
                )
            )
            for at in range(8)
        ]
        for at, stream in enumerate(streams):
            *told, last = await stream.rest()
            assert [(each["params"]["progressToken"], each["params"]["message"]) for each in told] == [
                (at, str(at))
            ] * 2
            assert last["id"] == at

    play(scene())


# how a call ends


class Broken(BaseModel):
    how: str


async def breaks(input: Broken, ctx: Context[None]) -> str:
    await ctx.client.progress(1)
    if input.how == "refuses":
        raise ActionError("X_OWN", "not today", "come back")
    if input.how == "crashes":
        raise KeyError("secret")
    return 7  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  # the fault under test


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("how", "code"), [("refuses", "X_OWN"), ("crashes", "X_INTERNAL"), ("answers", "X_OUTPUT_INVALID")]
)
def test_a_refusal_after_a_message_is_the_last_event(revision: str, how: str, code: str) -> None:
    async def scene() -> None:
        stream = Live(stage(breaks)).open(
            request(revision, "tools/call", name="t", arguments={"how": how}, meta=WANTS)
        )
        *told, last = await stream.rest()
        assert len(told) == 1
        assert last["result"]["isError"] is True
        assert last["result"]["content"][0]["text"].startswith(f"{code}: ")
        assert b"secret" not in stream.raw

    play(scene())


def plain(input: Script, ctx: Context[None]) -> str:
    for first, *more in input.says:
        said: Any = ctx.client.log if first in LEVELS else ctx.client.progress
        ctx.client.wait(said(first, *more))
    return "done"


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_plain_function_speaks_from_its_thread(revision: str) -> None:
    async def scene() -> None:
        told = await said(revision, [1], ["info", "x"], [2], app=stage(plain), meta=WANTS)
        assert [method for method, _ in notes(told)] == [
            "notifications/progress",
            "notifications/message",
            "notifications/progress",
        ]

    play(scene())


async def waits_wrongly(ctx: Context[None]) -> str:
    work = ctx.client.progress(1)
    try:
        ctx.client.wait(work)
    except RuntimeError as refusal:
        work.close()  # pyright: ignore[reportAttributeAccessIssue]  # it is a coroutine
        return str(refusal)
    return "waited"


def test_an_async_handler_cannot_wait_in_a_thread() -> None:
    async def scene() -> None:
        told = await Live(stage(waits_wrongly)).result(request(MODERN, "tools/call", name="t"))
        assert (
            told["content"][0]["text"] == "`wait` is for plain functions, which run in a thread of their own"
        )

    play(scene())


async def without_a_context() -> str:
    return "done"


def test_a_handler_without_a_context_says_nothing() -> None:
    async def scene() -> None:
        assert (
            notes(
                await Live(stage(without_a_context)).ask(request(MODERN, "tools/call", name="t", meta=WANTS))
            )
            == []
        )

    play(scene())


# a client that leaves


def leaving(revision: str) -> tuple[bool, bool]:
    """Whether the handler of a client that left was stopped, and whether it came to its end."""
    stopped = ended = False

    async def long(ctx: Context[None]) -> str:
        nonlocal stopped, ended
        try:
            await asyncio.sleep(0.3)
            ended = True
        except asyncio.CancelledError:
            stopped = True
            raise
        return "done"

    long.__annotations__ = {"ctx": Context[None], "return": str}

    async def scene() -> None:
        stream = Live(stage(long)).open(request(revision, "tools/call", name="t"))
        await asyncio.sleep(0.1)
        await stream.leave()

    play(scene())
    return stopped, ended


def test_a_client_of_the_newest_revision_that_leaves_stops_its_call() -> None:
    """MCP 2026-07-28, transports: closing the stream cancels the request."""
    assert leaving(MODERN) == (True, False)


@pytest.mark.parametrize("revision", LEGACY)
def test_a_client_of_an_older_revision_that_leaves_stops_nothing(revision: str) -> None:
    assert leaving(revision) == (False, True)


@pytest.mark.parametrize("accept", [BOTH, "application/json"])
def test_a_call_that_its_client_left_is_audited_as_interrupted(accept: str) -> None:
    heard: list[Any] = []

    async def long() -> str:
        await asyncio.sleep(5)
        return "done"

    async def scene() -> None:
        stream = Live(stage(long, on_audit=heard.append)).open(
            request(MODERN, "tools/call", name="t", accept=accept)
        )
        await asyncio.sleep(0.1)
        await stream.leave()
        assert stream.raw == b""

    play(scene())
    assert [(each.outcome, each.code) for each in heard] == [("failed", "X_INTERRUPTED")]
