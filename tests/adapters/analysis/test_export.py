"""What is exported is the app: official tools that read it validate and decide as the kernel does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from cedarpy import PolicySet, Schema, policies_to_pst
from hypothesis import given
from hypothesis import strategies as st

from nonsuch import Agent, Human, Principal
from nonsuch.adapters.analysis.attempts import attempt
from nonsuch.adapters.analysis.export import policy_source, whole_schema, whole_text
from nonsuch.adapters.analysis.policy_json import policy_set_json
from nonsuch.adapters.analysis.schema_json import schema_json
from nonsuch.adapters.cli.rules import Rules, rules_of
from nonsuch.kernel.cedar_text import parse
from nonsuch.kernel.gates import Kernel
from nonsuch.kernel.model import Call, parties

from .engine import Told, asked, decided, faults, policies_of, schema_of, uid
from .parcels import ROLES, SERVER, Parcel, parcels

OWN: Final = {
    "ship.cedar": """
    @id("ship") permit (principal in Role::"clerk", action == Action::"ship", resource)
    when { context.args.weight < 100 && context.args.tags.contains("ok") };
    @id("ship.overflow") forbid (principal is Agent, action == Action::"ship", resource)
    when { context.args.weight + 9223372036854775800 < 0 };
    @id("ship.note") @reason("say \\"why\\"\\n") forbid (principal, action in Action::"parcel:ship", resource)
    unless { context.args has note && context.args.note like "*?" || !(context.args.kind == "box") };
    """,
    "read.cedar": """
    @id("read.owner") permit (principal, action in Action::"parcel:read", resource is Parcel)
    when { principal has user && resource.owner == principal.user };
    @id("read.team") permit (principal in ?principal, action in Action::"parcel:read", resource == ?resource);
    @id("see.acme") forbid (principal, action == Action::"see", resource == Audience::"roles:clerk|manager")
    unless { principal has org && principal.org like "acme*" };
    @id("label") permit (principal, action == Action::"label", resource == Server::"post");
    """,
    "team.links.json": """
    [{"template_id": "read.team", "link_id": "read.team p1",
      "args": {"?principal": "Role::\\"clerk\\"", "?resource": "Parcel::\\"p1\\""}}]
    """,
    "own.cedarschema": '@doc("ours") entity Team in [Team] = { lead?: Human, "odd name": Pair } tags Long;'
    " type Pair = { left: Set<String>, right?: __cedar::Bool };",
}


@dataclass(frozen=True)
class World:
    """One app: its kernel, and what was exported of it, in both forms, as the engine reads it."""

    kernel: Kernel
    rules: Rules
    schemas: tuple[Schema, Schema]
    policies: tuple[PolicySet, PolicySet]
    ids: tuple[dict[str, str], dict[str, str]]


@cache
def world() -> World:
    with TemporaryDirectory() as name:
        for file, text in OWN.items():
            (Path(name) / file).write_text(text)
        app = parcels(Path(name))
        rules = rules_of(app)
    text, document = exported(rules)
    ids = [each.id for each in rules.all]
    return World(
        app.kernel,
        rules,
        (Schema.from_str(text), schema_of(schema_json(text))),
        (PolicySet.from_str(document), policies_of(policy_set_json(rules.all))),
        ({f"policy{at}": ident for at, ident in enumerate(ids)}, {ident: ident for ident in ids}),
    )


def exported(rules: Rules) -> tuple[str, str]:
    return whole_schema(rules.catalog, rules.base), whole_text(rules.all)


def test_every_policy_is_exported_and_fits_the_exported_schema() -> None:
    """Ours, the generated ones, grants, the operator's, and links instead of their templates."""
    found = world()
    assert set(found.ids[0].values()) == {
        "nonsuch.visibility.everyone",
        "nonsuch.visibility.predicate",
        "nonsuch.scope.token",
        "nonsuch.scope.session",
        "audience roles:clerk|manager",
        *(name for name in found.ids[1] if name.startswith("audience when:")),
        "grant manager parcel:ship",
        *("ship", "ship.overflow", "ship.note", "read.owner", "read.team p1", "see.acme", "label"),
    }
    for schema in found.schemas:
        for policies in found.policies:
            assert faults(policies, schema) == []


def test_a_misspelt_name_does_not_fit_either_form() -> None:
    head = 'principal in Role::"clark", action == Action::"ship", resource'
    wrong = f"permit ({head}) when {{ context.args.wight > 1 }};"
    told = [faults(wrong, schema) for schema in world().schemas]
    assert (len(told[0]), told[0]) == (2, told[1])


# the kernel and two official readers are asked the same


@st.composite
def principals(draw: st.DrawFn) -> Principal:
    ident = draw(st.sampled_from(["ann", "ben"]))
    roles = draw(st.sampled_from([{"clerk"}, {"manager"}, {*ROLES}, set[str]()]))
    org = draw(st.sampled_from(["acme", "acme-2", "globex", None]))
    scopes = draw(st.sampled_from([{"read", "write"}, {"write", "read"}, None, {"read"}, set[str]()]))
    kind = draw(st.sampled_from(["human", "agent", "delegate"]))
    if kind == "agent":
        return Agent(ident, roles=roles, org=org, scopes=scopes or ())
    person = Human(ident, roles=roles, org=org, scopes=scopes if kind == "human" else None)
    return person if kind == "human" else person.delegate("bot", scopes=scopes or ())


