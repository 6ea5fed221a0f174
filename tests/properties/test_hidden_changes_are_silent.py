"""A change of what is hidden is silent: two streams of changes are equal, event by event, in both worlds.

Whatever others do, see, lose or update in the world that has hidden things, and however many listen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nonsuch import Agent

from .. import rules
from ..world import EITHER, MODERN, Request, World, mcp, over, principal, scope_of
from .hidden_content import HIDDEN_CONTENT_NAMES, URIS
from .two_worlds import HIDDEN_NAMES, HIGH, LOW, SWING_AFTER, SWING_BEFORE, VISIBLE, declared

ALL: Final[dict[str, object]] = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": list(URIS),
}
AGENTS: Final = tuple(token for token, caller in LOW.items() if caller.kind == "agent")
TURNS: Final = 12  # of the loop, until nobody has anything left to do


@dataclass(slots=True, eq=False)
class Heard:
    """One open stream: what was sent, in its parts."""

    sent: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] = field(init=False)

    def bytes(self) -> list[object]:
        """The status, the headers in their order, and each part of the body."""
        return [(each.get("status"), each.get("headers"), each.get("body")) for each in self.sent]


def listen(world: World, request: Request) -> Heard:
    """Open a stream."""
    heard, told = Heard(), False

    async def receive() -> dict[str, Any]:
        nonlocal told
        if told:
            await heard.gone.wait()
            return {"type": "http.disconnect"}
        told = True
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Any) -> None:
        heard.sent.append(dict(message))

    work: Coroutine[Any, Any, None] = world.serve(scope_of(request), receive, send)
    heard.task = asyncio.ensure_future(work)
    return heard


class Pair:
    """World A, world B, and the streams that low callers hold in both."""

    def __init__(self) -> None:
        hidden = [*HIDDEN_NAMES, *HIDDEN_CONTENT_NAMES]
        everything = declared([*(tool.name for tool in VISIBLE), *hidden], scoped=True)
        callers = {**LOW, **HIGH, "swing": SWING_BEFORE}
        tokens = {token: principal(caller) for token, caller in callers.items()}
        self.worlds = World(everything, dict(tokens)), World(rules.purge(everything, hidden), dict(tokens))
        self.held: list[tuple[Heard, Heard]] = []

    def open(self, token: str, ident: object) -> None:
        """A low caller listens for everything, in both worlds."""
        request = over(mcp(token, MODERN, "subscriptions/listen", {"notifications": ALL}, ident), EITHER)
        one, other = (listen(world, request) for world in self.worlds)
        self.held.append((one, other))

    def low(self, change: Callable[[World], object]) -> None:
        """Something happens in both worlds."""
        for world in self.worlds:
            change(world)

    def high(self, change: Callable[[World], object]) -> None:
        """Something happens to what is hidden, in the world that has it."""
        change(self.worlds[0])

    async def same(self) -> None:
        """Let everybody finish, and compare all that every low caller was sent."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
        for one, other in self.held:
            assert one.bytes() == other.bytes()
            assert one.task.done() is other.task.done()

    async def close(self) -> None:
        self.low(lambda world: world.app.notify.close())
        await self.same()
        await asyncio.gather(*(each.task for pair in self.held for each in pair))


def told(world: World, uri: str | None) -> None:
    if uri is None:
        world.app.notify.lists_changed()
    else:
        world.app.notify.resource_updated(uri)


HIDDEN_URIS: Final = ("app://guides", "app://aaa", "app://vault/d1", "app://docs/x/d1", "app://nothing")
VISIBLE_URIS: Final = ("app://guide", "app://plans", "app://docs/d1", "app://drafts/d1.txt")


def promoted(world: World) -> None:
    """Somebody sees what it did not see; nobody else does."""
    world.tokens["root2"] = Agent("root2", roles={"staff"}, org="hq")
    world.app.notify.lists_changed()


def demoted(world: World) -> None:
    world.tokens["swing"] = principal(SWING_AFTER)
    world.app.notify.lists_changed()


def of_other_roles(token: str, roles: frozenset[str]) -> Callable[[World], None]:
    """A low caller's token stands for other roles from now on; of those, none opens what is hidden."""

    def change(world: World) -> None:
        world.tokens[token] = principal(replace(LOW[token], roles=roles))
        world.app.notify.lists_changed()

    return change


