"""Hidden is absent: what a caller observes is what it would observe had the hidden never been declared.

Whatever anybody does meanwhile, and down to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ..world import MODERN, REVISIONS, WIRES, call, http, mcp, over
from . import two_contents as contents
from .hidden_content import CONTENT, HIDDEN_CONTENT_NAMES, URIS
from .two_worlds import ARGUMENTS, HIDDEN_NAMES, HIGH, LOW, VISIBLE, Two, absent

# chance

_VISIBLE_NAMES: Final = tuple(tool.name for tool in VISIBLE)
_tokens: Final = st.sampled_from((*LOW, None, "bogus"))
_names: Final = st.sampled_from((*HIDDEN_NAMES, *_VISIBLE_NAMES, *(absent(name) for name in HIDDEN_NAMES)))
_arguments: Final = st.sampled_from(ARGUMENTS)
_revisions: Final = st.sampled_from(REVISIONS)
_idents: Final = st.sampled_from((0, -1, "", "x", 2**53, None, True))
_contents: Final = st.sampled_from(tuple(CONTENT))
_words: Final = st.text(max_size=8) | st.sampled_from(("app://docs/", "app://vault/", "greet", "ann"))


class HiddenIsAbsent(RuleBasedStateMachine):
    """Random traces over the two worlds, with directed rules for what chance alone would rarely reach."""

    two: Two

    @initialize(
        visible=st.sets(st.sampled_from(_VISIBLE_NAMES), min_size=2),
        hidden=st.sets(st.sampled_from((*HIDDEN_NAMES, *HIDDEN_CONTENT_NAMES)), min_size=1),
        scoped=st.booleans(),
        page_size=st.sampled_from((None, None, 1, 2, 3)),
    )
    def start(self, visible: set[str], hidden: set[str], *, scoped: bool, page_size: int | None) -> None:
        self.two = Two(sorted(visible), hidden, scoped=scoped, page_size=page_size)

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

    @rule(token=_tokens, name=_contents)
    def low_uses_content(self, token: str | None, name: str) -> None:
        contents.content(self.two, token, CONTENT[name])

    @rule(token=_tokens, name=_contents)
    def low_spells_content(self, token: str | None, name: str) -> None:
        contents.spelled(self.two, token, CONTENT[name])

    @rule(token=_tokens, uri=st.sampled_from(URIS), text=_words, revision=_revisions)
    def low_reads_and_gets_any_text(self, token: str | None, uri: str, text: str, revision: str) -> None:
        self.two.same(contents.reading(token, revision, uri + text))
        self.two.same(contents.reading(token, revision, text))
        self.two.same(contents.getting(token, revision, text, {"id": text}))
        self.two.same(contents.completing(token, revision, "prompt", text, text))

    @rule(token=_tokens)
    def low_walks_lists(self, token: str | None) -> None:
        contents.around(self.two, token)

    @rule(token=_tokens, name=_names)
    def low_repeats_arguments_in_headers(self, token: str | None, name: str) -> None:
        contents.particular(self.two, token, name)

    @rule(token=_tokens, name=_names)
    def low_takes_streams(self, token: str | None, name: str) -> None:
        contents.wires(self.two, token, name)

    @rule(token=_tokens, name=_names)
    def low_goes_on_with_a_round_of_others(self, token: str | None, name: str) -> None:
        contents.states(self.two, token, name)

    @rule(
        token=st.sampled_from(tuple(LOW)),
        decision=st.sampled_from(("view", "approve", "reject")),
        arguments=st.sampled_from(ARGUMENTS[:2]),
    )
    def low_is_confirmed(self, token: str, decision: str, arguments: dict[str, object]) -> None:
        self.two.confirmed(token, decision, arguments)

    @rule(token=st.sampled_from((*HIGH, "swing")), names=st.lists(st.sampled_from(HIDDEN_NAMES), max_size=3))
    def others_use_the_hidden(self, token: str, names: list[str]) -> None:
        self.two.burst(token, names)

    @rule(token=st.sampled_from((*HIGH, "swing")), names=st.lists(_contents, max_size=3))
    def others_use_hidden_content(self, token: str, names: list[str]) -> None:
        contents.busy(self.two.a, token, [name for name in names if name in HIDDEN_CONTENT_NAMES])

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
    for token in tokens:
        for decision in ("view", "approve", "reject"):
            two.confirmed(token, decision, {"id": "d1"})
    two.demote()
    for token in ("swing", *tokens):
        two.passive(token)
        for name in (*names, *_VISIBLE_NAMES):
            two.calls(token, name, {"id": "d1"})
    two.operator()


def walk_content(tokens: Sequence[str], names: Sequence[str], *, page_size: int | None) -> None:
    """Every directed action on content, cold and after others were busy."""
    two = Two(_VISIBLE_NAMES, (*HIDDEN_NAMES, *names), scoped=True, page_size=page_size)
    for token in (None, *tokens):
        contents.around(two, token)
    contents.busy(two.a, "root", list(names))
    contents.busy(two.a, "swing", list(names))
    for token in tokens:
        for name in names:
            contents.relabelled(two, token, CONTENT[name])
            contents.spelled(two, token, CONTENT[name])
        for name in (*CONTENT, "nothing"):
            contents.content(two, token, CONTENT.get(name, CONTENT["greet"]))
        for name in ("putDocs", "askDocs", "needDocs", absent("putDocs"), "putDoc", "askDoc", "needDoc"):
            contents.particular(two, token, name)
            contents.wires(two, token, name)
            contents.states(two, token, name)
    two.demote()
    for token in ("swing", tokens[0]):
        contents.around(two, token)
        for name in names:
            contents.content(two, token, CONTENT[name])
    two.operator()


def test_a_walk_past_content_sees_one_world() -> None:
    walk_content(("edit", "over"), HIDDEN_CONTENT_NAMES, page_size=2)
    walk_content(("none", "part"), HIDDEN_CONTENT_NAMES[:4], page_size=None)


def test_a_walk_past_every_observable_sees_one_world() -> None:
    walk(("edit", "none", "over"), HIDDEN_NAMES, scoped=True)
    walk(("part", "view"), HIDDEN_NAMES[:4], scoped=False)


def test_the_hidden_tools_are_there_for_those_who_may_see_them() -> None:
    two = Two(_VISIBLE_NAMES, HIDDEN_NAMES, scoped=True)
    listed = two.a.send(mcp("root", MODERN, "tools/list")).value["result"]["tools"]
    assert {tool["name"] for tool in listed} >= {"readDocs", "writeDo", "aaaFirst", "docs", "seatCounts"}
    assert two.a.send(call("root", MODERN, "readDocs", {"id": "d1"})).value["result"].get("isError") is None
    assert two.a.ran == [("readDocs", '{"id":"d1","amount":3,"note":null}')]


def test_the_hidden_content_is_there_for_those_who_may_see_it() -> None:
    """The control of the walk: what it compares happens, and differs, for somebody."""
    two = Two(_VISIBLE_NAMES, (*HIDDEN_NAMES, *HIDDEN_CONTENT_NAMES), scoped=True)
    for each in (CONTENT[name] for name in HIDDEN_CONTENT_NAMES if name != "nobodySays"):
        contents.busy(two.a, "root", [each.name])
        assert (
            each.action,
            "" if each.kind == "resource" else "ann" if each.kind == "prompt" else "d1",
        ) in two.a.ran
    spoken = over(mcp("root", MODERN, "tools/call", {"name": "putDocs"}, meta=contents.SPOKEN), WIRES[2])
    assert len(two.a.send(spoken).messages) == 4
    asked = contents.capable(call("root", MODERN, "askDocs", {}), {"elicitation": {}})
    assert "requestState" in two.a.send(asked).value["result"]
    for name, status in (("putDocs", 400), ("needDocs", 400)):
        refused = call("root", MODERN, name, {"region": "eu"} if name == "putDocs" else {})
        assert two.a.send(refused).status == status
