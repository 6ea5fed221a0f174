"""What a round leaves for the next is this server's word: for this caller, this request and this hour."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from pydantic import BaseModel

from nonsuch import Context, ListRoots, prompt, resource, tool

from .live import MODERN, Json, Live, play, request
from .questions import EVERYTHING, asker, call, plainly
from .stage import stage


async def opened() -> tuple[Live, str]:
    """A server, and the state of a round with it."""
    app, _ = asker("roots", state={"n": 1})
    live = Live(app)
    return live, (await live.result(call()))["requestState"]


async def taken(live: Live, state: object, caller: str = "t", **params: Any) -> bool:
    """Whether a state opens a round."""
    (told,) = await live.ask(call(caller=caller, requestState=state, **params))
    if "result" in told:
        return True
    cause = "`requestState` is none that this server gave for this very request within the last hour"
    data = {"code": "X_MCP_PROTOCOL", "cause": cause, "fix": "send the request again without `requestState`"}
    assert told["error"] == {"code": -32602, "message": cause, "data": data}
    return False


def test_every_byte_of_a_state_counts() -> None:
    async def scene() -> None:
        live, state = await opened()
        assert await taken(live, state)
        for at in range(0, len(state), 7):
            assert not await taken(live, state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1 :])
        others: list[Any] = ["-TAMPERED", "=", "\n", "A"]
        others = [*(state + each for each in others), state[:-1], " " + state, "", "x", 7, ["x"], True, {}]
        for other in others:
            assert not await taken(live, other)

    play(scene())


def test_a_state_is_text_and_null_is_none() -> None:
    async def scene() -> None:
        app, heard = asker("roots", state={"n": 1})
        await Live(app).result(call(requestState=None))
        assert heard == [None]

    play(scene())


@pytest.mark.parametrize("caller", ["other", "ann", "bot", "else"])
def test_a_state_is_its_callers(caller: str) -> None:
    async def scene() -> None:
        live, state = await opened()
        assert not await taken(live, state, caller)
        assert await taken(live, state, "t")

    play(scene())


def test_a_state_of_an_agent_for_one_person_is_not_one_of_the_same_agent_for_another() -> None:
    async def scene() -> None:
        app, _ = asker("roots", state={"n": 1})
        live = Live(app)
        state = (await live.result(call(caller="ann")))["requestState"]
        assert [await taken(live, state, each) for each in ("ann", "bob", "bot")] == [True, False, False]

    play(scene())


def test_a_state_outlives_a_new_token_of_its_caller() -> None:
    """What changes with a token, roles and scopes, is judged anew in each round."""

    async def scene() -> None:
        live, state = await opened()
        assert await taken(live, state, "same")

    play(scene())


class Given_(BaseModel):
    x: int = 0


def test_a_state_is_its_requests() -> None:
    async def ask(input: Given_, ctx: Context[None]) -> str:
        await ctx.client.ask({"roots": ListRoots()}, state={"n": 1})
        return "done"

    ask.__annotations__ = {"input": Given_, "ctx": Context[None], "return": str}

    async def scene() -> None:
        live = Live(
            stage(
                ask,
                tools={"u": tool("U", ask, policy="a:b")},
                resources=[resource("a:b", "b", "B", plainly), resource("a:c", "c", "C", plainly)],
                prompts=[prompt(plainly, description="P", name="t")],
            )
        )
        asked: list[tuple[str, Json]] = [
            ("tools/call", {"name": "t", "arguments": {"x": 1}}),
            ("tools/call", {"name": "t", "arguments": {"x": 2}}),
            ("tools/call", {"name": "t", "arguments": {}}),
            ("tools/call", {"name": "t", "arguments": {"x": 1.0}}),
            ("tools/call", {"name": "u", "arguments": {"x": 1}}),
            ("prompts/get", {"name": "t", "arguments": {}}),
            ("resources/read", {"uri": "a:b"}),
            ("resources/read", {"uri": "a:c"}),
        ]
        for at, (method, params) in enumerate(asked):
            first = await live.result(request(MODERN, method, capabilities=EVERYTHING, **params))
            held: Json = {"requestState": first["requestState"], "capabilities": EVERYTHING}
            told = [await live.ask(request(MODERN, other, **held, **more)) for other, more in asked]
            assert ["result" in each for (each,) in told] == [each == at for each in range(len(asked))]

    play(scene())


def test_a_state_is_taken_for_an_hour() -> None:
    async def scene() -> None:
        live, state = await opened()
        live.later(3_600)
        assert await taken(live, state)
        live.later(1)
        assert not await taken(live, state)

    play(scene())


def test_a_state_of_another_process_is_taken_where_both_share_a_secret() -> None:
    async def scene() -> None:
        for secrets, shared in (
            ((b"k" * 32, b"k" * 32), True),
            ((b"k" * 32, b"l" * 32), False),
            ((None, None), False),
        ):
            one, two = (Live(stage(plainly, secret=each)) for each in secrets)
            state = (await one.result(call()))["requestState"]
            assert await taken(two, state) is shared

    play(scene())


def test_a_state_of_another_server_with_the_same_secret_is_not_taken() -> None:
    async def scene() -> None:
        one, two = (Live(stage(plainly, secret=b"k" * 32, name=name)) for name in ("one", "two"))
        state = (await one.result(call()))["requestState"]
        assert [await taken(each, state) for each in (one, two)] == [True, False]

    play(scene())


def test_a_state_tells_nothing_of_the_key_and_is_no_plain_json() -> None:
    async def scene() -> None:
        _, state = await opened()
        raw = base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))
        assert (
            raw[32:] == json.dumps({"state": {"n": 1}, "until": 1785243600.0}, separators=(",", ":")).encode()
        )

    play(scene())
