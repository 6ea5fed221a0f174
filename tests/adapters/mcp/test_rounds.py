"""In revision 2026-07-28 a handler asks by ending its round; the client's next one brings the answers.

A client's answer that is none is asked for again, and nothing is asked that the client did not declare.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from mcp_types.methods import validate_server_result

from nonsuch import Context, Elicit, ListRoots, Roots
from nonsuch.kernel.asks import Elicited, Given
from nonsuch.kernel.client import NOBODY
from nonsuch.kernel.errors import ActionError

from .live import MODERN, REVISIONS, Json, Live, play
from .questions import ASKS, BAD, EVERYTHING, GOOD, REQUESTS, Person, asker, call
from .stage import stage


@pytest.mark.parametrize("key", ASKS)
def test_a_round_ends_with_what_is_asked(key: str) -> None:
    async def scene() -> None:
        app, heard = asker(key)
        told = await Live(app).result(call())
        assert told == {
            "resultType": "input_required",
            "inputRequests": {key: REQUESTS[key]},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "stage", "version": "0"}},
        }
        validate_server_result("tools/call", MODERN, told)
        assert heard == [None]

    play(scene())


@pytest.mark.parametrize(("key", "answer", "given"), GOOD, ids=str)
def test_the_next_round_brings_the_answers(key: str, answer: Json, given: Given) -> None:
    async def scene() -> None:
        app, heard = asker(key)
        told = await Live(app).result(call(inputResponses={key: answer}))
        assert told["content"] == [{"type": "text", "text": "done"}]
        assert heard == [None, {key: given}]

    play(scene())


@pytest.mark.parametrize(("key", "answer"), BAD, ids=str)
def test_what_is_no_answer_is_asked_for_again(key: str, answer: object) -> None:
    async def scene() -> None:
        app, heard = asker(key)
        told = await Live(app).result(call(inputResponses={key: answer}))
        assert told["inputRequests"] == {key: REQUESTS[key]}
        assert heard == [None]

    play(scene())


@pytest.mark.parametrize(
    "answers", [None, [], "x", {}, {"other": {"action": "accept"}}, {"FORM": {"action": "decline"}}], ids=str
)
def test_answers_to_something_else_are_none(answers: object) -> None:
    async def scene() -> None:
        app, heard = asker("form")
        told = await Live(app).result(call(inputResponses=answers))
        assert list(told["inputRequests"]) == ["form"]
        assert heard == [None]

    play(scene())


def test_some_of_the_answers_are_not_enough_and_all_is_asked_again() -> None:
    """A round is stateless: what it forgot to ask again could never be complete."""

    async def scene() -> None:
        app, heard = asker("form", "url", "roots")
        live, decline = Live(app), {"action": "decline"}
        roots: Json = {"roots": []}
        part: list[Json] = [{"form": decline}, {"form": decline, "url": decline}, {"roots": roots}]
        for given in part:
            told = await live.result(call(inputResponses=given))
            assert list(told["inputRequests"]) == ["form", "url", "roots"]
        whole: Json = {"form": decline, "url": decline, "roots": roots}
        assert "content" in await live.result(call(inputResponses=whole))
        assert heard[-1] == {"form": Elicited("decline"), "url": Elicited("decline"), "roots": Roots(())}

    play(scene())


async def two_rounds(ctx: Context[None]) -> str:
    """Each ask is a round, and what the first brought has to be remembered."""
    if ctx.client.state is None:
        first = await ctx.client.ask({"one": Elicit("One?", Person)}, state=None)
        held = first["one"]
        assert isinstance(held, Elicited)
        await ctx.client.ask({"two": Elicit("Two?", Person)}, state={"one": held.content["name"]})
    two = (await ctx.client.ask({"two": Elicit("Two?", Person)}, state=ctx.client.state))["two"]
    assert isinstance(two, Elicited)
    return json.dumps([ctx.client.state, two.content["name"]])


def test_a_state_carries_what_an_earlier_round_brought() -> None:
    async def scene() -> None:
        live = Live(stage(two_rounds))
        first = await live.result(call())
        assert (list(first["inputRequests"]), "requestState" in first) == (["one"], False)
        second = await live.result(
            call(inputResponses={"one": {"action": "accept", "content": {"name": "Al"}}})
        )
        assert list(second["inputRequests"]) == ["two"]
        again = await live.result(call(requestState=second["requestState"]))
        assert list(again["inputRequests"]) == ["two"]
        bo = {"two": {"action": "accept", "content": {"name": "Bo"}}}
        last = await live.result(call(requestState=again["requestState"], inputResponses=bo))
        assert json.loads(last["content"][0]["text"]) == [{"one": "Al"}, "Bo"]

    play(scene())


STATES: tuple[Any, ...] = ({"n": 1}, [], "", "x\u2028\u0000", 0, False, 1.5, {"deep": [[{"a": None}]]}, 2**70)


@pytest.mark.parametrize("state", STATES, ids=repr)
def test_a_state_comes_back_as_it_was_given(state: Any) -> None:
    async def scene() -> None:
        app, heard = asker("roots", state=state)
        live = Live(app)
        told = await live.result(call())
        await live.result(call(requestState=told["requestState"], inputResponses={"roots": {"roots": []}}))
        assert heard == [None, state, {"roots": Roots(())}]
        assert type(heard[1]) is type(state)

    play(scene())


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


UNSENDABLE: dict[str, Any] = {
    "no JSON": {"x": object()},
    "a number that JSON has not": float("nan"),
    "infinity": {"x": [float("inf")]},
    "beyond the depth that is read": deep(70),
    "beyond the length that is opened": "x" * 60_000,
    "half a surrogate pair": "\ud800",
}


@pytest.mark.parametrize("name", UNSENDABLE)
def test_a_state_that_could_not_come_back_is_a_fault_at_once(name: str) -> None:
    async def scene() -> None:
        app, _ = asker("roots", state=UNSENDABLE[name])
        (told,) = await Live(app).ask(call())
        too_long = name == "beyond the length that is opened"
        assert told["error"]["data"]["code"] == ("X_MCP_ROUND_TOO_LONG" if too_long else "X_INTERNAL")

    play(scene())


def test_a_form_that_no_client_draws_is_a_fault() -> None:
    async def wrong(ctx: Context[None]) -> str:
        await ctx.client.ask({"x": Elicit("?", {"type": 7})})
        return "done"

    wrong.__annotations__ = {"ctx": Context[None], "return": str}

    async def scene() -> None:
        for revision in REVISIONS:
            last = (await Live(stage(wrong)).ask(call(revision)))[-1]
            assert "X_INTERNAL" in json.dumps(last)

    play(scene())


# what a client declared


DECLARED: tuple[tuple[Json, str, bool], ...] = (
    ({}, "form", False),
    ({"elicitation": {}}, "form", True),
    ({"elicitation": {}}, "url", False),
    ({"elicitation": {"form": {}}}, "form", True),
    ({"elicitation": {"form": {}}}, "url", False),
    ({"elicitation": {"url": {}}}, "form", False),
    ({"elicitation": {"url": {}}}, "url", True),
    ({"elicitation": None}, "form", False),
    ({"elicitation": True}, "form", False),
    ({"Elicitation": {}}, "form", False),
    ({"sampling": {}}, "model", True),
    ({"sampling": {}}, "roots", False),
    ({"roots": {"listChanged": True}}, "roots", True),
    ({"experimental": {"roots": {}}}, "roots", False),
)
LACKING: Json = {
    "form": {"elicitation": {}},
    "url": {"elicitation": {"url": {}}},
    "model": {"sampling": {}},
    "roots": {"roots": {}},
}


@pytest.mark.parametrize(("capabilities", "key", "asked"), DECLARED, ids=str)
def test_nothing_is_asked_that_a_client_did_not_declare(capabilities: Json, key: str, asked: bool) -> None:
    """MCP 2026-07-28, basic: -32021 at 400, which names what is required."""

    async def scene() -> None:
        app, heard = asker(key)
        stream = Live(app).open(call(capabilities=capabilities))
        (told,) = await stream.rest()
        assert ("result" in told) is asked
        if not asked:
            assert (stream.status, told["error"]["code"]) == (400, -32021)
            assert told["error"]["data"]["requiredCapabilities"] == LACKING[key]
            assert heard == [None]

    play(scene())


def test_what_is_lacking_is_told_at_once() -> None:
    async def scene() -> None:
        app, _ = asker("form", "model", "roots")
        (told,) = await Live(app).ask(call(capabilities={"sampling": {}}))
        assert told["error"]["data"]["requiredCapabilities"] == {"elicitation": {}, "roots": {}}

    play(scene())


async def asks_whom_it_can(ctx: Context[None]) -> str:
    kinds = ("elicitation", "elicitation.url", "sampling", "roots")
    return ",".join(each for each in kinds if ctx.client.can(each))  # type: ignore[arg-type]  # names of capabilities


@pytest.mark.parametrize(
    ("revision", "accept", "capabilities", "told"),
    [
        (
            MODERN,
            "application/json, text/event-stream",
            EVERYTHING,
            "elicitation,elicitation.url,sampling,roots",
        ),
        (MODERN, "application/json", EVERYTHING, "elicitation,elicitation.url,sampling,roots"),
        (MODERN, "application/json, text/event-stream", {"sampling": {}}, "sampling"),
        (
            "2025-11-25",
            "application/json, text/event-stream",
            {},
            "elicitation,elicitation.url,sampling,roots",
        ),
        ("2025-06-18", "application/json, text/event-stream", {}, "elicitation,sampling,roots"),
        ("2025-11-25", "application/json", EVERYTHING, ""),
    ],
)
def test_a_handler_may_know_what_its_client_can_be_asked(
    revision: str, accept: str, capabilities: Json, told: str
) -> None:
    async def scene() -> None:
        sent = call(revision, capabilities=capabilities, accept=accept)
        assert (await Live(stage(asks_whom_it_can)).result(sent))["content"][0]["text"] == told

    play(scene())


# nobody to ask


def test_nobody_is_told_nothing_and_asked_nothing() -> None:
    """A call in process has no client."""

    async def scene() -> None:
        assert (NOBODY.state, NOBODY.can("roots")) == (None, False)
        await NOBODY.progress(1)
        await NOBODY.log("info", "x")
        assert await NOBODY.background() is False
        with pytest.raises(ActionError) as told:
            await NOBODY.ask({"roots": ListRoots()})
        assert told.value.code == "X_MCP_CLIENT_SILENT"

    play(scene())


def test_nobody_waits_for_what_waits_for_nothing() -> None:
    NOBODY.wait(NOBODY.progress(1))
    with pytest.raises(ActionError):
        NOBODY.wait(NOBODY.ask({}))
    with pytest.raises(RuntimeError, match="without a client there is nothing to wait for"):
        NOBODY.wait(asyncio.sleep(0))
