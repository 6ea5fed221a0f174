"""WSGI behind real servers: sockets that close or are slow, threads, and processes that fork."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from nonsuch import wsgi
from nonsuch.adapters.edge import run
from nonsuch.kernel.audit import ToolCall

from .environs import PATIENCE, connected, posted, received, served
from .talkers import LEGACY, MODERN, Desk, call, message

ROOT: Final = Path(__file__).parents[3]
HEADERS: Final = (
    ("Host", "localhost"),
    ("Content-Type", "application/json"),
    ("Authorization", "Bearer clerk"),
    ("Accept", "application/json, text/event-stream"),
)
Address = tuple[str, int]


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def address(desk: Desk) -> Iterator[Address]:
    door = wsgi(desk.app)
    with served(door) as address:
        yield address
        desk.released.set()
        door.close()


def rpc(told: dict[str, Any], *, modern: bool = False) -> bytes:
    """A POST of a message."""
    more = [("MCP-Protocol-Version", MODERN if modern else LEGACY)]
    if modern:
        more += [("Mcp-Method", told["method"]), ("Mcp-Name", told["params"].get("name", ""))]
    return posted("/mcp", [*HEADERS, *more], json.dumps(told).encode())


def until(done: Any) -> None:
    """Wait for another thread."""
    ticks = threading.Event()
    for _ in range(PATIENCE * 200):
        if done():
            return
        ticks.wait(0.005)
    raise AssertionError("it did not come true")


def test_two_hundred_requests_on_sixteen_sockets_at_a_time(desk: Desk, address: Address) -> None:
    def one(at: int) -> tuple[int, bytes]:
        with connected(address) as client:
            kind = call("hello", {"name": f"n{at}"}, ident=at)
            client.sendall(rpc(kind if at % 2 else call("plainly", {"to": 2}, ident=at, progressToken=0)))
            status, _, body = received(client)
            return status, body

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, range(200)))
    assert {status for status, _ in answers} == {200}
    for at, (_, body) in enumerate(answers):
        assert b'"id":%d,' % at in body
        assert (f"hello n{at} ".encode() in body) == bool(at % 2)
    until(lambda: len(desk.events) == 200)
    assert desk.lifespans == ["entered"]


def test_a_socket_that_closes_in_the_middle_of_a_stream_stops_the_request(
    desk: Desk, address: Address
) -> None:
    with connected(address) as client:
        client.sendall(
            rpc(call("count", {"to": 100_000, "size": 1000}, modern=True, progressToken=0), modern=True)
        )
        assert client.recv(1000)
    until(lambda: bool(desk.events))
    code = "X_INTERRUPTED"
    assert desk.events == [ToolCall("count", "failed", "mcp", "clerk", "agent", code=code)]


def test_a_socket_that_closes_ends_its_subscription_at_the_next_sign_of_life(
    desk: Desk, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "KEEP_ALIVE_SECONDS", 0.02)
    waits = 0
    wait = desk.app.notify.wait

    async def counted(count: int, seconds: float) -> Any:
        nonlocal waits
        waits += 1
        return await wait(count, seconds)

    monkeypatch.setattr(desk.app.notify, "wait", counted)
    with connected(address) as client:
        client.sendall(rpc(message("subscriptions/listen", {"notifications": {}}, modern=True), modern=True))
        seen = b""
        while b"acknowledged" not in seen:
            seen += client.recv(1000)
        until(lambda: waits > 3)
    before = -1
    for _ in range(PATIENCE * 10):
        if before == waits:
            return
        before = waits
        threading.Event().wait(0.2)
    raise AssertionError("it went on without its client")


def test_a_client_that_does_not_read_holds_its_handler_back(desk: Desk, address: Address) -> None:
    with connected(address) as client:
        client.sendall(rpc(call("count", {"to": 400, "size": 100_000}, progressToken=0)))
        seen = -1
        while seen != desk.said or seen == 0:
            seen = desk.said
            threading.Event().wait(0.3)
        assert 0 < seen < 300
        status, headers, body = received(client)
    assert (status, headers["content-type"], body.count(b"event: message")) == (200, "text/event-stream", 801)
    until(lambda: desk.events == [ToolCall("count", "ok", "mcp", "clerk", "agent")])


def test_an_answer_to_head_has_no_body_on_the_wire(address: Address) -> None:
    with connected(address) as client:
        client.sendall(posted("/nothing", HEADERS, b"", method="HEAD"))
        status, headers, body = received(client)
    assert (status, body) == (404, b"")
    assert int(headers["content-length"]) > 0


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.parametrize(("when", "before"), [("cold", []), ("warm", ["entered"])])
def test_every_forked_process_enters_the_lifespan_itself(when: str, before: list[str]) -> None:
    """Also where the app was asked before the fork: a child has its parent's loop and none of its threads."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tests.adapters.edge.forking", when],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 3
    assert {json.dumps(line["told"]) for line in lines} == {json.dumps(lines[0]["told"])}
    assert lines[0]["told"][0][0][0] == 200
    parent = lines[-1]
    assert parent["children"] == [0, 0]
    assert parent["lifespans"] == ["entered", "left"]
    assert [each["lifespans"] for each in lines[:-1]] == [[*before, "entered", "left"]] * 2
