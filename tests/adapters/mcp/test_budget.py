"""What a caller is told first, measured as it is on the wire, and the one projection of a tool."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nonsuch import (
    Agent,
    App,
    BootError,
    McpSurface,
    Registry,
    SurfaceOverBudget,
    assert_mcp_surface_budget,
    can,
    define_app_mcp,
    expose,
    group,
    measure_mcp_surface,
    tool,
    tool_from,
    tool_list_entry,
)
from nonsuch.kernel.errors import fault
from nonsuch.kernel.view import View

from . import press
from .asking import REVISIONS, ask, nothing, served, tools

CALLER = Agent("a")
SEES = Agent("b", roles={"staff"})


def instructed(view: View) -> str:
    return f"Höre: “{len(view.table.tools)}”\n"


def app(surface: Any = "meta", instructions: Any = instructed) -> App:
    registry = Registry()
    registry.query(policy=can("a:b"), mcp=expose("Übersicht — für alle"))(nothing)
    registry.query(policy=can("a:b"), mcp=expose("Staff's", visible_to=["staff"]), path="staff")(hidden)
    return define_app_mcp(
        registry,
        name="x",
        include="exposed",
        surface=surface,
        groups={} if surface == "flat" else {"all": group("Alles", ["nothing", "hidden"])},
        instructions=instructions,
        resolve_token=lambda token: {"a": CALLER, "b": SEES}.get(token),
        rate_limits=None,
    )


def hidden() -> None:
    return None


def member(budgeted: App, token: str, method: str, name: str) -> str:
    """A member of a result as it stands on the wire."""
    body = ask("2025-11-25", method, token, budgeted).body.decode()
    start = body.index(f'"{name}":') + len(name) + 3
    _, end = json.JSONDecoder().raw_decode(body, start)
    return body[start:end]


def on_the_wire(budgeted: App, token: str) -> McpSurface:
    """The same figures, counted in what left."""
    listed = ask(
        "2025-11-25", "tools/call", token, budgeted, name="list_resources", arguments={}
    ).body.decode()
    text = listed.partition('"text","text":')[2].removesuffix("}]}}")
    opened = ask("2025-11-25", "initialize", token, budgeted).body.decode()
    told = member(budgeted, token, "initialize", "instructions") if '"instructions"' in opened else ""
    return McpSurface(len(member(budgeted, token, "tools/list", "tools")), len(text), len(told))


@pytest.mark.parametrize("instructions", [instructed, "Kurz", None])
@pytest.mark.parametrize("surface", ["meta", "flat", ["staff"]])
def test_a_surface_is_as_long_as_what_leaves(surface: Any, instructions: Any) -> None:
    budgeted = app(surface, instructions)
    for token, caller in (("a", CALLER), ("b", SEES)):
        assert measure_mcp_surface(budgeted, caller) == on_the_wire(budgeted, token)


def test_characters_are_counted_and_not_bytes() -> None:
    budgeted = app("flat", "ü")
    assert measure_mcp_surface(budgeted, CALLER).instructions == len('"ü"')


def test_a_surface_that_grows_behind_its_resources_stays_as_long_in_the_list() -> None:
    budgeted = app()
    few, more = (measure_mcp_surface(budgeted, caller) for caller in (CALLER, SEES))
    assert few.tools_list == more.tools_list
    assert few.list_resources < more.list_resources


def test_every_surface_over_its_ceiling_is_named() -> None:
    budgeted = app()
    held = measure_mcp_surface(budgeted, CALLER)
    exact = {"tools_list": held.tools_list, "list_resources": held.list_resources}
    assert_mcp_surface_budget(budgeted, CALLER, **exact, instructions=held.instructions)
    assert_mcp_surface_budget(budgeted, CALLER)
    with pytest.raises(SurfaceOverBudget) as caught:
        assert_mcp_surface_budget(budgeted, CALLER, tools_list=7, list_resources=held.list_resources - 1)
    wanted = [
        f"`tools_list` is {held.tools_list} characters for `a`, over 7",
        f"`list_resources` is {held.list_resources} characters for `a`, over {held.list_resources - 1}",
    ]
    assert caught.value == SurfaceOverBudget(
        tuple(fault("X_MCP_SURFACE_OVER_BUDGET", cause) for cause in wanted)
    )
    assert [line.split(": ")[:2] for line in str(caught.value).splitlines()] == [
        ["X_MCP_SURFACE_OVER_BUDGET", cause] for cause in wanted
    ]
    with pytest.raises(SurfaceOverBudget, match="`instructions` is 13 characters for `a`, over 12"):
        assert_mcp_surface_budget(budgeted, CALLER, instructions=12)


# one projection


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_declaration_is_listed_as_it_is_projected(revision: str) -> None:
    listed = {each["name"]: each for each in tools(revision)}
    declared = {each.name: each for each in press.registry.actions if each.mcp is not None}
    assert len(listed.keys() & declared.keys()) > 3
    for name in listed.keys() & declared.keys():
        assert tool_list_entry(tool_from(declared[name])) == listed[name]


def test_a_written_tool_is_given_its_name() -> None:
    written = tool("Seats", nothing, policy="a:b", title="T", destructive=False)
    (listed,) = tools("2025-11-25", app=served(written, "seats"))
    assert tool_list_entry(tool_from(written, "seats")) == listed


def test_what_is_no_tool_is_not_projected() -> None:
    (purge,) = (each for each in press.registry.actions if each.name == "purgePosts")
    with pytest.raises(BootError) as caught:
        tool_from(purge)
    assert [(each.code, each.cause) for each in caught.value.faults] == [
        ("X_MCP_TOOL_UNDECLARED", "`purgePosts` never declared `mcp=expose(...)`")
    ]
    with pytest.raises(BootError) as caught:
        tool_from(tool("Seats", nothing), "seats")
    assert [each.code for each in caught.value.faults] == ["X_MCP_TOOL_UNSAFE"]
