"""Whose a task is: unknown, somebody else's, gone, or of a tool that is hidden by now is one answer."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

import pytest

from nonsuch import Agent, Human
from nonsuch.kernel.audit import TaskAsked
from nonsuch.kernel.tasks import TaskLimits

from .tasking import ABLE, STAFF, Desk, Wire, accept, body_of, events_of, run, within

METHODS: Final = ("tasks/get", "tasks/update", "tasks/cancel")
UNKNOWN: Final = "x" * 32
SCOPES: Final = ["desk:use", "vault:open"]


async def asked(desk: Desk, method: str, ident: str, who: str = "ann") -> Wire:
    """Everything that the client gets."""
    return await desk.send(method, {"taskId": ident, "inputResponses": {"sure": accept("x")}}, who=who)


async def answers(desk: Desk, ident: str, who: str = "ann") -> list[Wire]:
    """Everything that the client gets, by each method."""
    return [await asked(desk, method, ident, who) for method in METHODS]


Turn = Callable[[Desk], None]


def other(agent: Agent) -> Turn:
    """The token is another caller's from now on."""

    def turn(desk: Desk) -> None:
        desk.callers["ann"] = agent

    return turn


# What makes Ann's task of the vault none of hers: she is somebody else by now, or it is hidden, or gone.
GONE: Final[dict[str, Turn]] = {
    "another agent": other(Agent("bob", roles=["staff"], scopes=SCOPES)),
    "the same name for a person": other(Human("eve", roles=["staff"]).delegate("ann", scopes=SCOPES)),
    "the same name in an organisation": other(Agent("ann", roles=["staff"], scopes=SCOPES, org="acme")),
    "the role is lost": other(Agent("ann", roles=["clerk"], scopes=SCOPES)),
    "the role and the scope are lost": other(Agent("ann", scopes=[])),
    "the time is over": lambda desk: desk.passes(60),
}


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("turn", GONE.values(), ids=GONE.keys())
def test_a_task_that_is_not_ones_own_is_unknown_byte_for_byte(turn: Turn, ended: bool) -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("vault")
        if ended:
            desk.release["x"].set()
            await desk.until(ident, "completed")
        turn(desk)
        told = await answers(desk, ident)
        assert told == await answers(desk, UNKNOWN)
        assert {wire[0]["status"] for wire in told} == {200}
        assert len({body_of(wire) for wire in told}) == 1
        error = json.loads(body_of(told[0]))["error"]
        assert (error["code"], error["data"]["code"]) == (-32602, "X_MCP_TASK_UNKNOWN")

    run(doing, Desk(limits=TaskLimits(ttl_seconds=60, lease_seconds=90)))


@pytest.mark.parametrize(
    "ident", ["", " ", "x", "x" * 33, "x" * 10_000, "\u00fc" * 32, "a\x00" * 16, "../" * 11]
)
def test_an_id_that_cannot_be_one_is_unknown_like_any_other(ident: str) -> None:
    async def doing(desk: Desk) -> None:
        params: dict[str, Any] = {"taskId": ident, "inputResponses": {}}
        for method in METHODS:
            told = await desk.send(method, params, headers={"mcp-name": encoded(ident)})
            assert told == await asked(desk, method, UNKNOWN)

    run(doing)


def encoded(name: str) -> str:
    """A name as a header carries any text."""
    return f"=?base64?{b64encode(name.encode()).decode()}?="


def test_what_a_stranger_sends_changes_nothing() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("confirm")
        before = await desk.until(ident, "input_required")
        for who in ("bob", "clerk", "ann-for-eve"):
            assert await answers(desk, ident, who) == await answers(desk, UNKNOWN, who)
        assert await desk.get(ident) == before
        assert await desk.update(ident, {"sure": accept("mine")})
        assert "mine" in json.dumps(await desk.until(ident, "completed"))

    run(doing)


def test_a_task_comes_back_with_the_role() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("vault")
        other(Agent("ann", roles=["clerk"], scopes=SCOPES))(desk)
        assert (await desk.ask("tasks/get", {"taskId": ident}))["error"]["code"] == -32602
        other(STAFF)(desk)
        assert (await desk.get(ident))["status"] == "working"

    run(doing)


