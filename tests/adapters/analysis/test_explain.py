"""Why a call was decided: every explanation agrees with the decision it explains, part by part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from nonsuch import Agent, App, Human, Principal, Registry, audience, can, expose, grant
from nonsuch.adapters.analysis.attempts import UNLOADED, Facts, attempt, with_role
from nonsuch.adapters.analysis.explain import Explainer, Explanation
from nonsuch.adapters.analysis.witness import Verdict
from nonsuch.adapters.cli.rules import rules_of
from nonsuch.kernel.model import Call

from ...kernel.trial import boot, folder


class Ask(BaseModel):
    postId: str
    size: int = 0


class Post(BaseModel):
    id: str
    org: str
    size: int = 0
    open: bool = True


def find(input: Ask) -> Post | None:
    return None


def publish(input: Ask) -> str:
    return "done"


def report() -> str:
    return "done"


POLICIES = """
@id("post.publish")
permit (principal, action in Action::"post:publish", resource is Post)
when { principal in Role::"editor" && principal has org && principal.org == resource.org };

@id("post.small") @fix("ask for less")
forbid (principal, action in Action::"post:publish", resource is Post)
when { context.args.size > resource.size } unless { principal in Role::"admin" };

@id("post.humans")
forbid (principal is Agent, action in Action::"post:publish", resource is Post)
when { resource.size + 9223372036854775807 < 0 };
"""
OWN = Post(id="p", org="acme", size=-5)


def press(at: Path, policies: str = POLICIES) -> App:
    registry = Registry()
    registry.action(
        policy=can("post:publish", resource=find), mcp=expose("P", visible_to=["editor", "admin"])
    )(publish)
    registry.action(
        policy=can("org:administer"), mcp=expose("R", visible_to=audience('principal.id == "ed"'))
    )(report)
    return boot(
        registry,
        policies_dir=folder(at, own=policies),
        scopes={"write": ["publish"], "read": ["report"]},
        grants=[grant("admin", "org:administer")],
        roles=["editor", "admin", "viewer"],
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Explainer:
    at = tmp_path_factory.mktemp("policies")
    return explainer(press(at), at)


def explainer(app: App, at: Path) -> Explainer:
    rules = rules_of(app, at)
    return Explainer(rules.catalog, rules.base, rules.policies)


def person(*roles: str, org: str | None = "acme", ident: str = "ed") -> Human:
    return Human(ident, roles=roles, org=org)


def agent(*roles: str, org: str | None = "acme", scopes: Any = ("write", "read")) -> Agent:
    return person(*roles, org=org).delegate("a", scopes=scopes)


def asked(made: Explainer, who: Principal, facts: Facts = UNLOADED, *, size: int = -9) -> Explanation:
    return made.explain(who, Call("publish", {"postId": "p", "size": size}, "mcp"), facts)


def states(verdict: Verdict) -> dict[str, list[tuple[str, str]]]:
    return {
        each.policy.id: [(part.text, part.holds) for part in each.conditions] for each in verdict.considered
    }


def test_a_hidden_tool_names_the_roles_that_would_see_it(made: Explainer) -> None:
    found = asked(made, agent("viewer"))
    assert (found.gate, found.attempt.outcome, found.helps) == ("visibility", "hidden", ("admin", "editor"))
    assert [each.holds for each in found.verdicts] == ["false", "false"]


def test_an_agent_is_hidden_from_what_its_human_may_not_see(made: Explainer) -> None:
    who = Agent("a", roles={"editor"}, scopes={"write"}, acts_for=person("viewer"))
    assert [each.holds for each in asked(made, who).verdicts] == ["true", "false"]


def test_a_name_that_nobody_declared_has_no_entry(made: Explainer) -> None:
    found = made.explain(agent("editor"), Call("nothing", {}, "mcp"), UNLOADED)
    assert (found.entry, found.gate, found.attempt.outcome) == (None, "visibility", "hidden")


def test_a_missing_scope_is_the_agents_not_its_humans(made: Explainer) -> None:
    found = asked(made, agent("editor", scopes=["read"]))
    assert (found.gate, [each.holds for each in found.verdicts]) == ("scope", ["false", "true"])


def test_invalid_arguments_come_with_their_issues(made: Explainer) -> None:
    found = made.explain(agent("editor"), Call("publish", {}, "mcp"), UNLOADED)
    assert (found.gate, [str(each) for each in found.attempt.issues]) == ("arguments", ["postId: required"])


def test_without_facts_what_reads_the_resource_is_open_and_the_rest_is_told(made: Explainer) -> None:
    found = asked(made, agent("editor"))
    assert (found.gate, found.attempt.outcome) == ("facts", "undecided")
    assert found.reads == (
        "context.args.size",
        "principal.org",
        "principal.roles",
        "resource.org",
        "resource.size",
    )
    assert states(found.verdicts[0])["post.publish"] == [
        ('principal in Role::"editor"', "true"),
        ("principal has org", "true"),
        ("principal.org == resource.org", "unknown"),
    ]
    assert [each.holds for each in found.verdicts] == ["unknown", "unknown"]
    assert [each.holds for each in asked(made, agent("admin")).verdicts] == ["false", "false"]


def test_a_denial_says_which_part_was_false_and_the_values_it_read(made: Explainer) -> None:
    found = asked(made, agent("editor"), Post(id="p", org="globex"))
    considered = {each.policy.id: each for each in found.verdicts[0].considered}
    failing = [part for part in considered["post.publish"].conditions if part.holds == "false"]
    assert [(part.text, part.values) for part in failing] == [
        ("principal.org == resource.org", (("principal.org", "acme"), ("resource.org", "globex")))
    ]
    assert found.verdicts[0].determining == ()


def test_a_forbid_that_holds_determines_and_one_more_role_would_help(made: Explainer) -> None:
    found = asked(made, agent("editor"), OWN, size=10)
    assert (found.gate, found.helps) == ("policy", ("admin",))
    assert [each.determining for each in found.verdicts] == [("post.small",), ("post.small",)]


def test_an_error_is_told_for_the_party_whose_policy_erred(made: Explainer) -> None:
    found = asked(made, agent("editor"), Post(id="p", org="acme", size=5))
    assert found.attempt.outcome == "policy-error"
    assert [(each.holds, each.determining) for each in found.verdicts] == [
        ("error", ("post.humans",)),
        ("true", ("post.publish",)),
    ]


def test_a_policy_about_other_principals_does_not_apply(made: Explainer) -> None:
    found = asked(made, person("editor"), OWN)
    assert found.gate is None
    assert {each.policy.id: each.applies for each in found.verdicts[0].considered}["post.humans"] == "false"


def test_a_missing_resource_is_told(made: Explainer) -> None:
    found = asked(made, agent("editor"), None)
    assert (found.missing, found.attempt.outcome) == (True, "policy-denied")
    assert {each.holds for each in found.verdicts} == {"error"}


def test_values_of_every_attribute_are_known(tmp_path: Path) -> None:
    condition = (
        'principal.id == "x" || principal has user && principal.user == "x" || principal has scopes'
        ' || principal has actsFor || context.args.postId == "q" || resource.open'
    )
    head = '@id("x") permit (principal is Agent, action in Action::"post:publish", resource is Post)'
    text = f"{head} when {{ {condition} }};"
    found = asked(explainer(press(tmp_path, text), tmp_path), agent("editor"), OWN)
    assert dict(found.verdicts[0].considered[0].conditions[0].values) == {
        "principal.id": "a",
        "principal.user": "ed",
        "principal.scopes": ["read", "write"],
        "principal.actsFor": "ed",
        "context.args.postId": "p",
        "resource.open": True,
    }


def test_the_deciding_policies_of_every_gate_are_named(made: Explainer) -> None:
    named = made.determining(agent("editor"), Call("publish", {"postId": "p", "size": -9}, "mcp"), OWN)
    assert named == (
        "audience roles:admin|editor",
        "nonsuch.scope.token",
        "nonsuch.scope.session",
        "post.publish",
    )
    assert made.determining(agent("viewer"), Call("publish", {"postId": "p"}, "mcp"), OWN) == ()
    assert made.determining(agent("editor"), Call("publish", {}, "mcp"), OWN)[-1] == "nonsuch.scope.session"


def test_one_more_role_goes_to_the_agent_and_to_its_human() -> None:
    assert with_role(agent("editor"), "admin") == agent("editor", "admin")
    assert with_role(person("editor"), "admin") == person("editor", "admin")
    assert with_role(Agent("lone"), "admin") == Agent("lone", roles={"admin"})


ROLES = st.frozensets(st.sampled_from(["editor", "admin", "viewer"]), max_size=2)
ORGS = st.sampled_from([None, "acme", "globex"])
FACTS = st.one_of(
    st.none(),
    st.builds(Post, id=st.just("p"), org=st.sampled_from(["acme", "globex"]), size=st.integers(-10, 10)),
)


@st.composite
def principals(draw: st.DrawFn) -> Principal:
    human = Human("ed", roles=draw(ROLES), org=draw(ORGS))
    if draw(st.booleans()):
        return human
    behind = draw(st.sampled_from([None, human]))
    return Agent("a", roles=draw(ROLES), org=draw(ORGS), scopes=["write"], acts_for=behind)


@given(who=principals(), facts=FACTS, size=st.integers(-10, 10))
def test_an_explanation_agrees_with_the_decision(
    made: Explainer, who: Principal, facts: Post | None, size: int
) -> None:
    call = Call("publish", {"postId": "p", "size": size}, "mcp")
    found, tried = made.explain(who, call, facts), attempt(made.kernel, who, call, facts)
    assert found.attempt == tried
    if found.gate == "policy" or found.gate is None:
        assert all(each.holds == "true" for each in found.verdicts) == (tried.outcome == "ok")
        for verdict in found.verdicts:
            forbids = {
                each.policy.id
                for each in verdict.considered
                if each.holds == "true" and not each.policy.permit
            }
            permits = {
                each.policy.id for each in verdict.considered if each.holds == "true" and each.policy.permit
            }
            erred = [each for each in verdict.considered if each.holds == "error"]
            if verdict.holds == "false":
                assert not erred
                assert set(verdict.determining) == forbids
                assert forbids or not permits
            if verdict.holds == "true":
                assert set(verdict.determining) == permits
                assert permits
                assert not forbids
