"""One app whose `refund` waits for a person, with a clock that tests set; it writes down every run.

`Shop` is the app in memory or on a store that is given. Knows no wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from nonsuch import (
    ActionError,
    Agent,
    App,
    ConfirmationStore,
    Context,
    Elicit,
    Human,
    Open,
    Registry,
    SealKey,
    SealKeys,
    can,
    define_app_mcp,
    expose,
    grant,
    group,
    mcp_confirmations,
    memory_confirmation_store,
)
from nonsuch.adapters.edge.run import Running
from nonsuch.kernel.audit import Event, ToolCall
from nonsuch.kernel.model import Failed, Ok, Outcome, PolicyDenied, PolicyError, Principal, Unconfirmed
from nonsuch.kernel.strict_json import Json

NOON: Final = datetime(2026, 7, 28, 12, tzinfo=UTC)
TTL: Final = timedelta(minutes=10)
MS: Final = timedelta(milliseconds=1)
KEYS: Final = SealKeys((SealKey("k1", bytes(range(32))),))
NEWER: Final = SealKeys((SealKey("k2", bytes(range(32, 64))), *KEYS.keys))
ALONE: Final = SealKeys(NEWER.keys[:1])

ANN: Final = Human("ann", roles={"clerk"}, org="acme")
AGENT: Final = ANN.delegate("ag", scopes={"orders"})
OTHER: Final = Human("eve", roles={"clerk", "boss"}, org="acme").delegate("ag2", scopes={"orders"})
BOSS: Final = Human("bob", roles={"boss", "clerk"}, org="acme")
FOREIGN: Final = Human("fay", roles={"boss", "clerk"}, org="beta")
NOBODY: Final = Agent("nobody", org="acme", scopes={"orders"})
LONER: Final = Agent("loner", roles={"clerk"}, scopes={"orders"})
LONE_BOSS: Final = Human("lou", roles={"boss"})
CALL: Final[Mapping[str, Json]] = {"order": "o1", "amount": 5}
PATH: Final = "decideConfirmation"


class Refund(BaseModel):
    order: str
    amount: int
    note: str | None = None


class Order(BaseModel):
    id: str
    org: str


@dataclass
class Shop:
    """The app. ``ran`` are the runs of its gated handlers, ``now`` is its clock."""

    store: ConfirmationStore = field(default_factory=memory_confirmation_store)
    keys: SealKeys = KEYS
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    confirming: Mapping[str, Any] = field(default_factory=dict[str, Any])
    model: type[BaseModel] = Refund
    now: datetime = NOON
    ran: list[str] = field(default_factory=list[str])
    loads: list[str] = field(default_factory=list[str])
    events: list[Event] = field(default_factory=list[Event])
    gate: asyncio.Event | None = None
    ledger: Path | None = None
    ticks: bool = False

    def clock(self) -> datetime:
        return datetime.now(UTC) if self.ticks else self.now

    def registry(self) -> Registry:  # noqa: C901  (a list of small handlers)
        """Declare what the shop does; the input model of `refund` may be another one."""
        registry = Registry()

        async def order(input: BaseModel) -> Order | None:
            self.loads.append("order")
            return Order(id="o1", org="acme") if getattr(input, "order", "") == "o1" else None

        async def refund(input: Refund, ctx: Context[Any]) -> str:
            if self.gate is not None:
                await self.gate.wait()
            self.ran.append(f"{ctx.principal.id} {input.order} {input.amount}")
            if self.ledger is not None:
                written(self.ledger, input.amount)
            return "refunded"

        async def fails(input: Refund) -> str:
            self.ran.append("fails")
            raise ActionError("X_LATE", "too late", "come earlier")

        async def asks(input: Refund, ctx: Context[Any]) -> str:
            self.ran.append("asks")
            sure = await ctx.client.ask({"sure": Elicit("Sure?", {"type": "object", "properties": {}})})
            self.ran.append("asked")
            return str(sorted(sure))

        async def works(input: Refund) -> str:
            if self.gate is not None:
                await self.gate.wait()
            self.ran.append("works")
            return "worked"

        def peek() -> str:
            return "peeked"

        async def secret(input: Refund) -> str:
            self.ran.append("secret")
            return "secret"

        for handler in (refund, order):
            handler.__annotations__["input"] = self.model
        on_order = can("order:refund", resource=order)
        registry.action(policy=on_order, mcp=expose("Refund an order"), path="orders/refund")(refund)
        registry.action(policy=can("order:fail"), mcp=expose("Fail"), idempotent=True)(fails)
        registry.action(policy=can("order:ask"), mcp=expose("Ask", task="optional"))(asks)
        registry.action(policy=can("order:ask"), mcp=expose("Work", task="optional"))(works)
        registry.query(policy=can("order:peek"), mcp=expose("Peek"))(peek)
        registry.action(policy=can("order:fail"), mcp=expose("Secret", visible_to=["boss"]))(secret)
        return registry

    def app(self) -> App:
        """Boot it."""
        registry = self.registry()
        told: dict[str, Any] = {
            "tools": ["refund", "fails", "asks", "works", "secret"],
            "store": self.store,
            "permission": "order:confirm",
            "keys": self.keys,
            "ttl": TTL,
            **self.confirming,
        }
        given: dict[str, Any] = {
            "name": "shop",
            "include": "exposed",
            "scopes": {"orders": ["refund", "fails", "asks", "works", "peek", "secret", PATH]},
            "grants": [
                *(grant("clerk", f"order:{verb}") for verb in ("refund", "fail", "ask", "peek")),
                grant("boss", "order:confirm"),
            ],
            "groups": {"orders": group("Orders", ["refund", "fails"])},
            "surface": ["meta"],
            "on_audit": self.events.append,
            "rate_limits": None,
            "resolve_token": TOKENS.get,
            "secret": bytes(32),
            **self.settings,
        }
        return define_app_mcp(registry, confirmations=registry.add(mcp_confirmations(**told)), **given)

    def open(self) -> AbstractAsyncContextManager[Running]:
        """Enter it."""
        return Open(self.app(), self.clock)

    @property
    def last(self) -> ToolCall:
        """The last audit event."""
        event = self.events[-1]
        assert isinstance(event, ToolCall)
        return event


def written(ledger: Path, amount: int) -> None:
    """Write one run down, in one step that a crash cannot undo."""
    with ledger.open("ab", buffering=0) as file:
        file.write(f"{amount}\n".encode())


TOKENS: Final[Mapping[str, Principal]] = {
    "ag": AGENT,
    "ag2": OTHER,
    "bob": BOSS,
    "fay": FOREIGN,
    "nobody": NOBODY,
    "meta": Human("ann", roles={"clerk", "meta"}, org="acme").delegate("ag", scopes={"orders"}),
}


async def call(
    running: Running, who: Principal = AGENT, tool: str = "refund", sent: Mapping[str, Json] = CALL
) -> Outcome:
    """Call a tool in process."""
    return await running.invoke(who, tool, sent)


async def asked(running: Running, who: Principal = AGENT, tool: str = "refund") -> str:
    """Call a tool that waits, and return the id of its confirmation."""
    outcome = await call(running, who, tool)
    assert isinstance(outcome, Unconfirmed), outcome
    assert outcome.code == "X_MCP_CONFIRMATION_PENDING"
    return outcome.ident


async def decide(
    running: Running, ident: str, decision: str, who: Principal = BOSS, arguments: Json = None
) -> Outcome:
    """Decide as a person does over HTTP, in process."""
    sent: dict[str, Json] = {"id": ident, "decision": decision}
    carried: dict[str, Json] = {} if arguments is None else {"arguments": arguments}
    return await running.invoke(who, PATH, sent | carried, "http")


async def began(running: Running, ident: str) -> None:
    """Wait until the run of a confirmation has begun."""
    assert running.app.confirmations is not None
    while True:
        row = await running.app.confirmations.store.read(ident)
        if row is not None and row.status == "running":
            return
        await asyncio.sleep(0)


async def approve(running: Running, ident: str, who: Principal = BOSS) -> Outcome:
    """View, and approve what was viewed."""
    viewed = await decide(running, ident, "view", who)
    assert isinstance(viewed, Ok), viewed
    held = viewed.value
    assert isinstance(held, dict)
    return await decide(running, ident, "approve", who, held["arguments"])


def code_of(outcome: Outcome) -> str:
    """Return the code of a refusal, or `ok`."""
    if isinstance(outcome, (Failed, PolicyDenied, Unconfirmed)):
        return outcome.code
    if isinstance(outcome, PolicyError):
        return "X_FORBIDDEN"
    return "ok" if isinstance(outcome, Ok) else type(outcome).__name__
