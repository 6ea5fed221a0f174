"""A view holds what its principal may see and nothing else; hidden and absent are one miss."""

from __future__ import annotations

from nonsuch import Agent, App, Human, Principal, Registry, can, expose, tool
from nonsuch.kernel.view import TABLES, View

from .trial import EDITOR, NOBODY, boot


def one() -> str:
    return "one"


def two() -> str:
    return "two"


def three() -> str:
    return "three"


def app_of_three() -> App:
    registry = Registry()
    registry.action(policy=can("a:b"), mcp=expose("One"), path="path/one")(one)
    registry.action(policy=can("a:b"), mcp=expose("Two", visible_to=["editor"]), path="path/two")(two)
    registry.action(policy=can("a:b"), path="path/three")(three)
    return boot(registry, tools={"four": tool("Four", one, policy="a:b", visible_to=["editor"])})


def names(view: View) -> tuple[list[str], list[str]]:
    return sorted(view.table.tools), sorted(view.table.paths)


def test_a_view_holds_tools_by_name_and_entries_by_path() -> None:
    app = app_of_three()
    assert names(app.kernel.view_for(NOBODY)) == (["one"], ["path/one", "path/three"])
    assert names(app.kernel.view_for(EDITOR)) == (
        ["four", "one", "two"],
        ["path/one", "path/three", "path/two"],
    )


def test_a_surface_finds_by_its_own_names_only() -> None:
    view = app_of_three().kernel.view_for(EDITOR)
    found = view.find("two", "mcp")
    assert found is not None
    assert found.name == "two"
    assert found is view.find("two", "agent") is view.find("path/two", "http")
    for name, surface in (
        ("two", "http"),
        ("path/two", "mcp"),
        ("four", "http"),
        ("", "http"),
        ("three", "mcp"),
    ):
        assert view.find(name, surface) is None  # type: ignore[arg-type]  # a str of the three surfaces


def test_hidden_and_absent_are_one_miss() -> None:
    view = app_of_three().kernel.view_for(NOBODY)
    missed = [view.find(name, "mcp") for name in ("two", "four", "nothing", "", "One", "one ", "see")]
    assert missed == [None] * 7
    assert [view.find(path, "http") for path in ("path/two", "nothing", "/path/one", "path/one/")] == [
        None
    ] * 4


def test_callers_who_see_the_same_share_one_table() -> None:
    app = app_of_three()
    everyone: list[Principal] = [Agent("a"), Agent("b", org="acme"), Human("h"), Agent("c", roles={"x"})]
    assert len({id(app.kernel.view_for(who).table) for who in everyone}) == 1
    assert app.kernel.view_for(EDITOR).table is not app.kernel.view_for(NOBODY).table


def test_a_view_is_its_principals() -> None:
    app = app_of_three()
    assert (app.kernel.view_for(NOBODY).principal, app.kernel.view_for(EDITOR).principal) == (NOBODY, EDITOR)
    assert app.kernel.view_for(NOBODY) == app.kernel.view_for(Agent("nobody"))
    assert app.kernel.view_for(NOBODY) != app.kernel.view_for(EDITOR)


def test_more_kinds_of_caller_than_tables_are_all_answered_right() -> None:
    """The tables are bounded; what falls out is decided again, not guessed."""
    roles = [f"r{number}" for number in range(9)]
    app = boot(Registry(), tools={role: tool("T", one, policy="a:b", visible_to=[role]) for role in roles})
    kinds = [
        [role for bit, role in enumerate(roles) if number >> bit & 1] for number in range(2 ** len(roles))
    ]
    assert len(kinds) > TABLES
    for _ in range(2):
        seen = [sorted(app.kernel.view_for(Agent("a", roles=held)).table.tools) for held in kinds]
        assert seen == kinds
