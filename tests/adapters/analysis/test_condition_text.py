"""Condition text: what people read means what the engine was given."""

from __future__ import annotations

import pytest

from nonsuch.adapters.analysis.condition_text import (
    may_err,
    mentions,
    negated,
    of_roles_only,
    reads,
    tidy,
    tidy_policy,
)
from nonsuch.kernel import cedar, cedar_parts, cedar_text

TEXTS = [
    'principal in Role::"a" || principal in Role::"b"',
    "principal.org == resource.org",
    "context.args.amount + 3 > 10",
    'principal.scopes.contains(Scope::"a (b)") || !(principal.a && principal.b)',
    "[1, 2].contains(resource.q)",
    'principal.name like "a*"',
    "if principal.x then true else false",
    "(if principal.x then 1 else 2) == 3",
    '{a: 1, "b c": -3}.a == 1',
    'ip(resource.i).isInRange(ip("1.2.3.4/8"))',
    "principal is Agent",
    'principal is Agent in Role::"a"',
    'principal["k k"] == 1',
    "1 - (2 - 3) == 2",
    "1 - 2 - 3 == 1",
    "(1 + 2) * 3 == 9",
    "(1 == 2) == (3 == 4)",
    "-1 < -resource.x",
    "!!resource.p",
    "!resource.p",
    'principal in [Role::"a", Role::"b"]',
    'resource.s == "when { (a) } \\" && ("',
    "[].isEmpty()",
    "resource.a.b.c",
]


def policy(condition: str, keyword: str = "when") -> cedar_text.Policy:
    return cedar_text.parse(
        f'@id("x") permit (principal, action in Action::"any", resource) {keyword} {{ {condition} }};', "f"
    )[0]


def engine_text(each: cedar_text.Policy) -> str:
    return str(cedar.policy_set([each]))


@pytest.mark.parametrize("condition", TEXTS)
def test_a_tidied_policy_is_the_same_policy(condition: str) -> None:
    given = engine_text(policy(condition))
    assert engine_text(cedar_text.parse(tidy_policy(given), "f")[0]) == given


@pytest.mark.parametrize("condition", TEXTS)
def test_text_without_needless_brackets_stays_as_it_was_written(condition: str) -> None:
    (_, _), *parts = cedar_parts.conditions(policy(condition))
    assert " && ".join(tidy(text) for text, _ in parts) in (
        condition,
        condition.replace('"b c": -3', '"b c": -3'),
    )


def test_only_conditions_are_tidied_not_what_looks_like_one_in_an_annotation() -> None:
    text = '@id("x")\n@reason("when { ((a)) }")\npermit(principal, action, resource) when { ((resource.p)) };'
    assert '@reason("when { ((a)) }")' in tidy_policy(text)
    assert "when { resource.p }" in tidy_policy(text)


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("!resource.p", "resource.p"),
        ("!(a == b && c)", "a == b && c"),
        ("!principal.scopes.contains(resource)", "principal.scopes.contains(resource)"),
        ("!(a) || b", None),
        ("!a || b", None),
        ("a", None),
        ("!(a).b", None),
    ],
)
def test_a_negation_is_told_from_a_text_that_only_begins_like_one(text: str, inner: str | None) -> None:
    assert negated(text) == inner


def test_attributes_are_read_off_a_condition_but_not_off_its_strings() -> None:
    text = 'principal.org == "resource.secret" && principal has team && context.args.n > 1'
    text += ' && principal in Role::"a"'
    assert reads(text) == ("principal.roles", "principal.org", "principal.team", "context.args.n")
    assert not mentions(text, "resource")
    assert mentions("resource.a", "resource")


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ('principal in Role::"a" || principal is Agent', True),
        ('principal in Role::"a" && principal.org == "x"', False),
        ("principal in resource.roles", False),
        ("context.args.n > 1", False),
        ('principal == Human::"resource"', False),
        ("1 == 1", True),
    ],
)
def test_a_condition_that_roles_alone_decide_is_told_from_the_others(text: str, only: bool) -> None:
    assert of_roles_only(text) is only


def test_a_policy_taken_apart_keeps_its_order_and_splits_unless() -> None:
    given = cedar_text.parse(
        '@id("x") forbid (principal, action in Action::"any", resource)'
        " when { principal.a && (principal.b || principal.c) } unless { resource.d || resource.e };",
        "f",
    )[0]
    parts = cedar_parts.conditions(given)
    assert [tidy(text) for text, _ in parts] == [
        "",
        "principal.a",
        "principal.b || principal.c",
        "!resource.d",
        "!resource.e",
    ]
    assert [each.id for _, each in parts] == ["x#0", "x#1", "x#2", "x#3", "x#4"]
    assert all(each.permit for _, each in parts)
    assert [each.reads_resource for _, each in parts] == [False, False, False, True, True]


def test_formatting_keeps_comments_and_refuses_what_does_not_parse() -> None:
    text = '// head\n@id("x") // id\npermit(principal, action, resource) when { true // last\n};\n// tail'
    made = cedar_text.formatted(text)
    assert [each in made for each in ("// head", "// id", "// last", "// tail")] == [True] * 4
    with pytest.raises(cedar_text.PolicyRefused):
        cedar_text.formatted("permit (")
    with pytest.raises(cedar_text.PolicyTooDeep):
        cedar_text.formatted(
            "permit (principal, action, resource) when { " + "(" * 500 + "true" + ")" * 500 + " };"
        )


@pytest.mark.parametrize(
    ("text", "errs"),
    [
        ("context.args.n + 1 > 0", True),
        ("-context.args.n > 0", True),
        ("ip(principal.address).isLoopback()", True),
        ('resource.getTag("a") == "b"', True),
        ('principal.org == "a + b"', False),
        ("resource.open && context.args.n > 1", False),
    ],
)
def test_a_condition_that_can_fail_is_told_from_the_others(text: str, errs: bool) -> None:
    assert may_err(text) is errs
