"""One judge at every door: MCP flat, MCP by the constant surface, HTTP by a body and by a query string, and
in process. The same principal, action and input get the same outcome, code, audit and effect.

Random worlds and calls, and one dense world walked whole; `rules.py` says what the one outcome is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from hypothesis import given

from nonsuch.kernel.audit import Event, ToolCall

from .. import rules
from ..rules import Caller, Surface, Tool, World
from ..world import MODERN, REVISIONS, Request, call, http, manage, principal
from ..world import World as Served
from .drawn import callers, traces, worlds
from .test_one_judge import CALLERS, DENSE, FAILED, SENT, STATUS, Trace, told_by_http, told_by_mcp

GROUP: Final = "all"


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one call: what the caller was told, what the operator was, and what ran."""

    told: tuple[str, str | None]
    audit: ToolCall | None
    ran: tuple[tuple[str, str], ...]


def as_anywhere(event: Event) -> ToolCall | None:
    """An event without what tells one door from another: the surface, and the name that a door uses."""
    if not isinstance(event, ToolCall):
        return None
    code = event.code
    return dataclasses.replace(event, surface="agent", tool="", declared=None, code=code)


def alike(told: tuple[str, str | None]) -> tuple[str, str | None]:
    """What a caller was told; HTTP has its own word for a name that is not there."""
    outcome, code = told
    return outcome, "X_MCP_TOOL_UNKNOWN" if code == "X_ROUTE_NOT_FOUND" else code


class Doors:
    """One world, served flat and by the constant surface."""

    def __init__(self, world: World, everybody: tuple[Caller, ...]) -> None:
        self.world, self.everybody = world, everybody
        self.tokens = {str(at): principal(each) for at, each in enumerate(everybody)}
        self.names = tuple(tool.name for tool in world.tools if tool.exposed)
        self.flat = Served(world, self.tokens)
        self.meta = Served(world, self.tokens, {GROUP: self.names} if self.names else None)

    def compare(self, who: int, name: str, sent: Mapping[str, object]) -> None:
        """Make one call by every door there is for it; each must agree with the rules."""
        for surface, seen in self.through(who, name, sent):
            verdict = rules.outcome(self.world, self.everybody[who], surface, self.place(surface, name), sent)
            words = {"ok", "hidden", "scope-denied", "unauthenticated"}
            outcome = verdict.outcome if verdict.outcome in words else "refused"
            assert alike(seen.told) == alike((outcome, verdict.code)), surface
            assert len(seen.ran) == verdict.ran, surface
            assert seen.audit is None or seen.audit.outcome == verdict.outcome, surface
        self.one_outcome(who, name, sent)

    def one_outcome(self, who: int, name: str, sent: Mapping[str, object]) -> None:
        """All doors that serve this tool to this caller show one thing."""
        tool = self.tool(name)
        everywhere = tool is not None and bool(tool.path) and tool.exposed
        if tool is None or not everywhere or self.everybody[who].kind == "human":
            return
        kinds = {seen for _, seen in self.through(who, name, sent)}
        assert len({dataclasses.replace(each, told=alike(each.told)) for each in kinds}) == 1

    def place(self, surface: Surface, name: str) -> str:
        return f"do/{name}" if surface == "http" else name

    def tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.world.tools if tool.name == name), None)

    def through(self, who: int, name: str, sent: Mapping[str, object]) -> Iterator[tuple[Surface, Seen]]:
        """Every door, one after the other."""
        for revision in REVISIONS:
            yield "mcp", self.over_mcp(self.flat, call(str(who), revision, name, sent))
        if name in self.names:
            yield "mcp", self.over_mcp(self.meta, manage(str(who), MODERN, GROUP, name, sent))
        if name.isascii():
            yield "http", self.over_http(http(str(who), f"do/{name}", sent))
            query = self.queried(name, sent)
            if query is not None:
                request = dataclasses.replace(http(str(who), f"do/{name}", b"", "GET"), query=query)
                yield "http", self.over_http(request)
        yield "agent", self.in_process(who, name, sent)

    def over_mcp(self, served: Served, request: Request) -> Seen:
        before = len(served.ran)
        told = told_by_mcp(served.send(request))
        return Seen(told, as_anywhere(served.audit[-1]), tuple(served.ran[before:]))

    def over_http(self, request: Request) -> Seen:
        before = len(self.flat.ran)
        answer = self.flat.send(request)
        event = as_anywhere(self.flat.audit[-1])
        if event is not None:
            assert answer.status == STATUS.get(event.outcome, FAILED.get(event.code or ""))
        return Seen(told_by_http(answer), event, tuple(self.flat.ran[before:]))

    def in_process(self, who: int, name: str, sent: Mapping[str, object]) -> Seen:
        before = len(self.flat.ran)
        self.flat.invoke(principal(self.everybody[who]), name, sent)
        event = as_anywhere(self.flat.audit[-1])
        assert event is not None
        shown = event.outcome if event.outcome in ("ok", "hidden", "scope-denied") else "refused"
        return Seen((shown, event.code), event, tuple(self.flat.ran[before:]))

    def queried(self, name: str, sent: Mapping[str, object]) -> str | None:
        """The arguments as a query string, if this is a query and they are of the types it declares."""
        tool = self.tool(name)
        if tool is None or tool.kind not in ("query", "single"):
            return None
        kinds: dict[str, type[Any]] = {each.name: str if each.kind == "str" else int for each in tool.fields}
        if any(type(value) is not kinds.get(key, str) for key, value in sent.items()):
            return None
        return urlencode({key: str(value) for key, value in sent.items()})


def walk() -> None:
    """Every caller, every name, every argument, through every door."""
    doors = Doors(DENSE, CALLERS)
    for who in range(len(CALLERS)):
        for name in (*(tool.name for tool in DENSE.tools), "absent", "READDOC"):
            for sent in SENT:
                doors.compare(who, name, sent)


def test_every_door_of_a_dense_world_gives_the_one_outcome_of_the_rules() -> None:
    walk()


def test_a_query_string_is_one_of_the_doors() -> None:
    """Or the walk would not compare it."""
    doors = Doors(DENSE, CALLERS)
    assert [doors.queried("a.b", sent) is not None for sent in SENT].count(True) >= 5
    assert doors.queried("readDoc", SENT[0]) is None


@given(worlds(), callers, traces)
def test_every_door_gives_one_outcome(world: World, everybody: tuple[Caller, ...], trace: Trace) -> None:
    doors = Doors(world, everybody)
    for who, name, sent in trace:
        doors.compare(who, name, sent)
