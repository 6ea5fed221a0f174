"""A slice answers as the whole set: the decision, what determined it, what erred.

The judge, which slices, against the engine over all policies, and both against the naive meaning.
"""

# pyright: reportUnknownMemberType=false
# cedarpy declares `dict` without its parameters

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import cedarpy
from hypothesis import given, settings
from hypothesis import strategies as st

from nonsuch.kernel import cedar, cedar_text
from nonsuch.kernel.catalog import ANY
from nonsuch.kernel.cedar_text import Key, Policy
from nonsuch.kernel.policies import Index, Policies

from ..rules import Caller
from . import plain_policies as plain
from . import shelf
from .drawn_policies import callers, given_arguments, numbered, rows, sets, tools
from .plain_policies import BY_NAME, TOOLS, Given, Head, Line, Row, Set, Tool

Question = tuple[Caller, Tool, Row, Given]
questions: Final = st.tuples(callers, tools, rows, given_arguments)


def found(tool: Tool, row: Row) -> Row | None:
    """The row where a tool acts on one."""
    return row if tool.acts_on == "Doc" else None


@given(sets(), st.lists(questions, min_size=8, max_size=12))
def test_the_judge_answers_as_the_whole_set(held: Set, asked: list[Question]) -> None:
    judge = shelf.judge(held)
    for caller, tool, row, arguments in asked:
        there = found(tool, row)
        told = shelf.judged(judge, caller, tool, there, arguments)
        assert told == shelf.whole(held.lines, caller, tool, there, arguments)
        assert told == plain.decided(held.lines, caller, tool, there, arguments)


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(sets() | sets(arguments=False) | sets(facts=False), st.lists(questions, min_size=6, max_size=8))
def test_a_row_that_is_not_there_is_never_read(held: Set, asked: list[Question]) -> None:
    judge = shelf.judge(held)
    for caller, tool, _, arguments in asked:
        if tool.acts_on == "Doc":
            told = shelf.judged(judge, caller, tool, None, arguments)
            assert told == plain.decided(held.lines, caller, tool, None, arguments)
            if not any(plain.CONDITIONS[line.condition].reads_resource for line in held.lines):
                assert told == shelf.whole(held.lines, caller, tool, None, arguments)


@given(sets())
def test_the_policies_about_a_tool_are_those_whose_head_covers_it(held: Set) -> None:
    """No fewer, and no more: an exact head on a permission is about no tool."""
    exact = Line("", "permit", Head(), ("doc:look",), True, Head())
    lines = numbered((*held.lines, exact)).lines
    policies = Policies((), (), cedar_text.parse("\n".join(line.text for line in lines), "own"))
    for tool in TOOLS:
        about = policies.about(shelf.entries()[tool.name]).policies
        assert sorted(each.id for each in about) == sorted(line.id for line in lines if line.covers(tool))


def test_every_head_is_found_by_everyone_who_satisfies_it() -> None:
    """No chance: each form of head alone, each kind of caller, each document."""
    heads = [
        Head(),
        Head("is", "Agent"),
        Head("==", entity=("Agent", "a")),
        Head("in", entity=("Role", "r1")),
    ]
    heads += [Head("in", entity=("Agent", "a")), Head("is in", "Agent", ("Role", "r1"))]
    over = [Head(), Head("is", "Doc"), Head("==", entity=("Doc", "d1")), Head("in", entity=("Doc", "d1"))]
    over.append(Head("is in", "Doc", ("Doc", "d1")))
    actions = [
        (("look",), True),
        (("look",), False),
        (("doc:look",), False),
        ((ANY,), False),
        (("use", "look"), False),
    ]
    caller = Caller("a", "agent", frozenset({"r1"}))
    for names, exact in actions:
        lines = [Line("", "permit", head, names, exact, each) for head in heads for each in over]
        lines = [line for line in lines if not (names == (ANY,) and line.resource.form == "any" and exact)]
        held = numbered(lines)
        told = shelf.judged(shelf.judge(held), caller, BY_NAME["look"], Row("d1"), Given())
        assert told == plain.Said(True, tuple(sorted(line.id for line in held.lines)))
        assert told == shelf.whole(held.lines, caller, BY_NAME["look"], Row("d1"), Given())


# the raw index, over hierarchies of any depth

