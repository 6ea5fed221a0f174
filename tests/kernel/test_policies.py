"""Policies are confined to one gate each, all faults are told at once, and a slice answers as the whole set.

The last is a property over random heads, principals and resources, through the engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from nonsuch import Agent, Human, Principal, Registry, can, expose, grant
from nonsuch.adapters.edge import policies as files
from nonsuch.kernel import cedar
from nonsuch.kernel.boot import Declarations, build
from nonsuch.kernel.catalog import Catalog
from nonsuch.kernel.cedar import Decision, Policy
from nonsuch.kernel.compile import PolicySource
from nonsuch.kernel.errors import Fault, fault
from nonsuch.kernel.policies import Index, load
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
    made, told = build(Declarations("trial", press(), "exposed", roles=["admin", "editor"]))
    assert told == ()
    return made


def loaded(*texts: str) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """Load policies of an operator: the ids that the policy gate then holds, and the faults."""
    sources = [PolicySource(f"f{number}.cedar", text) for number, text in enumerate(texts)]
    policies, told = load(catalog(), files.base(), sources)
    return tuple(each.id for each in policies.policy), [(each.code, each.cause) for each in told]


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
    assert loaded(policy("action")) == (
        (),
        [("X_POLICY_HEAD_UNCONFINED", "f0.cedar: `own` names no action: it would answer every gate")],
    )


MIXED = {
    'action in [Action::"see", Action::"publish"]': 2,
    'action in [Action::"present", Action::"post:publish"]': 2,
    'action in [Action::"see", Action::"present"]': 2,
    'action in [Action::"see", Action::"present", Action::"any"]': 3,
    "action in []": 0,
}


@pytest.mark.parametrize("head", MIXED)
def test_a_policy_about_several_gates_is_refused(head: str) -> None:
    assert loaded(policy(head)) == (
        (),
        [("X_POLICY_HEAD_UNCONFINED", f"f0.cedar: `own` names actions of {MIXED[head]} gates")],
    )


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
        assert loaded(policy(head)) == ((), [("X_POLICY_ACTION_UNKNOWN", f"f0.cedar: `own` names `{name}`")])


def test_an_exact_head_on_a_permission_matches_no_call_and_is_refused() -> None:
    _, told = loaded(policy('action == Action::"post:publish"'))
    assert {code for code, _ in told} == {"X_POLICY_INVALID"}


def test_two_policies_of_one_id() -> None:
    two = policy('action in Action::"any"') + policy('action in Action::"any"')
    for texts in ([two], [policy('action in Action::"any"')] * 2):
        ids, told = loaded(*texts)
        assert ids == ("own",)
        assert [(code, cause[3:]) for code, cause in told] == [
            ("X_POLICY_ID_DUPLICATE", "cedar: `own` is used twice")
        ] or told == [("X_POLICY_ID_DUPLICATE", f"f{len(texts) - 1}.cedar: `own` is used twice")]


TAKEN = ["nonsuch.visibility.everyone", "nonsuch.scope.token", "audience roles:admin", "grant editor any"]


@pytest.mark.parametrize("ident", TAKEN)
def test_an_operator_cannot_take_an_id_of_ours(ident: str) -> None:
    source = PolicySource("f.cedar", policy('action in Action::"any"', ident=ident))
    made, _ = build(Declarations("trial", press(), "exposed", grants=[grant("editor", "any")]))
    _, told = load(made, files.base(), [source])
    assert told == (fault("X_POLICY_ID_DUPLICATE", f"f.cedar: `{ident}` is used twice"),)


def test_a_template() -> None:
    ids, told = loaded('permit(principal == ?principal, action in Action::"any", resource);')
    expected = "f0.cedar: a policy with `?principal` or `?resource` is a template, which nothing links"
    assert (ids, told) == ((), [("X_POLICY_SYNTAX", expected)])


def test_text_that_does_not_parse() -> None:
    assert loaded("permit(principal\n,") == ((), [("X_POLICY_SYNTAX", "f0.cedar: unexpected end of input")])


INVALID = {
    "an unknown role": 'principal in Role::"editr"',
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
    assert {code for code, _ in told} == {"X_POLICY_INVALID"}
    assert all(cause.startswith("f0.cedar: for policy `") or "f0.cedar: " in cause for _, cause in told)
    assert all("\n" not in cause for _, cause in told)


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
    assert [(code, cause.partition(":")[0]) for code, cause in told] == [("X_POLICY_INVALID", "f1.cedar")]


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
    assert [(code, cause.partition(":")[0]) for code, cause in told] == [
        ("X_POLICY_HEAD_UNCONFINED", "f0.cedar"),
        ("X_POLICY_ACTION_UNKNOWN", "f1.cedar"),
        ("X_POLICY_SYNTAX", "f2.cedar"),
        ("X_POLICY_ID_DUPLICATE", "f3.cedar"),
        ("X_POLICY_TOO_DEEP", "f4.cedar"),
        *[("X_POLICY_INVALID", "f5.cedar")] * (len(told) - 6),
        ("X_POLICY_INVALID", "f6.cedar"),
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
    assert told == [
        fault("X_POLICY_INVALID", "<schema>: error parsing schema: `like` is a reserved identifier")
    ]


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
    assert files.read(tmp_path) == (
        [PolicySource("a.cedar", "// a"), PolicySource("b/one.cedar", "// one")],
        [],
    )
    assert files.read(None) == ([], [])


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
        Fault("X_POLICY_UNREADABLE", f"`{tmp_path / name}`: {why}", fix)
        for name, why in (
            ("a.cedar", "UnicodeDecodeError"),
            ("b.cedar", "IsADirectoryError"),
            ("c.cedar", "FileNotFoundError"),
        )
    ]


def test_a_file_with_a_carriage_return_reads_as_lines(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_bytes(b'// c\rpermit(principal, action in Action::"any", resource);\r\n')
    app = boot(press(), policies_dir=tmp_path)
    assert [each.id for each in app.kernel.judge.gate(app.kernel.catalog.entries[0]).index.policies] == [
        "a.cedar#0"
    ]


# which policies are about an entry


def test_the_policies_about_an_entry_are_those_whose_action_head_covers_it() -> None:
    heads = {
        "tool": 'action == Action::"publish"',
        "tools": 'action in [Action::"erase", Action::"publish"]',
        "permission": 'action in Action::"post:publish"',
        "other permission": 'action in Action::"post:erase"',
        "both": 'action in [Action::"publish", Action::"post:publish"]',
        "any": 'action in Action::"any"',
    }
    sources = [PolicySource(f"{name}.cedar", policy(head, ident=name)) for name, head in heads.items()]
    policies, told = load(catalog(), files.base(), sources)
    assert told == ()
    found = {
        entry.name: sorted(each.id for each in policies.about(entry).policies) for entry in catalog().entries
    }
    assert found == {
        "publish": ["any", "both", "permission", "tool", "tools"],
        "erase": ["any", "other permission", "tools"],
        "report": ["any"],
    }


def test_an_index_reads_what_any_of_its_policies_reads() -> None:
    def index(*conditions: str) -> Index:
        texts = "".join(policy('action in Action::"any"', ident=each, when=each) for each in conditions)
        return Index(cedar.parse(texts, "f"))

    assert index().reads() == frozenset()
    assert index("context.args.a == 1", "context.args.b == 1").reads() == frozenset({"a", "b"})
    assert index("context.args.a == 1", "context == {}").reads() is None


def test_only_entities_that_a_head_names_are_named() -> None:
    heads = ['principal == Agent::"a"', 'principal in Role::"r"', "principal is Human", "principal"]
    index = Index(cedar.parse("".join(f"permit({head}, action, resource);" for head in heads), "f"))
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
    return cedar.parse(
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
