"""Tasks behind WSGI: a handler goes on while nobody calls, and ends with the application."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from nonsuch import Agent, Context, Registry, Text, define_app_mcp, grant, tool, wsgi
from nonsuch.adapters.edge.wsgi import Wsgi

from .environs import asked

MODERN: Final = "2026-07-28"
ABLE: Final[dict[str, Any]] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def sent(served: Wsgi, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Send one request, and return its result."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": ABLE,
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = [
        ("Host", "localhost"),
        ("Content-Type", "application/json"),
        ("Authorization", "Bearer ann"),
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", method),
        ("Mcp-Name", str(params.get("name", params.get("taskId")))),
    ]
    answered = asked(served, "POST", "/mcp", headers, json.dumps(message).encode())
    return dict(json.loads(answered.body)["result"])


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_handler_goes_on_between_requests_and_ends_with_the_application() -> None:
    release = threading.Event()

    def work(ctx: Context[None]) -> Text:
        ctx.client.wait(ctx.client.progress(1, 2))
        release.wait(10)
        return Text("done")

    async def hold() -> Text:
        await asyncio.sleep(3_600)
        return Text("never")

    app = define_app_mcp(
        Registry(),
        name="behind",
        tools={
            "work": tool("d", work, policy="a:b", task="optional"),
            "hold": tool("d", hold, policy="a:b", task="optional"),
        },
        resolve_token=lambda token: Agent(token, roles=["r"]),
        grants=[grant("r", "a:b")],
        rate_limits=None,
    )
    served = wsgi(app)

    def begun(name: str) -> str:
        return str(sent(served, "tools/call", {"name": name, "arguments": {}})["taskId"])

    def looked(ident: str) -> dict[str, Any]:
        return sent(served, "tasks/get", {"taskId": ident})

    try:
        done, held = begun("work"), begun("hold")
        until(lambda: looked(done).get("statusMessage") == "1 of 2")
        release.set()
        until(lambda: looked(done)["status"] == "completed")
        assert looked(done)["result"]["content"] == [{"type": "text", "text": "done"}]
        assert looked(held)["status"] == "working"
        served.close()
        assert (
            looked(held)["status"] == "failed"
        )  # the store outlives a lifespan, and a request begins another
    finally:
        served.close()