SCHEMA: Final = """
entity G in [G]; entity H in [G];
entity U in [G, H] = { n: Long, s?: String };
entity R in [G, R] = { n: Long };
action "act" appliesTo { principal: [U], resource: [R], context: {} };
"""
OF: Final = cedar.schema(SCHEMA)
_ENTITIES: Final = tuple((kind, ident) for kind in "GHUR" for ident in "xyz")
_NODES: Final = st.sampled_from(_ENTITIES)
_MAY: Final[Mapping[str, str]] = {"G": "G", "H": "G", "U": "GH", "R": "GR"}
_CONDITIONS: Final = (
    "true",
    "resource.n > 0",
    "resource.n + 1 > 0",
    'principal has s && principal.s == "x"',
    "principal.n + 9223372036854775807 > 0",
)
Graph = Mapping[Key, frozenset[Key]]
_PARENTS: Final = st.dictionaries(
    _NODES, st.frozensets(_NODES, min_size=1, max_size=4), min_size=6, max_size=10
)
_HEADS: Final = st.one_of(
    st.just("{}"),
    st.sampled_from("UR").map("{{}} is {}".format),
    _NODES.map(lambda node: f'{{}} == {node[0]}::"{node[1]}"'),
    _NODES.map(lambda node: f'{{}} in {node[0]}::"{node[1]}"'),
    st.tuples(st.sampled_from("UR"), _NODES).map(
        lambda both: f'{{}} is {both[0]} in {both[1][0]}::"{both[1][1]}"'
    ),
)
_TEXTS: Final = st.tuples(st.sampled_from(("permit", "forbid")), _HEADS, _HEADS, st.sampled_from(_CONDITIONS))
_ERRED: Final = re.compile(r"policy `policy([0-9]+)`")


def above(graph: Graph, node: Key) -> set[Key]:
    """A node and everything it is in, however far."""
    found, left = {node}, [node]
    while left:
        for parent in graph.get(left.pop(), frozenset()):
            if parent not in found:
                found.add(parent)
                left.append(parent)
    return found


def acyclic(parents: Mapping[tuple[str, str], frozenset[tuple[str, str]]]) -> Graph:
    """A hierarchy of it: an edge goes to a later node, and to a type that may be a parent."""
    order = {node: at for at, node in enumerate(reversed(_ENTITIES))}
    return {
        node: frozenset(each for each in over if each[0] in _MAY[node[0]] and order[each] > order[node])
        for node, over in parents.items()
    }


def entities(graph: Graph, n: int) -> str:
    """The hierarchy as the engine takes it."""
    attributes: dict[str, dict[str, Any]] = {"U": {"n": n, "s": "x"}, "R": {"n": n}}
    known = [
        {
            "uid": {"type": kind, "id": ident},
            "attrs": attributes.get(kind, {}),
            "parents": [{"type": each[0], "id": each[1]} for each in graph.get((kind, ident), ())],
        }
        for kind, ident in _ENTITIES
    ]
    return json.dumps(known)


def told(policies: Sequence[Policy], who: Key, over: Key, known: str) -> tuple[Any, ...]:
    """What the engine answers, without the kernel's reading of it."""
    handle = cedar.policy_set(policies)
    request = {
        "principal": {"type": who[0], "id": who[1]},
        "action": {"type": "Action", "id": "act"},
        "resource": {"type": over[0], "id": over[1]},
        "context": "{}",
    }
    answer = cedarpy.is_authorized(request, handle.handle, known)
    reasons = sorted(handle.ids[each] for each in answer.diagnostics.reasons)
    places = [re.search(r"policy `(p[0-9]+)`", each) for each in answer.diagnostics.errors]
    return answer.decision, reasons, sorted(handle.ids[each[1]] if each else "?" for each in places)


@settings(max_examples=settings().max_examples * 4)
@given(
    st.lists(_TEXTS, min_size=5, max_size=12),
    _PARENTS,
    st.sampled_from("xyz"),
    st.sampled_from("xyz"),
    st.sampled_from((0, 1, 2**63 - 1)),
)
def test_the_index_answers_as_the_whole_set_over_any_hierarchy(
    texts: list[tuple[str, str, str, str]],
    parents: Mapping[tuple[str, str], frozenset[tuple[str, str]]],
    user: str,
    thing: str,
    n: int,
) -> None:
    graph, who, over = acyclic(parents), ("U", user), ("R", thing)
    text = "\n".join(
        f'@id("p{at}") {effect} ({head.format("principal")}, action, {on.format("resource")})'
        f" when {{ {when} }};"
        for at, (effect, head, on, when) in enumerate(texts)
    )
    policies = cedar_text.parse(text, "own")
    known = entities(graph, n)
    sliced = Index(policies).slice([("U",), *above(graph, who)], [("R",), *above(graph, over)])
    assert len({each.id for each in sliced}) == len(sliced)
    assert told(sliced, who, over, known) == told(policies, who, over, known)


def test_a_slice_drops_what_cannot_apply() -> None:
    """Or what is said above would hold of an index that drops nothing."""
    text = "\n".join(f'permit (principal in G::"{at}", action, resource == R::"{at}");' for at in range(200))
    index = Index(cedar_text.parse(text, "own"))
    sliced = index.slice([("U",), ("U", "x"), ("G", "7")], [("R",), ("R", "7")])
    assert [each.id for each in sliced] == ["own#7"]
