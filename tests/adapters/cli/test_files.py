"""`check`, `fmt` and `show`: faults with their places, formatting that loses nothing, compiled policies."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from nonsuch.adapters.cli.policy import fmt
from nonsuch.kernel import cedar, cedar_text

from .desk import POLICIES, Desk

UGLY = """// head

@id("a")   // after
permit(principal, // who
  action in Action::"post:read", resource)
when { /// three
  principal has org && ( principal.org == "// no comment" ) // last
};

// tail 1

// tail 2
"""


@pytest.fixture
def copied(desk: Desk) -> Path:
    return Path(shutil.copytree(POLICIES, desk.at / "policies"))


def test_the_demos_policies_have_no_fault(desk: Desk) -> None:
    assert desk.json("check") == {"faults": [], "warnings": [], "policies": 26}


def test_every_fault_of_a_directory_has_its_place(desk: Desk, copied: Path) -> None:
    (copied / "posts.cedar").write_text(
        'permit (principal, action in Action::"post:read", resource)\nwhen { tru };\n'
    )
    (copied / "org.cedar").write_text("permit (principal, action, resource);\n")
    (copied / "never.cedar").write_text(
        '@id("n") permit (principal, action in Action::"any", resource) when { false };'
    )
    found = desk.json("check", "policies", status=1)
    assert [(each["where"], each["code"]) for each in found["faults"]] == [
        ("policies/posts.cedar:2:8", "X_POLICY_SYNTAX"),
        ("policies/org.cedar:1:20", "X_POLICY_HEAD_UNCONFINED"),
    ]
    lines = desk.run("check", "policies").out.splitlines()
    assert lines[0].startswith("policies/posts.cedar:2:8: X_POLICY_SYNTAX: ")
    assert lines[-1] == "2 faults, 0 warnings"


def test_a_warning_is_no_fault(desk: Desk, copied: Path) -> None:
    head = '(principal in ?principal, action in Action::"any", resource)'
    (copied / "never.cedar").write_text(f'\n@id("t") permit {head};')
    found = desk.json("check", "policies")
    assert [(each["where"], each["code"]) for each in found["warnings"]] == [
        ("policies/never.cedar:2:1", "X_POLICY_NEVER_APPLIES")
    ]
    assert "warning: policies/never.cedar:2:1: " in desk.run("check", "policies").out


def test_formatting_keeps_comments_modes_and_meaning(desk: Desk) -> None:
    file = desk.at / "a.cedar"
    file.write_text(UGLY)
    file.chmod(0o640)
    assert desk.json("fmt", "a.cedar", "--check", status=1)["written"] == 0
    assert file.read_text() == UGLY
    assert desk.json("fmt", "a.cedar") == {"files": [{"path": "a.cedar", "state": "changed"}], "written": 1}
    after = file.read_text()
    assert fmt.comments(after) == fmt.comments(UGLY)
    assert fmt.comments(UGLY) == [
        "// head",
        "// after",
        "// who",
        "/// three",
        "// last",
        "// tail 1",
        "// tail 2",
    ]
    assert str(cedar.policy_set(cedar_text.parse(after, "f"))) == str(
        cedar.policy_set(cedar_text.parse(UGLY, "f"))
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert desk.json("fmt", "a.cedar", "--check")["files"] == [{"path": "a.cedar", "state": "formatted"}]
    assert [each.name for each in desk.at.iterdir() if each.suffix != ".toml"] == ["a.cedar"]


def test_a_file_that_does_not_parse_is_left_as_it_is(desk: Desk) -> None:
    (desk.at / "good.cedar").write_text(UGLY)
    (desk.at / "bad.cedar").write_text("permit (")
    (desk.at / "binary.cedar").write_bytes(b"\xff")
    (desk.at / "empty.cedar").write_text("")
    found = desk.json("fmt", ".", status=1)
    assert {each["path"]: each["state"] for each in found["files"]} == {
        "bad.cedar": "refused",
        "binary.cedar": "refused",
        "empty.cedar": "formatted",
        "good.cedar": "changed",
    }
    assert (desk.at / "bad.cedar").read_text() == "permit ("
    assert "bad.cedar: X_POLICY_SYNTAX: " in desk.run("fmt", ".").out


def test_formatting_that_would_lose_a_comment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(source: str) -> str:
        return source.partition("\n")[2]

    monkeypatch.setattr(cedar_text, "formatted", careless)
    with pytest.raises(cedar_text.PolicyRefused, match="lose a comment"):
        fmt.formatted("// why\npermit (principal, action, resource);")


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.at / "a.cedar").write_text(UGLY)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        desk.run("fmt", "a.cedar")
    assert (desk.at / "a.cedar").read_text() == UGLY
    assert [each.name for each in desk.at.iterdir() if each.suffix != ".toml"] == ["a.cedar"]


def test_every_policy_is_shown_as_text_with_its_place(desk: Desk) -> None:
    shown = desk.json("show")["policies"]
    assert len(shown) == 26
    assert {each["gate"] for each in shown} == {"visibility", "scope", "policy"}
    for each in shown:
        parsed = cedar_text.parse(each["text"], "shown")
        assert [one.id for one in parsed] == [each["id"]]
    [one] = desk.json("show", "order.refund-limit")["policies"]
    assert one["where"] == "orders.cedar:27:1"
    assert one["text"].endswith(
        'when { context.args.amountMinor > 10000 }\nunless { principal in Role::"admin" };\n'
    )
    [generated] = [each for each in shown if each["id"] == "audience roles:admin"]
    assert generated["where"] == "<audience roles:admin>"
    assert {each["gate"] for each in desk.json("show", "--gate", "scope")["policies"]} == {"scope"}
    assert desk.run("show", "post.read").out.startswith("// posts.cedar:3:1 (policy)\n")
