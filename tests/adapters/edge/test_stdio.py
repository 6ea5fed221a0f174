"""MCP over two descriptors: both eras on one channel, requests cancelled by name, lines within bounds."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch import Agent, Principal
from nonsuch.adapters.edge import pipes, stdio
from nonsuch.adapters.edge.run import utc_now
from nonsuch.adapters.edge.stdio import Served
from nonsuch.adapters.mcp.connection import after
from nonsuch.adapters.mcp.envelope import Message
from nonsuch.adapters.mcp.lines import Lines
from nonsuch.adapters.mcp.revisions import LATEST_LEGACY, MODERN
from nonsuch.adapters.wire import Connection
from nonsuch.kernel.audit import ToolCall

from ..mcp.press import DESCRIBED, PRINCIPALS, press
from ..mcp.vectors import Case, cases_of
from ..mcp.wire import sans_io
from .talkers import CLERK, LEGACY, PERSON, VISITOR, Desk, call, message

PATIENCE: Final = 10
LIMIT: Final = 5_000
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"


@dataclass
class Peer:
    """The client's end: writes lines, keeps every message that comes, and finds them by what they are."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    stop: asyncio.Event
    seen: list[Any] = field(default_factory=list[Any])

    def say(self, *told: dict[str, Any] | bytes) -> None:
        """Write lines."""
        for each in told:
            self.writer.write(each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n")

    async def next(self) -> Any:
        """Read one message; nothing at the end."""
        line = await asyncio.wait_for(self.reader.readline(), PATIENCE)
        if not line:
            return None
        assert line.endswith(b"\n")
        assert len(line.decode().splitlines()) == 1, "some readers split at every line end there is"
        self.seen.append(json.loads(line))
        return self.seen[-1]

    async def until(self, wanted: Callable[[Any], bool]) -> Any:
        """Read until a message is the wanted one."""
        while not wanted(told := await self.next()):
            assert told is not None, "the connection ended before"
        return told

    async def answer(self, ident: object) -> Any:
        """Read until the answer to a request."""
        return await self.until(lambda told: told.get("id") == ident and "method" not in told)

    async def ask(self, told: dict[str, Any]) -> Any:
        """Say, and read until the answer."""
        self.say(told)
        return await self.answer(told["id"])

    async def initialize(self, revision: str = LEGACY, **capabilities: Any) -> Any:
        """Do as clients of the older revisions do first."""
        given = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {}}
        told = await self.ask(message("initialize", given, ident="init"))
        self.say(message("notifications/initialized", ident=None))
        assert (await self.ask(message("ping", ident="pong")))["result"] == {}
        return told["result"]

    def end(self) -> None:
        """Close the client's side of it."""
        self.writer.write_eof()

    async def rest(self) -> list[Any]:
        """Read to the end."""
        return [each async for each in self._rest()]

    async def _rest(self) -> AsyncGenerator[Any]:
        while (told := await self.next()) is not None:
            yield told


@asynccontextmanager
async def connected(app: Any, caller: Principal = CLERK, limit: int = LIMIT) -> AsyncGenerator[Peer]:
    """Serve one end of a pair of sockets, and give the other."""
    ours, theirs = socket.socketpair()
    stop = asyncio.Event()
    served = asyncio.create_task(
        Served(app, caller, utc_now, limit).run(theirs.fileno(), theirs.fileno(), stop)
    )
    served.add_done_callback(lambda _: hang_up(theirs))
    reader, writer = await asyncio.open_connection(sock=ours, limit=2**24)
    try:
        yield Peer(reader, writer, stop)
    finally:
        writer.close()
        await writer.wait_closed()
        await asyncio.wait_for(served, PATIENCE)


