"""An app in which a request can end in every way, and a client that goes each; knows no test.

Time stands still, and every event and every line of the log that they came to is kept.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from nonsuch import (
    ActionError,
    Agent,
    App,
    Completing,
    Context,
    Elicit,
    Human,
    Limits,
    Open,
    Principal,
    Rate,
    Registry,
    Text,
    asgi,
    can,
    define_app_mcp,
    expose,
    grant,
    group,
    prompt,
    resource,
    tool,
)
from nonsuch.adapters.edge.asgi import Application
from nonsuch.kernel.audit import Event
from nonsuch.kernel.model import Outcome

from ...world import NOON
from ..mcp.live import MODERN, request

SENTINEL: Final = "s3ntinel"
POLICIES: Final = """
@id("huge") permit (principal, action == Action::"weigh", resource)
when { context.args.weight + 9223372036854775807 > 0 };
"""
TASKS: Final[dict[str, Any]] = {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}}
ROLES: Final = frozenset({"r"})
CALLERS: Final[Mapping[str, Principal | None]] = {
    "t": Agent("agent", roles=ROLES, scopes=["held"]),
    "bare": Agent("bare", roles=ROLES),
    "bot": Human("ann", roles=ROLES).delegate("bot", scopes=["held"]),
    "person": Human("ann", roles=ROLES, scopes=["held"]),
    "meta": Agent("meta", roles=ROLES | {"meta"}, scopes=["held"]),
}


class Named(BaseModel):
    name: str = ""


class Weight(BaseModel):
    weight: int


class Id(BaseModel):
    id: str


@dataclass(slots=True, eq=False)
class Ledger(logging.Handler):
    """The app, its events, and the lines of the log."""

    at: Path
    limits: Limits | None = None
    events: list[Event] = field(default_factory=list[Event])
    lines: list[str] = field(default_factory=list[str])
    ran: list[str] = field(default_factory=list[str])
    app: App = field(init=False)
    served: Application = field(init=False)
    hook: Any = None

    def __post_init__(self) -> None:
        logging.Handler.__init__(self, logging.DEBUG)
        self.at.mkdir(exist_ok=True)
        (self.at / "huge.cedar").write_text(POLICIES)
        self.app = define_app_mcp(
            self.registry(),
            name="ledger",
            include="exposed",
            tools=self.tools(),
            resources=self.resources(),
            prompts=[
                prompt(self.greet, description="P", name="greet", complete={"name": self.names}),
                prompt(self.greet, description="P", name="forbidden", policy="nobody:may"),
                prompt(self.breaks_named, description="P", name="breaks"),
            ],
            groups={"all": group("All", ["find", "weigh"])},
            surface=["meta"],
            scopes={"held": [each for each in NAMES if each != "scoped"], "lacking": ["scoped"]},
            grants=[grant("r", "a:b")],
            policies_dir=self.at,
            resolve_token=self.resolve,
            resolve_principal=lambda facts: CALLERS["person"] if facts.cookies else None,
            on_audit=self.hear,
            rate_limits=self.limits,
        )
        self.served = asgi(self.app, lambda: NOON)

    def hear(self, event: Event) -> None:
        """Keep an event, and hand it on."""
        self.events.append(event)
        if self.hook is not None:
            self.hook(event)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line of the audit."""
        self.lines.append(record.getMessage())

    def resolve(self, token: str) -> Principal | None:
        """Know a caller."""
        if token == "down":
            raise ConnectionError(token)
        return CALLERS.get(token)

    # what is declared

    def registry(self) -> Registry:  # noqa: C901  (a list of small handlers)
        """The actions and queries, each named for how it ends."""
        registry = Registry()
        fine, never = can("a:b"), can("nobody:may")

        async def find(input: Named) -> Named:
            self.ran.append("find")
            return Named(name=f"{SENTINEL} {input.name}")

        async def make(input: Id) -> Named:
            self.ran.append("make")
            return Named(name=SENTINEL)

        async def forbidden(input: Named) -> None: ...

        async def scoped(input: Named) -> None: ...

        async def secret(input: Named) -> None: ...

        async def weigh(input: Weight) -> None: ...

        async def breaks(input: Named) -> None:
            raise LookupError(SENTINEL)

        async def wrong(input: Named) -> Named:
            return SENTINEL  # type: ignore[return-value]  # an answer of another type

        async def busy(input: Named) -> None:
            raise ActionError("X_BUSY", SENTINEL, SENTINEL)

        registry.query(policy=fine, mcp=expose("x"))(find)
        for handler in (make, scoped, breaks, wrong, busy):
            registry.action(policy=fine, mcp=expose("x"), idempotent=handler is make)(handler)
        registry.action(policy=can("x:weigh"), mcp=expose("x"))(weigh)
        registry.action(policy=never, mcp=expose("x"))(forbidden)
        registry.action(policy=fine, mcp=expose("x", visible_to=["nobody"]))(secret)
        return registry

    def tools(self) -> dict[str, Any]:
        """Tools that ask, and that go on."""
        return {
            "asks": tool("x", self.asks, policy="a:b", task="optional"),
            "goes_on": tool("x", self.goes_on, policy="a:b", task="optional"),
            "needs": tool("x", self.goes_on, policy="a:b", needs=["sampling"]),
        }

    def resources(self) -> list[Any]:
        """Resources, each named for how it ends."""
        return [
            resource("r:fine", "fine", "R", self.look),
            resource("r:row/{id}", "row", "R", self.row, complete={"id": self.names}),
            resource("r:forbidden", "forbidden", "R", self.look, policy="nobody:may"),
            resource("r:breaks", "breaks", "R", self.breaks_bare),
            resource("r:secret", "secret", "R", self.look, visible_to=["nobody"]),
        ]

    async def look(self) -> str:
        """Return a row."""
        self.ran.append("look")
        return SENTINEL

    async def row(self, input: Id) -> str:
        """Return another row."""
        return f"{SENTINEL} {input.id}"

    async def greet(self, input: Named) -> str:
        """Return words."""
        self.ran.append("greet")
        return f"{SENTINEL} {input.name}"

    async def names(self, input: Completing) -> list[str]:
        """Return how a word may end."""
        return [f"{SENTINEL}{input.value}"]

    async def breaks_named(self, input: Named) -> str:
        """Raise."""
        raise LookupError(SENTINEL)

    async def breaks_bare(self) -> str:
        """Raise."""
        raise LookupError(SENTINEL)

    async def asks(self, ctx: Context[None]) -> Text:
        """Ask the client."""
        answers = await ctx.client.ask({"who": Elicit("Who?", Named)}, state={"held": SENTINEL})
        return Text(f"{SENTINEL} {answers}")

    async def goes_on(self) -> Text:
        """End soon."""
        return Text(SENTINEL)

    # the client

    async def mcp(self, method: str, who: str = "t", revision: str = MODERN, /, **params: Any) -> Any:
        """Send one MCP request; the message that answers it."""
        headers, body = request(revision, method, who, **params)
        return json.loads(await self.send("/mcp", headers, body) or b"{}")

    async def call(self, name: str, who: str = "t", revision: str = MODERN, /, **arguments: Any) -> Any:
        """Call a tool."""
        return await self.mcp("tools/call", who, revision, name=name, arguments=arguments)

    async def http(
        self,
        path: str,
        body: bytes = b"{}",
        who: str | None = "t",
        method: str = "POST",
        query: str = "",
        /,
        **headers: str,
    ) -> bytes:
        """Send one request to a path of an action; headers by their names with underscores."""
        sent = {"host": "127.0.0.1", "content-type": "application/json"}
        if who is not None:
            sent["authorization"] = f"Bearer {who}"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.send(f"/api/{path}", list(sent.items()), body, method, query)

    async def send(
        self,
        path: str,
        headers: list[tuple[str, str]],
        body: bytes,
        method: str = "POST",
        query: str = "",
        address: str = "192.0.2.1",
    ) -> bytes:
        """Send one request; the body that answers it."""
        sent: list[MutableMapping[str, Any]] = []
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> MutableMapping[str, Any]:
            for part in parts:
                return part
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
            "client": (address, 50_000),
        }
        await self.served(scope, receive, send)
        return b"".join(each.get("body", b"") for each in sent)

    async def invoke(self, name: str, who: str = "t", /, **arguments: Any) -> Outcome:
        """Call in process."""
        principal = CALLERS[who]
        assert principal is not None
        async with Open(self.app, lambda: NOON) as running:
            return await running.invoke(principal, name, arguments)


NAMES: Final = (
    "find",
    "make",
    "scoped",
    "breaks",
    "wrong",
    "busy",
    "weigh",
    "forbidden",
    "secret",
    "asks",
    "goes_on",
    "needs",
)
SPENT: Final = Limits(Rate(1_000), Rate(1_000), Rate(1))
