"""Over HTTP hidden is absent: paths, methods, query strings, keys, bodies and a caller's OpenAPI document are
those of an app in which the hidden actions were never declared, whatever anybody does meanwhile.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from nonsuch.kernel.audit import Event

from .. import rules
from ..world import HOST, TYPED, Answer, Request, World, bearer, principal
from .two_worlds import (
    HIDDEN,
    HIGH,
    LOW,
    MALFORMED,
    SWING_AFTER,
    SWING_BEFORE,
    VISIBLE,
    absent,
    declared,
    undeclared,
)

PATHS: Final = tuple(tool.path for tool in (*VISIBLE, *HIDDEN) if tool.path)
HIDDEN_PATHS: Final = tuple(tool.path for tool in HIDDEN if tool.path)
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "X")
SUFFIXES: Final = ("", "/", "//", "/x", "?", "%20", "\u00fc", "\x00", ".json")
QUERIES: Final = (
    "",
    "id=d1",
    "id=d1&id=d2",
    "amount=5",
    "amount=05",
    "x=%ff",
    "idempotencyKey=k",
    "&&",
    "id",
)
KEYS: Final = (None, "k", '"k"', "", '"k", "k"', "k" * 256)
BODIES: Final[Sequence[bytes]] = (
    b"",
    b"{}",
    b'{"id":"d1"}',
    b'{"id":"d2","note":"stop"}',
    b'{"id":7}',
    b'{"id":"d1","amount":99}',
    b'{"id":"d1","idempotencyKey":"k"}',
    *MALFORMED,
)
NAMES: Final = tuple(tool.name for tool in HIDDEN)
WORDS: Final = sorted(
    {*NAMES, *HIDDEN_PATHS, "vault", "Vault", "seat:count", "vault:open", "vault:list"} - {"docs"}
)  # a member of each error


def keyed(world: rules.World) -> rules.World:
    """The world with every action taking keys."""
    tools = tuple(dataclasses.replace(tool, keyed=tool.kind == "action") for tool in world.tools)
    return dataclasses.replace(world, tools=tools)


def request(
    token: str | None, method: str, path: str, query: str = "", body: bytes = b"", key: str | None = None
) -> Request:
    """A request to the HTTP surface."""
    keys = () if key is None else (("idempotency-key", key),)
    return Request(method, f"/api/{path}", (HOST, *bearer(token), TYPED, *keys), body, query)


class Two:
    """The two worlds, and what low callers do in both over HTTP."""

    def __init__(self, hidden: Sequence[str] = NAMES, *, scoped: bool = True) -> None:
        names = [*(tool.name for tool in VISIBLE), *hidden]
        everybody = {**LOW, **HIGH, "swing": SWING_BEFORE}
        tokens = {token: principal(caller) for token, caller in everybody.items()}
        self.a = World(keyed(declared(names, scoped=scoped)), dict(tokens))
        self.b = World(rules.purge(self.a.declared, hidden), dict(tokens))
        for caller in LOW.values():
            assert rules.visible(self.a.declared, caller, "http").isdisjoint(hidden)

    def same(self, asked: Request) -> Answer:
        """Send to both worlds: answers, handlers that ran and audit events are equal, but for `declared`."""
        seen: list[tuple[Answer, list[tuple[str, str]], list[Event]]] = []
        for world in (self.a, self.b):
            ran, heard = len(world.ran), len(world.audit)
            answer = world.send(asked)
            seen.append((answer, world.ran[ran:], [undeclared(each) for each in world.audit[heard:]]))
        assert seen[0] == seen[1], f"{asked} shows what is hidden"
        return seen[0][0]

    def relabelled(self, asked: Request) -> None:
        """In A alone: at a hidden path nothing answers as anything but an absent one of its length."""
        path = asked.path.removeprefix("/api/")
        other = dataclasses.replace(asked, path=f"/api/{absent(path)}")
        assert self.a.send(asked) == self.a.send(other)

    def matrix(self, token: str | None, path: str) -> None:
        """Every method, in every spelling of the path, with every query string, body and key."""
        for method in METHODS:
            for suffix in SUFFIXES:
                self.same(request(token, method, path + suffix, QUERIES[1], BODIES[2]))
            for query in QUERIES:
                self.same(request(token, method, path, query))
            for body in BODIES:
                self.same(request(token, method, path, "", body))
            for key in KEYS:
                for _ in range(2):
                    self.same(request(token, method, path, "", BODIES[2], key))
                self.same(request(token, method, path, "", BODIES[3], key))

    def document(self, token: str | None) -> None:
        """The OpenAPI document is the same to the byte, and has no word of what is hidden."""
        for method in METHODS:
            self.same(request(token, method, "openapi.json"))
        answer = self.same(request(token, "GET", "openapi.json"))
        if token in LOW:
            assert answer.status == 200
            told = json.dumps(answer.value)
            assert [word for word in WORDS if f'"{word}"' in told or f'/{word}"' in told] == []

    def others(self, token: str) -> None:
        """Whoever sees the hidden actions uses them, under the keys that low callers use."""
        for path in HIDDEN_PATHS:
            for method in METHODS:
                self.a.send(request(token, method, path, QUERIES[1], BODIES[2]))
            for key in ("k", '"k"', "l"):
                for body in BODIES[1:4]:
                    self.a.send(request(token, "POST", path, "", body, key))
        self.a.send(request(token, "GET", "openapi.json"))

    def demote(self) -> None:
        """A caller who saw the hidden actions loses that right."""
        for world in (self.a, self.b):
            world.tokens["swing"] = principal(SWING_AFTER)


def walk(tokens: Sequence[str | None], paths: Sequence[str]) -> None:
    """Everything that HTTP shows, for some callers."""
    two = Two()
    for token in tokens:
        two.document(token)
        for path in paths:
            two.matrix(token, path)
            two.others("root")
        two.document(token)
    two.others("swing")
    two.demote()
    for path in paths:
        two.matrix("swing", path)
    two.document("swing")


def keys_of_hidden_actions() -> None:
    """A key sent to a hidden path leaves no record: it is free at an action that its caller sees."""
    for token in ("edit", "part", "over"):
        two = Two()
        for path in HIDDEN_PATHS:
            for body in (BODIES[2], BODIES[3], BODIES[2]):
                assert two.same(request(token, "POST", path, "", body, "k")).status == 404
                two.relabelled(request(token, "POST", path, "", body, "k"))
        two.others("root")
        first = two.same(request(token, "POST", "docs/read", "", BODIES[2], "k"))
        assert two.same(request(token, "POST", "docs/read", "", BODIES[2], "k")) == first
        if first.status == 200:
            assert two.same(request(token, "POST", "docs/read", "", BODIES[5], "k")).status == 409
            two.others("boss")
            assert two.same(request(token, "POST", "docs/read", "", BODIES[2], "k")) == first


def relabel() -> None:
    """One server: whatever is sent to a hidden path and to an absent one, before and after others come."""
    two = Two()
    for token in ("edit", "view", "none"):
        for path in HIDDEN_PATHS:
            for method in METHODS:
                for query in QUERIES[:4]:
                    two.relabelled(request(token, method, path, query))
                for body in BODIES:
                    two.relabelled(request(token, method, path, "", body, "k"))
        two.others("root")


def test_a_walk_past_everything_that_http_shows_sees_one_world() -> None:
    walk(("edit", None), (*HIDDEN_PATHS[:3], "docs/read"))
    walk(("view", "over", "bogus"), (*HIDDEN_PATHS[3:], "docs/list"))


def test_a_key_sent_to_a_hidden_path_is_not_kept() -> None:
    keys_of_hidden_actions()


def test_a_hidden_path_answers_as_an_absent_one() -> None:
    relabel()


def test_the_hidden_paths_answer_to_those_who_see_them() -> None:
    """Or all of this would hold of an empty app."""
    two = Two()
    assert two.a.send(request("root", "POST", "docs/reads", "", BODIES[2], "k")).status == 200
    assert two.a.send(request("root", "GET", "aaa")).status == 200
    told = two.a.send(request("root", "GET", "openapi.json")).value["paths"]
    assert {f"/api/{path}" for path in HIDDEN_PATHS if path != "docs/nobodys"} <= set(told)


# chance

_tokens: Final = st.sampled_from((*LOW, None, "bogus"))
_paths: Final = st.sampled_from((*PATHS, "openapi.json", "", *(absent(path) for path in HIDDEN_PATHS)))


class HttpTellsNothing(RuleBasedStateMachine):
    """Random traces over the two worlds."""

    two: Two

    @initialize(hidden=st.sets(st.sampled_from(NAMES), min_size=1), scoped=st.booleans())
    def start(self, hidden: set[str], *, scoped: bool) -> None:
        self.two = Two(sorted(hidden), scoped=scoped)

    @rule(
        token=_tokens,
        method=st.sampled_from(METHODS),
        path=_paths,
        suffix=st.sampled_from(SUFFIXES),
        query=st.sampled_from(QUERIES),
        body=st.sampled_from(BODIES),
        key=st.sampled_from(KEYS),
    )
    def anything(
        self, token: str | None, method: str, path: str, suffix: str, query: str, body: bytes, key: str | None
    ) -> None:
        self.two.same(request(token, method, path + suffix, query, body, key))

    @rule(token=_tokens, path=_paths, body=st.sampled_from(BODIES[1:7]), key=st.sampled_from(("k", "l")))
    def keyed_twice(self, token: str | None, path: str, body: bytes, key: str) -> None:
        self.two.same(request(token, "POST", path, "", body, key))
        self.two.same(request(token, "POST", path, "", body, key))

    @rule(token=_tokens)
    def reads_the_document(self, token: str | None) -> None:
        self.two.document(token)

    @rule(token=st.sampled_from((*HIGH, "swing")))
    @precondition(lambda self: hasattr(self, "two"))
    def others(self, token: str) -> None:
        self.two.others(token)


HttpTellsNothing.TestCase.settings = settings(max_examples=max(settings().max_examples // 3, 1))
TestHttpTellsNothing = HttpTellsNothing.TestCase
