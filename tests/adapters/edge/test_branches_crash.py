"""A process that is killed anywhere leaves nothing that passes for a branch; several at once do it once."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg
import pytest

from nonsuch.adapters.edge.postgres import branch_source, branches
from nonsuch.adapters.edge.postgres.branch_load import Contents
from nonsuch.adapters.edge.postgres.migrate import Migrated
from nonsuch.adapters.edge.postgres.refused import DatabaseRefused
from nonsuch.adapters.edge.postgres.sql_file import SqlFile

from .branching import KEY, Shop, served, shop_on

SEEDED = Contents(tables=("countries",), seeds=(SqlFile("s.sql", "insert into orders values (7, 'seed')"),))
FULL = Contents(full=True, seeds=SEEDED.seeds)
FILES = ("create table a (x int)", "create table b (x int)", "create table c (x int)")
MOST = 200  # statements of one command


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    with served() as dsn:
        yield dsn


@pytest.fixture
def shop(server: str) -> Generator[Shop]:
    with shop_on(server) as made:
        yield made


def forked(work: Callable[[], object]) -> int:
    """Do it in a process of its own; return that."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            work()
        os._exit(0)
    return child


def was_killed(child: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def killed_before(statement: int, work: Callable[[], object]) -> bool:
    """Do it in a process that dies before a statement, counted from 1; tell whether it came to that."""

    def counted() -> None:
        left, execute = statement, psycopg.Connection.execute

        def dying(*given: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return execute(*given, **named)

        psycopg.Connection.execute = dying  # type: ignore[method-assign]  # in a process of its own
        work()

    return was_killed(forked(counted))


def settled(shop: Shop) -> None:
    """Wait until the server has noticed that a client is gone."""
    asked = """
    select count(*) from pg_stat_activity
    where application_name in ('nonsuch db', 'nonsuch db.migrate', 'psql', 'pg_dump')
    """
    deadline = time.monotonic() + 20
    while shop.ask(asked, database="postgres") != [(0,)] and time.monotonic() < deadline:
        time.sleep(0.02)


def accepted(shop: Shop) -> set[str]:
    """Every database of the server in which migrations would run."""
    found, codes = set[str](), set[str]()
    for each in shop.databases():
        try:
            shop.migrate(each)
        except DatabaseRefused as refusal:
            codes.add(refusal.code)
        else:
            found.add(each)
    assert codes <= {"X_MCP_NOT_BRANCH_DB", "X_DB_UNREACHABLE"}
    return found


def closed(shop: Shop, database: str) -> bool:
    """Whether no role but its owner, and superusers, can enter a database."""
    held = shop.shape(database)
    return not held["open"] or {grantee for grantee, _, _ in held["grants"]} == {held["owner"]}


def whole(shop: Shop, database: str) -> None:
    """A branch is all that it was to be: as wide as its source, filled, seeded."""
    assert shop.shape(database) == shop.shape(shop.name)
    assert shop.ask("select * from orders where id = 7", database=database) == [(7, "seed")]
    assert len(shop.ask("select * from countries", database=database)) == 2


@pytest.mark.parametrize("contents", [SEEDED, FULL], ids=["schema", "full"])
def test_a_create_that_dies_before_any_statement_leaves_no_branch_or_a_whole_one(
    shop: Shop, contents: Contents
) -> None:
    shop.do("revoke all on database {} from public", shop.name)
    shop.do("alter database {} connection limit 5", shop.name)
    died = 0
    for statement in range(1, MOST):
        name = f"n{statement}"
        if not killed_before(statement, partial(shop.branch, name, contents)):
            break
        died += 1
        settled(shop)
        made = accepted(shop)
        assert len(shop.unfinished()) <= 1
        assert all(closed(shop, each) for each in shop.unfinished())
        for each in made:
            whole(shop, each)
        assert {f"{shop.name}_branch_{each}" for each in shop.ls()} == made
        for each in shop.ls():
            shop.drop(each)
    assert died > 20
    assert shop.ls() == [f"n{died + 1}"]
    assert shop.unfinished() == set()


def test_a_create_that_is_killed_at_any_moment_leaves_no_branch_or_a_whole_one(shop: Shop) -> None:
    draw = random.Random(7)  # noqa: S311  (moments to kill at, not secrets)
    for number in range(12):
        child = forked(partial(shop.branch, f"n{number}", SEEDED))
        time.sleep(draw.random() * 0.5)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        settled(shop)
        for each in accepted(shop):
            whole(shop, each)
    shop.branch("last", SEEDED)
    assert shop.unfinished() == set()


def test_a_drop_that_dies_before_any_statement_leaves_the_branch_or_nothing(shop: Shop) -> None:
    statement = 0
    for statement in range(1, MOST):
        if "feat" not in shop.ls():
            shop.branch("feat", SEEDED)
        if not killed_before(statement, lambda: shop.drop("feat")):
            break
        settled(shop)
        assert accepted(shop) <= {f"{shop.name}_branch_feat"}
        for each in accepted(shop):
            whole(shop, each)
    assert statement > 5
    assert shop.unfinished() == set()
    assert shop.databases() >= {shop.name, "postgres"}
    assert not accepted(shop)


def test_what_is_left_of_another_key_or_source_or_name_is_left_alone(server: str, shop: Shop) -> None:
    with shop_on(server) as other:
        killed_before(12, lambda: shop.branch("feat", SEEDED))
        settled(shop)
        (left,) = shop.unfinished()
        other.branch("theirs")
        assert branches.create(shop.at(), KEY + b"!", "feat").name == "feat"
        assert left in shop.unfinished()
        number, nonce, proof = left.removeprefix("nonsuch_new_").split("_")
        forged = f"nonsuch_new_{number}_{nonce[::-1]}_{proof}"
        shop.do("create database {}", forged)
        shop.branch("mine")
        assert shop.unfinished() == {forged}


def test_a_migration_that_dies_before_any_statement_is_there_whole_or_not_at_all(shop: Shop) -> None:
    database, statement = shop.branch("feat").database, 0
    for statement in range(1, MOST):
        shop.ask("drop table if exists a, b, c, nonsuch_migrations", database=database)
        died = killed_before(statement, lambda: shop.migrate(database, *FILES))
        settled(shop)
        there = shop.ask(
            "select relname::text from pg_class where relname in ('a', 'b', 'c')", database=database
        )
        if shop.ask("select to_regclass('nonsuch_migrations')", database=database) == [(None,)]:
            assert there == []
        else:
            recorded = shop.ask("select name from nonsuch_migrations order by 1", database=database)
            assert recorded == [("1.sql",), ("2.sql",), ("3.sql",)][: len(there)]
        rest = shop.migrate(database, *FILES)
        assert rest.failed is None
        assert rest.applied == ("1.sql", "2.sql", "3.sql")[len(there) :]
        if not died:
            break
    assert statement > 30


# Several at once.


def at_once(*work: Callable[[], object]) -> list[object]:
    """Do all at once in threads; return what came of each, a refusal by its code."""
    start, found = threading.Barrier(len(work)), list[object]()

    def run(each: Callable[[], object]) -> None:
        start.wait()
        try:
            found.append(each())
        except DatabaseRefused as refusal:
            found.append(refusal.code)

    threads = [threading.Thread(target=run, args=(each,)) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("contents", [SEEDED, FULL], ids=["schema", "full"])
def test_of_creates_of_one_name_one_makes_it(shop: Shop, contents: Contents) -> None:
    found = at_once(*(lambda: shop.branch("feat", contents) for _ in range(4)))
    assert sorted(isinstance(each, str) for each in found) == [False, True, True, True]
    assert found.count("X_DB_BRANCH_EXISTS") == 3
    assert shop.ls() == ["feat"]
    whole(shop, f"{shop.name}_branch_feat")
    assert shop.unfinished() == set()


def test_creates_of_several_names_make_them_all(shop: Shop) -> None:
    at_once(*(partial(shop.branch, name, FULL) for name in ("a", "b", "c", "d")))
    assert shop.ls() == ["a", "b", "c", "d"]


def test_of_drops_of_one_branch_one_drops_it(shop: Shop) -> None:
    shop.branch("feat")
    found = at_once(*(lambda: shop.drop("feat") for _ in range(4)))
    assert found.count("X_DB_BRANCH_UNKNOWN") == 3
    assert shop.ls() == []
    assert shop.unfinished() == set()


def test_creates_drops_and_listings_at_once_end_whole(shop: Shop) -> None:
    for _ in range(3):
        at_once(
            lambda: shop.branch("feat", SEEDED),
            lambda: shop.drop("feat"),
            lambda: shop.branch("more", FULL),
            lambda: shop.drop("more"),
            lambda: shop.ls(),
        )
        for each in accepted(shop):
            whole(shop, each)
        assert {f"{shop.name}_branch_{each}" for each in shop.ls()} == accepted(shop)
        assert shop.unfinished() == set()


def test_migrations_at_once_apply_each_file_once(shop: Shop) -> None:
    texts = [f"create table t{number} (x int); select pg_sleep(0.02)" for number in range(6)]
    database = shop.branch("feat").database
    done = list[str]()
    deadline = time.monotonic() + 30
    while len(done) < len(texts) and time.monotonic() < deadline:
        found = at_once(*(lambda: shop.migrate(database, *texts) for _ in range(4)))
        for each in found:
            assert each == "X_DB_BRANCH_BUSY" or isinstance(each, Migrated)
            done += each.applied if isinstance(each, Migrated) else ()
    assert sorted(done) == [f"{number}.sql" for number in range(1, 7)]
    assert shop.migrate(database, *texts).applied == ()


def test_a_migration_beside_another_is_refused_at_once(shop: Shop) -> None:
    database = shop.branch("feat").database
    slow = threading.Thread(target=shop.migrate, args=(database, "select pg_sleep(20)"))
    slow.start()
    running = (
        "select pid from pg_stat_activity where application_name = 'nonsuch db.migrate' and query like 'do %'"
    )
    while not (found := shop.ask(running)):
        time.sleep(0.02)
    try:
        started = time.monotonic()
        with pytest.raises(DatabaseRefused, match="X_DB_BRANCH_BUSY"):
            shop.migrate(database, "select 1")
        assert time.monotonic() - started < 2
        with pytest.raises(DatabaseRefused, match=r"X_DB_IN_USE.*nonsuch db\.migrate"):
            shop.drop("feat")
    finally:
        shop.ask("select pg_terminate_backend(%s)", found[0][0])
        slow.join()


def test_who_waits_too_long_for_the_lock_of_a_source_is_told(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branch_source, "_LOCK_SECONDS", 0.3)
    with psycopg.connect(shop.at()) as holder:
        holder.execute("select pg_advisory_lock(%s, %s)", branch_source.LOCK)
        with pytest.raises(DatabaseRefused) as refusal:
            shop.branch("feat")
    assert refusal.value.cause == f"another process makes or drops branches of `{shop.name}`"
