"""`who`: the matrix as a table and as JSON."""

from __future__ import annotations

from .desk import Desk


def test_the_matrix_of_the_demo(desk: Desk) -> None:
    found = desk.json("who")
    cells = {(each["tool"], each["role"]): each for each in found["cells"]}
    assert found["roles"] == ["admin", "editor", "staff", "viewer", None]
    assert {role: cells["refundOrder", role]["result"] for role in found["roles"]} == {
        "admin": "depends",
        "editor": "depends",
        "staff": "depends",
        "viewer": "hidden",
        None: "hidden",
    }
    admin = {each["policy"]: each["conditions"] for each in cells["refundOrder", "admin"]["calls_rules"]}
    editor = {each["policy"]: each["conditions"] for each in cells["refundOrder", "editor"]["calls_rules"]}
    assert editor.keys() - admin.keys() == {"order.refund-limit"}
    assert editor["order.refund-limit"] == ["context.args.amountMinor > 10000"]
    assert cells["refundOrder", "admin"]["scope"] == "orders:write"
    assert cells["refundOrder", "admin"]["token"] == "needed"


def test_people_in_a_session_need_no_scope(desk: Desk) -> None:
    assert {each["token"] for each in desk.json("who", "--human")["cells"]} == {"none"}


def test_some_tools_and_roles(desk: Desk) -> None:
    found = desk.json("who", "--tool", "getPost,listPosts", "--role", "viewer")
    assert [(each["tool"], each["role"]) for each in found["cells"]] == [
        ("listPosts", "viewer"),
        ("getPost", "viewer"),
    ]


def test_the_table_lists_tools_by_role_and_then_the_conditions(desk: Desk) -> None:
    told = desk.run("who").out
    assert "tool" in told.splitlines()[0]
    assert "\n  depends for editor, staff:\n" in told
    assert "    forbid order.refund-limit: not if context.args.amountMinor > 10000\n" in told
    assert '    forbid payout.open: only if resource.status == "open"\n' in told
