"""Policies attacked again: forbids that never forbid, schemas that explode, imports that permit more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Annotated

import pytest
from pydantic import BaseModel

from nonsuch import App, Human, Ref, Registry, can, expose
from nonsuch.adapters.analysis.schema_json import schema_json
from nonsuch.adapters.analysis.schema_types import Types
from nonsuch.adapters.cli.policy.requests import Maker, pool
from nonsuch.adapters.cli.policy.show import text
from nonsuch.adapters.cli.rules import rules_of
from nonsuch.kernel.cedar_text import parse
from nonsuch.kernel.errors import Fault
from nonsuch.kernel.model import Ok, PolicyDenied
from nonsuch.kernel.steps import Returned
from nonsuch.kernel.strict_json import Json

from ..adapters.analysis.test_rewrite import SCHEMA as GENERATED
from ..adapters.analysis.test_rewrite import SHIP, taken
from ..kernel.trial import Spy, boot, called, faults, folder
from .test_attack_policy_text import refused

PERMIT = '@id("p") permit (principal, action in Action::"any", resource);\n'
SCHEMA = "entity Division; entity Squad; entity Team in [Division, Squad] = { closed?: Bool };"


class Which(BaseModel):
    id: str


class Post(BaseModel):
    id: str
    team: Annotated[str, Ref("Team")] = "ops"
    teams: list[Annotated[str, Ref("Team")]] = []
    division: Annotated[str, Ref("Division")] = "east"
    divisions: list[Annotated[str, Ref("Division")]] = []
    author: Annotated[str, Ref("Human")] = "ann"
    role: Annotated[str, Ref("Role")] = "admin"


class Note(BaseModel):
    id: str
    team: Annotated[str, Ref("Squad")] = "red"


def find_post(input: Which) -> Post | None:
    return None


def find_note(input: Which) -> Note | None:
    return None


def acting(name: str) -> Callable[..., str]:
    def act(input: Which) -> str:
        return "done"

    act.__name__ = name
    return act


def registry(post: str = "post", note: str = "note") -> Registry:
    made = Registry()
    made.action(policy=can("it:post", resource=find_post), mcp=expose("Post"))(acting(post))
    made.action(policy=can("it:note", resource=find_note), mcp=expose("Note"))(acting(note))
    return made


def written(at: Path, policies: str) -> Path:
    (at / "own.cedarschema").write_text(SCHEMA)
    return folder(at, own=PERMIT + policies)


def forbidding(condition: str, actions: str = '== Action::"post"') -> str:
    return f'@id("f") forbid (principal, action {actions}, resource) when {{ {condition} }};'


# a forbid that asks for more of a named entity than its name would never forbid

SILENT = {
    "in another reference": "resource.team in resource.division",
    "in a set of them": "resource.team in [resource.division]",
    "in a list of references": "resource.team in resource.divisions",
    "in a branch": 'resource.team in (if resource.role == Role::"admin" then [resource.division] else [])',
    "from a branch": 'if true then resource.team in Division::"east" else false',
    "as a branch": '(if principal has org then resource.team else resource.team) in Division::"east"',
    "as a member": '{a: {b: resource.team}}.a.b in Division::"east"',
    "has of a branch": "(if principal has org then resource.team else resource.team) has closed",
    "has of a member": "{a: resource.team}.a has closed",
    "has of a member of a branch": "(if true then {a: resource.team} else {a: resource.team}).a has closed",
    "roles of another": '(if true then resource.author else principal) in Role::"admin"',
    "roles of an author": "resource.author in resource.role",
}


@pytest.mark.parametrize("name", SILENT)
def test_no_expression_hides_that_a_name_is_all_there_is(name: str, tmp_path: Path) -> None:
    told = faults(registry(), roles=["admin"], policies_dir=written(tmp_path, forbidding(SILENT[name])))
    assert {each.code for each in told} == {"X_POLICY_INVALID"}
    assert "no request holds more than the name" in told[0].cause


ANSWERED = {
    "resource.team in resource.teams": True,
    'resource.team in [resource.team, Team::"x"]': True,
    '(if true then resource.team else resource.team) == Team::"x"': False,
    "principal in resource.role": False,
    "resource.author == principal": True,
    'principal in [Role::"admin"] || resource.team in [Team::"ops"]': True,
}


@pytest.mark.parametrize("condition", ANSWERED)
def test_what_a_name_answers_is_still_asked(condition: str, tmp_path: Path) -> None:
    app = boot(registry(), roles=["admin"], policies_dir=written(tmp_path, forbidding(condition)))
    spy = Spy(loaded=lambda _: Returned(Post(id="1", teams=["ops"])), handled=lambda _: Returned("done"))
    told = called(app, Human("ann"), "post", {"id": "1"}, spy)
    assert isinstance(told, PolicyDenied if ANSWERED[condition] else Ok)


@pytest.mark.parametrize(("post", "note"), [("a", "b"), ("b", "a")])
def test_a_reference_of_another_model_covers_for_none(post: str, note: str, tmp_path: Path) -> None:
    """Both models have `team`; what the second one refers to says nothing of the first."""
    own = forbidding('resource.team in Squad::"red"', f'in [Action::"{post}", Action::"{note}"]')
    told = faults(registry(post, note), policies_dir=written(tmp_path, own))
    assert [(each.code, "give `Post` a field" in (each.fix or "")) for each in told] == [
        ("X_POLICY_INVALID", True)
    ]


# a schema of few lines that is a million when it is written out

LAYERS = 60
TWICE = [f"type T{n} = {{ a: T{n - 1}, b: T{n - 1} }};" for n in range(1, LAYERS)]
BOMBS = {
    "types": {"own": "\n".join(["type T0 = Long;", *TWICE])},
    "over files": {
        "a": "\n".join(["type T0 = Long;", *TWICE[::2]]),
        "b": "\n".join(TWICE[1::2]),
    },
    "sets": {
        "own": "\n".join(
            ["type T0 = Long;", *(each.replace("a: T", "a: Set<T", 1).replace(",", ">,") for each in TWICE)]
        )
    },
    "a namespace": {"own": "\n".join(["namespace N {", "type T0 = Long;", *TWICE, "}"])},
    "annotations named as types": {
        "own": "\n".join(
            ["type T0 = Long;", *(each.replace("a: ", f'@T{LAYERS - 1}("") a: ') for each in TWICE)]
        )
    },
    "a long chain": {
        "own": "\n".join(["type T0 = Long;", *(f"type T{n} = T{n - 1};" for n in range(1, 3_000))])
    },
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_schema_that_explodes_is_refused_before_it_does(name: str, tmp_path: Path) -> None:
    for file, schema in BOMBS[name].items():
        (tmp_path / f"{file}.cedarschema").write_text(schema)
    assert set(refused(tmp_path).split()) == {"X_POLICY_TOO_DEEP"}


def test_types_that_name_others_now_and_then_are_taken(tmp_path: Path) -> None:
    """Members, quoted or not, are no types."""
    (tmp_path / "own.cedarschema").write_text(
        'type Name = { first: String, last: { first: String, "T0": Long } };\n'
        + "\n".join(f"type T{n} = {{ a: T{n - 1}, T{n - 1}: Long }};" for n in range(1, 40))
        + "\ntype T0 = Name;\nnamespace N { type A = T1; type B = { a: A, A: A }; entity E { it: B }; }"
    )
    assert refused(tmp_path) == "booted"


def test_a_lattice_of_groups_is_walked_once() -> None:
    """Sixty layers of two groups each have more ways up than can be walked."""
    groups = ['action "a0", "b0";']
    groups += [
        f'action "a{n}", "b{n}" in [Action::"a{n - 1}", Action::"b{n - 1}"];' for n in range(1, LAYERS)
    ]
    types = Types(schema_json("\n".join(groups)))
    assert len(types.actions["Action", f"a{LAYERS - 1}"].within) == 2 * (LAYERS - 1)


# an import that permits more than what was imported

LOOSER = {
    "roles in roles": (
        GENERATED.replace("entity Role;", "entity Role in [Role];"),
        f'forbid ({SHIP}) when {{ principal in Post::Role::"clerk" }};',
        "can be in a `Post::Role` there",
    ),
    "roles in roles, by the head": (
        GENERATED.replace("entity Role;", "entity Role in [Role];"),
        'forbid (principal in Post::Role::"clerk", action, resource);',
        "can be in a `Post::Role` there",
    ),
    "roles of teams": (
        GENERATED.replace("entity User in [Role]", "entity Team in [Role]; entity User in [Team]"),
        f'forbid ({SHIP}) when {{ principal in Post::Role::"clerk" }};',
        "`Post::Team` is no type of this app",
    ),
    "an action of the same name": (
        GENERATED
        + 'namespace Other { action "ship" appliesTo { principal: [Post::User], resource: [Post::McpServer],'
        " context: { input: { id: String } } }; }",
        'permit (principal, action == Other::Action::"ship", resource);',
        "two actions of the schema are named `ship`",
    ),
    "actions in an action": (
        GENERATED.replace(
            '"label" in [Action::"call_tool"]', '"label" in [Action::"call_tool", Action::"ship"]'
        ),
        'forbid (principal, action, resource) when { action in Post::Action::"ship" };',
        "the action `ship` is a group there",
    ),
    "who is every principal there": (
        GENERATED,
        'forbid (principal is Post::User, action == Post::Action::"ship", resource);',
        "every principal of `ship` is `Human` there",
    ),
    "and in a condition": (
        GENERATED,
        f'permit ({SHIP}) unless {{ principal is Post::User && principal.id == "x" }};',
        "every principal of `ship` is `Human` there",
    ),
    "in what is not named": (
        GENERATED,
        f"permit ({SHIP}) unless {{ principal in principal }};",
        "an entity that it does not name",
    ),
}


@pytest.mark.parametrize("name", LOOSER)
def test_an_import_that_would_forbid_less_is_refused(name: str) -> None:
    schema, policy, cause = LOOSER[name]
    found = taken(policy, schema, User="Human")
    assert [each.text for each in found.policies] == [""]
    [told] = found.refused
    assert cause in told.cause


# what shows and compares policies

LONG = " && ".join(["context has args.id"] * 60)


def desk(at: Path, policies: str) -> App:
    return boot(registry(), roles=["admin"], policies_dir=written(at, policies))


def test_a_chain_that_the_engine_writes_longer_is_shown(tmp_path: Path) -> None:
    (own,) = (each for each in rules_of(desk(tmp_path, forbidding(LONG))).own if each.id == "f")
    assert text(own).count("has id") == 60


def made(app: App, tool: str, policies: str) -> list[tuple[str | None, Mapping[str, Json]]]:
    """Return organisation and facts of made-up requests."""
    (entry,) = (each for each in app.kernel.catalog.entries if each.name == tool)
    maker = Maker(app.kernel.catalog, entry, pool(parse(policies, "f")), Random("1"))  # noqa: S311
    return [(each.principal.org, _facts(each.held)) for each in maker.requests(300)]


def _facts(held: Json) -> Mapping[str, Json]:
    return held if isinstance(held, dict) else {}


def test_requests_are_made_up_for_every_literal_that_decides(tmp_path: Path) -> None:
    many = " || ".join(f'principal.org == "{org}"' for org in ("acme", "bolt", "cord", 'zest\\"'))
    policies = forbidding(f'resource.team == Team::"zeta" || (principal has org && ({many}))')
    found = made(desk(tmp_path, policies), "post", policies)
    assert "zeta" in [held.get("team") for _, held in found]
    assert "person" in [held.get("author") for _, held in found]  # the caller of every made-up request
    assert 'zest"' in {org for org, _ in found}


# what a beginner is told

HEAD = 'principal, action == Action::"post", resource'
MISTAKES = {
    f"permit ({HEAD})": ("X_POLICY_SYNTAX", "close what is open, and end the policy with `;`"),
    f"allow ({HEAD});": ("X_POLICY_SYNTAX", "begin the policy with `permit` or `forbid`"),
    f"permit ({HEAD.replace('==', '=')});": ("X_POLICY_SYNTAX", "write `==`"),
    f"# all\npermit ({HEAD});": (
        "X_POLICY_SYNTAX",
        "write texts in straight double quotes, and comments after `//`",
    ),
    'permit (principal, action == "post", resource);': (
        "X_POLICY_SYNTAX",
        'write a type and an id: `Action::"publish"`',
    ),
    f"permit ({HEAD} == Post::post-1);": ("X_POLICY_SYNTAX", 'write the id in quotes: `Post::"post-1"`'),
    'permit (principal in Role::"admin" && principal is Human, action == Action::"post", resource);': (
        "X_POLICY_SYNTAX",
        "write it in `when { ... }`; several actions are `action in [...]`",
    ),
    'permit (principal in [Role::"admin"], action == Action::"post", resource);': (
        "X_POLICY_SYNTAX",
        "write a policy for each, or `when { principal in [...] }`",
    ),
    f"permit ({HEAD}) if {{ true }};": ("X_POLICY_SYNTAX", "write `when { ... }` or `unless { ... }`"),
    f"permit ({HEAD}) when {{ }};": ("X_POLICY_SYNTAX", "write a condition, or leave the clause out"),
    f"permit ({HEAD}) when {{ true and true }};": ("X_POLICY_SYNTAX", "write `&&`"),
    f"permit ({HEAD}) when {{ true or true }};": ("X_POLICY_SYNTAX", "write `||`"),
    'permit (action == Action::"post", principal, resource);': (
        "X_POLICY_SYNTAX",
        "write them in this order: principal, action, resource",
    ),
    'permit (principal, action == Action::"post");': (
        "X_POLICY_SYNTAX",
        "write all three: `permit (principal, action, resource)`",
    ),
    f"permit ({HEAD}) when {{ (principal has org) == True }};": (
        "X_POLICY_SYNTAX",
        "write `true` or `false`; what is absent is asked with `has`",
    ),
    'permit (principal == Role::"admin", action == Action::"post", resource);': (
        "X_POLICY_INVALID",
        'write a role as `principal in Role::"..."`, and name the type that the action is about',
    ),
    f'permit ({HEAD}) when {{ principal.org == "a" }};': (
        "X_POLICY_INVALID",
        "write `principal has org` and `&&` before it",
    ),
    f'permit ({HEAD}) when {{ principal.roles.contains("admin") }};': (
        "X_POLICY_INVALID",
        'write `principal in Role::"..."`',
    ),
    f'permit ({HEAD}) when {{ context.id == "1" }};': (
        "X_POLICY_INVALID",
        "read an argument as `context.args.id`",
    ),
    'permit (principal == User::"bob", action == Action::"post", resource);': (
        "X_POLICY_INVALID",
        "write `Human` or `Agent` for a caller, or declare `entity User;` in a `.cedarschema` file",
    ),
}


@pytest.mark.parametrize("policy", MISTAKES)
def test_a_beginners_mistake_is_told_with_what_to_write(policy: str, tmp_path: Path) -> None:
    told: list[Fault] = faults(registry(), roles=["admin"], policies_dir=written(tmp_path, policy))
    assert {(each.code, each.fix) for each in told} == {MISTAKES[policy]}
    assert all(str(each).isprintable() and each.where.startswith("own.cedar:") for each in told)


def test_no_type_that_nobody_can_write_is_named(tmp_path: Path) -> None:
    told = faults(registry(), policies_dir=written(tmp_path, forbidding('"a" in resource.teams')))
    assert "__cedar" not in "".join(map(str, told))


@pytest.mark.parametrize("schema", ["type Team = { x: Long };", "namespace N { entity Team; }"])
def test_nobody_is_told_to_write_what_they_wrote(schema: str, tmp_path: Path) -> None:
    (tmp_path / "own.cedarschema").write_text(f"{schema}\nentity Division; entity Squad;")
    told = [each.fix for each in faults(registry(), policies_dir=tmp_path)]
    assert set(told) == {
        "correct the spelling, or declare `entity Team;` in a `.cedarschema` file of `policies_dir`"
    }
