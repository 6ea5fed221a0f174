"""An app whose handlers talk to their clients while they run, and wait to be told or stopped.

What they did can be read from any thread. Knows no door.
"""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, Field

from nonsuch import (
    Agent,
    App,
    Context,
    Elicit,
    Human,
    ListRoots,
    Principal,
    Registry,
    can,
    define_app_mcp,
    expose,
    grant,
    prompt,
    resource,
)
from nonsuch.kernel.audit import Event

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLERK: Final = Agent("clerk", roles={"clerk"}, scopes=frozenset({"desk"}))
VISITOR: Final = Agent("visitor", roles={"clerk"}, scopes=frozenset())
PERSON: Final = Human("person", roles={"clerk"})
KNOWN: Final[Mapping[str, Principal]] = {"clerk": CLERK, "visitor": VISITOR, "person": PERSON}


class Name(BaseModel):
    name: str


class Region(BaseModel):
    region: str = Field(json_schema_extra={"x-mcp-header": "Region"})


class Count(BaseModel):
    to: int
    size: int = 0


@dataclass
class Desk:
    """The app, and what happened in it."""

    events: list[Event] = field(default_factory=list[Event])
    lifespans: list[str] = field(default_factory=list[str])
    started: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    stopped: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    said: int = 0
    open: bool = False
    stubborn: bool = False
    app: App = field(init=False)

    def __post_init__(self) -> None:
        self.app = self.build()

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[str]:
        """Write down when it is entered and left, and by which task: it must be one."""
        task = asyncio.current_task()
        self.lifespans.append("entered")
        try:
            yield "the desk"
        finally:
            self.lifespans.append("left" if asyncio.current_task() is task else "left by another")

    def build(self, **given: Any) -> App:
        """Boot the app."""
        settings: dict[str, Any] = {
            "name": "desk",
            "include": "exposed",
            "scopes": {
                "desk": [
                    "noisy",
                    "hello",
                    "count",
                    "wait",
                    "ask",
                    "where",
                    "plainly",
                    "closed",
                    "toggle",
                    "regional",
                ]
            },
            "roles": ["clerk"],
            "grants": [grant("clerk", "any")],
            "resolve_token": KNOWN.get,
            "rate_limits": None,
            "on_audit": self.events.append,
            "lifespan": self.lifespan,
            "resources": [
                resource("desk://note", "note", "A note", note, mime_type="text/plain"),
            ],
            "prompts": [prompt(greeting, description="A greeting")],
        }
        return define_app_mcp(self.registry(), **{**settings, **given})

    def registry(self) -> Registry:  # noqa: C901  (a list of small handlers)
        """Declare the handlers."""
        registry = Registry()

        async def hello(input: Name, ctx: Context[str]) -> str:
            return f"hello {input.name} from {ctx.resources} by {ctx.principal.id}"

        async def count(input: Count, ctx: Context[str]) -> str:
            for at in range(input.to):
                await ctx.client.progress(at, input.to, "x" * input.size)
                self.said = at + 1
                await ctx.client.log("info", {"at": at, "line\u2028end": True})
            return f"{input.to}"

        def plainly(input: Count, ctx: Context[str]) -> str:
            for at in range(input.to):
                ctx.client.wait(ctx.client.progress(at, input.to))
            self.ended.set()
            return threading.current_thread().name

        async def wait(ctx: Context[str]) -> str:
            self.started.set()
            try:
                while not self.released.is_set():  # noqa: ASYNC110  (set by another thread)
                    await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                self.lifespans.append("stopped")
                if self.stubborn:
                    await ctx.client.log("info", "stopped")
                self.stopped.set()
                raise
            self.ended.set()
            return "released"

        async def ask(ctx: Context[str]) -> str:
            answers = await ctx.client.ask({"name": Elicit("Who are you?", Name)})
            return json.dumps(getattr(answers["name"], "content", None))

        async def where(ctx: Context[str]) -> str:
            answers = await ctx.client.ask({"roots": ListRoots()})
            roots: Any = answers["roots"]
            return ",".join(each.uri for each in roots.roots)

        def regional(input: Region) -> str:
            return input.region

        def closed() -> str:
            return "open at last"

        async def toggle(ctx: Context[str]) -> str:
            self.open = not self.open
            self.app.notify.lists_changed()
            self.app.notify.resource_updated("desk://note")
            return str(self.open)

        def noisy() -> str:
            sys.stdout.write("printed\n")
            subprocess.run([sys.executable, "-c", "print('started')"], check=True)
            return sys.stdin.read() + "silent"

        for handler in (noisy, regional, hello, count, plainly, wait, ask, where, toggle):
            registry.action(policy=can("desk:use"), mcp=expose("Do"), path=handler.__name__)(handler)
        seen = expose("Do", visible_to=lambda who: self.open)
        registry.action(policy=can("desk:use"), mcp=seen, path="closed")(closed)
        return registry


def note() -> str:
    """A resource."""
    return "buy ink"


def greeting(input: Name) -> str:
    """A prompt."""
    return f"Greet {input.name}"


def message(
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    ident: object = 1,
    modern: bool = False,
    **meta: Any,
) -> dict[str, Any]:
    """Return a JSON-RPC message of either era; ``ident=None`` notifies."""
    told: dict[str, Any] = dict(params or {})
    if modern:
        meta = {VERSION: MODERN, CAPABILITIES: {}, **meta}
    if meta:
        told["_meta"] = meta
    held: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": told}
    return held if ident is None else {**held, "id": ident}


def call(name: str, arguments: Mapping[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    """Return a `tools/call`."""
    return message("tools/call", {"name": name, "arguments": dict(arguments or {})}, **given)
