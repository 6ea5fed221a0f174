"""`explain`: each refusal of the demo in words, with what would have to change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from .desk import Desk

PUBLISH: Final = ("--tool", "publishPost", "--input", '{"postId": "p1"}')
REFUND: Final = ("--tool", "refundOrder", "--input", '{"orderId": "o1", "amountMinor": 20000}')


def post(**fields: Any) -> str:
    return json.dumps({"id": "p1", "org": "acme", "published": False, **fields})


def order(**fields: Any) -> str:
    return json.dumps({"id": "o1", "org": "acme", "refundableMinor": 50000, **fields})


def test_hidden_names_the_audience_and_the_roles_that_would_see_it(desk: Desk) -> None:
    found = desk.json("explain", "--as", "viewer", "--org", "acme", *PUBLISH, status=1)
    assert (found["outcome"], found["gate"], found["code"]) == ("hidden", "visibility", "X_MCP_TOOL_UNKNOWN")
    assert found["why"] == [
        "`publishPost` is visible to callers with the role `admin` or `editor`",
        "the caller has the role `viewer`, so the agent and its human are not in that audience",
        "an agent sees only what the human it acts for sees too",
    ]
    assert found["changes"][0] == "give the person the role `admin` or `editor`"


def test_a_scope_names_what_the_token_carries(desk: Desk) -> None:
    found = desk.json(
        "explain", "--as", "editor", "--scopes", "posts:read", "--org", "acme", *PUBLISH, status=1
    )
    assert (found["outcome"], found["gate"]) == ("scope-denied", "scope")
    assert found["why"][:2] == [
        "`publishPost` needs the scope `posts:write` (`scopes` in `define_app_mcp`)",
        "the caller's token carries `posts:read`",
    ]
    assert found["changes"][0].startswith("connect with a token that carries `posts:write`")


def test_a_policy_names_the_condition_and_its_values(desk: Desk) -> None:
    found = desk.json("explain", "--as", "editor", "--org", "acme", *REFUND, "--facts", order(), status=1)
    assert (found["outcome"], found["gate"], found["code"]) == ("policy-denied", "policy", "X_FORBIDDEN")
    assert found["why"] == [
        "both the agent and its human are refused",
        "`order.refund-limit` (orders.cedar:27:1; it says: editors and staff refund at most 100.00 at once)"
        " forbids it, because `context.args.amountMinor > 10000` holds (context.args.amountMinor = 20000)"
        ' and `principal in Role::"admin"` does not hold (principal.roles = ["editor"])',
        "a policy would permit it, but one that forbids always wins",
    ]
    assert found["changes"] == [
        "ask for 10000 minor units or less, or let an admin do it",
        "with the role `admin` the same call would be permitted",
    ]


def test_what_nothing_permits_names_the_false_part_of_every_permit(desk: Desk) -> None:
    found = desk.json("explain", "--as", "admin", "--tool", "seatReport", status=1)
    assert found["why"][1].endswith(
        "does not permit it, because `principal has org` does not hold (principal.org = absent)"
    )
    assert found["changes"] == [
        "for `org.administer` to permit it, `principal has org` must hold",
        "the caller has no organisation: give one with `--org`; in the app `resolve_token` names it",
    ]


def test_without_facts_it_says_what_policies_read_and_how_to_give_it(desk: Desk) -> None:
    found = desk.json("explain", "--as", "editor", "--org", "acme", *PUBLISH, status=1)
    assert (found["outcome"], found["gate"]) == ("undecided", "facts")
    assert found["attributes_read"] == [
        "principal.org",
        "principal.roles",
        "resource.org",
        "resource.published",
    ]
    assert "`resource.org` and `resource.published`" in found["why"][1]
    assert (
        found["changes"][0]
        == 'say what the resource is: --facts \'{"id": "...", "org": "...", "published": false}\''
    )


def test_a_permitted_call_names_what_permits_it(desk: Desk) -> None:
    found = desk.json("explain", "--as", "editor", "--org", "acme", *PUBLISH, "--facts", post())
    assert (found["outcome"], found["gate"]) == ("ok", None)
    assert found["why"][0] == "`post.publish` (posts.cedar:9:1) permits `post:publish`"
    assert [each["allowed"] for each in found["parties"]] == [True, True]


def test_a_missing_resource_is_refused_like_a_foreign_one(desk: Desk) -> None:
    given = ("--as", "editor", "--org", "acme", *PUBLISH, "--facts", "null")
    found = desk.json("explain", *given, status=1)
    assert found["outcome"] == "policy-denied"
    assert found["why"] == [
        "both the agent and its human are refused",
        "there is no such Post: `post.publish`, `post.own-org` and `post.published-once` read it and cannot"
        " be asked, and that denies",
    ]
    assert found["changes"] == ["check the id: name one that exists"]
    assert {each["holds"] for each in found["parties"][0]["considered"]} == {"not asked"}
    assert considered(desk.run("explain", *given).out).splitlines()[1:] == [
        f"  {policy}: reads a resource that is not there, so it is not asked, which denies"
        for policy in (
            "permit post.publish (posts.cedar:9:1)",
            "forbid post.own-org (posts.cedar:18:1)",
            "forbid post.published-once (posts.cedar:24:1)",
        )
    ]


def test_a_person_is_asked_without_an_agent(desk: Desk) -> None:
    found = desk.json("explain", "--as", "editor", "--human", "--org", "acme", *PUBLISH, "--facts", post())
    assert [each["party"] for each in found["parties"]] == ["human"]


def test_a_misspelt_tool_is_met_with_names_that_are_close(desk: Desk) -> None:
    found = desk.json("explain", "--as", "editor", "--tool", "publishPots", status=1)
    assert found["changes"][0].startswith("did you mean `publishPost`")


def test_arguments_that_do_not_fit_are_told_before_any_policy(desk: Desk) -> None:
    found = desk.json("explain", "--as", "editor", "--tool", "publishPost", status=1)
    assert (found["gate"], found["why"]) == ("arguments", ["postId: required"])


def test_input_and_facts_may_stand_in_files(desk: Desk) -> None:
    (desk.at / "input.json").write_text('{"postId": "p1"}')
    (desk.at / "facts.json").write_text(post(published=True))
    asked = ("--tool", "publishPost", "--input", "@input.json", "--facts", "@facts.json")
    found = desk.json("explain", "--as", "editor", "--org", "acme", *asked, status=1)
    assert found["parties"][0]["determining"] == ["post.published-once"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--as", "viewer", *PUBLISH), "HIDDEN: for this caller `publishPost` does not exist"),
        (("--as", "editor", "--scopes", "", *PUBLISH), "SCOPE DENIED: `publishPost` is visible"),
        (
            ("--as", "editor", "--org", "acme", *REFUND, "--facts", order()),
            "POLICY DENIED: the policies about",
        ),
        (("--as", "editor", "--org", "acme", *PUBLISH), "UNDECIDED: whether `publishPost` is permitted"),
    ],
)
def test_the_text_opens_with_who_asks_and_what_came_of_it(
    desk: Desk, given: tuple[str, ...], words: str
) -> None:
    told = desk.run("explain", *given).out
    assert told.startswith("Caller: an agent that acts for a person; roles: ")
    assert words in told
    assert "\nWhat would have to change:\n  - " in told


def considered(told: str) -> str:
    """Return the policies of a text, and the meaning of their marks."""
    return told[told.index("Policies considered") :]


def test_the_text_shows_every_policy_with_a_mark_for_each_part(desk: Desk) -> None:
    told = desk.run("explain", "--as", "editor", "--org", "acme", *PUBLISH, "--facts", post(org="globex")).out
    assert considered(told) == (
        """Policies considered for the agent and its human alike:
  permit post.publish (posts.cedar:9:1): does not permit
    yes  any of these:
         yes  principal in Role::"editor"   [principal.roles = ["editor"]]
         -    principal in Role::"admin"
    yes  principal has org   [principal.org = "acme"]
    NO   principal.org == resource.org   [principal.org = "acme", resource.org = "globex"]
  forbid post.own-org (posts.cedar:18:1): forbids
    yes  any of these:
         NO   !(principal has org)   [principal.org = "acme"]
         yes  !(principal.org == resource.org)   [principal.org = "acme", resource.org = "globex"]
  forbid post.published-once (posts.cedar:24:1): does not forbid
    NO   resource.published   [resource.published = false]

