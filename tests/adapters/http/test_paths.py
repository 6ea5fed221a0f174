"""Which paths there are, and that a decision is the same whichever way a call comes in."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from nonsuch import Agent, BootError, Registry, can, define_app_mcp, grant

from ..mcp.press import RAN
from ..mcp.wire import Answer, sans_io
from .asking import ask, call, error, request, told


def test_an_action_that_is_no_tool_is_judged_like_every_other() -> None:
    no_grant = error(
        "X_FORBIDDEN",
        "no policy permits `post:purge` here",
        "ask the account owner for the permission `post:purge`",
    )
    assert told(call("vito", "posts/purge")) == (403, no_grant)
    assert told(call("viewer", "posts/purge")) == (403, no_grant)
    RAN.clear()
    assert told(call("erna", "posts/purge")) == (200, {"purged": 2})
    assert set(RAN) == {"purgePosts"}


@pytest.mark.parametrize("who", ["editor", "reader", "viewer"])
@pytest.mark.parametrize(
    ("tool", "path", "arguments"),
    [
        ("publishPost", "posts/publish", {"postId": "p1"}),
        ("publishPost", "posts/publish", {"postId": "p2"}),
        ("publishPost", "posts/publish", {"postId": "g1"}),
        ("publishPost", "posts/publish", {"postId": 1}),
        ("listPosts", "listPosts", {}),
        ("archivePost", "archivePost", {"postId": "locked"}),
        ("nope", "nope", {}),
    ],
)
def test_mcp_and_http_give_one_decision(who: str, tool: str, path: str, arguments: dict[str, Any]) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    over_mcp = json.loads(ask(request(who, "/mcp", json.dumps(message).encode())).body)
    over_http = call(who, path, **arguments)
    assert code_over_mcp(over_mcp) == code_over_http(over_http)


def code_over_mcp(message: dict[str, Any]) -> str | None:
    if "error" in message:
        return str(message["error"].get("data", {}).get("code", "hidden"))
    text = str(message["result"]["content"][0]["text"])
    return text.partition(":")[0] if message["result"].get("isError") else None


def code_over_http(answer: Answer) -> str | None:
    status, body = told(answer)
    if status == 200:
        return None
    return "hidden" if body["code"] == "X_ROUTE_NOT_FOUND" else str(body["code"])


@pytest.mark.parametrize(
    "path", ["/posts/walk", "posts/walk/", "a//b", "api/x", "", "a?b", "a#b", "a b", "../x"]
)
def test_a_declared_path_answers_where_it_says_or_is_refused_at_boot(path: str) -> None:
    """`POST /api/<path>` and nowhere else, in the characters that a client would send."""
    registry = Registry()

    def walk() -> str:
        return "walked"

    registry.action(policy=can("a:b"), path=path)(walk)
    try:
        app = define_app_mcp(
            registry,
            name="x",
            resolve_token=lambda _token: Agent("a", roles=frozenset({"r"})),
            grants=[grant("r", "any")],
            rate_limits=None,
        )
    except BootError as refused:
        codes = {each.code for each in refused.faults}
    else:
        codes = set[str]()
        found = urlsplit(f"http://localhost/{path.strip('/') or 'walk'}").path.removeprefix("/")
        assert told(sans_io(app, request("t", f"/api/{found}"))) == (200, "walked")
        others = (f"/{found}", f"/api//{found}", f"/api/{found}/")
        assert {sans_io(app, request("t", other)).status for other in others} == {404}
    assert codes <= {"X_DECLARATION_INVALID"}
