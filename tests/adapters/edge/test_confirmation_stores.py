"""What every store of confirmations must do, asked of each: whole steps, one winner, the DDL as it ships."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import count
from typing import Final, TypeVar

import psycopg
import pytest

from nonsuch import ConfirmationStore, memory_confirmation_store, postgres_confirmation_store
from nonsuch.adapters.edge.confirmations import Listing
from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.postgres.confirmations import SQL_MCP_CONFIRMATIONS_TABLE, TABLE
from nonsuch.kernel.confirmation import Confirmation, Status, moved

T = TypeVar("T")
Using = Callable[[ConfirmationStore], Awaitable[T]]
NOON: Final = datetime(2026, 7, 28, 12, tzinfo=UTC)
TTL: Final = timedelta(minutes=10)
MS: Final = timedelta(milliseconds=1)
_numbers: Final = count()


def row(
    ident: str = "a", *, owner: str = "o", print_: str = "k:p", org: str | None = "acme", at: datetime = NOON
) -> Confirmation:
    who = (f"{ident:-<16}", "shop", owner, org)
    return Confirmation(*who, "ag", "agent", None, "refund", print_, b"\0sealed", at, at + TTL, at)


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    with embedded_postgres() as held:
        yield held


def fresh_table(address: str) -> str:
    """Return the name of a new table."""
    table = f"{TABLE}_{next(_numbers)}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SQL_MCP_CONFIRMATIONS_TABLE.replace(TABLE, table).encode())
    return table


@pytest.fixture(params=("memory", "postgres"))
def store(request: pytest.FixtureRequest, address: str) -> ConfirmationStore:
    if request.param == "memory":
        return memory_confirmation_store()
    return postgres_confirmation_store(address, fresh_table(address), connections=8)


def use(store: ConfirmationStore, using: Using[T]) -> T:
    """Use a store on an event loop, and close it."""

    async def whole() -> T:
        try:
            return await using(store)
        finally:
            await store.close()

    return asyncio.run(whole())


async def put(store: ConfirmationStore, each: Confirmation, *path: tuple[Status, datetime]) -> Confirmation:
    """Keep a row and move it along."""
    assert await store.open(each, 100) == each
    for status, at in path:
        changed = moved(each, status, at, "bob" if status in ("approved", "rejected") else None)
        assert changed is not None
        assert await store.swap(changed)
        each = changed
    return each


def test_what_is_kept_comes_back_and_its_arguments_only_when_they_are_asked_for(
    store: ConfirmationStore,
) -> None:
    async def using(store: ConfirmationStore) -> None:
        for each in (row("a"), replace(row("b", owner="p", org=None), person="ann", actor_kind="human")):
            kept = await put(store, each, ("approved", NOON + MS))
            assert await store.read(kept.ident, sealed=True) == kept
            assert await store.read(kept.ident) == replace(kept, sealed=b"")
        assert await store.read("nothing") is None

    use(store, using)


def test_of_one_call_one_row_is_open(store: ConfirmationStore) -> None:
    async def using(store: ConfirmationStore) -> None:
        first = await put(store, row("a"))
        for other in (row("b"), row("c", at=NOON + TTL)):
            held = await store.open(other, 100)
            assert held is not None
            assert held.ident == first.ident
        for other in (row("d", owner="p"), row("e", print_="k:q")):
            assert await store.open(other, 100) == other
        found = await store.find("o", "refund", "k:p")
        assert found is not None
        assert found.ident == first.ident
        assert await store.find("o", "fails", "k:p") is None

    use(store, using)


ENDS: Final[dict[str, tuple[tuple[Status, datetime], ...]]] = {
    "ran": (("approved", NOON), ("running", NOON), ("ran", NOON)),
    "refused": (("rejected", NOON), ("refused", NOON)),
    "expired": (("expired", NOON + TTL),),
    "interrupted": (("approved", NOON), ("running", NOON), ("interrupted", NOON + TTL)),
}


@pytest.mark.parametrize("end", ENDS)
def test_once_a_row_is_over_the_call_may_be_asked_for_again(store: ConfirmationStore, end: str) -> None:
    async def using(store: ConfirmationStore) -> None:
        over = await put(store, row("a"), *ENDS[end])
        assert over.status == end
        assert await store.find("o", "refund", "k:p") is None
        assert await store.open(row("b"), 100) == row("b")
        assert await store.read(over.ident) == replace(over, sealed=b"")

    use(store, using)


def test_a_change_takes_the_place_of_its_last_version_alone(store: ConfirmationStore) -> None:
    async def using(store: ConfirmationStore) -> None:
        kept = await put(store, row("a"))
        approved, rejected = moved(kept, "approved", NOON, "bob"), moved(kept, "rejected", NOON, "eve")
        assert approved is not None
        assert rejected is not None
        assert await store.swap(replace(approved, sealed=b""))
        assert not await store.swap(rejected)
        assert not await store.swap(replace(approved, ident="nothing"))
        assert await store.read(kept.ident, sealed=True) == approved

    use(store, using)


def test_so_many_of_one_caller_wait_and_no_more(store: ConfirmationStore) -> None:
    async def using(store: ConfirmationStore) -> None:
        for number in range(3):
            each = row(f"{number}", print_=f"k:{number}")
            assert await store.open(each, 3) == each
        assert await store.open(row("x", print_="k:x"), 3) is None
        held = await store.open(row("y", print_="k:1"), 3)
        assert held is not None
        assert held.ident == row("1").ident
        decided = moved(row("0", print_="k:0"), "approved", NOON, "bob")
        assert decided is not None
        assert await store.swap(decided)
        assert await store.open(row("x", print_="k:x"), 3) is not None
        assert await store.open(row("z", print_="k:z", at=NOON + TTL), 3) is not None

    use(store, using)


def test_rows_are_listed_by_organisation_the_newest_first(store: ConfirmationStore) -> None:
    async def using(store: ConfirmationStore) -> None:
        for number, org in enumerate(("acme", None, "acme", "beta")):
            each = row(f"{number}", print_=f"k:{number}", org=org, at=NOON + number * MS)
            path: tuple[tuple[Status, datetime], ...] = (("rejected", NOON + MS),) if number == 2 else ()
            await put(store, each, *path)
        await put(store, replace(row("5", print_="k:5"), server="another"))

        async def listed(org: str | None, every: bool, open_: bool, now: datetime, limit: int = 9) -> str:
            rows = await store.listed(Listing(("shop",), org, every, open_, now, limit))
            assert {each.sealed for each in rows} <= {b""}
            return "".join(each.ident[0] for each in rows)

        late = NOON + TTL
        assert await listed("acme", False, True, NOON) == "0"
        assert await listed("acme", False, False, NOON) == "2"
        assert await listed("acme", False, False, late) == "20"
        assert await listed(None, False, True, NOON) == "1"
        assert await listed("acme", True, True, NOON) == "310"
        assert await listed("acme", True, True, NOON, 2) == "31"
        assert await listed("gone", False, True, NOON) == ""

    use(store, using)


def test_what_was_over_before_then_is_purged_and_nothing_else(store: ConfirmationStore) -> None:
    async def using(store: ConfirmationStore) -> None:
        await put(store, row("a"))
        await put(store, row("b", print_="k:b"), *ENDS["ran"])
        began = NOON + TTL - MS
        await put(store, row("c", print_="k:c"), ("approved", NOON), ("running", began))
        assert await store.purge(NOON + TTL) == 0
        assert await store.purge(NOON + TTL + MS) == 2
        assert await store.purge(began + TTL) == 0
        assert await store.purge(began + TTL + MS) == 1
        assert await store.find("o", "refund", "k:p") is None
        assert await store.open(row("a"), 1) == row("a")

    use(store, using)


def test_of_many_at_once_one_row_is_kept_and_one_decision(store: ConfirmationStore) -> None:
    async def using(store: ConfirmationStore) -> None:
        rows = [row(f"{number:02}") for number in range(30)]
        held = await asyncio.gather(*(store.open(each, 100) for each in rows))
        idents = {each.ident for each in held if each is not None}
        assert len(idents) == 1
        (kept,) = (each for each in rows if each.ident in idents)
        changes = [moved(kept, "approved", NOON, f"p{number}") for number in range(30)]
        won = await asyncio.gather(*(store.swap(each) for each in changes if each is not None))
        assert sum(won) == 1

    use(store, using)


# PostgreSQL's own


def test_the_migration_is_the_ddl() -> None:
    shipped = files("nonsuch") / "adapters/edge/postgres/migrations/0001_mcp_confirmations.sql"
    text = "".join(line for line in shipped.read_text().splitlines(True) if not line.startswith("--"))
    assert text.strip().removesuffix(";") == SQL_MCP_CONFIRMATIONS_TABLE.strip()


def test_the_ddl_can_be_applied_twice(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for _ in range(2):
            connection.execute(SQL_MCP_CONFIRMATIONS_TABLE.encode())


@pytest.mark.parametrize(
    ("asked", "told"), [("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")]
)
def test_what_is_told_is_on_disk_first(address: str, asked: str, told: str) -> None:
    store = postgres_confirmation_store(
        f"{address}&options=-csynchronous_commit%3D{asked}", fresh_table(address)
    )

    async def using(_: ConfirmationStore) -> object:
        pool = await store._open()  # pyright: ignore[reportPrivateUsage]  # what no answer shows
        async with pool.connection() as connection:
            return (await (await connection.execute("show synchronous_commit")).fetchone() or [None])[0]

    assert use(store, using) == told


def test_an_app_without_confirmations_loads_no_openssl() -> None:
    program = (
        "import nonsuch, sys; print(sorted(name for name in sys.modules if name.startswith('cryptography')))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
