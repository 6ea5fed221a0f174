"""`task=` of a declaration: what boots, what does not, and what an entry says of it."""

from __future__ import annotations

from typing import Any

import pytest

from nonsuch import BootError, Context, Registry, can, define_app_mcp, expose, tool
from nonsuch.kernel.catalog import Entry


def work(ctx: Context[None]) -> None:
    return None


def alone() -> None:
    return None


def entry(**face: Any) -> Entry:
    """The entry of an app's one tool."""
    tools = {"work": tool("d", face.pop("handler", work), policy="a:b", **face)}
    return define_app_mcp(Registry(), name="x", tools=tools).kernel.catalog.entries[0]


def test_no_tool_goes_on_as_a_task_unless_it_says_so() -> None:
    registry = Registry()
    registry.action(policy=can("a:b"), mcp=expose("d"))(work)
    made = define_app_mcp(registry, name="x", include="exposed").kernel.catalog.entries[0]
    assert (made.task, made.asks_first) == ("never", False)
    assert (entry().task, entry().asks_first) == ("never", False)


def test_actions_queries_and_tools_say_it_alike() -> None:
    registry = Registry()

    @registry.query(policy=can("a:b"), mcp=expose("d", task="optional", asks_first=True))
    def rows(ctx: Context[None]) -> list[str]:
        return []

    made = define_app_mcp(registry, name="x", include="exposed").kernel.catalog.entries[0]
    assert (made.task, made.asks_first) == ("optional", True)
    assert entry(task="required").task == "required"
    assert entry(task="optional", handler=alone).task == "optional"


@pytest.mark.parametrize(
    ("face", "cause"),
    [
        ({"task": True}, "`work` gives `task` something else than a word for it"),
        ({"task": "sometimes"}, "`work` gives `task` something else than a word for it"),
        ({"task": None}, "`work` gives `task` something else than a word for it"),
        ({"asks_first": True}, "`work` asks first and can never become a task"),
        (
            {"task": "required", "asks_first": True, "handler": alone},
            "`work` asks first and can never become a task",
        ),
    ],
)
def test_what_could_never_be_is_refused_at_boot(face: dict[str, Any], cause: str) -> None:
    with pytest.raises(BootError) as refused:
        entry(**face)
    assert [(each.code, each.cause) for each in refused.value.faults] == [("X_DECLARATION_INVALID", cause)]
