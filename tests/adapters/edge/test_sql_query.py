"""`db.query` as a tool of an app: its gates, its policies, and what nobody learns from it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from nonsuch import BootError, Open, Registry, define_app_mcp, grant
from nonsuch.adapters.edge.run import Running
from nonsuch.adapters.edge.sql_query import Queries, db_query
from nonsuch.kernel.audit import Event
from nonsuch.kernel.model import (
    Agent,
    Failed,
    Hidden,
    Human,
    Ok,
    Outcome,
    PolicyDenied,
    Principal,
    ScopeDenied,
)
from nonsuch.kernel.sql_catalog import Own

from .readonly_lab import Lab, laboratory, ran

POLICIES: Final = """
@id("no-salaries") @reason("reads salaries") @fix("ask for something else")
forbid (principal, action == Action::"db.query", resource)
when { context.relations.contains("public.salaries") };

@id("interns") @reason("reads more than customers")
forbid (principal in Role::"intern", action == Action::"db.query", resource)
unless { ["public.customers"].containsAll(context.relations) };

@id("no-mail") @reason("reads addresses")
forbid (principal in Role::"intern", action in Action::"db:read", resource)
when { context.columns.containsAny(["public.customers.email", "public.customers.*"]) };

@id("few-rows") @reason("asks for many rows")
forbid (principal in Role::"intern", action == Action::"db.query", resource)
when { context.args.limit > 10 };

