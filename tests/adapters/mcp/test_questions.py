"""In the older revisions a handler asks by requests on its own stream; answers come as messages of their own.

An answer is the client's: malformed, late, another's or made up, it is never taken for one.
"""

from __future__ import annotations

import asyncio
import json

import pytest
from mcp_types.methods import parse_server_request, validate_server_result

from nonsuch import App, Context, ListRoots, Roots, StreamLimits
from nonsuch.kernel.asks import Elicited, Given

from .live import LEGACY, MODERN, REVISIONS, Json, Live, play, request, response
from .questions import (
    ASKS,
    BAD,
    BLOCK,
    EVERYTHING,
    GOOD,
    REQUESTS,
    answered,
    asker,
    call,
    plainly,
    questioned,
)
from .stage import prompting, reading, stage


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("key", ASKS)
def test_a_question_is_a_request_on_the_stream(revision: str, key: str) -> None:
    if (revision, key) == ("2025-06-18", "url"):
        return

    async def scene() -> None:
        live = Live(asker(key)[0])
        stream, question = await questioned(live, revision)
        ident = question.pop("id")
        expected = json.loads(json.dumps({"jsonrpc": "2.0", **REQUESTS[key]}))
        if key == "url":
            expected["params"]["elicitationId"] = ident
        assert question == expected
        parse_server_request(question["method"], revision, question.get("params"))
        assert isinstance(ident, str)
        assert len(ident) >= 32
        await stream.silence()
        await answered(live, response(revision, ident))
        assert "result" in (await stream.rest())[-1]

    play(scene())


@pytest.mark.parametrize(("key", "answer", "given"), GOOD, ids=str)
def test_an_answer_reaches_the_handler_that_asked(key: str, answer: Json, given: Given) -> None:
    async def scene() -> None:
        app, heard = asker(key)
        live = Live(app)
        stream, question = await questioned(live, LEGACY[1])
        await answered(live, response(LEGACY[1], question["id"], answer))
        (last,) = await stream.rest()
        assert last["result"]["content"] == [{"type": "text", "text": "done"}]
        assert heard == [None, {key: given}]

    play(scene())


SILENT = "X_MCP_CLIENT_SILENT: the work needs an answer from the client, which cannot be asked"


def silent(messages: list[Json]) -> bool:
    return messages[-1]["result"]["isError"] is True and messages[-1]["result"]["content"][0][
        "text"
    ].startswith(SILENT)


@pytest.mark.parametrize(("key", "answer"), BAD, ids=str)
def test_what_is_no_answer_ends_the_wait(key: str, answer: object) -> None:
    async def scene() -> None:
        app, heard = asker(key)
        live = Live(app)
        stream, question = await questioned(live, LEGACY[1])
        await answered(live, response(LEGACY[1], question["id"], answer))
        assert silent(await stream.rest())
        assert heard == [None]

    play(scene())


def test_an_error_of_the_clients_ends_the_wait() -> None:
    async def scene() -> None:
        app, heard = asker("form")
        live = Live(app)
        stream, question = await questioned(live, LEGACY[1])
        await answered(live, response(LEGACY[1], question["id"], code=-1, message="no"))
        assert silent(await stream.rest())
        assert heard == [None]

    play(scene())


def test_several_questions_are_asked_one_after_the_other() -> None:
    async def scene() -> None:
        app, heard = asker("form", "roots", "model")
        live = Live(app)
        stream = live.open(call(LEGACY[1]))
        seen: list[str] = []
        answers: list[Json] = [DECLINES, {"roots": []}, {"role": "user", "content": BLOCK, "model": "m"}]
        for answer in answers:
            question = await stream.message()
            await stream.silence()
            seen.append(question["method"])
            await answered(live, response(LEGACY[1], question["id"], answer))
        await stream.rest()
        assert seen == ["elicitation/create", "roots/list", "sampling/createMessage"]
        assert list(heard[1]) == ["form", "roots", "model"]

    play(scene())


DECLINES = {"action": "decline"}


