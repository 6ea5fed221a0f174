"""No memo answers another question: callers of one id, facts that change, rows and arguments that differ.

One kernel, whose memos live through a long and repetitive traffic, against the naive meaning.
"""

from __future__ import annotations

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from nonsuch import Principal
from nonsuch.adapters.edge.app import judge_from
from nonsuch.kernel.gates import Kernel

from ..rules import Caller, parties
from . import plain_policies as plain
from . import shelf
from .drawn_policies import humans, sets
from .plain_policies import BY_NAME, TOOLS, Given, Row, Set, Tool

_ALL: Final = frozenset({"docs", "app"})
_roles: Final = st.sampled_from([frozenset[str](), *map(frozenset, ("1", "2", "12"))]).map(
    lambda held: frozenset(f"r{each}" for each in held)
)
_agents: Final = st.builds(
    Caller,
    st.sampled_from("ab"),
    st.just("agent"),
    _roles,
    st.sampled_from((None, "acme")),
    st.just(_ALL) | st.just(frozenset({"app"})),
    st.none() | humans,
)
_people: Final = st.builds(Caller, st.sampled_from("ab"), st.just("human"), _roles, st.none(), st.none())
_rows: Final = st.sampled_from((None, Row("d1"), Row("d2"), Row("d1", "keep", 1), Row("d2", "b", 2**63 - 1)))
_given: Final = st.sampled_from((Given(), Given(size=6), Given(note="stop"), Given(tags=("stop",))))
_admitted: Final = st.sampled_from([frozenset[str](), *map(frozenset, ("a", "b", "ab", "ab"))])
_asked: Final = st.tuples(st.integers(0, 2), st.sampled_from(TOOLS), _rows, _given, _admitted)
Question = tuple[int, Tool, Row | None, Given, frozenset[str]]


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(
    sets(8, 2) | sets(8, 2, arguments=False),
    st.lists(_agents | _people, min_size=3, max_size=3),
    st.lists(_asked, min_size=24, max_size=30),
)
def test_no_memo_answers_another_question(held: Set, callers: list[Caller], asked: list[Question]) -> None:
    admitted: set[str] = set()

    def asks(who: Principal) -> object:
        return who.id in admitted

    app = shelf.shelf(asks)
    kernel = Kernel(app.kernel.catalog, judge_from(app.kernel.catalog, shelf.sources(held.text))[0])
    for who, tool, row, arguments, whom in asked:
        caller = callers[who]
        admitted.clear()
        admitted.update(whom)
        facts = None if row is None else shelf.doc(row)
        told = shelf.called(kernel, caller, tool.name, shelf.sent(arguments), facts)
        assert told == expected(held, caller, tool, row, arguments, whom)


def expected(
    held: Set, caller: Caller, tool: Tool, row: Row | None, arguments: Given, admitted: frozenset[str]
) -> plain.Came:
    """What must come of it: `use` is for those whom the predicate admits now, and policies may hide it."""
    if tool is BY_NAME["use"]:
        about = [line for line in held.gates if line.gate == "see" and line.name is None]
        shown = all(
            party.id in admitted and not any(line.applies(party, "") for line in about)
            for party in parties(caller)
        )
        if not shown:
            return plain.Came("hidden", "X_MCP_TOOL_UNKNOWN")
        see = tuple(line for line in held.gates if line.gate != "see")
        return plain.comes_of(Set(held.lines, see), caller, tool.name, arguments, row)
    return plain.comes_of(held, caller, tool.name, arguments, row)
