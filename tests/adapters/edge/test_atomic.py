"""An atomic action: what it did and the record of its key are committed together, or both are undone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

import psycopg
import pytest
from psycopg import sql
from pydantic import BaseModel

from nonsuch import ActionError, Agent, App, MemoryIdempotencyStore, Open, Registry, can, expose, grant
from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.idempotency import OPEN, AtomicStore, IdempotencyBook
from nonsuch.adapters.edge.postgres.idempotency import (
    SQL_IDEMPOTENCY_TABLE,
    TABLE,
    PostgresIdempotencyStore,
)
from nonsuch.adapters.edge.run import Running
from nonsuch.kernel.denials import failed
from nonsuch.kernel.idempotency import Kept
from nonsuch.kernel.model import Failed, Ok, Outcome
from nonsuch.kernel.replay import remembered
from nonsuch.kernel.steps import Answer, Raised, Remember, Returned

from ...kernel.trial import boot, faults

NOON: Final = datetime(2026, 8, 1, 12, tzinfo=UTC)
CASHIER: Final = Agent("a", roles={"cashier"})
STORE_FAILED: Final = "X_IDEMPOTENCY_STORE_FAILED"
_numbers: Final = count()


class Order(BaseModel):
    id: str


@dataclass
class Till:
    """An app of one atomic action, and what happens in its handler."""

    address: str
    happens: Callable[[psycopg.AsyncConnection[Any]], Awaitable[object]] | None = None
    afterwards: Callable[[], Awaitable[object]] | None = None
    table: str = field(default_factory=lambda: f"{TABLE}_a{next(_numbers)}")
    now: datetime = NOON
    app: App = field(init=False)
    records: PostgresIdempotencyStore = field(init=False)
    running: Running = field(init=False)

    def __post_init__(self) -> None:
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(SQL_IDEMPOTENCY_TABLE.replace(TABLE, self.table).encode())
            unique = sql.SQL("create table {} (id text, unique (id) deferrable initially deferred)")
            connection.execute(unique.format(self.paid_in))
        self.records, registry = PostgresIdempotencyStore(self.address, self.table), Registry()

        @registry.action(policy=can("order:pay"), mcp=expose("Pay"), idempotent=True, atomic=True)
        async def pay(input: Order) -> str:  # pyright: ignore[reportUnusedFunction]
            async with self.records.transaction() as connection:
                await connection.execute(self.note, [input.id])
                if self.happens is not None:
                    await self.happens(connection)
            if self.afterwards is not None:
                await self.afterwards()
            return input.id

        self.app = boot(
            registry,
            grants=[grant("cashier", "any")],
            secret=b"s" * 32,
            idempotency_store=self.records,
            rate_limits=None,
        )

    @property
    def paid_in(self) -> sql.Identifier:
        return sql.Identifier(f"{self.table}_paid")

    @property
    def note(self) -> sql.Composed:
        return sql.SQL("insert into {} (id) values (%s)").format(self.paid_in)

    def paid(self) -> list[str]:
        """What is there, as another connection sees it."""
        with psycopg.connect(self.address) as connection:
            query = sql.SQL("select id from {} order by 1").format(self.paid_in)
            return [row[0] for row in connection.execute(query).fetchall()]

    def recorded(self) -> int:
        with psycopg.connect(self.address) as connection:
            query = sql.SQL("select count(*) from {}").format(sql.Identifier(self.table))
            return int((connection.execute(query).fetchone() or [0])[0])

    async def call(self, key: str | None = "k", order: str = "o") -> str:
        """Pay; return `ok` or the code."""
        running = self.running
        given = {"id": order} if key is None else {"id": order, "idempotencyKey": key}
        return told(await running.invoke(CASHIER, "pay", given))

    def use(self, work: Callable[[], Awaitable[object]]) -> Any:
        """Run on an event loop, with the app open."""

        async def whole() -> object:
            async with Open(self.app, lambda: self.now) as self.running:
                return await work()

        return asyncio.run(whole())


def told(outcome: Outcome) -> str:
    match outcome:
        case Ok():
            return "ok"
        case Failed(code):
            return code
        case other:
            return repr(other)


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    with embedded_postgres() as held:
        yield held


@pytest.fixture
def till(address: str) -> Till:
    return Till(address)


def test_a_call_and_its_record_are_there_together(till: Till) -> None:
    async def before(_: object) -> None:
        assert (till.paid(), till.recorded()) == ([], 0)

    till.happens = before
    assert till.use(till.call) == "ok"
    assert (till.paid(), till.recorded()) == (["o"], 1)
    assert till.use(till.call) == "ok"
    assert till.paid() == ["o"]


def test_what_a_failure_did_is_undone_and_the_failure_is_kept(till: Till) -> None:
    async def fail(_: object) -> None:
        raise ActionError("X_TILL_SHUT", "the till is shut", "come again")

    till.happens = fail
    assert till.use(till.call) == "X_TILL_SHUT"
    till.happens = None
    assert till.use(till.call) == "X_TILL_SHUT"
    assert (till.paid(), till.recorded()) == ([], 1)


def test_what_cannot_be_committed_is_no_success(till: Till) -> None:
    """A constraint that is looked at in the end: nothing of it is there, and the retry runs."""

    async def twice(connection: psycopg.AsyncConnection[Any]) -> None:
        await connection.execute(till.note, ["o"])

    till.happens = twice
    assert till.use(till.call) == STORE_FAILED
    assert (till.paid(), till.recorded()) == ([], 0)
    till.happens = None
    assert till.use(till.call) == "ok"
    assert till.paid() == ["o"]


def test_a_connection_that_is_lost_takes_everything_with_it(till: Till) -> None:
    async def lost(connection: psycopg.AsyncConnection[Any]) -> None:
        pid = connection.info.backend_pid
        with psycopg.connect(till.address, autocommit=True) as other:
            other.execute("select pg_terminate_backend(%s)", [pid])
        await connection.execute("select 1")

    till.happens = lost
    assert till.use(till.call) == STORE_FAILED
    assert (till.paid(), till.recorded()) == ([], 0)
    till.happens = None
    assert till.use(till.call) == "ok"


def test_an_interrupted_call_is_undone_and_may_run_again(till: Till) -> None:
    """Unlike one that is not atomic, of which nobody knows what it did."""
    reached = asyncio.Event()

    async def wait() -> None:
        reached.set()
        await asyncio.sleep(60)

    async def work() -> None:
        call = asyncio.ensure_future(till.call())
        await reached.wait()
        assert await till.call() == "X_IDEMPOTENCY_IN_PROGRESS"
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (till.paid(), till.recorded()) == ([], 0)
        till.afterwards = None
        assert await till.call() == "ok"

    till.afterwards = wait
    till.use(work)
    assert till.paid() == ["o"]


def test_who_comes_second_waits_for_nobody_and_blocks_nobody(till: Till) -> None:
    """More at once than there are connections: the open ones never need another to end."""
    reached, go = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        reached.set()
        await go.wait()

    async def work() -> None:
        calls = [asyncio.ensure_future(till.call(f"k{at}", f"o{at}")) for at in range(12)]
        await reached.wait()
        go.set()
        assert await asyncio.gather(*calls) == ["ok"] * 12

    till.afterwards = wait
    till.use(work)
    assert len(till.paid()) == 12


def test_a_call_without_a_key_is_a_transaction_of_its_own(till: Till) -> None:
    async def work() -> None:
        assert await till.call(None) == "ok"
        async with till.records.transaction() as connection:
            await connection.execute(till.note, ["outside"])

    till.use(work)
    assert (till.paid(), till.recorded()) == (["o", "outside"], 0)


def test_a_record_that_expired_gives_way(till: Till) -> None:
    assert till.use(till.call) == "ok"
    till.now = NOON + timedelta(days=1)

    async def work() -> str:
        return await till.call("k", "another")

    assert till.use(work) == "ok"
    assert (till.paid(), till.recorded()) == (["another", "o"], 1)


def test_the_expired_are_removed_past_an_open_transaction(address: str) -> None:
    till = Till(address)
    moment = timedelta(seconds=20)
    old = Kept("s", "d", b"[]", NOON - 2 * moment, NOON - moment)
    again = Kept("s", "d", b"[]", NOON, NOON + timedelta(days=1))
    other = Kept("t", "d", b"[]", NOON - 2 * moment, NOON - moment)

    async def work() -> None:
        for each in (old, other):
            await till.records.begin(each)
        assert await till.records.open(again) is None
        assert till.recorded() == 2
        await asyncio.wait_for(till.records.purge(NOON), 5)
        assert till.recorded() == 1
        await till.records.forget(again)
        await till.records.close()

    asyncio.run(work())


# boot


async def waits(input: Order) -> str:
    return input.id


def plain(input: Order) -> str:
    return input.id


RECORDS: Final = PostgresIdempotencyStore("postgresql:///nowhere")


@pytest.mark.parametrize(
    ("handler", "given", "store", "cause"),
    [
        (waits, {}, RECORDS, "`waits` is atomic and takes no key"),
        (plain, {"idempotent": True}, RECORDS, "`plain` is atomic and its handler cannot wait"),
        (waits, {"idempotent": True}, None, "`waits` is atomic and this app's store shares no transaction"),
        (
            waits,
            {"idempotent": True},
            MemoryIdempotencyStore(),
            "`waits` is atomic and this app's store shares no transaction",
        ),
    ],
)
def test_what_cannot_be_atomic_is_refused_at_boot(handler: Any, given: Any, store: Any, cause: str) -> None:
    registry = Registry()
    registry.action(policy=can("a:b"), mcp=expose("x"), atomic=True, **given)(handler)
    (fault,) = faults(registry, idempotency_store=store, secret=b"s" * 32)
    assert (fault.code, fault.cause) == ("X_DECLARATION_INVALID", cause)


def test_a_store_says_by_its_methods_whether_it_shares() -> None:
    assert isinstance(RECORDS, AtomicStore)
    assert not isinstance(MemoryIdempotencyStore(), AtomicStore)


# without a database


class Noting(MemoryIdempotencyStore):
    """A store that shares a transaction which is nothing, and notes what becomes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.undone: list[Kept] = []

    async def open(self, kept: Kept) -> Kept | None:
        return await self.begin(kept)

    async def forget(self, kept: Kept) -> None:
        self.undone.append(kept)


