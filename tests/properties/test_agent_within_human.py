"""An agent within its human: whatever an agent is shown or allowed, the person it acts for is too."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from nonsuch.kernel.audit import tool_call

from .. import rules
from ..rules import Caller, World
from ..world import REVISIONS, call, http, mcp, principal
from ..world import World as Served
from .drawn import NAMES, agents, arguments, humans, worlds
from .test_one_judge import told_by_http, told_by_mcp


class Both:
    """An agent and its human in one served world."""

    def __init__(self, world: World, agent: Caller) -> None:
        human = agent.behind
        assert human is not None
        self.world, self.agent, self.human = world, agent, human
        self.served = Served(world, {"agent": principal(agent), "human": principal(human)})
        self.paths = {tool.name: tool.path for tool in world.tools}

    def as_tool(self, who: Caller, name: str, given: Mapping[str, object]) -> str:
        """The outcome of a tool called in process."""
        caller = principal(who)
        return tool_call(caller, name, "agent", self.served.invoke(caller, name, given)).outcome

    def as_path(self, token: str, name: str, given: Mapping[str, object]) -> str:
        """The outcome of the tool's path over HTTP; a tool without one is no path."""
        return told_by_http(self.served.send(http(token, self.paths.get(name) or "none", given)))[0]

    def as_mcp(self, name: str, given: Mapping[str, object]) -> set[str]:
        """The outcomes that the agent meets over MCP."""
        return {told_by_mcp(self.served.send(call("agent", each, name, given)))[0] for each in REVISIONS}

    def shown_to_agent(self) -> set[str]:
        """Every name that `tools/list` shows the agent, in any revision."""
        answers = [self.served.send(mcp("agent", revision, "tools/list")) for revision in REVISIONS]
        return {tool["name"] for answer in answers for tool in answer.value["result"]["tools"]}


@given(worlds(), agents(humans()))
def test_what_an_agent_is_shown_its_human_may_see(world: World, agent: Caller) -> None:
    both = Both(world, agent)
    shown = both.shown_to_agent()
    assert shown <= rules.visible(world, both.human)
    for name in shown:
        assert both.as_tool(both.human, name, {}) != "hidden"
        assert not both.paths[name] or both.as_path("human", name, {}) != "hidden"


@given(worlds(), agents(humans()), st.lists(st.tuples(st.sampled_from(NAMES), arguments()), max_size=8))
def test_what_an_agent_is_allowed_its_human_is_too(
    world: World, agent: Caller, trace: list[tuple[str, dict[str, object]]]
) -> None:
    both = Both(world, agent)
    for name, given_arguments in trace:
        path = both.as_path("agent", name, given_arguments)
        tool = both.as_mcp(name, given_arguments) | {both.as_tool(agent, name, given_arguments)}
        person = both.as_tool(both.human, name, given_arguments)
        if tool != {"hidden"}:
            assert person != "hidden"
        if path != "hidden":
            assert both.as_path("human", name, given_arguments) != "hidden"
        if "ok" in tool:
            assert rules.outcome(world, both.human, "agent", name, given_arguments).outcome == "ok"
            assert person == "ok"
        if path == "ok":
            assert both.as_path("human", name, given_arguments) == "ok"
