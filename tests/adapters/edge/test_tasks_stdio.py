"""Tasks over stdin and stdout: the call is answered, the work goes on, and ends with the connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Final

import pytest

from nonsuch.adapters.edge import stdio
from nonsuch.adapters.edge.task_store import MemoryTaskStore
from nonsuch.kernel.audit import ToolCall
from nonsuch.kernel.tasks import STOPPED

from ..mcp.tasking import ABLE, INFO, STAFF, Desk, accept, said, within
from .talkers import CAPABILITIES, MODERN, VERSION
from .test_stdio import Peer, connected

Work = Callable[["Caller", Desk], Coroutine[Any, Any, None]]
UNKNOWN: Final = "X_MCP_TASK_UNKNOWN"


class Caller:
    """A client of revision 2026-07-28 at one end."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self._count = peer, 0

    def say(self, method: str, *, able: Any = ABLE, ident: object = None, **params: Any) -> object:
        """Send a request, and return its id."""
        self._count += 1
        key: object = f"c{self._count}" if ident is None else ident
        meta = {VERSION: MODERN, CAPABILITIES: able}
        told = {"jsonrpc": "2.0", "id": key, "method": method, "params": {**params, "_meta": meta}}
        self.peer.say(told)
        return key

    async def ask(self, method: str, **given: Any) -> Any:
        """Send a request, and return its whole answer."""
        key = self.say(method, **given)
        found = [each for each in self.peer.seen if each.get("id") == key and "method" not in each]
        return found[0] if found else await self.peer.answer(key)

    async def begin(self, tool: str, /, **arguments: Any) -> str:
        """Call what goes on, and return its task's id."""
        told = await self.ask("tools/call", name=tool, arguments=arguments)
        assert told["result"]["resultType"] == "task", told
        return str(told["result"]["taskId"])

    async def until(self, ident: str, *statuses: str) -> Any:
        """Look until it has one of the statuses."""
        async with asyncio.timeout(10):
            while (told := await self.ask("tasks/get", taskId=ident))["result"]["status"] not in statuses:  # noqa: ASYNC110  (a client polls)
                await asyncio.sleep(0.005)
        return told["result"]


def talk(work: Work, desk: Desk | None = None) -> Desk:
    held = desk or Desk()

    async def main() -> None:
        async with asyncio.timeout(30), connected(held.app, STAFF, 100_000) as peer:
            await work(Caller(peer), held)

    asyncio.run(main())
    return held


def test_a_call_goes_on_behind_its_answer() -> None:
    async def work(caller: Caller, desk: Desk) -> None:
        ident = await caller.begin("hold", label="x")
        await desk.started["x"].wait()
        told = (await caller.ask("tasks/get", taskId=ident))["result"]
        assert (told["status"], told["resultType"]) == ("working", "complete")
        assert told["_meta"] == INFO
        desk.release["x"].set()
        assert said(await caller.until(ident, "completed")) == "held x"

    talk(work)


def test_the_result_is_the_one_that_the_call_would_have_had() -> None:
    async def work(caller: Caller, desk: Desk) -> None:
        for name, arguments in (("greet", {"name": "Al"}), ("picture", {}), ("refuses", {}), ("rows", {})):
            plain = await caller.ask("tools/call", able={}, name=name, arguments=arguments)
            ident = await caller.begin(name, **arguments)
            assert (await caller.until(ident, "completed"))["result"] == plain["result"]

    talk(work)


def test_a_task_asks_and_is_answered() -> None:
    async def work(caller: Caller, desk: Desk) -> None:
        ident = await caller.begin("pair")
        asked = await caller.until(ident, "input_required")
        assert sorted(asked["inputRequests"]) == ["a", "b"]
        for key in ("a", "b"):
            told = await caller.ask("tasks/update", taskId=ident, inputResponses={key: accept(key)})
            assert told["result"] == {"resultType": "complete", "_meta": INFO}
        assert "Elicited" in said(await caller.until(ident, "completed"))

    talk(work)


def test_a_task_is_cancelled_by_its_id_and_not_by_its_request() -> None:
    """`notifications/cancelled` stops requests; the call is answered already (MCP tasks, cancellation)."""

    async def work(caller: Caller, desk: Desk) -> None:
        key = caller.say("tools/call", name="hold", arguments={"label": "x"})
        ident = (await caller.peer.answer(key))["result"]["taskId"]
        cancels = {"method": "notifications/cancelled", "params": {"requestId": key}}
        caller.peer.say({"jsonrpc": "2.0", **cancels})
        assert (await caller.ask("tasks/get", taskId=ident))["result"]["status"] == "working"
        await caller.ask("tasks/cancel", taskId=ident)
        assert (await caller.ask("tasks/get", taskId=ident))["result"]["status"] == "cancelled"
        await within(lambda: "stopped" in desk.ran)

    talk(work)


