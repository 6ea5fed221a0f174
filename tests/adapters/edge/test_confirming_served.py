"""Calls that wait for a person, over the wires: MCP in three revisions, the constant surface, tasks, HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final, cast

import pytest

from nonsuch import TaskLimits
from nonsuch.kernel.confirmation import Status

from ...world import MODERN, REVISIONS
from ..mcp.live import Live, play, request
from ..mcp.wire import Request, in_process
from .shop import CALL, PATH, Shop

TASKS: Final[dict[str, Any]] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
PENDING: Final = "X_MCP_CONFIRMATION_PENDING"


def text(result: Any) -> str:
    """The words of a result of a tool."""
    return cast("str", result["content"][0]["text"])


def ident_in(words: str) -> str:
    """The id that an answer names."""
    return words.partition("confirmation `")[2].partition("`")[0]


def post(shop: Shop, token: str, path: str, sent: Any, app: Any = None) -> tuple[int, Any]:
    """Post to an action and return status and body."""
    headers = (
        ("host", "127.0.0.1"),
        ("authorization", f"Bearer {token}"),
        ("content-type", "application/json"),
    )
    whole = Request("POST", f"/api/{path}", headers, json.dumps(sent).encode())
    answer = in_process(app or shop.app(), whole, clock=shop.clock)
    return answer.status, json.loads(answer.body)


def test_every_door_of_mcp_waits() -> None:
    shop = Shop()
    app = shop.app()

    async def scene() -> None:
        live = Live(app)
        idents: set[str] = set()
        for revision in REVISIONS:
            result: Any = await live.result(
                request(revision, "tools/call", "ag", name="refund", arguments=dict(CALL))
            )
            assert result["isError"] is True
            assert "structuredContent" not in result
            assert text(result).startswith(f"{PENDING}: `refund` waits for a person: confirmation `")
            assert f"at POST /api/{PATH}" in text(result)
            idents.add(ident_in(text(result)))
        managed = {"resource": "orders", "action": "refund", "params": dict(CALL)}
        result = await live.result(
            request(MODERN, "tools/call", "meta", name="manage_resource", arguments=managed)
        )
        idents.add(ident_in(text(result)))
        assert len(idents) == 1
        assert shop.ran == []

    play(scene())


def test_the_constant_surface_says_which_actions_wait() -> None:
    async def scene() -> str:
        live = Live(Shop().app())
        sent = request(MODERN, "tools/call", "meta", name="list_resources", arguments={})
        return text(await live.result(sent))

    assert "refund (action; confirms) {" in play(scene())


def test_a_call_that_waits_becomes_a_task_once_it_is_approved_and_runs_once() -> None:
    shop = Shop(settings={"tasks": TaskLimits(poll_seconds=0.01)})
    app = shop.app()

    async def scene() -> None:
        live = Live(app)

        async def called() -> Any:
            sent = request(MODERN, "tools/call", "ag", capabilities=TASKS, name="works", arguments=dict(CALL))
            return await live.result(sent)

        async def status() -> Status | None:
            assert app.confirmations is not None
            row = await app.confirmations.store.read(ident)
            return None if row is None else row.status

        ident = ident_in(text(await called()))
        await asyncio.to_thread(
            post, shop, "bob", PATH, {"id": ident, "decision": "approve", "arguments": CALL}, app
        )
        shop.gate = asyncio.Event()
        begun = await called()
        assert begun["resultType"] == "task"
        assert await status() == "running"
        assert "X_MCP_CONFIRMATION_CONTESTED" in text(await called())
        shop.gate.set()
        while await status() == "running":  # noqa: ASYNC110  (a row tells nobody)
            await asyncio.sleep(0.005)
        assert await status() == "ran"
        assert shop.ran == ["works"]
        assert shop.last.confirmation == ident

    async def whole() -> None:
        async with asyncio.timeout(20):
            await scene()

    asyncio.run(whole())


def test_without_room_for_a_task_an_approval_is_given_back() -> None:
    shop = Shop(settings={"tasks": TaskLimits(per_principal=1)})
    app = shop.app()

    async def scene() -> None:
        live = Live(app)

        async def called(amount: int) -> Any:
            arguments = {**CALL, "amount": amount}
            sent = request(MODERN, "tools/call", "ag", capabilities=TASKS, name="works", arguments=arguments)
            return await live.result(sent)

        for amount in (1, 2):
            ident = ident_in(text(await called(amount)))
            approval = {"id": ident, "decision": "approve", "arguments": {**CALL, "amount": amount}}
            assert (await asyncio.to_thread(post, shop, "bob", PATH, approval, app))[0] == 200
        assert (await called(1))["resultType"] == "task"
        for _ in range(2):
            assert "X_MCP_TASKS_FULL" in text(await called(2))

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("token", "sent", "status", "code"),
    [
        ("bob", {"decision": "view"}, 200, None),
        ("bob", {"decision": "approve"}, 409, "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"),
        ("bob", {"decision": "approve", "arguments": dict(CALL)}, 200, None),
        ("bob", {"decision": "reject"}, 200, None),
        ("bob", {"decision": "look"}, 422, "X_INPUT_INVALID"),
        ("bob", {"decision": "view", "id": "x"}, 403, "X_FORBIDDEN"),
        ("fay", {"decision": "view"}, 403, "X_FORBIDDEN"),
        ("ag", {"decision": "view"}, 403, "X_FORBIDDEN"),
    ],
)
def test_people_decide_over_http(token: str, sent: dict[str, Any], status: int, code: str | None) -> None:
    shop = Shop(settings={"scopes": None})
    app = shop.app()
    found, problem = post(shop, "ag", "orders/refund", dict(CALL), app)
    assert (found, problem["code"]) == (409, PENDING)
    told, body = post(shop, token, PATH, {"id": ident_in(problem["cause"]), **sent}, app)
    assert (told, body.get("code")) == (status, code)


def test_a_second_decision_over_http_is_told_that_there_was_one() -> None:
    shop = Shop()
    app = shop.app()
    ident = ident_in(post(shop, "ag", "orders/refund", dict(CALL), app)[1]["cause"])
    rejection = {"id": ident, "decision": "reject"}
    answers = [post(shop, "bob", PATH, rejection, app) for _ in range(2)]
    assert [(status, body.get("code")) for status, body in answers] == [
        (200, None),
        (409, "X_MCP_CONFIRMATION_DECIDED"),
    ]
    status, body = post(shop, "ag", "orders/refund", dict(CALL), app)
    assert (status, body["code"]) == (403, "X_MCP_CONFIRMATION_REJECTED")


def test_the_action_is_in_the_openapi_document_and_in_no_list_of_tools() -> None:
    shop = Shop()
    app = shop.app()
    headers = (("host", "127.0.0.1"), ("authorization", "Bearer bob"))
    document = in_process(app, Request("GET", "/api/openapi.json", headers), clock=shop.clock)
    assert f"/api/{PATH}" in json.loads(document.body)["paths"]

    async def scene() -> list[str]:
        result: Any = await Live(app).result(request(MODERN, "tools/list", "ag"))
        return [each["name"] for each in result["tools"]]

    assert PATH not in play(scene())
