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
    found = desk.json("explain", "--as", "editor", "--org", "acme", *PUBLISH, "--facts", "null", status=1)
    assert found["outcome"] == "policy-denied"
    assert "there is no such Post" in found["why"][1]


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


def test_the_text_shows_every_policy_with_a_mark_for_each_part(desk: Desk) -> None:
    told = desk.run("explain", "--as", "editor", "--org", "acme", *PUBLISH, "--facts", post(org="globex")).out
    assert "Policies considered for the agent and its human alike:" in told
    assert "  forbid post.own-org (posts.cedar:18:1): forbids\n" in told
    assert (
        '    NO   principal.org == resource.org   [principal.org = "acme", resource.org = "globex"]\n' in told
    )


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
