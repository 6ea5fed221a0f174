"""``manage_resource`` is the flat call through another door: one answer, one run, one audit event.

Two apps of the same declarations, one flat, one with its tools in resources. Any other pair of names is
answered as the flat app answers a name that nobody declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from nonsuch.kernel.audit import Event, ToolCall

from .. import rules
from ..rules import Caller
from ..world import REVISIONS, Answer, Request, World, call, manage, mcp, principal
from . import drawn

RESOURCES: Final = ("docs", "Docs", "box")
NOBODY: Final = "q"
Seen = tuple[Answer, list[tuple[str, str]], list[Event]]


def seen(world: World, request: Request) -> Seen:
    """What leaves, what ran, and what is audited of a request."""
    ran, heard = len(world.ran), len(world.audit)
    answer = world.send(request)
    return answer, world.ran[ran:], world.audit[heard:]


def unknown(flat: World, token: str, revision: str, name: str) -> Answer:
    """The flat answer for a name of that length, had nobody declared it."""
    nobody = NOBODY * max(len(name), 1)
    answer = flat.send(call(token, revision, nobody, {}))
    return unmeasured(replace(answer, body=answer.body.replace(f"{nobody} -".encode(), f"{name} -".encode())))


def unmeasured(answer: Answer) -> Answer:
    """An answer without its length: a name of other bytes has another."""
    return replace(answer, headers=tuple(each for each in answer.headers if each[0] != b"content-length"))


@st.composite
def grouped(draw: st.DrawFn) -> tuple[rules.World, dict[str, tuple[str, ...]]]:
    """Any world, its tools spread over resources, some in none of them."""
    world = draw(drawn.worlds().filter(lambda each: any(tool.exposed for tool in each.tools)))
    names = [tool.name for tool in world.tools if tool.exposed]
    places = [draw(st.sampled_from(RESOURCES)), *(draw(st.sampled_from((*RESOURCES, ""))) for _ in names[1:])]
    held: dict[str, tuple[str, ...]] = {}
    for name, place in zip(names, places, strict=True):
        if place:
            held[place] = (*held.get(place, ()), name)
    return world, held


def compared(flat: World, meta: World, token: str, name: str, arguments: Mapping[str, object]) -> None:
    """One name by every door of both apps, in every revision."""
    groups = meta.grouped or {}
    there = {each for names in groups.values() for each in names}
    for revision in REVISIONS:
        direct, none = call(token, revision, name, arguments), unknown(flat, token, revision, name)
        for resource in (*groups, "nothing"):
            managed = seen(meta, manage(token, revision, resource, name, arguments))
            if name in groups.get(resource, ()):
                assert managed == seen(flat, direct)
            else:
                assert (unmeasured(managed[0]), managed[1]) == (none, [])
                assert [audited(each) for each in managed[2]] in ([], [("hidden", name)])
        named = seen(meta, direct)
        if name in there:
            assert (unmeasured(named[0]), named[1]) == (none, [])
        else:
            assert named == seen(flat, direct)


def audited(event: Event) -> tuple[str, str]:
    assert isinstance(event, ToolCall)
    return event.outcome, event.tool


@given(grouped(), drawn.traces, st.tuples(drawn.agents(), drawn.agents()))
def test_manage_is_the_flat_call(
    told: tuple[rules.World, dict[str, tuple[str, ...]]],
    trace: list[tuple[int, str, dict[str, object]]],
    callers: tuple[Caller, Caller],
) -> None:
    world, groups = told
    tokens = {str(at): principal(caller) for at, caller in enumerate(callers)}
    flat, meta = World(world, dict(tokens)), World(world, dict(tokens), groups)
    for at, name, arguments in trace[:4]:
        compared(flat, meta, str(at % 2), name, arguments)


def test_the_tools_of_the_constant_surface_are_unknown_to_a_flat_caller() -> None:
    world = rules.World((rules.Tool("readDoc", "docs/read"),), grants=(("viewer", "app:use"),))
    flat = World(world, {"a": principal(Caller("a", roles=frozenset({"viewer"})))})
    for revision in REVISIONS:
        listed = flat.send(mcp("a", revision, "tools/list")).value["result"]["tools"]
        assert [each["name"] for each in listed] == ["readDoc"]
        for name in ("list_resources", "describe_resource", "manage_resource"):
            answer = flat.send(call("a", revision, name, {}))
            assert unmeasured(answer) == unknown(flat, "a", revision, name)


def walk() -> None:
    """Without chance: a tool that is seen, one that is hidden and one in no resource, by every pair."""
    tools = tuple(
        rules.Tool(name, f"do/{name}", audience=audience)
        for name, audience in (
            ("seen", rules.Everyone()),
            ("hidden", rules.Roles(("staff",))),
            ("alone", rules.Everyone()),
        )
    )
    world = rules.World(tools, grants=(("viewer", "app:use"),))
    tokens = {"a": principal(Caller("a", roles=frozenset({"viewer"})))}
    groups = {"docs": ("seen",), "box": ("hidden",)}
    flat, meta = World(world, dict(tokens)), World(world, dict(tokens), groups)
    for name in ("seen", "hidden", "alone", "Seen", "seen ", "nothing"):
        for arguments in ({}, {"x": 1}):
            compared(flat, meta, "a", name, arguments)
    assert {name for name, _ in meta.ran} == {"seen", "alone"}


def test_every_pair_of_names_is_the_flat_call_or_no_tool() -> None:
    walk()
