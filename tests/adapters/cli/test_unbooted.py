"""`check` and `diff` of an app that does not boot: its declarations are enough to try other policies."""

from __future__ import annotations

from typing import Any, Final

from .desk import Desk

APP: Final = """
from nonsuch import Registry, can, define_app_mcp, expose
registry = Registry()
@registry.action(policy=can("a:b"), mcp=expose("A"))
def ping() -> str: return "pong"
@registry.action(policy=can("a:c"), mcp=expose("B", visible_to={visible}))
def pong() -> str: return "ping"
def app(name, policies):
    return define_app_mcp(registry, name=name, include="exposed", roles=["editor"], policies_dir=policies)
mcp = {mcp}
"""
GOOD: Final = '@id("p") permit (principal, action in Action::"a:b", resource);\n'
BAD: Final = "permit (principal, action, resource);\n"
UNPARSED: Final = "permit (\n"
OWN: Final = ("a.cedar:1:20", "X_POLICY_HEAD_UNCONFINED")
OTHER: Final = ("bad/a.cedar:1:8", "X_POLICY_SYNTAX")
DECLARED: Final = (None, "X_DECLARATION_INVALID")


def arrange(desk: Desk, name: str, *, visible: str = "['editor']", mcp: str = "app('one', 'own')") -> str:
    """Write policies, good and bad, and an app whose own ones are bad; return its module."""
    for folder, text in (("own", BAD), ("good", GOOD), ("bad", UNPARSED), ("none", "")):
        (desk.at / folder).mkdir()
        (desk.at / folder / "a.cedar").write_text(text)
    (desk.at / f"{name}.py").write_text(APP.format(visible=visible, mcp=mcp))
    return name


def told(found: Any) -> list[tuple[str | None, str]]:
    return [(each["where"], each["code"]) for each in found["faults"]]


def test_its_own_policies_are_told_fault_by_fault(desk: Desk) -> None:
    app = arrange(desk, "unbooted_own")
    assert told(desk.json("check", "--app", app, status=1)) == [OWN]


def test_another_directory_is_checked_and_only_that_one(desk: Desk) -> None:
    app = arrange(desk, "unbooted_other")
    assert told(desk.json("check", "good", "--app", app)) == []
    assert told(desk.json("check", "bad", "--app", app, status=1)) == [OTHER]


def test_two_other_directories_are_compared(desk: Desk) -> None:
    app = arrange(desk, "unbooted_diff")
    found = desk.json("diff", "none", "good", "--app", app, status=1)
    assert found["policies"] == {"added": ["p"], "removed": [], "rewritten": []}
    assert {(each["tool"], each["after"]["outcome"]) for each in found["decisions"]} == {("ping", "ok")}
    assert told(desk.json("diff", "good", "bad", "--app", app, status=1)) == [OTHER]


def test_faults_of_declarations_stand_beside_those_of_the_directory(desk: Desk) -> None:
    app = arrange(desk, "unbooted_declarations", visible="'editor'")
    assert told(desk.json("check", "bad", "--app", app, status=1)) == [DECLARED, OTHER]
    assert told(desk.json("check", "good", "--app", app, status=1)) == [DECLARED]
    assert told(desk.json("diff", "none", "good", "--app", app, status=1)) == [DECLARED]


def test_of_several_apps_the_one_that_does_not_boot_is_told(desk: Desk) -> None:
    app = arrange(desk, "unbooted_several", mcp="[app('one', 'good'), app('two', 'own')]")
    assert told(desk.json("check", "good", "--app", app, "--server", "two")) == []
    assert told(desk.json("check", "good", "--app", app, "--server", "one", status=1)) == [OWN]


def test_what_needs_the_policies_in_force_is_refused_with_their_faults(desk: Desk) -> None:
    app = arrange(desk, "unbooted_who")
    assert told(desk.json("who", "--app", app, status=1)) == [OWN]
