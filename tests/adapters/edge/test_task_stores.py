"""What every store of tasks must do, asked of each: whole steps, bounds, and one winner of a hundred."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Final, TypeVar

import psycopg
import pytest

from nonsuch.adapters.edge import task_store
from nonsuch.adapters.edge.postgres.tasks import SQL_TASKS_TABLE, TABLE, Cipher, PostgresTaskStore
from nonsuch.adapters.edge.task_store import MemoryTaskStore, SwapsRefused, TaskBook, TaskStore
from nonsuch.kernel.strict_json import Json
from nonsuch.kernel.tasks import Ending, Task, TaskLimits, answered, asked, cancelled, ended, noted, taken

from .task_shelves import KINDS, LIMITS, NOON, fresh_table, ident, server, store_of, task

T = TypeVar("T")
Using = Callable[[TaskStore], Awaitable[T]]
MINUTE: Final = timedelta(minutes=1)


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    with server() as held:
        yield held


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def use(store: TaskStore, using: Using[T]) -> T:
    """Use a store on an event loop, and close it."""

    async def whole() -> T:
        try:
            return await using(store)
        finally:
            await store.close()

    return asyncio.run(whole())


# What is kept comes back


EVERYTHING: Final = replace(
    task(),
    status="input_required",
    updated=NOON + timedelta(microseconds=1),
    message="half way \u2028 \x00",
    asks={"a": {"method": "roots/list"}, "b\x00": [1.5, 2**70, None, True, "ü"]},
    answers={"c": {"deep": {"er": []}}},
    version=0,
)


def test_a_task_comes_back_as_it_was(kind: str, address: str) -> None:
    async def using(store: TaskStore) -> Mapping[str, Task]:
        assert await store.create(EVERYTHING, LIMITS)
        return await store.read([EVERYTHING.ident, ident(9)], NOON)

    assert use(store_of(kind, address), using) == {EVERYTHING.ident: EVERYTHING}


def test_a_swapped_task_comes_back_as_it_was_and_keeps_its_lease(kind: str, address: str) -> None:
    done = ended(EVERYTHING, NOON + MINUTE, Ending("completed", b'{"rows":[]}', None))
    assert done is not None

    async def using(store: TaskStore) -> Mapping[str, Task]:
        await store.create(EVERYTHING, LIMITS)
        assert await store.swap(replace(done, lease=NOON))
        return await store.read([done.ident], NOON)

    assert use(store_of(kind, address), using) == {done.ident: done}


def test_what_has_expired_is_not_read_and_then_not_there(kind: str, address: str) -> None:
    async def using(store: TaskStore) -> list[int]:
        await store.create(task(1), LIMITS)
        await store.create(task(2, at=NOON + MINUTE), LIMITS)
        idents, end = [ident(1), ident(2)], NOON + timedelta(seconds=LIMITS.ttl_seconds)
        seen = [len(await store.read(idents, at)) for at in (end - timedelta(microseconds=1), end)]
        seen.append(len(await store.versions(idents, end)))
        await store.purge(end)
        return [*seen, len(await store.read(idents, NOON))]

    assert use(store_of(kind, address), using) == [2, 1, 1, 1]


# Leases


def test_a_lease_is_prolonged_while_it_runs_and_never_brought_back(kind: str, address: str) -> None:
    until = NOON + timedelta(hours=2)

    async def using(store: TaskStore) -> list[datetime]:
        for number in (1, 2, 3):
            await store.create(task(number, at=NOON - number * timedelta(seconds=14)), LIMITS)
        gone = cancelled(task(1, at=NOON - timedelta(seconds=14)), NOON)
        assert gone is not None
        assert await store.swap(gone)
        await store.renew([ident(1), ident(2), ident(3), ident(4)], NOON, until)
        held = await store.read([ident(1), ident(2), ident(3)], NOON)
        return [held[ident(number)].lease for number in (1, 2, 3)]

    ended_lease, running, lapsed = use(store_of(kind, address), using)
    assert (ended_lease, running) == (NOON + timedelta(seconds=16), until)
    assert lapsed == NOON - timedelta(seconds=12)


# Bounds


def test_a_full_store_takes_no_more_until_something_expires(kind: str, address: str) -> None:
    limits = TaskLimits(ttl_seconds=60, per_principal=2, in_all=3)

    async def using(store: TaskStore) -> list[bool]:
        plan = [
            ("ann", 0),
            ("ann", 1),
            ("ann", 2),
            ("bob", 3),
            ("bob", 4),
            ("cai", 5),
            ("ann", 60),
            ("bob", 61),
        ]
        return [
            await store.create(
                task(number, owner, NOON + timedelta(seconds=second), limits),
                limits,
            )
            for number, (owner, second) in enumerate(plan)
        ]

    # ann's third is one too many of hers, bob's second of all; a minute later there is room again
    assert use(store_of(kind, address), using) == [True, True, False, True, False, False, True, True]


def test_the_last_room_is_given_once(kind: str, address: str) -> None:
    limits = TaskLimits(per_principal=1, in_all=1_000)

    async def using(store: TaskStore) -> list[int]:
        won = list[int]()
        for number in range(40):
            owner = f"owner {number}"
            made = (store.create(task(8 * number + each, owner), limits) for each in range(8))
            won.append(sum(await asyncio.gather(*made)))
        return won

    assert use(store_of(kind, address), using) == [1] * 40


# One winner


def test_of_a_hundred_swaps_at_once_one_is_made(kind: str, address: str) -> None:
    async def using(store: TaskStore) -> tuple[list[bool], Task]:
        await store.create(task(), LIMITS)
        each = [noted(task(), NOON, f"number {number}") for number in range(100)]
        done = await asyncio.gather(*(store.swap(changed) for changed in each if changed is not None))
        held = (await store.read([ident(0)], NOON))[ident(0)]
        assert held == each[done.index(True)]
        return list(done), held

    done, held = use(store_of(kind, address), using)
    assert (done.count(True), held.version) == (1, 1)


def test_of_a_hundred_cancellations_and_answers_at_once_one_ends_the_task(kind: str, address: str) -> None:
    """Fifty give the one answer, fifty cancel: what is answered is answered once, what is ended stays so."""

    async def using(store: TaskStore) -> tuple[list[Task | None], Task]:
        book = TaskBook(store, LIMITS, lambda: NOON)
        await store.create(task(), LIMITS)
        await book.change(ident(0), "ann", partial(asked, asks={"a": "question"}))
        answers = [partial(answered, answers={"a": number}) for number in range(50)]
        changes = [change for answer in answers for change in (answer, cancelled)]
        made = await asyncio.gather(*(book.change(ident(0), "ann", change) for change in changes))
        held = await book.find(ident(0), "ann")
        assert held is not None
        return list(made), held

    made, held = use(store_of(kind, address), using)
    won = [each.status for each in made if each is not None]
    assert sorted(won) in (["cancelled"], ["cancelled", "working"])
    assert (held.status, held.asks, held.answers, held.version) == ("cancelled", {}, {}, 1 + len(won))


def test_a_hundred_parts_of_one_answer_are_all_kept(kind: str, address: str) -> None:
    keys = [f"key {number}" for number in range(100)]

    async def using(store: TaskStore) -> Task | None:
        book = TaskBook(store, LIMITS, lambda: NOON)
        await store.create(task(), LIMITS)
        await book.change(ident(0), "ann", partial(asked, asks=dict.fromkeys(keys, "question")))
        parts = [partial(answered, answers={key: key}) for key in keys]
        await asyncio.gather(*(book.change(ident(0), "ann", part) for part in parts))
        return await book.find(ident(0), "ann")

    held = use(store_of(kind, address), using)
    assert held is not None
    assert (held.status, held.answers, held.version) == ("working", {key: key for key in keys}, 101)


# A whole history, against a dictionary


@dataclass
class Shelf:
    """The store as a dictionary and the sentences of its promises."""

    kept: dict[str, Task] = field(default_factory=dict[str, Task])

    def create(self, new: Task, limits: TaskLimits) -> bool:
        """Room is counted without the expired."""
        self.kept = {key: held for key, held in self.kept.items() if held.expires > new.created}
        mine = [held for held in self.kept.values() if held.owner == new.owner]
        if len(mine) >= limits.per_principal or len(self.kept) >= limits.in_all:
            return False
        self.kept[new.ident] = new
        return True

    def swap(self, new: Task) -> bool:
        """Only from the version before, and never from an end."""
        held = self.kept.get(new.ident)
        if held is None or held.version + 1 != new.version:
            return False
        if held.status in ("completed", "failed", "cancelled"):
            return False
        self.kept[new.ident] = replace(new, lease=held.lease)
        return True

    def renew(self, key: str, at: datetime, until: datetime) -> None:
        """Only a lease that runs."""
        held = self.kept.get(key)
        if held is not None and held.status in ("working", "input_required") and held.lease > at:
            self.kept[key] = replace(held, lease=until)

    def read(self, at: datetime) -> dict[str, Task]:
        """What has not expired."""
        return {key: held for key, held in self.kept.items() if held.expires > at}


def changed(rng: random.Random, held: Task, at: datetime) -> Task | None:
    """Something that could happen to a task, or the like of what happened to it before."""
    said: dict[str, Json] = {rng.choice("abc"): rng.randrange(9)}
    made = rng.choice(
        [
            asked(held, at, said),
            answered(held, at, said),
            taken(held, at, said),
            noted(held, at, "x"),
            ended(held, at, Ending(rng.choice(("completed", "failed", "cancelled")), b"{}"))
            if rng.random() < 0.2
            else None,
        ]
    )
    other = rng.choice((0, held.version, held.version + 1))
    return replace(held, version=other) if made is None else made


@pytest.mark.parametrize("seed", range(3))
def test_a_store_is_a_dictionary_of_tasks(kind: str, address: str, seed: int) -> None:
    rng, limits = random.Random(seed), TaskLimits(ttl_seconds=40, lease_seconds=9, per_principal=3, in_all=5)  # noqa: S311  (a repeatable history)

    async def using(store: TaskStore) -> None:
        shelf, at = Shelf(), NOON
        for number in range(150):
            at += timedelta(seconds=rng.randrange(3))
            key = rng.choice(list(shelf.kept) or [ident(0)])
            match rng.randrange(5):
                case 0:
                    new = task(number, rng.choice(("ann", "bob")), at, limits)
                    assert await store.create(new, limits) == shelf.create(new, limits)
                case 1:
                    await store.renew([key], at, at + MINUTE)
                    shelf.renew(key, at, at + MINUTE)
                case _ if key in shelf.kept:
                    new = changed(rng, shelf.kept[key], at) or shelf.kept[key]
                    assert await store.swap(new) == shelf.swap(new)
                case _:
                    await store.purge(at)
            everything = [ident(each) for each in range(number + 1)]
            assert await store.read(everything, at) == shelf.read(at)
            versions = {key: held.version for key, held in shelf.read(at).items()}
            assert await store.versions(everything, at) == versions

    use(store_of(kind, address), using)


# The book: a task is read as it is now


def test_a_lapsed_task_is_written_down_as_failed_by_whoever_reads_it(kind: str, address: str) -> None:
    """Or its process could wake up and bring it back, after somebody was told that it failed."""
    late = NOON + timedelta(seconds=31)

    async def using(store: TaskStore) -> tuple[str, list[Task | None]]:
        await store.create(task(), LIMITS)
        told = await TaskBook(store, LIMITS, lambda: late).find(ident(0), "ann")
        assert told is not None
        owner = TaskBook(store, LIMITS, lambda: NOON)  # its clock is behind: it thinks that it is in time
        await owner.renew([ident(0)])
        finish = partial(ended, ending=Ending("completed", b"{}"))
        return told.status, [await owner.change(ident(0), "ann", finish), await owner.find(ident(0), "ann")]

    told, (brought_back, held) = use(store_of(kind, address), using)
    assert (told, brought_back) == ("failed", None)
    assert held is not None
    assert held.status == "failed"


def test_a_task_is_nobody_elses(kind: str, address: str) -> None:
    async def using(store: TaskStore) -> list[Task | None]:
        book = TaskBook(store, LIMITS, lambda: NOON)
        await store.create(task(), LIMITS)
        return [await book.find(ident(0), "bob"), await book.change(ident(0), "bob", cancelled)]

    assert use(store_of(kind, address), using) == [None, None]


def test_of_a_result_that_is_too_large_nothing_is_kept(
    kind: str, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not by the last byte, and whoever ends the task."""
    limits = TaskLimits(result_bytes=16)

    async def using(store: TaskStore) -> list[Task | None]:
        book, found = TaskBook(store, limits, lambda: NOON), list[Task | None]()
        for number, body in enumerate((b"x" * 16, b"s3cret " + b"x" * 10)):
            await store.create(task(number), limits)
            finish = partial(ended, ending=Ending("completed", body, "all is well"))
            told = await book.change(ident(number), "ann", finish)
            held = await TaskBook(store, LIMITS, lambda: NOON).find(ident(number), "ann")
            assert told == held
            found.append(held)
        return found

    whole, bare = use(store_of(kind, address), using)
    assert whole is not None
    assert (whole.status, whole.body, whole.message) == ("completed", b"x" * 16, "all is well")
    assert bare is not None
    assert (bare.status, bare.body) == ("failed", b"")
    assert bare.message == "the work ended, and its result is larger than a task keeps"
    told = "the result of `slow` has 17 bytes, and a task keeps 16: see `result_bytes` of `TaskLimits`"
    assert caplog.messages == [told]


