"""Tasks while they run: cancelled, listened to, counted, timed, and audited once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from nonsuch import Context, Text
from nonsuch.kernel.audit import TaskAsked, ToolCall
from nonsuch.kernel.codes import CODES
from nonsuch.kernel.tasks import TaskLimits, fingerprint

from .tasking import ACK, Desk, accept, body_of, events_of, run, served, within

# Cancelling


def test_a_cancelled_task_stops_its_handler_and_stays_cancelled() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("hold")
        await within(lambda: "x" in desk.started)
        assert await desk.cancel(ident) == ACK
        held = await desk.get(ident)
        assert (held["status"], held["statusMessage"]) == ("cancelled", "cancelled by its caller")
        await within(lambda: desk.ran == ["hold", "stopped"])
        desk.passes(5)
        assert await desk.cancel(ident) == ACK
        assert await desk.get(ident) == held

    run(doing)


def test_a_finished_task_is_cancelled_in_vain() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("greet", {"name": "x"})
        held = await desk.until(ident, "completed")
        assert await desk.cancel(ident) == ACK
        assert await desk.get(ident) == held

    run(doing)


def test_a_plain_handler_stops_when_it_next_says_something() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("hold_plain")
        await asyncio.to_thread(desk.thread.wait)
        await desk.cancel(ident)
        await within(lambda: desk.ran == ["hold_plain", "CancelledError"])
        assert (await desk.get(ident))["status"] == "cancelled"

    run(doing)


# Progress


def test_progress_is_the_status_message_and_log_messages_go_nowhere() -> None:
    async def doing(desk: Desk) -> None:
        params = {
            "name": "noting",
            "arguments": {},
            "_meta": {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"},
        }
        wire = await desk.send("tools/call", params)
        ident = json.loads(body_of(wire))["result"]["taskId"]
        await within(lambda: "noting" in desk.started)
        assert (await desk.get(ident))["statusMessage"] == "1 of 4"
        desk.release["noting"].set()
        assert "statusMessage" not in await desk.until(ident, "completed")

    run(doing)


@pytest.mark.parametrize(
    ("done", "total", "told"),
    [(1, None, "1"), (0.25, 1, "0.25 of 1"), (2.5, 1e9, "2.5 of 1e+09"), (7, 10**400, "7 of 1" + "0" * 19)],
)
def test_progress_is_told_in_a_few_characters(done: float, total: float | None, told: str) -> None:
    """Whatever numbers a handler has: a total is often one that the caller sent."""

    class Says(Desk):
        async def noting(self, ctx: Context[None]) -> Text:
            await ctx.client.progress(done, total)
            return await Desk.noting(self, Context(ctx.principal, None, None, ctx.now))

    async def doing(desk: Desk) -> None:
        ident = await desk.begin("noting")
        await within(lambda: "noting" in desk.started)
        assert (await desk.get(ident))["statusMessage"] == told
        desk.release["noting"].set()
        await desk.until(ident, "completed")

    run(doing, Says())


# Subscriptions


def test_who_listens_to_a_task_is_told_all_of_it_at_once_and_at_each_change() -> None:
    async def doing(desk: Desk) -> None:
        ident, leaves = await desk.begin("pair"), asyncio.Event()
        await desk.until(ident, "input_required")
        looked = [await desk.get(ident)]
        params = {"notifications": {"taskIds": [ident, "x" * 32, ident]}}
        listening = asyncio.ensure_future(desk.send("subscriptions/listen", params, leaves=leaves))
        await asyncio.sleep(0.02)
        for answers in ({"a": accept("1")}, {"b": accept("2")}):
            await desk.update(ident, answers)
            await asyncio.sleep(0.02)
            looked.append(await desk.get(ident))
        desk.app.notify.lists_changed()  # is no change of a task
        await asyncio.sleep(0.02)
        desk.app.notify.close()
        wire = await listening
        acknowledged, *told, end = events_of(wire)
        assert acknowledged["params"]["notifications"] == {"taskIds": [ident]}
        meta = {"io.modelcontextprotocol/subscriptionId": 1}
        expected = [_told(each, meta) for each in looked]
        assert [each for each in told if each["params"]["status"] != "working"] == expected
        assert end["result"]["resultType"] == "complete"

    run(doing)


def _told(held: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    params = {**{key: value for key, value in held.items() if key != "resultType"}, "_meta": meta}
    return {"jsonrpc": "2.0", "method": "notifications/tasks", "params": params}


def test_who_listens_to_a_task_that_has_ended_is_told_so() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("greet", {"name": "x"})
        await desk.until(ident, "completed")
        params = {"notifications": {"taskIds": [ident]}}
        listening = asyncio.ensure_future(desk.send("subscriptions/listen", params))
        await asyncio.sleep(0.02)
        desk.app.notify.close()
        _, told, _ = events_of(await listening)
        assert told["params"]["status"] == "completed"

    run(doing)


def test_who_keeps_no_tasks_listens_to_none() -> None:
    async def doing(desk: Desk) -> None:
        wire = await desk.send("subscriptions/listen", {"notifications": {"taskIds": ["x"]}}, able={})
        assert (wire[0]["status"], json.loads(body_of(wire))["error"]["code"]) == (400, -32021)

    run(doing)


# Bounds and time


def test_when_no_more_are_kept_a_call_is_refused_in_words_and_does_not_run() -> None:
    async def doing(desk: Desk) -> None:
        await desk.begin("hold", {"label": "1"})
        await desk.begin("hold", {"label": "2"})
        refused = (await desk.call("hold", {"label": "3"}))["result"]
        assert refused["isError"]
        assert refused["content"][0]["text"].startswith("X_MCP_TASKS_FULL: ")
        assert (await desk.call("greet", {"name": "x"}, able={}))["result"]["resultType"] == "complete"
        await desk.begin("hold", {"label": "4"}, who="bob")
        answers = {"inputResponses": {"who": accept("Al")}}
        late = (await desk.ask("tools/call", {"name": "first", "arguments": {}, **answers}))["result"]
        assert late["content"][0]["text"].startswith("X_MCP_TASKS_FULL: ")
        assert "3" not in desk.started
        desk.passes(3_600)
        await desk.begin("hold", {"label": "5"})

    run(doing, Desk(limits=TaskLimits(per_principal=2)))


def test_a_task_whose_time_is_over_is_gone_and_its_handler_stopped() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("hold")
        await within(lambda: "x" in desk.started)
        desk.passes(60)
        unknown = await desk.send("tasks/get", {"taskId": "x" * 32})
        assert await desk.send("tasks/get", {"taskId": ident}) == unknown
        await within(lambda: desk.ran == ["hold", "stopped"])

    run(doing, Desk(limits=TaskLimits(ttl_seconds=60, lease_seconds=90)))


def test_at_the_end_of_the_lifespan_what_still_runs_has_failed() -> None:
    """The store may outlive it: the next one tells."""
    told = CODES["X_INTERRUPTED"]

    async def whole() -> None:
        desk = Desk()
        async with served(desk):
            ident = await desk.begin("hold")
            await within(lambda: "x" in desk.started)
        assert desk.ran == ["hold", "stopped"]
        async with served(desk):
            held = await desk.get(ident)
            assert held["status"] == "failed"
            assert held["statusMessage"] == "the server stopped before the work ended"
            data = {"code": told.code, "cause": told.cause, "fix": told.caller_fix}
            assert held["error"] == {"code": -32603, "message": told.cause, "data": data}

    asyncio.run(whole())


@pytest.mark.parametrize("name", ["rows", "one", "greet", "refuses"])
def test_a_result_that_is_too_large_is_told_with_what_to_do(name: str) -> None:
    """Results of every kind, a refusal in words too: what is counted is what its caller would read."""
    told = CODES["X_MCP_TASK_RESULT_TOO_LARGE"]

    async def doing(desk: Desk) -> None:
        arguments = {"name": "x"} if name == "greet" else {} if name == "refuses" else {"label": "l"}
        held = await desk.until(await desk.begin(name, arguments), "completed", "failed")
        assert held["statusMessage"] == "the work ended, and its result is larger than a task keeps"
        data = {"code": told.code, "cause": told.cause, "fix": told.caller_fix}
        assert held["error"] == {"code": -32603, "message": told.cause, "data": data}
        assert "result" not in held

    run(doing, Desk(limits=TaskLimits(result_bytes=20)))


def test_a_result_is_counted_as_its_caller_reads_it() -> None:
    async def doing(desk: Desk) -> dict[str, Any]:
        return await desk.until(await desk.begin("rows", {"label": '"'}), "completed", "failed")

    whole = run(doing)
    size = len(json.dumps(whole["result"], separators=(",", ":")))
    exact, short = (run(doing, Desk(limits=TaskLimits(result_bytes=size - less))) for less in (0, 1))
    assert (exact["result"], short["status"]) == (whole["result"], "failed")


# Audit


def test_every_outcome_is_audited_once() -> None:
    async def doing(desk: Desk) -> None:
        done = await desk.begin("greet", {"name": "x"})
        await desk.until(done, "completed")
        stopped = await desk.begin("hold")
        await within(lambda: "x" in desk.started)
        await desk.cancel(stopped)
        await within(lambda: len(desk.events) == 5)
        await desk.get(stopped)
        await desk.ask("tasks/get", {"taskId": "x" * 32})
        calls = [
            (each.tool, each.outcome, each.code, each.task)
            for each in desk.events
            if isinstance(each, ToolCall)
        ]
        one, other = fingerprint(done), fingerprint(stopped)
        assert sorted(calls, key=str) == [
            ("greet", "begun", None, one),
            ("greet", "ok", None, one),
            ("hold", "begun", None, other),
            ("hold", "failed", "X_INTERRUPTED", other),
        ]
        asked = [each for each in desk.events if isinstance(each, TaskAsked)]
        assert [(each.asked, each.outcome, each.tool, each.task, each.code) for each in asked] == [
            ("cancel", "ok", "hold", other, None),
            ("look", "hidden", None, fingerprint("x" * 32), "X_MCP_TASK_UNKNOWN"),
        ]
        assert not any(each in str(desk.events) for each in (done, stopped))

    run(doing)
