"""A small app that counts requests by a clock that stands still, and a client at any address."""

from __future__ import annotations

import json
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel

from nonsuch import (
    Agent,
    App,
    Human,
    Limits,
    MemoryRateStore,
    Principal,
    Rate,
    RateStore,
    Registry,
    asgi,
    can,
    define_app_mcp,
    expose,
    grant,
    prompt,
    resource,
    tool,
)
from nonsuch.kernel.audit import Event

from ...world import NOON, drive

MANY: Final = Rate(1_000)
ROLES: Final = frozenset({"r"})
CALLERS: Final[dict[str, Principal]] = {
    "t": Agent("a", roles=ROLES),
    "t-again": Agent("a", roles=ROLES, scopes=["s"]),
    "other": Agent("b", roles=ROLES),
    "elsewhere": Agent("a", roles=ROLES, org="acme"),
    "ann": Human("ann", roles=ROLES).delegate("bot"),
    "bob": Human("bob", roles=ROLES).delegate("bot"),
    "bot": Agent("bot", roles=ROLES),
    "staff": Agent("s", roles=ROLES | {"staff"}),
    "person": Human("ann", roles=ROLES),
}


class Given(BaseModel):
    id: str


async def look() -> str:
    return "looked"


async def read_row(input: Given) -> str:
    return f"row {input.id}"


@dataclass(frozen=True, slots=True)
class Told:
    """One answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(slots=True, eq=False)
class Counted:
    """The app, its clock and what it did. ``lookup``, ``change`` and ``hidden`` are also ``/api/`` paths."""

    limits: Limits | None
    store: RateStore | None = None
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    now: int = 10**18
    events: list[Event] = field(default_factory=list[Event])
    resolved: list[str] = field(default_factory=list[str])
    ran: list[str] = field(default_factory=list[str])
    app: App = field(init=False)

    def __post_init__(self) -> None:
        registry = Registry()
        registry.query(policy=can("a:b"), mcp=expose("L"), single=True)(self._look())
        registry.action(policy=can("a:b"), mcp=expose("C"))(self._change())
        registry.query(policy=can("a:b"), mcp=expose("H", visible_to=["staff"]), single=True)(self._hidden())
        self.app = define_app_mcp(
            registry,
            name="counted",
            include="exposed",
            tools={
                "peek": tool("P", look, policy="a:b", destructive=False),
                "drop": tool("D", look, policy="a:b"),
            },
            resources=[
                resource("a:b", "b", "B", look),
                resource("a:b/{id}", "row", "R", read_row),
                resource("a:hidden", "hidden", "H", look, visible_to=["staff"]),
            ],
            prompts=[prompt(look, description="P", name="p")],
            grants=[grant("r", "any")],
            resolve_token=self._resolve,
            on_audit=self.events.append,
            rate_limits=self.limits,
            rate_limit_store=MemoryRateStore(lambda: self.now) if self.store is None else self.store,
            **self.settings,
        )

    def _resolve(self, token: str) -> Principal | None:
        self.resolved.append(token)
        if token == "down":
            raise ConnectionError(token)
        return CALLERS.get(token)

    def _look(self) -> Any:
        async def lookup() -> str:
            self.ran.append("lookup")
            return "found"

        return lookup

    def _change(self) -> Any:
        async def change(input: Given) -> str:
            self.ran.append("change")
            return input.id

        return change

    def _hidden(self) -> Any:
        async def hidden() -> str:
            self.ran.append("hidden")
            return "hidden"

        return hidden

    def later(self, seconds: float) -> None:
        """Move the clock of the meter."""
        self.now += round(seconds * 10**9)

    def send(
        self,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        path: str = "/mcp",
        method: str = "POST",
        address: str | None = "127.0.0.1",
    ) -> Told:
        """Send one request, and take its whole answer."""
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
            "client": None if address is None else (address, 50_000),
        }
        drive(asgi(self.app, lambda: NOON)(scope, receive, send))
        start, *parts = sent
        told = {name.decode(): value.decode() for name, value in start["headers"]}
        return Told(start["status"], told, b"".join(each.get("body", b"") for each in parts))
