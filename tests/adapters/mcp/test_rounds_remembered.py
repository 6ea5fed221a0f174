"""A handler may ask as often as it likes: what earlier rounds were answered comes again, each answer once.

Without `state` the server remembers the answers; a `state` takes their place. Beside every handler here
stands the same one in an older revision, where nothing has to be remembered: both end with the same words.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nonsuch import ActionError, Context, Elicit, ListRoots, Roots
from nonsuch.kernel.asks import Elicited, Given

from .live import LEGACY, Json, Live, play, response
from .questions import Person, answered, call
from .stage import stage

Handler = Callable[[Context[None]], Awaitable[str]]


def asked(name: str) -> Elicit:
    return Elicit(f"{name}?", Person)


def said(answer: Given) -> str:
    assert isinstance(answer, Elicited)
    return str(answer.content.get("name", answer.action))


def named(name: str) -> Json:
    return {"action": "accept", "content": {"name": name}}


async def one(ctx: Context[None], key: str, state: Any = None) -> str:
    return said((await ctx.client.ask({key: asked(key)}, state=state))[key])


async def twice(ctx: Context[None]) -> str:
    return f"{await one(ctx, 'a')} {await one(ctx, 'b')}"


async def four_times(ctx: Context[None]) -> str:
    return " ".join([await one(ctx, key) for key in "abcd"])


async def under_one_key(ctx: Context[None]) -> str:
    """The very same question again is another question."""
    return " ".join([await one(ctx, "a") for _ in range(3)])


async def as_it_was_answered(ctx: Context[None]) -> str:
    """What is asked depends on what was answered."""
    key = "a"
    path: list[str] = []
    while len(path) < 3:
        key = await one(ctx, key)
        path.append(key)
    return " ".join(path)


async def a_state_and_then_none(ctx: Context[None]) -> str:
    """What a state remembers stays, though later questions give none."""
    if ctx.client.state is None:
        first = await one(ctx, "a")
        await one(ctx, "b", state={"first": first})
    second = await one(ctx, "b", state=ctx.client.state)
    third = await one(ctx, "c")
    state: Any = ctx.client.state
    return f"{state['first']} {second} {third}"


async def in_a_helper_and_empty(ctx: Context[None]) -> str:
    assert await ctx.client.ask({}) == {}
    return await twice(ctx)


async def in_a_task_group(ctx: Context[None]) -> str:
    """Whichever of the two is asked first."""
    async with asyncio.TaskGroup() as group:
        both = [group.create_task(one(ctx, key)) for key in "ab"]
    return " ".join(each.result() for each in both)


async def in_nested_groups(ctx: Context[None]) -> str:
    async def inner() -> str:
        async with asyncio.TaskGroup() as group:
            return " ".join([await group.create_task(one(ctx, key)) for key in "ab"])

    async with asyncio.TaskGroup() as group:
        task = group.create_task(inner())
    return task.result()


def sometimes_later() -> Handler:
    """The two tasks of a group take turns at being first."""
    turn = [0]

    async def handle(ctx: Context[None]) -> str:
        turn[0] += 1

        async def late(key: str, wait: bool) -> str:
            for _ in range(3 if wait else 0):
                await asyncio.sleep(0)
            return await one(ctx, key)

        async with asyncio.TaskGroup() as group:
            first = group.create_task(late("a", turn[0] % 2 == 0))
            second = group.create_task(late("b", turn[0] % 2 == 1))
        return f"{first.result()} {second.result()}"

    return handle


async def gathered(ctx: Context[None]) -> str:
    return " ".join(await asyncio.gather(one(ctx, "a"), one(ctx, "b")))


HANDLERS: Final[dict[str, tuple[Handler, int]]] = {
    "twice": (twice, 2),
    "four times": (four_times, 4),
    "under one key": (under_one_key, 3),
    "as it was answered": (as_it_was_answered, 3),
    "a helper": (in_a_helper_and_empty, 2),
    "a task group": (in_a_task_group, 2),
    "nested groups": (in_nested_groups, 2),
    "gathered": (gathered, 2),
}


def scene_of(handler: Handler) -> Live:
    async def handle(ctx: Context[None]) -> str:
        return await handler(ctx)

    handle.__annotations__ = {"ctx": Context[None], "return": str}
    return Live(stage(handle))


async def to_the_end(live: Live, names: list[str], most: int) -> tuple[list[Json], list[str]]:
    """Answer each round's questions alone, as a client does, with one name after the other."""
    told, more = await live.result(call()), iter(names)
    keys: list[str] = []
    for _ in range(most):
        if "inputRequests" not in told:
            break
        keys += list(told["inputRequests"])
        answers = {key: named(next(more)) for key in told["inputRequests"]}
        state = {"requestState": told["requestState"]} if "requestState" in told else {}
        told = await live.result(call(inputResponses=answers, **state))
    return told["content"], keys


