"""`nonsuch_readonly`: what it may, now and on what comes; running it again; servers that refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from nonsuch.adapters.edge.embedded import embedded_postgres
from nonsuch.adapters.edge.postgres.readonly_grant import Granted, Wish, grant_readonly, statements

ROLE: Final = "nonsuch_readonly"
Connection = psycopg.Connection[Any]


@pytest.fixture
def admin() -> Iterator[Connection]:
    with embedded_postgres() as address, psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "CREATE ROLE owner LOGIN; GRANT ALL ON SCHEMA public TO owner; SET ROLE owner;"
            " CREATE TABLE orders (id serial, note text); CREATE VIEW totals AS SELECT count(*) FROM orders;"
            " CREATE TABLE nonsuch_grants (role text); RESET ROLE;"
            " CREATE SCHEMA stock; CREATE TABLE stock.items (x int)"
        )
        yield connection


def _as(connection: Connection, user: str) -> Connection:
    return psycopg.connect(make_conninfo(connection.info.dsn, user=user), autocommit=True)


def _may(connection: Connection, text: str) -> bool:
    with connection.transaction(force_rollback=True):
        connection.execute(f"SET LOCAL ROLE {ROLE}".encode())
        try:
            connection.execute(text.encode())
        except psycopg.errors.InsufficientPrivilege:
            return False
        return True


def test_the_role_reads_tables_present_and_future_and_nothing_else(admin: Connection) -> None:
    found = grant_readonly(admin, Wish(schemas=("public", "stock")))
    assert found.whole, found
    admin.execute("SET ROLE owner; CREATE TABLE later (x serial); RESET ROLE; CREATE TABLE mine (x int)")
    for table in ("orders", "totals", "stock.items", "later", "mine"):
        assert _may(admin, f"TABLE {table}"), table
        assert not _may(admin, f"TRUNCATE {table}" if table != "totals" else "TABLE nonsuch_grants"), table
    for text in (
        "TABLE nonsuch_grants",
        "SELECT nextval('orders_id_seq')",
        "SELECT currval('orders_id_seq')",
        "SELECT setval('later_x_seq', 9)",
        "TABLE later_x_seq",
        "CREATE TABLE other (x int)",
        "UPDATE orders SET note = 'x'",
        "TRUNCATE orders",
        "SELECT * FROM orders FOR UPDATE",
    ):
        assert not _may(admin, text), text
    login = admin.execute("SELECT rolcanlogin FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone()
    assert login == (False,)


def test_what_the_owner_of_a_database_without_tables_makes_later_is_read_too(admin: Connection) -> None:
    """Its schema `public` belongs to whoever owns the database, which is nobody whose name it has."""
    admin.execute("CREATE DATABASE empty OWNER owner")
    try:
        with psycopg.connect(make_conninfo(admin.info.dsn, dbname="empty"), autocommit=True) as connection:
            assert grant_readonly(connection, Wish()).whole
            connection.execute("SET ROLE owner; CREATE TABLE first (x int); RESET ROLE")
            assert _may(connection, "TABLE first")
    finally:
        admin.execute("DROP DATABASE empty")


def test_it_can_be_run_again(admin: Connection) -> None:
    first, second = grant_readonly(admin, Wish()), grant_readonly(admin, Wish())
    assert (first.whole, second.whole) == (True, True)
    assert first.steps[1:] == second.steps


def test_what_the_role_has_too_much_is_taken_away(admin: Connection) -> None:
    admin.execute(
        f"CREATE ROLE {ROLE} LOGIN CREATEDB; GRANT INSERT ON orders TO {ROLE};"
        f" GRANT USAGE ON SEQUENCE orders_id_seq TO {ROLE}".encode()
    )
    assert grant_readonly(admin, Wish()).whole
    assert not _may(admin, "INSERT INTO orders DEFAULT VALUES")


def test_what_it_cannot_take_away_is_told(admin: Connection) -> None:
    admin.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    found = grant_readonly(admin, Wish())
    assert (found.besides, found.whole) == ("may create in a schema", False)


def test_a_member_may_take_it_on_and_has_none_of_its_rights_before(admin: Connection) -> None:
    admin.execute("CREATE ROLE app LOGIN")
    assert grant_readonly(admin, Wish(members=("app",))).whole
    with _as(admin, "app") as app:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute("TABLE orders")
        app.execute(f"SET ROLE {ROLE}; TABLE orders".encode())


def test_a_login_of_its_own(admin: Connection) -> None:
    assert grant_readonly(admin, Wish(role="agent", login=True)).whole
    with _as(admin, "agent") as agent:
        agent.execute("TABLE orders")


def test_a_server_that_refuses_the_role_is_told_and_nothing_else_is_tried(admin: Connection) -> None:
    """As managed servers do, where nobody is a superuser."""
    with _as(admin, "owner") as owner:
        found = grant_readonly(owner, Wish())
    assert [each.refused for each in found.steps] == ["permission denied to create role"]
    assert found.steps[0].statement.startswith(f'CREATE ROLE "{ROLE}" NOLOGIN')
    assert not found.whole


def test_with_the_role_made_by_somebody_else_the_owner_does_the_rest(admin: Connection) -> None:
    admin.execute(f"CREATE ROLE {ROLE} NOINHERIT; GRANT {ROLE} TO owner".encode())
    with _as(admin, "owner") as owner:
        found: Granted = grant_readonly(owner, Wish())
        refused = [each for each in found.steps if each.refused]
        assert all("DEFAULT PRIVILEGES" in each.statement or "SCHEMA" in each.statement for each in refused)
        owner.execute("CREATE TABLE later (x int)")
    assert _may(admin, "TABLE orders")
    assert _may(admin, "TABLE later")


def test_what_is_printed_is_what_is_run_and_runs_nothing(admin: Connection) -> None:
    printed = statements(admin, Wish())
    assert admin.execute("SELECT count(*) FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone() == (0,)
    done = grant_readonly(admin, Wish())
    assert printed == [each.statement for each in done.steps]


@pytest.mark.parametrize("name", ['ro"; DROP TABLE orders; --', "two words", "Upper", "select"])
def test_a_name_is_a_name(admin: Connection, name: str) -> None:
    admin.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    assert grant_readonly(admin, Wish(role=name, schemas=(name, "public"), members=("owner",))).whole
    assert admin.execute("SELECT count(*) FROM orders").fetchone() == (0,)


def test_functions_are_taken_from_everybody_but_the_keepers(admin: Connection) -> None:
    found = grant_readonly(admin, Wish(revoke_execute=True, keepers=("owner",)))
    assert found.whole
    assert not _may(admin, "SELECT pg_advisory_lock(1)")
    assert not _may(admin, "SELECT (0.1).pg_sleep")
    with _as(admin, "owner") as owner:
        owner.execute("SELECT pg_advisory_lock(1)")
