"""A client that leaves answers nothing more: whoever waits for it is told so at once, over every transport.

In the older revisions the request itself goes on (MCP, transports: a disconnect is no cancellation).
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any, Final

import pytest

from nonsuch import ActionError, Context, Elicit, ListRoots, StreamLimits, wsgi
from nonsuch.adapters.edge import client
from nonsuch.adapters.edge.client import StreamClient, Waiting, waited
from nonsuch.adapters.edge.streams import Streams
from nonsuch.adapters.edge.wsgi import Wsgi
from nonsuch.kernel.line import Line
from nonsuch.kernel.model import Agent

from ..mcp.live import LEGACY, Live, play, request, response
from ..mcp.questions import Person, answered
from ..mcp.stage import stage
from .environs import Asking, environ_of
from .talkers import Desk
from .talkers import call as spoken
from .test_stdio import Peer, talk, text

SILENT: Final = "X_MCP_CLIENT_SILENT"
SOON: Final = 5.0  # of the 300 seconds that a question waits


class Asker:
    """A handler that asks, and what it was told."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.ended = threading.Event()

    async def ask(self, ctx: Context[Any]) -> str:
        """Ask, and go on whatever comes."""
        try:
            await ctx.client.ask({"roots": ListRoots()})
        except ActionError as told:
            self.heard.append(told.code)
        await ctx.client.progress(1)  # to nobody, and no fault
        self.ended.set()
        return "went on"

    def plainly(self, ctx: Context[Any]) -> str:
        """The same in a thread."""
        return ctx.client.wait(self.ask(ctx))


HANDLERS: Final = ("ask", "plainly")


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    """What is let go of shows its warnings here."""
    yield
    gc.collect()


def asking() -> tuple[Any, Any]:
    return request(LEGACY[1], "tools/call", name="t")


@pytest.mark.parametrize("kind", HANDLERS)
def test_over_asgi(kind: str) -> None:
    async def scene() -> None:
        asker = Asker()
        live = Live(stage(getattr(asker, kind), streams=StreamLimits(per_principal=1)))
        for _ in range(3):
            stream = live.open(asking())
            question = await stream.message()
            await stream.silence()
            await stream.leave()
            assert asker.ended.is_set()
            await answered(live, response(LEGACY[1], question["id"], {"roots": []}))
        assert asker.heard == [SILENT] * 3

    play(scene())


def test_over_asgi_where_the_server_says_so_by_raising(monkeypatch: pytest.MonkeyPatch) -> None:
    """ASGI 2.4: `send` raises OSError; it is a sign of life that finds out."""
    monkeypatch.setattr(client, "REST_SECONDS", 0.02)

    async def scene() -> None:
        asker = Asker()
        live = Live(stage(asker.ask))
        stream = live.open(asking())
        await stream.message()
        stream.hung_up = True
        async with asyncio.timeout(SOON):
            await stream.task
        assert asker.heard == [SILENT]

    play(scene())


def test_signs_of_life_keep_a_stream_open_that_waits_for_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "REST_SECONDS", 0.02)

    async def scene() -> None:
        asker = Asker()
        live = Live(stage(asker.ask))
        stream = live.open(asking())
        question = await stream.message()
        for _ in range(3):
            await stream.more()
        assert stream.raw.endswith(b": \n\n" * 3)
        await answered(live, response(LEGACY[1], question["id"], {"roots": []}))
        assert (await stream.rest())[-1]["result"]["content"][0]["text"] == "went on"
        assert asker.heard == []

    play(scene())


def test_two_questions_side_by_side_end_together() -> None:
    async def both(ctx: Context[Any]) -> str:
        asked = (ctx.client.ask({"k": Elicit("?", Person)}) for _ in range(2))
        told = await asyncio.gather(*asked, return_exceptions=True)
        heard.extend(getattr(each, "code", "?") for each in told)
        return "went on"

    heard: list[str] = []

    async def scene() -> None:
        live = Live(stage(both))
        stream = live.open(asking())
        for _ in range(2):
            await stream.message()
        await stream.leave()
        assert heard == [SILENT] * 2

    play(scene())


