"""A keyed call runs once: whatever anybody does between, over any surface, every answer is the rules' answer.

A replay is the first answer byte for byte; it goes to its own caller alone, for the same input alone, and to
nobody whose right is gone.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, Final, cast

from hypothesis import given
from hypothesis import strategies as st

from nonsuch import MemoryIdempotencyStore
from nonsuch.kernel.audit import ToolCall
from nonsuch.kernel.model import Failed, Ok

from ..replay_rules import Ledger, Told
from ..rules import Caller, Roles, Row, Rule, SameOrg, Surface, Tool, Twice, World
from ..world import MODERN, REVISIONS, Answer, call, http, manage, principal
from ..world import World as Served
from . import drawn

GROUP: Final = "all"
KEYS: Final = ("k", "l", "", "k" * 256, 7)
KEY_HEADER: Final = "idempotency-key"


def keyed(world: World) -> World:
    """The world with every action taking keys."""
    tools = tuple(dataclasses.replace(tool, keyed=tool.kind == "action") for tool in world.tools)
    rows = {kind: dict(held) for kind, held in world.rows.items()}
    return dataclasses.replace(world, tools=tools, rows=rows)


class Bench:
    """Two apps over one world and one store, flat and by the constant surface, and the rules beside them."""

    def __init__(self, world: World, everybody: list[Caller]) -> None:
        self.world, self.everybody, self.ledger = keyed(world), list(everybody), Ledger()
        tokens = {str(at): principal(each) for at, each in enumerate(everybody)}
        names = tuple(tool.name for tool in world.tools if tool.exposed)
        store, ran = MemoryIdempotencyStore(), list[tuple[str, str]]()
        self.flat = Served(self.world, tokens, keys=store, ran=ran)
        self.meta = Served(self.world, tokens, {GROUP: names} if names else None, keys=store, ran=ran)
        self.answers: dict[int, bytes] = {}

    # what is done

    def flip(self, kind: str, row: str) -> None:
        """Something changes a row, as the action itself may."""
        rows = cast("dict[str, Row]", self.world.rows.get(kind, {}))
        if row in rows:
            rows[row] = dataclasses.replace(rows[row], published=not rows[row].published)

    def change(self, who: int, roles: frozenset[str]) -> None:
        """A caller comes back with other roles."""
        self.everybody[who] = dataclasses.replace(self.everybody[who], roles=roles)
        for served in (self.flat, self.meta):
            served.tokens[str(who)] = principal(self.everybody[who])

    def ask(self, door: str, who: int, name: str, given: dict[str, object], key: object) -> None:
        """Make one call by one door; it must end as the rules say."""
        doors: dict[str, Callable[..., None]] = {
            "http": self._http,
            "mcp": self._mcp,
            "meta": self._meta,
            "agent": self._agent,
        }
        given = {each: value for each, value in given.items() if each != "idempotencyKey"}
        doors[door](who, name, given, key)

    def _told(self, who: int, surface: Surface, name: str, given: dict[str, object], key: object) -> Told:
        return self.ledger.call(self.world, self.everybody[who], surface, name, given, key)

    def _http(self, who: int, name: str, given: dict[str, object], key: object) -> None:
        key = str(key) if isinstance(key, int) else key  # a header is text
        if not name.isascii():
            return
        told = self._told(who, "http", f"do/{name}", given, key)
        request = http(str(who), f"do/{name}", given)
        if key is not None:
            sent = "" if key == "" else f'"{key}"'
            request = dataclasses.replace(request, headers=(*request.headers, (KEY_HEADER, sent)))
        answer = self.flat.send(request)
        body = None if answer.status != 200 else answer.body
        code = None if answer.status == 200 else answer.value["code"]
        self._seen(told, code, body, self.flat)

    def _mcp(self, who: int, name: str, given: dict[str, object], key: object) -> None:
        told = self._told(who, "mcp", name, given, key)
        sent = given if key is None else {**given, "idempotencyKey": key}
        revision = REVISIONS[len(name) % 3]
        self._over_mcp(told, self.flat.send(call(str(who), revision, name, sent)), self.flat)

    def _meta(self, who: int, name: str, given: dict[str, object], key: object) -> None:
        told = self._told(who, "mcp", name, given, key)
        if self.meta.grouped is None:
            return
        sent = given if key is None else {**given, "idempotencyKey": key}
        self._over_mcp(told, self.meta.send(manage(str(who), MODERN, GROUP, name, sent)), self.meta)

    def _over_mcp(self, told: Told, answer: Answer, served: Served) -> None:
        value = answer.value
        if "error" in value:
            data = value["error"].get("data")
            self._seen(told, "X_MCP_TOOL_UNKNOWN" if data is None else data["code"], None, served)
            return
        text: str = value["result"]["content"][0]["text"]
        if value["result"].get("isError"):
            self._seen(told, text.partition(":")[0], None, served)
        else:
            self._seen(told, None, text.encode(), served)

    def _agent(self, who: int, name: str, given: dict[str, object], key: object) -> None:
        told = self._told(who, "agent", name, given, key)
        sent = given if key is None else {**given, "idempotencyKey": key}
        outcome = self.flat.invoke(principal(self.everybody[who]), name, sent)
        if isinstance(outcome, (Ok, Failed)):
            assert outcome.replayed is told.replayed
        body = outcome.json if isinstance(outcome, Ok) else None
        self._seen(told, cast("ToolCall", self.flat.audit[-1]).code, body, self.flat)

    # what is held against the rules

    def _seen(self, told: Told, code: str | None, body: bytes | None, served: Served) -> None:
        verdict = told.verdict
        aliases = {"X_ROUTE_NOT_FOUND": "X_MCP_TOOL_UNKNOWN"}
        assert aliases.get(code or "", code) == aliases.get(verdict.code or "", verdict.code)
        assert len(self.flat.ran) == self.ledger.runs
        if verdict.outcome == "unauthenticated":
            return
        event = served.audit[-1]
        assert isinstance(event, ToolCall)
        assert (event.outcome, event.replayed or False) == (verdict.outcome, told.replayed)
        if body is not None:
            assert told.run is not None
            plain = json.dumps(rows_of(body), sort_keys=True).encode()
            assert self.answers.setdefault(told.run, plain) == plain


def rows_of(body: bytes) -> Any:
    """An answer's value: MCP wraps rows, HTTP does not."""
    value: Any = json.loads(body)
    return value["rows"] if type(value) is dict and "rows" in value else value  # pyright: ignore[reportUnknownVariableType]  # JSON


