"""An agent's permit is its human's: under policies that name agents, people, kinds and roles, at every gate.

`test_agent_within_human` says so over the wires, for policies of roles; this says it of every head.
"""

from __future__ import annotations

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from ..rules import Caller
from ..world import principal
from . import plain_policies as plain
from . import shelf
from .drawn_policies import delegates, given_arguments, rows, sets, tools
from .plain_policies import TOOLS, Given, Head, Line, Row, Set, Tool

questions: Final = st.lists(
    st.tuples(delegates, tools, st.none() | rows, given_arguments), min_size=10, max_size=12
)


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(sets(10, 4), questions)
def test_what_an_agent_is_allowed_its_human_is_allowed(
    held: Set, asked: list[tuple[Caller, Tool, Row | None, Given]]
) -> None:
    kernel = shelf.kernel(held)
    for agent, tool, row, arguments in asked:
        human = agent.behind
        assert human is not None
        facts = None if row is None else shelf.doc(row)
        for_agent, for_human = (
            shelf.called(kernel, who, tool.name, shelf.sent(arguments), facts) for who in (agent, human)
        )
        assert for_agent == plain.comes_of(held, agent, tool.name, arguments, row)
        assert for_human == plain.comes_of(held, human, tool.name, arguments, row)
        assert for_agent.outcome != "ok" or for_human.outcome == "ok"
        assert for_human.outcome != "hidden" or for_agent.outcome == "hidden"


def test_an_error_of_the_human_denies_its_agent() -> None:
    """And one of the agent, though its human is allowed: no chance."""
    every = Line("p0", "permit", Head(), ("any",), False, Head())
    human = Caller("b", "human", scopes=None)
    agent = Caller("a", "agent", scopes=frozenset({"docs", "app"}), behind=human)
    for kind, of_agent, of_human in (("Human", False, False), ("Agent", False, True)):
        erring = Line("p1", "forbid", Head("is", kind), ("any",), False, Head(), "twice")
        judge = shelf.judge(Set((every, erring)))
        told = [
            shelf.judged(judge, who, tool, Row("d1"), Given(size=2**62)).allow
            for tool in TOOLS
            for who in (agent, human)
        ]
        assert told == [of_agent, of_human] * len(TOOLS)


@given(sets(0, 6), st.lists(delegates, min_size=8, max_size=10))
def test_what_an_agent_sees_and_presents_its_human_does(held: Set, agents: list[Caller]) -> None:
    kernel = shelf.kernel(held)
    for agent in agents:
        human = agent.behind
        assert human is not None
        shown, own = (set(kernel.view_for(principal(who)).table.tools) for who in (agent, human))
        assert shown == {tool.name for tool in TOOLS if plain.sees(held.gates, agent, tool)}
        assert shown <= own
        for tool in TOOLS:
            mine, its = (
                kernel.judge.presents(kernel.judge.caller(principal(who)), tool.scope).allow
                for who in (agent, human)
            )
            assert mine is plain.presents(held.gates, agent, tool)
            assert its or not mine
