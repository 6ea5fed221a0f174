"""A policy that is taken over decides here as it decided there; any other is refused, and says where."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

import pytest
from cedarpy import Schema
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.adapters.analysis.export import whole_schema
from nonsuch.adapters.analysis.importing import Import, imported
from nonsuch.adapters.edge import policies
from nonsuch.kernel.compile import PolicySource
from nonsuch.kernel.errors import Fault
from nonsuch.kernel.loader import Sources, load
from nonsuch.kernel.shapes import encode_fields

from .engine import Told, asked, decided, schema_of, uid
from .parcels import SERVER, VECTORS, theirs
from .test_counterparts import app, known

SCHEMA: Final = (VECTORS / "default.cedarschema").read_text()
PERMITS: Final = '@effect("permit")'
SHIP: Final = 'principal, action == Post::Action::"ship", resource'
KINDS: Final = {"User": "Human", "McpServer": "Server"}


def check(more: Iterable[PolicySource]) -> tuple[Fault, ...]:
    return load(app().kernel.catalog, policies.base(), Sources(tuple(more))).faults


def taken(text: str, schema: str = SCHEMA, **kinds: str) -> Import:
    return imported([PolicySource("there.cedar", text)], schema, known(schema=schema, kinds=kinds), check)


def one_line(text: str) -> str:
    return " ".join(text.split()).replace("( ", "(").replace(" )", ")")


# what is rewritten

EXACT: Final = {
    f'permit ({SHIP}) when {{ context.input.weight < 10 && context.input.tags.contains("a") }};': (
        'permit (principal, action == Action::"ship", resource)'
        ' when { context.args.weight < 10 && context.args.tags.contains("a") };'
    ),
    'permit (principal, action in Post::Action::"call_tool", resource);': (
        'permit (principal, action in [Action::"label", Action::"parcel", Action::"ship"], resource);'
    ),
    'forbid (principal, action, resource) unless { action == Post::Action::"ship" || true };': (
        'forbid (principal, action in [Action::"label", Action::"parcel", Action::"ship"], resource)'
        ' unless { action == Action::"ship" || true };'
    ),
    'permit (principal in Post::Role::"clerk", action in [Post::Action::"label"], resource);': (
        'permit (principal in Role::"clerk", action in Action::"label", resource);'
    ),
    'permit (principal is Post::User in Post::Role::"clerk", action == Post::Action::"ship", resource'
    ' == Post::McpServer::"post") when { principal == Post::User::"ann" && principal.user == "ann" };': (
        'permit (principal is Human in Role::"clerk", action == Action::"ship", resource == Server::"post")'
        ' when { principal == Human::"ann" && principal.user == "ann" };'
    ),
    f'permit ({SHIP}) when {{ context.input.kind == Post::ship::Input::kind::"box" }}'
    ' unless { Post::ship::Input::kind::"letter" != context.input.kind };': (
        'permit (principal, action == Action::"ship", resource) when { context.args.kind == "box" }'
        ' unless { context.args.kind != "letter" };'
    ),
    f'permit ({SHIP}) when {{ context.input.kind in [Post::ship::Input::kind::"box"] &&'
    ' [Post::ship::Input::kind::"letter"].contains(context.input.kind)'
    ' && context.input.kind in Post::ship::Input::kind::"box" };': (
        'permit (principal, action == Action::"ship", resource) when { ["box"].contains(context.args.kind)'
        ' && ["letter"].contains(context.args.kind) && context.args.kind == "box" };'
    ),
    f"permit ({SHIP}) when {{ context.input has note.typeChoice0 &&"
    ' context.input.note.typeChoice0 like "a*" };': (
        'permit (principal, action == Action::"ship", resource)'
        ' when { context.args has note && context.args.note like "a*" };'
    ),
    f"permit ({SHIP}) when {{ context.input has speed.typeChoice0 && context.input.speed.typeChoice0 =="
    ' Post::ship::Input::speed::TypeChoice0::"fast" && context.input.urgent has typeChoice0 };': (
        'permit (principal, action == Action::"ship", resource) when { context.args has speed'
        ' && context.args.speed == "fast" && context.args has urgent };'
    ),
    f'permit ({SHIP}) when {{ context.input.to.city == "Rome" && context.input.to has floor &&'
    " {pattern: context.input.to.floor, entity_type: 1} == {pattern: 2, entity_type: 1} };": (
        'permit (principal, action == Action::"ship", resource) when { context.args.to.city == "Rome"'
        " && context.args.to has floor"
        " && { entity_type: 1, pattern: context.args.to.floor } == { entity_type: 1, pattern: 2 } };"
    ),
}


@pytest.mark.parametrize(("text", "here"), EXACT.items(), ids=range(len(EXACT)))
def test_a_policy_is_rewritten_with_the_names_that_things_have_here(text: str, here: str) -> None:
    found = taken(f'@id("a") @reason("why") {text}', **KINDS)
    assert [one_line(each.text) for each in found.policies] == [f'@id("a") @reason("why") {here}'], (
        found.refused
    )


# what is refused: the place by what stands there, and a part of the cause

INEXACT: Final = {
    f"permit ({SHIP}) when {{ context.session.ip.isLoopback() }};": (
        "session",
        "`context.session.ip` is not here",
    ),
    "permit (principal, action, resource) when { context has session };": (
        "session",
        "`context.session` is not here",
    ),
    f"permit ({SHIP}) when {{ context == context }};": ("context", "uses the context as a whole"),
    f"permit ({SHIP}) when {{ context.input == context.input }};": ("input", "`context.input` is not here"),
    f"permit ({SHIP}) when {{ context.input.to == context.input.to }};": (
        "to",
        "`to` is an entity there and a record here, and it is used as a whole",
    ),
    f"permit ({SHIP}) when {{ context.input.kind == context.input.kind }};": (
        "kind",
        "`kind` is compared with what is no member of its enumeration",
    ),
    f"permit ({SHIP}) when {{ [context.input.kind].isEmpty() }};": (
        "kind",
        "`kind` is an enumeration there and a string here, and it is used as a whole",
    ),
    f"permit ({SHIP}) when {{ context.input has limit && context.input.limit < 5 }};": (
        "limit",
        "it can be absent there; here it has a default",
    ),
    f'permit ({SHIP}) when {{ context.input.address.city == "Rome" }};': ("address", "is not the same here"),
    f"permit ({SHIP}) when {{ context.input has note }};": (
        "note",
        "true of a null there; here a null is absent",
    ),
    f"permit ({SHIP}) when {{ context.input has note && context.input.note has typeChoice1 }};": (
        "note",
        "true of a null there",
    ),
    f"permit ({SHIP}) when {{ context.input.urgent has typeChoice1 }};": (
        "urgent",
        "`urgent` can be null there",
    ),
    f'permit ({SHIP}) when {{ context.input has extra && context.input.extra.hasTag("k") }};': (
        "extra",
        "is not the same here",
    ),
    'permit (principal, action in [Post::Action::"ship", Post::Action::"label"], resource)'
    ' when { context.input.kind == Post::ship::Input::kind::"box" };': (
        "kind",
        "`kind` is not one argument in all tools",
    ),
    f'permit ({SHIP}) when {{ principal.name == "Ann" }};': ("name", "`Human` has no attribute `name`"),
    f"permit ({SHIP}) when {{ principal has name }};": ("name", "`Human` has no attribute `name`"),
    f"permit ({SHIP}) when {{ {{a: principal}}.a == principal }};": (
        "permit",
        "reads an attribute of an expression",
    ),
    f"permit ({SHIP}) when {{ action has x }};": ("action", "an action has no attributes here"),
    'permit (principal, action == Post::Action::"parcel", resource is Post::McpServer);': (
        "resource",
        "the resource of `parcel` is `Server` there and `Parcel` here",
    ),
    'permit (principal, action == Post::Action::"ship", resource == Post::McpServer::"other");': (
        '"other"',
        "no server here is named `other`",
    ),
    f'permit ({SHIP}) when {{ action in Post::Action::"call_tool" }};': (
        '"call_tool"',
        "`call_tool`, which is no tool",
    ),
    'permit (principal in Post::Role::"amdin", action == Post::Action::"ship", resource);': (
        "permit",
        "amdin",
    ),
    'permit (principal in ?principal, action == Post::Action::"ship", resource);': (
        "permit",
        "is a template",
    ),
    f"permit ({SHIP}) when {{ context.input.wight < 1 }};": ("permit", "does not fit its own schema"),
    f"permit ({SHIP}) when {{ tru }};": ("tru", "invalid variable"),
    f"permit ({SHIP}) when {{ {' && '.join(['context.input.weight < 1'] * 90)} }};": (
        "permit",
        "the engine does not read its JSON form",
    ),
}


@pytest.mark.parametrize(("text", "told"), INEXACT.items(), ids=range(len(INEXACT)))
def test_a_policy_without_an_exact_counterpart_is_refused_at_its_place(
    text: str, told: tuple[str, str]
) -> None:
    found = taken(text, **KINDS)
    [refused] = found.refused
    assert told[1] in refused.cause
    _, line, column = refused.where.split(":")
    assert (line, text[int(column) - 1 :].startswith(told[0])) == ("1", True), refused
    assert refused.fix
    assert [each.text for each in found.policies if each.text] == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('permit (principal is Post::User, action == Post::Action::"ship", resource);', "User"),
        (
            'permit (principal, action == Post::Action::"ship", resource == Post::McpServer::"post");',
            "McpServer",
        ),
        (f'permit ({SHIP}) when {{ principal.id == "ann" }};', "User"),
        (f'permit ({SHIP}) when {{ principal in Post::Role::"clerk" }};', "User"),
    ],
)
def test_who_and_what_is_meant_is_never_guessed(text: str, name: str) -> None:
    [refused] = taken(text).refused
    assert (refused.cause, refused.fix) == (
        f"`there.cedar#0`: `Post::{name}` is no type of this app",
        f"say which type here is meant: `--types Post::{name}=...`",
    )


def test_a_type_that_no_principal_here_has_is_refused() -> None:
    [refused] = taken("permit (principal is Post::User, action, resource);", User="Role").refused
    assert "the principal of `label` is `Role` there and `Agent` or `Human` here" in refused.cause


@pytest.mark.parametrize(
    ("old", "new", "kind", "condition", "cause"),
    [
        ("", "", "Agent", 'principal.user == "ann"', "`user` of `Post::User` is required there"),
        ("", "", "Agent", "principal has user", "`user` of `Post::User` is required there and optional"),
        ("org?: String", "org: String", "Human", 'principal.org == ""', "is required there and optional"),
        ("org?: String", "org?: Long", "Human", "principal has org && principal.org < 1",
         "`org` is `Long` there and `String` here"),
        ("org?: String", "org?: Role", "Human", "principal has org && principal.org == principal.org",
         "`org` is `Post::Role` there and `String` here"),
    ],
)  # fmt: skip
def test_an_attribute_of_principals_that_is_another_here_is_refused(
    old: str, new: str, kind: str, condition: str, cause: str
) -> None:
    schema = SCHEMA.replace(old, new)
    [refused] = taken(f"permit ({SHIP}) when {{ {condition} }};", schema, User=kind).refused
    assert cause in refused.cause


def test_what_the_app_would_refuse_is_refused_and_names_the_first_place() -> None:
    text = '@id("nonsuch.scope.token") permit (principal, action == Post::Action::"ship", resource);'
    [refused] = taken(f"// first\n{text}").refused
    assert (refused.code, refused.where) == ("X_POLICY_ID_DUPLICATE", "there.cedar:2:1")


# what is taken over decides as it did

CONDITIONS: Final = (
    "context.input.weight < 10",
    'context.input.id like "p*"',
    'context.input.tags.contains("a")',
    "context.input.tags.isEmpty()",
    'context.input.to.city == "Rome"',
    "context.input.to has floor && context.input.to.floor == 2",
    'context.input.kind == Post::ship::Input::kind::"box"',
    'context.input.kind != Post::ship::Input::kind::"box"',
    'context.input.kind in [Post::ship::Input::kind::"box"]',
    '[Post::ship::Input::kind::"letter"].contains(context.input.kind)',
    'context.input.kind == Post::label::Input::kind::"box"',
    "context.input has note",
    'context.input has note.typeChoice0 && context.input.note.typeChoice0 == "hi"',
    "context.input has note && context.input.note has typeChoice1",
    "context.input has note && context.input.note has typeChoice0 && context.input.weight > 0",
    "context.input.urgent has typeChoice0",
    "context.input.urgent has typeChoice0 && context.input.urgent.typeChoice0",
    "context.input has speed.typeChoice0 && context.input.speed.typeChoice0 =="
    ' Post::ship::Input::speed::TypeChoice0::"fast"',
    "context.input has limit",
    "context.input has limit && context.input.limit < 20",
    "context.input has items",
    "context.input has items && context.input.items.isEmpty()",
    'context.input.extra.hasTag("k")',
    "context.input has extra",
    "context.input.to == context.input.to",
    'context.input.address.city == "Rome"',
    "context.input.express",
    'principal.id == "ann"',
    'principal.user == "ann"',
    'principal has org && principal.org == "acme"',
    "principal has name",
    'principal in Post::Role::"clerk"',
    'principal == Post::User::"ann"',
    "principal is Post::User",
    'resource == Post::McpServer::"post"',
    'action == Post::Action::"ship"',
    'action == Post::Action::"label"',
    'context.session.ip.isInRange(ip("10.0.0.0/8"))',
)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    if not depth or draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from(CONDITIONS))
    forms = ["({}) && ({})", "({}) || ({})", "!({}) && ({})", "if {} then {} else false"]
    return draw(st.sampled_from(forms)).format(*(draw(conditions(depth - 1)) for _ in range(2)))


HEADS: Final = st.tuples(
    st.sampled_from(
        ["principal"] * 3
        + ["principal is Post::User", 'principal in Post::Role::"clerk"', 'principal == Post::User::"ann"']
    ),
    st.sampled_from(
        ['action == Post::Action::"ship"'] * 3 + ['action in Post::Action::"call_tool"', "action"]
    ),
    st.sampled_from(
        ["resource"] * 3 + ["resource is Post::McpServer", 'resource == Post::McpServer::"post"']
    ),
)
NULLABLE: Final = {
    "note": st.sampled_from([None, "hi", "why"]),
    "speed": st.sampled_from([None, "fast", "slow"]),
    "limit": st.sampled_from([1, 10, 30]),
    "items": st.sampled_from([[], [{"sku": "s", "count": 1}]]),
    "extra": st.sampled_from([{}, {"k": "v"}]),
}
ARGUMENTS: Final = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["p1", "q"]),
        "express": st.booleans(),
        "weight": st.sampled_from([-1, 3, 30]),
        "kind": st.sampled_from(["box", "letter"]),
        "tags": st.sampled_from([[], ["a"], ["b", "a"]]),
        "to": st.sampled_from([{"city": "Rome", "floor": 2}, {"city": "Bern", "floor": 3}]),
        "address": st.sampled_from([{"city": "Rome"}, {"city": "Bern", "zip": None}]),
        "urgent": st.sampled_from([None, True, False]),
    },
    optional=NULLABLE,
)


@cache
def schemas() -> tuple[Schema, Schema]:
    here = whole_schema(app().kernel.catalog, policies.base())
    return Schema.from_str(SCHEMA), Schema.from_str(here)


Call = tuple[dict[str, Any], str, str | None, frozenset[str]]
CALLS: Final = st.tuples(
    ARGUMENTS,
    st.sampled_from(["ann", "ben"]),
    st.sampled_from([None, "acme", "globex"]),
    st.sampled_from([frozenset[str](), frozenset({"clerk"})]),
)


@given(HEADS, conditions(), st.sampled_from(["permit", "forbid"]), st.lists(CALLS, min_size=3, max_size=3))
def test_what_is_taken_over_decides_as_it_did(
    head: tuple[str, ...], condition: str, effect: str, calls: list[Call]
) -> None:
    text = f'@effect("{effect}") {effect} ({", ".join(head)}) when {{ {condition} }};'
    found = taken(text, **KINDS)
    for each in found.policies:
        for call in calls if each.text else ():
            assert there(text, call) == here(each.text, call), each.text


def test_most_conditions_above_are_taken_over_and_the_others_are_refused() -> None:
    """Or the property would compare nothing."""
    kept = {
        each for each in CONDITIONS if taken(f"permit ({SHIP}) when {{ {each} }};", **KINDS).policies[0].text
    }
    assert len(kept) >= 20
    assert len(CONDITIONS) - len(kept) >= 10


def there(text: str, call: Call) -> Told:
    """What the engine says of a call as the generator encodes it."""
    arguments, ident, org, roles = call
    given, entities = theirs("ship", arguments)
    entities.append(person("Post::User", "Post::Role", ident, roles, {"name": ident, **_org(org)}))
    context = {"input": given, "session": {"ip": {"__extn": {"fn": "ip", "arg": "10.0.0.1"}}}}
    request = asked(
        *(uid("Post::User", ident), uid("Post::Action", "ship"), uid("Post::McpServer", SERVER), context)
    )
    return decided(request, whole(text), entities, schemas()[0])


def here(text: str, call: Call) -> Told:
    """What the engine says of the same call as the kernel encodes it."""
    arguments, ident, org, roles = call
    [entry] = [each for each in app().kernel.catalog.entries if each.name == "ship"]
    context = {"args": encode_fields(entry.arguments, entry.input.model.model_validate(arguments))}
    entities = [person("Human", "Role", ident, roles, {"audiences": [], **_org(org)})]
    request = asked(uid("Human", ident), uid("Action", "ship"), uid("Server", SERVER), context)
    return decided(request, whole(text), entities, schemas()[1])


def whole(text: str) -> str:
    """A policy that forbids, beside one that permits everything."""
    return text if PERMITS in text else f"permit (principal, action, resource);{text}"


def _org(name: str | None) -> dict[str, str]:
    return {} if name is None else {"org": name}


def person(kind: str, role: str, ident: str, roles: frozenset[str], more: dict[str, Any]) -> dict[str, Any]:
    attributes: dict[str, Any] = {"id": ident, "user": ident, **more}
    parents = [uid(role, each) for each in sorted(roles)]
    return {"uid": uid(kind, ident), "attrs": attributes, "parents": parents}


def test_both_forms_of_the_generated_schema_say_the_same() -> None:
    document = json.loads((VECTORS / "default.cedarschema.json").read_text())
    assert str(schema_of(document)) == str(schemas()[0])