# one dense trace

_EDITOR: Final = frozenset({"editor"})
_PAULA: Final = Caller("paula", "human", _EDITOR, "acme", None)
DENSE: Final = World(
    tools=(
        Tool(
            "publish", "do/publish", "action", True, Roles(("editor",)), "doc:write", "Doc", drawn.ARGUMENTS
        ),
        Tool("refuse", "do/refuse", "action", True, permission="app:use", behaves="refuses"),
        Tool("crash", "do/crash", "action", True, permission="app:use", behaves="raises"),
        Tool("read", "do/read", "query", True, permission="app:use", arguments=drawn.ARGUMENTS),
    ),
    scopes={"docs": ("publish", "refuse", "crash", "read")},
    grants=(("editor", "app:use"),),
    rules=(
        Rule("permit", "doc:write", SameOrg(), "editor"),
        Rule("forbid", "doc:write", Twice("amount", 100), code="X_STOP"),
    ),
    rows={"Doc": {"r0": Row("acme"), "r1": Row("hq")}},
)
PEOPLE: Final = (
    Caller("own", "agent", _EDITOR, "acme", frozenset({"docs"})),
    Caller("own", "agent", _EDITOR, "acme", frozenset({"docs"}), _PAULA),
    Caller("short", "agent", _EDITOR, "acme"),
    _PAULA,
)
DOORS: Final = ("http", "mcp", "meta", "agent")


