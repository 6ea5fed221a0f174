"""The verdict is Cedar's: policies of an app beside ours, what cannot be decided, what is told first."""

from __future__ import annotations

import json
import re
from typing import Final

import pytest

from nonsuch.adapters.edge.sql_guard import Guard, guard, shipped
from nonsuch.kernel.cedar_text import PolicyRefused, parse
from nonsuch.kernel.compile import PolicySource
from nonsuch.kernel.policy_text import Place
from nonsuch.kernel.sql_facts import Offence, Piece, Relation, SqlFacts
from nonsuch.kernel.sql_verdict import ACCEPTED, FIELDS, Verdict, context, judge

from . import queries
from .queries import corpus

TEXTS: Final = {each.origin: each.text for each in shipped()}
FAMILIES: Final = {
    family for text in TEXTS.values() for family in re.findall(r'families\.contains\("(.*?)"\)', text)
}
OF_THE_APP: Final = """
@id("salaries") @code("X_SALARIES") @reason("reads salaries") @fix("ask the people department")
forbid (principal, action == Action::"db.query", resource)
when { context.relations.contains("public.salaries") };

@id("emails")
forbid (principal, action == Action::"db.query", resource)
when { context.columns.containsAny(["public.customers.email", "public.customers.*"]) };

@id("versions") @reason("asks for the version")
forbid (principal, action == Action::"db.query", resource)
when { context.functions.contains("pg_catalog.version") || context.schemas.contains("hr") };
"""


def _with(text: str) -> Guard:
    return guard(more=(PolicySource("app.cedar", text),))


@pytest.fixture(scope="module")
def app() -> Guard:
    return _with(OF_THE_APP)


def test_a_read_is_accepted_whole() -> None:
    assert queries.judged("SELECT 1").verdict == ACCEPTED == Verdict(True)


def test_a_refusal_is_told_whole() -> None:
    assert queries.judged("SELECT id,\n  (0.2).pg_sleep FROM orders").verdict == Verdict(
        allow=False,
        code="X_MCP_QUERY_REJECTED",
        family="sleep",
        cause="the query waits: `pg_sleep` at 2:9",
        fix="leave the call out",
        place=Place(2, 9),
        policies=("nonsuch.never.sleep",),
    )


@pytest.mark.parametrize(
    ("text", "code", "cause"),
    [
        ("SELECT pay FROM salaries", "X_SALARIES", "the query reads salaries: `salaries` at 1:17"),
        ("TABLE public.salaries", "X_SALARIES", "the query reads salaries: `public.salaries` at 1:7"),
        (
            "WITH salaries AS (TABLE salaries) TABLE salaries",
            "X_SALARIES",
            "the query reads salaries: `salaries` at 1:25",
        ),
        (
            "SELECT c.email FROM customers c",
            "X_FORBIDDEN",
            "the query is refused by a policy: `customers` at 1:21",
        ),
        ("SELECT c FROM customers c", "X_FORBIDDEN", "the query is refused by a policy: `customers` at 1:15"),
        ("SELECT 1, version()", "X_FORBIDDEN", "the query asks for the version: `version` at 1:11"),
        ("SELECT (1).version", "X_FORBIDDEN", "the query asks for the version: `version` at 1:9"),
        (
            "SELECT a.version FROM abs(1) a",
            "X_FORBIDDEN",
            "the query asks for the version: `a.version` at 1:8",
        ),
        ("SELECT 1 FROM hr.people", "X_FORBIDDEN", "the query asks for the version: `hr.people` at 1:15"),
    ],
)
def test_an_app_forbids_by_what_the_text_tells(app: Guard, text: str, code: str, cause: str) -> None:
    verdict = app.judge(text).verdict
    assert (verdict.allow, verdict.code, verdict.cause) == (False, code, cause)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 FROM stock.salaries",
        "SELECT 'salaries' FROM salaries_of_last_year",
        "WITH salaries AS (SELECT 1) TABLE salaries",
        "SELECT c.name, o.email FROM customers c, orders o",
        "SELECT version FROM releases",
        'SELECT "public.salaries" FROM t',
    ],
)
def test_what_an_app_does_not_forbid_is_read(app: Guard, text: str) -> None:
    assert app.judge(text).verdict == ACCEPTED


