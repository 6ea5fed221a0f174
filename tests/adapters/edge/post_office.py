"""One app for the edge's tests: handlers of every kind, and a lifespan that says what it did."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from nonsuch import ActionError, Agent, App, Context, Human, Registry, can, define_app_mcp, expose, grant
from nonsuch.kernel.audit import Event

SENTINEL = "s3ntinel"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CLERK = Agent("clerk", roles={"clerk"})
VISITOR = Agent("visitor")
PERSON = Human("person", roles={"clerk"})


class Letter(BaseModel):
    to: str


class Sent(BaseModel):
    to: str
    by: str
    at: str
    where: str = ""


class Address(BaseModel):
    id: str


@dataclass
class Office:
    """What the lifespan yields."""

    opened: list[str] = field(default_factory=list[str])


@dataclass
class World:
    """The app, its events and what its handlers wait for."""

    events: list[Event] = field(default_factory=list[Event])
    office: Office = field(default_factory=Office)
    started: asyncio.Event = field(default_factory=asyncio.Event)

    def app(self, **given: Any) -> App:
        """Boot the app."""
        settings: dict[str, Any] = {
            "name": "office",
            "include": "exposed",
            "grants": [grant("clerk", "any")],
            "on_audit": self.events.append,
            "lifespan": self.lifespan,
            "rate_limits": None,
        }
        return define_app_mcp(self.registry(), **{**settings, **given})

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[Office]:
        """Write down when it is entered and left."""
        self.office.opened.append("open")
        try:
            yield self.office
        finally:
            self.office.opened.append("closed")

    def registry(self) -> Registry:  # noqa: C901  (a list of small handlers)
        """Declare every kind of handler."""
        registry = Registry()

        async def address(input: Letter, ctx: Context[Office]) -> Address | None:
            if input.to == "raise":
                raise KeyError(SENTINEL)
            return None if input.to == "nobody" else Address(id=input.to)

        def address_sync(input: Letter) -> Address | None:
            return Address(id=input.to)

        async def send(input: Letter, ctx: Context[Office]) -> Sent:
            return said(input, ctx)

        def send_sync(ctx: Context[Office], input: Letter) -> Sent:
            return said(input, ctx)

        def send_later(input: Letter, ctx: Context[Office]) -> Sent:
            async def later() -> Sent:
                await asyncio.sleep(0)
                return said(input, ctx)

            return later()  # type: ignore[return-value]  # what a plain function that wraps a coroutine does

        async def wait(input: Letter) -> Sent:
            self.started.set()
            await asyncio.sleep(60)
            raise AssertionError("nobody cancelled it")

        async def fail(input: Letter) -> Sent:
            raise ValueError(SENTINEL)

        def fail_sync(input: Letter) -> Sent:
            raise ValueError(SENTINEL)

        def stop(input: Letter) -> Sent:
            raise StopIteration

        async def late(input: Letter) -> Sent:
            raise ActionError("X_LATE", "too late", "raise the limit", "come earlier")

        def nothing() -> None:
            return None

        kinds: dict[str, Callable[..., Any]] = {"send": address, "send_sync": address_sync}
        for handler in (send, send_sync, send_later, wait, fail, fail_sync, stop, late, nothing):
            rule = can("letter:send", resource=kinds.get(handler.__name__))
            registry.action(policy=rule, mcp=expose("Do"), path=f"letters/{handler.__name__}")(handler)
        return registry


def said(input: Letter, ctx: Context[Office]) -> Sent:
    """Answer with everything the context holds."""
    where = "loop" if threading.current_thread() is threading.main_thread() else "thread"
    resource = ctx.resource.id if ctx.resource is not None else None
    to = f"{input.to}/{resource}/{','.join(ctx.resources.opened)}"
    return Sent(to=to, by=ctx.principal.id, at=ctx.now.isoformat(), where=where)