def test_a_call_that_is_stopped_before_it_becomes_a_task_stops_its_handler() -> None:
    async def work(caller: Caller, desk: Desk) -> None:
        key = caller.say("tools/call", name="waits_first", arguments={})
        await within(lambda: "hold" in desk.ran)
        cancels = {"method": "notifications/cancelled", "params": {"requestId": key}}
        caller.peer.say({"jsonrpc": "2.0", **cancels})
        await within(lambda: "stopped" in desk.ran)
        assert not [each for each in caller.peer.seen if each.get("id") == key]

    talk(work)


def test_a_listener_hears_of_its_tasks() -> None:
    async def work(caller: Caller, desk: Desk) -> None:
        ident = await caller.begin("hold", label="x")
        caller.say("subscriptions/listen", ident=7, notifications={"taskIds": [ident, "y" * 32]})
        peer = caller.peer
        acknowledged = await peer.until(lambda told: "method" in told)
        assert acknowledged["params"]["notifications"] == {"taskIds": [ident]}
        assert (await peer.next())["params"]["status"] == "working"
        desk.release["x"].set()
        last = await peer.until(lambda told: told.get("method") == "notifications/tasks")
        assert (last["params"]["status"], last["params"]["taskId"]) == ("completed", ident)

    talk(work)


@pytest.mark.parametrize("able", [{}, {"extensions": {}}])
def test_a_client_that_keeps_no_tasks_waits(able: Any) -> None:
    async def work(caller: Caller, desk: Desk) -> None:
        told = await caller.ask("tools/call", able=able, name="greet", arguments={"name": "Al"})
        assert told["result"]["content"][0]["text"] == "Hello, Al!"
        refused = await caller.ask("tools/call", able=able, name="must", arguments={})
        assert refused["error"]["code"] == -32021
        for method in ("tasks/get", "tasks/cancel"):
            told = await caller.ask(method, able=able, taskId="y" * 32)
            assert told["error"]["code"] == -32021

    talk(work)


def test_the_older_revisions_know_no_tasks() -> None:
    async def work(caller: Caller, desk: Desk) -> None:
        await caller.peer.initialize()
        params = {"name": "greet", "arguments": {"name": "Al"}, "task": {"ttl": 1}}
        told = await caller.peer.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert told["result"]["content"][0]["text"] == "Hello, Al!"
        asked = {"jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": {"taskId": "y" * 32}}
        assert (await caller.peer.ask(asked))["error"]["code"] == -32601

    talk(work)


# the end


@pytest.mark.parametrize("name", ["hold", "hold_plain"])
def test_the_end_of_the_input_ends_the_work_and_writes_that_down(name: str) -> None:
    """Before a client loses patience with a server whose input it closed."""
    store, ident = MemoryTaskStore(), list[str]()

    async def work(caller: Caller, desk: Desk) -> None:
        ident.append(await caller.begin(name))
        await within(lambda: name in desk.ran)
        begun = time.monotonic()
        caller.peer.end()
        assert await caller.peer.rest() == []
        assert time.monotonic() - begun < stdio.GRACE_SECONDS

    desk = talk(work, Desk(store=store))
    (task,) = asyncio.run(store.read(ident, desk.now - timedelta(days=1))).values()
    assert (task.status, task.message) == ("failed", STOPPED)
    outcomes = [each.outcome for each in desk.events if isinstance(each, ToolCall)]
    assert outcomes == ["begun", "failed"]


def test_a_task_of_an_earlier_connection_is_found_in_a_store_that_outlives_it() -> None:
    store, ident = MemoryTaskStore(), list[str]()

    async def begins(caller: Caller, desk: Desk) -> None:
        ident.append(await caller.begin("greet", name="Al"))
        await caller.until(ident[0], "completed")

    async def looks(caller: Caller, desk: Desk) -> None:
        told = await caller.ask("tasks/get", taskId=ident[0])
        assert told["result"]["result"]["content"][0]["text"] == "Hello, Al!"
        gone = await caller.ask("tasks/get", taskId="y" * 32)
        assert gone["error"]["data"]["code"] == UNKNOWN

    talk(begins, Desk(store=store))
    talk(looks, Desk(store=store))


def test_a_task_of_somebody_else_is_no_task() -> None:
    store = MemoryTaskStore()

    async def main() -> None:
        desk = Desk(store=store)
        async with connected(desk.app, STAFF, 100_000) as peer:
            ident = await Caller(peer).begin("hold", label="x")
            async with connected(Desk(store=store).app, desk.callers["bob"], 100_000) as other:
                for method in ("tasks/get", "tasks/cancel"):
                    told = await Caller(other).ask(method, taskId=ident)
                    assert told["error"]["data"]["code"] == UNKNOWN
            assert (await Caller(peer).ask("tasks/get", taskId=ident))["result"]["status"] == "working"
            desk.release["x"].set()
            await Caller(peer).until(ident, "completed")

    asyncio.run(main())
