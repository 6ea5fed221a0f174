"""A reload is whole: every answer is one of the old set or one of the new, never of both.

A request keeps the set that it began with, the next one has the new; a set with a fault changes nothing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections import Counter
from collections.abc import Callable, MutableMapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nonsuch import App, asgi
from nonsuch import grant as granted
from nonsuch.adapters.edge.reload import Reloaded, reload_policies
from nonsuch.kernel.declare import Grant
from nonsuch.kernel.model import Call, Outcome
from nonsuch.kernel.steps import Step, Steps

from ..rules import Caller
from ..world import MODERN, Request, call, http, mcp, principal, scope_of
from . import plain_policies as plain
from . import shelf
from .drawn_policies import callers, given_arguments, rows, sets, tools
from .plain_policies import Came, GateLine, Given, Head, Line, Row, Set, Tool

Name = Literal["a", "b"]

# one permits and hides from r2, the other forbids and hides from r1: any mix of two gates would show

_EVERYTHING: Final = Line("", "permit", Head(), ("any",), False, Head())
_STOP: Final = dataclasses.replace(_EVERYTHING, id="b.stop", effect="forbid")


def _hides(name: str, role: str) -> GateLine:
    return GateLine(f"{name}.hides", "forbid", "see", Head("in", entity=("Role", role)), None)


SETS: Final[dict[Name, Set]] = {
    "a": Set((dataclasses.replace(_EVERYTHING, id="a.permit"),), (_hides("a", "r2"),)),
    "b": Set((dataclasses.replace(_EVERYTHING, id="b.permit"), _STOP), (_hides("b", "r1"),)),
}
_BOTH: Final = frozenset({"docs", "app"})
CALLERS: Final = {
    "first": Caller("first", "agent", frozenset({"r1"}), None, _BOTH),
    "second": Caller("second", "agent", frozenset({"r2"}), None, _BOTH),
    "third": Caller("third", "agent", frozenset({"r3"}), None, _BOTH),
}


class Switch:
    """An app whose policy directory is a link, moved from one directory to another at once."""

    def __init__(self, at: Path, held: dict[Name, Set], **given: Any) -> None:
        self.at, self.link, self.now = at, at / "now", "a"
        for name, each in held.items():
            (at / name).mkdir()
            (at / name / "own.cedar").write_text(each.text)
        self.turn("a")
        tokens = {token: principal(caller) for token, caller in CALLERS.items()}
        self.app = shelf.shelf(policies_dir=self.link, resolve_token=tokens.get, **given)

    def turn(self, name: str) -> None:
        """Move the link."""
        following = self.at / "next"
        following.symlink_to(self.at / name)
        following.replace(self.link)
        self.now = name

    def reload(self, name: str) -> Reloaded:
        """Move the link and have the app read it."""
        self.turn(name)
        return reload_policies(self.app)


def begun(app: App, caller: Caller, name: str, given_arguments: Given) -> Steps[Outcome]:
    """A request whose view was decided."""
    kernel = app.kernel
    return kernel.invoke(kernel.view_for(principal(caller)), Call(name, shelf.sent(given_arguments), "agent"))


def outcome(app: App, caller: Caller, name: str, row: Row, pause: Callable[[], None]) -> Came:
    """What comes of a call that pauses at each step."""
    answer = shelf.world_of(shelf.doc(row))

    def slowly(step: Step) -> Any:
        pause()
        return answer(step)

    return shelf.came(caller, name, shelf.drive(begun(app, caller, name, Given()), slowly))


# every interleaving of requests and reloads, without threads

_question: Final = st.tuples(callers, tools, rows, given_arguments)
_moves: Final = st.lists(st.sampled_from(("begin", "begin", "step", "turn")), min_size=12, max_size=20)
Flight = tuple[Steps[Outcome], Step | None, Caller, Tool, Row, Came]


@settings(max_examples=max(settings().max_examples // 3, 1))
@given(sets(5, 3, "a"), sets(5, 3, "b"), st.lists(_question, min_size=10, max_size=12), _moves)
def test_a_request_is_judged_by_the_set_it_began_with(
    a: Set, b: Set, asked: list[tuple[Caller, Tool, Row, Given]], moves: list[str]
) -> None:
    with TemporaryDirectory() as at:
        held: dict[Name, Set] = {"a": a, "b": b}
        switch, now = Switch(Path(at), held), a
        left, flying = list(asked), list[Flight]()
        for move in [*moves, *["begin"] * len(asked)]:
            if move == "turn":
                now = b if now is a else a
                assert switch.reload("b" if now is b else "a").taken
            elif move == "begin" and left:
                caller, tool, row, arguments = left.pop()
                expected = plain.comes_of(now, caller, tool.name, arguments, row)
                steps = begun(switch.app, caller, tool.name, arguments)
                flying.append((steps, None, caller, tool, row, expected))
            elif flying:
                _step(flying, flying.pop(0))
        while flying:
            _step(flying, flying.pop(0))


def _step(flying: list[Flight], flight: Flight) -> None:
    steps, step, caller, tool, row, expected = flight
    try:
        world = shelf.world_of(shelf.doc(row))
        following = next(steps) if step is None else steps.send(world(step))
    except StopIteration as done:
        told: Outcome = done.value
    else:
        flying.append((steps, following, caller, tool, row, expected))
        return
    assert shelf.came(caller, tool.name, told) == expected


# threads, while the sets are exchanged

THREADS: Final = 4
TURNS: Final = 40
ROW: Final = Row("d1")


def alone(name: Name, caller: Caller, tool: str) -> Came:
    """What one set alone answers."""
    return plain.comes_of(SETS[name], caller, tool, Given(), ROW)


@dataclasses.dataclass(slots=True)
class Storm:
    """What the threads met. ``turn`` is odd while a reload is under way, and else says what is in force."""

    turn: int = 0
    over: bool = False
    met: Counter[tuple[str, str, Came]] = dataclasses.field(default_factory=Counter[tuple[str, str, Came]])
    stale: list[str] = dataclasses.field(default_factory=list[str])
    raised: list[BaseException] = dataclasses.field(default_factory=list[BaseException])

    def blow(self, app: App, number: int) -> None:
        """Call until it is over."""
        try:
            while not self.over:
                for token, caller in CALLERS.items():
                    before = self.turn
                    told = outcome(app, caller, "look", ROW, lambda: time.sleep(0.0001 * number))
                    self.met[(token, "look", told)] += 1
                    name: Name = "a" if before % 4 == 0 else "b"
                    if before == self.turn and before % 2 == 0 and told != alone(name, caller, "look"):
                        self.stale.append(f"{token} met {told} in turn {before}")
        except BaseException as fault:  # noqa: BLE001 - told to the test, which raises it
            self.raised.append(fault)


def test_no_thread_meets_a_mix_while_sets_are_exchanged() -> None:
    with TemporaryDirectory() as at:
        switch, storm = Switch(Path(at), SETS), Storm()
        threads = [threading.Thread(target=storm.blow, args=(switch.app, each)) for each in range(THREADS)]
        for thread in threads:
            thread.start()
        for turn in range(TURNS):
            name: Name = "a" if turn % 2 else "b"
            storm.turn += 1
            assert switch.reload(name).taken
            storm.turn += 1
            for caller in CALLERS.values():  # the next request that begins has the new set
                assert outcome(switch.app, caller, "look", ROW, lambda: None) == alone(name, caller, "look")
            time.sleep(0.002)
        storm.over = True
        for thread in threads:
            thread.join()
    assert storm.raised == []
    assert storm.stale == []
    for token, tool, told in storm.met:
        assert told in {alone("a", CALLERS[token], tool), alone("b", CALLERS[token], tool)}
    assert {told.outcome for _, _, told in storm.met} == {"ok", "hidden", "policy-denied"}


# the wires, on one event loop

Heard = tuple[int, bytes]
REQUESTS: Final[tuple[Request, ...]] = tuple(
    request
    for token in CALLERS
    for request in (
        http(token, "look", {"id": "d1"}),
        http(token, "use", {"id": "d1"}),
        call(token, MODERN, "look", {"id": "d2"}),
        call(token, MODERN, "use", {"id": "d1"}),
        mcp(token, MODERN, "tools/list"),
    )
)


async def heard(serve: Any, request: Request) -> Heard:
    """Serve one request and return what left."""
    messages: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        messages.append(message)

    await serve(scope_of(request), receive, send)
    return messages[0]["status"], b"".join(each.get("body", b"") for each in messages[1:])


async def answers(app: App) -> list[Heard]:
    """What an app answers to each request."""
    return [await heard(asgi(app), request) for request in REQUESTS]


async def _traffic(switch: Switch, rounds: int) -> list[tuple[int, Heard]]:
    serve, met = asgi(switch.app), list[tuple[int, Heard]]()

    async def ask(at: int) -> None:
        met.append((at, await heard(serve, REQUESTS[at])))

    async def turn() -> None:
        turns = 0
        while turns < 6 or len(met) <= 100:  # a machine that reloads fast is asked more often
            assert (await asyncio.to_thread(switch.reload, "ba"[turns % 2])).taken
            turns += 1

    turning = asyncio.create_task(turn())
    for _ in range(rounds):
        await asyncio.gather(*(ask(at) for at in range(len(REQUESTS))))
        if turning.done():
            break
    await turning
    return met


def test_no_answer_on_a_wire_is_a_mix() -> None:
    with TemporaryDirectory() as at:
        switch = Switch(Path(at), SETS)
        of_a = asyncio.run(answers(switch.app))
        assert switch.reload("b").taken
        of_b = asyncio.run(answers(switch.app))
        assert switch.reload("a").taken
        met = asyncio.run(_traffic(switch, 4_000))
    assert len(met) > 100
    assert all(told in (of_a[at], of_b[at]) for at, told in met)
    assert {at for at, told in met if told == of_a[at]} == {at for at, told in met if told == of_b[at]}
    assert of_a != of_b


# what a reload takes, and what it does not


def test_a_revoked_grant_is_refused_by_the_next_request() -> None:
    held = [granted("r3", "app:use")]
    app = shelf.shelf(grant_sources=[lambda: list(held)])
    use, caller = CALLERS["third"], "use"
    assert outcome(app, use, caller, ROW, lambda: None).outcome == "ok"
    waiting = begun(app, use, caller, Given())
    held.clear()
    assert reload_policies(app).taken
    assert outcome(app, use, caller, ROW, lambda: None) == Came("policy-denied", "X_FORBIDDEN")
    assert shelf.came(use, caller, shelf.drive(waiting, shelf.world_of(None))).outcome == "ok"


def test_a_grant_that_comes_back_is_permitted_again() -> None:
    held = list[Grant]()
    app = shelf.shelf(grant_sources=[lambda: list(held)])
    seen: list[str] = []
    for _ in range(3):
        seen.append(outcome(app, CALLERS["third"], "use", ROW, lambda: None).outcome)
        held[:] = [] if held else [granted("r3", "app:use")]
        assert reload_policies(app).taken
    assert seen == ["policy-denied", "ok", "policy-denied"]


def _failing() -> list[Grant]:
    raise ConnectionError("the database is away")


BROKEN: Final = {
    "one.cedar": 'permit (principal, action == Action::"use", resource',
    "two.cedar": "permit (principal, action, resource);",
    "three.cedar": 'permit (principal, action == Action::"no-such-tool", resource);',
    "four.cedar": '@id("nonsuch.scope.token") permit (principal, action == Action::"use", resource);',
    "five.links.json": "[",
    "six.cedarschema": 'action "mine";',
    "seven.cedar": "permit (principal, action, resource) when { " + "(" * 40 + "1 == 1" + ")" * 40 + " };",
}


def test_a_broken_directory_keeps_the_set_and_says_every_fault() -> None:
    with TemporaryDirectory() as at:
        sources: list[Callable[[], list[Grant]]] = [list]
        switch = Switch(Path(at), SETS, grant_sources=[lambda: sources[0]()])
        (Path(at) / "broken").mkdir()
        for name, text in BROKEN.items():
            (Path(at) / "broken" / name).write_text(text)
        sources[0] = _failing
        judge = switch.app.kernel.judge
        told = switch.reload("broken")
        assert not told.taken
        assert sorted((each.code, each.where.partition(":")[0]) for each in told.faults) == [
            ("X_POLICY_ACTION_UNKNOWN", "three.cedar"),
            ("X_POLICY_HEAD_UNCONFINED", "two.cedar"),
            ("X_POLICY_ID_DUPLICATE", "four.cedar"),
            ("X_POLICY_LINK_INVALID", "five.links.json"),
            ("X_POLICY_SCHEMA_INVALID", "six.cedarschema"),
            ("X_POLICY_SOURCE_FAILED", ""),
            ("X_POLICY_SYNTAX", "one.cedar"),
            ("X_POLICY_TOO_DEEP", "seven.cedar"),
        ]
        assert switch.app.kernel.judge is judge
        for caller in CALLERS.values():
            assert outcome(switch.app, caller, "look", ROW, lambda: None) == alone("a", caller, "look")
        sources[0] = list
        assert switch.reload("b").taken
        for caller in CALLERS.values():
            assert outcome(switch.app, caller, "look", ROW, lambda: None) == alone("b", caller, "look")


def test_a_directory_that_moves_while_it_is_read_is_no_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    """The link of a deployment is moved between two files: one set or the other, or neither."""
    rest = '(principal, action == Action::"use", resource);'
    texts = {
        "a": {"1.cedar": f'@id("a.permit") permit {rest}', "2.cedar": f'@id("a.stop") forbid {rest}'},
        "b": {"1.cedar": f'@id("b.stop") forbid {rest}', "2.cedar": f'@id("b.permit") permit {rest}'},
    }
    with TemporaryDirectory() as at:
        switch = Switch(Path(at), {"a": Set(), "b": Set()})
        for name, files in texts.items():
            for file, text in files.items():
                (Path(at) / name / file).write_text(text)
        read = Path.read_text

        def moving(self: Path, *arguments: Any, **named: Any) -> str:
            text = read(self, *arguments, **named)
            if self.name == "1.cedar" and switch.now == "a":
                switch.turn("b")
            return text

        monkeypatch.setattr(Path, "read_text", moving)
        reload_policies(switch.app)
        taken = {each for each in switch.app.kernel.judge.annotations if each[:2] in ("a.", "b.")}
    assert taken in ({"a.permit", "a.stop"}, {"b.permit", "b.stop"}, set())
