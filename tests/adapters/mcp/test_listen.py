"""`subscriptions/listen`: one stream that tells its caller what changed of what this caller is served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from mcp_types.methods import parse_server_notification, validate_server_result

from nonsuch import Agent, App, Human, Principal, prompt, resource, tool
from nonsuch.adapters.edge import run
from nonsuch.adapters.mcp.listen import MAX_URIS

from .live import MODERN, Json, Live, Stream, play, request
from .stage import CALLERS, stage

KEY = "io.modelcontextprotocol/subscriptionId"
ALL: Json = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
TOOLS, PROMPTS, RESOURCES = (f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))
UPDATED = "notifications/resources/updated"


def words() -> str:
    return "words"


def of(name: str) -> str:
    return f"a:{name}"


class Board:
    """An app whose every part can be shown and hidden while it runs, to all or to one."""

    def __init__(self) -> None:
        self.shown: set[str] = set()
        self.tokens: dict[str, Principal | None] = dict(CALLERS)
        kinds = ("tool", "prompt", "resource", "template")
        self.app: App = stage(
            tools={"always": tool("A", words, policy="a:b"), "tool": tool("T", words, policy="a:b", visible_to=self._if("tool"))},
            prompts=[prompt(words, description="P", name="prompt", visible_to=self._if("prompt"))],
            resources=[
                resource("a:always", "always", "A", words),
                resource("a:resource", "resource", "R", words, visible_to=self._if("resource")),
                resource("b:{id}", "template", "T", by_id, visible_to=self._if("template")),
            ],
            resolve_token=lambda token: self.tokens.get(token),
        )
        assert set(kinds) == {"tool", "prompt", "resource", "template"}
        self.live = Live(self.app)

    def _if(self, name: str) -> Callable[[Principal], bool]:
        return lambda who: name in self.shown or f"{name} for {who.id}" in self.shown

    def show(self, *names: str) -> None:
        """Show these, and nothing else; the app says so."""
        self.shown = set(names)
        self.app.notify.lists_changed()

    async def listen(self, caller: str = "t", ident: object = 1, **wanted: Any) -> Stream:
        """A stream whose acknowledgement was read."""
        stream = self.live.open(request(MODERN, "subscriptions/listen", caller, ident=ident, notifications=wanted))
        assert (await stream.message())["method"] == "notifications/subscriptions/acknowledged"
        return stream

    async def heard(self, stream: Stream) -> list[str]:
        """The methods of what came until now."""
        await asyncio.sleep(0.03)
        told: list[str] = []
        while len(stream.messages()) > stream.read:
            message = await stream.message()
            parse_server_notification(message["method"], MODERN, message["params"])
            told.append(message["method"])
        return told

    async def close(self, *streams: Stream) -> list[Json]:
        """Stop the server: every stream ends with a result."""
        self.app.notify.close()
        return [(await each.rest())[-1] for each in streams]


def by_id(input: Ident) -> str:
    return input.id


from pydantic import BaseModel  # noqa: E402


class Ident(BaseModel):
    id: str
