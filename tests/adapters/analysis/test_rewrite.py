"""A policy for a generated schema has the names that things have here, or is refused, and says where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest

from nonsuch.adapters.analysis.importing import Import, imported
from nonsuch.adapters.edge import policies
from nonsuch.kernel.compile import PolicySource
from nonsuch.kernel.errors import Fault
from nonsuch.kernel.loader import Sources, load

from .parcels import VECTORS
from .test_counterparts import app, known

SCHEMA: Final = (VECTORS / "default.cedarschema").read_text()
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
