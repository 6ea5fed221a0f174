"""Bodies that come slowly: each may take its time, and nobody holds a request for nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

import pytest

from nonsuch import asgi
from nonsuch.adapters.edge import bodies
from nonsuch.adapters.edge.bodies import Gone, TooSlow, reader
from nonsuch.adapters.wire import Head

from ..mcp.live import MODERN, request
from ..mcp.stage import stage

GRACE: Final = 0.3
HEAD: Final = Head("POST", "/mcp", {})


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "GRACE_SECONDS", GRACE)
    monkeypatch.setattr(bodies, "BYTES_PER_SECOND", 100)


def sent(parts: Sequence[tuple[float, bytes]], *, ends: bool = True) -> Any:
    """A client that sends each part after so many seconds, and at last nothing more."""
    left = list(parts)

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.Event().wait()
        seconds, body = left.pop(0)
        await asyncio.sleep(seconds)
        return {"type": "http.request", "body": body, "more_body": bool(left) or not ends}

    return receive


def read(receive: Any, limit: int = 1_000) -> bytes | None:
    return asyncio.run(reader(HEAD, receive)(limit))


def test_who_sends_no_less_than_anybody_must_may_take_long() -> None:
    assert read(sent([(0.1, b"x" * 20)] * 10)) == b"x" * 200


@pytest.mark.parametrize("parts", [[(0.05, b"x")] * 100, [(0.0, b"x" * 10)], [(0.0, b"")] * 2])
def test_who_sends_less_is_waited_for_no_longer(parts: list[tuple[float, bytes]]) -> None:
    async def scene() -> float:
        began = asyncio.get_running_loop().time()
        with pytest.raises(TooSlow):
            await reader(HEAD, sent(parts, ends=False))(1_000)
        return asyncio.get_running_loop().time() - began

    assert GRACE * 0.9 < asyncio.run(scene()) < 3


def test_what_is_too_large_is_refused_before_it_is_too_slow() -> None:
    assert read(sent([(0.0, b"x" * 600)] * 2, ends=False)) is None
    assert read(sent([(0.0, b"x" * 1_001)], ends=False)) is None


@pytest.mark.parametrize("before", [[], [{"type": "http.request", "body": b"x", "more_body": True}]])
def test_who_leaves_is_gone(before: list[dict[str, Any]]) -> None:
    async def scene() -> None:
        told = iter([*before, {"type": "http.disconnect"}])

        async def receive() -> dict[str, Any]:
            return next(told)

        with pytest.raises(Gone):
            await reader(HEAD, receive)(1_000)

    asyncio.run(scene())


def nothing() -> str:
    return "nothing"


def test_a_slow_sender_is_told_so_and_its_connection_ends() -> None:
    headers, body = request(MODERN, "tools/list")
    heard = list[dict[str, Any]]()

    async def send(message: Any) -> None:
        heard.append(message)

    async def scene() -> None:
        given = [(name.encode(), value.encode()) for name, value in headers]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": given, "client": ("::1", 9)}
        await asgi(stage(nothing))(scope, sent([(0, body[:9])], ends=False), send)

    asyncio.run(scene())
    told = dict(heard[0]["headers"])
    assert (heard[0]["status"], told[b"connection"]) == (408, b"close")
    assert told[b"content-type"] == b"application/problem+json"
    said = json.loads(heard[1]["body"])
    assert (said["code"], said["cause"]) == ("X_MCP_PROTOCOL", "the body comes too slowly")
    assert said["fix"]