def test_without_the_scope_a_task_is_refused_as_its_call_is() -> None:
    """The caller sees the tool, so the refusal may name what is lacking; a stranger never gets there."""

    async def doing(desk: Desk) -> None:
        ident = await desk.begin("vault")
        other(Agent("ann", roles=["staff"], scopes=["desk:use"]))(desk)
        call = await desk.send("tools/call", {"name": "vault", "arguments": {}})
        assert call[0]["status"] == 403
        assert await answers(desk, ident) == [call, call, call]
        other(STAFF)(desk)
        assert (await desk.get(ident))["status"] == "working"

    run(doing)


def test_listening_to_tasks_that_are_not_ones_own_tells_nothing_of_them() -> None:
    async def doing(desk: Desk) -> None:
        theirs = [await desk.begin("vault", who="bob"), await desk.begin("vault", who="ann-for-eve")]
        streams: list[list[dict[str, Any]]] = []
        for idents in (theirs, [UNKNOWN, "y" * 32], ["", "z" * 500]):
            listening = asyncio.ensure_future(
                desk.send("subscriptions/listen", {"notifications": {"taskIds": idents}})
            )
            await asyncio.sleep(0.02)
            await desk.cancel(theirs[0], who="bob")
            await asyncio.sleep(0.02)
            desk.app.notify.close()
            streams.append(events_of(await listening))
            desk.app.notify.reopen()
        assert streams[0] == streams[1] == streams[2]
        assert streams[0][0]["params"]["notifications"] == {"taskIds": []}
        assert len(streams[0]) == 2  # acknowledged, and ended

    run(doing)


def test_a_listener_who_loses_the_role_is_told_no_more() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("vault")
        await within(lambda: "x" in desk.started)
        listening = asyncio.ensure_future(
            desk.send("subscriptions/listen", {"notifications": {"taskIds": [ident]}})
        )
        await asyncio.sleep(0.02)
        other(Agent("ann", roles=["clerk"], scopes=SCOPES))(desk)
        desk.release["x"].set()
        await asyncio.sleep(0.05)
        desk.app.notify.close()
        told = events_of(await listening)
        assert [each.get("method") for each in told] == [
            "notifications/subscriptions/acknowledged",
            "notifications/tasks",  # as it was when the stream began
            None,
        ]

    run(doing)


def test_the_operator_is_told_of_every_refused_look_and_of_no_id() -> None:
    async def doing(desk: Desk) -> None:
        ident = await desk.begin("vault", who="bob")
        desk.events.clear()
        await answers(desk, ident)
        looks = [each for each in desk.events if isinstance(each, TaskAsked)]
        assert [(each.asked, each.outcome, each.caller) for each in looks] == [
            ("look", "hidden", "ann"),
            ("answer", "hidden", "ann"),
            ("cancel", "hidden", "ann"),
        ]
        assert len(desk.events) == 3
        assert ident not in str(looks)

    run(doing)


SENT: Final[list[tuple[str, dict[str, Any]]]] = [
    ("server/discover", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "vault", "arguments": {}}),
    ("tasks/get", {"taskId": UNKNOWN}),
    ("tasks/cancel", {"taskId": UNKNOWN}),
]


def test_two_worlds_of_which_one_has_the_hidden_tool_tell_the_clerk_the_same() -> None:
    """Tasks of the vault run in one of them, and are none in the other."""

    async def seen(desk: Desk) -> list[Wire]:
        return [
            await desk.send(method, params, who="clerk", able=able)
            for able in (ABLE, {})
            for method, params in SENT
        ]

    async def with_it(desk: Desk) -> list[Wire]:
        await desk.begin("vault")
        await within(lambda: "x" in desk.started)
        return await seen(desk)

    class Without(Desk):
        """The same desk without a vault."""

        def tools(self) -> dict[str, Any]:
            return {name: each for name, each in super().tools().items() if name != "vault"}

        def scopes(self) -> dict[str, list[str]]:
            return {"desk:use": self.names()}

    assert run(with_it) == run(seen, Without())
