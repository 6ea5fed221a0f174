"""`test`: decision tables that pass, fail and cannot be read, each with file and line, and the coverage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .desk import Desk

REFUND = "{principal: {roles: [editor], org: acme, scopes: ['orders:write']}, tool: refundOrder, expect: ok"
ROW = "{principal: {roles: [editor], org: acme, scopes: ['posts:read']}, tool: listPosts, expect: ok"


def table(desk: Desk, text: str, name: str = "t.yaml") -> str:
    (desk.at / name).write_text(text)
    return name


def test_the_demos_tables_pass_and_reach_every_policy(desk: Desk) -> None:
    found = desk.json("test")
    assert (found["passed"], found["failed"], found["unreadable"]) == (27, 0, [])
    assert found["coverage"] == {"policies": 20, "reached": 20, "never": []}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (", policy: post.publish}", "expected the policy post.publish, got audience"),
        (", code: X_FORBIDDEN}", "expected the code X_FORBIDDEN, got none"),
    ],
)
def test_a_row_that_expects_something_else_fails(desk: Desk, change: str, problem: str) -> None:
    name = table(desk, f"- {ROW}{change}\n".replace("got audience", ""))
    found = desk.json("test", name, status=1)
    assert problem.partition(", got")[0] in found["rows"][0]["problems"][0]


def test_a_failed_row_is_told_with_its_line(desk: Desk) -> None:
    name = table(desk, f"# two rows\n- {ROW}}}\n- {ROW}, name: wrong}}\n".replace("ok, name", "hidden, name"))
    found = desk.run("test", name)
    assert found.status == 1
    assert "t.yaml:3: wrong: expected hidden, got ok\n" in found.out
    assert "\n1 passed, 1 failed, 0 unreadable\npolicies reached: 1 of 20\n  never decided: " in found.out


def test_a_row_without_the_facts_that_policies_need_fails(desk: Desk) -> None:
    name = table(desk, f"- {REFUND}, input: {{orderId: o, amountMinor: 1}}}}\n")
    found = desk.json("test", name, status=1)
    assert found["rows"][0]["problems"] == ["the policies need `facts`, or `missing: true`"]


@pytest.mark.parametrize(
    ("text", "where", "cause"),
    [
        ("", "t.yaml:1", "it is empty"),
        ("7", "t.yaml:1", "it is no list of rows, and has no `tests` that is one"),
        ("tests: 7", "t.yaml:1", "it is no list of rows, and has no `tests` that is one"),
        ("tests: []\nmore: 1", "t.yaml:1", "`more` is neither `tests` nor `principals`"),
        ("- [1, 2", "t.yaml:1", "expected ',' or ']', but got '<stream end>'"),
        (
            "- !!python/object/apply:os.system [id]",
            "t.yaml:1",
            "could not determine a constructor for the tag",
        ),
        (f"- {ROW}}}\n- {ROW}, expect: hidden}}", "t.yaml:2", "`expect` is given twice"),
        (f"- {ROW}}}\n\n- {ROW}, more: 1}}", "t.yaml:3", "more: Extra inputs are not permitted"),
        (
            f"- {ROW}}}".replace("expect: ok", "expect: fine"),
            "t.yaml:1",
            "expect: Input should be 'ok', 'hidden'",
        ),
        (
            f"- {ROW}}}".replace("org: acme", "org: no"),
            "t.yaml:1",
            "principal.caller.org: Input should be a valid string",
        ),
        (f"- {ROW}}}".replace("editor", "editr"), "t.yaml:1", "the app declares no role `editr`"),
        (f"- {ROW}}}".replace("posts:read", "posts:rd"), "t.yaml:1", "the app declares no scope `posts:rd`"),
        (f"- {ROW}}}".replace("listPosts", "listPost"), "t.yaml:1", "`listPost` is no tool of this app"),
        (
            f"- {ROW}, facts: {{id: a}}}}",
            "t.yaml:1",
            "facts are given for a tool that acts on the application itself",
        ),
        (f"- {REFUND}, facts: {{id: a}}}}", "t.yaml:1", "the facts are no `Order`: org: Field required"),
        (
            f"- {REFUND}, missing: true, facts: {{id: a}}}}",
            "t.yaml:1",
            "`missing: true` and `facts` exclude each other",
        ),
        (
            "- {principal: ed, tool: listPosts, expect: ok}",
            "t.yaml:1",
            "no principal of this file is named `ed`",
        ),
        (
            "principals: {ed: {role: x}}\ntests: []",
            "t.yaml:1",
            "principals: ed.role: Extra inputs are not permitted",
        ),
        (
            "- {principal: {kind: human, acts_for: same}, tool: listPosts, expect: ok}",
            "t.yaml:1",
            "a human acts for nobody",
        ),
        ("- {principal: {id: ''}, tool: listPosts, expect: ok}", "t.yaml:1", "an agent needs an id"),
    ],
)
def test_what_cannot_be_read_is_told_with_file_and_line(
    desk: Desk, text: str, where: str, cause: str
) -> None:
    found = desk.json("test", table(desk, text), status=1)
    told = found["unreadable"][0]
    assert (told["where"], told["code"]) == (where, "X_POLICY_TEST_INVALID")
    assert cause in told["cause"]


def test_a_table_may_be_json(desk: Desk) -> None:
    row = {
        "principal": {"kind": "human", "roles": ["editor"], "org": "acme"},
        "tool": "listPosts",
        "expect": "ok",
    }
    assert desk.json("test", table(desk, json.dumps([row]), "t.json"))["passed"] == 1
    broken = table(desk, json.dumps([row, {**row, "expect": "fine"}]), "t.json")
    assert [each["where"] for each in desk.json("test", broken, status=1)["unreadable"]] == ["t.json: row 2"]
    twice = table(desk, '[\n{"tool": "a", "tool": "b"}]', "t.json")
    assert desk.json("test", twice, status=1)["unreadable"][0]["where"].startswith("t.json:")


def test_a_directory_of_tables_is_read_whole(desk: Desk) -> None:
    folder = desk.at / "tables" / "more"
    folder.mkdir(parents=True)
    (folder / "a.yml").write_text(f"- {ROW}}}\n")
    (folder.parent / "b.yaml").write_text(f"tests:\n  - {ROW}}}\n")
    (folder / "notes.txt").write_text("no table")
    found = desk.json("test", "tables")
    assert [each["where"] for each in found["rows"]] == ["tables/b.yaml:2", "tables/more/a.yml:1"]


@pytest.mark.parametrize("name", ["empty", "notes.txt"])
def test_no_row_at_all_is_wrong_use(desk: Desk, name: str) -> None:
    (desk.at / "empty").mkdir()
    Path(desk.at / "notes.txt").write_text("no table")
    assert desk.run("test", name).status == 2
