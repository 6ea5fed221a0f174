"""A policy in Cedar's JSON format is the one that the engine itself writes for the same text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, get_args

import cedarpy
import pytest
from cedarpy import pst
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.adapters.analysis import policy_json as writer
from nonsuch.adapters.analysis.policy_json import (
    PolicyUnwritable,
    policy_json,
    policy_set_json,
    policy_text,
)
from nonsuch.kernel.cedar_text import Policy, PolicyRefused, parse

CORPUS: Final = Path(__file__).parents[2] / "vectors" / "cedar_corpus"
HEADS: Final = (
    "principal, action, resource",
    'principal == A::"a", action == Action::"x", resource in N::B::"b\\n"',
    'principal is A, action in Action::"x", resource is N::B in B::"b"',
    'principal is N::A in B::"b", action in [Action::"x", N::Action::"y"], resource == B::"it\'s"',
    'principal in A::"", action in [], resource is B',
)
BOOLEANS: Final = (
    "true",
    "principal == resource",
    "principal != resource",
    'principal in [resource, B::"b"]',
    'resource has a && resource has "a b" && context has a.b.c',
    'principal is N::A in B::"b" || principal is A',
    'context.s like "a*\\*b\\u{7}" && context["odd key"].x == {a: 1, "b c": [1, 2]}["b c"]',
    "context.n < 1 && context.n <= 2 && context.n > -3 && context.n >= -9223372036854775808",
    "1 + 2 * 3 - context.n == -context.n && !(context.b)",
    "[1].contains(1) && [1].containsAll([2]) && [1].containsAny([3]) && [].isEmpty()",
    'principal.hasTag("t") && principal.getTag("t") == (if context.b then 1 else 2)',
    'ip("1.2.3.4").isIpv4() && ip("::1").isIpv6() && ip("127.0.0.1").isLoopback()',
    'ip("1.2.3.4").isMulticast() && ip("1.2.3.4").isInRange(ip("1.2.3.0/24"))',
    'decimal("1.0").lessThan(decimal("2.0")) && decimal("1.0").lessThanOrEqual(decimal("2.0"))',
    'decimal("1.0").greaterThan(decimal("2.0")) && decimal("1.0").greaterThanOrEqual(decimal("2.0"))',
    'datetime("2026-01-01").offset(duration("1d")).toDate() == datetime("2026-01-02")',
    'datetime("2026-01-01").durationSince(datetime("2026-01-01")).toMilliseconds() == 0',
    'datetime("2026-01-01").toTime().toSeconds() == duration("1m").toMinutes()',
    'duration("1h").toHours() == duration("1d").toDays()',
)


def engine(text: str) -> list[Any]:
    """The engine's own JSON of each policy; an annotation without a value is an empty one."""
    held = json.loads(cedarpy.policies_to_json_str(text))["staticPolicies"]
    return [plain(held[name]) for name in sorted(held, key=lambda name: int(name.removeprefix("policy")))]


def plain(document: Any) -> Any:
    notes = {name: told or "" for name, told in document.get("annotations", {}).items() if name != "id"}
    return {**document, "annotations": notes}


def written(text: str) -> list[Any]:
    return [plain(policy_json(each)) for each in parse(text, "p")]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("condition", BOOLEANS)
def test_a_policy_has_the_json_that_the_engine_writes(head: str, condition: str) -> None:
    text = f'@x @reason("a \\"b\\"") forbid ({head}) when {{ {condition} }} unless {{ {condition} }};'
    assert written(text) == engine(text)


def test_the_forms_above_are_all_that_there_are() -> None:
    """An operator of a newer engine fails here before it meets a policy that uses it."""
    assert {*writer._UNARY, *writer._BINARY, *writer._CALLS} == {  # pyright: ignore[reportPrivateUsage]
        *get_args(pst.UnaryOpName),
        *get_args(pst.BinaryOpName),
    }
    met = {name for policy in parse("\n".join(texts()), "p") for name in operators(policy.node)}
    assert met == {*get_args(pst.UnaryOpName), *get_args(pst.BinaryOpName)}


def texts() -> list[str]:
    return [f"permit (principal, action, resource) when {{ {each} }};" for each in BOOLEANS]


def operators(node: Any) -> set[str]:
    if isinstance(node, (pst.UnaryOp, pst.BinaryOp)):
        return {node.op}.union(*(operators(getattr(node, name)) for name in node.__slots__ if name != "op"))
    if isinstance(node, (tuple, list)):
        return set[str]().union(*(operators(each) for each in node))  # pyright: ignore[reportUnknownVariableType]
    names = getattr(node, "__slots__", ())
    return set[str]().union(*(operators(getattr(node, name)) for name in names))


def test_the_policies_of_the_corpus_have_the_json_that_the_engine_writes() -> None:
    paths = sorted(CORPUS.rglob("*.cedar"))
    assert len(paths) >= 20
    assert [written(each.read_text()) for each in paths] == [engine(each.read_text()) for each in paths]


@st.composite
def conditions(draw: st.DrawFn, depth: int = 4) -> str:
    if not depth or draw(st.booleans()):
        return draw(st.sampled_from(BOOLEANS))
    left, right = (draw(conditions(depth - 1)) for _ in range(2))
    form = draw(st.sampled_from(["({}) && ({})", "({}) || ({})", "!({} && {})", "if {} then {} else true"]))
    return form.format(left, right)


@given(conditions(), st.sampled_from(HEADS))
def test_any_policy_has_the_json_that_the_engine_writes_and_comes_back(condition: str, head: str) -> None:
    text = f"permit ({head}) when {{ {condition} }};"
    try:
        [policy] = parse(text, "p")
    except PolicyRefused:  # deeper than we read
        return
    assert [plain(policy_json(policy))] == engine(text)
    assert [plain(policy_json(each)) for each in parse(policy_text(policy_json(policy)), "p")] == engine(text)


def test_a_set_has_each_policy_under_its_own_id() -> None:
    policies = parse(
        '@id("it\'s") permit (principal, action, resource); forbid (principal, action, resource);', "f"
    )
    document: Any = policy_set_json(policies)
    assert (list(document["staticPolicies"]), document["templates"], document["templateLinks"]) == (
        ["it's", "f#1"],
        {},
        [],
    )


def long(links: int) -> Policy:
    chain = " && ".join(f"context.n != {number}" for number in range(links))
    [policy] = parse(f'@id("long") permit (principal, action, resource) when {{ {chain} }};', "f")
    return policy


def test_a_policy_that_the_reader_of_json_does_not_take_is_refused() -> None:
    """It nests less deep than the reader of text."""
    assert policy_set_json([long(50)])
    with pytest.raises(PolicyUnwritable, match="`long`: the engine does not read its JSON form"):
        policy_set_json([long(96)])


def test_a_form_that_nobody_knows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    [policy] = parse("permit (principal, action, resource) when { 1 < 2 };", "f")
    monkeypatch.delitem(writer._BINARY, "less")  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(PolicyUnwritable, match="`less` has no JSON form here"):
        policy_json(policy)


def test_json_that_means_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    [policy] = parse("permit (principal, action, resource) when { 1 < 2 };", "f")
    monkeypatch.setitem(writer._BINARY, "less", "<=")  # pyright: ignore[reportPrivateUsage]
    assert policy_text(policy_json(policy)) != policy_text(
        engine("permit (principal, action, resource) when { 1 < 2 };")[0]
    )
    with pytest.raises(PolicyUnwritable, match="another policy"):
        policy_set_json([policy])
