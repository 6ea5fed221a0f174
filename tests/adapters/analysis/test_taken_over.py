"""A policy that is taken over decides here as it decided there, whatever is called and by whom."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from cedarpy import Schema
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.adapters.analysis.export import whole_schema
from nonsuch.adapters.edge import policies
from nonsuch.kernel.shapes import encode_fields

from .engine import Told, asked, decided, uid
from .parcels import SERVER, theirs
from .test_counterparts import app
from .test_rewrite import KINDS, SCHEMA, SHIP, taken

PERMITS: Final = '@effect("permit")'
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
