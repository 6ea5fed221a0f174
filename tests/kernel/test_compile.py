"""What the catalog says in Cedar: the text parses, every name is quoted, an empty list is nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, create_model

from nonsuch import Registry, audience, can, expose, grant, tool
from nonsuch.adapters.edge.policies import base
from nonsuch.kernel import cedar, cedar_text
from nonsuch.kernel.catalog import Catalog
from nonsuch.kernel.compile import (
    PolicySource,
    audience_policies,
    entry_schema,
    gate_schema,
    grant_policies,
    principal_schema,
)

from .trial import boot

NAMES = st.text(st.sampled_from("abzAZ09_./-"), min_size=1, max_size=12)


class Post(BaseModel):
    id: str
    tags: list[str]


class Notify(BaseModel):
    postId: str
    notify: bool = False


def find(input: Notify) -> Post | None:
    return None


def asks(_principal: object) -> int:
    return 1


def notify(input: Notify) -> str:
    return "done"


def plain() -> str:
    return "done"


def catalog_of(registry: Registry | None = None, **given: Any) -> Catalog:
    return boot(registry or Registry(), **given).kernel.catalog


def two_tools() -> Catalog:
    registry = Registry()
    registry.action(policy=can("post:notify", resource=find), mcp=expose("Notify"))(notify)
    registry.action(policy=can("word:say"), mcp=expose("Say", visible_to=["b", "a"]))(plain)
    return catalog_of(registry, scopes={"s:1": ["notify"], "s:2": ["plain"]})


def test_the_enumerations_and_the_base_of_the_principal_schema() -> None:
    text = principal_schema(two_tools(), base())
    assert text == (
        'entity Role enum ["a", "b"];\n'
        'entity Scope enum ["s:1", "s:2"];\n'
        'entity Audience enum ["everyone", "roles:a|b"];\n' + base().entities
    )


def test_an_empty_enumeration_holds_a_name_of_nobody() -> None:
    text = principal_schema(catalog_of(), base())
    assert text.startswith(
        'entity Role enum ["-"];\nentity Scope enum ["-"];\nentity Audience enum ["everyone"];\n'
    )


def test_the_schema_of_the_policy_gate_whole() -> None:
    assert entry_schema("<principals>", two_tools().entries) == (
        "<principals>\n"
        'action "any";\n'
        'entity Post = {"id": String, "tags": Set<String>};\n'
        'action "post:notify" in ["any"];\n'
        'action "word:say" in ["any"];\n'
        'action "notify" in ["post:notify"] appliesTo { principal: [Agent, Human], resource: [Post], '
        'context: { args: {"postId": String, "notify": Bool} } };\n'
        'action "plain" in ["word:say"] appliesTo { principal: [Agent, Human], resource: [Server], '
        "context: { args: {} } };"
    )


def test_the_schema_of_one_entry_holds_only_the_arguments_that_are_read() -> None:
    entry = two_tools().entries[0]
    narrow = entry_schema(
        "<principals>", [entry], lambda one: [each for each in one.arguments if each.name == "notify"]
    )
    assert 'context: { args: {"notify": Bool} } };' in narrow
    assert "postId" not in narrow
    assert "context: { args: {} } };" in entry_schema("<principals>", [entry], lambda _: ())


def first() -> str:
    return "done"


def second() -> str:
    return "done"


def said_twice() -> Catalog:
    registry = Registry()
    for handler in (first, second):
        registry.action(policy=can("word:say"), mcp=expose("Say"))(handler)
    return catalog_of(registry)


def test_entries_that_are_told_the_same_share_one_named_type() -> None:
    text = entry_schema("<principals>", said_twice().entries)
    head = 'in ["word:say"] appliesTo { principal: [Agent, Human], resource: [Server], context: Context0 };'
    assert text == (
        "<principals>\n"
        'action "any";\n'
        "type Context0 = { args: {} };\n"
        'action "word:say" in ["any"];\n'
        f'action "first" {head}\n'
        f'action "second" {head}'
    )


def test_the_name_of_a_shared_type_is_nobody_elses() -> None:
    catalog = said_twice()
    principals = principal_schema(catalog, base()) + "\nentity Context0;\nentity Context_0;\n"
    text = entry_schema(principals, catalog.entries)
    assert "type Context__0 = " in text
    cedar.schema(text)


def test_nor_that_of_a_model_that_is_only_referred_to() -> None:
    text = entry_schema("<principals>", said_twice().entries, None, frozenset({"Context0"}))
    assert "type Context_0 = " in text


def test_every_schema_parses() -> None:
    catalog = two_tools()
    cedar.schema(gate_schema(catalog, base()))
    principals = principal_schema(catalog, base())
    cedar.schema(entry_schema(principals, catalog.entries))
    for entry in catalog.entries:
        cedar.schema(entry_schema(principals, [entry], lambda _: ()))


def test_a_policy_for_each_audience_and_none_for_an_empty_list() -> None:
    seen: dict[str, Any] = {
        "a": ["y", "x"],
        "b": [],
        "c": None,
        "d": audience("principal has org"),
        "e": asks,
    }
    tools = {name: tool("Say", plain, policy="word:say", visible_to=each) for name, each in seen.items()}
    catalog = catalog_of(tools=tools)
    (condition,) = catalog.conditions
    assert audience_policies(catalog) == [
        PolicySource(
            "<audience roles:x|y>",
            '@id("audience roles:x|y")\n'
            'permit (principal, action == Action::"see", resource == Audience::"roles:x|y")\n'
            'when { principal in [Role::"x", Role::"y"]\n};',
        ),
        PolicySource(
            f"<audience {condition}>",
            f'@id("audience {condition}")\n'
            f'permit (principal, action == Action::"see", resource == Audience::"{condition}")\n'
            "when { principal has org\n};",
        ),
    ]


def test_a_policy_for_each_distinct_grant() -> None:
    registry = Registry()
    registry.action(policy=can("word:say"), mcp=expose("Say"))(plain)
    given = [grant("editor", "word:say"), grant("admin", "any"), grant("editor", "word:say")]
    assert grant_policies(catalog_of(registry, grants=given)) == [
        PolicySource(
            "<grant admin any>",
            '@id("grant admin any")\npermit (principal in Role::"admin", action in Action::"any", resource);',
        ),
        PolicySource(
            "<grant editor word:say>",
            '@id("grant editor word:say")\n'
            'permit (principal in Role::"editor", action in Action::"word:say", resource);',
        ),
    ]


@given(st.sets(NAMES, min_size=1, max_size=4), st.sets(NAMES, min_size=1, max_size=4))
def test_any_names_that_boot_admits_parse_and_come_back(roles: set[str], verbs: set[str]) -> None:
    permissions = [f"word:{verb}" for verb in sorted(verbs)]
    tools = {
        f"t{number}": tool("Say", plain, policy=each, visible_to=sorted(roles))
        for number, each in enumerate(permissions)
    }
    given = [grant(role, each) for role in sorted(roles) for each in permissions]
    catalog = catalog_of(tools=tools, grants=given)
    granted = [cedar_text.parse(each.text, each.origin)[0] for each in grant_policies(catalog)]
    expected = {(("Role", role), frozenset({each})) for role in roles for each in permissions}
    assert {(each.principal, each.actions) for each in granted} == expected
    (seen,) = [cedar_text.parse(each.text, each.origin)[0] for each in audience_policies(catalog)]
    assert seen.resource == ("Audience", "roles:" + "|".join(sorted(roles)))
    against = cedar.schema(entry_schema(principal_schema(catalog, base()), catalog.entries))
    assert cedar.invalid(granted, against) == []
    assert cedar.invalid([seen], cedar.schema(gate_schema(catalog, base()))) == []


ODD_FIELDS = [
    'a"b',
    "a\\b",
    "if",
    "__cedar",
    "é",
    "a b",
    "\n",
    "\0",
    "in",
    'x"}; permit(principal,action,resource);',
]


@pytest.mark.parametrize("name", ODD_FIELDS)
def test_an_argument_of_any_name_is_quoted(name: str, tmp_path: Path) -> None:
    model = create_model("Odd", __base__=BaseModel, field=(str, ...))
    model.model_fields["field"].alias = name
    model.model_fields["field"].validation_alias = name
    model.model_rebuild(force=True)

    def handler(input: Any) -> str:
        return "done"

    handler.__annotations__.update({"input": model, "return": str})
    catalog = catalog_of(tools={"t": tool("Say", handler, policy="word:say")})
    assert [each.name for each in catalog.entries[0].arguments] == [name]
    cedar.schema(entry_schema(principal_schema(catalog, base()), catalog.entries))


def test_the_shipped_policies_are_the_two_gates() -> None:
    assert [each.origin for each in base().policies] == ["nonsuch/visibility.cedar", "nonsuch/scope.cedar"]
    heads = [
        (each.id, each.actions)
        for source in base().policies
        for each in cedar_text.parse(source.text, source.origin)
    ]
    assert heads == [
        ("nonsuch.visibility.everyone", frozenset({"see"})),
        ("nonsuch.visibility.predicate", frozenset({"see"})),
        ("nonsuch.scope.token", frozenset({"present"})),
        ("nonsuch.scope.session", frozenset({"present"})),
    ]
