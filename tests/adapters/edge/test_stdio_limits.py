"""A connection that its caller owns is not counted: there is nobody else whose share it could take."""

from __future__ import annotations

import asyncio

import pytest

from nonsuch import Limits, Rate

from ..mcp.counted import CALLERS, Counted
from .talkers import call, message
from .test_stdio import connected

ONE = Limits(Rate(1), Rate(1), Rate(1))


@pytest.mark.parametrize("modern", [False, True])
def test_nothing_is_counted_over_stdio(*, modern: bool) -> None:
    desk = Counted(ONE)

    async def scene() -> None:
        async with connected(desk.app, CALLERS["t"]) as peer:
            if not modern:
                await peer.initialize()
            for ident in range(1, 20):
                told = await peer.ask(call("change", {"id": "1"}, modern=modern, ident=ident))
                assert "result" in told, told
                peer.say(message("notifications/x", modern=modern, ident=None))
            peer.end()
            assert await peer.rest() == []

    asyncio.run(scene())
    assert desk.ran == ["change"] * 19
