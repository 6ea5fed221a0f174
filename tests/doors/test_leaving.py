"""Servers tell in several ways that a client left, or not at all: what may end ends, the rest goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from nonsuch import asgi
from nonsuch.kernel.audit import ToolCall

from ..adapters.edge.talkers import LEGACY, MODERN, Desk, call

PATIENCE_SECONDS: Final = 10
INTERRUPTED: Final = "X_INTERRUPTED"


@dataclass
class Server:
    """A server's side of ASGI whose client leaves after a number of messages."""

    body: bytes
    leaves_after: int = 10_000
    sent: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    asked: int = 0

    async def receive(self) -> dict[str, Any]:
        """Tell the body, and its end again and again, without ever waiting (some bridges do)."""
        self.asked += 1
        if self.asked > 1_000:
            await asyncio.sleep(PATIENCE_SECONDS * 2)  # it would hold the loop for ever
        body, self.body = self.body, b""
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: dict[str, Any]) -> None:
        """Raise once the client has left (ASGI HTTP 2.4)."""
        if len(self.sent) >= self.leaves_after:
            raise ConnectionResetError("the client has left")
        self.sent.append(message)


def scope(modern: bool, name: str) -> dict[str, Any]:
    headers = {
        "host": "localhost",
        "content-type": "application/json",
        "authorization": "Bearer clerk",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN if modern else LEGACY,
        **({"mcp-method": "tools/call", "mcp-name": name} if modern else {}),
    }
    raw = [(key.encode(), value.encode()) for key, value in headers.items()]
    return {"type": "http", "method": "POST", "path": "/mcp", "headers": raw, "client": ("127.0.0.1", 9)}


def served(desk: Desk, server: Server, scope: dict[str, Any], meanwhile: Callable[[], object] = int) -> None:
    async def main() -> None:
        application: Any = asgi(desk.app)
        async with asyncio.timeout(PATIENCE_SECONDS), application.lifespan():
            task = asyncio.ensure_future(application(scope, server.receive, server.send))
            await asyncio.sleep(0.2)
            meanwhile()
            await task

    asyncio.run(main())


def counting(to: int, *, modern: bool) -> bytes:
    return json.dumps(call("count", {"to": to}, modern=modern, progressToken=0)).encode()


def test_a_server_that_raises_stops_a_call_that_ends_with_its_client() -> None:
    desk = Desk()
    server = Server(counting(100_000, modern=True), leaves_after=5)
    served(desk, server, scope(True, "count"))
    assert desk.said < 10
    assert desk.events == [ToolCall("count", "failed", "mcp", "clerk", "agent", code=INTERRUPTED)]


def test_a_server_that_raises_stops_no_call_of_the_older_revisions() -> None:
    desk = Desk()
    server = Server(counting(50, modern=False), leaves_after=5)
    served(desk, server, scope(False, "count"))
    assert (desk.said, len(server.sent)) == (50, 5)
    assert desk.events == [ToolCall("count", "ok", "mcp", "clerk", "agent")]


def test_a_server_that_repeats_itself_does_not_hold_the_loop() -> None:
    desk = Desk()
    body = json.dumps(call("wait", modern=True)).encode()
    server = Server(body)
    served(desk, server, scope(True, "wait"), desk.released.set)
    assert server.asked < 10
    assert desk.events == [ToolCall("wait", "ok", "mcp", "clerk", "agent")]


def test_an_answer_that_is_no_stream_and_cannot_be_sent_is_the_servers_matter() -> None:
    desk = Desk()
    server = Server(json.dumps(call("hello", {"name": "ann"}, modern=True)).encode(), leaves_after=0)
    with pytest.raises(ConnectionResetError):
        served(desk, server, scope(True, "hello"))
    assert desk.events == [ToolCall("hello", "ok", "mcp", "clerk", "agent")]
