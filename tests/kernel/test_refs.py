"""A ``Ref`` names an entity in the model of a resource, and nowhere else: no caller ever makes one.

Of the entity a request holds the name only, so a policy that asks for more is refused at boot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, create_model

from nonsuch import App, Human, Ref, Registry, can, expose
from nonsuch.kernel.errors import Fault
from nonsuch.kernel.model import Ok, PolicyDenied, PolicyError
from nonsuch.kernel.refs import reference_in
from nonsuch.kernel.shapes import (
    CALLERS,
    LOADED,
    Shape,
    Unencodable,
    encode_fields,
    fields_of,
    record_text,
    shape_of,
)
from nonsuch.kernel.steps import Returned
from nonsuch.kernel.unreadable import NOT_A_NAME, OF_A_CALLER

from .trial import Spy, boot, called, faults, folder, unchecked

Team = Annotated[str, Ref("Team")]
REF: Any = Team
ONE = UUID("6f9619ff-8b86-d011-b42d-00c04fc964ff")


def named(kind: str, name: str) -> dict[str, Any]:
    return {"__entity": {"type": kind, "id": name}}


class Lead(BaseModel):
    person: Annotated[str, Ref("Human")]


class Case(BaseModel):
    id: str
    team: Team
    backup: Team | None = None
    spare: Annotated[str | None, Ref("Team")] = None
    tenant: Annotated[UUID, Ref("App::Tenant")] = ONE
    watchers: list[Team] = []
    leads: dict[str, Lead] = {}
    lead: Lead = Lead(person="ann")


CASE = Case(id="1", team="ops", watchers=["ops", 'd"ev'], leads={"a": Lead(person="bob")})


# shapes


def test_a_reference_of_a_resource_is_an_entity_and_its_value_is_a_name() -> None:
    fields = fields_of(Case, LOADED)
    assert record_text(fields) == (
        '{"id": String, "team": Team, "backup"?: Team, "spare"?: Team, "tenant": App::Tenant, '
        '"watchers": Set<Team>, "leads": Set<{k: String, v: {"person": Human}}>, "lead": {"person": Human}}'
    )
    assert encode_fields(fields, CASE) == {
        "id": "1",
        "team": named("Team", "ops"),
        "tenant": named("App::Tenant", str(ONE)),
        "watchers": [named("Team", "ops"), named("Team", 'd"ev')],
        "leads": [{"k": "a", "v": {"person": named("Human", "bob")}}],
        "lead": {"person": named("Human", "ann")},
    }


@pytest.mark.parametrize("value", [named("Team", "ops"), 5, None, ["ops"]])
def test_a_row_names_an_entity_by_text_only(value: object) -> None:
    with pytest.raises(Unencodable):
        encode_fields(fields_of(Case, LOADED), unchecked(Case, **{**CASE.__dict__, "team": value}))


@pytest.mark.parametrize("annotation", [int, list[str], float, Lead])
def test_a_reference_that_stands_at_no_text_is_none(annotation: Any) -> None:
    assert shape_of(Annotated[annotation, Ref("Team")], LOADED) is NOT_A_NAME


REFERRING: list[Any] = [
    REF,
    REF | None,
    list[REF],
    set[REF],
    tuple[REF, ...],
    dict[str, REF],
    dict[str, list[REF]],
    Lead,
    list[Lead],
    Lead | None,
    REF | int,
    Annotated[REF, Field(min_length=1)],
]


@pytest.mark.parametrize("annotation", REFERRING, ids=str)
def test_a_reference_in_an_input_is_found_however_deep(annotation: Any) -> None:
    assert reference_in(create_model("Ask", plain=(str, ""), held=(annotation, ...))) == "held"
    assert reference_in(create_model("Ask", plain=(str, ""), many=(list[str], ...))) is None


def test_models_that_hold_themselves_are_looked_through_once() -> None:
    class Tree(BaseModel):
        children: list[Tree] = []
        team: Team = ""

    class Twig(BaseModel):
        twigs: list[Twig] = []

    assert (reference_in(Tree), reference_in(Twig)) == ("children", None)


def test_a_reference_where_a_caller_speaks_is_no_shape() -> None:
    assert shape_of(Team, CALLERS) is OF_A_CALLER
    assert isinstance(shape_of(Team, LOADED), Shape)


# boot


class Which(BaseModel):
    caseId: str


class Ticket(BaseModel):
    id: str
    team: Team = "ops"
    teams: list[Team] = []
    tier: Annotated[str, Ref("App::Tier")] = "gold"
    owner: Annotated[str, Ref("Human")] = "h"
    parent: Annotated[str, Ref("Ticket")] = "1"
    order: Annotated[str, Ref("Order")] = "o"
    lead: Lead = Lead(person="ann")


class Order(BaseModel):
    id: str
    total: int


def find(input: Which) -> Ticket | None:
    return None


def find_order(input: Which) -> Order | None:
    return None


def close(input: Which) -> str:
    return "closed"


def pay(input: Which) -> str:
    return "paid"


SCHEMA = """
entity Org;
entity Team in [Org] = { name: String };
namespace App { entity Tier enum ["gold", "tin"]; }
"""


def desk() -> Registry:
    registry = Registry()
    registry.action(policy=can("ticket:close", resource=find), mcp=expose("Close"))(close)
    registry.action(policy=can("order:pay", resource=find_order), mcp=expose("Pay"))(pay)
    return registry


def policies(at: Path, *conditions: str, head: str = 'action == Action::"close"') -> Path:
    (at / "own.cedarschema").write_text(SCHEMA)
    texts = (
        f'@id("{number}") permit (principal, {head}, resource) when {{ {condition} }};'
        for number, condition in enumerate(conditions)
    )
    return folder(at, own="\n".join(texts))


def refused(at: Path, condition: str, head: str = 'action == Action::"close"') -> list[tuple[str, str, str]]:
    told: list[Fault] = faults(desk(), roles=["admin"], policies_dir=policies(at, condition, head=head))
    return [(each.code, each.where, each.cause) for each in told]


def desk_with(at: Path, condition: str) -> App:
    return boot(desk(), roles=["admin"], policies_dir=policies(at, condition))


ROW = Ticket(id="1", teams=["ops", "dev"], parent="1")
HOLDS = {
    'resource.team == Team::"ops"': True,
    'resource.team == Team::"dev"': False,
    'resource.team in Team::"ops"': True,
    'resource.team in [Team::"dev", Team::"qa"]': False,
    'resource.teams.contains(Team::"dev")': True,
    'resource.teams.contains(Team::"qa")': False,
    'resource.teams.containsAny([Team::"qa", Team::"ops"])': True,
    'resource.tier == App::Tier::"gold"': True,
    'resource.tier == App::Tier::"tin"': False,
    "resource.owner == principal": True,
    "resource.lead.person == principal": False,
    "resource.parent == resource": True,
    'resource.order == Order::"o"': True,
    "resource.team is Team": True,
}


@pytest.mark.parametrize("condition", HOLDS)
def test_a_policy_compares_references(condition: str, tmp_path: Path) -> None:
    spy = Spy(loaded=lambda _: Returned(ROW), handled=lambda _: Returned("closed"))
    told = called(desk_with(tmp_path, condition), Human("h"), "close", {"caseId": "1"}, spy)
    assert isinstance(told, Ok if HOLDS[condition] else PolicyDenied)


def test_a_row_of_an_undeclared_member_is_denied_as_an_error(tmp_path: Path) -> None:
    row = ROW.model_copy(update={"tier": "lead"})
    spy = Spy(loaded=lambda _: Returned(row), handled=lambda _: Returned("closed"))
    app = desk_with(tmp_path, 'resource.tier != App::Tier::"tin"')
    assert isinstance(called(app, Human("h"), "close", {"caseId": "1"}, spy), PolicyError)


ASKS_MORE = {
    'resource.team.name == "x"': "1:87",
    "resource.team has name": "1:91",
    'resource.team in Org::"acme"': "1:82",
    'resource.owner.id == "h"': "1:88",
    'resource.owner in Role::"admin"': "1:82",
    'resource.lead.person.id == "x"': "1:94",
    'resource.lead.person is Human in Role::"admin"': "1:87",
    'resource["team"]["name"] == "x"': "1:90",
    'resource.team.hasTag("x")': "1:87",
}


@pytest.mark.parametrize("condition", ASKS_MORE)
def test_a_policy_that_asks_more_of_a_reference_than_its_name_is_refused(
    condition: str, tmp_path: Path
) -> None:
    told = refused(tmp_path, condition)
    assert [(code, where) for code, where, _ in told] == [
        ("X_POLICY_INVALID", f"own.cedar:{ASKS_MORE[condition]}")
    ]
    assert "no request holds more than the name" in told[0][2]


def test_a_model_that_is_referred_to_has_its_attributes_where_it_is_acted_on(tmp_path: Path) -> None:
    own = policies(tmp_path, "resource.total > 1", head='action == Action::"pay"')
    assert boot(desk(), policies_dir=own, roles=["admin"]).kernel.warnings == ()
    told = refused(tmp_path, "resource.order.total > 1")
    assert [(code, "more than the name" in cause) for code, _, cause in told] == [("X_POLICY_INVALID", True)]


def with_resource(model: type[BaseModel]) -> Registry:
    def load(input: Which) -> object:
        return None

    load.__annotations__.update({"input": Which, "return": model})
    registry = Registry()
    registry.action(policy=can("it:close", resource=load), mcp=expose("Close"))(close)
    return registry


@pytest.mark.parametrize(
    "kind",
    ["Taem", "Long", "String", "Action", "A::B", "Money", "like", "Team; entity X", "", "T\n", "__cedar::X"],
)
def test_a_reference_to_a_type_that_no_schema_declares(kind: str, tmp_path: Path) -> None:
    (tmp_path / "own.cedarschema").write_text("entity Team;\ntype Money = { minor: Long };\n")
    team: Any = Annotated[str, Ref(kind)]
    model = create_model("Case", id=(str, ...), team=(team, ""))
    (told,) = faults(with_resource(model), policies_dir=tmp_path)
    assert (told.code, told.where) == ("X_POLICY_SCHEMA_INVALID", "<Case.team>")
    assert told.cause.startswith("a `Ref` names `")
    assert "\n" not in str(told)


def test_the_fault_names_the_nearest_type(tmp_path: Path) -> None:
    (tmp_path / "own.cedarschema").write_text("entity Team;\n")
    team: Any = Annotated[str, Ref("Taem")]
    model = create_model("Case", id=(str, ...), lead=(create_model("In", team=(team, "")), ...))
    assert [str(each) for each in faults(with_resource(model), policies_dir=tmp_path)] == [
        "<Case.lead.team>: X_POLICY_SCHEMA_INVALID: a `Ref` names `Taem`, which no schema declares as an "
        "entity type: write `Team`, or declare `entity Taem;` in a `.cedarschema` file of `policies_dir`"
    ]


def test_a_schema_that_is_broken_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "own.cedarschema").write_text("entity Team = {;\n")
    model = create_model("Case", id=(str, ...), team=(Team, ""))
    told = faults(with_resource(model), policies_dir=tmp_path)
    assert [each.where for each in told] == ["own.cedarschema:1:16"]


def test_a_reference_that_stands_at_a_list_is_a_fault(tmp_path: Path) -> None:
    teams: Any = Annotated[list[str], Ref("Team")]
    model = create_model("Case", id=(str, ...), teams=(teams, []))
    (told,) = faults(with_resource(model))
    assert (told.code, told.where, told.cause) == ("X_DECLARATION_INVALID", "<Case.teams>", NOT_A_NAME.why)


@pytest.mark.parametrize("annotation", REFERRING, ids=str)
def test_an_input_that_refers_is_a_fault(annotation: Any) -> None:
    model = create_model("Ask", held=(annotation, ...))

    def act(input: object) -> str:
        return ""

    act.__annotations__["input"] = model
    registry = Registry()
    registry.action(policy=can("it:act"), mcp=expose("Act"))(act)
    cause = "`act` takes a `Ref` at `held`, and what a caller sends names no entity"
    assert faults(registry) == [Fault("X_DECLARATION_INVALID", cause, OF_A_CALLER.fix)]