def hang_up(end: socket.socket) -> None:
    """Close, as the end of a process does: a read that is under way ends too."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def talk(
    work: Callable[[Peer, Desk], Coroutine[Any, Any, None]],
    caller: Principal = CLERK,
    *,
    limit: int = LIMIT,
    **given: Any,
) -> Desk:
    """Run a conversation with the talkers' app."""

    async def main() -> Desk:
        desk = Desk()
        desk.app = desk.build(**given)
        async with connected(desk.app, caller, limit) as peer:
            await work(peer, desk)
        return desk

    return asyncio.run(main())


def text(answer: Any) -> str:
    told: str = answer["result"]["content"][0]["text"]
    return told


async def until(done: Callable[[], bool]) -> None:
    """Wait for something that is not sent."""
    async with asyncio.timeout(PATIENCE):
        while not done():  # noqa: ASYNC110  (what it waits for is other tasks' doing)
            await asyncio.sleep(0.005)


# Lines

PIECES: Final = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\n\n", b" ", b"\r\n", b"x" * 7]), max_size=12)


@given(pieces=PIECES, cuts=st.lists(st.integers(0, 60), max_size=6), limit=st.integers(1, 9))
def test_lines_are_those_of_the_whole_however_it_arrives(
    pieces: list[bytes], cuts: list[int], limit: int
) -> None:
    whole = b"".join(pieces)
    at = sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})
    lines = Lines(limit)
    seen: list[bytes | None] = []
    for start, end in zip(at, [*at[1:], len(whole)], strict=True):
        seen += lines.feed(whole[start:end])
    seen += lines.end()
    plain = [None if len(each) > limit else each for each in whole.split(b"\n")]
    assert seen == [each for each in plain if each is None or each.strip()]


def test_of_a_line_that_is_too_long_nothing_is_kept() -> None:
    lines = Lines(10)
    told = [list(lines.feed(b"x" * 8)) for _ in range(100)]
    assert told == [[], [None], *[[]] * 98]
    assert lines._pieces == []  # pyright: ignore[reportPrivateUsage]
    assert list(lines.feed(b"\nok\n")) == [b"ok"]


# The same answers as over HTTP


def spoken(case: Case) -> bool:
    """Whether a vector is a message of a caller that was let in, and about no header."""
    return case.status in (200, 404) and case.request.method == "POST" and case.method is not None


SPOKEN: Final = [case for case in cases_of("mcp_results.json") if spoken(case)]


@pytest.mark.parametrize("modern", [True, False])
def test_every_result_is_the_one_that_http_answers(modern: bool) -> None:
    """The revision of each vector is what the connection negotiated; its body is what HTTP is sent."""
    app = press()
    cases = [case for case in SPOKEN if (case.revision == "2026-07-28") == modern]
    assert len(cases) > 10

    async def main(token: str, revision: str | None) -> int:
        mine = [case for case in cases if case.revision == revision and token_of(case) == token]
        async with connected(app, PRINCIPALS[token]) as peer:
            if not modern:
                await peer.initialize(str(revision))
            for case in mine:
                peer.say(b"".join(case.request.body.splitlines()) + b"\n")
                told = await peer.next()
                assert told == json.loads(sans_io(app, case.request).body), case.name
        return len(mine)

    tokens = {(token_of(case), case.revision) for case in cases}
    asked = sum(asyncio.run(main(*each)) for each in sorted(tokens, key=str))
    assert asked == len(cases)
    assert DESCRIBED["principals"].keys() >= {token for token, _ in tokens}


def token_of(case: Case) -> str:
    return dict(case.request.headers)["Authorization"].partition(" ")[2]


# Eras