@id("no-plans") @reason("asks for a plan")
forbid (principal in Role::"intern", action == Action::"db.query", resource)
when { context.kinds.contains("explain") || context.args.explain };
"""
ROLES: Final = ("reader", "intern", "nobody", "other")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with laboratory() as made:
        with made.admin() as connection:
            connection.execute(
                "CREATE TABLE salaries (id int, pay int); GRANT SELECT ON salaries TO agent_login"
            )
        yield made


@asynccontextmanager
async def app(
    lab: Lab, directory: Path, events: list[Event] | None = None, name: str = "db.query", **options: Any
) -> AsyncGenerator[Running]:
    (directory / "app.cedar").write_text(POLICIES.replace("db.query", name))
    queries = Queries(lab.of("agent_login"), **options)
    made = define_app_mcp(
        Registry(),
        name="shop",
        tools={name: db_query(queries, visible_to=["reader", "intern", "other"])},
        scopes={"db:read": [name]},
        roles=ROLES,
        grants=[grant("reader", "db:read"), grant("intern", "db:read")],
        policies_dir=directory,
        resolve_token=lambda _token: None,
        on_audit=None if events is None else events.append,
    )
    try:
        async with Open(made) as running:
            yield running
    finally:
        await queries.close()


def person(role: str, scopes: frozenset[str] | None = None) -> Human:
    return Human(id="h", roles=frozenset({role}), scopes=scopes)


def asked(
    lab: Lab, directory: Path, who: Principal, *texts: str, events: list[Event] | None = None, **more: Any
) -> list[Outcome]:
    async def run() -> list[Outcome]:
        async with app(lab, directory, events) as running:
            given: list[Mapping[str, Any]] = [{"sql": text, **more} for text in texts]
            return [await running.invoke(who, "db.query", each) for each in given]

    return ran(run())


def test_a_reader_gets_rows_and_the_layers(lab: Lab, tmp_path: Path) -> None:
    (outcome,) = asked(lab, tmp_path, person("reader"), "SELECT id, name FROM customers ORDER BY id LIMIT 2")
    assert isinstance(outcome, Ok)
    assert json.loads(outcome.json) == {
        "columns": [{"name": "id", "type": "integer"}, {"name": "name", "type": "text"}],
        "rows": [[1, "name 1"], [2, "name 2"]],
        "guards": [
            *("text", "catalogue", "role:login", "read-only-transaction", "one-statement", "settings"),
            *("statement-timeout", "transaction-timeout", "row-limit", "cell-limit", "byte-limit"),
            "session-check",
        ],
        "truncatedBy": [],
        "bytes": 26,
    }


def test_limit_and_plan_are_arguments(lab: Lab, tmp_path: Path) -> None:
    text = "SELECT id FROM orders"
    (few,) = asked(lab, tmp_path, person("reader"), text, limit=3)
    assert isinstance(few, Ok)
    assert (len(json.loads(few.json)["rows"]), json.loads(few.json)["truncatedBy"]) == (3, ["rows"])
    (plan,) = asked(lab, tmp_path, person("reader"), text, explain=True)
    assert isinstance(plan, Ok)
    assert "Seq Scan on orders" in json.loads(plan.json)["rows"][0][0]


@pytest.mark.parametrize(
    ("text", "code", "cause", "policies"),
    [
        (
            "SELECT id FROM orders WHERE (0.2).pg_sleep IS NULL",
            "X_MCP_QUERY_REJECTED",
            "the query waits: `pg_sleep` at 1:35",
            ("nonsuch.never.sleep",),
        ),
        (
            "DELETE FROM orders",
            "X_MCP_QUERY_REJECTED",
            "the query writes: `DELETE` at 1:1",
            ("nonsuch.never.kind", "nonsuch.never.write"),
        ),
        (
            "SELECT 1,\n  pay FROM salaries",
            "X_FORBIDDEN",
            "the query reads salaries: `salaries` at 2:12",
            ("no-salaries",),
        ),
        (
            "SELECT unknown_function(1)",
            "X_MCP_QUERY_REJECTED",
            "the query calls a function that is not known to only read: `unknown_function` at 1:8",
            ("nonsuch.sql.function",),
        ),
    ],
)
def test_a_refusal_names_the_piece_and_its_place(
    lab: Lab, tmp_path: Path, text: str, code: str, cause: str, policies: tuple[str, ...]
) -> None:
    (outcome,) = asked(lab, tmp_path, person("reader"), text)
    assert isinstance(outcome, PolicyDenied)
    assert (outcome.code, outcome.cause, outcome.policies) == (code, cause, policies)
    assert outcome.fix


INTERN: Final = {
    "SELECT id, name FROM customers": (),
    "SELECT 1": (),
    "SELECT c.id FROM customers c JOIN orders o ON o.customer_id = c.id": ("interns",),
    "SELECT pay FROM salaries": ("interns", "no-salaries"),
    "SELECT email FROM customers": ("no-mail",),
    "TABLE customers": ("no-mail",),
    "EXPLAIN SELECT id FROM customers": ("no-plans",),
}


@pytest.mark.parametrize("text", INTERN)
def test_an_app_forbids_by_what_the_statement_reads(lab: Lab, tmp_path: Path, text: str) -> None:
    (outcome,) = asked(lab, tmp_path, person("intern"), text, limit=10)
    assert (outcome.policies if isinstance(outcome, PolicyDenied) else ()) == INTERN[text], outcome
    (many,) = asked(lab, tmp_path, person("intern"), text, limit=11)
    assert isinstance(many, PolicyDenied)
    assert "few-rows" in many.policies


def test_what_only_the_database_shows_is_refused_before_it_runs(lab: Lab, tmp_path: Path) -> None:
    (outcome,) = asked(lab, tmp_path, person("reader"), "SELECT * FROM v_touch")
    assert isinstance(outcome, Failed)
    assert (outcome.code, "`v_touch`" in outcome.cause) == ("X_MCP_QUERY_REJECTED", True)
    with lab.admin() as connection:
        assert connection.execute("SELECT count(*) FROM audit_log").fetchone() == (0,)


# Two worlds: one has a table, the other has not.

TEXTS: Final = (
    "SELECT * FROM salaries",
    "SELECT pay FROM salaries LIMIT 1",
    "SELECT pay FROM salaries; SELECT 1",
    "SELECT * FROM v_touch",
    "SELECT full_label(c) FROM customers c",
    "SELECT nothing FROM customers",
    "SELECT pg_sleep(1)",
    "EXPLAIN SELECT * FROM salaries",
    "SELEC",
    "",
)
OUTSIDERS: Final[dict[str, tuple[Principal, type[Outcome]]]] = {
    "who does not see it": (person("nobody"), Hidden),
    "who has no scope": (person("reader", frozenset()), ScopeDenied),
    "an agent without the scope": (
        Agent(id="a", roles=frozenset({"reader"}), scopes=frozenset(), acts_for=person("reader")),
        ScopeDenied,
    ),
    "whom nothing permits": (person("other"), PolicyDenied),
    "an agent of one whom nothing permits": (
        Agent(id="a", roles=frozenset({"reader"}), scopes=frozenset({"db:read"}), acts_for=person("other")),
        PolicyDenied,
    ),
}


@pytest.mark.parametrize("who", OUTSIDERS)
def test_who_may_not_read_cannot_tell_which_relations_there_are(lab: Lab, tmp_path: Path, who: str) -> None:
    """For every text one answer: nothing in it depends on the text, so nothing on the database."""
    caller, kind = OUTSIDERS[who]
    found = asked(lab, tmp_path, caller, *TEXTS)
    assert {type(each) for each in found} == {kind}
    assert len({repr(each) for each in found}) == 1


def test_who_may_not_read_asks_no_parser_and_no_database(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nonsuch.adapters.edge import sql_query
    from nonsuch.adapters.edge.postgres.readonly import ReadOnly

    def never(*given: object, **named: object) -> None:
        raise AssertionError((given, named))

    monkeypatch.setattr(sql_query, "facts_of_async", never)
    monkeypatch.setattr(ReadOnly, "query", never)
    for caller, kind in OUTSIDERS.values():
        (outcome,) = asked(lab, tmp_path, caller, "SELECT * FROM salaries")
        assert isinstance(outcome, kind)


def test_who_may_read_can_tell(lab: Lab, tmp_path: Path) -> None:
    """Or the ones above could not fail."""
    found = asked(lab, tmp_path, person("reader"), *TEXTS)
    assert len({repr(each) for each in found}) > 5


def test_no_event_holds_a_query_or_a_row(lab: Lab, tmp_path: Path) -> None:
    events: list[Event] = []
    asked(
        lab,
        tmp_path,
        person("reader"),
        "SELECT 'marked' AS word, name FROM customers",
        "SELECT marked FROM customers",
        "SELECT marked(1)",
        "DELETE FROM marked",
        events=events,
    )
    assert len(events) == 4
    assert "marked" not in repr(events)
    assert "name 1" not in repr(events)


# At boot.


def test_the_tool_has_one_name(lab: Lab, tmp_path: Path) -> None:
    async def under_another_name() -> None:
        async with app(lab, tmp_path, name="sql"):
            pass

    with pytest.raises(BootError) as caught:
        ran(under_another_name())
    told = [each for each in caught.value.faults if "`db.query`" in each.cause or "`db.query`" in each.fix]
    assert [(each.code, each.where) for each in told] == [("X_DECLARATION_INVALID", "<sql>")]


def test_a_policy_about_what_a_statement_has_not_is_refused(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "wrong.cedar").write_text(
        '@id("w") forbid (principal, action == Action::"db.query", resource)'
        " when { context.tables.isEmpty() };"
    )
    with pytest.raises(BootError) as caught:
        asked(lab, tmp_path, person("reader"), "SELECT 1")
    assert {each.code for each in caught.value.faults} == {"X_POLICY_INVALID"}


def test_an_app_without_the_tool_has_none_of_its_policies() -> None:
    made = define_app_mcp(Registry(), name="empty", resolve_token=lambda _token: None)
    assert [each for each in made.kernel.judge.by_id if each.startswith("nonsuch.never")] == []


def test_what_an_app_lists_may_be_called(lab: Lab, tmp_path: Path) -> None:
    async def run() -> Outcome:
        own = Own(functions=frozenset({"public.price_with_tax"}))
        async with app(lab, tmp_path, own=own) as running:
            return await running.invoke(person("reader"), "db.query", {"sql": "SELECT price_with_tax(10)"})

    outcome = ran(run())
    assert isinstance(outcome, Ok)
    assert json.loads(outcome.json)["rows"] == [["12.0"]]


def test_a_layer_that_is_required_and_missing_is_the_operators_matter(lab: Lab, tmp_path: Path) -> None:
    async def run() -> Outcome:
        async with app(lab, tmp_path, required=("execute-revoked",)) as running:
            return await running.invoke(person("reader"), "db.query", {"sql": "SELECT 1"})

    outcome = ran(run())
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.caller_fix) == ("X_DB_GUARD_MISSING", "tell the app's developer")
