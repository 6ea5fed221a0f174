"""Which hosts and origins are this machine's own, and so are served without being listed."""

from __future__ import annotations

import pytest

from nonsuch.adapters.door import Door
from nonsuch.adapters.wire import Head

OURS = (
    "localhost",
    "localhost:8000",
    "127.0.0.1",
    "127.0.0.1:1",
    "[::1]:8000",
    "feat-new.localhost:8000",
    "a.b.localhost",
)
NOT_OURS = (
    "evil.example",
    "localhost.evil.example",
    "evillocalhost",
    "feat.localhost.evil.example",
    "localhost@evil.example",
    "evil.example/.localhost",
    "evil.example#.localhost",
    "",
)


@pytest.mark.parametrize("host", OURS)
def test_loopback_is_served_as_it_is(host: str) -> None:
    assert Door().refuses(Head("POST", "/mcp", {"host": host, "origin": f"http://{host}"})) is None


@pytest.mark.parametrize("host", NOT_OURS)
def test_nothing_else_is(host: str) -> None:
    refused = Door().refuses(Head("POST", "/mcp", {"host": host}))
    assert refused is not None
    assert refused.fix == "list it in `allowed_hosts` of `define_app_mcp`"
    refused = Door().refuses(Head("POST", "/mcp", {"host": "localhost", "origin": f"http://{host}"}))
    assert refused is not None
    assert refused.fix == "list it in `allowed_origins` of `define_app_mcp`"