def revoked(token: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.tokens.pop(token, None)
        world.app.notify.lists_changed()

    return change


# what can happen: where, and what

Action = tuple[str, Any]
_changes: Final = st.one_of(
    st.tuples(st.just("open"), st.tuples(st.sampled_from(AGENTS), st.integers(0, 3))),
    st.tuples(st.just("hidden"), st.sampled_from((*HIDDEN_URIS, None))),
    st.tuples(st.just("hidden"), st.sampled_from((*HIDDEN_URIS, None))),
    st.tuples(st.just("shared"), st.sampled_from((*VISIBLE_URIS, None))),
    st.tuples(
        st.just("roles"), st.tuples(st.sampled_from(AGENTS), st.sets(st.sampled_from(("editor", "viewer"))))
    ),
    st.tuples(st.just("revoked"), st.sampled_from(AGENTS)),
    st.tuples(st.just("promoted"), st.none()),
    st.tuples(st.just("demoted"), st.none()),
    st.tuples(st.just("left"), st.integers(0, 5)),
)


async def play(actions: list[Action]) -> None:
    """Let it all happen, and compare after each step."""
    pair = Pair()
    for token in AGENTS:
        pair.open(token, token)
    for what, how in actions:
        step(pair, what, how)
        await pair.same()
    await pair.close()


def step(pair: Pair, what: str, how: Any) -> None:
    match what:
        case "open":
            pair.open(*how)
        case "hidden":
            pair.high(lambda world: told(world, how))
        case "shared":
            pair.low(lambda world: told(world, how))
        case "roles":
            pair.low(of_other_roles(how[0], frozenset(how[1])))
        case "revoked":
            pair.low(revoked(how))
        case "promoted":
            pair.high(promoted)
        case "demoted":
            pair.low(demoted)
        case _:
            for one, other in pair.held[how : how + 1]:
                one.gone.set()
                other.gone.set()


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(st.lists(_changes, max_size=12))
def test_streams_of_changes_are_equal_in_both_worlds(actions: list[Action]) -> None:
    asyncio.run(play(actions))


# no chance


def walk() -> None:
    """Every change once, cold and after the others."""
    once: list[Action] = [
        *(("hidden", uri) for uri in (*HIDDEN_URIS, None)),
        ("promoted", None),
        *(("shared", uri) for uri in (*VISIBLE_URIS, None)),
        ("demoted", None),
        *(("roles", (token, {"viewer"})) for token in AGENTS),
        ("open", ("edit", 0)),
        ("revoked", "part"),
        *(("hidden", uri) for uri in HIDDEN_URIS),
        ("revoked", "over"),
    ]
    asyncio.run(play(once))


def test_a_walk_past_every_change_hears_one_world() -> None:
    walk()


def test_whoever_sees_what_is_hidden_hears_of_it() -> None:
    """The control: what the walk compares happens, and is heard by somebody."""

    async def scene() -> None:
        pair = Pair()
        world = pair.worlds[0]
        root = listen(
            world, over(mcp("root", MODERN, "subscriptions/listen", {"notifications": ALL}), EITHER)
        )
        pair.open("edit", 1)
        await pair.same()
        told(world, "app://guides")
        told(world, "app://vault/d1")
        await pair.same()
        heard = b"".join(each.get("body", b"") for each in root.sent)
        assert [heard.count(uri) for uri in (b'"uri":"app://guides"', b'"uri":"app://vault/d1"')] == [1, 1]
        await pair.close()
        await root.task

    asyncio.run(scene())


def test_a_change_of_what_is_shown_in_one_world_alone_is_seen() -> None:
    """The control of the comparison."""

    async def scene() -> None:
        pair = Pair()
        pair.open("edit", 1)
        await pair.same()
        pair.high(lambda world: told(world, "app://guide"))
        with pytest.raises(AssertionError):
            await pair.same()
        for world in pair.worlds:
            world.app.notify.close()
        await asyncio.gather(*(each.task for held in pair.held for each in held))

    asyncio.run(scene())
