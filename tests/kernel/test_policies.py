"""Policies are confined to one gate each, all faults are told at once, and a slice answers as the whole set.

The last is a property over random heads, principals and resources, through the engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from nonsuch import Agent, BootError, Human, Principal, Registry, can, expose, grant
from nonsuch.adapters.edge import policies as files
from nonsuch.kernel import cedar, cedar_text
from nonsuch.kernel.catalog import Catalog
from nonsuch.kernel.cedar import Decision
from nonsuch.kernel.cedar_text import Policy
from nonsuch.kernel.compile import PolicySource
from nonsuch.kernel.errors import Fault, fault
from nonsuch.kernel.loader import Sources
from nonsuch.kernel.policies import Index, Policies
from nonsuch.kernel.shapes import entity, uid

from .trial import boot, faults, folder


class Ask(BaseModel):
    postId: str
    size: int = 0


class Post(BaseModel):
    id: str
    org: str


def find(input: Ask) -> Post | None:
    return None


def publish(input: Ask) -> str:
    return "done"


def erase(input: Ask) -> str:
    return "done"


def report() -> str:
    return "done"


def press() -> Registry:
    registry = Registry()
    registry.action(policy=can("post:publish", resource=find), mcp=expose("Publish"))(publish)
    registry.action(policy=can("post:erase", resource=find), mcp=expose("Erase"))(erase)
    registry.action(policy=can("org:administer"), mcp=expose("Report", visible_to=["admin"]))(report)
    return registry


def catalog() -> Catalog:
    return boot(press(), roles=["admin", "editor"]).kernel.catalog


def loaded(*texts: str, **given: Any) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """Boot with files ``f0.cedar``, ...: the ids of the policy gate, or code and file of each fault."""
    with TemporaryDirectory() as at:
        own = folder(Path(at), **{f"f{number}": text for number, text in enumerate(texts)})
        settings: dict[str, Any] = {"roles": ["admin", "editor"], "policies_dir": own, **given}
        try:
            return tuple(boot(press(), **settings).kernel.judge.annotations), []
        except BootError as refusal:
            return (), [(each.code, each.where.partition(":")[0]) for each in refusal.faults]


def policy(action: str, *, ident: str = "own", effect: str = "permit", when: str = "true") -> str:
    return f'@id("{ident}") {effect}(principal, {action}, resource) when {{ {when} }};'


# confinement


ADMITTED = {
    "a tool": 'action == Action::"publish"',
    "a tool in brackets": 'action in [Action::"publish"]',
    "several tools": 'action in [Action::"publish", Action::"erase"]',
    "a permission": 'action in Action::"post:publish"',
    "permissions and a tool": 'action in [Action::"post:publish", Action::"org:administer", Action::"erase"]',
    "every permission": 'action in Action::"any"',
}


@pytest.mark.parametrize("name", ADMITTED)
@pytest.mark.parametrize("effect", ["permit", "forbid"])
def test_a_policy_about_tools_and_permissions_is_admitted(name: str, effect: str) -> None:
    assert loaded(policy(ADMITTED[name], effect=effect)) == (("own",), [])


def test_a_policy_about_everything_would_answer_every_gate() -> None:
    assert loaded(policy("action")) == ((), [("X_POLICY_HEAD_UNCONFINED", "f0.cedar")])


MIXED = [
    'action in [Action::"see", Action::"publish"]',
    'action in [Action::"present", Action::"post:publish"]',
    'action in [Action::"see", Action::"present"]',
    'action in [Action::"see", Action::"present", Action::"any"]',
    "action in []",
]


@pytest.mark.parametrize("head", MIXED)
def test_a_policy_about_several_gates_or_none_is_refused(head: str) -> None:
    assert loaded(policy(head)) == ((), [("X_POLICY_HEAD_UNCONFINED", "f0.cedar")])


GATES = ['action == Action::"see"', 'action == Action::"present"', 'action in [Action::"see"]']


@pytest.mark.parametrize("head", GATES)
def test_an_operators_policy_cannot_reach_the_gates_of_visibility_and_scope(head: str) -> None:
    """Heads of policy files name a tool, a permission or `any`; one on `see` would show hidden tools."""
    _, told = loaded(policy(head))
    assert [code for code, _ in told] == ["X_POLICY_HEAD_UNCONFINED"]


def test_an_operators_see_policy_shows_no_hidden_tool(tmp_path: Path) -> None:
    given = folder(tmp_path, see='permit(principal, action == Action::"see", resource);')
    told = faults(press(), policies_dir=given)
    assert [each.code for each in told] == ["X_POLICY_HEAD_UNCONFINED"]


@pytest.mark.parametrize("name", ["publsh", "post:publsh", "Publish", "post", ""])
def test_a_policy_about_an_action_that_nobody_declared(name: str) -> None:
    for head in (f'action == Action::"{name}"', f'action in [Action::"publish", Action::"{name}"]'):
        assert loaded(policy(head)) == ((), [("X_POLICY_ACTION_UNKNOWN", "f0.cedar")])


def test_an_exact_head_on_a_permission_matches_no_call_and_is_refused() -> None:
    _, told = loaded(policy('action == Action::"post:publish"'))
    assert {code for code, _ in told} == {"X_POLICY_ACTION_UNKNOWN"}


def test_two_policies_of_one_id() -> None:
    two = policy('action in Action::"any"') + policy('action in Action::"any"')
    for texts in ([two], [policy('action in Action::"any"')] * 2):
        _, told = loaded(*texts)
        assert told == [("X_POLICY_ID_DUPLICATE", f"f{len(texts) - 1}.cedar")]


TAKEN = ["nonsuch.visibility.everyone", "nonsuch.scope.token", "audience roles:admin", "grant editor any"]


@pytest.mark.parametrize("ident", TAKEN)
def test_an_operator_cannot_take_an_id_of_ours(ident: str) -> None:
    own = policy('action in Action::"any"', ident=ident)
    _, told = loaded(own, grants=[grant("editor", "any")])
    assert told == [("X_POLICY_ID_DUPLICATE", "f0.cedar")]


def test_a_template_that_nothing_links_is_no_policy() -> None:
    assert loaded('permit(principal == ?principal, action in Action::"any", resource);') == ((), [])


def test_text_that_does_not_parse() -> None:
    assert loaded("permit(principal\n,") == ((), [("X_POLICY_SYNTAX", "f0.cedar")])


PLACES = {
    "  \n  permit(principal, action, resource);": "own.cedar:2:21",
    "// c\n\npermit(principal, nonsense);": "own.cedar:3:19",
    'permit(principal, action == Action::"gone", resource);': "own.cedar:1:37",
    'permit(principal, action in Action::"any", resource)\nwhen { principal.zz };': "own.cedar:2:18",
}


@pytest.mark.parametrize("text", PLACES)
def test_a_fault_says_where(text: str, tmp_path: Path) -> None:
    told = faults(press(), policies_dir=folder(tmp_path, own=text))
    assert {each.where for each in told} == {PLACES[text]}


INVALID = {
    "an unknown attribute": 'resource.ogr == "acme"',
    "an unknown attribute of the caller": "principal.mfa",
    "an unknown argument": "context.args.siez == 1",
    "an argument of another type": 'context.args.size == "1"',
    "an attribute that may be absent": 'principal.org == "acme"',
    "no boolean": "resource.org",
    "an ip of an argument": "ip(context.args.postId).isLoopback()",
    "an unknown type": 'principal == Robot::"r"',
}


@pytest.mark.parametrize("name", INVALID)
def test_a_policy_that_does_not_fit_the_schema(name: str) -> None:
    _, told = loaded(policy('action in Action::"post:publish"', when=INVALID[name]))
    assert set(told) == {("X_POLICY_INVALID", "f0.cedar")}


UNDECLARED = {
    'principal in Role::"editr"': (
        "X_ROLE_UNKNOWN",
        "role",
        "editr",
        "write `editor`, or add the role to `roles=`",
    ),
    'principal in [Role::"admin", Role::"zz"]': (
        "X_ROLE_UNKNOWN",
        "role",
        "zz",
        "correct the spelling, or add the role to `roles=`",
    ),
    'principal has scopes && principal.scopes.contains(Scope::"post:wirte")': (
        "X_POLICY_INVALID",
        "scope",
        "post:wirte",
        "write `post:write`, or add the scope to `scopes=`",
    ),
    'principal.audiences.contains(Audience::"everyon")': (
        "X_POLICY_INVALID",
        "audience",
        "everyon",
        "write `everyone`, or give a tool that audience with `visible_to=`",
    ),
}


@pytest.mark.parametrize("condition", UNDECLARED)
def test_a_name_that_nobody_declared_is_told_with_the_nearest_one(condition: str, tmp_path: Path) -> None:
    code, kind, name, fix = UNDECLARED[condition]
    own = folder(tmp_path, own=policy('action in Action::"post:publish"', when=condition))
    given: dict[str, Any] = {
        "roles": ["admin", "editor"],
        "scopes": {"post:write": ["publish", "erase", "report"]},
    }
    (told,) = faults(press(), policies_dir=own, **given)
    cause = f"`own` names the {kind} `{name}`, which the app does not declare"
    assert (told.code, told.cause, told.fix) == (code, cause, fix)


HAS = {
    "an argument": "context.args has sise",
    "an argument, from above": "context has args.sise",
    "the resource": "resource has ogr",
    "the caller": "principal has mfa",
    "a guard": "context.args has sise && context.args.sise == 1",
    "one of two": "principal has org || resource has ogr",
    "under not": "!(resource has ogr)",
}


@pytest.mark.parametrize("name", HAS)
@pytest.mark.parametrize("effect", ["permit", "forbid"])
def test_a_has_of_what_nothing_has_is_refused(name: str, effect: str) -> None:
    """Or a `forbid` behind a misspelt `has` never forbids, and the validator says nothing."""
    _, told = loaded(policy('action in Action::"post:publish"', effect=effect, when=HAS[name]))
    assert told == [("X_POLICY_INVALID", "f0.cedar")]


def test_a_has_of_what_the_head_shuts_out_is_admitted() -> None:
    """A `Human` acts for nobody, and a policy may say so."""
    head = 'permit (principal is Human, action in Action::"any", resource)'
    assert loaded(f"{head} unless {{ principal has actsFor }};")[1] == []


def test_a_has_of_what_some_tool_has_is_admitted() -> None:
    for condition in (
        "context.args has size",
        "resource has org",
        "principal has actsFor",
        "principal has org",
    ):
        assert loaded(policy('action in Action::"any"', when=condition))[1] == []


def test_a_policy_about_every_permission_must_fit_every_tool() -> None:
    """`report` has no such argument and no such resource."""
    for condition in ("context.args.size == 1", 'resource.org == "acme"'):
        _, told = loaded(policy('action in Action::"any"', when=condition))
        assert {code for code, _ in told} == {"X_POLICY_INVALID"}
        assert loaded(policy('action in [Action::"publish", Action::"erase"]', when=condition))[1] == []


def test_each_policy_is_validated_against_the_tools_of_its_head_only() -> None:
    good = policy('action == Action::"publish"', ident="good", when="context.args.size == 1")
    bad = policy('action == Action::"report"', ident="bad", when="context.args.size == 1")
    _, told = loaded(good, bad)
    assert told == [("X_POLICY_INVALID", "f1.cedar")]


def test_all_faults_of_all_files_are_told_at_once() -> None:
    _, told = loaded(
        policy("action", ident="a"),
        policy('action in Action::"gone"', ident="b"),
        "permit(",
        policy('action in Action::"any"', ident="a"),
        policy('action in Action::"any"', ident="c", when="(" * 40 + "true" + ")" * 40),
        policy('action in Action::"any"', ident="d", when="principal.zz"),
        policy('action == Action::"publish"', ident="e", when="resource.zz == 1"),
    )
    assert sorted(set(told)) == [
        ("X_POLICY_ACTION_UNKNOWN", "f1.cedar"),
        ("X_POLICY_HEAD_UNCONFINED", "f0.cedar"),
        ("X_POLICY_ID_DUPLICATE", "f3.cedar"),
        ("X_POLICY_INVALID", "f5.cedar"),
        ("X_POLICY_INVALID", "f6.cedar"),
        ("X_POLICY_SYNTAX", "f2.cedar"),
        ("X_POLICY_TOO_DEEP", "f4.cedar"),
    ]


def reading(name: str) -> Registry:
    """An app whose resource is a model of this name."""
    model = type(name, (Post,), {})

    def find_it(input: Ask) -> object:
        return None

    find_it.__annotations__.update({"input": Ask, "return": model})
    registry = Registry()
    registry.action(policy=can("it:read", resource=find_it), mcp=expose("Read"))(publish)
    return registry


def test_a_model_that_makes_no_schema_is_a_fault_of_the_schema() -> None:
    told = faults(reading("like"), grants=[grant("editor", "it:read")])
    cause = "error parsing schema: `like` is a reserved identifier"
    assert told == [fault("X_POLICY_SCHEMA_INVALID", cause, where="<schema>")]


@pytest.mark.parametrize("name", ["like", "in", "Long", "String", "Bool"])
def test_a_model_of_a_name_that_cedar_reserves_is_refused_without_any_policy(name: str) -> None:
    """Where no policy is validated, the first call builds the schema; `entity String` shadows all strings."""
    assert len(faults(reading(name))) == 1


# files


def test_files_are_read_in_the_order_of_their_names_and_from_below(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "one.cedar").write_text("// one")
    (tmp_path / "a.cedar").write_text("// a")
    (tmp_path / "z.txt").write_text("no policy")
    (tmp_path / "own.cedarschema").write_text("entity Org;")
    (tmp_path / "own.links.json").write_text("[]")
    assert files.read(tmp_path) == Sources(
        policies=(PolicySource("a.cedar", "// a"), PolicySource("b/one.cedar", "// one")),
        schemas=(PolicySource("own.cedarschema", "entity Org;"),),
        links=(PolicySource("own.links.json", "[]"),),
    )
    assert files.read(None) == Sources()


def test_what_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    fix = "give the path of a directory of `.cedar` files that this process may read"
    missing = tmp_path / "missing"
    assert faults(press(), policies_dir=missing) == [
        Fault("X_POLICY_UNREADABLE", f"`{missing}` is no directory", fix)
    ]
    (tmp_path / "a.cedar").write_bytes(b"// \xff")
    (tmp_path / "b.cedar").mkdir()
    (tmp_path / "c.cedar").symlink_to(tmp_path / "nowhere")
    assert faults(press(), policies_dir=str(tmp_path)) == [
        Fault("X_POLICY_UNREADABLE", f"`{name}` {why}", fix, name)
        for name, why, fix in (
            ("a.cedar", "is no UTF-8 from byte 3 on", "save it in UTF-8"),
            ("b.cedar", "is a directory by the name of a policy file", "rename the directory"),
            ("c.cedar", "is gone, or a link to nothing", "put the file there, or remove the link"),
        )
    ]


def test_what_this_process_may_not_read_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, encoding: str) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    folder(tmp_path, a="")
    (told,) = files.read(tmp_path).faults
    assert (told.where, told.cause) == ("a.cedar", "`a.cedar` may not be read by this process")


def test_a_file_with_a_carriage_return_reads_as_lines(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_bytes(b'// c\rpermit(principal, action in Action::"any", resource);\r\n')
    app = boot(press(), policies_dir=tmp_path)
    assert [each.id for each in app.kernel.judge.gate(app.kernel.catalog.entries[0]).index.policies] == [
        "a.cedar#0"
    ]


# which policies are about an entry


def test_the_policies_about_an_entry_are_those_whose_action_head_covers_it(tmp_path: Path) -> None:
    heads = {
        "tool": 'action == Action::"publish"',
        "tools": 'action in [Action::"erase", Action::"publish"]',
        "permission": 'action in Action::"post:publish"',
        "other permission": 'action in Action::"post:erase"',
        "both": 'action in [Action::"publish", Action::"post:publish"]',
        "any": 'action in Action::"any"',
    }
    own = folder(tmp_path, own="".join(policy(head, ident=name) for name, head in heads.items()))
    kernel = boot(press(), roles=["admin"], policies_dir=own).kernel
    about = {entry.name: kernel.judge.gate(entry).index.policies for entry in kernel.catalog.entries}
    found = {name: sorted(each.id for each in policies) for name, policies in about.items()}
    assert found == {
        "publish": ["any", "both", "permission", "tool", "tools"],
        "erase": ["any", "other permission", "tools"],
        "report": ["any"],
    }


def test_an_exact_head_on_a_permission_is_about_no_entry() -> None:
    """`==` names one action and not the group. Boot refuses such a policy; no call would find it."""
    exact = cedar_text.parse(policy('action == Action::"post:publish"'), "f")
    entry = next(each for each in catalog().entries if each.name == "publish")
    assert Policies((), (), exact).about(entry).policies == ()


def test_an_index_reads_what_any_of_its_policies_reads() -> None:
    def index(*conditions: str) -> Index:
        texts = "".join(policy('action in Action::"any"', ident=each, when=each) for each in conditions)
        return Index(cedar_text.parse(texts, "f"))

    assert index().reads() == frozenset()
    assert index("context.args.a == 1", "context.args.b == 1").reads() == frozenset({"a", "b"})
    assert index("context.args.a == 1", "context == {}").reads() is None


def test_only_entities_that_a_head_names_are_named() -> None:
    heads = ['principal == Agent::"a"', 'principal in Role::"r"', "principal is Human", "principal"]
    index = Index(cedar_text.parse("".join(f"permit({head}, action, resource);" for head in heads), "f"))
    keys = [("Agent", "a"), ("Agent", "b"), ("Role", "r"), ("Human",)]
    assert [index.named(key) for key in keys] == [("Agent", "a"), None, ("Role", "r"), None]


# a slice answers as the whole set


SCHEMA = """
entity Role enum ["r1", "r2", "r3"];
entity Human in [Role] = { id: String };
entity Agent in [Role] = { id: String, org?: String };
entity Post = { n: Long };
entity Server;
action "any";
action "g1" in ["any"];
action "g2" in ["any"];
action "act" in ["g1"] appliesTo { principal: [Agent, Human], resource: [Post], context: {} };
action "other" in ["g2"] appliesTo { principal: [Agent, Human], resource: [Post], context: {} };
"""
OF = cedar.schema(SCHEMA)
PRINCIPALS = [
    "principal",
    "principal is Agent",
    "principal is Human",
    *(f'principal == {kind}::"{ident}"' for kind, ident in product(("Agent", "Human"), "ab")),
    *(f'principal in Role::"{role}"' for role in ("r1", "r2", "r3")),
    *(f'principal is {kind} in Role::"{role}"' for kind, role in product(("Agent", "Human"), ("r1", "r2"))),
    'principal in Agent::"a"',
    'principal is Human in Human::"b"',
]
RESOURCES = [
    "resource",
    "resource is Post",
    "resource is Server",
    'resource == Post::"1"',
    'resource in Post::"2"',
    'resource is Post in Post::"1"',
]
# Always satisfied, never, by the facts, and by an error.
CONDITIONS = [
    "true",
    "false",
    "resource.n > 0",
    "resource.n + 1 > 0",
    "principal has org",
    'principal.id == "a"',
]
HEADS = st.tuples(
    st.sampled_from(["permit", "forbid"]),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(RESOURCES),
    st.sampled_from(CONDITIONS),
)
ROLES = st.sets(st.sampled_from(["r1", "r2", "r3"]))
CALLERS = st.builds(Agent, st.sampled_from("abc"), roles=ROLES) | st.builds(
    Human, st.sampled_from("abc"), roles=ROLES
)


def policies_of(heads: Iterable[tuple[str, str, str, str]]) -> list[Policy]:
    return cedar_text.parse(
        "".join(
            f'@id("p{number}") {effect}({principal}, action, {resource}) when {{ {condition} }};'
            for number, (effect, principal, resource, condition) in enumerate(heads)
        ),
        "f",
    )


def answered(policies: Iterable[Policy], caller: Principal, post: str, n: int) -> Decision:
    kind = type(caller).__name__
    parents = [uid("Role", role) for role in sorted(caller.roles)]
    facts = [entity(kind, caller.id, {"id": caller.id}, list(parents)), entity("Post", post, {"n": n})]
    held = cedar.entities(json.dumps(facts), OF)
    told = cedar.decide(
        uid(kind, caller.id), "act", uid("Post", post), "{}", cedar.policy_set(policies), held, OF
    )
    return Decision(told.allow, told.determining, tuple(sorted(told.errors)))


@given(
    heads=st.lists(HEADS, max_size=14),
    caller=CALLERS,
    post=st.sampled_from("123"),
    n=st.sampled_from([0, 1, 2**63 - 1]),
)
def test_a_slice_answers_as_the_whole_set(
    heads: list[tuple[str, str, str, str]], caller: Principal, post: str, n: int
) -> None:
    """Decision, determining policies and errors: a dropped policy is neither satisfied nor erring."""
    policies = policies_of(heads)
    kind = type(caller).__name__
    keys = [(kind,), (kind, caller.id), *(("Role", role) for role in caller.roles)]
    sliced = Index(policies).slice(keys, [("Post",), ("Post", post)])
    assert len({each.id for each in sliced}) == len(sliced)
    assert answered(sliced, caller, post, n) == answered(policies, caller, post, n)


def test_a_slice_drops_what_cannot_apply() -> None:
    """Or the property above would hold of an index that drops nothing."""
    heads = [
        ("permit", principal, resource, "true") for principal, resource in product(PRINCIPALS, RESOURCES)
    ]
    keys = [("Agent",), ("Agent", "a"), ("Role", "r1")]
    sliced = Index(policies_of(heads)).slice(keys, [("Post",), ("Post", "1")])
    expected = {
        (principal, resource)
        for principal in (
            "principal",
            "principal is Agent",
            'principal == Agent::"a"',
            'principal in Role::"r1"',
            'principal is Agent in Role::"r1"',
            'principal is Human in Role::"r1"',
            'principal in Agent::"a"',
        )
        for resource in (
            "resource",
            "resource is Post",
            'resource == Post::"1"',
            'resource is Post in Post::"1"',
        )
    }
    assert {heads[int(each.id[1:])][1:3] for each in sliced} == expected
    assert len(sliced) < len(heads) / 3
