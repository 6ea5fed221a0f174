"""What `guards` says is true, in configurations of the server that differ in what stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest

from nonsuch.adapters.edge.postgres import readonly_session, readonly_settings
from nonsuch.adapters.edge.postgres.readonly import GUARDS
from nonsuch.adapters.edge.postgres.readonly_grant import Wish, grant_readonly
from nonsuch.adapters.edge.postgres.refused import DatabaseRefused
from nonsuch.kernel.sql_facts import SqlFacts

from .readonly_lab import GUARD, Lab, laboratory

ALWAYS: Final = {
    *("text", "read-only-transaction", "one-statement", "settings", "statement-timeout"),
    *("transaction-timeout", "row-limit", "cell-limit", "byte-limit", "session-check"),
}
Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with laboratory() as made:
        with made.admin() as connection:
            connection.execute(
                "CREATE ROLE nonsuch_readonly; GRANT SELECT ON orders TO nonsuch_readonly;"
                " CREATE ROLE member LOGIN; GRANT SELECT, UPDATE ON orders TO member;"
                " GRANT nonsuch_readonly TO member; CREATE ROLE plain LOGIN; GRANT UPDATE ON orders TO plain;"
                " CREATE ROLE writes NOLOGIN; GRANT UPDATE ON orders TO writes; GRANT writes TO member;"
                " CREATE ROLE mighty NOLOGIN SUPERUSER; CREATE ROLE numbers NOLOGIN;"
                " GRANT USAGE ON SEQUENCE order_seq TO numbers; CREATE ROLE makes NOLOGIN;"
                " GRANT CREATE ON SCHEMA stock TO makes; CREATE ROLE watcher LOGIN IN ROLE pg_monitor;"
                " CREATE ROLE signals LOGIN IN ROLE pg_signal_backend; CREATE ROLE via LOGIN NOINHERIT;"
                " GRANT writes TO via; CREATE ROLE cells LOGIN; GRANT UPDATE (notes) ON orders TO cells"
            )
        yield made


CONFIGURATIONS: Final[dict[str, tuple[str, str | None, set[str]]]] = {
    "a login that only reads": ("agent_login", "nonsuch_readonly", {"role:login"}),
    "a login that only reads and looks": ("watcher", None, {"role:login"}),
    "a superuser that takes the role on": ("postgres", "nonsuch_readonly", {"role:set"}),
    "a member that takes the role on": ("member", "nonsuch_readonly", {"role:set"}),
    "a superuser without a role": ("postgres", None, set()),
    "a login that writes and is no member": ("plain", "nonsuch_readonly", set()),
    "an owner and a role that there is not": ("app_owner", "absent", set()),
    "a role that writes": ("member", "writes", set()),
    "a role that is a superuser": ("postgres", "mighty", set()),
    "a role that uses a sequence": ("postgres", "numbers", set()),
    "a role that creates": ("postgres", "makes", set()),
    "a login that ends other sessions": ("signals", None, set()),
    "a login that may become one that writes": ("via", None, set()),
    "a login that writes to one column": ("cells", None, set()),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_layers_that_stand_are_told_and_no_other(lab: Lab, name: str) -> None:
    user, role, more = CONFIGURATIONS[name]
    found = lab.ask("SELECT 1", user, role=role)
    assert set(found.guards) == ALWAYS | more
    assert list(found.guards) == [each for each in GUARDS if each in found.guards]
    _it_is_true(lab, user, role, found.guards)


def _it_is_true(lab: Lab, user: str, role: str | None, guards: tuple[str, ...]) -> None:
    """Who a query is, asked of the server by itself."""
    acting, login = lab.ask("SELECT current_user, session_user", user, role=role).rows[0]
    assert ("role:set" in guards) <= (acting != login)
    assert ("role:login" in guards) <= (acting == login == user)
    with lab.admin() as connection:
        may = "SELECT has_any_column_privilege(oid, 'orders', 'UPDATE'), rolsuper FROM pg_roles"
        writes = connection.execute(f"{may} WHERE rolname = %s".encode(), (acting,)).fetchone()
    assert (writes == (False, False)) >= bool({"role:set", "role:login"} & set(guards))


def test_the_live_catalogue_is_told_where_it_was_asked(lab: Lab) -> None:
    assert "catalogue" in lab.ask("SELECT 1", live=GUARD).guards
    assert "catalogue" not in lab.ask("SELECT 1").guards


def test_a_plan_has_no_limit_of_rows_or_cells(lab: Lab) -> None:
    found = lab.ask("SELECT id FROM orders", explain=True)
    assert (found.columns, found.rows[0][0][:8]) == ((("QUERY PLAN", "text"),), "Seq Scan")
    assert ALWAYS - set(found.guards) == {"row-limit", "cell-limit"}


def test_a_text_that_nobody_read_is_not_told_as_read(lab: Lab) -> None:
    facts = SqlFacts(("select",))
    assert "text" not in lab.ask("SELECT 1", facts=facts).guards


def test_a_server_without_a_limit_of_transactions_does_not_report_one(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readonly_settings, "TRANSACTION_TIMEOUT", 990_000)
    assert "transaction-timeout" not in lab.ask("SELECT 1").guards


def test_a_setting_that_is_not_what_it_should_be_runs_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind something that answers `SET` and does not do it."""
    real = readonly_settings.Pins.made
    setting = "SET bytea_output = 'hex'"

    def forgetful(pins: readonly_settings.Pins) -> Iterator[str]:
        return (each.replace("hex", "escape") if each == setting else each for each in real(pins))

    monkeypatch.setattr(readonly_settings.Pins, "made", forgetful)
    with pytest.raises(DatabaseRefused, match="nothing was run: a setting cannot be pinned") as caught:
        lab.ask("SELECT 1")
    assert caught.value.code == "X_DB_GUARD_MISSING"


