"""Calls that go on as tasks: what they answer, to whom, and that the result is the call's own."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from nonsuch import Agent, App, Registry, asgi, define_app_mcp, group
from nonsuch.kernel.audit import ToolCall

from .tasking import ABLE, EXTENSION, INFO, TASKS, Desk, body_of, run

STAMP: Final = "2026-07-28T12:00:00.000Z"
LEGACY: Final = ("2025-06-18", "2025-11-25")


# A call goes on


def test_a_call_that_goes_on_is_answered_with_its_task() -> None:
    async def doing(desk: Desk) -> None:
        held = await desk.call("hold")
        ident = held["result"]["taskId"]
        task = {
            "taskId": ident,
            "status": "working",
            "createdAt": STAMP,
            "lastUpdatedAt": STAMP,
            "ttlMs": 3_600_000,
            "pollIntervalMs": 2_000,
        }
        result = {**task, "resultType": "task", "_meta": INFO}
        assert held == {"jsonrpc": "2.0", "id": 1, "result": result}
        assert await desk.get(ident) == {**result, "resultType": "complete"}
        desk.passes(1.5)
        desk.release["x"].set()
        done = await desk.until(ident, "completed")
        assert done == {
            **result,
            "status": "completed",
            "lastUpdatedAt": "2026-07-28T12:00:01.500Z",
            "result": {
                "content": [{"type": "text", "text": "held x"}],
                "resultType": "complete",
                "_meta": INFO,
            },
            "resultType": "complete",
        }

    run(doing)


def test_ids_are_long_and_never_the_same() -> None:
    async def doing(desk: Desk) -> None:
        idents = {await desk.begin("greet", {"name": "x"}) for _ in range(50)}
        assert len(idents) == 50
        assert {len(each) for each in idents} == {32}

    run(doing)


CALLS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("greet", {"name": "Wörld \u2028"}),
    ("rows", {"label": "r", "lines": 3}),
    ("rows", {}),
    ("one", {"label": "o", "lines": 2}),
    ("picture", {}),
    ("refuses", {}),
    ("breaks", {}),
]


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_a_tasks_result_is_byte_for_byte_what_the_call_itself_answers(
    name: str, arguments: dict[str, Any]
) -> None:
    async def doing(desk: Desk) -> None:
        plain = body_of(await desk.send("tools/call", {"name": name, "arguments": arguments}, able={}))
        result = plain.removeprefix(b'{"jsonrpc":"2.0","id":1,"result":').removesuffix(b"}")
        ident = await desk.begin(name, arguments)
        await desk.until(ident, "completed")
        looked = body_of(await desk.send("tasks/get", {"taskId": ident}))
        assert b',"result":%b,"resultType":"complete","_meta"' % result in looked
        assert json.loads(looked)["result"]["result"] == json.loads(plain)["result"]

    run(doing)


def test_a_call_that_ends_in_an_error_makes_its_task_fail_with_that_error() -> None:
    """As where the handler asks what its client did not declare."""

    async def doing(desk: Desk) -> None:
        plain = await desk.call("roots", able={"elicitation": {}})
        held = await desk.until(await desk.begin("roots"), "failed")
        assert held["error"] == plain["error"]
        assert held["error"]["code"] == -32021
        assert held["statusMessage"] == plain["error"]["message"]
        assert "result" not in held

    run(doing)


# Who is answered with a task


def test_a_client_that_keeps_no_tasks_waits_for_the_result() -> None:
    async def doing(desk: Desk) -> None:
        unable: list[dict[str, Any]] = [
            {},
            {"extensions": {}},
            {"extensions": {EXTENSION: None}},
            {"tasks": {}},
        ]
        for able in unable:
            held = await desk.call("greet", {"name": "Ann"}, able=able)
            assert held["result"]["content"] == [{"type": "text", "text": "Hello, Ann!"}]
            assert held["result"]["resultType"] == "complete"

    run(doing)


@pytest.mark.parametrize("revision", LEGACY)
def test_the_older_revisions_know_no_tasks(revision: str) -> None:
    async def doing(desk: Desk) -> None:
        for name in ("greet", "must"):
            arguments = {"name": "Ann"} if name == "greet" else {}
            held = await desk.ask(
                "tools/call", {"name": name, "arguments": arguments, "task": {"ttl": 9}}, revision=revision
            )
            assert "content" in held["result"]
        for method in ("tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list"):
            wire = await desk.send(method, {"taskId": "x" * 32}, revision=revision)
            assert json.loads(body_of(wire))["error"]["code"] == -32601
            assert wire[0]["status"] == 200
        told = await desk.ask(
            "initialize", {"protocolVersion": revision, "capabilities": {}}, revision=revision
        )
        assert "extensions" not in told["result"]["capabilities"]

    run(doing)


def test_a_tool_that_must_be_a_task_refuses_who_keeps_none() -> None:
    async def doing(desk: Desk) -> None:
        for name in ("must", "first"):
            wire = await desk.send("tools/call", {"name": name, "arguments": {}}, able={"elicitation": {}})
            error = json.loads(body_of(wire))["error"]
            assert wire[0]["status"] == 400
            assert error["code"] == -32021
            assert error["data"]["requiredCapabilities"] == TASKS
        assert desk.ran == []

    run(doing)


def test_a_task_param_is_ignored() -> None:
    async def doing(desk: Desk) -> None:
        asked = {"name": "never", "arguments": {}, "task": {"ttl": 1, "pollInterval": 1}}
        assert (await desk.ask("tools/call", asked))["result"]["content"] == [{"type": "text", "text": "now"}]

    run(doing)


def test_what_is_said_of_tasks_does_not_depend_on_there_being_any() -> None:
    """Or a hidden tool that goes on would show."""

    async def doing(desk: Desk) -> None:
        described = (await desk.ask("server/discover"))["result"]["capabilities"]
        assert described["extensions"] == {EXTENSION: {}}
        assert "tasks" not in described
        assert "task" not in json.dumps(await desk.ask("tools/list"))
        desk.serve = asgi(empty())
        assert (await desk.ask("server/discover"))["result"]["capabilities"] == described
        assert (await desk.ask("tasks/get", {"taskId": "x" * 32}))["error"]["code"] == -32602

    run(doing)


def empty() -> App:
    return define_app_mcp(Registry(), name="desk", resolve_token=lambda _: Desk().callers["ann"])


# A refused call never becomes a task


REFUSED: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("clerk", "vault", {}),  # hidden
    ("ann", "nowhere", {}),  # absent
    ("unscoped", "vault", {}),
    ("ann", "hold", {"label": 7}),
    ("clerk", "forbidden", {}),
]


@pytest.mark.parametrize(("who", "name", "arguments"), REFUSED)
def test_a_refused_call_is_refused_as_ever_and_makes_no_task(
    who: str, name: str, arguments: dict[str, Any]
) -> None:
    async def doing(desk: Desk) -> None:
        desk.callers["unscoped"] = Agent("una", roles=["staff"], scopes=["desk:use"])
        params = {"name": name, "arguments": arguments}
        told, plain = [await desk.send("tools/call", params, who=who, able=able) for able in (ABLE, {})]
        assert told == plain
        assert [event.outcome for event in desk.events if isinstance(event, ToolCall)] in (
            ["hidden"] * 2,
            ["scope-denied"] * 2,
            ["invalid-args"] * 2,
            ["policy-denied"] * 2,
        )
        assert (desk.ran, vars(desk.store)["_kept"]) == ([], {})

    run(doing)


# Asking after a task


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_who_declares_no_tasks_is_refused_before_the_id_is_looked_up(method: str) -> None:
    async def doing(desk: Desk) -> None:
        idents = [await desk.begin("greet", {"name": "x"}), "gate-test", "x" * 32]
        params: list[dict[str, Any]] = [{"taskId": ident, "inputResponses": {}} for ident in idents]
        told = [await desk.send(method, each, able={}) for each in params]
        assert told[0] == told[1] == told[2]
        assert told[0][0]["status"] == 400
        error = json.loads(body_of(told[0]))["error"]
        assert (error["code"], error["data"]["requiredCapabilities"]) == (-32021, TASKS)

    run(doing)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_the_name_header_is_the_tasks_id(method: str) -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("hold")
        params: dict[str, Any] = {"taskId": ident, "inputResponses": {}}
        for headers in ({"mcp-name": "x" * 32}, {"mcp-name": ""}):
            wire = await desk.send(method, params, headers=headers)
            assert (wire[0]["status"], json.loads(body_of(wire))["error"]["code"]) == (400, -32020)
        assert (await desk.get(ident))["status"] == "working"
        assert (await desk.send(method, params, headers={"mcp-name": ident}))[0]["status"] == 200

    run(doing)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tasks/get", {}),
        ("tasks/get", {"taskId": 7}),
        ("tasks/update", {"taskId": "x" * 32}),
        ("tasks/update", {"taskId": "x" * 32, "inputResponses": []}),
        ("tasks/update", {"taskId": None, "inputResponses": {}}),
        ("tasks/cancel", {"taskId": ["x" * 32]}),
        ("subscriptions/listen", {"notifications": {"taskIds": "x" * 32}}),
        ("subscriptions/listen", {"notifications": {"taskIds": [7]}}),
        ("subscriptions/listen", {"notifications": {"taskIds": ["x" * 32] * 101}}),
    ],
)
def test_parameters_of_the_wrong_shape_are_refused_whoever_sends_them(method: str, params: Any) -> None:
    async def doing(desk: Desk) -> None:
        for able in (ABLE, {}):
            error = (await desk.ask(method, params, able=able))["error"]
            assert (error["code"], error["data"]["code"]) == (-32602, "X_MCP_PROTOCOL")

    run(doing)


def test_there_is_no_method_to_list_tasks_or_to_wait_for_one() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("greet", {"name": "x"})
        for method in ("tasks/result", "tasks/list"):
            wire = await desk.send(method, {"taskId": ident})
            assert (wire[0]["status"], json.loads(body_of(wire))["error"]["code"]) == (404, -32601)

    run(doing)


# The constant surface


def test_a_tool_behind_the_constant_surface_goes_on_as_a_task_too() -> None:
    async def doing(desk: Desk) -> None:
        asked = {"resource": "desk", "action": "greet", "params": {"name": "Ann"}}
        plain = await desk.call("manage_resource", asked, able={})
        ident = await desk.begin("manage_resource", asked)
        assert (await desk.until(ident, "completed"))["result"] == plain["result"]
        assert (await desk.call("greet", {"name": "Ann"}))["error"]["code"] == -32602  # it has no name here

    class Constant(Desk):
        """A desk whose tools are in one group."""

        def more(self) -> dict[str, Any]:
            return {"surface": "meta", "groups": {"desk": group("What the desk does", self.names())}}

    run(doing, Constant())
