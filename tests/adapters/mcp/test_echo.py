"""What a caller's own words come back as: 512 characters of them at most, over every transport and revision.

The oracle is one rule: of a long run of `Q` that was sent, no answer holds more than 512, or it holds what it
must: the URI that was read, the filter that was acknowledged.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, Final

import pytest

from nonsuch import App, Context, group, prompt, resource, tool
from nonsuch.adapters.mcp.envelope import MAX_ECHOED_CHARS
from nonsuch.kernel.strict_json import Json

from ..edge.test_stdio import connected
from .live import LEGACY, MODERN, REVISIONS, Live, play, request
from .stage import CALLERS, stage

LONG: Final = "Q" * 200_000
RUN: Final = re.compile("Q+")


async def talks(ctx: Context[None]) -> str:
    await ctx.client.progress(1)
    return "done"


def words() -> str:
    return "words"


def app_of(**given: Any) -> App:
    return stage(
        talks,
        resources=[resource("a:b", "b", "B", words)],
        prompts=[prompt(words, name="p", description="P")],
        **given,
    )


def longest(messages: list[Any]) -> int:
    told = json.dumps(messages)
    return max((len(each) for each in RUN.findall(told)), default=0)


def test_the_bound_is_the_one_that_is_documented() -> None:
    assert MAX_ECHOED_CHARS == 512


# ids


IDS: Final[dict[str, tuple[object, bool]]] = {
    "512": ("Q" * 512, True),
    "513": ("Q" * 513, False),
    "512 of two bytes": ("é" * 512, True),
    "512 beyond the basic plane": ("\U0001f600" * 512, True),
    "513 beyond the basic plane": ("\U0001f600" * 513, False),
    "200,000": (LONG, False),
    "512 digits": (10**512 - 1, True),
    "513 digits": (10**512, False),
    "513 digits below nothing": (-(10**512), False),
    "nothing": (0, True),
    "the empty text": ("", True),
}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("what", IDS)
def test_an_id_comes_back_or_is_refused_by_name(revision: str, what: str) -> None:
    """An id that is not taken is not known, and so it is left out, or null where the revision has it so."""
    ident, taken = IDS[what]

    async def scene() -> None:
        stream = Live(app_of()).open(request(revision, "tools/list", ident=ident))
        (told,) = await stream.rest()
        if taken:
            assert (stream.status, told["id"]) == (200, ident)
            return
        assert (stream.status, told["error"]["code"]) == (400, -32600)
        assert told["error"]["data"]["cause"] == "`id` has more than 512 characters"
        assert ("id" in told) is (revision == "2025-06-18")
        assert told.get("id") is None
        assert longest([told]) == 0

    play(scene())


def test_an_answer_under_an_id_that_is_too_long_is_refused_too() -> None:
    async def scene() -> None:
        headers, _ = request(LEGACY[1], "x")
        body = json.dumps({"jsonrpc": "2.0", "id": LONG, "result": {}}).encode()
        (told,) = await Live(app_of()).ask((headers, body))
        assert told["error"]["data"]["code"] == "X_MCP_PROTOCOL"

    play(scene())


# progress tokens


TOKENS: Final = ("512", "513", "200,000", "512 digits", "513 digits", "nothing", "the empty text")


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("what", TOKENS)
def test_a_token_comes_back_or_is_refused_before_anything_runs(revision: str, what: str) -> None:
    token, taken = IDS[what]

    async def scene() -> None:
        live = Live(app_of())
        told = await live.ask(request(revision, "tools/call", name="t", meta={"progressToken": token}))
        if taken:
            assert told[0]["params"] == {"progressToken": token, "progress": 1.0}
            return
        (only,) = told
        assert (only["id"], only["error"]["code"]) == (1, -32602)
        assert only["error"]["data"]["cause"] == "`progressToken` has more than 512 characters"
        hidden = await live.ask(request(revision, "tools/call", name="gone", meta={"progressToken": token}))
        assert hidden == told, "whatever is called"

    play(scene())


# names, addresses, versions


SENT: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "a tool": ("tools/call", {"name": LONG}),
    "an argument": ("tools/call", {"name": "t", "arguments": {LONG: LONG}}),
    "a resource": ("resources/read", {"uri": "a:" + LONG}),
    "a prompt": ("prompts/get", {"name": LONG}),
    "a prompt's argument": ("prompts/get", {"name": "p", "arguments": {LONG: LONG}}),
    "a completion": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": LONG}, "argument": {"name": LONG, "value": LONG}},
    ),
    "a subscription": ("resources/subscribe", {"uri": LONG}),
    "a level": ("logging/setLevel", {"level": LONG}),
    "a cursor": ("tools/list", {"cursor": LONG}),
    "a method": (LONG, {}),
    "a state": ("tools/call", {"name": "t", "requestState": LONG}),
    "answers": ("tools/call", {"name": "t", "inputResponses": {LONG: LONG}}),
    "a filter": ("subscriptions/listen", {"notifications": {"resourceSubscriptions": [LONG]}}),
    "a task": ("tasks/get", {"taskId": LONG}),
    "a task to follow": ("subscriptions/listen", {"notifications": {"taskIds": [LONG]}}),
    "a version": ("initialize", {"protocolVersion": LONG, "clientInfo": {"name": LONG}, "capabilities": {}}),
    "a resource group": ("tools/call", {"name": "describe_resource", "arguments": {"resources": [LONG]}}),
    "an action": ("tools/call", {"name": "manage_resource", "arguments": {"resource": LONG, "action": LONG}}),
}


def behind_three() -> App:
    return stage(tools={"t": tool("T", talks, policy="a:b")}, surface="meta", groups={"g": group("G", ["t"])})


APPS: Final = {"flat": app_of(), "meta": behind_three()}


@pytest.mark.parametrize("surface", APPS)
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("what", SENT)
def test_a_long_word_comes_back_short(what: str, revision: str, surface: str) -> None:
    method, params = SENT[what]

    async def scene() -> None:
        sent = request(revision, method, **params)
        headers = [pair for pair in sent[0] if pair[0] != "mcp-name"]  # a server would take no such header
        if revision == MODERN and any(isinstance(params.get(key), str) for key in ("name", "uri", "taskId")):
            headers = sent[0]
        live = Live(APPS[surface])
        stream = live.open((headers, sent[1]))
        await stream.more()
        if not stream.ended:
            await stream.leave()
        assert longest(stream.messages()) <= 512

    play(scene())


OVER_STDIO: Final[dict[str, dict[str, Json]]] = {
    "an id": {"id": LONG, "method": "ping"},
    "a version": {
        "id": 1,
        "method": "tools/list",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": LONG,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        },
    },
    "a tool": {"id": 1, "method": "tools/call", "params": {"name": LONG}},
    "a cancelled request": {"method": "notifications/cancelled", "params": {"requestId": LONG}},
}


@pytest.mark.parametrize("what", OVER_STDIO)
def test_over_stdio_too(what: str) -> None:
    async def scene() -> None:
        async with connected(app_of(), CALLERS["t"], 2**20) as peer:
            peer.say(
                {"jsonrpc": "2.0", **OVER_STDIO[what]}, {"jsonrpc": "2.0", "id": "last", "method": "ping"}
            )
            await peer.answer("last")
            assert longest(peer.seen) <= 512

    asyncio.run(scene())


# what comes back whole


def test_the_resource_that_is_read_is_named_whole() -> None:
    """MCP, ReadResourceResult: its URI. No template takes one of more than 2,048 characters."""
    uri = "a:" + "Q" * 1_000

    async def scene() -> None:
        live = Live(stage(resources=[resource(uri, "b", "B", words)]))
        for revision in REVISIONS:
            told = await live.result(request(revision, "resources/read", uri=uri))
            assert told["contents"][0]["uri"] == uri

    play(scene())