yes holds; NO does not hold; - not evaluated: what stands before it decides
"""
    )


def test_what_stands_behind_a_part_that_decides_is_not_evaluated(desk: Desk) -> None:
    """Asked alone, `principal.org == resource.org` would err for a caller without an organisation."""
    given = ("--as", "editor", *PUBLISH, "--facts", post())
    told = considered(desk.run("explain", *given).out)
    assert "ERR" not in told
    assert "    NO   principal has org   [principal.org = absent]\n    -    principal.org == " in told
    found = desk.json("explain", *given, status=1)
    publish, own = found["parties"][0]["considered"][:2]
    assert [each["holds"] for each in publish["conditions"]] == ["true", "false", "not evaluated"]
    assert publish["conditions"][2] == {"text": "principal.org == resource.org", "holds": "not evaluated"}
    assert [each["holds"] for each in publish["conditions"][0]["any"]] == ["true", "not evaluated"]
    assert [each["holds"] for each in own["conditions"][0]["any"]] == ["true", "not evaluated"]
    assert found["why"][1].endswith(
        "forbids it, because `principal has org` does not hold (principal.org = absent)"
    )
    assert found["changes"][1] == (
        "for `post.publish` to permit it, `principal has org` must hold,"
        " and then `principal.org == resource.org` too"
    )


def test_an_alternative_that_fails_with_all_others_is_told_with_them(desk: Desk) -> None:
    found = desk.json(
        "explain", "--as", "viewer", "--human", "--app", other(desk), "--tool", "either", status=1
    )
    assert found["why"] == [
        '`either` (a.cedar:1:1) does not permit it, because none of `principal in Role::"editor"` and'
        ' `principal.id == "ann"` holds (principal.roles = ["viewer"], principal.id = "person")'
    ]
    assert found["changes"][0] == (
        'for `either` to permit it, `principal in Role::"editor"` or `principal.id == "ann"` must hold,'
        " and then `principal has org` too"
    )


def test_a_policy_that_cannot_be_evaluated_names_the_part_that_erred(desk: Desk) -> None:
    given = ("explain", "--as", "editor", "--human", "--app", other(desk), "--tool", "sum", "--input")
    found = desk.json(*given, '{"n": 9223372036854775807}', status=1)
    assert (found["outcome"], found["why"][0]) == (
        "policy-error",
        "`sum` (a.cedar:2:1) cannot be evaluated, which denies: `context.args.n + 1 > 5` has no answer"
        " (context.args.n = 9223372036854775807)",
    )
    assert desk.json(*given, '{"n": 5}')["outcome"] == "ok"


def test_an_argument_that_only_policies_bound_is_told_as_such(desk: Desk) -> None:
    given = ("explain", "--as", "editor", "--human", "--app", other(desk), "--tool", "sum", "--input")
    found = desk.json(*given, '{"n": 9223372036854775808}', status=1)
    assert found["headline"].startswith("INVALID ARGUMENTS: the schema of `sum` is satisfied, but a policy")
    assert found["why"][0].startswith("n: ")
    assert found["why"][1:] == [
        "the argument is bounded because a policy reads it: one that none reads is not"
    ]
    assert "does not satisfy the schema" in desk.json(*given, '{"n": "x"}', status=1)["headline"]


def test_a_validator_that_raises_is_told_and_nothing_is_asked(desk: Desk) -> None:
    given = ("explain", "--as", "editor", "--human", "--app", other(desk), "--tool", "sum", "--input")
    found = desk.json(*given, '{"n": 0}', status=1)
    assert (found["outcome"], found["code"], found["gate"]) == ("failed", "X_INTERNAL", "arguments")
    assert found["headline"].startswith("FAILED: a validator in the input of `sum` raised")


def test_a_permit_that_errs_denies_what_another_permits(desk: Desk) -> None:
    app = other(desk)
    (desk.at / "own" / "b.cedar").write_text(
        '@id("all") permit (principal, action == Action::"sum", resource);'
    )
    given = ("explain", "--as", "editor", "--human", "--app", app, "--tool", "sum", "--input")
    found = desk.json(*given, '{"n": 9223372036854775807}', status=1)
    assert found["why"][1:] == ["a policy would permit it, but one that cannot be evaluated always denies"]
    assert found["changes"] == []


@pytest.mark.parametrize(
    ("given", "gates"),
    [
        (("--as", "viewer", *PUBLISH), ["refused", "not asked", "not asked", "not asked"]),
        (("--as", "editor", "--scopes", "", *PUBLISH), ["passed", "refused", "not asked", "not asked"]),
        (("--as", "editor", "--tool", "publishPost"), ["passed", "passed", "refused", "not asked"]),
        (("--as", "editor", *PUBLISH, "--facts", "null"), ["passed", "passed", "passed", "refused"]),
        (("--as", "editor", "--org", "acme", *PUBLISH), ["passed", "passed", "passed", "undecided"]),
    ],
)
def test_every_gate_is_told_in_order(desk: Desk, given: tuple[str, ...], gates: list[str]) -> None:
    found = desk.json("explain", *given, status=1)["gates"]
    assert list(found) == ["visibility", "scope", "arguments", "policy"]
    assert list(found.values()) == gates
    text = ", ".join(
        f"{gate} {state.upper() if state in ('refused', 'undecided') else state}"
        for gate, state in found.items()
    )
    assert f"\nGates in order: {text}\n" in desk.run("explain", *given).out


def test_without_facts_a_denial_that_is_certain_is_told(desk: Desk) -> None:
    found = desk.json("explain", "--as", "editor", *PUBLISH, status=1)
    assert found["gate"] == "facts"
    assert found["why"][2] == "whatever the facts are, this call would be denied"
    assert [each.partition("`")[2].partition("`")[0] for each in found["why"][3:]] == [
        "post.own-org",
        "post.publish",
    ]
    assert [each["allowed"] for each in found["parties"]] == [False, False]
    assert "the caller has no organisation" in found["changes"][-1]


APP: Final = """
from nonsuch import Registry, audience, can, define_app_mcp, expose
registry = Registry()
def vip(who): return who.org == "acme"
@registry.action(policy=can("a:b"), mcp=expose("A", visible_to=vip))
def ping() -> str: return "pong"
own = audience('principal has org && principal.org == "acme"')
@registry.action(policy=can("a:c"), mcp=expose("B", visible_to=own))
def pong() -> str: return "ping"
@registry.action(policy=can("a:d"), mcp=expose("C", visible_to=[]))
def none() -> str: return "none"
mcp = define_app_mcp(registry, name="other", include="exposed", roles=["editor"])
"""


@pytest.mark.parametrize(
    ("tool", "audience"),
    [
        ("ping", "`ping` is visible where `vip` of the app's code answers `True`"),
        ("pong", '`pong` is visible where this holds: `principal has org && principal.org == "acme"`'),
        ("none", "it is visible to nobody"),
    ],
)
def test_every_kind_of_audience_is_told(desk: Desk, tool: str, audience: str) -> None:
    module = f"other_app_{tool}"
    (Path(desk.at) / f"{module}.py").write_text(APP)
    found = desk.json("explain", "--app", module, "--as", "", "--tool", tool, status=1)
    assert found["why"][0] == audience


def test_a_permission_that_no_policy_is_about(desk: Desk) -> None:
    (Path(desk.at) / "other_app.py").write_text(APP)
    found = desk.json(
        "explain", "--app", "other_app", "--as", "", "--org", "acme", "--tool", "pong", status=1
    )
    assert found["why"][1] == "no policy is about `a:c`, and what nothing permits is denied"
    assert found["changes"][0].startswith("write a policy: `permit (principal in Role::")


OTHER: Final = """
from pathlib import Path
from pydantic import BaseModel, field_validator
from nonsuch import Registry, can, define_app_mcp, expose
class Ask(BaseModel):
    n: int
    @field_validator("n")
    @classmethod
    def careless(cls, n: int) -> int: return n if n else 1 // n
registry = Registry()
@registry.action(policy=can("b:a"), mcp=expose("A"))
def either() -> str: return "done"
@registry.action(policy=can("b:b"), mcp=expose("B"))
def sum(input: Ask) -> str: return "done"
mcp = define_app_mcp(
    registry, name="other", include="exposed", roles=["editor", "viewer"], policies_dir="own"
)
"""


def other(desk: Desk) -> str:
    """Write an app of two tools and its policies, and return its module."""
    name = f"other_app_{desk.at.name}"
    (desk.at / f"{name}.py").write_text(OTHER)
    (desk.at / "own").mkdir()
    (desk.at / "own" / "a.cedar").write_text(
        '@id("either") permit (principal, action == Action::"either", resource)'
        ' when { (principal in Role::"editor" || principal.id == "ann") && principal has org };\n'
        '@id("sum") permit (principal, action == Action::"sum", resource)'
        " when { context.args.n + 1 > 5 };"
    )
    return name
