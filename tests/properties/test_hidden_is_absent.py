"""Hidden is absent: what a caller observes is what it would observe had the hidden tools never been declared.

Whatever anybody does meanwhile, and down to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ..world import MODERN, REVISIONS, call, http, mcp
from .two_worlds import ARGUMENTS, HIDDEN_NAMES, HIGH, LOW, VISIBLE, Two, absent

# chance

_VISIBLE_NAMES: Final = tuple(tool.name for tool in VISIBLE)
_tokens: Final = st.sampled_from((*LOW, None, "bogus"))
_names: Final = st.sampled_from((*HIDDEN_NAMES, *_VISIBLE_NAMES, *(absent(name) for name in HIDDEN_NAMES)))
_arguments: Final = st.sampled_from(ARGUMENTS)
_revisions: Final = st.sampled_from(REVISIONS)
_idents: Final = st.sampled_from((0, -1, "", "x", 2**53, None, True))


class HiddenIsAbsent(RuleBasedStateMachine):
    """Random traces over the two worlds, with directed rules for what chance alone would rarely reach."""

    two: Two

    @initialize(
        visible=st.sets(st.sampled_from(_VISIBLE_NAMES), min_size=2),
        hidden=st.sets(st.sampled_from(HIDDEN_NAMES), min_size=1),
        scoped=st.booleans(),
    )
    def start(self, visible: set[str], hidden: set[str], *, scoped: bool) -> None:
        self.two = Two(sorted(visible), hidden, scoped=scoped)

    @rule(token=_tokens, name=_names, arguments=_arguments, revision=_revisions)
    def low_calls(self, token: str | None, name: str, arguments: dict[str, object], revision: str) -> None:
        self.two.same(call(token, revision, name, arguments))

    @rule(
        token=_tokens,
        name=_names,
        arguments=_arguments,
        ident=_idents,
    )
    def low_calls_by_any_id(
        self, token: str | None, name: str, arguments: dict[str, object], ident: object
    ) -> None:
        self.two.same(call(token, REVISIONS[1], name, arguments, ident))

    @rule(token=_tokens, name=_names, arguments=_arguments)
    def low_posts(self, token: str | None, name: str, arguments: dict[str, object]) -> None:
        for path in self.two.paths(name):
            self.two.same(http(token, path, arguments))

    @rule(token=_tokens, name=_names, text=st.text(max_size=12))
    def low_sends_any_text(self, token: str | None, name: str, text: str) -> None:
        body = json.dumps({"id": text, "note": text, text: name}).encode()
        self.two.same(http(token, self.two.paths(name)[0], body))
        self.two.same(call(token, MODERN, name, {"id": text, text: text}))

    @rule(token=_tokens, name=_names, body=st.binary(max_size=24))
    def low_sends_any_bytes(self, token: str | None, name: str, body: bytes) -> None:
        for path in self.two.paths(name):
            self.two.same(http(token, path, body))

    @rule(token=_tokens)
    def low_looks_around(self, token: str | None) -> None:
        self.two.passive(token)

    @rule(token=_tokens, name=_names)
    def low_tries_arguments(self, token: str | None, name: str) -> None:
        self.two.arguments(token, name)

    @rule(token=_tokens, name=_names)
    def low_tries_spellings(self, token: str | None, name: str) -> None:
        self.two.spelled(token, name)

    @rule(token=_tokens, name=_names)
    def low_tries_doors(self, token: str | None, name: str) -> None:
        self.two.doors(token, name)

    @rule(token=st.sampled_from((*HIGH, "swing")), names=st.lists(st.sampled_from(HIDDEN_NAMES), max_size=3))
    def others_use_the_hidden(self, token: str, names: list[str]) -> None:
        self.two.burst(token, names)

    @rule(token=st.sampled_from(tuple(HIGH)), name=st.sampled_from(_VISIBLE_NAMES), arguments=_arguments)
    def others_use_the_shared(self, token: str, name: str, arguments: dict[str, object]) -> None:
        self.two.shared(token, name, arguments)

    @rule()
    def somebody_is_demoted(self) -> None:
        self.two.demote()

    @precondition(lambda self: "swing" in self.two.low)
    @rule(name=_names, arguments=_arguments)
    def the_demoted_looks_again(self, name: str, arguments: dict[str, object]) -> None:
        self.two.passive("swing")
        self.two.calls("swing", name, arguments)

    @rule()
    def the_operator_reads_the_audit(self) -> None:
        self.two.operator()


TestHiddenIsAbsent = HiddenIsAbsent.TestCase
TestHiddenIsAbsent.settings = settings(max_examples=max(settings().max_examples // 2, 1))


# no chance: one walk past every observable


def walk(tokens: Sequence[str], names: Sequence[str], *, scoped: bool) -> None:
    """Every directed action, cold and after others were busy."""
    crowded = Two(_VISIBLE_NAMES, HIDDEN_NAMES, scoped=scoped)
    crowded.burst("root", names)
    crowded.passive(tokens[0])
    two = Two(_VISIBLE_NAMES, HIDDEN_NAMES, scoped=scoped)
    for token in (None, "bogus", *tokens):
        two.passive(token)
    for name in names:
        two.burst("root", [name])
        two.burst("swing", [name])
        for token in tokens:
            two.relabelled(token, name)
            two.spelled(token, name)
            two.arguments(token, name)
        for token in (None, tokens[0]):
            two.doors(token, name)
    two.demote()
    for token in ("swing", *tokens):
        two.passive(token)
        for name in (*names, *_VISIBLE_NAMES):
            two.calls(token, name, {"id": "d1"})
    two.operator()


def test_a_walk_past_every_observable_sees_one_world() -> None:
    walk(("edit", "none", "over"), HIDDEN_NAMES, scoped=True)
    walk(("part", "view"), HIDDEN_NAMES[:4], scoped=False)


def test_the_hidden_tools_are_there_for_those_who_may_see_them() -> None:
    two = Two(_VISIBLE_NAMES, HIDDEN_NAMES, scoped=True)
    listed = two.a.send(mcp("root", MODERN, "tools/list")).value["result"]["tools"]
    assert {tool["name"] for tool in listed} >= {"readDocs", "writeDo", "aaaFirst", "docs", "seatCounts"}
    assert two.a.send(call("root", MODERN, "readDocs", {"id": "d1"})).value["result"].get("isError") is None
    assert two.a.ran == [("readDocs", '{"id":"d1","amount":3,"note":null}')]
