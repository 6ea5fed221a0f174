"""Limits tell nothing: what a caller may still send follows from what it sent, and never from what is hidden.

The two worlds of `two_worlds.py`, with rates and OAuth declared. What a request costs is taken from
`rules.py`, what is left is added up here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from nonsuch import Limits, MemoryRateStore, Rate, asgi, oauth
from nonsuch.adapters.mcp.oauth import protected
from nonsuch.kernel.meter import NS

from .. import rules
from ..rules import Caller, Everyone
from ..world import HOST, MODERN, NOON, REVISIONS, Answer, Request, World, call, http, mcp
from .two_worlds import HIDDEN_NAMES, HIGH, LOW, VISIBLE, Two, absent

LIMITS: Final = Limits(Rate(4, 20), Rate(3, 30), Rate(4, 40))
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
ISSUER: Final = "https://login.example"
VISIBLE_NAMES: Final = tuple(tool.name for tool in VISIBLE)
HERE, ELSEWHERE, GUESSING = "127.0.0.1", "192.0.2.9", "192.0.2.8"


@dataclass(slots=True)
class Left:
    """What is left of one allowance: a request takes one, and time gives back."""

    rate: Rate
    used: Fraction = Fraction(0)

    def drip(self, seconds: int) -> None:
        """Time goes by."""
        self.used = max(Fraction(0), self.used - Fraction(seconds * self.rate.limit, self.rate.seconds))

    @property
    def wait(self) -> int:
        """How many seconds until there is one; none, if there is."""
        lacking = max(Fraction(0), self.used + 1 - self.rate.limit)
        return ceil(lacking * self.rate.seconds / self.rate.limit)

    def spend(self) -> int:
        """Take one, if there is one; return how long to wait."""
        wait = self.wait
        self.used += 0 if wait else 1
        return wait


class Limited:
    """The two worlds, one clock for both, and what everybody has left."""

    def __init__(self, visible: Iterable[str], hidden: Iterable[str], *, scoped: bool) -> None:
        self.two = Two(visible, hidden, scoped=scoped)
        self.now, self.address = 10**18, HERE
        self.left: dict[tuple[str, bool], Left] = {}
        self.failed = Left(LIMITS.unauthenticated)
        for world in (self.two.a, self.two.b):
            self._limit(world)

    def _limit(self, world: World) -> None:
        """Serve a world with rates and OAuth, as if `define_app_mcp` had been told of them."""
        app = world.app
        door = dataclasses.replace(app.mcp.door, rates=LIMITS)
        shown = protected(oauth([ISSUER]), app.kernel.catalog, app.path)
        world.app = dataclasses.replace(
            app,
            mcp=dataclasses.replace(app.mcp, door=door, protected=shown),
            http=dataclasses.replace(app.http, door=door),
            rate_store=MemoryRateStore(lambda: self.now),
        )
        serve = asgi(world.app, lambda: NOON)

        async def served(scope: Any, receive: Any, send: Any) -> None:
            await serve({**scope, "client": (self.address, 50_000)}, receive, send)

        world.serve = served

    def later(self, seconds: int) -> None:
        """Move the clock."""
        self.now += seconds * NS
        for each in (*self.left.values(), self.failed):
            each.drip(seconds)

    # what must come of a request

    def reads(self, caller: Caller, called: str, surface: rules.Surface) -> bool:
        """Whether a call is a read: of what its caller sees there, and what is declared to change nothing."""
        seen = [tool for tool in self.two.a.declared.tools if rules.sees(tool, caller, surface)]
        return any(
            (tool.path if surface == "http" else tool.name) == called and tool.kind in ("query", "single")
            for tool in seen
        )

    def must_wait(self, token: str | None, surface: rules.Surface, *, read: bool) -> int:
        """How long a request of a low caller's must wait, after all that was sent; no time if it passes."""
        if self.failed.wait:
            return self.failed.wait
        if token is None:  # who shows nothing has failed at nothing
            return 0
        caller = self.two.low.get(token)
        if caller is None or (surface == "mcp" and caller.kind == "human"):
            self.failed.spend()
            return 0
        rate = LIMITS.read if read else LIMITS.write
        return self.left.setdefault((caller.id, read), Left(rate)).spend()

    def same(self, request: Request, wait: int) -> Answer:
        """Send to both worlds: one answer, which is a refusal of the meter exactly when it must be one."""
        answer = self.two.same(request)
        told = {name.decode(): value.decode() for name, value in answer.headers}
        assert answer.status == 429 if wait else answer.status != 429, (request, answer)
        assert told.get("retry-after") == (str(wait) if wait else None)
        return answer

    # low actions: in both worlds

    def call(self, token: str | None, name: str, revision: str, ident: object = 1) -> Answer:
        """Call over MCP; without an id nothing runs, and it is a write."""
        caller = None if token is None else self.two.low.get(token)
        read = caller is not None and ident is not None and self.reads(caller, name, "mcp")
        wait = self.must_wait(token, "mcp", read=read)
        return self.same(call(token, revision, name, {"id": "d1"}, ident), wait)

    def post(self, token: str | None, path: str) -> Answer:
        """Call over HTTP."""
        caller = None if token is None else self.two.low.get(token)
        read = caller is not None and self.reads(caller, path, "http")
        return self.same(http(token, path, {"id": "d1"}), self.must_wait(token, "http", read=read))

    def look(self, token: str | None, method: str, revision: str) -> Answer:
        """Ask for what names no tool."""
        wait = self.must_wait(token, "mcp", read=True)
        return self.same(mcp(token, revision, method, {"uri": "world://docs"}), wait)

    def everywhere(self, token: str | None, name: str) -> None:
        """One name through every door."""
        for revision in REVISIONS:
            self.call(token, name, revision)
            self.call(token, name, revision, None)
        for path in self.two.paths(name):
            self.post(token, path)

    def drained(self, token: str) -> list[int]:
        """Use up what is left of both allowances; how much that was."""
        found: list[int] = []
        for name in ("listDocs", absent("listDocs")):
            passed = 0
            while self.call(token, name, MODERN).status != 429:
                passed += 1
            found.append(passed)
        return found

    def documents(self) -> None:
        """What is served to nobody in particular: the scopes of tools that everybody sees, and no others."""
        answers = [self.two.same(Request("GET", path, (HOST,))) for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp")]
        assert answers[0] == answers[1]
        world = self.two.a.declared
        open_to_all = {tool.name for tool in world.tools if tool.exposed and tool.audience == Everyone()}
        scopes = [scope for scope, names in (world.scopes or {}).items() if not open_to_all.isdisjoint(names)]
        assert answers[0].value.get("scopes_supported", []) == sorted(scopes)

    # high actions: in A only, from other addresses

    def burst(self, token: str, names: Sequence[str]) -> None:
        """Others use what is hidden, until they have nothing left, and somebody guesses tokens."""
        for _ in range(LIMITS.read.limit + 1):
            for name in names:
                self._in_a(ELSEWHERE, call(token, MODERN, name, {"id": "d1"}))
                self._in_a(GUESSING, call("a guess", MODERN, name, {"id": "d1"}))
                for path in self.two.paths(name):
                    self._in_a(ELSEWHERE, http(token, path, {"id": "d1"}))

    def _in_a(self, address: str, request: Request) -> None:
        self.address = address
        self.two.a.send(request)
        self.address = HERE


# chance

_tokens: Final = st.sampled_from((*LOW, None, "bogus"))
_agents: Final = st.sampled_from([token for token, caller in LOW.items() if caller.kind == "agent"])
_names: Final = st.sampled_from((*HIDDEN_NAMES, *VISIBLE_NAMES, *(absent(name) for name in HIDDEN_NAMES)))
_revisions: Final = st.sampled_from(REVISIONS)
_methods: Final = st.sampled_from(("tools/list", "resources/read", "prompts/list", "nothing"))


class LimitsTellNothing(RuleBasedStateMachine):
    """Random traces over the two worlds, with directed rules for what is left."""

    held: Limited

    @initialize(
        visible=st.sets(st.sampled_from(VISIBLE_NAMES), min_size=2),
        hidden=st.sets(st.sampled_from(HIDDEN_NAMES), min_size=1),
        scoped=st.booleans(),
    )
    def start(self, visible: set[str], hidden: set[str], *, scoped: bool) -> None:
        self.held = Limited(sorted(visible), sorted(hidden), scoped=scoped)

    @rule(token=_tokens, name=_names, revision=_revisions, ident=st.sampled_from((0, "x", None)))
    def low_calls(self, token: str | None, name: str, revision: str, ident: object) -> None:
        self.held.call(token, name, revision, ident)

    @rule(token=_tokens, name=_names)
    def low_goes_everywhere(self, token: str | None, name: str) -> None:
        self.held.everywhere(token, name)

    @rule(token=_tokens, method=_methods, revision=_revisions)
    def low_looks(self, token: str | None, method: str, revision: str) -> None:
        self.held.look(token, method, revision)

    @rule(token=_agents, name=_names, times=st.integers(1, 5))
    def low_calls_and_counts_what_is_left(self, token: str, name: str, times: int) -> None:
        self.held.later(60)
        for _ in range(times):
            self.held.call(token, name, MODERN)
        self.held.drained(token)

    @rule(token=st.sampled_from((*HIGH, "swing")), names=st.lists(st.sampled_from(HIDDEN_NAMES), max_size=2))
    def others_use_the_hidden(self, token: str, names: list[str]) -> None:
        self.held.burst(token, names)

    @rule(seconds=st.sampled_from((1, 4, 5, 10, 11, 60)))
    def time_goes_by(self, seconds: int) -> None:
        self.held.later(seconds)

    @rule()
    def everybody_reads_the_documents(self) -> None:
        self.held.documents()

    @rule()
    def somebody_is_demoted(self) -> None:
        self.held.two.demote()
        self.held.left.pop(("swing", True), None)
        self.held.left.pop(("swing", False), None)
        self.held.later(60)


TestLimitsTellNothing = LimitsTellNothing.TestCase
TestLimitsTellNothing.settings = settings(max_examples=max(settings().max_examples // 2, 1))


# no chance: one walk past every way to learn something


def walk(tokens: Sequence[str], names: Sequence[str]) -> None:
    """Each name by each caller, fresh and after others were busy, and what is left then."""
    for name in names:
        held = Limited(VISIBLE_NAMES, HIDDEN_NAMES, scoped=True)
        held.burst("root", [name])
        for token in tokens:
            for revision in REVISIONS[1:]:
                held.call(token, name, revision)
            full = [LIMITS.read.limit, LIMITS.write.limit - 2]
            assert held.drained(token) == full, (token, name)
            held.everywhere(token, name)
            held.later(60)
            for path in held.two.paths(name):
                held.post(token, path)
            for seen in ("writeDoc", "listDocs"):
                held.call(token, seen, MODERN)
            held.drained(token)
            held.later(60)
        for _ in range(LIMITS.unauthenticated.limit + 1):
            held.call(None, name, MODERN)
        for _ in range(LIMITS.unauthenticated.limit):
            held.call("bogus", name, MODERN)
            held.later(1)
        held.call(tokens[0], name, MODERN)
        held.later(60)
        held.documents()


def test_a_walk_past_every_hidden_name_leaves_everybody_what_an_absent_one_leaves() -> None:
    walk(("edit", "none", "over"), HIDDEN_NAMES)


def test_the_hidden_are_billed_as_what_they_are_to_those_who_see_them() -> None:
    held = Limited(VISIBLE_NAMES, HIDDEN_NAMES, scoped=True)
    seen = [held.two.a.send(call("root", MODERN, "aaaFirst", {})).status for _ in range(5)]
    assert seen == [200] * 4 + [429]
    seen = [held.two.a.send(call("root", MODERN, "readDocs", {"id": "d1"})).status for _ in range(4)]
    assert seen == [200] * 3 + [429]


@pytest.mark.parametrize("others", [3, 30])
def test_what_others_send_takes_nothing(others: int) -> None:
    held = Limited(VISIBLE_NAMES, HIDDEN_NAMES, scoped=True)
    for name in VISIBLE_NAMES[:others]:
        held.two.shared("root", name, {"id": "d1"})
    held.burst("root", HIDDEN_NAMES)
    for token in ("edit", "none", "part", "over"):
        assert held.drained(token) == [LIMITS.read.limit, LIMITS.write.limit]