def test_the_first_piece_of_all_policies_is_told(app: Guard) -> None:
    verdict = app.judge("SELECT pg_sleep(1) FROM salaries, (SELECT version()) v").verdict
    assert (verdict.family, verdict.cause) == ("sleep", "the query waits: `pg_sleep` at 1:8")
    assert verdict.policies == ("nonsuch.never.sleep", "salaries", "versions")
    verdict = app.judge("SELECT 1 FROM salaries WHERE pg_sleep(1) IS NULL").verdict
    assert (verdict.family, verdict.code) == (None, "X_SALARIES")


def test_no_permit_lifts_what_is_forbidden() -> None:
    lifted = _with('@id("all") permit (principal, action == Action::"db.query", resource);')
    refused = [each.text for each in corpus() if each.verdict == "refuse" and each.tier == "parse"]
    assert [text for text in refused if lifted.judge(text).verdict.allow] == []


def test_a_policy_that_cannot_be_evaluated_refuses() -> None:
    broken = _with(
        '@id("sum") forbid (principal, action == Action::"db.query", resource)'
        " when { 9223372036854775807 + 1 > 0 };"
    )
    told = broken.judge("SELECT 1").verdict
    assert told == Verdict(
        allow=False,
        code="X_MCP_QUERY_REJECTED",
        cause="the query cannot be judged",
        fix="read the server's log",
        policies=("sum",),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('permit (principal, action == Action::"read", resource);', "read"),
        ('forbid (principal, action == Action::"db.query", resource) when { context.sql == "x" };', "sql"),
        (
            'forbid (principal, action == Action::"db.query", resource) when { context.kinds == "x" };',
            "kinds|type",
        ),
        ('@id("nonsuch.never.write") forbid (principal, action == Action::"db.query", resource);', "one @id"),
        ("permit (principal", "end of input"),
        ('permit (principal == ?principal, action == Action::"db.query", resource);', "template"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused(text: str, told: str) -> None:
    with pytest.raises(PolicyRefused, match=told):
        _with(text)


def test_every_family_has_its_policy_and_no_other_is_let_pass() -> None:
    """A family that the kernel came to name without a policy would be accepted otherwise."""
    asked = guard()
    for family in (*FAMILIES, "a new one"):
        facts = SqlFacts(kinds=("select",), offences=(Offence(family, "x", 0),))
        verdict = judge(facts, "x", asked.policies)
        known = family in FAMILIES
        assert (verdict.allow, verdict.family) == (False, family if known else "other")
        assert len(verdict.policies) == 1
    known_to_the_last = set(re.findall(r'"([a-z-]+)"', TEXTS["nonsuch/never.cedar"].rpartition("unless")[2]))
    assert known_to_the_last == FAMILIES


@pytest.mark.parametrize(
    "kinds", [("insert",), ("select", "delete"), ("explain", "create-table-as"), ("new",)]
)
def test_a_kind_that_is_no_read_is_refused_by_itself(kinds: tuple[str, ...]) -> None:
    """Even if what it holds were of no family."""
    verdict = judge(SqlFacts(kinds=kinds), "x", guard().policies)
    assert (verdict.allow, verdict.policies) == (False, ("nonsuch.never.kind",))


def test_every_shipped_policy_forbids_and_says_what_to_do() -> None:
    for origin, text in TEXTS.items():
        for policy in parse(text, origin):
            assert not policy.permit
            assert policy.actions == frozenset({"db.query"})
            assert policy.annotations["code"] == "X_MCP_QUERY_REJECTED"
            assert {"reason", "fix"} <= policy.annotations.keys(), policy.id


def test_the_context_holds_the_sets_of_the_facts() -> None:
    piece = Piece("Ünï", ('public."a.b"', "app.Ünï"), 3)
    facts = SqlFacts(
        ("select",), (Relation(piece, frozenset({"x", "*"})),), offences=(Offence("write", "x", 1),)
    )
    held = {name: sorted(values) for name, values in json.loads(context(facts)).items()}
    assert held == {
        "kinds": ["select"],
        "families": ["write"],
        "relations": ["app.Ünï", 'public."a.b"'],
        "columns": ["app.Ünï.*", "app.Ünï.x", 'public."a.b".*', 'public."a.b".x'],
        "functions": [],
        "schemas": ["app", "public"],
    }
    assert [(each.name, each.shape.text, each.required) for each in FIELDS] == [
        (name, "Set<String>", True) for name in held
    ]