@pytest.mark.parametrize("caller", ["other", "bot", "ann", "else"])
def test_an_answer_of_another_caller_is_not_taken(caller: str) -> None:
    async def scene() -> None:
        app, heard = asker("form")
        live = Live(app)
        stream, question = await questioned(live, LEGACY[1])
        await answered(live, response(LEGACY[1], question["id"], DECLINES, caller))
        await stream.silence()
        await answered(live, response(LEGACY[1], question["id"], {"action": "cancel"}))
        await stream.rest()
        assert heard[1:] == [{"form": Elicited("cancel")}]

    play(scene())


def test_an_answer_of_the_same_agent_for_another_person_is_not_taken() -> None:
    async def scene() -> None:
        app, heard = asker("form")
        live = Live(app)
        stream, question = await questioned(live, LEGACY[1], "ann")
        for caller in ("bob", "bot"):
            await answered(live, response(LEGACY[1], question["id"], DECLINES, caller))
            await stream.silence()
        await answered(live, response(LEGACY[1], question["id"], {"action": "cancel"}, "ann"))
        await stream.rest()
        assert heard[1:] == [{"form": Elicited("cancel")}]

    play(scene())


@pytest.mark.parametrize("ident", [1, 0, "", "x", "A" * 32, -1])
def test_an_answer_to_a_question_that_was_not_asked_is_dropped(ident: object) -> None:
    async def scene() -> None:
        app, heard = asker("form")
        live = Live(app)
        stream, question = await questioned(live, LEGACY[1])
        await answered(live, response(LEGACY[1], ident, DECLINES))
        await stream.silence()
        await answered(live, response(LEGACY[1], question["id"], {"action": "cancel"}))
        await stream.rest()
        assert heard[1:] == [{"form": Elicited("cancel")}]

    play(scene())


def test_the_first_answer_counts_and_a_late_one_is_dropped() -> None:
    async def scene() -> None:
        app, heard = asker("form")
        live = Live(app)
        stream, question = await questioned(live, LEGACY[1])
        await asyncio.gather(
            answered(live, response(LEGACY[1], question["id"], {"action": "cancel"})),
            answered(live, response(LEGACY[1], question["id"], DECLINES)),
        )
        await stream.rest()
        await answered(live, response(LEGACY[1], question["id"], DECLINES))
        assert heard[1:] == [{"form": Elicited("cancel")}]

    play(scene())


def test_ids_of_questions_are_never_alike() -> None:
    async def scene() -> None:
        live = Live(asker("form")[0])
        streams = [await questioned(live, LEGACY[1], caller) for caller in ("t", "t", "other", "ann")]
        assert len({question["id"] for _, question in streams}) == 4
        for (stream, question), caller in zip(streams, ("t", "t", "other", "ann"), strict=True):
            await answered(live, response(LEGACY[1], question["id"], DECLINES, caller))
            await stream.rest()

    play(scene())


@pytest.mark.parametrize("revision", LEGACY)
def test_a_client_that_does_not_answer_in_time_is_silent(revision: str) -> None:
    async def wait(ctx: Context[None]) -> str:
        await ctx.client.ask({"roots": ListRoots()})
        return "done"

    wait.__annotations__ = {"ctx": Context[None], "return": str}

    async def scene() -> None:
        live = Live(stage(wait, ask_seconds=0.05))
        stream, question = await questioned(live, revision)
        assert silent(await stream.rest())
        await answered(live, response(revision, question["id"], {"roots": []}))

    play(scene())


@pytest.mark.parametrize("revision", LEGACY)
def test_where_no_stream_is_taken_nobody_can_be_asked(revision: str) -> None:
    async def scene() -> None:
        app, heard = asker("form")
        assert silent(await Live(app).ask(call(revision, accept="application/json")))
        assert heard == [None]

    play(scene())


def test_an_address_cannot_be_asked_for_in_the_oldest_revision() -> None:
    """URL elicitation came with 2025-11-25."""

    async def scene() -> None:
        assert silent(await Live(asker("url")[0]).ask(call("2025-06-18")))

    play(scene())


def test_an_answer_in_the_newest_revision_is_no_request() -> None:
    async def scene() -> None:
        app, heard = asker("form")
        live = Live(app)
        stream, question = await questioned(live, LEGACY[1])
        refused = live.open(response(MODERN, question["id"], DECLINES))
        await refused.rest()
        assert refused.status == 400
        await stream.silence()
        await answered(live, response(LEGACY[1], question["id"], {"action": "cancel"}))
        await stream.rest()
        assert len(heard) == 2

    play(scene())


