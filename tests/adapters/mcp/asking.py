"""Asks the app of `press.py` over MCP as each revision wants it; knows no test."""

from __future__ import annotations

import json
from typing import Any, cast

from nonsuch import Agent, App, Registry, define_app_mcp, grant, tool
from nonsuch.kernel.declare import Action

from .press import press
from .wire import Answer, Request, sans_io

APP = press()
LEGACY, MODERN = ("2025-06-18", "2025-11-25"), "2026-07-28"
REVISIONS = (*LEGACY, MODERN)
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
EVERYONE = ("editor", "reader", "viewer")


def request(revision: str, method: str, caller: str = "editor", **params: Any) -> Request:
    """Return a request as the revision wants it."""
    headers = [
        ("Host", "localhost"),
        ("Content-Type", "application/json"),
        ("Authorization", f"Bearer {caller}"),
        ("MCP-Protocol-Version", revision),
    ]
    if revision == MODERN:
        params["_meta"] = META
        headers += [("Mcp-Method", method), *[("Mcp-Name", params["name"]) for _ in range("name" in params)]]
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Request("POST", "/mcp", tuple(headers), json.dumps(message).encode())


def ask(revision: str, method: str, caller: str = "editor", app: App = APP, **params: Any) -> Answer:
    return sans_io(app, request(revision, method, caller, **params))


def result(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200
    return cast("dict[str, Any]", json.loads(answer.body)["result"])


def tools(revision: str, caller: str = "editor", app: App = APP) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", result(ask(revision, "tools/list", caller, app))["tools"])


# Parts of smaller apps


def caller(_token: str) -> Agent:
    return Agent("a", roles=frozenset({"r"}))


def nothing() -> None:
    return None


def served(declared: Action, name: str | None = None) -> App:
    """Return an app with one tool, which everyone may call."""
    registry = Registry()
    return define_app_mcp(
        registry,
        name="x",
        tools={name or declared.name: declared},
        resolve_token=caller,
        grants=[grant("r", "any")],
        rate_limits=None,
    )


def declared(handler: Any, **face: Any) -> Action:
    return tool(face.pop("description", "d"), handler, policy="a:b", **face)
