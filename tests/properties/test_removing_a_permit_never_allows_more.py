"""Removing a permit never allows more, adding a forbid never allows more: at every gate, for every caller.

A permit that errs denies by its error, and one that alone reads an argument bounds it to 64 bits: only
without these two may a call pass that did not, and the oracle says when.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ..rules import LONG, Caller, parties
from ..world import principal
from . import shelf
from .drawn_policies import callers, gate_lines, given_arguments, lines, rows, sets, tools
from .plain_policies import TOOLS, Asked, Came, GateLine, Given, Head, Line, Row, Set, Tool, is_read

Question = tuple[Caller, Tool, Row | None, Given]
_large: Final = st.builds(Given, size=st.sampled_from((2**63, -(2**63) - 1)))
questions: Final = st.tuples(callers, tools, st.none() | rows, given_arguments | _large)
asked_often: Final = st.lists(questions, min_size=8, max_size=10)
half: Final = settings(max_examples=max(settings().max_examples // 2, 1))


def came(held: Set, asked: list[Question]) -> list[Came]:
    """What comes of each call under a set of policies."""
    kernel = shelf.kernel(held)
    return [
        shelf.called(
            kernel, caller, tool.name, shelf.sent(arguments), None if row is None else shelf.doc(row)
        )
        for caller, tool, row, arguments in asked
    ]


def seen(held: Set, everybody: list[Caller]) -> list[set[tuple[str, str]]]:
    """Every tool that each may know of, and every scope that each presents."""
    kernel = shelf.kernel(held)
    judge, names = kernel.judge, {tool.scope for tool in TOOLS}
    shown = [
        {("see", name) for name in kernel.view_for(principal(caller)).table.tools} for caller in everybody
    ]
    for caller, each in zip(everybody, shown, strict=True):
        who = judge.caller(principal(caller))
        each |= {("present", name) for name in names if judge.presents(who, name).allow}
    return shown


def denied_otherwise(removed: Line, held: Set, asked: Question) -> bool:
    """Whether a permit denied a call by being there: it erred, or it alone bounds an argument to 64 bits."""
    caller, tool, row, arguments = asked
    rest = [line for line in held.lines if line is not removed]
    if arguments.size not in LONG and not is_read(rest, tool, "size"):
        return True
    if tool.acts_on == "Doc" and row is None:
        return False
    each = [
        Asked(party, tool, None if tool.acts_on == "Server" else row, arguments) for party in parties(caller)
    ]
    return any(removed.applies(one) and removed.comes_to(one) == "errs" for one in each)


_PERMIT: Final = Line("p0", "permit", Head(), ("any",), False, Head())


@half
@given(sets(8, 4), asked_often)
@example(
    Set((_PERMIT, dataclasses.replace(_PERMIT, id="p1", condition="twice"))),
    [(Caller("a", "human"), TOOLS[3], None, Given(size=2**62))],
)
@example(
    Set((_PERMIT, dataclasses.replace(_PERMIT, id="p1", condition="size"))),
    [(Caller("a", "human"), TOOLS[3], None, Given(size=2**63))],
)
def test_removing_a_permit_never_allows_more(held: Set, asked: list[Question]) -> None:
    permits = [line for line in held.lines if line.effect == "permit"]
    before = came(held, asked)
    for removed in permits[:2]:
        rest = dataclasses.replace(held, lines=tuple(line for line in held.lines if line is not removed))
        for question, old, new in zip(asked, before, came(rest, asked), strict=True):
            if new.outcome == "ok" and old.outcome != "ok":
                assert old.outcome in ("policy-error", "invalid-args")
                assert denied_otherwise(removed, held, question)


def test_a_permit_can_deny_only_by_an_error_or_by_a_bound() -> None:
    """The two exceptions are real: so that nobody takes them out of the property unseen."""
    caller, use = Caller("a", "human", scopes=None), TOOLS[3]
    for condition, size, outcome in (("twice", 2**62, "policy-error"), ("size", 2**63, "invalid-args")):
        other = dataclasses.replace(_PERMIT, id="p1", condition=condition)
        asked: list[Question] = [(caller, use, None, Given(size=size))]
        assert came(Set((_PERMIT, other)), asked)[0].outcome == outcome
        assert came(Set((_PERMIT,)), asked)[0].outcome == "ok"


@half
@given(sets(8, 4), lines("forbid"), asked_often)
def test_adding_a_forbid_never_allows_more(held: Set, forbid: Line, asked: list[Question]) -> None:
    more = dataclasses.replace(held, lines=(*held.lines, dataclasses.replace(forbid, id="added")))
    for old, new in zip(came(held, asked), came(more, asked), strict=True):
        assert new.outcome != "ok" or old.outcome == "ok"


@half
@given(sets(0, 6), st.lists(callers, min_size=8, max_size=10))
def test_removing_a_permit_never_shows_or_presents_more(held: Set, everybody: list[Caller]) -> None:
    before = seen(held, everybody)
    for removed in [line for line in held.gates if line.effect == "permit"][:2]:
        rest = dataclasses.replace(held, gates=tuple(line for line in held.gates if line is not removed))
        assert all(new <= old for old, new in zip(before, seen(rest, everybody), strict=True))


@half
@given(
    sets(0, 6),
    gate_lines().filter(lambda line: line.effect == "forbid"),
    st.lists(callers, min_size=8, max_size=10),
)
def test_adding_a_forbid_never_shows_or_presents_more(
    held: Set, forbid: GateLine, everybody: list[Caller]
) -> None:
    more = dataclasses.replace(held, gates=(*held.gates, dataclasses.replace(forbid, id="added")))
    assert all(new <= old for old, new in zip(seen(held, everybody), seen(more, everybody), strict=True))
