"""An app whose transfers wait for a person: agents that ask, people who decide, pages on which they do."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import uvicorn
from pydantic import BaseModel

from nonsuch import (
    Agent,
    App,
    Context,
    Human,
    Registry,
    SessionFacts,
    asgi,
    can,
    define_app_mcp,
    expose,
    grant,
    mcp_confirmations,
    memory_confirmation_store,
)
from nonsuch.adapters.edge.run import Running
from nonsuch.kernel.audit import Event
from nonsuch.kernel.model import Outcome, Unconfirmed

START = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
BOT = Agent("bot", roles={"teller"}, org="acme", scopes={"bank"})
ANN = Human("ann", roles={"manager"}, org="acme")
EVE = Human("eve", roles={"manager"}, org="other")
CLERK = Human("clerk", org="acme")
PEOPLE = {each.id: each for each in (ANN, EVE, CLERK)}


class Transfer(BaseModel):
    to: str
    amount: int = 1
    note: str = ""


class Sent(BaseModel):
    to: str


@dataclass
class Bank:
    """The app, what ran, what was audited, and what time it is."""

    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    where: str | None = None
    now: datetime = START
    ran: list[Transfer] = field(default_factory=list[Transfer])
    heard: list[Event] = field(default_factory=list[Event])
    app: App = field(init=False)
    running: Running = field(init=False)

    def __post_init__(self) -> None:
        self.app = self._defined(self.given)
        self.running = Running(self.app, None, self.clock)

    def clock(self) -> datetime:
        return self.now

    def _defined(self, given: Mapping[str, Any]) -> App:
        registry = Registry()

        @registry.action(policy=can("bank:send"), mcp=expose("Send money"))
        async def transfer(input: Transfer, ctx: Context[None]) -> Sent:
            self.ran.append(input)
            return Sent(to=input.to)

        decides = registry.add(
            mcp_confirmations(
                tools=["transfer"],
                store=memory_confirmation_store(),
                permission="bank:confirm",
                ttl=timedelta(minutes=10),
                where=self.where,
            )
        )
        settings: dict[str, Any] = {
            "name": "bank",
            "include": "exposed",
            "grants": [grant("teller", "bank:send"), grant("manager", "bank:confirm")],
            "confirmations": decides,
            "inbox": "/desk/confirmations",
            "title": "Bank & Sons",
            "resolve_token": {"bot": BOT, "ann": ANN}.get,
            "resolve_principal": session,
            "on_audit": self.heard.append,
            "rate_limits": None,
        }
        return define_app_mcp(registry, **{**settings, **given})

    def ask(self, **arguments: Any) -> str:
        """Have the agent ask for a transfer. Returns the confirmation's id."""
        told = self.call(arguments)
        assert isinstance(told, Unconfirmed), told
        return told.ident

    def call(self, arguments: dict[str, Any]) -> Outcome:
        """Call the tool in process as the agent; apart, because a browser's test has a loop of its own."""
        with ThreadPoolExecutor(1) as apart:
            asked = self.running.invoke(BOT, "transfer", arguments, "agent")
            return apart.submit(asyncio.run, asked).result()

    def later(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)


def session(facts: SessionFacts) -> Human | None:
    """Who a cookie names."""
    return PEOPLE.get(facts.cookies.get("session", ""))


@contextmanager
def served(bank: Bank) -> Generator[str]:
    """Serve the app on loopback; yields its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    mounted = asgi(bank.app, bank.clock)
    config = uvicorn.Config(mounted, lifespan="off", log_level="warning", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
