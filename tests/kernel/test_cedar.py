"""Allow means that the engine said Allow and reported no error; what it cannot answer denies by our own ids.

The errors are those of a forbid that the engine skips, which under a blanket permit would be an Allow.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from types import SimpleNamespace
from typing import Any

import cedarpy
import pytest
from cedarpy import pst

from nonsuch.kernel import cedar, cedar_text
from nonsuch.kernel.cedar import Decision
from nonsuch.kernel.cedar_text import Policy, PolicyRefused
from nonsuch.kernel.shapes import entity, uid

SCHEMA = """
entity Role enum ["editor", "admin"];
entity Human in [Role] = { id: String };
entity Agent in [Role] = { id: String, org?: String };
entity Post = { org?: String, n: Long, tags: Set<String>, owner: Human };
action "group";
action "act" in ["group"] appliesTo {
  principal: [Agent], resource: [Post], context: { args: { s?: String, n?: Long } }
};
"""
OF = cedar.schema(SCHEMA)
AGENT, POST = uid("Agent", "a"), uid("Post", "1")
GONE: Any = {"__entity": {"type": "Human", "id": "gone"}}
FACTS: dict[str, Any] = {"n": 2**63 - 1, "tags": ["t"], "owner": GONE}
HELD = cedar.entities(json.dumps([entity("Agent", "a", {"id": "a"}), entity("Post", "1", FACTS)]), OF)
NO_ARGUMENTS = '{"args": {}}'


def decided(
    *sources: str, context: str = NO_ARGUMENTS, principal: Any = AGENT, action: str = "act"
) -> Decision:
    policies = [
        policy for source in sources for policy in cedar_text.parse(source, f"f{sources.index(source)}")
    ]
    return cedar.decide(principal, action, POST, context, cedar.policy_set(policies), HELD, OF)


YES = '@id("yes") permit(principal, action, resource);'


def forbid(condition: str, ident: str = "no") -> str:
    return f'@id("{ident}") forbid(principal, action == Action::"act", resource) when {{ {condition} }};'


ERRORS = {
    "missing attribute": 'resource.org == "acme"',
    "missing argument": 'context.args.s == "prod"',
    "type error": 'resource.n < "a"',
    "adding a boolean": "1 + true == 2",
    "overflow": "resource.n + 1 > 0",
    "in on a string": '"a" in principal',
    "bad ip": 'ip("999.1.1.1").isLoopback()',
    "ip with a leading zero": 'ip("01.1.1.1").isLoopback()',
    "bad decimal": 'decimal("1.23456").lessThan(decimal("1.0"))',
    "bad datetime": 'datetime("x") < datetime("2020-01-01")',
    "entity not loaded": 'resource.owner.id == "x"',
    "tag of a missing entity": 'resource.owner.getTag("x") == "a"',
    "contains on no set": "resource.n.contains(1)",
    "not a boolean": "resource.n",
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_forbid_that_errs_denies_and_says_which(name: str) -> None:
    assert decided(YES, forbid(ERRORS[name])) == Decision(False, (), ("no",))


@pytest.mark.parametrize("name", ERRORS)
def test_a_permit_that_errs_beside_one_that_permits_denies(name: str) -> None:
    source = forbid(ERRORS[name], "maybe").replace("forbid", "permit", 1)
    assert decided(YES, source) == Decision(False, (), ("maybe",))


def test_a_forbid_unless_that_errs_denies() -> None:
    source = '@id("no") forbid(principal, action, resource) unless { context.args.s == "a" };'
    assert decided(YES, source) == Decision(False, (), ("no",))
    assert decided(YES, source, context='{"args": {"s": "a"}}') == Decision(True, ("yes",))


def test_every_policy_that_errs_is_named() -> None:
    told = decided(YES, forbid("resource.n + 1 > 0", "one"), forbid('resource.org == "a"', "two"))
    assert (told.allow, told.determining, sorted(told.errors)) == (False, (), ["one", "two"])


def test_the_engines_answer_when_nothing_errs() -> None:
    assert decided(YES) == Decision(True, ("yes",))
    assert decided(YES, forbid("false")) == Decision(True, ("yes",))
    assert decided(YES, forbid("true")) == Decision(False, ("no",))
    assert decided() == Decision(False)
    both = '@id("also") permit(principal, action in Action::"group", resource is Post);'
    assert decided(YES, both) == Decision(True, ("also", "yes"))


BAD_REQUESTS: dict[str, dict[str, Any]] = {
    "an undeclared argument": {"context": '{"args": {"zz": 1}}'},
    "an argument of another type": {"context": '{"args": {"s": 1}}'},
    "a fraction": {"context": '{"args": {"n": 1.5}}'},
    "an integer of 65 bits": {"context": json.dumps({"args": {"n": 2**63}})},
    "null": {"context": '{"args": {"s": null}}'},
    "half a surrogate pair": {"context": '{"args": {"s": "\\ud800"}}'},
    "no JSON": {"context": "{"},
    "an empty text": {"context": ""},
    "an escape": {"context": '{"args": {"s": {"__extn": {"fn": "unknown", "arg": "x"}}}}'},
    "an unknown action": {"action": "other"},
    "an action group": {"action": "group"},
    "a principal of a type that may not": {"principal": uid("Human", "h")},
    "a principal of an unknown type": {"principal": uid("Nobody", "n")},
    "a principal of no identifier": {"principal": uid("__cedar", "n")},
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_what_the_engine_cannot_answer_denies_under_a_blanket_permit(name: str) -> None:
    assert decided(YES, **BAD_REQUESTS[name]) == Decision(False, (), ("<request>",))


@pytest.mark.parametrize("principal", [None, 5, {"type": "Agent"}, {"id": "a"}, {}])
def test_a_request_that_the_binding_refuses_denies(principal: Any) -> None:
    assert decided(YES, principal=principal) in (
        Decision(False, (), ("<engine>",)),
        Decision(False, (), ("<request>",)),
    )


class Panic(BaseException):
    """What a panic of the engine's binding is: no Exception."""


