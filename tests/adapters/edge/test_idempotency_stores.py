"""What every store of keyed calls must do, asked of each: whole steps, one winner, no loss by a crash."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final, TypeVar

import psycopg
import pytest
from psycopg import sql

from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.idempotency import IdempotencyStore, MemoryIdempotencyStore, StoreFull
from nonsuch.adapters.edge.postgres.idempotency import (
    SQL_IDEMPOTENCY_TABLE,
    TABLE,
    PostgresIdempotencyStore,
)
from nonsuch.adapters.edge.postgres.tasks import Cipher
from nonsuch.kernel.idempotency import Kept

T = TypeVar("T")
Using = Callable[[IdempotencyStore], Awaitable[T]]
NOON: Final = datetime(2026, 7, 28, 12, tzinfo=UTC)
MINUTE: Final = timedelta(minutes=1)
_numbers: Final = count()


def record(slot: str = "s", digest: str = "d", at: datetime = NOON, minutes: int = 1) -> Kept:
    return Kept(slot, digest, b'["p1",null]', at, at + minutes * MINUTE)


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    with embedded_postgres() as held:
        yield held


@pytest.fixture(params=("memory", "postgres"))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def fresh_table(address: str) -> str:
    """Return the name of a new table."""
    table = f"{TABLE}_{next(_numbers)}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SQL_IDEMPOTENCY_TABLE.replace(TABLE, table).encode())
    return table


def store_of(kind: str, address: str, cipher: Cipher | None = None) -> IdempotencyStore:
    """Return an empty store."""
    if kind == "memory":
        return MemoryIdempotencyStore()
    return PostgresIdempotencyStore(address, fresh_table(address), cipher=cipher, connections=8)


def use(store: IdempotencyStore, using: Using[T]) -> T:
    """Use a store on an event loop, and close it."""

    async def whole() -> T:
        try:
            return await using(store)
        finally:
            await store.close()

    return asyncio.run(whole())


# What is kept comes back


@pytest.mark.parametrize("outcome", [b"+null", b"+\x00\xff", b'-["X","","",""]', b"+"])
def test_a_record_comes_back_as_it_was(kind: str, address: str, outcome: bytes) -> None:
    ended = replace(record(), outcome=outcome)

    async def using(store: IdempotencyStore) -> list[Kept | None]:
        assert await store.begin(record()) is None
        seen = [await store.find("s", NOON), await store.find("t", NOON)]
        await store.end(ended)
        return [*seen, await store.find("s", NOON), await store.begin(record(digest="other"))]

    assert use(store_of(kind, address), using) == [record(), None, ended, ended]


def test_what_was_forgotten_can_be_begun_again(kind: str, address: str) -> None:
    async def using(store: IdempotencyStore) -> list[Kept | None]:
        await store.begin(record())
        await store.forget(record())
        return [await store.find("s", NOON), await store.begin(record(digest="other"))]

    assert use(store_of(kind, address), using) == [None, None]


def test_an_outcome_is_never_forgotten_or_replaced(kind: str, address: str) -> None:
    ended = replace(record(), outcome=b"+1")

    async def using(store: IdempotencyStore) -> Kept | None:
        await store.begin(record())
        await store.end(ended)
        await store.end(replace(record(), outcome=b"+2"))
        await store.forget(record())
        return await store.find("s", NOON)

    assert use(store_of(kind, address), using) == ended


def test_a_record_lives_as_long_as_it_says(kind: str, address: str) -> None:
    async def using(store: IdempotencyStore) -> list[object]:
        await store.begin(record())
        last, end = NOON + MINUTE - timedelta(microseconds=1), NOON + MINUTE
        seen: list[object] = [await store.find("s", last) is not None, await store.find("s", end)]
        seen.append(await store.begin(record(digest="late", at=last)) == record())
        seen.append(await store.begin(record(digest="next", at=end)))
        return [*seen, await store.find("s", end) == record(digest="next", at=end)]

    assert use(store_of(kind, address), using) == [True, None, True, None, True]


def test_who_ends_late_ends_nobody_elses_record(kind: str, address: str) -> None:
    """The first call ran for longer than its record lived; another one has the slot by then."""
    later = record(digest="next", at=NOON + MINUTE)

    async def using(store: IdempotencyStore) -> Kept | None:
        await store.begin(record())
        await store.begin(later)
        await store.end(replace(record(), outcome=b"+first"))
        await store.forget(record())
        return await store.find("s", NOON + MINUTE)

    assert use(store_of(kind, address), using) == later


def test_what_has_expired_is_removed_and_nothing_else(kind: str, address: str) -> None:
    async def using(store: IdempotencyStore) -> list[bool]:
        for number in range(4):
            await store.begin(record(f"s{number}", minutes=number + 1))
        await store.purge(NOON + 2 * MINUTE)
        return [await store.find(f"s{number}", NOON) is not None for number in range(4)]

    assert use(store_of(kind, address), using) == [False, False, True, True]


# One winner


@pytest.mark.parametrize("expired", [False, True])
def test_of_fifty_that_begin_at_once_one_does(kind: str, address: str, *, expired: bool) -> None:
    async def using(store: IdempotencyStore) -> list[int]:
        won = list[int]()
        for number in range(20):
            slot, at = f"slot {number}", NOON + MINUTE
            if expired:
                await store.begin(record(slot))
            each = [record(slot, f"digest {each}", at) for each in range(50)]
            told = await asyncio.gather(*(store.begin(kept) for kept in each))
            winner = each[told.index(None)]
            assert {kept for kept in told if kept is not None} == {winner}
            assert await store.find(slot, at) == winner
            won.append(told.count(None))
        return won

    assert use(store_of(kind, address), using) == [1] * 20


# A whole history, against a dictionary


@dataclass
class Shelf:
    """The store as a dictionary and the sentences of its promises."""

    kept: dict[str, Kept] = field(default_factory=dict[str, Kept])

    def find(self, slot: str, at: datetime) -> Kept | None:
        """What has not expired."""
        held = self.kept.get(slot)
        return held if held is not None and at < held.expires else None

    def begin(self, new: Kept) -> Kept | None:
        """Only where nothing is that lives."""
        held = self.find(new.slot, new.begun)
        if held is None:
            self.kept[new.slot] = new
        return held

    def end(self, ended: Kept) -> None:
        """Only what was begun so and has not ended."""
        if self.kept.get(ended.slot) == replace(ended, outcome=None):
            self.kept[ended.slot] = ended

    def forget(self, begun: Kept) -> None:
        """Only what was begun so and has not ended."""
        if self.kept.get(begun.slot) == begun:
            del self.kept[begun.slot]


@pytest.mark.parametrize("seed", range(3))
def test_a_history_ends_as_its_promises_say(kind: str, address: str, seed: int) -> None:
    async def using(store: IdempotencyStore) -> None:
        rng = random.Random(seed)  # noqa: S311 - a history, not a secret
        shelf, known, at = Shelf(), list[Kept](), NOON
        for _ in range(150):
            at += timedelta(seconds=rng.randrange(40))
            slot = rng.choice("abc")
            fresh = record(slot, rng.choice("xy"), at)
            match rng.randrange(4):
                case 0:
                    known.append(fresh)
                    assert await store.begin(fresh) == shelf.begin(fresh)
                case 1 if known:
                    ended = replace(rng.choice(known), outcome=b"+1")
                    await store.end(ended)
                    shelf.end(ended)
                case 2 if known:
                    begun = rng.choice(known)
                    await store.forget(begun)
                    shelf.forget(begun)
                case _:
                    assert await store.find(slot, at) == shelf.find(slot, at)
        assert [await store.find(slot, at) for slot in "abc"] == [shelf.find(slot, at) for slot in "abc"]

    use(store_of(kind, address), using)


# Each store's own promises


def test_a_full_memory_refuses_rather_than_forgets() -> None:
    async def using(store: IdempotencyStore) -> None:
        await store.begin(record("a"))
        await store.begin(record("b", at=NOON + timedelta(seconds=30)))
        for _ in range(2):
            with pytest.raises(StoreFull):
                await store.begin(record("c", at=NOON + timedelta(seconds=31)))
        assert await store.begin(record("a")) == record("a")
        assert await store.begin(record("c", at=NOON + MINUTE)) is None
        assert await store.find("b", NOON + MINUTE) is not None

    use(MemoryIdempotencyStore(max_records=2), using)


def test_an_answer_without_room_leaves_its_call_begun() -> None:
    small, large = replace(record("a"), outcome=b"+" * 60), replace(record("b"), outcome=b"+" * 60)

    async def using(store: IdempotencyStore) -> None:
        for slot in ("a", "b"):
            await store.begin(record(slot))
        await store.end(small)
        with pytest.raises(StoreFull):
            await store.end(large)
        assert await store.find("b", NOON) == record("b")
        await store.purge(NOON + MINUTE)
        for slot in ("a", "b"):
            await store.begin(record(slot, at=NOON + MINUTE))
        later = replace(record("b", at=NOON + MINUTE), outcome=b"+" * 60)
        await store.end(later)
        assert await store.find("b", NOON + MINUTE) == later

    use(MemoryIdempotencyStore(max_bytes=100), using)


def test_a_row_without_a_cipher_holds_no_input_and_with_one_no_row(address: str) -> None:
    flipped = Cipher(lambda data, bound: bytes(b ^ 7 for b in data) + bound, _unflipped)
    for cipher, readable in ((None, True), (flipped, False)):
        store = store_of("postgres", address, cipher)

        async def using(store: IdempotencyStore) -> Kept | None:
            await store.begin(record())
            await store.end(replace(record(), outcome=b"+s3ntinel"))
            return await store.find("s", NOON)

        assert use(store, using) == replace(record(), outcome=b"+s3ntinel")
        with psycopg.connect(address) as connection:
            table = sql.Identifier(f"{TABLE}_{next(_numbers) - 1}")
            query = sql.SQL("select judged || outcome from {}").format(table)
            rows = connection.execute(query).fetchall()
        assert (b"s3ntinel" in bytes(rows[0][0])) is readable


def _unflipped(data: bytes, bound: bytes) -> bytes:
    assert data.endswith(bound)
    return bytes(b ^ 7 for b in data.removesuffix(bound))


@pytest.mark.parametrize(
    ("asked", "told"), [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")]
)
def test_what_is_told_is_on_disk_first(address: str, asked: str, told: str) -> None:
    """A database that confirms early is asked for more, one that confirms late for no less."""
    store = PostgresIdempotencyStore(
        f"{address}&options=-csynchronous_commit%3D{asked}", fresh_table(address)
    )

    async def using(_: IdempotencyStore) -> object:
        pool = await store._open()  # pyright: ignore[reportPrivateUsage]  # what no answer shows
        async with pool.connection() as connection:
            return (await (await connection.execute("show synchronous_commit")).fetchone() or [None])[0]

    assert use(store, using) == told


DYING: Final = """
import asyncio, os, signal, sys
from datetime import UTC, datetime, timedelta
from nonsuch.adapters.edge.postgres.idempotency import PostgresIdempotencyStore
from nonsuch.kernel.idempotency import Kept

async def main(address, table):
    store = PostgresIdempotencyStore(address, table)
    at = datetime(2026, 7, 28, 12, tzinfo=UTC)
    for number in range(10_000):
        kept = Kept(f"s{number}", "d", b"[]", at, at + timedelta(minutes=1))
        await store.begin(kept)
        print("begun", number, flush=True)
        await store.end(Kept(kept.slot, "d", b"[]", at, kept.expires, b"+1"))
        print("ended", number, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_process_that_is_killed_loses_nothing_that_it_said(address: str) -> None:
    table = fresh_table(address)
    command = [sys.executable, "-c", DYING, address, table]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().split() for _ in range(41)]
        process.send_signal(signal.SIGKILL)
        said += [line.split() for line in process.stdout if line.endswith("\n")]
    store = PostgresIdempotencyStore(address, table)

    async def using(store: IdempotencyStore) -> None:
        for word, number in (line for line in said if len(line) == 2):
            held = await store.find(f"s{number}", NOON)
            assert held is not None
            assert word == "begun" or held.outcome == b"+1"

    use(store, using)