def walk() -> None:
    """Every door after every other, with keys of every kind, while rows and rights change."""
    bench = Bench(DENSE, list(PEOPLE))
    sent: list[dict[str, object]] = [{"id": "r0"}, {"id": "r0", "amount": 3}, {"id": "r0", "amount": 3.0}]
    for first in DOORS:
        for second in DOORS:
            key = f"{first} {second}"
            for who in range(len(PEOPLE)):
                bench.ask(first, who, "publish", sent[0], key)
                bench.ask(second, who, "publish", sent[0], key)
                bench.ask(second, who, "publish", sent[1], key)
                bench.ask(second, who, "publish", {"id": "r1"}, key)
            for name in ("refuse", "crash", "read", "absent"):
                bench.ask(first, 0, name, {}, key)
                bench.ask(second, 0, name, {}, key)
    for door in DOORS:
        for any_key in KEYS:
            bench.ask(door, 0, "publish", sent[1], any_key)
            bench.ask(door, 0, "publish", sent[2], any_key)
    bench.flip("Doc", "r0")
    for roles in (frozenset[str](), frozenset({"viewer"}), _EDITOR):
        bench.change(0, roles)
        for door in DOORS:
            bench.ask(door, 0, "publish", sent[0], "http mcp")
            bench.ask(door, 0, "refuse", {}, "http mcp")
            bench.ask(door, 0, "publish", sent[0], f"fresh {door}")


def test_a_dense_trace_ends_as_the_rules_say() -> None:
    walk()


def test_the_walk_reaches_what_it_is_for() -> None:
    """Replays, conflicts and denials of every kind come up, or the walk would prove nothing."""
    seen: list[Told] = []

    class Watching(Ledger):
        def call(self, *given: Any, **named: Any) -> Told:
            seen.append(super().call(*given, **named))
            return seen[-1]

    bench = Bench(DENSE, list(PEOPLE))
    bench.ledger = Watching()
    for roles in (_EDITOR, _EDITOR, frozenset[str](), frozenset({"viewer"}), _EDITOR):
        bench.change(0, roles)
        for door in DOORS:
            bench.ask(door, 0, "publish", {"id": "r0"}, "k")
            bench.ask(door, 0, "publish", {"id": "r0", "amount": 1}, "k")
            bench.ask(door, 0, "refuse", {}, "k")
    kinds = {(told.verdict.outcome, told.verdict.code, told.replayed) for told in seen}
    assert kinds >= {
        ("ok", None, False),
        ("ok", None, True),
        ("failed", "X_DEMO", True),
        ("failed", "X_IDEMPOTENCY_CONFLICT", False),
        ("policy-denied", "X_FORBIDDEN", False),
    }


# chance

Op = tuple[Any, ...]
_calls: Final = st.tuples(
    st.sampled_from(DOORS),
    st.integers(0, 2),
    drawn.names,
    drawn.arguments(),
    st.sampled_from(("k", "k", "l", None, *KEYS)),
)
_flips: Final = st.tuples(st.just("flip"), st.sampled_from(("Doc", "Box")), st.sampled_from(("r0", "r1")))
_changes: Final = st.tuples(st.just("change"), st.integers(0, 2), st.frozensets(st.sampled_from(drawn.ROLES)))
ops: Final = st.lists(st.one_of(_calls, _calls, _calls, _flips, _changes), min_size=2, max_size=16)


@given(drawn.worlds(), drawn.callers, ops)
def test_every_keyed_call_ends_as_the_rules_say(
    world: World, everybody: tuple[Caller, ...], trace: list[Op]
) -> None:
    bench = Bench(world, list(everybody))
    for op in trace:
        if op[0] == "flip":
            bench.flip(*op[1:])
        elif op[0] == "change":
            bench.change(*op[1:])
        else:
            bench.ask(*op)
            bench.ask(*op)
