"""Tasks that ask their client: in the task, part by part, and before it in rounds of the call."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from nonsuch.kernel.audit import ToolCall

from .tasking import ACK, Desk, accept, body_of, run, said, within

# Questions of a task


QUESTION: Final = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "A?",
        "requestedSchema": {
            "type": "object",
            "properties": {"name": {"title": "Name", "type": "string"}},
            "required": ["name"],
        },
    },
}


def test_a_handler_that_asks_is_answered_part_by_part() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("pair")
        held = await desk.until(ident, "input_required")
        assert held["inputRequests"].keys() == {"a", "b"}
        assert held["inputRequests"]["a"] == QUESTION
        assert await desk.update(ident, {"a": accept("first")}) == ACK
        held = await desk.get(ident)
        assert (held["status"], held["inputRequests"].keys()) == ("input_required", {"b"})
        assert await desk.update(ident, {"a": accept("too late"), "b": accept("second")}) == ACK
        done = await desk.until(ident, "completed")
        assert "first" in said(done)
        assert "second" in said(done)
        assert "too late" not in said(done)
        assert "inputRequests" not in done

    run(doing)


BAD: Final[list[Any]] = [
    None,
    7,
    "accept",
    [],
    {},
    {"action": "maybe"},
    {"action": "accept"},
    {"action": "accept", "content": {"name": 7}},
    {"action": "accept", "content": None},
    {"roots": []},
    {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"},
]


def test_what_is_no_answer_leaves_its_question_open() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("confirm")
        before = await desk.until(ident, "input_required")
        for bad in BAD:
            assert await desk.update(ident, {"sure": bad, "never-asked": accept("x")}) == ACK
            assert await desk.get(ident) == before
        assert await desk.update(ident, {"sure": {"action": "decline"}}) == ACK
        assert "decline" in said(await desk.until(ident, "completed"))

    run(doing)


def test_a_key_is_never_used_for_a_second_question() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("twice")
        assert (await desk.until(ident, "input_required"))["inputRequests"].keys() == {"a"}
        await desk.update(ident, {"a": accept("one")})
        assert (await desk.until(ident, "input_required"))["inputRequests"].keys() == {"a-2"}
        await desk.update(ident, {"a": accept("again")})
        assert (await desk.get(ident))["status"] == "input_required"
        await desk.update(ident, {"a-2": accept("two")})
        assert "one" in (words := said(await desk.until(ident, "completed")))
        assert "two" in words

    run(doing)


def test_a_task_asks_the_clients_model_too() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("sampled")
        asked = (await desk.until(ident, "input_required"))["inputRequests"]["m"]
        assert asked["method"] == "sampling/createMessage"
        answer = {"role": "assistant", "content": {"type": "text", "text": "hear"}, "model": "m-1"}
        await desk.update(ident, {"m": {**answer, "model": 7}})
        assert (await desk.get(ident))["status"] == "input_required"
        await desk.update(ident, {"m": answer})
        assert "hear" in said(await desk.until(ident, "completed"))

    run(doing)


def test_a_task_that_has_ended_takes_no_answer() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("confirm")
        await desk.until(ident, "input_required")
        await desk.cancel(ident)
        before = await desk.get(ident)
        assert await desk.update(ident, {"sure": accept("x")}) == ACK
        assert await desk.get(ident) == before

    run(doing)


# Questions before a task


def test_what_is_asked_first_is_asked_in_rounds_of_the_call() -> None:
    async def doing(desk: Desk) -> None:
        held = (await desk.call("first"))["result"]
        assert (held["resultType"], held["inputRequests"].keys()) == ("input_required", {"who"})
        assert "taskId" not in held
        answered = {"inputResponses": {"who": accept("Al")}, "requestState": held["requestState"]}
        params = {"name": "first", "arguments": {}, **answered}
        begun = (await desk.ask("tools/call", params))["result"]
        assert begun["resultType"] == "task"
        assert not {"requestState", "inputRequests"} & begun.keys()
        words = said(await desk.until(begun["taskId"], "completed"))
        assert "'Al'" in words
        assert words.endswith("True True {'step': 1}")
        assert desk.ran == ["first", "first"]  # the second run is the one that went on

    run(doing)


def test_a_client_that_leaves_before_the_hand_over_stops_its_call_and_there_is_no_task() -> None:
    async def doing(desk: Desk) -> None:
        leaves = asyncio.Event()
        params: dict[str, Any] = {"name": "waits_first", "arguments": {}}
        call = asyncio.ensure_future(desk.send("tools/call", params, leaves=leaves))
        await within(lambda: "early" in desk.started)
        leaves.set()
        assert await call == []
        assert desk.ran == ["hold", "stopped"]
        assert vars(desk.store)["_kept"] == {}
        assert [each.code for each in desk.events if isinstance(each, ToolCall)] == ["X_INTERRUPTED"]

    run(doing)


def test_a_client_that_leaves_after_the_hand_over_stops_nothing() -> None:
    async def doing(desk: Desk) -> None:
        leaves = asyncio.Event()
        params: dict[str, Any] = {"name": "waits_first", "arguments": {}}
        call = asyncio.ensure_future(desk.send("tools/call", params, leaves=leaves))
        await within(lambda: "early" in desk.started)
        desk.release["early"].set()
        ident = json.loads(body_of(await call))["result"]["taskId"]
        leaves.set()
        await desk.until(ident, "input_required")  # what is asked after it is asked in the task
        await desk.update(ident, {"sure": accept("yes")})
        assert "'yes'" in said(await desk.until(ident, "completed"))

    run(doing)
