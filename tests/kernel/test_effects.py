"""What a declaration says of its effect is said once: its hints, its tag and what a call costs agree.

The rule stands here again as a table a person can read, and each of the three is asked for what it says.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import pytest

from nonsuch import Agent, Registry, can, define_app_mcp, expose, group, tool
from nonsuch.adapters.mcp.describe import hints
from nonsuch.adapters.meters import class_of
from nonsuch.kernel.effects import Effect, effect_of

Kind = Literal["query", "action", "tool"]
Does = Literal["reads", "adds", "destroys"]
HINTED: Final = (None, True, False)
BY_KIND: Final[dict[tuple[Kind, bool], Does]] = {
    ("query", False): "reads",
    ("action", True): "destroys",
    ("action", False): "adds",
    ("tool", True): "destroys",
    ("tool", False): "reads",
}


def expected(kind: Kind, destructive: bool, reads: bool | None, harms: bool | None) -> Does:
    """The rule, in a reader's words."""
    does = BY_KIND[kind, destructive]
    if reads is None:
        reads = does == "reads"
    if reads:
        return "reads"
    if harms is not None:
        return "destroys" if harms else "adds"
    if kind == "query":  # nothing was said of what it destroys, and MCP takes the worst
        return "destroys"
    return "destroys" if destructive else "adds"


CASES: Final = [
    (kind, destructive, reads, harms) for kind, destructive in BY_KIND for reads in HINTED for harms in HINTED
]


def hinted(reads: bool | None, harms: bool | None) -> dict[str, bool | str]:
    said = {"readOnlyHint": reads, "destructiveHint": harms}
    return {name: hint for name, hint in said.items() if hint is not None}


@pytest.mark.parametrize(("kind", "destructive", "reads", "harms"), CASES)
def test_the_rule(kind: Kind, destructive: bool, reads: bool | None, harms: bool | None) -> None:
    does = expected(kind, destructive, reads, harms)
    told = effect_of(kind, hinted(reads, harms), destructive=destructive)
    assert told == Effect(does == "reads", does == "destroys")


@pytest.mark.parametrize(("kind", "destructive", "reads", "harms"), CASES)
def test_hints_tag_and_cost_agree(
    kind: Kind, destructive: bool, reads: bool | None, harms: bool | None
) -> None:
    def act() -> str:
        return ""

    registry, written, said = Registry(), dict[str, Any](), hinted(reads, harms)
    if kind == "tool":
        written["act"] = tool("Acts", act, policy="a:b", destructive=destructive, annotations=said)
    elif kind == "query":
        registry.query(policy=can("a:b"), mcp=expose("Acts", annotations=said))(act)
    else:
        face = expose("Acts", annotations=said)
        registry.action(policy=can("a:b"), mcp=face, destructive=destructive)(act)
    app = define_app_mcp(
        registry,
        name="x",
        include="exposed",
        tools=written,
        surface="meta",
        groups={"g": group("G", ["act"])},
    )
    (entry,) = app.kernel.catalog.entries
    ((action,),) = ([*each.actions] for each in app.mcp.catalog(Agent("a")) or ())
    does, told = expected(kind, destructive, reads, harms), hints(entry)
    assert action.kind == ("query" if does == "reads" else "action")
    assert class_of(entry) == ("write" if does == "destroys" else "read")
    assert told["readOnlyHint"] is (does == "reads")
    if does != "reads":  # what a client reads where nothing is said: MCP, ToolAnnotations
        assert told.get("destructiveHint", True) is (does == "destroys")