async def of_old(live: Live, names: list[str]) -> tuple[list[Json], list[str]]:
    """The same in the older revisions: each question is a request of its own."""
    stream, more = live.open(call(LEGACY[1])), iter(names)
    keys: list[str] = []
    while True:
        message = await stream.message()
        if "result" in message:
            return message["result"]["content"], keys
        keys.append(message["params"]["message"].rstrip("?"))
        await answered(live, response(LEGACY[1], message["id"], named(next(more))))


@pytest.mark.parametrize("what", [name for name in HANDLERS if name not in ("a task group", "gathered")])
def test_both_eras_come_to_the_same_end(what: str) -> None:
    handler, rounds = HANDLERS[what]
    names = ["b", "c", "d", "e"]

    async def scene() -> None:
        modern = await to_the_end(scene_of(handler), names, rounds)
        assert modern == await of_old(scene_of(handler), names)
        assert len(modern[1]) == rounds, "nothing is asked twice"

    play(scene())


@pytest.mark.parametrize("what", ["a task group", "gathered"])
def test_tasks_that_ask_side_by_side_are_answered_one_by_one(what: str) -> None:
    async def scene() -> None:
        content, keys = await to_the_end(scene_of(HANDLERS[what][0]), ["A", "B"], 2)
        assert (content[0]["text"], keys) == ("A B", ["a", "b"])

    play(scene())


def test_who_asks_first_may_change_from_run_to_run() -> None:
    async def scene() -> None:
        content, keys = await to_the_end(scene_of(sometimes_later()), ["x", "y"], 4)
        answers = dict(zip(keys, ["x", "y"], strict=True))
        assert content[0]["text"] == f"{answers['a']} {answers['b']}"

    play(scene())


def test_a_state_stays_where_a_later_question_gives_none() -> None:
    async def scene() -> None:
        content, keys = await to_the_end(scene_of(a_state_and_then_none), ["A", "B", "C"], 3)
        assert (content[0]["text"], keys) == ("A B C", ["a", "b", "c"])

    play(scene())


async def wizard(ctx: Context[None]) -> str:
    """One key all along; a state says which step it is and takes the place of what was answered."""
    state: Any = ctx.client.state
    step = 0 if state is None else state["step"]
    names: list[str] = [] if state is None else state["names"]
    while step < 3:
        names = [*names, await one(ctx, "q", state={"step": step, "names": names})]
        step += 1
    return " ".join(names)


def test_a_state_takes_the_place_of_what_was_answered() -> None:
    async def scene() -> None:
        content, keys = await to_the_end(scene_of(wizard), ["A", "B", "C"], 3)
        assert (content[0]["text"], keys) == ("A B C", ["q", "q", "q"])

    play(scene())


@settings(max_examples=60, deadline=None)
@given(
    keys=st.lists(st.sampled_from("ab"), min_size=1, max_size=5), names=st.lists(st.text("xyz"), min_size=5)
)
def test_any_walk_of_questions_is_answered_as_it_was_asked(keys: list[str], names: list[str]) -> None:
    async def walk(ctx: Context[None]) -> str:
        return json.dumps([await one(ctx, key) for key in keys])

    async def scene() -> None:
        content, were_asked = await to_the_end(scene_of(walk), names, len(keys))
        assert were_asked == keys
        assert json.loads(content[0]["text"]) == names[: len(keys)]

    play(scene())


# what a client can make of it


def test_an_answer_of_an_earlier_round_cannot_be_taken_back() -> None:
    """It was given, and the handler may have gone on from it."""

    async def scene() -> None:
        live = scene_of(twice)
        await live.result(call())
        second = await live.result(call(inputResponses={"a": named("A")}))
        answers = {"a": named("changed"), "b": named("B")}
        told = await live.result(call(inputResponses=answers, requestState=second["requestState"]))
        assert told["content"][0]["text"] == "A B"

    play(scene())


