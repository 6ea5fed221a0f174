"""Keyed calls of a whole app, over ASGI: once among many, until they expire, past a new secret."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

import psycopg
import pytest
from pydantic import BaseModel

from nonsuch import Agent, App, Human, Registry, asgi, can, define_app_mcp, expose, grant
from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.idempotency import IdempotencyStore, MemoryIdempotencyStore
from nonsuch.adapters.edge.postgres.idempotency import (
    SQL_IDEMPOTENCY_TABLE,
    TABLE,
    PostgresIdempotencyStore,
)
from nonsuch.kernel.audit import Event, ToolCall
from nonsuch.kernel.errors import BootError

NOON: Final = datetime(2026, 8, 1, 12, tzinfo=UTC)
OLD, NEW = b"o" * 32, b"n" * 32
_numbers: Final = count()


class Order(BaseModel):
    orderId: str
    amount: int = 1


class Paid(BaseModel):
    orderId: str
    number: int


@dataclass
class Till:
    """An app that takes money, once for each number it gives out."""

    store: IdempotencyStore | None = None
    secret: bytes | tuple[bytes, ...] | None = OLD
    seconds: float = 86_400
    paid: list[str] = field(default_factory=list[str])
    events: list[Event] = field(default_factory=list[Event])
    now: datetime = NOON
    tokens: dict[str, Agent | Human] = field(
        default_factory=lambda: {"t": Agent("a", roles={"cashier"}), "u": Agent("b", roles={"cashier"})}
    )
    app: App = field(init=False)

    def __post_init__(self) -> None:
        registry = Registry()

        @registry.action(policy=can("order:pay"), mcp=expose("Pay"), path="pay", idempotent=True)
        async def pay(input: Order) -> Paid:  # pyright: ignore[reportUnusedFunction]
            self.paid.append(input.orderId)
            await asyncio.sleep(0.02)
            return Paid(orderId=input.orderId, number=len(self.paid))

        self.app = define_app_mcp(
            registry,
            name="till",
            include="exposed",
            grants=[grant("cashier", "any")],
            resolve_token=self.tokens.get,
            on_audit=self.events.append,
            secret=self.secret,
            idempotency_store=self.store,
            idempotency_seconds=self.seconds,
            rate_limits=None,
        )
        self.serve = asgi(self.app, lambda: self.now)

    async def send(self, path: str, body: object, *headers: tuple[str, str], caller: str = "t") -> Any:
        """Send one request; return its status and value."""
        sent: list[Any] = []
        told = [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("authorization", f"Bearer {caller}"),
        ]
        raw = json.dumps(body).encode()

        async def receive() -> Any:
            return {"type": "http.request", "body": raw, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in (*told, *headers)],
        }
        await self.serve(scope, receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"])

    async def over_http(self, key: str, order: str = "o1", caller: str = "t") -> tuple[str, int]:
        """Pay over HTTP; return the code and the number."""
        status, value = await self.send(
            "/api/pay", {"orderId": order}, ("idempotency-key", f'"{key}"'), caller=caller
        )
        return ("ok", value["number"]) if status == 200 else (value["code"], 0)

    async def over_mcp(self, key: str, order: str = "o1", caller: str = "t") -> tuple[str, int]:
        """Pay over MCP; return the code and the number."""
        params = {"name": "pay", "arguments": {"orderId": order, "idempotencyKey": key}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        version = ("mcp-protocol-version", "2025-11-25")
        _, value = await self.send("/mcp", message, version, caller=caller)
        result = value["result"]
        if result.get("isError"):
            return result["content"][0]["text"].partition(":")[0], 0
        return "ok", result["structuredContent"]["number"]


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    with embedded_postgres() as held:
        yield held


@pytest.fixture(params=("memory", "postgres"))
def store(request: pytest.FixtureRequest) -> Callable[[], IdempotencyStore]:
    """Return a maker of stores; those in PostgreSQL share one table, those in memory are one."""
    if request.param == "memory":
        held = MemoryIdempotencyStore()
        return lambda: held
    address: str = request.getfixturevalue("address")
    table = f"{TABLE}_{next(_numbers)}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SQL_IDEMPOTENCY_TABLE.replace(TABLE, table).encode())
    return lambda: PostgresIdempotencyStore(address, table, connections=6)


Make = Callable[[], IdempotencyStore]


def use(*tills: Till, work: Callable[[], Awaitable[None]]) -> None:
    """Run on one event loop, and close the stores."""

    async def whole() -> None:
        try:
            await work()
        finally:
            for till in tills:
                await till.app.idempotency_store.close()

    asyncio.run(whole())


IN_PROGRESS: Final = ("X_IDEMPOTENCY_IN_PROGRESS", 0)


def test_of_fifty_at_once_over_two_surfaces_and_two_processes_one_runs(store: Make) -> None:
    one, two = Till(store()), Till(store())

    async def work() -> None:
        calls = [
            till.over_http("k") if at % 2 else till.over_mcp("k") for at in range(25) for till in (one, two)
        ]
        told = await asyncio.gather(*calls)
        assert one.paid + two.paid == ["o1"]
        assert told.count(("ok", 1)) >= 1
        assert set(told) <= {("ok", 1), IN_PROGRESS}
        assert {await one.over_http("k"), await two.over_mcp("k")} == {("ok", 1)}
        assert one.paid + two.paid == ["o1"]

    use(one, two, work=work)


def test_fifty_keys_run_fifty_times(store: Make) -> None:
    till = Till(store())

    async def work() -> None:
        told = await asyncio.gather(*(till.over_http(f"k{at}") for at in range(50)))
        assert [word for word, _ in told] == ["ok"] * 50
        assert len(till.paid) == 50

    use(till, work=work)


def test_a_key_is_bound_to_its_caller_its_input_and_no_surface(store: Make) -> None:
    till = Till(store())

    async def work() -> None:
        assert await till.over_http("k") == ("ok", 1)
        assert await till.over_mcp("k") == ("ok", 1)
        assert await till.over_mcp("k", "o2") == ("X_IDEMPOTENCY_CONFLICT", 0)
        assert await till.over_http("k", "o2") == ("X_IDEMPOTENCY_CONFLICT", 0)
        assert await till.over_http("k", "o2", caller="u") == ("ok", 2)
        assert await till.over_http("k", caller="t") == ("ok", 1)

    use(till, work=work)


def test_a_record_is_kept_for_as_long_as_the_app_says(store: Make) -> None:
    till = Till(store(), seconds=60)

    async def work() -> None:
        assert await till.over_http("k") == ("ok", 1)
        till.now = NOON + timedelta(seconds=59)
        assert await till.over_http("k") == ("ok", 1)
        till.now = NOON + timedelta(seconds=60)
        assert await till.over_http("k") == ("ok", 2)

    use(till, work=work)


def test_who_may_no_longer_pay_is_not_told_what_was_paid(store: Make) -> None:
    till = Till(store())

    async def work() -> None:
        assert await till.over_http("k") == ("ok", 1)
        till.tokens["t"] = Agent("a")
        for pay in (till.over_http, till.over_mcp):
            assert await pay("k") == ("X_FORBIDDEN", 0)
            assert await pay("k", "o2") != ("ok", 1)
        till.tokens["t"] = Agent("a", roles={"cashier"})
        assert await till.over_mcp("k") == ("ok", 1)

    use(till, work=work)


def test_a_new_secret_beside_the_old_one_knows_what_was_paid(store: Make) -> None:
    before, after = Till(store(), OLD), Till(store(), (NEW, OLD))

    async def work() -> None:
        assert await before.over_http("k") == ("ok", 1)
        assert await after.over_http("k") == ("ok", 1)
        assert await after.over_http("l") == ("ok", 1)  # its own first
        assert after.paid == ["o1"]

    use(before, after, work=work)


def test_a_new_secret_alone_never_pays_twice(store: Make) -> None:
    """What it cannot compare, it refuses: the caller reads the state, and takes another key."""
    before, after = Till(store(), OLD), Till(store(), NEW)

    async def work() -> None:
        assert await before.over_http("k") == ("ok", 1)
        assert await after.over_http("k") == ("X_IDEMPOTENCY_CONFLICT", 0)
        assert after.paid == []

    use(before, after, work=work)


def test_a_retry_is_audited_as_one() -> None:
    till = Till()

    async def work() -> None:
        await till.over_http("k")
        await till.over_mcp("k")
        await till.over_mcp("k", "o2")

    use(till, work=work)
    events = [each for each in till.events if isinstance(each, ToolCall)]
    assert [(each.outcome, each.code, each.replayed) for each in events] == [
        ("ok", None, None),
        ("ok", None, True),
        ("failed", "X_IDEMPOTENCY_CONFLICT", None),
    ]
    assert "o1" not in repr(events)


# a store that fails


class Broken(MemoryIdempotencyStore):
    """Finds nothing out."""

    async def find(self, slot: str, now: datetime) -> None:
        raise ConnectionError("hunter2")


def test_nothing_is_paid_unrecorded(caplog: pytest.LogCaptureFixture) -> None:
    till = Till(Broken())

    async def work() -> None:
        assert await till.over_http("k") == ("X_IDEMPOTENCY_STORE_FAILED", 0)
        assert await till.over_mcp("k") == ("X_IDEMPOTENCY_STORE_FAILED", 0)
        assert (await till.send("/api/pay", {"orderId": "o1"}))[0] == 200
        assert till.paid == ["o1"]

    use(till, work=work)
    assert "hunter2" not in caplog.text
    assert "ConnectionError" in caplog.text


# boot


@pytest.mark.parametrize("secret", [None, (), (OLD, b"short"), b"short"])
def test_a_store_of_several_processes_needs_their_secret(secret: bytes | tuple[bytes, ...] | None) -> None:
    with pytest.raises(BootError) as refused:
        Till(PostgresIdempotencyStore("postgresql:///nowhere"), secret)
    assert {each.code for each in refused.value.faults} == {"X_DECLARATION_INVALID"}


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_record_is_kept_for_some_time(seconds: float) -> None:
    with pytest.raises(BootError) as refused:
        Till(seconds=seconds)
    assert [each.code for each in refused.value.faults] == ["X_DECLARATION_INVALID"]


def test_a_store_of_this_process_needs_none() -> None:
    Till(MemoryIdempotencyStore(), None)
