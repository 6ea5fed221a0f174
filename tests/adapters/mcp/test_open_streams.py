"""What one caller may keep open: a bounded number of streams, given back whatever ends them.

A refusal counts the caller's own streams and nothing else: it is the same wherever something is hidden.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nonsuch import Context, ListRoots, StreamLimits, resource
from nonsuch.kernel.audit import Event, RateLimited

from ..edge.talkers import message
from ..edge.test_stdio import Peer, connected
from .live import BOTH, LEGACY, MODERN, Json, Live, Stream, play, request, response
from .questions import answered
from .stage import CALLERS, stage
from .test_listen import ALL, KEY, Board, words

CAUSE = "as many streams are open as may wait at once, yours or all: subscriptions, and calls that ask"
FULL = {
    "code": -32600,
    "message": CAUSE,
    "data": {
        "code": "X_MCP_STREAMS_FULL",
        "cause": CAUSE,
        "fix": "close a stream that you no longer read, or wait until a call of yours is answered",
    },
}


def listening(caller: str = "t", ident: object = 1, **wanted: Any) -> Any:
    return request(MODERN, "subscriptions/listen", caller, ident=ident, notifications=wanted or ALL)


async def refused(live: Live, caller: str = "t", **wanted: Any) -> Json | None:
    """The whole refusal of a stream, or nothing once it was opened and left again."""
    stream = live.open(listening(caller, **wanted))
    told = await stream.message()
    if "method" in told:
        await stream.silence()
        await stream.leave()
        return None
    assert stream.status == 200
    await stream.rest()
    error: Json = told["error"]
    return error


async def close(board: Board, *streams: Stream) -> None:
    board.app.notify.close()
    for stream in streams:
        await stream.rest()


def test_a_caller_has_so_many_streams_and_no_more() -> None:
    async def scene() -> None:
        board = Board(streams=StreamLimits(per_principal=3))
        streams = [await board.listen(**ALL) for _ in range(3)]
        assert await refused(board.live) == FULL
        others = [await board.listen("other", **ALL)]
        assert await refused(board.live) == FULL, "a refusal takes nothing"
        assert await refused(board.live, "other") is None
        board.show("tool")
        for stream in (*streams, *others):
            assert (await stream.message())["method"].endswith("tools/list_changed")
        await close(board, *streams, *others)

    play(scene())


def test_all_callers_together_have_so_many_and_no_more() -> None:
    async def scene() -> None:
        board = Board(streams=StreamLimits(in_all=2))
        streams = [await board.listen("t", **ALL), await board.listen("other", **ALL)]
        for caller in ("t", "other", "same", "ann"):
            assert await refused(board.live, caller) == FULL
        await streams[1].silence()
        await streams[1].leave()
        assert await refused(board.live, "ann") is None
        await close(board, streams[0])

    play(scene())


def test_a_hundred_are_the_default() -> None:
    async def scene() -> None:
        board = Board()
        streams = [await board.listen(ident=at, **ALL) for at in range(100)]
        assert await refused(board.live) == FULL
        await close(board, *streams)

    play(scene())


def test_an_agent_has_its_own_for_each_person_it_acts_for() -> None:
    async def scene() -> None:
        board = Board(streams=StreamLimits(per_principal=1))
        streams = [await board.listen(caller, **ALL) for caller in ("ann", "bob", "bot", "else", "t")]
        assert [await refused(board.live, caller) for caller in ("ann", "bob", "bot", "else", "t")] == [
            FULL
        ] * 5
        await close(board, *streams)

    play(scene())


def test_as_many_as_there_may_be_of_a_storm() -> None:
    async def scene() -> None:
        board = Board(streams=StreamLimits(per_principal=5))
        streams = [board.live.open(listening(ident=at)) for at in range(40)]
        first = [await stream.message() for stream in streams]
        assert sum("method" in told for told in first) == 5
        assert all(told["error"] == FULL for told in first if "error" in told)
        await close(board, *streams)

    play(scene())


async def left(board: Board) -> None:
    """The client goes away."""
    stream = await board.listen(**ALL)
    await stream.silence(0.1)
    await stream.leave()


async def left_at_once(board: Board) -> None:
    stream = board.live.open(listening())
    await stream.leave()


async def revoked(board: Board) -> None:
    """Its token is nobody's any more."""
    stream, held = await board.listen(**ALL), board.tokens["t"]
    del board.tokens["t"]
    board.app.notify.lists_changed()
    await stream.rest()
    board.tokens["t"] = held


async def server_cancelled(board: Board) -> None:
    stream = await board.listen(**ALL)
    stream.task.cancel()
    await asyncio.gather(stream.task, return_exceptions=True)


async def malformed(board: Board) -> None:
    """What is refused for its shape opened nothing."""
    wrong: list[Json] = [{"toolsListChanged": 1}, {"resourceSubscriptions": "a"}, {"taskIds": [7]}]
    for wanted in wrong:
        assert "X_MCP_PROTOCOL" in json.dumps(await board.live.ask(listening("t", 1, **wanted)))
    accept = request(MODERN, "subscriptions/listen", accept="application/json", notifications=ALL)
    assert "X_MCP_PROTOCOL" in json.dumps(await board.live.ask(accept))


async def unable(board: Board) -> None:
    """So did what its client did not declare."""
    told = await board.live.ask(listening(taskIds=["x" * 32]))
    assert told[0]["error"]["code"] == -32021


