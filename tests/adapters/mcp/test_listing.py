"""What a declaration becomes in `tools/list`: every tool as each revision wants it, its hints derived."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types.methods import validate_server_result
from pydantic import BaseModel, Field, RootModel

from nonsuch import BootError, Registry, can, define_app_mcp, expose

from .asking import MODERN, REVISIONS, ask, caller, declared, nothing, result, served, tools


class Node(BaseModel):
    name: str
    below: list[Node] = []


class Names(RootModel[list[str]]):
    pass


class Plain(BaseModel):
    name: str = Field(default="x", examples=["y"])


class NoFields(BaseModel):
    pass


def recursive(input: Node) -> Node:
    return input


def listed(input: Names) -> str:
    return str(input)


def plain(input: Plain) -> Plain:
    return input


def empty(input: NoFields) -> dict[str, int]:
    return {}


DECLARATIONS = {
    "no input": declared(nothing),
    "a plain input": declared(plain),
    "an input without fields": declared(empty),
    "a title": declared(plain, title="Plain"),
    "an input that refers to itself": declared(recursive),
    "an input that is a list": declared(listed),
    "a hint that is no boolean": declared(plain, annotations={"readOnlyHint": "yes"}),
    "a title of the hints that is no text": declared(plain, annotations={"title": True}),
}


@pytest.mark.parametrize("case", DECLARATIONS)
def test_a_tool_is_refused_at_boot_or_listed_as_every_revision_wants_it(case: str) -> None:
    try:
        app = served(DECLARATIONS[case], "t")
    except BootError as refused:
        codes = {each.code for each in refused.faults}
    else:
        codes = set[str]()
        for revision in REVISIONS:
            as_listed(revision, result(ask(revision, "tools/list", app=app)))
    assert codes <= {"X_DECLARATION_INVALID"}


def as_listed(revision: str, told: dict[str, Any]) -> None:
    """Assert what a client asserts; one tool that misses it costs the client the whole list."""
    validate_server_result("tools/list", revision, told)
    for each in told["tools"]:
        hints: dict[str, object] = each["annotations"]
        assert each["inputSchema"]["type"] == "object"
        assert {name for name, hint in hints.items() if not isinstance(hint, bool)} <= {"title"}
        assert isinstance(hints.get("title", ""), str)


HINTS: tuple[tuple[str, dict[str, Any], dict[str, bool | str], dict[str, bool | str]], ...] = (
    ("query", {}, {}, {"readOnlyHint": True}),
    ("query", {"single": True}, {}, {"readOnlyHint": True}),
    ("action", {}, {}, {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}),
    (
        "action",
        {"destructive": False},
        {},
        {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False},
    ),
    (
        "action",
        {"idempotent": True},
        {},
        {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True},
    ),
    (
        "action",
        {"destructive": True},
        {"destructiveHint": False, "openWorldHint": False, "title": "T"},
        {
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": False,
            "title": "T",
        },
    ),
    ("query", {}, {"readOnlyHint": False}, {"readOnlyHint": False}),
    ("action", {}, {"readOnlyHint": True}, {"readOnlyHint": True}),
)


@pytest.mark.parametrize(("kind", "given", "over", "shown"), HINTS)
def test_hints_are_derived_and_overridden_key_by_key(
    kind: str, given: dict[str, Any], over: dict[str, bool | str], shown: dict[str, bool | str]
) -> None:
    registry = Registry()
    declare = registry.query if kind == "query" else registry.action
    declare(policy=can("a:b"), mcp=expose("d", annotations=over), **given)(nothing)
    app = define_app_mcp(registry, name="x", include="exposed", resolve_token=caller, rate_limits=None)
    for revision in REVISIONS:
        assert [each["annotations"] for each in tools(revision, app=app)] == [shown]


WRITTEN: tuple[tuple[bool, dict[str, bool | str], dict[str, bool | str]], ...] = (
    (True, {}, {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}),
    (False, {}, {"readOnlyHint": True}),
    (
        False,
        {"readOnlyHint": False},
        {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False},
    ),
)


@pytest.mark.parametrize(("harmful", "over", "shown"), WRITTEN)
def test_hints_of_a_written_tool(
    harmful: bool, over: dict[str, bool | str], shown: dict[str, bool | str]
) -> None:
    app = served(declared(nothing, destructive=harmful, annotations=over), "t")
    assert tools(MODERN, app=app)[0]["annotations"] == shown