# A store that never takes a change


class Stubborn(MemoryTaskStore):
    """Its readings are older than what it compares with."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def swap(self, task: Task) -> bool:
        """Refuse."""
        self.asked += 1
        return False


@pytest.mark.parametrize("late", [timedelta(0), timedelta(seconds=31)])
def test_a_store_that_refuses_every_change_is_told_of_and_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, late: timedelta
) -> None:
    """A lapsed task is written down by a reading too, and there the store is asked no more often."""
    monkeypatch.setattr(task_store, "PAUSE_SECONDS", 0.0001)
    store, turns = Stubborn(), 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def using(_: TaskStore) -> None:
        await store.create(task(), LIMITS)
        watching = asyncio.ensure_future(others())
        with pytest.raises(SwapsRefused, match="refused 256 changes in a row"):
            await TaskBook(store, LIMITS, lambda: NOON + late).change(ident(0), "ann", cancelled)
        watching.cancel()

    use(store, using)
    assert store.asked == 256
    assert turns >= 256
    assert caplog.messages == [
        "the store of tasks refused 256 changes in a row: let `swap` compare with what `read` returns"
    ]


# PostgreSQL's own


def rows(address: str, table: str) -> list[bytes]:
    with psycopg.connect(address) as connection:
        found = connection.execute(f"select t::text from {table} t".encode()).fetchall()  # noqa: S608  (a table of ours)
    return [str(row[0]).encode() for row in found]


def test_the_table_can_be_made_twice_and_takes_no_other_status(address: str) -> None:
    table = fresh_table(address)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SQL_TASKS_TABLE.replace(TABLE, table).encode())
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute(
                f"insert into {table} values ('i','o','t','odd',now(),now(),now(),now(),1,0,'','')".encode()  # noqa: S608  (a table of ours)
            )


def disguised(data: bytes) -> bytes:
    return bytes(each ^ 0x5A for each in data)


def opened(data: bytes, bound: bytes) -> bytes:
    plain = disguised(data[32:])
    if sha256(bound + plain).digest() != data[:32]:
        raise ValueError("made for something else")
    return plain


# no cipher at all, but what a store must do with one shows by it
DISGUISE: Final = Cipher(lambda data, bound: sha256(bound + data).digest() + disguised(data), opened)
SECRET: Final = replace(task(1), asks={"a": "s3cret"}, message="s3cret", status="input_required")
DONE: Final = ended(SECRET, NOON, Ending("completed", b'"s3cret"'))


@pytest.mark.parametrize(("cipher", "readable"), [(None, True), (DISGUISE, False)])
def test_with_a_cipher_the_table_tells_nothing_of_what_was_said(
    address: str, cipher: Cipher | None, readable: bool
) -> None:
    table = fresh_table(address)

    def tells() -> bool:
        return b"s3cret".hex().encode() in b"".join(rows(address, table))

    async def using(store: TaskStore) -> list[bool]:
        await store.create(SECRET, LIMITS)
        told = [tells()]
        assert await store.read([ident(1)], NOON) == {ident(1): SECRET}
        assert DONE is not None
        assert await store.swap(DONE)
        assert await store.read([ident(1)], NOON) == {ident(1): DONE}
        return [*told, tells()]

    assert use(PostgresTaskStore(address, table, cipher=cipher), using) == [readable, readable]


def test_with_a_cipher_the_result_of_one_task_is_not_anothers(address: str) -> None:
    table = fresh_table(address)

    async def using(store: TaskStore) -> None:
        for each in (task(1), task(2)):
            await store.create(each, LIMITS)
        moved = f"update {table} set body = (select body from {table} where id = %s) where id = %s"  # noqa: S608  (the same)
        with psycopg.connect(address) as connection:
            connection.execute(moved.encode(), (ident(1), ident(2)))
        assert await store.read([ident(1)], NOON) == {ident(1): task(1)}
        with pytest.raises(ValueError, match="made for something else"):
            await store.read([ident(2)], NOON)

    use(PostgresTaskStore(address, table, cipher=DISGUISE), using)


def test_a_store_that_was_closed_opens_again(address: str) -> None:
    store = store_of("postgres", address)

    async def creating(held: TaskStore) -> bool:
        return await held.create(task(), LIMITS)

    async def reading(held: TaskStore) -> int:
        return len(await held.read([ident(0)], NOON))

    assert use(store, creating)
    assert use(store, reading) == 1
