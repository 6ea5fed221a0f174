"""A JSON-RPC member under another spelling is not that member: a proxy that reads exactly is not led past."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import pytest

from nonsuch import Agent, Registry, can, define_app_mcp, expose, grant
from nonsuch.adapters.edge.run import Edge, Running, run
from nonsuch.adapters.mcp.server import serve
from nonsuch.adapters.wire import Head, Reply

HEADERS: Final = {
    "host": "localhost",
    "authorization": "Bearer token",
    "content-type": "application/json",
    "mcp-protocol-version": "2025-11-25",
}
REQUEST: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "say"},
}


def spellings(member: str) -> list[str]:
    """By case, by compatibility characters (NFKC folds them), by a character that is not seen."""
    wide = "".join(chr(ord(char) + 0xFEE0) for char in member)
    return [
        member.upper(),
        member.title(),
        wide,
        f"{member}\u200b",
        f" {member}",
        f"{member} ",
        f"{member}\0",
    ]


MEMBERS: Final = [(member, spelling) for member in REQUEST for spelling in spellings(member)]


class Server:
    """An app with one tool and a count of its runs."""

    def __init__(self) -> None:
        registry = Registry()
        self.ran = 0

        @registry.action(policy=can("word:say"), mcp=expose("Say a word"))
        def say() -> str:
            self.ran += 1
            return "word"

        self.app = define_app_mcp(
            registry,
            name="words",
            include="exposed",
            grants=[grant("speaker", "word:say")],
            resolve_token=lambda _: Agent("speaker", roles=frozenset({"speaker"})),
            rate_limits=None,
        )

    def post(self, message: dict[str, Any]) -> Reply:
        async def read(_limit: int) -> bytes:
            return json.dumps(message).encode()

        edge = Edge(Running(self.app), read)
        return asyncio.run(run(serve(self.app.mcp, Head("POST", "/mcp", HEADERS)), edge))


def test_the_request_in_its_own_spelling_runs() -> None:
    server = Server()
    assert server.post(REQUEST).status == 200
    assert server.ran == 1


@pytest.mark.parametrize(("member", "spelling"), MEMBERS, ids=[ascii(pair) for pair in MEMBERS])
def test_a_member_in_another_spelling_is_not_the_member(member: str, spelling: str) -> None:
    """The same answer as without the member, and nothing runs."""
    server = Server()
    without = {name: value for name, value in REQUEST.items() if name != member}
    assert server.post({**without, spelling: REQUEST[member]}) == server.post(without)
    assert server.ran == 0


@pytest.mark.parametrize("spelling", spellings("name"), ids=ascii)
def test_a_tool_name_in_another_spelling_is_no_name(spelling: str) -> None:
    server = Server()
    without = server.post({**REQUEST, "params": {}})
    assert server.post({**REQUEST, "params": {spelling: "say"}}) == without
    assert server.ran == 0


@pytest.mark.parametrize(("member", "spelling"), MEMBERS, ids=[ascii(pair) for pair in MEMBERS])
def test_a_second_member_in_another_spelling_changes_nothing(member: str, spelling: str) -> None:
    other = {"jsonrpc": "1.0", "id": 2, "method": "tools/list", "params": {"name": "other"}}[member]
    server = Server()
    honest = server.post(REQUEST)
    assert server.post({**REQUEST, spelling: other}) == honest
    assert server.post({spelling: other, **REQUEST}) == honest
    assert server.ran == 3
