"""The chain in a table: one for all processes, whatever the database does; nothing twice, nothing unseen."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Generator
from itertools import count
from typing import Any, Final

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg_pool import ConnectionPool

from nonsuch import postgres_audit_chain
from nonsuch.adapters.edge import audit_chain
from nonsuch.adapters.edge.audit_chain import AuditChain
from nonsuch.adapters.edge.postgres.audit import SQL_AUDIT_TABLE, TABLE, records_of
from nonsuch.kernel.chain import ChainKeys, Head
from nonsuch.kernel.chain_walk import Flaw, Walk

from .chaining import KEYS, event
from .task_shelves import server
from .test_audit_chain import WRITER, complaints, until

ONE: Final = {"k1": KEYS["k1"]}
Log = pytest.LogCaptureFixture
_numbers: Final = count()


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    with server() as held:
        yield held


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_chain, "RETRY_SECONDS", 0.01)


def sql(address: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements; the rows of the last one."""
    with psycopg.connect(address, autocommit=True) as connection:
        *before, last = statements
        for each in before:
            connection.execute(each.encode())
        cursor = connection.execute(last.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def table(address: str) -> str:
    name = f"{TABLE}_{next(_numbers)}"
    sql(address, SQL_AUDIT_TABLE.replace(TABLE, name))
    return name


def walked(address: str, table: str, kept: tuple[Head, ...] = ()) -> tuple[Walk, Flaw | None]:
    """Walk the chain in a table."""
    walk = Walk(ChainKeys(KEYS), kept)
    for each in records_of(address, table):
        flaw = walk.take(each)
        if flaw is not None:
            return walk, flaw
    return walk, walk.end(closed=True)


def sound(address: str, table: str) -> Walk:
    """The walk over a chain that is whole and closed."""
    walk, flaw = walked(address, table)
    assert flaw is None
    return walk


def tools(address: str, table: str) -> list[str]:
    """The tools in the events of calls, in their order."""
    asked = f"select event::json->>'tool' from {table} where event like '%tool-call%' order by seq"  # noqa: S608
    return [row[0] for row in sql(address, asked)]


def written(chain: AuditChain, number: int, name: str = "a") -> None:
    for each in range(number):
        chain(event(name, each))
    chain.shut()


def test_each_event_is_a_row_of_one_chain_over_runs_and_keys(address: str, table: str) -> None:
    for keys in (ONE, ONE, KEYS, {"k2": KEYS["k2"]}):
        written(postgres_audit_chain(address, keys, table), 2)
    walk = sound(address, table)
    assert walk.keys == {"k1": 1, "k2": 10}
    assert tools(address, table) == ["a-0", "a-1"] * 4


def test_a_pool_of_the_apps_own_is_used_and_left_open(address: str, table: str) -> None:
    with ConnectionPool(address, min_size=1, max_size=2, kwargs={"autocommit": True}) as pool:
        pool.wait()
        for name in "ab":
            written(postgres_audit_chain(pool, ONE, table), 2, name)
        assert not pool.closed
    assert tools(address, table) == ["a-0", "a-1", "b-0", "b-1"]
    sound(address, table)


def test_a_table_may_be_qualified_by_its_schema(address: str) -> None:
    made = SQL_AUDIT_TABLE.replace(TABLE, "s.audit")
    sql(address, "create schema s", made)
    written(postgres_audit_chain(address, ONE, "s.audit"), 1)
    assert sound(address, "s.audit").head.seq == 3


def test_four_processes_append_to_one_chain(address: str, table: str) -> None:
    command = [*WRITER, "postgres", f"{address} {table}", "300"]
    writers = [
        subprocess.Popen([*command, each], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for each in "abcd"
    ]
    assert [said[0] for said in [each.communicate("go\n", timeout=90) for each in writers]] == [
        "ready\ndone\n"
    ] * 4
    assert sound(address, table).head.seq == 4 * 302
    for name in "abcd":
        held = [each for each in tools(address, table) if each[0] == name]
        assert held == [f"{name}-{number}" for number in range(300)]


def test_both_sides_of_a_fork_write_what_they_took(address: str, table: str) -> None:
    command = [*WRITER, "postgres", f"{address} {table}", "100", "fork"]
    done = subprocess.run(command, input="go\n", capture_output=True, text=True, check=True, timeout=90)
    assert done.stdout == "ready\ndone\n"
    expected = [f"{side}-{number}" for side in ("child", "parent") for number in range(1, 100)]
    assert sorted(tools(address, table)) == sorted(["fork-0", *expected])
    assert not sound(address, table).unended


@pytest.mark.parametrize("level", ["repeatable read", "serializable", "read committed"])
def test_no_isolation_level_of_the_database_forks_the_chain(address: str, table: str, level: str) -> None:
    dsn = f"{address}&options=-cdefault_transaction_isolation%3D{level.replace(' ', '%5C%20')}"
    chains = [postgres_audit_chain(dsn, ONE, table) for _ in range(3)]
    for number in range(60):
        chains[number % 3](event("a", number))
    for each in chains:
        each.shut()
    assert len(tools(address, table)) == 60
    sound(address, table)


# What an attacker does to rows

ATTACKS: Final[dict[str, tuple[str, str, int]]] = {
    "an event changed": (
        "update {t} set event = replace(event, 'a-1', 'a-9') where seq = 3",
        "X_AUDIT_CHANGED",
        3,
    ),
    "a key renamed": ("update {t} set key = 'k2' where seq = 3", "X_AUDIT_CHANGED", 3),
    "a key of none": ("update {t} set key = E'\\x1b[31m' where seq = 3", "X_AUDIT_KEY", 3),
    "a MAC changed": ("update {t} set mac = sha256(mac) where seq = 3", "X_AUDIT_CHANGED", 3),
    "a MAC emptied": ("update {t} set mac = '' where seq = 3", "X_AUDIT_CHANGED", 3),
    "one deleted": ("delete from {t} where seq = 3", "X_AUDIT_ORDER", 3),
    "one deleted and the rest moved up": (
        "delete from {t} where seq = 3; update {t} set seq = seq - 1 where seq = 4",
        "X_AUDIT_CHANGED",
        3,
    ),
    "two exchanged": (
        "update {t} set seq = 99 where seq = 3; update {t} set seq = 3 where seq = 4;"
        "update {t} set seq = 4 where seq = 99",
        "X_AUDIT_CHANGED",
        3,
    ),
    "one more": ("insert into {t} select 7, key, event, mac from {t} where seq = 6", "X_AUDIT_CHANGED", 7),
    "text of another alphabet": (
        "update {t} set event = event || '\u20ac' where seq = 3",
        "X_AUDIT_CHANGED",
        3,
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_on_rows_is_seen_at_its_record(address: str, table: str, attack: str) -> None:
    written(postgres_audit_chain(address, ONE, table), 4)
    assert sound(address, table).head.seq == 6
    statement, code, record = ATTACKS[attack]
    sql(address, statement.format(t=table))
    _, flaw = walked(address, table)
    assert flaw is not None
    assert (flaw.fault.code, flaw.record, flaw.place) == (code, record, None)
    assert "\x1b" not in flaw.fault.cause


@pytest.mark.parametrize("left", [0, 1, 3, 5])
def test_rows_that_were_cut_off_show_by_a_head(address: str, table: str, left: int) -> None:
    written(postgres_audit_chain(address, ONE, table), 4)
    head = sound(address, table).head
    sql(address, f"delete from {table} where seq > {left}")  # noqa: S608
    walk = Walk(ChainKeys(KEYS))
    assert all(walk.take(each) is None for each in records_of(address, table))
    assert walk.end() is None
    _, flaw = walked(address, table, (head,))
    assert flaw is not None
    assert flaw.fault.code == "X_AUDIT_CUT"


@pytest.mark.parametrize(
    "how", ["delete from {t} where seq > 2", "truncate {t}", "update {t} set mac = '' where seq = 3"]
)
def test_a_writer_that_finds_its_rows_gone_writes_that_down(
    address: str, table: str, how: str, caplog: Log
) -> None:
    chain = postgres_audit_chain(address, ONE, table)
    for number in range(3):
        chain(event("a", number))
        until(lambda: len(tools(address, table)) == number + 1)  # noqa: B023
    sql(address, how.format(t=table))
    chain(event("b", 0))
    chain.shut()
    _, flaw = walked(address, table)
    assert flaw is not None
    assert flaw.fault.code == ("X_AUDIT_CHANGED" if "update" in how else "X_AUDIT_CUT")
    (missed,) = (
        complaints(caplog) if "seq = 3" not in how else ["audit chain: records that were written are gone"]
    )
    assert missed.startswith("audit chain: records that were written are gone")


def test_so_it_does_behind_the_records_of_others(address: str, table: str) -> None:
    one, other = (postgres_audit_chain(address, ONE, table) for _ in range(2))
    for number, chain in enumerate((one, other)):
        chain(event("a", number))
        until(lambda: len(tools(address, table)) == number + 1)  # noqa: B023
    sql(address, f"delete from {table} where seq > 1")  # noqa: S608
    other(event("b", 0))
    until(lambda: tools(address, table) == ["b-0"])
    for number in range(5):
        one(event("c", number))
    one.shut()
    other.shut()
    held = sql(address, f"select count(*) from {table} where event like '%chain-cut%'")  # noqa: S608
    assert held == [(2,)]


# What a database does


def test_a_database_that_fails_is_tried_again_and_nothing_is_lost(
    address: str, table: str, caplog: Log
) -> None:
    sql(address, f"alter table {table} rename to {table}_away")
    chain = postgres_audit_chain(address, ONE, table)
    chain(event("a", 0))
    until(lambda: bool(complaints(caplog)))
    sql(address, f"alter table {table}_away rename to {table}")
    until(lambda: tools(address, table) == ["a-0"])
    sql(address, "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
    chain(event("a", 1))
    chain.shut()
    assert tools(address, table) == ["a-0", "a-1"]
    sound(address, table)
    assert complaints(caplog)[:2] == [
        "audit chain: not written: UndefinedTable",
        "audit chain: written again",
    ]


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_that_nobody_confirmed_is_not_repeated(
    address: str, table: str, committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks while it commits: the batch is there or not, and its writer cannot tell."""
    commit, broken = psycopg.Transaction.__exit__, list[str]()

    def breaks(self: psycopg.Transaction, *raised: Any) -> bool:
        if not broken and raised[0] is None:
            broken.append("broken")
            if committed:
                commit(self, *raised)
                time.sleep(0.3)  # long enough to be told to end meanwhile
            self.connection.close()
            raise psycopg.OperationalError("the connection is gone")
        return commit(self, *raised)

    monkeypatch.setattr(psycopg.Transaction, "__exit__", breaks)
    chain = postgres_audit_chain(address, ONE, table)
    chain(event("a", 0))
    until(lambda: bool(tools(address, table)))
    monkeypatch.undo()
    chain(event("a", 1))
    chain.shut()
    assert broken == ["broken"]
    assert tools(address, table) == ["a-0", "a-1"]
    assert [each["kind"] for each in kinds(address, table)] == [
        "chain-opened",
        "tool-call",
        "tool-call",
        "chain-closed",
    ]
    sound(address, table)


def kinds(address: str, table: str) -> list[dict[str, str]]:
    rows = sql(address, f"select event::json->>'kind' from {table} order by seq")  # noqa: S608
    return [{"kind": row[0]} for row in rows]


def test_the_role_of_an_app_needs_no_more_than_to_insert_and_to_select(address: str, table: str) -> None:
    sql(
        address,
        f"create role writer_{table} login",
        f"grant insert, select on {table} to writer_{table}",
    )
    dsn = make_conninfo(address, user=f"writer_{table}")
    written(postgres_audit_chain(dsn, ONE, table), 2)
    assert tools(address, table) == ["a-0", "a-1"]
    sound(dsn, table)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        sql(dsn, f"update {table} set mac = ''")  # noqa: S608


def test_a_row_is_on_disk_when_it_is_written(address: str, table: str) -> None:
    """Each row keeps by a trigger how its transaction commits."""
    sql(
        address,
        f"create table {table}_how (how text)",
        f"create function {table}_how() returns trigger language plpgsql as "
        f"$$ begin insert into {table}_how select current_setting('synchronous_commit'); return new; end $$",
        f"create trigger how before insert on {table} for each row execute function {table}_how()",
    )
    for asked in ("off", "local", "remote_write"):
        dsn = f"{address}&options=-csynchronous_commit%3D{asked}"
        written(postgres_audit_chain(dsn, ONE, table), 1)
    held = sql(address, f"select distinct how from {table}_how order by how")  # noqa: S608
    assert held == [("on",), ("remote_write",)]


def test_only_a_chain_in_a_table_imports_the_driver() -> None:
    code = "import sys, nonsuch; nonsuch.file_audit_chain; print('psycopg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
