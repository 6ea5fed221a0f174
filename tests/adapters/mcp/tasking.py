"""An app whose tools go on as tasks, its callers, and a client that speaks of tasks; knows no test.

Time stands still unless a test moves it, and a handler that waits waits for the test.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from nonsuch import (
    ActionError,
    Agent,
    App,
    Context,
    Elicit,
    Human,
    Image,
    ListRoots,
    Registry,
    Sample,
    Text,
    asgi,
    can,
    define_app_mcp,
    expose,
    grant,
    tool,
)
from nonsuch.adapters.edge.task_store import MemoryTaskStore
from nonsuch.kernel.audit import Event
from nonsuch.kernel.content import Message
from nonsuch.kernel.tasks import TaskLimits

T = TypeVar("T")
NOON: Final = datetime(2026, 7, 28, 12, tzinfo=UTC)
MODERN: Final = "2026-07-28"
EXTENSION: Final = "io.modelcontextprotocol/tasks"
TASKS: Final[dict[str, Any]] = {"extensions": {EXTENSION: {}}}
ABLE: Final[dict[str, Any]] = {**TASKS, "elicitation": {}, "sampling": {}}
INFO: Final = {"io.modelcontextprotocol/serverInfo": {"name": "desk", "version": "0"}}
ACK: Final = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "_meta": INFO}}
Wire = list[MutableMapping[str, Any]]


class Named(BaseModel):
    name: str


class Held(BaseModel):
    label: str = "x"
    lines: int = 0


class Row(BaseModel):
    id: str
    size: int


STAFF: Final = Agent("ann", roles=["staff"], scopes=["desk:use", "vault:open"])
CALLERS: Final[Mapping[str, Agent]] = {
    "ann": STAFF,
    "bob": Agent("bob", roles=["staff"], scopes=["desk:use", "vault:open"]),
    "ann-for-eve": Human("eve", roles=["staff"]).delegate("ann", scopes=["desk:use", "vault:open"]),
    "clerk": Agent("cleo", roles=["clerk"], scopes=["desk:use"]),
}


@dataclass
class Desk:
    """The app and everything that a test may turn."""

    limits: TaskLimits = field(default_factory=TaskLimits)
    store: Any = field(default_factory=MemoryTaskStore)
    callers: dict[str, Agent] = field(default_factory=lambda: dict(CALLERS))
    events: list[Event] = field(default_factory=list[Event])
    now: datetime = NOON
    started: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    release: defaultdict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    thread: threading.Event = field(default_factory=threading.Event)
    ran: list[str] = field(default_factory=list[str])
    app: App = field(init=False)
    serve: Any = field(init=False)

    def __post_init__(self) -> None:
        self.app = self.boot()
        self.serve = asgi(self.app, lambda: self.now)

    def boot(self) -> App:
        """Declare everything."""
        return define_app_mcp(
            self.registry(),
            name="desk",
            include="exposed",
            tools=self.tools(),
            scopes=self.scopes(),
            resolve_token=lambda token: self.callers.get(token),
            grants=[grant("staff", "any"), grant("clerk", "desk:use")],
            on_audit=self.events.append,
            tasks=self.limits,
            task_store=self.store,
            rate_limits=None,
            **self.more(),
        )

    def registry(self) -> Registry:
        """A query and an action, exposed as tasks."""
        registry = Registry()

        @registry.query(policy=can("desk:use"), mcp=expose("Rows", task="optional"))
        async def rows(input: Held) -> list[Row]:
            return [Row(id=f"{input.label}-{number}", size=number) for number in range(input.lines)]

        @registry.action(policy=can("desk:use"), mcp=expose("One", task="optional"))
        async def one(input: Held) -> Row:
            return Row(id=input.label, size=input.lines)

        return registry

    def more(self) -> dict[str, Any]:
        """What else is declared."""
        return {}

    def scopes(self) -> dict[str, list[str]]:
        """Two scopes."""
        return {"desk:use": self.names(), "vault:open": ["vault"]}

    def names(self) -> list[str]:
        """Every tool but the one of the other scope."""
        return [name for name in ("rows", "one", *self.tools()) if name != "vault"]

    def tools(self) -> dict[str, Any]:
        """Hand-written tools by the handlers' names."""
        optional = (
            self.hold,
            self.hold_plain,
            self.greet,
            self.picture,
            self.refuses,
            self.breaks,
            self.roots,
        )
        asking = (self.confirm, self.pair, self.twice, self.sampled, self.noting)
        made = {
            each.__name__: tool("d", each, policy="desk:use", task="optional") for each in optional + asking
        }
        return {
            **made,
            "never": tool("d", self.never, policy="desk:use"),
            "must": tool("d", self.must, policy="desk:use", task="required"),
            "first": tool("d", self.first, policy="desk:use", task="required", asks_first=True),
            "waits_first": tool("d", self.waits_first, policy="desk:use", task="optional", asks_first=True),
            "vault": tool("d", self.vault, policy="vault:open", visible_to=["staff"], task="optional"),
            "forbidden": tool("d", self.forbidden, policy="nobody:may", task="optional"),
        }

    # the handlers

    async def hold(self, input: Held) -> Text:
        """Wait for the test."""
        self.ran.append("hold")
        self.started.setdefault(input.label, asyncio.Event()).set()
        try:
            await self.release[input.label].wait()
        except asyncio.CancelledError:
            self.ran.append("stopped")
            raise
        return Text(f"held {input.label}")

    def hold_plain(self, ctx: Context[None]) -> Text:
        """Wait for the test in a thread, and look up now and then."""
        self.ran.append("hold_plain")
        self.thread.set()
        try:
            for number in range(1_000):
                ctx.client.wait(ctx.client.progress(number))
                threading.Event().wait(0.01)
        except Exception as stopped:
            self.ran.append(type(stopped).__name__)
            raise
        return Text("never")

    async def greet(self, input: Named) -> Text:
        """Answer at once."""
        return Text(f"Hello, {input.name}!")

    async def picture(self) -> list[Text | Image]:
        """Answer with blocks."""
        return [Text("look"), Image(b"\x89PNG", "image/png")]

    async def refuses(self) -> Text:
        """Refuse in words."""
        raise ActionError("X_DESK_BUSY", "the desk is busy", "wait", "come later")

    async def breaks(self) -> Text:
        """Raise what nobody may read."""
        raise LookupError("s3cret")

    async def roots(self, ctx: Context[None]) -> Text:
        """Ask what few clients declare."""
        await ctx.client.ask({"roots": ListRoots()})
        return Text("never")

    async def confirm(self, ctx: Context[None]) -> Text:
        """Ask one thing."""
        answers = await ctx.client.ask({"sure": Elicit("Sure?", Named)})
        return Text(str(answers["sure"]))

    async def pair(self, ctx: Context[None]) -> Text:
        """Ask two things at once."""
        answers = await ctx.client.ask({"a": Elicit("A?", Named), "b": Elicit("B?", Named)})
        return Text(f"{answers['a']} {answers['b']}")

    async def twice(self, ctx: Context[None]) -> Text:
        """Ask the same thing again."""
        first = await ctx.client.ask({"a": Elicit("A?", Named)})
        second = await ctx.client.ask({"a": Elicit("A?", Named)})
        return Text(f"{first['a']} {second['a']}")

    async def sampled(self, ctx: Context[None]) -> Text:
        """Ask the model."""
        asked = Sample([Message("user", "Say something")], max_tokens=9)
        return Text(str((await ctx.client.ask({"m": asked}))["m"]))

    async def noting(self, ctx: Context[None]) -> Text:
        """Say how it is doing, and wait for the test."""
        await ctx.client.log("info", "nobody hears this")
        await ctx.client.progress(1, 4)
        self.started.setdefault("noting", asyncio.Event()).set()
        await self.release["noting"].wait()
        return Text("noted")

    async def never(self) -> Text:
        """Never a task."""
        return Text("now")

    async def must(self) -> Text:
        """Always a task."""
        return Text("done")

    async def first(self, ctx: Context[None]) -> Text:
        """Ask before it becomes a task."""
        self.ran.append("first")
        answers = await ctx.client.ask({"who": Elicit("Who?", Named)}, state={"step": 1})
        background = await ctx.client.background()
        again = await ctx.client.background()
        return Text(f"{answers['who']} {background} {again} {ctx.client.state}")

    async def waits_first(self, ctx: Context[None]) -> Text:
        """Wait before it becomes a task."""
        held = await self.hold(Held(label="early"))
        background = await ctx.client.background()
        asked = await ctx.client.ask({"sure": Elicit("Sure?", Named)}) if background else None
        return Text(f"{held.text} {background} {asked}")

    async def vault(self, input: Held) -> Text:
        """Hidden from most, and under a scope of its own."""
        return await self.hold(input)

    async def forbidden(self) -> Text:
        """Permitted to nobody but the role that may do anything."""
        return Text("opened")

    # the client

    async def send(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        who: str = "ann",
        able: Mapping[str, Any] = ABLE,
        headers: Mapping[str, str] | None = None,
        revision: str = MODERN,
        leaves: asyncio.Event | None = None,
    ) -> Wire:
        """Send one request, and return the messages of its answer. The client stays until it ``leaves``."""
        told = dict(params or {})
        told["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": dict(able),
            **told.get("_meta", {}),
        }
        named = next((told[key] for key in ("name", "uri", "taskId") if isinstance(told.get(key), str)), None)
        sent_headers = {
            "host": "localhost",
            "authorization": f"Bearer {who}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": revision,
            "mcp-method": method,
            **({} if named is None else {"mcp-name": named}),
            **(headers or {}),
        }
        if revision != MODERN:
            del told["_meta"]
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": told}).encode()
        return await self.post(body, sent_headers, leaves)

    async def post(self, body: bytes, headers: Mapping[str, str], leaves: asyncio.Event | None) -> Wire:
        """Serve one POST."""
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])
        wire: Wire = []

        async def receive() -> MutableMapping[str, Any]:
            for part in parts:
                return part
            await (leaves or asyncio.Event()).wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            wire.append(message)

        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": raw, "client": ("127.0.0.1", 9)}
        await self.serve(scope, receive, send)
        return wire

    async def ask(self, method: str, params: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Send one request, and return the whole message that answers it."""
        wire = await self.send(method, params, **more)
        held: dict[str, Any] = json.loads(body_of(wire))
        return held

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Call a tool."""
        return await self.ask("tools/call", {"name": name, "arguments": dict(arguments or {})}, **more)

    async def begin(self, name: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> str:
        """Call a tool that goes on, and return its task's id."""
        held = await self.call(name, arguments, **more)
        assert held["result"]["resultType"] == "task", held
        return str(held["result"]["taskId"])

    async def get(self, ident: str, **more: Any) -> dict[str, Any]:
        """Look at a task."""
        held = await self.ask("tasks/get", {"taskId": ident}, **more)
        assert "result" in held, held
        return dict(held["result"])

    async def until(self, ident: str, *statuses: str, **more: Any) -> dict[str, Any]:
        """Look at a task until it has one of the statuses."""
        async with asyncio.timeout(10):
            while (held := await self.get(ident, **more))["status"] not in statuses:  # noqa: ASYNC110  (a client polls)
                await asyncio.sleep(0.005)
            return held

    async def update(self, ident: str, responses: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Answer questions of a task."""
        return await self.ask("tasks/update", {"taskId": ident, "inputResponses": dict(responses)}, **more)

    async def cancel(self, ident: str, **more: Any) -> dict[str, Any]:
        """Give a task up."""
        return await self.ask("tasks/cancel", {"taskId": ident}, **more)

    def passes(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


def body_of(wire: Wire) -> bytes:
    return b"".join(each.get("body", b"") for each in wire[1:])


def accept(name: str) -> dict[str, Any]:
    """An answer to a question for a name."""
    return {"action": "accept", "content": {"name": name}}


def events_of(wire: Wire) -> list[dict[str, Any]]:
    """The messages of a stream."""
    lines = body_of(wire).decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


@asynccontextmanager
async def served(desk: Desk) -> AsyncGenerator[Desk]:
    """Serve a desk from its lifespan's start to its end."""
    begun, ends, told = asyncio.Event(), asyncio.Event(), list[str]()

    async def receive() -> MutableMapping[str, Any]:
        if begun.is_set():
            await ends.wait()
            return {"type": "lifespan.shutdown"}
        return {"type": "lifespan.startup"}

    async def send(message: MutableMapping[str, Any]) -> None:
        told.append(message["type"])
        begun.set()

    life = asyncio.ensure_future(desk.serve({"type": "lifespan"}, receive, send))
    await begun.wait()
    try:
        yield desk
    finally:
        ends.set()
        await life
        assert told == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


# A test at a served desk


def run(doing: Callable[[Desk], Awaitable[T]], desk: Desk | None = None) -> T:
    """Do something at a served desk."""

    async def whole() -> T:
        async with asyncio.timeout(30), served(desk or Desk()) as held:
            return await doing(held)

    return asyncio.run(whole())


def said(held: dict[str, Any]) -> str:
    """The words of a completed task's result."""
    text = held["result"]["content"][0]["text"]
    assert isinstance(text, str)
    return text


async def within(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110  (what is waited for tells nobody)
            await asyncio.sleep(0.005)