KEPT: Final = Kept("s", "d", b"[]", NOON, NOON + timedelta(days=1))


@pytest.mark.parametrize("stops", [asyncio.CancelledError, KeyboardInterrupt])
def test_a_handler_that_is_stopped_is_undone(stops: type[BaseException]) -> None:
    store = Noting()
    book = IdempotencyBook(store, 60, lambda: NOON)

    async def stopped() -> Answer:
        assert OPEN.get() == KEPT
        raise stops

    with pytest.raises(stops):
        asyncio.run(book.within(KEPT, stopped()))
    assert store.undone == [KEPT]


def test_a_handler_that_ends_is_not_undone_yet() -> None:
    store = Noting()
    book = IdempotencyBook(store, 60, lambda: NOON)

    async def ends() -> Answer:
        return Returned(1)

    async def whole() -> None:
        assert await book.within(KEPT, ends()) == Returned(1)
        assert OPEN.get() is None

    asyncio.run(whole())
    assert store.undone == []


@pytest.mark.parametrize("atomic", [True, False])
def test_only_what_is_atomic_is_undone_by_a_record_that_fails(atomic: bool) -> None:
    """The answer of another one is told, for what it did is done."""
    registry = Registry()
    registry.action(policy=can("a:b"), mcp=expose("x"), idempotent=True, atomic=atomic)(waits)
    app = boot(registry, idempotency_store=RECORDS, secret=b"s" * 32)
    steps = remembered(KEPT, app.kernel.catalog.entries[0], Returned("x"), Ok(b"1"))
    assert next(steps) == Remember(KEPT, b"+1")
    with pytest.raises(StopIteration) as done:
        steps.send(Raised(ConnectionError()))
    assert done.value.value == (failed(STORE_FAILED) if atomic else Ok(b"1"))
