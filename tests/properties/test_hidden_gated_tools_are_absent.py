"""A hidden tool that waits for a person is as absent as any: it opens nothing, tells nothing, counts nowhere.

And an id that is foreign, unknown or misspelt is one answer, to the byte.
"""

from __future__ import annotations

import json
from typing import Final

from nonsuch.kernel.audit import ToolCall

from ..world import MODERN, REVISIONS, Answer, call, http
from .test_hidden_and_absent_leave_one_trace import same_trace
from .two_worlds import HIDDEN, VISIBLE, Two, absent

_VISIBLE: Final = tuple(tool.name for tool in VISIBLE)
GATED: Final = tuple(tool.name for tool in HIDDEN if tool.confirms)
CALL: Final[dict[str, object]] = {"id": "d1", "amount": 1}
UNKNOWN: Final = "0" * 32


def waiting(two: Two, name: str, who: str = "root") -> str:
    """Have a hidden tool called by somebody who sees it, in A, and return the id that waits."""
    answer = two.a.send(call(who, MODERN, name, CALL))
    text = answer.value["result"]["content"][0]["text"]
    assert text.startswith("X_MCP_CONFIRMATION_PENDING")
    return str(text.partition("confirmation `")[2].partition("`")[0])


def walk() -> None:
    """Low callers name the hidden gated tools, and the ids of what waits for others, through every door."""
    two = Two(_VISIBLE, GATED, scoped=True)
    idents = [waiting(two, name) for name in GATED]
    for token in ("edit", "over", "part", "none"):
        for name in GATED:
            for revision in REVISIONS:
                two.same(call(token, revision, name, CALL))
            for path in two.paths(name):
                two.same(http(token, path, CALL))
            two.relabelled(token, name)
        for ident in (*idents, UNKNOWN):
            two.same(http(token, "decide", {"id": ident, "decision": "view"}))
    opened = {each.confirmation for each in two.a.audit if isinstance(each, ToolCall) and each.confirmation}
    low = [each for each in two.a.audit if isinstance(each, ToolCall) and each.caller != "root"]
    assert {each.confirmation for each in low if each.tool in GATED} <= {None}
    assert set(idents) <= opened
    for decision in ("view", "approve", "reject"):
        two.confirmed("edit", decision, CALL)
    two.passive("edit")


def test_a_walk_past_hidden_gated_tools_sees_one_world() -> None:
    walk()


def decided(two: Two, ident: str, decision: str, who: str = "view") -> Answer:
    """Decide in A over HTTP."""
    return two.a.send(http(who, "decide", {"id": ident, "decision": decision, "arguments": CALL}))


def test_a_foreign_an_unknown_and_a_misspelt_id_are_one_answer_to_the_byte() -> None:
    two = Two(_VISIBLE, GATED, scoped=True)
    for name in GATED:
        foreign = waiting(two, name)
        for decision in ("view", "approve", "reject"):
            answers = [decided(two, each, decision) for each in (foreign, UNKNOWN, absent(foreign), "x", "")]
            assert answers == [answers[0]] * 5
            assert answers[0].status == 403
            assert json.loads(answers[0].body)["code"] == "X_FORBIDDEN"


def test_a_foreign_and_an_unknown_id_make_the_same_calls() -> None:
    """The very sequence of calls, Python's and C's: what runs alike takes alike."""
    two = Two(_VISIBLE, GATED, scoped=True)
    for name in GATED:
        foreign = waiting(two, name)
        for decision in ("view", "approve", "reject"):
            sent = [
                http("view", "decide", {"id": each, "decision": decision, "arguments": CALL})
                for each in (foreign, foreign[::-1])
            ]
            same_trace(two.a, sent[0], sent[1])


def test_what_the_walk_compares_happens_for_somebody() -> None:
    """The control: a visible gated call is viewed, approved and run by those who may."""
    two = Two(_VISIBLE, GATED, scoped=True)
    ident = waiting(two, "sendDoc", "edit")
    viewed = decided(two, ident, "view")
    assert (viewed.status, json.loads(viewed.body)["arguments"]) == (200, CALL)
    assert decided(two, ident, "approve").status == 200
    answer = two.a.send(call("edit", MODERN, "sendDoc", CALL))
    assert answer.value["result"].get("isError") is None
    assert [name for name, _ in two.a.ran] == ["sendDoc"]