@pytest.mark.parametrize("ends", [left, left_at_once, revoked, server_cancelled, malformed, unable])
def test_whatever_ends_a_stream_gives_it_back(ends: Any) -> None:
    async def scene() -> None:
        board = Board(streams=StreamLimits(per_principal=1))
        for _ in range(3):
            await ends(board)
            assert await refused(board.live) is None
        board.app.notify.close()

    play(scene())


def test_a_server_that_stops_gives_all_of_them_back() -> None:
    async def scene() -> None:
        board = Board(streams=StreamLimits(per_principal=1))
        for _ in range(3):
            board.app.notify.reopen()
            await close(board, await board.listen(**ALL))

    play(scene())


def test_a_refusal_is_audited_and_is_the_same_whatever_is_hidden() -> None:
    async def scene() -> None:
        events: list[Event] = []
        board = Board(streams=StreamLimits(per_principal=1), on_audit=events.append)
        stream = await board.listen(resourceSubscriptions=["a:always"])
        for uri in ("a:always", "a:resource", "b:1", "no:thing"):
            assert await refused(board.live, resourceSubscriptions=[uri]) == FULL
            assert await refused(board.live, toolsListChanged=True) == FULL
        assert set(events) == {RateLimited("subscriptions/listen", "X_MCP_STREAMS_FULL", "a", "agent")}
        await close(board, stream)

    play(scene())


# questions count too


async def asks(ctx: Context[None]) -> str:
    await ctx.client.ask({"roots": ListRoots()})
    return "asked"


def test_a_call_that_asks_is_a_stream_of_its_callers_while_it_waits() -> None:
    async def scene() -> None:
        live = Live(stage(asks, streams=StreamLimits(per_principal=1)))
        stream = live.open(request(LEGACY[1], "tools/call", name="t"))
        question = await stream.message()
        assert await refused(live) == FULL
        (told,) = await live.ask(request(LEGACY[0], "tools/call", name="t"))
        assert told["result"]["isError"] is True
        assert told["result"]["content"][0]["text"].startswith("X_MCP_STREAMS_FULL: ")
        await answered(live, response(LEGACY[1], question["id"], {"roots": []}))
        assert (await stream.rest())[-1]["result"]["content"][0]["text"] == "asked"
        assert await refused(live) is None
        live.app.notify.close()

    play(scene())


# what one stream tells of


@pytest.mark.parametrize(("count", "taken"), [(2, True), (3, False)])
def test_a_stream_tells_of_as_many_resources_as_the_app_says(count: int, taken: bool) -> None:
    async def scene() -> None:
        board = Board(streams=StreamLimits(resources=2))
        told = await refused(board.live, resourceSubscriptions=[f"a:{at}" for at in range(count)])
        assert (
            told is None if taken else told is not None and told["data"]["code"] == "X_MCP_SUBSCRIPTIONS_FULL"
        )

    play(scene())


@pytest.mark.parametrize(("size", "taken"), [(2_048, True), (2_049, False)])
def test_a_uri_that_no_resource_has_is_not_kept(size: int, taken: bool) -> None:
    """Templates take no longer one; who listens for it would wait in vain, and be sent it back."""

    async def scene() -> None:
        live, uri = Live(stage(words)), "a:" + "x" * (size - 2)
        assert (await refused(live, resourceSubscriptions=[uri]) is None) is taken
        for revision in LEGACY:
            (told,) = await live.ask(request(revision, "resources/subscribe", accept=BOTH, uri=uri))
            assert ("result" in told) is taken

    play(scene())


# over stdio


def talked(work: Callable[[Peer], Awaitable[None]], **given: Any) -> None:
    async def main() -> None:
        app = stage(asks, resources=[resource("a:b", "b", "B", words)], **given)
        async with asyncio.timeout(20), connected(app, CALLERS["t"], 100_000) as peer:
            await work(peer)

    asyncio.run(main())


def test_over_stdio_a_stream_is_given_back_when_its_request_is_cancelled() -> None:
    async def work(peer: Peer) -> None:
        for ident in ("one", "two"):
            listen = {"notifications": {"toolsListChanged": True}}
            peer.say(message("subscriptions/listen", listen, ident=ident, modern=True))
            assert (await peer.until(lambda told: "method" in told))["params"]["_meta"] == {KEY: ident}
            refused = await peer.ask(message("subscriptions/listen", listen, ident="more", modern=True))
            assert refused["error"] == FULL
            peer.say(message("notifications/cancelled", {"requestId": ident}, ident=None))

    talked(work, streams=StreamLimits(per_principal=1))


def test_over_stdio_a_connection_is_subscribed_to_so_many_resources_and_says_when_it_is_not() -> None:
    async def work(peer: Peer) -> None:
        await peer.initialize()

        async def full(method: str, uri: str) -> bool:
            told = await peer.ask(message(method, {"uri": uri}))
            if "result" in told:
                return False
            assert (told["error"]["code"], told["error"]["data"]["code"]) == (
                -32602,
                "X_MCP_SUBSCRIPTIONS_FULL",
            )
            return True

        assert [await full("resources/subscribe", uri) for uri in ("a:b", "a:c", "a:b", "a:d")] == [
            False,
            False,
            False,
            True,
        ]
        assert not await full("resources/unsubscribe", "a:c")
        assert not await full("resources/subscribe", "a:d")
        assert await full("resources/subscribe", "h:hidden"), "whatever is there"

    talked(work, streams=StreamLimits(resources=2))