@pytest.mark.parametrize("fault", [ValueError("x"), Panic("x"), MemoryError(), RecursionError()])
def test_an_engine_that_raises_denies(fault: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: object) -> None:
        raise fault

    monkeypatch.setattr("cedarpy.is_authorized", raising)
    assert decided(YES) == Decision(False, (), ("<engine>",))


def test_no_decision_denies_even_without_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = SimpleNamespace(reasons=["yes"], errors=list[str]())
    answer = SimpleNamespace(decision=cedarpy.Decision.NoDecision, diagnostics=silent)

    def undecided(*_: object) -> SimpleNamespace:
        return answer

    monkeypatch.setattr("cedarpy.is_authorized", undecided)
    assert decided(YES) == Decision(False, (), ("<request>",))


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_stops_the_process_is_not_swallowed(
    stop: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(*_: object) -> None:
        raise stop

    monkeypatch.setattr("cedarpy.is_authorized", raising)
    with pytest.raises(stop):
        decided(YES)


def test_the_engine_is_never_asked_to_print(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`verbose` prints the request, with its arguments, to stdout."""
    assert decided(YES, context='{"args": {"s": "s3ntinel"}}').allow
    assert decided(YES, forbid("resource.n + 1 > 0"), context='{"args": {"s": "s3ntinel"}}').allow is False
    assert capfd.readouterr() == ("", "")


IDS = ["a`b", 'a"b', "a\nb", "é", "\u202e", "a'b", "a\\b", "\0", " ", "policy `x`", "x" * 300]


@pytest.mark.parametrize("ident", IDS)
def test_a_policy_that_errs_is_named_by_its_whole_id(ident: str) -> None:
    """The audit names policies: an id cut at a quote would accuse another policy."""
    escaped = "".join(f"\\u{{{ord(mark):x}}}" for mark in ident)
    assert decided(YES, forbid("resource.n + 1 > 0", escaped)) == Decision(False, (), (ident,))


@pytest.mark.parametrize("ident", IDS)
def test_a_policy_that_determines_is_named_by_its_whole_id(ident: str) -> None:
    escaped = "".join(f"\\u{{{ord(mark):x}}}" for mark in ident)
    assert decided(YES, forbid("true", escaped)) == Decision(False, (ident,))


# parsing


def parsed(text: str) -> Policy:
    (policy,) = cedar_text.parse(text, "here.cedar")
    return policy


def test_a_policy_has_its_own_id_or_its_place() -> None:
    text = (
        'permit(principal, action, resource); @id("own") @reason("why") permit(principal, action, resource);'
    )
    text += '@id("") forbid(principal, action, resource);'
    found = cedar_text.parse(text, "here.cedar")
    assert [(each.id, each.permit) for each in found] == [
        ("here.cedar#0", True),
        ("own", True),
        ("here.cedar#2", False),
    ]
    assert [dict(each.annotations) for each in found] == [{}, {"id": "own", "reason": "why"}, {"id": ""}]


def test_twelve_policies_keep_their_order() -> None:
    text = "".join(f'@n("{number}") permit(principal, action, resource);' for number in range(12))
    found = cedar_text.parse(text, "f")
    assert [each.annotations["n"] for each in found] == [str(number) for number in range(12)]
    assert [each.id for each in found] == [f"f#{number}" for number in range(12)]


@pytest.mark.parametrize(
    ("head", "key"),
    [
        ("principal", ()),
        ("principal is Agent", ("Agent",)),
        ('principal == Agent::"a"', ("Agent", "a")),
        ('principal in Role::"editor"', ("Role", "editor")),
        ('principal is Agent in Role::"editor"', ("Role", "editor")),
        ('principal == Agent::"a\\"\\n\\u{e9}"', ("Agent", 'a"\né')),
        ('principal == App::Agent::"a"', ("App::Agent", "a")),
        ("principal is App::Agent", ("App::Agent",)),
    ],
)
def test_a_head_is_a_key(head: str, key: tuple[str, ...]) -> None:
    assert parsed(f"permit({head}, action, resource);").principal == key
    assert parsed(f"permit(principal, action, {head.replace('principal', 'resource')});").resource == key


@pytest.mark.parametrize(
    ("head", "actions", "exact"),
    [
        ("action", None, False),
        ('action == Action::"a"', {"a"}, True),
        ('action in Action::"a"', {"a"}, False),
        ('action in [Action::"a", Action::"b"]', {"a", "b"}, False),
        ("action in []", set[str](), False),
    ],
)
def test_an_action_head_is_a_set_of_names(head: str, actions: set[str] | None, exact: bool) -> None:
    policy = parsed(f"permit(principal, {head}, resource);")
    assert (policy.actions, policy.exact) == (actions, exact)


@pytest.mark.parametrize(
    "text", ["permit(", "permit(principal, action);", "nonsense", "permit(principal, action, resource)"]
)
def test_what_does_not_parse_is_refused(text: str) -> None:
    with pytest.raises(PolicyRefused):
        cedar_text.parse(text, "f")


@pytest.mark.parametrize(
    "head", ["principal == ?principal, action, resource", "principal, action, resource in ?resource"]
)
def test_a_template_is_refused(head: str) -> None:
    with pytest.raises(PolicyRefused, match="is a template, which nothing links"):
        cedar_text.parse(f"permit({head});", "f")


def test_a_slot_outside_a_template_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine files such a policy among the templates; if it ever did not, nothing would link it."""
    slotted = pst.Template(
        id="policy0",
        effect="permit",
        principal=pst.ScopeEq(pst.Slot("principal")),
        action=pst.ScopeAny(),
        resource=pst.ScopeAny(),
        clauses=(),
        annotations={},
    )
    found = pst.PolicySet(templates={}, static_policies={"policy0": slotted}, template_links=())

    def to_pst(_text: str) -> pst.PolicySet:
        return found

    monkeypatch.setattr("cedarpy.policies_to_pst", to_pst)
    with pytest.raises(PolicyRefused, match="a slot stands in a policy that is no template"):
        cedar_text.parse("permit(principal, action, resource);", "f")


def test_no_text_is_no_policies() -> None:
    assert cedar_text.parse("", "f") == cedar_text.parse("// only a comment\n", "f") == []


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(PolicyRefused):
        cedar.schema("entity Role enum [];")


def test_the_strict_validator_names_our_policies() -> None:
    policies = [
        parsed(f'@id("{name}") permit(principal, action == Action::"act", resource) when {{ {what} }};')
        for name, what in (("good", "resource.n == 1"), ("bad", "resource.zz == 1"), ("off", "principal.zz"))
    ]
    told = cedar.invalid(policies, OF)
    assert sorted({policy.id for policy, _ in told}) == ["bad", "off"]
    assert cedar.invalid(policies[:1], OF) == []
    assert cedar.invalid([], OF) == []


def test_the_validator_tells_policies_of_one_id_apart() -> None:
    texts = ("resource.n == 1", "resource.zz == 1")
    policies = [
        parsed(f'@id("\\n\\"twice") permit(principal, action == Action::"act", resource) when {{ {what} }};')
        for what in texts
    ]
    assert {id(policy) for policy, _ in cedar.invalid(policies, OF)} == {id(policies[1])}


def test_other_threads_run_while_policies_are_validated() -> None:
    """Else a reload stops what is served: seconds, where policies are broad and actions many."""
    actions = "".join(f"action a{at} appliesTo {{ principal: P, resource: P }};\n" for at in range(400))
    against = cedar.schema(f"entity P = {{ n: Long }};\n{actions}")
    when = " && ".join(["principal.n > 1"] * 20)
    policies = [
        parsed(f'@id("p{at}") permit(principal, action, resource) when {{ {when} }};') for at in range(40)
    ]
    beats, over = list[float](), threading.Event()

    def beat() -> None:
        while not over.wait(0.001):
            beats.append(time.perf_counter())

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        began = time.perf_counter()
        assert cedar.invalid(policies, against) == []
        ended = time.perf_counter()
    finally:
        over.set()
        beating.join()
    between = [began, *(each for each in beats if began < each < ended), ended]
    longest = max(after - before for before, after in itertools.pairwise(between))
    assert ended - began > 0.2  # or nothing is shown
    assert longest < (ended - began) / 2


def test_facts_join_the_entities_that_are_held() -> None:
    caller = cedar.entities(json.dumps([entity("Agent", "a", {"id": "a"})]), OF)
    both = cedar.with_entity(caller, json.dumps(entity("Post", "1", {**FACTS, "n": 1})), OF)
    policies = cedar.policy_set(cedar_text.parse(YES + forbid("resource.n + 1 > 5"), "f"))
    assert cedar.decide(AGENT, "act", POST, NO_ARGUMENTS, policies, both, OF) == Decision(True, ("yes",))
    assert cedar.decide(AGENT, "act", POST, NO_ARGUMENTS, policies, caller, OF) == Decision(
        False, (), ("no",)
    )


@pytest.mark.parametrize("facts", [{"n": "1", "tags": [], "owner": GONE}, {"n": 1}, {**FACTS, "more": 1}])
def test_facts_that_do_not_fit_the_schema_are_refused(facts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="entit"):
        cedar.with_entity(HELD, json.dumps(entity("Post", "2", facts)), OF)


# which arguments a policy reads


READS: dict[str, set[str] | None] = {
    "true": set(),
    "principal.org == resource.org": set(),
    "context.args.x == 1": {"x"},
    'context.args["x"] == 1': {"x"},
    'context["args"]["x"] == 1': {"x"},
    'context["args"].x == 1': {"x"},
    'context.args["a b"] == 1': {"a b"},
    "context.args has x": {"x"},
    'context.args has "a b"': {"a b"},
    "context.args has x.y": {"x"},
    "context has args.x": {"x"},
    "context has args.x.y": {"x"},
    "context has args": set(),
    "context.args.x.y.z == 1": {"x"},
    "context.args.x == context.args.y": {"x", "y"},
    "if context.args.x == 1 then context.args.y else context.args.z": {"x", "y", "z"},
    "[context.args.x].contains(context.args.y)": {"x", "y"},
    "{a: context.args.x, b: {c: context.args.y}}.a == 1": {"x", "y"},
    "{a: context.args has x}.a": {"x"},
    "ip(context.args.x).isInRange(ip(context.args.y))": {"x", "y"},
    'context.args.x like "a*"': {"x"},
    "context.args.x is Post": {"x"},
    "principal is Agent in context.args.x": {"x"},
    "principal in [context.args.x]": {"x"},
    "principal.getTag(context.args.x) == 1": {"x"},
    "principal.hasTag(context.args.x)": {"x"},
    "context.args.x.isEmpty()": {"x"},
    "!context.args.x": {"x"},
    "-context.args.x == 1": {"x"},
    "true || context.args.x": {"x"},
    "context.args.args == 1": {"args"},
    "principal.context == 1": set(),
    # used whole: every argument is sent
    "context == {args: {x: 1}}": None,
    "context.args == {x: 1}": None,
    "[context.args].contains({x: 1})": None,
    "{a: context.args}.a.x == 1": None,
    "(if true then context else context).args.x == 1": None,
    "context has other": None,
    "context.other == 1": None,
    "context.args.x == 1 && context == {}": None,
    "context.args == {x: 1} && context.args.y == 1": None,
}


@pytest.mark.parametrize("condition", READS)
def test_the_arguments_that_a_condition_reads(condition: str) -> None:
    for clause in ("when", "unless"):
        policy = parsed(f'permit(principal, action == Action::"act", resource) {clause} {{ {condition} }};')
        assert policy.reads == READS[condition]


def test_every_clause_is_read() -> None:
    text = (
        "permit(principal, action, resource) when { context.args.x } unless { context.args.y } when { true };"
    )
    assert parsed(text).reads == frozenset({"x", "y"})
    assert parsed("permit(principal, action, resource);").reads == frozenset()
