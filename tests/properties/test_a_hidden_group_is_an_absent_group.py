"""A resource in which a caller sees nothing is one that was never declared: bytes, audit and calls made.

Two apps of the constant surface: A with tools that low callers may not see, some filling whole resources,
and B in which those tools and resources were never declared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from nonsuch.kernel.audit import Event, ToolCall

from .. import rules
from ..world import MODERN, REVISIONS, Answer, Request, World, call, manage, mcp, principal
from .test_hidden_and_absent_leave_one_trace import same_trace
from .two_worlds import HIDDEN_NAMES, HIGH, LOW, VISIBLE, absent, declared, undeclared

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "docs": ("readDoc", "readDocs", "docs", "writeDoc"),
    "lists": ("aaaFirst", "listDocs", "acmeDocs", "zzzLast"),
    "vault": ("writeDo", "nobodys"),
    "seats": ("seatCounts",),
}
FILLED: Final = ("vault", "seats")  # by hidden tools alone
VISIBLE_NAMES: Final = tuple(tool.name for tool in VISIBLE)
NAMES: Final = (*VISIBLE_NAMES, *HIDDEN_NAMES)
AGENTS: Final = tuple(token for token, caller in LOW.items() if caller.kind == "agent")
SOME: Final[tuple[dict[str, object], ...]] = ({"id": "d1"}, {}, {"id": 7})


def spread(world: rules.World) -> dict[str, tuple[str, ...]]:
    """The resources of a world's tools; a resource of no tool is not declared."""
    there = {tool.name for tool in world.tools if tool.exposed}
    kept = {group: tuple(name for name in names if name in there) for group, names in GROUPS.items()}
    return {group: names for group, names in kept.items() if names}


class Pair:
    """The two worlds of some hidden tools."""

    def __init__(self, hidden: set[str], *, scoped: bool) -> None:
        callers = {**LOW, **HIGH}
        tokens = {token: principal(caller) for token, caller in callers.items()}
        everything = declared((*VISIBLE_NAMES, *hidden), scoped=scoped)
        purged = rules.purge(everything, sorted(hidden))
        self.a = World(everything, dict(tokens), spread(everything))
        self.b = World(purged, dict(tokens), spread(purged))

    def same(self, request: Request) -> Answer:
        """Send to both worlds and compare everything."""
        seen: list[tuple[Answer, list[tuple[str, str]], list[Event]]] = []
        for world in (self.a, self.b):
            ran, heard = len(world.ran), len(world.audit)
            answer = world.send(request)
            seen.append((answer, world.ran[ran:], [undeclared(each) for each in world.audit[heard:]]))
        assert seen[0] == seen[1], f"{request} shows what is hidden"
        return seen[0][0]

    def passive(self, token: str) -> None:
        """What is told without naming an action."""
        for revision in REVISIONS:
            self.same(mcp(token, revision, "tools/list"))
            self.same(call(token, revision, "list_resources", {}))
            for resource in (*GROUPS, *map(absent, FILLED), "", "Docs"):
                self.same(describe(token, revision, resource))
            self.same(describe(token, revision, *GROUPS))

    def pairs(self, token: str, revision: str, name: str, arguments: Mapping[str, object]) -> None:
        """One name in every resource, and by itself."""
        for resource in (*GROUPS, absent("vault")):
            self.same(manage(token, revision, resource, name, arguments))
        self.same(call(token, revision, name, arguments))

    def alone(self, token: str) -> None:
        """In A alone: a hidden resource answers as an absent one of its length."""
        for group in FILLED:
            other = absent(group)
            for revision in REVISIONS:
                hidden, none = (self.a.send(describe(token, revision, each)) for each in (group, other))
                assert replace(hidden, body=hidden.body.replace(group.encode(), other.encode())) == none
                for name in NAMES:
                    one, two = (
                        self.a.send(manage(token, revision, each, name, {})) for each in (group, other)
                    )
                    assert one == two


def describe(token: str, revision: str, *resources: str) -> Request:
    return call(token, revision, "describe_resource", {"resources": list(resources)})


def walk() -> None:
    """Every pair, and every way to ask without one."""
    pair = Pair(set(HIDDEN_NAMES), scoped=True)
    for token in AGENTS:
        pair.passive(token)
        pair.alone(token)
        for name in (*NAMES, absent("readDocs")):
            for revision in (REVISIONS[0], MODERN):
                pair.pairs(token, revision, name, {"id": "d1"})


def test_a_walk_past_every_pair_sees_one_world() -> None:
    walk()


@settings(max_examples=max(settings().max_examples // 3, 1))
@given(st.sets(st.sampled_from(HIDDEN_NAMES), min_size=1), st.booleans(), st.data())
def test_a_hidden_group_is_an_absent_group(hidden: set[str], scoped: bool, data: st.DataObject) -> None:
    pair = Pair(hidden, scoped=scoped)
    token = data.draw(st.sampled_from(AGENTS))
    pair.passive(token)
    for name in data.draw(st.lists(st.sampled_from(NAMES), max_size=3)):
        pair.pairs(token, data.draw(st.sampled_from(REVISIONS)), name, data.draw(st.sampled_from(SOME)))


def test_a_hidden_and_an_absent_pair_make_the_same_calls() -> None:
    world = Pair(set(HIDDEN_NAMES), scoped=True).a
    for token in ("edit", "over"):
        for group, name in (("docs", "readDocs"), ("vault", "writeDo"), ("seats", "readDoc")):
            for revision in (REVISIONS[1], MODERN):
                other = absent(group) if group in FILLED else group
                one = manage(token, revision, group, name, {"id": "d1"})
                same_trace(world, one, manage(token, revision, other, absent(name), {"id": "d1"}))
                if group in FILLED:
                    one = describe(token, revision, group)
                    same_trace(world, one, describe(token, revision, other))


def test_the_hidden_resources_are_there_for_those_who_may_see_them() -> None:
    pair = Pair(set(HIDDEN_NAMES), scoped=True)
    told = json.loads(text_of(pair.a.send(describe("root", MODERN, *GROUPS))))
    assert [each["resource"] for each in told["resources"]] == list(GROUPS)
    seen = rules.visible(pair.a.declared, HIGH["root"]) & {
        name for names in GROUPS.values() for name in names
    }
    listed = text_of(pair.a.send(call("root", MODERN, "list_resources", {}))).splitlines()
    assert {line.split()[0] for line in listed if line.startswith("  ")} == seen
    assert len(seen) > 8
    ok = pair.a.send(manage("root", MODERN, "docs", "readDocs", {"id": "d1"}))
    assert "isError" not in ok.value["result"]
    assert isinstance(pair.a.audit[-1], ToolCall)
    assert (pair.a.audit[-1].tool, pair.a.audit[-1].outcome) == ("readDocs", "ok")


def text_of(answer: Answer) -> str:
    text: str = answer.value["result"]["content"][0]["text"]
    return text