def test_the_newest_revision_needs_no_header() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        told = await peer.ask(message("server/discover", modern=True))
        assert told["result"]["supportedVersions"] == ["2026-07-28"]
        told = await peer.ask(call("hello", {"name": "Ann"}, ident=2, modern=True))
        assert (text(told), told["result"]["resultType"]) == ("hello Ann from the desk by clerk", "complete")
        told = await peer.ask(message("resources/read", {"uri": "desk://note"}, modern=True))
        assert told["result"]["contents"][0]["text"] == "buy ink"
        told = await peer.ask(call("gone", modern=True))
        assert told["error"]["code"] == -32602
        told = await peer.ask(call("regional", {"region": "north"}, modern=True))
        assert text(told) == "north", "the tool's header has nowhere to be"

    talk(work)


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_an_older_revision_is_remembered_from_its_initialize(revision: str) -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        assert (await peer.initialize(revision))["protocolVersion"] == revision
        told = await peer.ask(call("gone"))
        assert (told["error"]["code"], "resultType" in told) == (-32601, False)
        peer.say(b"nonsense\n")
        told = await peer.next()
        assert (told["error"]["code"], told.get("id", "no id")) == (
            -32700,
            None if revision == "2025-06-18" else "no id",
        )

    talk(work)


def test_both_eras_may_be_spoken_on_one_connection() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        await peer.initialize()
        assert "resultType" in (await peer.ask(message("tools/list", ident=2, modern=True)))["result"]
        assert "resultType" not in (await peer.ask(message("tools/list", ident=3)))["result"]
        told = await peer.ask(message("server/discover", ident=4))
        assert told["error"]["code"] == -32602  # of the newest revision, and its `_meta` is missing
        told = await peer.ask(message("subscriptions/listen", ident=5))
        assert told["error"]["code"] == -32601

    talk(work)