@pytest.mark.parametrize("caller", ["nobody", "unknown"])
def test_an_answer_needs_a_caller(caller: str) -> None:
    async def scene() -> None:
        app, heard = asker("form")
        live = Live(app)
        stream, question = await questioned(live, LEGACY[1])
        foreign = live.open(response(LEGACY[1], question["id"], DECLINES, caller))
        await foreign.rest()
        assert foreign.status == (202 if caller == "nobody" else 401)
        await stream.silence()
        await answered(live, response(LEGACY[1], question["id"], DECLINES))
        await stream.rest()
        assert len(heard) == 2

    play(scene())


def test_a_caller_who_answers_nothing_keeps_nobody_else_from_asking() -> None:
    async def scene() -> None:
        live = Live(asker("form", streams=StreamLimits(per_principal=2, in_all=3))[0])
        held = [(await questioned(live, LEGACY[1], caller), caller) for caller in ("t", "t", "other")]
        for caller in ("t", "other", "ann"):
            (told,) = await live.ask(call(LEGACY[1], caller))
            assert told["result"]["content"][0]["text"].startswith("X_MCP_STREAMS_FULL: ")
        for (stream, question), caller in held:
            await answered(live, response(LEGACY[1], question["id"], DECLINES, caller))
            await stream.rest()
        stream, question = await questioned(live, LEGACY[1])
        await answered(live, response(LEGACY[1], question["id"], DECLINES))
        await stream.rest()

    play(scene())


# every kind of request may ask


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_resource_and_a_prompt_may_ask_too(revision: str) -> None:
    async def scene() -> None:
        asked: list[tuple[App, str, Json]] = [
            (reading(plainly), "resources/read", {"uri": "a:b"}),
            (prompting(plainly), "prompts/get", {"name": "p"}),
        ]
        for app, method, params in asked:
            live = Live(app)
            sent = request(revision, method, capabilities=EVERYTHING, **params)
            if revision == MODERN:
                told = await live.result(sent)
                validate_server_result(method, revision, told)
                assert (told["resultType"], "ttlMs" in told) == ("input_required", False)
                again = request(
                    revision,
                    method,
                    capabilities=EVERYTHING,
                    requestState=told["requestState"],
                    inputResponses={"roots": {"roots": []}},
                    **params,
                )
                assert (await live.result(again))["resultType"] == "complete"
            else:
                stream = live.open(sent)
                question = await stream.message()
                await answered(live, response(revision, question["id"], {"roots": []}))
                assert "result" in (await stream.rest())[-1]

    play(scene())


def in_a_thread(ctx: Context[None]) -> str:
    held = ctx.client.wait(ctx.client.ask({"roots": ListRoots()}))["roots"]
    assert isinstance(held, Roots)
    return ",".join(each.uri for each in held.roots)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_plain_function_asks_from_its_thread(revision: str) -> None:
    roots = {"roots": [{"uri": "file:///a"}]}

    async def scene() -> None:
        live = Live(stage(in_a_thread))
        if revision == MODERN:
            assert "inputRequests" in await live.result(call())
            told = await live.result(call(inputResponses={"roots": roots}))
        else:
            stream, question = await questioned(live, revision)
            await answered(live, response(revision, question["id"], roots))
            told = (await stream.rest())[-1]["result"]
        assert told["content"][0]["text"] == "file:///a"

    play(scene())


async def catches_everything(ctx: Context[None]) -> str:
    try:
        await ctx.client.ask({"roots": ListRoots()})
    except Exception:  # noqa: BLE001  (what a careless handler does)
        return "caught"
    return "asked"


def test_a_handler_that_catches_exceptions_does_not_catch_the_end_of_a_round() -> None:
    async def scene() -> None:
        live = Live(stage(catches_everything))
        assert "inputRequests" in await live.result(call())
        (told,) = await live.ask(call(capabilities={}))
        assert told["error"]["code"] == -32021

    play(scene())
