"""A view holds what its principal may see and nothing else; hidden and absent are one miss."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from nonsuch import Agent, App, Human, Principal, Registry, can, expose, group, prompt, resource, tool
from nonsuch.kernel.model import Surface
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


def test_a_view_holds_an_entry_as_a_tool_or_at_its_path() -> None:
    kernel = app_of_three().kernel
    entries = {entry.name: entry for entry in kernel.catalog.entries}
    nobody, editor = kernel.view_for(NOBODY), kernel.view_for(EDITOR)
    held = {name: (nobody.holds(entry), editor.holds(entry)) for name, entry in entries.items()}
    assert held == {"one": (True, True), "two": (False, True), "three": (True, True), "four": (False, True)}


# resources, prompts and the constant surface


class Id(BaseModel):
    id: str


def by_id(input: Id) -> str:
    return input.id


def library(**given: Any) -> App:
    editors = ["editor"]
    return boot(
        Registry(),
        resources=[
            resource("a:open", "open", "d", one),
            resource("a:secret", "secret", "d", one, visible_to=editors),
            resource("a:hidden/{id}", "hidden", "d", by_id, visible_to=editors),
            resource("b:{id}", "any", "d", by_id, visible_to=editors),
            resource("a:rows/{id}", "row", "d", by_id),
            resource("a:rows/x", "x", "d", two),
        ],
        prompts=[prompt(one, description="d"), prompt(two, description="d", visible_to=editors)],
        **given,
    )


def test_a_view_finds_a_uri_and_then_the_first_template_that_has_it() -> None:
    """A URI that is declared answers before a template, whichever was declared first."""
    editor = library().kernel.view_for(EDITOR)
    found = {
        uri: (held[0].shown, dict(held[1])) if (held := editor.resource(uri)) else None
        for uri in ("a:open", "a:secret", "a:hidden/1", "a:rows/x", "a:rows/y", "b:other", "b:", "c:open", "")
    }
    assert found == {
        "a:open": ("open", {}),
        "a:secret": ("secret", {}),
        "a:hidden/1": ("hidden", {"id": "1"}),
        "a:rows/x": ("x", {}),
        "a:rows/y": ("row", {"id": "y"}),
        "b:other": ("any", {"id": "other"}),
        "b:": None,
        "c:open": None,
        "": None,
    }


def test_what_is_hidden_of_content_is_missed_like_what_is_absent() -> None:
    nobody = library().kernel.view_for(NOBODY)
    assert [nobody.resource(uri) for uri in ("a:secret", "a:hidden/1", "b:other")] == [None] * 3
    assert [nobody.prompt(name) for name in ("two", "nothing", "prompts/one", "One")] == [None] * 4
    assert [nobody.template(text) for text in ("a:hidden/{id}", "a:rows/1", "a:open", "")] == [None] * 4
    assert (nobody.prompt("one"), nobody.template("a:rows/{id}")) != (None, None)
    assert sorted(nobody.table.resources) == ["a:open", "a:rows/x"]
    assert [each.shown for each in nobody.table.templates] == ["row"]
    assert list(nobody.table.prompts) == ["one"]


def test_content_is_no_tool_and_has_no_path() -> None:
    editor = library().kernel.view_for(EDITOR)
    surfaces: tuple[Surface, ...] = ("mcp", "http", "agent")
    assert {
        editor.find(name, each) for each in surfaces for name in ("open", "resources/open", "prompts/one")
    } == {None}


def of_meta(who: Principal) -> bool:
    return who.org == "meta"


def test_the_constant_surface_lists_what_is_in_no_group_and_finds_the_rest_by_group() -> None:
    tools = {name: tool("T", one, policy="a:b") for name in ("alone", "open", "shut")}
    hidden = tool("T", one, policy="a:b", visible_to=["editor"])
    groups = {"door": group("A door", ["open", "shut", "lock"]), "safe": group("A safe", ["crack"])}
    app = boot(
        Registry(),
        tools={**tools, "lock": hidden, "crack": hidden},
        groups=groups,
        surface=of_meta,
    )
    nobody, meta = app.kernel.view_for(NOBODY), app.kernel.view_for(Agent("m", org="meta"))
    editor = app.kernel.view_for(Agent("e", roles={"editor"}, org="meta"))
    assert (nobody.table.meta, sorted(nobody.table.listed), nobody.table.groups) == (
        False,
        ["alone", "open", "shut"],
        {},
    )
    assert (meta.table.meta, list(meta.table.listed), sorted(meta.table.tools)) == (
        True,
        ["alone"],
        ["alone", "open", "shut"],
    )
    assert {name: list(held) for name, held in meta.table.groups.items()} == {"door": ["open", "shut"]}
    assert {name: list(held) for name, held in editor.table.groups.items()} == {
        "door": ["lock", "open", "shut"],
        "safe": ["crack"],
    }
    found = meta.grouped("door", "open")
    assert found is not None
    assert found.name == "open"
    missed = (("door", "lock"), ("safe", "crack"), ("safe", "open"), ("door", "nothing"), ("nothing", "open"))
    assert [meta.grouped(*each) for each in missed] == [None] * 5
    assert meta.find("open", "mcp") is None
    assert meta.find("open", "agent") is found
    assert nobody.grouped("door", "open") is None