def served(asker: Asker, kind: str) -> tuple[Wsgi, Asking]:
    door = wsgi(stage(getattr(asker, kind)))
    headers, body = asking()
    return door, Asking(door, environ_of("POST", "/mcp", headers, body))


@pytest.mark.parametrize("kind", HANDLERS)
def test_over_wsgi(kind: str) -> None:
    asker = Asker()
    door, call = served(asker, kind)
    assert b"roots/list" in call.part()
    call.leave()
    assert asker.ended.wait(SOON)
    assert asker.heard == [SILENT]
    door.close()


def test_over_wsgi_a_sign_of_life_lets_a_server_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "REST_SECONDS", 0.02)
    asker = Asker()
    door, call = served(asker, "ask")
    assert b"roots/list" in call.part()
    assert [call.part() for _ in range(2)] == [b": \n\n"] * 2
    call.leave()
    assert asker.ended.wait(SOON)
    door.close()


def test_over_stdio_the_end_of_the_input_ends_the_wait() -> None:
    """Nobody can answer any more, and there is still time to be told what came of the call."""

    async def work(peer: Peer, desk: Desk) -> None:
        await peer.initialize(elicitation={})
        peer.say(spoken("ask", ident=7))
        assert (await peer.until(lambda told: "method" in told))["method"] == "elicitation/create"
        begun = time.monotonic()
        peer.end()
        (last,) = await peer.rest()
        assert text(last).startswith(SILENT)
        assert time.monotonic() - begun < 1.0

    talk(work)


# a thread that waits for a loop


async def nothing() -> None:
    """What is waited for."""


def closed_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.close()
    return loop


def client_of(loop: asyncio.AbstractEventLoop | None) -> StreamClient:
    """A client whose line is asked nothing."""
    line: Any = object()
    held: Line = line
    return StreamClient(held, Agent("a"), Waiting(Streams(StreamLimits())), None, 1, loop)


def test_a_thread_waits_for_no_loop_that_has_ended() -> None:
    """And what it would have awaited is let go of: filterwarnings make an un-awaited coroutine an error."""
    work = nothing()
    with pytest.raises(CancelledError):
        client_of(closed_loop()).wait(work)
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED


def test_a_function_without_a_thread_of_its_own_lets_go_of_what_it_gave() -> None:
    work = nothing()
    with pytest.raises(RuntimeError, match="run in a thread"):
        client_of(None).wait(work)
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED


@pytest.mark.parametrize("runs", [False, True])
def test_a_thread_that_waits_while_its_loop_ends_is_let_go(
    runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop that closes before it came to the work, or in the midst of it, keeps no thread."""
    monkeypatch.setattr(client, "LOOK_SECONDS", 0.02)
    loop, told = asyncio.new_event_loop(), list[type[BaseException]]()
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(0)

    waiting = work()

    def wait() -> None:
        try:
            waited(waiting, loop)
        except BaseException as fault:  # noqa: BLE001  (whatever it is)
            told.append(type(fault))

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: bool(vars(loop)["_ready"]))
    if runs:
        loop.call_soon(loop.stop)
        loop.run_forever()  # the work was made a task, which has not begun
    loop.close()
    thread.join(SOON)
    assert not thread.is_alive()
    assert told == [CancelledError]


def test_a_time_out_of_the_work_is_the_works_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LOOK_SECONDS", 0.02)

    async def late() -> str:
        await asyncio.sleep(0.1)
        raise TimeoutError("the work's own")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(TimeoutError, match="the work's own"):
            await asyncio.to_thread(waited, late(), loop)

    asyncio.run(main())


def until(done: Callable[[], bool]) -> None:
    """Wait for another thread."""
    ticks = threading.Event()
    for _ in range(1_000):
        if done():
            return
        ticks.wait(0.005)
    raise AssertionError("it did not come true")