@pytest.mark.parametrize(
    ("begin", "told"),
    [
        ("BEGIN", "the transaction is not read-only"),
        ("BEGIN READ ONLY; SELECT 1", "cannot insert multiple commands"),
        ("SET bytea_output = escape", "a setting is not what it was pinned to"),
    ],
)
def test_a_transaction_that_is_not_what_it_should_be_runs_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, begin: str, told: str
) -> None:
    monkeypatch.setattr(readonly_session, "BEGIN", begin)
    monkeypatch.setattr(readonly_session, "_as_role", _skipped(readonly_session._as_role))  # pyright: ignore[reportPrivateUsage]  # the layer under test
    with pytest.raises(DatabaseRefused, match=told):
        lab.ask("SELECT 1")


def _skipped(real: Any) -> Any:
    """The questions at the opening of a session begin as they should."""

    async def asked(wire: Any, role: str | None, text: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(readonly_session, "BEGIN", readonly_settings.BEGIN)
            return await real(wire, role, text)

    return asked


@pytest.mark.parametrize(("user", "required"), [("plain", "role:login"), ("member", "role:login")])
def test_without_a_layer_that_is_required_nothing_is_run(lab: Lab, user: str, required: str) -> None:
    with pytest.raises(DatabaseRefused, match=f"these layers do not stand: `{required}`") as caught:
        lab.ask("SELECT 1", user, required=(required,))
    assert caught.value.code == "X_DB_GUARD_MISSING"
    assert lab.ask("SELECT 1", "agent_login", required=(required,)).rows == [[1]]


def test_a_guard_that_there_is_not_cannot_be_required(lab: Lab) -> None:
    with pytest.raises(ValueError, match="no guards are called role"):
        lab.ask("SELECT 1", required=("role",))


def test_revoked_functions_are_told_where_all_of_a_family_are(lab: Lab) -> None:
    """Layer 1b: last, for it changes the database for everybody."""
    assert "execute-revoked" not in lab.ask("SELECT 1").guards
    with lab.admin() as connection:
        done = grant_readonly(connection, Wish(revoke_execute=True, keepers=("app_owner",)))
        assert [each for each in done.steps if each.refused] == []
    assert "execute-revoked" in lab.ask("SELECT 1").guards
    facts = SqlFacts(("select",))
    for text in ("SELECT pg_advisory_lock(1)", "SELECT (1::bigint).pg_advisory_lock", "SELECT pg_sleep(0)"):
        with pytest.raises(DatabaseRefused, match="permission denied for function"):
            lab.ask(text, facts=facts)
    assert lab.ask("SELECT pg_try_advisory_lock(1)", "app_owner", facts=facts, role=None).rows == [[True]]
    with lab.admin() as connection:
        connection.execute("GRANT EXECUTE ON FUNCTION pg_sleep(float8) TO agent_login")
    assert "execute-revoked" not in lab.ask("SELECT 1").guards