def test_what_was_remembered_is_no_answer_to_another_question() -> None:
    """A question that changed meanwhile is asked again, and this round's answer is not taken for it."""
    ages = [False]

    async def handle(ctx: Context[None]) -> str:
        form = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        first = await ctx.client.ask({"a": Elicit("A?", form if ages[0] else Person)})
        second = await one(ctx, "b")
        return f"{first['a']} {second}"

    async def scene() -> None:
        live = scene_of(handle)
        await live.result(call())
        second = await live.result(call(inputResponses={"a": named("A")}))
        ages[0] = True
        again = call(inputResponses={"b": named("B")}, requestState=second["requestState"])
        assert list((await live.result(again))["inputRequests"]) == ["a"]

    play(scene())


def test_what_is_remembered_is_sealed_to_the_request() -> None:
    async def scene() -> None:
        live = scene_of(twice)
        second = await live.result(call(inputResponses={"a": named("A")}))
        state = second["requestState"]
        for changed in (state[:-1], state[:-2] + "AA", "A" + state):
            (told,) = await live.ask(call(inputResponses={"b": named("B")}, requestState=changed))
            assert told["error"]["data"]["fix"] == "send the request again without `requestState`"
        (told,) = await live.ask(call(caller="other", inputResponses={"b": named("B")}, requestState=state))
        assert told["error"]["data"]["fix"] == "send the request again without `requestState`"

    play(scene())


@pytest.mark.parametrize(("size", "fits"), [(20_000, True), (60_000, False)])
def test_answers_that_are_too_long_to_come_back_are_refused_by_name(size: int, fits: bool) -> None:
    async def scene() -> None:
        (told,) = await scene_of(twice).ask(call(inputResponses={"a": named("x" * size)}))
        if fits:
            assert list(told["result"]["inputRequests"]) == ["b"]
        else:
            assert (told["error"]["code"], told["error"]["data"]["code"]) == (-32603, "X_MCP_ROUND_TOO_LONG")

    play(scene())


# what a handler may raise through its task groups


async def asks_and_refuses(ctx: Context[None]) -> str:
    async def refuse() -> None:
        raise ActionError("X_NO", "not now", "later")

    async with asyncio.TaskGroup() as group:
        group.create_task(refuse())
        group.create_task(one(ctx, "a"))
    return "never"


async def refuses_alone(ctx: Context[None]) -> str:
    async def refuse(code: str) -> None:
        raise ActionError(code, "not now", "later")

    async with asyncio.TaskGroup() as group:
        for code in ("X_NO", "X_NEITHER"):
            group.create_task(refuse(code))
    return "never"


async def asks_and_breaks(ctx: Context[None]) -> str:
    async def breaks() -> None:
        raise LookupError("s3cret")

    async with asyncio.TaskGroup() as group:
        group.create_task(breaks())
        group.create_task(one(ctx, "a"))
    return "never"


async def asks_what_cannot_be_asked(ctx: Context[None]) -> str:
    async def roots() -> Given:
        return (await ctx.client.ask({"r": ListRoots()}))["r"]

    async with asyncio.TaskGroup() as group:
        held = group.create_task(roots())
        group.create_task(one(ctx, "a"))
    assert isinstance(held.result(), Roots)
    return "never"


def text_of(told: Json) -> str:
    return str(told["result"]["content"][0]["text"])


@pytest.mark.parametrize("handler", [asks_and_refuses, refuses_alone])
def test_a_refusal_in_a_task_group_is_that_refusal(handler: Handler) -> None:
    async def scene() -> None:
        (told,) = await scene_of(handler).ask(call())
        assert text_of(told) == "X_NO: not now\nfix: later"

    play(scene())


def test_a_bug_in_a_task_group_is_a_bug_whatever_else_was_raised() -> None:
    async def scene() -> None:
        (told,) = await scene_of(asks_and_breaks).ask(call())
        assert text_of(told).startswith("X_INTERNAL: ")
        assert "s3cret" not in json.dumps(told)

    play(scene())


def test_what_a_client_cannot_be_asked_is_told_from_a_task_group_too() -> None:
    async def scene() -> None:
        (told,) = await scene_of(asks_what_cannot_be_asked).ask(call(capabilities={"elicitation": {}}))
        assert told["error"]["data"]["requiredCapabilities"] == {"roots": {}}

    play(scene())


async def swallows(ctx: Context[None]) -> str:
    """A handler that catches everything asks no second question in the same round."""
    for key in "ab":
        with suppress(BaseException):  # what a very careless handler does
            await one(ctx, key)
    await one(ctx, "c")
    return "done"


def test_a_round_that_ended_has_ended() -> None:
    async def scene() -> None:
        told = await scene_of(swallows).result(call())
        assert list(told["inputRequests"]) == ["a"]

    play(scene())