SHIP: Final[st.SearchStrategy[dict[str, Any]]] = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["p1", "p2"]),
        "express": st.booleans(),
        "weight": st.sampled_from([-3, 3, 7, 99, 200]),
        "kind": st.sampled_from(["box", "letter"]),
        "tags": st.sampled_from([["ok"], ["x", "ok"], []]),
        "to": st.just({"city": "Rome", "floor": 2}),
        "address": st.just({"city": "Rome", "zip": None}),
        "urgent": st.none() | st.booleans(),
    },
    optional={"note": st.sampled_from([None, "why?", "so"])},
)
CALLS: Final = st.one_of(
    SHIP.map(lambda held: Call("ship", held, "mcp")),
    st.sampled_from(["p1", "p2"]).map(lambda ident: Call("parcel", {"id": ident}, "mcp")),
    st.just(Call("label", {"id": "p1", "kind": "box"}, "mcp")),
)


@given(principals(), CALLS, st.sampled_from(["ann", "ann", "ben", "zoe"]))
def test_both_forms_decide_as_the_kernel_does(who: Principal, call: Call, owner: str) -> None:
    found = world()
    parcel = Parcel(id=str(call.arguments["id"]), owner=owner, weight=1) if call.name == "parcel" else None
    asked = list(requests(found, who, call, parcel))
    told = [[said(found, form, *each) for each in asked] for form in range(2)]
    assert told[0] == told[1]
    allowed = all(decision == "Allow" and not errors for decision, _, errors in told[1])
    assert (attempt(found.kernel, who, call, parcel).outcome == "ok") is allowed


def requests(found: World, who: Principal, call: Call, parcel: Parcel | None) -> Iterator[tuple[Any, Any]]:
    """Yield what each party asks of each gate, and the entities of it."""
    [entry] = [each for each in found.rules.catalog.entries if each.name == call.name]
    over = uid("Parcel", parcel.id) if parcel else uid("Server", SERVER)
    held: dict[str, Any] = {"uid": over, "attrs": parcel.model_dump() if parcel else {}, "parents": []}
    for party in parties(who):
        entities = [*people(who), held]
        principal = uid(type(party).__name__, party.id)
        see, present, name = (uid("Action", each) for each in ("see", "present", call.name))
        yield asked(principal, see, uid("Audience", entry.audience), {}), entities
        yield asked(principal, present, uid("Scope", entry.scope or ""), {}), entities
        yield asked(principal, name, over, {"args": arguments(call)}), entities


def arguments(call: Call) -> dict[str, Any]:
    """What policies see of the arguments: defaults are there, nulls are not, and no float or date is."""
    if call.name != "ship":
        return dict(call.arguments)
    given: dict[str, Any] = {"note": None, "limit": 10, "items": [], "extra": [], **call.arguments}
    given["address"] = {"city": "Rome"}
    return {name: each for name, each in given.items() if each is not None}


def people(who: Principal) -> Iterable[dict[str, Any]]:
    for party in parties(who):
        attributes: dict[str, Any] = {"id": party.id, "audiences": []}
        if party.org is not None:
            attributes["org"] = party.org
        if party.scopes is not None:
            attributes["scopes"] = [{"__entity": uid("Scope", each)} for each in party.scopes]
        person = party.acts_for if isinstance(party, Agent) else party
        if person is not None:
            attributes["user"] = person.id
        if isinstance(party, Agent) and person is not None:
            attributes["actsFor"] = {"__entity": uid("Human", person.id)}
        roles = [uid("Role", each) for each in party.roles]
        yield {"uid": uid(type(party).__name__, party.id), "attrs": attributes, "parents": roles}


def said(found: World, form: int, request: Any, entities: Any) -> Told:
    decision, reasons, errors = decided(request, found.policies[form], entities, found.schemas[form])
    return decision, sorted(found.ids[form][each] for each in reasons), errors


# the text


@pytest.mark.parametrize(
    "text",
    [
        'permit (principal, action == Action::"a", resource) when { 1 < 2 && (3 < 4 && 5 < 6) };',
        'forbid (principal, action == Action::"a", resource) when { !(true && false) || -(-(1)) == 1 };',
        f'permit (principal, action == Action::"a", resource) when {{ {" && ".join(["1 < 2"] * 96)} }};',
    ],
)
def test_a_policy_is_written_as_a_text_that_reads_back_as_the_same(text: str) -> None:
    [policy] = parse(f'@id("a") {text}', "f")
    written = policy_source(policy)
    assert policies_to_pst(written).static_policies["policy0"].clauses == policy.node.clauses
    assert written.endswith("};\n")


def test_a_place_with_a_line_break_stays_in_its_comment() -> None:
    [policy] = parse("permit (principal, action, resource);", "a\npermit.cedar")
    assert whole_text([policy]).startswith("// a permit.cedar\n@id(")