def test_a_version_that_is_not_served_is_told_which_ones_are() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        told = message("tools/list", modern=True)
        told["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"
        answer = await peer.ask(told)
        assert answer["error"]["code"] == -32022
        assert answer["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}

    talk(work)


# Who calls


def test_a_scope_that_the_caller_lacks_is_refused_in_the_body() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        for ident, modern in enumerate((True, False)):
            told = await peer.ask(call("hello", {"name": "x"}, ident=ident, modern=modern))
            data = told["error"]["data"]
            assert (told["error"]["code"], data["code"], data["scope"]) == (
                -32600,
                "X_MCP_SCOPE_DENIED",
                "desk",
            )

    talk(work, VISITOR)


def test_the_caller_may_be_a_person() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        assert text(await peer.ask(call("hello", {"name": "x"}))) == "hello x from the desk by person"

    desk = talk(work, PERSON)
    assert desk.events == [ToolCall("hello", "ok", "mcp", "person", "human")]


def test_no_token_and_no_resolver_are_needed() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        assert (await peer.ask(message("ping")))["result"] == {}

    assert talk(work, resolve_token=None).lifespans == ["entered", "left"]


def test_nothing_is_metered() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        for at in range(400):
            assert "result" in await peer.ask(call("hello", {"name": "x"}, ident=at))

    talk(work)


# Many at once


def test_requests_run_beside_each_other_and_are_answered_as_they_end() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        peer.say(call("wait", ident="slow"), *(call("hello", {"name": "x"}, ident=at) for at in range(50)))
        for _ in range(50):
            assert (await peer.next())["id"] != "slow"
        desk.released.set()
        assert text(await peer.answer("slow")) == "released"

    desk = talk(work)
    assert len(desk.events) == 51


def test_progress_and_log_lines_come_before_their_answer() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        await peer.initialize()
        told = call("count", {"to": 2}, ident=7, progressToken="p")
        assert text(await peer.ask(told)) == "2"
        methods = [each.get("method", each.get("id")) for each in peer.seen[-5:]]
        assert methods == ["notifications/progress", "notifications/message"] * 2 + [7]
        assert await peer.ask(message("logging/setLevel", {"level": "error"}, ident=8))
        await peer.ask(call("count", {"to": 2}, ident=9))
        assert [each.get("id") for each in peer.seen[-2:]] == [8, 9]
        await peer.ask(call("count", {"to": 2}, ident=10, modern=True))
        assert [each.get("id") for each in peer.seen[-2:]] == [9, 10]
        await peer.ask(call("plainly", {"to": 2}, ident=11, progressToken=0))
        assert [each.get("params", {}).get("progress") for each in peer.seen[-3:]] == [0, 1, None]

    talk(work)


# Cancelled


@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize("ident", [0, 5, "5", ""], ids=repr)
def test_a_cancelled_request_stops_and_is_not_answered(modern: bool, ident: object) -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        if not modern:
            await peer.initialize()
        desk.stubborn = True
        level: dict[str, Any] = {"io.modelcontextprotocol/logLevel": "debug"} if modern else {}
        peer.say(call("wait", ident=ident, modern=modern, **level))
        await until(desk.started.is_set)
        cancelled = {"requestId": ident, "reason": "enough"}
        peer.say(message("notifications/cancelled", cancelled, ident=None))
        await until(desk.stopped.is_set)
        await peer.ask(call("hello", {"name": "x"}, ident="after", modern=modern))
        assert [each.get("id") for each in peer.seen] == [*(() if modern else ("init", "pong")), "after"]

    code = "X_INTERRUPTED"
    assert talk(work).events[0] == ToolCall("wait", "failed", "mcp", "clerk", "agent", code=code)


def test_what_a_thread_says_after_its_request_was_cancelled_is_not_sent() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        peer.say(call("plainly", {"to": 3_000}, ident=1, progressToken=0))
        await peer.next()
        peer.say(message("notifications/cancelled", {"requestId": 1}, ident=None), message("ping", ident=2))
        await peer.answer(2)
        await until(desk.ended.is_set)
        await peer.ask(call("hello", {"name": "x"}, ident=3))
        assert [each.get("id") for each in peer.seen[-2:]] == [2, 3]

    talk(work)


@pytest.mark.parametrize("ident", ["5", True, None, [5], 6, 5.0], ids=repr)
def test_a_cancellation_that_names_no_request_is_ignored(ident: object) -> None:
    """`5` is not `"5"`, and `True` is not 1."""

    async def work(peer: Peer, desk: Desk) -> None:
        peer.say(call("wait", ident=5), call("wait", ident=1))
        await until(desk.started.is_set)
        peer.say(message("notifications/cancelled", {"requestId": ident}, ident=None))
        peer.say(message("notifications/cancelled", ident=None))
        await peer.ask(message("ping", ident=2))
        desk.released.set()
        assert {(await peer.next())["id"] for _ in range(2)} == {5, 1}
        assert not desk.stopped.is_set()

    talk(work)


# Questions


@pytest.mark.parametrize("capabilities", [{"elicitation": {}}, {"elicitation": {"form": {}}}])
def test_a_client_that_says_so_is_asked_and_answers(capabilities: Any) -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        await peer.initialize(**capabilities)
        peer.say(call("ask", ident=3))
        question = await peer.until(lambda told: told.get("method") == "elicitation/create")
        result = {"action": "accept", "content": {"name": "Ann"}}
        peer.say({"jsonrpc": "2.0", "id": question["id"], "result": result})
        assert text(await peer.answer(3)) == '{"name": "Ann"}'

    talk(work)


@pytest.mark.parametrize(
    "capabilities", [{}, {"roots": {}}, {"elicitation": {"url": {}}}, {"elicitation": []}]
)
def test_a_client_that_does_not_say_so_is_not_asked(capabilities: Any) -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        await peer.initialize(**capabilities)
        told = await peer.ask(call("ask", ident=3))
        assert (told["result"]["isError"], "X_MCP_CLIENT_SILENT" in text(told)) == (True, True)
        assert all("method" not in each for each in peer.seen)

    talk(work)


def test_an_answer_that_is_an_error_answers_nothing() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        await peer.initialize(roots={})
        peer.say(call("where", ident=3))
        question = await peer.until(lambda told: told.get("method") == "roots/list")
        peer.say({"jsonrpc": "2.0", "id": "of nobody", "result": {}})
        error = {"code": -1, "message": "no"}
        peer.say({"jsonrpc": "2.0", "id": question["id"], "error": error})
        assert "X_MCP_CLIENT_SILENT" in text(await peer.answer(3))

    talk(work)


def test_in_the_newest_revision_no_request_is_ever_sent() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        await peer.initialize(elicitation={})
        capabilities: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        told = await peer.ask(call("ask", ident=3, modern=True, **capabilities))
        assert told["result"]["resultType"] == "input_required"
        request = call("ask", ident=4, modern=True, **capabilities)
        request["params"]["inputResponses"] = {"name": {"action": "accept", "content": {"name": "Ann"}}}
        assert text(await peer.ask(request)) == '{"name": "Ann"}'
        assert all("method" not in each for each in peer.seen)

    talk(work)


# What changes


def changes(peer: Peer) -> list[tuple[str, Any]]:
    return [
        (each["method"].removeprefix("notifications/"), each["params"].get("_meta", {}).get(SUBSCRIPTION))
        for each in peer.seen
        if "method" in each
    ]


def test_subscriptions_share_the_channel_and_end_one_by_one() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        lists, note = {"toolsListChanged": True}, {"resourceSubscriptions": ["desk://note", "desk://gone"]}
        for ident, wanted in (("a", lists), (1, note)):
            peer.say(message("subscriptions/listen", {"notifications": wanted}, ident=ident, modern=True))
            told = await peer.next()
            assert told["params"] == {"_meta": {SUBSCRIPTION: ident}, "notifications": wanted}
        await peer.ask(call("toggle", ident="t", modern=True))
        await until(lambda: True)
        while len(changes(peer)) < 4:
            await peer.next()
        assert sorted(changes(peer)[2:], key=str) == [("resources/updated", 1), ("tools/list_changed", "a")]
        peer.say(message("notifications/cancelled", {"requestId": "a"}, ident=None))
        await peer.ask(call("toggle", ident="u", modern=True))
        while len(changes(peer)) < 5:
            await peer.next()
        assert changes(peer)[4:] == [("resources/updated", 1)]
        peer.end()
        *_, last = await peer.rest()
        assert (last["id"], last["result"]["resultType"]) == (1, "complete")
        assert all(each.get("id") != "a" for each in peer.seen)

    talk(work)


def test_an_older_client_is_told_once_it_is_ready_and_of_what_it_subscribed_to() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        await peer.initialize()
        for ident, uri in enumerate(("desk://note", "desk://gone")):
            told = await peer.ask(message("resources/subscribe", {"uri": uri}, ident=ident))
            assert told["result"] == {}
        desk.app.notify.resource_updated("desk://gone")
        await peer.ask(call("toggle", ident="t"))
        while len(changes(peer)) < 2:
            await peer.next()
        assert changes(peer) == [("tools/list_changed", None), ("resources/updated", None)]
        assert peer.seen[-1]["params"] == {"uri": "desk://note"} or peer.seen[-2]["params"] == {
            "uri": "desk://note"
        }
        await peer.ask(message("resources/unsubscribe", {"uri": "desk://note"}, ident="n"))
        await peer.ask(call("toggle", ident="u"))
        while len(changes(peer)) < 3:
            await peer.next()
        await peer.ask(message("ping", ident="v"))
        assert changes(peer)[2:] == [("tools/list_changed", None)]

    talk(work)


def test_who_said_nothing_of_being_ready_is_told_nothing() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        await peer.ask(message("initialize", {"protocolVersion": LEGACY, "capabilities": {}}))
        await peer.ask(message("resources/subscribe", {"uri": "desk://note"}, ident=2))
        await peer.ask(call("toggle", ident=3))
        await peer.ask(message("ping", ident=4))
        assert changes(peer) == []

    talk(work)


def test_a_change_of_what_is_hidden_is_none() -> None:
    """The oracle is the list itself: what a person is served does not change with what agents see."""

    async def work(peer: Peer, desk: Desk) -> None:
        await peer.initialize()
        before = await peer.ask(message("tools/list", ident=1))
        desk.app.notify.lists_changed()
        desk.app.notify.resource_updated("desk://other")
        await peer.ask(message("ping", ident=2))
        after = await peer.ask(message("tools/list", ident=1))
        assert (after, changes(peer)) == (before, [])

    talk(work)


def said(method: str, **params: Any) -> Message:
    return Message(1, method, params, LATEST_LEGACY)


@pytest.mark.parametrize(
    ("told", "known"),
    [
        (said("initialize", protocolVersion=LEGACY, capabilities={"a": 1}), Connection(LEGACY, {"a": 1})),
        (said("initialize", protocolVersion="2025-06-18", capabilities={}), Connection("2025-06-18")),
        (said("initialize", protocolVersion="1999-01-01", capabilities={}), Connection(LEGACY)),
        (said("initialize", protocolVersion=LEGACY), Connection()),
        (said("initialize", protocolVersion=LEGACY, capabilities=[]), Connection()),
        (said("logging/setLevel", level="error"), Connection(level="error")),
        (said("logging/setLevel", level="loud"), Connection()),
        (said("resources/subscribe", uri="x:y"), Connection(uris=frozenset({"x:y"}))),
        (said("resources/subscribe", uri=7), Connection()),
        (said("resources/unsubscribe", uri="x:y"), Connection()),
        (Message(1, "resources/subscribe", {"uri": "x:y"}, MODERN), Connection()),
    ],
)
def test_what_a_connection_remembers(told: Message, known: Connection) -> None:
    assert after(Connection(), told) == known


def test_a_connection_remembers_a_bounded_number_of_subscriptions() -> None:
    known = Connection()
    for at in range(1_200):
        known = after(known, said("resources/subscribe", uri=f"x:{at}"))
    assert len(known.uris) == 1_000


# Lines that are no messages


def test_the_limit_of_a_line_is_not_that_of_a_body() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        assert "result" in await peer.ask(call("hello", {"name": "x" * 1_000}))

    talk(work, body_limit_bytes=500)


@pytest.mark.parametrize("pieces", [1, 7, 100_000])
def test_a_line_that_is_too_long_is_refused_once_and_skipped(pieces: int) -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        sent = b"x" * (LIMIT * 4) + b"\n" + json.dumps(message("ping", ident="ok")).encode() + b"\n"
        for at in range(0, len(sent), max(1, len(sent) // pieces)):
            peer.say(sent[at : at + max(1, len(sent) // pieces)])
            await asyncio.sleep(0)
        told = await peer.next()
        data = told["error"]["data"]
        assert (told["error"]["code"], data["code"], data["limit"]) == (-32600, "X_MCP_BODY_TOO_LARGE", LIMIT)
        assert (await peer.next())["id"] == "ok"
        whole = json.dumps(message("ping", ident="edge")).encode()
        peer.say(whole + b" " * (LIMIT - len(whole)) + b"\n")
        assert (await peer.next())["id"] == "edge"

    talk(work)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"\xff", -32700),
        (b'{"a":1,"a":2}', -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    ],
)
def test_a_line_that_is_no_message_is_refused_and_the_next_one_is_read(line: bytes, code: int) -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        await peer.initialize()
        peer.say(b"\r\n  \n", line + b"\r\n")
        told = await peer.next()
        assert (told["error"]["code"], "id" in told) == (code, False)
        assert (await peer.ask(message("ping", ident=9)))["result"] == {}

    talk(work)


def test_a_fault_of_ours_is_answered_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> Any:
        raise ZeroDivisionError
        yield

    monkeypatch.setattr(stdio, "answer", broken)

    async def work(peer: Peer, desk: Desk) -> None:
        told = await peer.ask(message("ping", ident=4))
        assert (told["error"]["code"], told["error"]["data"]["code"]) == (-32603, "X_INTERNAL")

    talk(work)
    assert caplog.messages == ["a message could not be answered: ZeroDivisionError"]


# The end


def test_what_is_under_way_at_the_end_of_the_input_is_answered() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        peer.say(call("count", {"to": 50}, ident=1), json.dumps(message("ping", ident=2)).encode())
        peer.end()
        rest = await peer.rest()
        assert {each["id"] for each in rest if "id" in each} == {1, 2}

    desk = talk(work)
    assert desk.events == [ToolCall("count", "ok", "mcp", "clerk", "agent")]
    assert desk.lifespans == ["entered", "left"]


def test_what_does_not_end_is_stopped_a_moment_after_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "GRACE_SECONDS", 0.05)

    async def work(peer: Peer, desk: Desk) -> None:
        peer.say(call("wait", ident=1))
        await until(desk.started.is_set)
        peer.end()
        assert await peer.rest() == []

    desk = talk(work)
    assert desk.lifespans == ["entered", "stopped", "left"]
    code = "X_INTERRUPTED"
    assert desk.events == [ToolCall("wait", "failed", "mcp", "clerk", "agent", code=code)]


def test_told_to_stop_it_ends_its_subscriptions_with_a_word() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        peer.say(message("subscriptions/listen", {"notifications": {}}, ident=1, modern=True))
        await peer.next()
        peer.stop.set()
        (last,) = await peer.rest()
        assert last["result"]["resultType"] == "complete"

    talk(work)


def test_a_client_that_reads_no_more_ends_it() -> None:
    async def main() -> None:
        desk = Desk()
        ours, theirs = socket.socketpair()
        served = asyncio.create_task(
            Served(desk.app, CLERK, utc_now, LIMIT).run(theirs.fileno(), theirs.fileno(), asyncio.Event())
        )
        told = json.dumps(call("count", {"to": 10**9}, ident=1, progressToken=0)).encode() + b"\n"
        await asyncio.to_thread(ours.sendall, told)
        await asyncio.to_thread(ours.recv, 100)
        ours.close()
        await asyncio.wait_for(served, PATIENCE)
        theirs.close()
        assert desk.lifespans == ["entered", "left"]
        assert [getattr(each, "code", None) for each in desk.events] == ["X_INTERRUPTED"]

    asyncio.run(main())


def test_a_line_that_is_written_in_pieces_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(sink: int, data: bytes) -> int:
        return os.write(sink, data[:3])

    monkeypatch.setattr(pipes, "os", SimpleNamespace(read=os.read, write=write))

    async def work(peer: Peer, desk: Desk) -> None:
        assert text(await peer.ask(call("hello", {"name": "x"}))) == "hello x from the desk by clerk"

    talk(work)


def test_a_client_that_reads_slowly_slows_its_handler() -> None:
    async def work(peer: Peer, desk: Desk) -> None:
        transport: Any = peer.writer.transport
        transport.pause_reading()
        peer.say(call("count", {"to": 1_000, "size": 100_000}, ident=1, progressToken=0))
        seen = -1
        while seen != desk.said or seen <= 0:
            seen = desk.said
            await asyncio.sleep(0.3)
        assert seen < 500
        transport.resume_reading()
        await peer.answer(1)
        assert desk.said == 1_000

    talk(work)


def test_who_serves_in_a_loop_of_its_own_cancels_to_stop() -> None:
    async def main() -> None:
        desk = Desk()
        ours, theirs = socket.socketpair()
        served = asyncio.create_task(
            Served(desk.app, Agent("a"), utc_now, LIMIT).run(
                theirs.fileno(), theirs.fileno(), asyncio.Event()
            )
        )
        await until(lambda: desk.lifespans == ["entered"])
        served.cancel()
        with pytest.raises(asyncio.CancelledError):
            await served
        assert desk.lifespans == ["entered", "left"]
        ours.close()
        theirs.close()

    asyncio.run(main())
