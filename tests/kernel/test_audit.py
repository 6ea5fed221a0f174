"""One event for each outcome: who, what, how it ended and by which code; no payload, whatever it was."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest

from nonsuch import Agent, Human, ListRoots, Principal
from nonsuch.kernel.audit import (
    AuthRefused,
    PromptGet,
    RateLimited,
    ResourceRead,
    TaskAsked,
    ToolCall,
    malformed_call,
    malformed_prompt,
    malformed_read,
    prompt_get,
    resource_read,
    task_asked,
    tool_call,
)
from nonsuch.kernel.model import (
    Begun,
    Failed,
    Hidden,
    InputRequired,
    InvalidArguments,
    Issue,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    ScopeDenied,
    Surface,
    Unconfirmed,
    Unfit,
)
from nonsuch.kernel.tasks import TaskLimits, begun, fingerprint

SENTINEL = "s3ntinel"
AGENT = Agent("a", roles={SENTINEL}, org=SENTINEL, scopes={SENTINEL})

EVENTS: dict[str, tuple[Outcome, ToolCall]] = {
    "ok": (Ok(SENTINEL.encode()), ToolCall("t", "ok", "mcp", "a", "agent")),
    "hidden": (Hidden(SENTINEL), ToolCall("t", "hidden", "mcp", "a", "agent", code="X_MCP_TOOL_UNKNOWN")),
    "scope": (
        ScopeDenied("posts:write"),
        ToolCall("t", "scope-denied", "mcp", "a", "agent", scope="posts:write", code="X_MCP_SCOPE_DENIED"),
    ),
    "arguments": (
        InvalidArguments((Issue(SENTINEL, SENTINEL),)),
        ToolCall("t", "invalid-args", "mcp", "a", "agent", code="X_INPUT_INVALID"),
    ),
    "policy": (
        PolicyDenied("X_OWN", SENTINEL, SENTINEL, SENTINEL, ("p", "q")),
        ToolCall("t", "policy-denied", "mcp", "a", "agent", code="X_OWN", policies=("p", "q")),
    ),
    "policy error": (
        PolicyError(("p",)),
        ToolCall("t", "policy-error", "mcp", "a", "agent", code="X_FORBIDDEN", policies=("p",)),
    ),
    "header": (
        Unfit(SENTINEL),
        ToolCall("t", "invalid-args", "mcp", "a", "agent", code="X_MCP_PROTOCOL"),
    ),
    "capability": (
        Unfit(SENTINEL, ("sampling",)),
        ToolCall("t", "invalid-args", "mcp", "a", "agent", code="X_MCP_CAPABILITY_MISSING"),
    ),
    "waiting for a person": (
        Unconfirmed("X_MCP_CONFIRMATION_PENDING", SENTINEL, SENTINEL, SENTINEL, SENTINEL),
        ToolCall("t", "unconfirmed", "mcp", "a", "agent", code="X_MCP_CONFIRMATION_PENDING"),
    ),
    "rejected by a person": (
        Unconfirmed("X_MCP_CONFIRMATION_REJECTED", SENTINEL, SENTINEL, SENTINEL, SENTINEL),
        ToolCall("t", "policy-denied", "mcp", "a", "agent", code="X_MCP_CONFIRMATION_REJECTED"),
    ),
    "another round": (
        InputRequired({SENTINEL: ListRoots()}, SENTINEL),
        ToolCall("t", "input-required", "mcp", "a", "agent"),
    ),
    "a task": (
        Begun(begun(SENTINEL, SENTINEL, SENTINEL, datetime(2026, 1, 2, tzinfo=UTC), TaskLimits())),
        ToolCall("t", "begun", "mcp", "a", "agent"),
    ),
    "failed": (
        Failed("X_LATE", SENTINEL, SENTINEL, SENTINEL),
        ToolCall("t", "failed", "mcp", "a", "agent", code="X_LATE"),
    ),
}


def test_every_outcome_has_an_event() -> None:
    assert {type(outcome) for outcome, _ in EVENTS.values()} == set(Outcome.__args__)


@pytest.mark.parametrize("name", EVENTS)
def test_the_event_of_an_outcome(name: str) -> None:
    outcome, event = EVENTS[name]
    told = tool_call(AGENT, "t", "mcp", outcome)
    assert told == event
    assert SENTINEL not in repr(told)


HIDDEN_CODE = {"X_MCP_TOOL_UNKNOWN": ("X_MCP_RESOURCE_UNKNOWN", "X_MCP_PROMPT_UNKNOWN")}


@pytest.mark.parametrize("name", EVENTS)
def test_a_reading_and_a_prompt_end_as_a_call_does_and_name_what_is_unknown(name: str) -> None:
    outcome, event = EVENTS[name]
    for_resource, for_prompt = HIDDEN_CODE.get(event.code or "", (event.code, event.code))
    ended = (event.outcome, event.caller, event.caller_kind, None, event.scope)
    read = resource_read(AGENT, "u:1", outcome)
    assert read == ResourceRead("u:1", *ended, for_resource, event.policies)
    got = prompt_get(AGENT, "p", outcome)
    assert got == PromptGet("p", *ended, for_prompt, event.policies)
    completed = prompt_get(AGENT, "p", outcome, "lang")
    assert completed == PromptGet("p", *ended, for_prompt, event.policies, "lang", "completion")
    assert SENTINEL not in repr((read, got, completed))


@pytest.mark.parametrize(
    ("who", "caller", "kind", "person"),
    [
        (Agent("a"), "a", "agent", None),
        (Human("h"), "h", "human", None),
        (Human("h").delegate("a"), "a", "agent", "h"),
    ],
)
def test_who_called_and_for_whom(who: Principal, caller: str, kind: str, person: str | None) -> None:
    ended = Ok(b"")
    for told in (
        tool_call(who, "t", "mcp", ended),
        resource_read(who, "u:1", ended),
        prompt_get(who, "p", ended),
    ):
        assert (told.caller, told.caller_kind, told.acts_for) == (caller, kind, person)


@pytest.mark.parametrize("surface", ["mcp", "http", "agent"])
def test_where_it_was_called(surface: Surface) -> None:
    assert tool_call(AGENT, "t", surface, Ok(b"")).surface == surface


def test_a_name_is_whole_until_it_was_looked_up() -> None:
    """The edge cuts what a caller sent, after it asked whether the whole of it is declared."""
    assert tool_call(AGENT, "x" * 129, "mcp", Hidden("")).tool == "x" * 129


def test_an_event_has_no_room_for_a_payload() -> None:
    names = "tool outcome surface caller caller_kind acts_for scope code policies declared task replayed"
    assert [each.name for each in fields(ToolCall)] == [
        *names.split(),
        "confirmation",
        "decision",
        "kind",
        "at",
    ]
    names = "uri outcome caller caller_kind acts_for scope code policies kind at"
    assert [each.name for each in fields(ResourceRead)] == names.split()
    names = "prompt outcome caller caller_kind acts_for scope code policies completes kind at"
    assert [each.name for each in fields(PromptGet)] == names.split()
    names = "asked outcome task caller caller_kind acts_for tool scope code policies kind at"
    assert [each.name for each in fields(TaskAsked)] == names.split()
    names = "method code caller caller_kind acts_for outcome kind at"
    assert [each.name for each in fields(RateLimited)] == names.split()
    assert [each.name for each in fields(AuthRefused)] == [
        "reason",
        "status",
        "address",
        "path",
        "user_agent",
        "origin",
        "kind",
        "at",
    ]
    assert (ToolCall("t", "ok", "mcp", "a", "agent").kind, AuthRefused("no-token", 401, None, "/").kind) == (
        "tool-call",
        "auth-refused",
    )


# Tasks


def test_both_events_of_a_call_that_goes_on_have_one_fingerprint_and_no_id() -> None:
    outcomes: list[Outcome] = [EVENTS["a task"][0], Ok(b"")]
    told = [tool_call(AGENT, "t", "mcp", outcome, SENTINEL) for outcome in outcomes]
    assert [(each.outcome, each.task) for each in told] == [
        ("begun", fingerprint(SENTINEL)),
        ("ok", fingerprint(SENTINEL)),
    ]
    assert SENTINEL not in repr(told)


@pytest.mark.parametrize("name", EVENTS)
def test_a_task_that_was_asked_after_and_refused_is_audited_as_its_refusal(name: str) -> None:
    outcome, event = EVENTS[name]
    code = "X_MCP_TASK_UNKNOWN" if event.outcome == "hidden" else event.code
    told = task_asked(AGENT, "look", SENTINEL, "t", outcome)
    assert told == TaskAsked(
        "look",
        event.outcome,
        fingerprint(SENTINEL),
        "a",
        "agent",
        None,
        "t",
        event.scope,
        code,
        event.policies,
    )
    assert SENTINEL not in repr(told)


def test_a_task_that_was_asked_after_and_granted_is_audited_as_that() -> None:
    told = task_asked(Human("h").delegate("a"), "cancel", SENTINEL, "t", None)
    assert told == TaskAsked("cancel", "ok", fingerprint(SENTINEL), "a", "agent", "h", "t")


def test_two_events_are_one_whenever_they_were() -> None:
    early, late = (
        ToolCall("t", "ok", "mcp", "a", "agent", at=datetime(2026, 1, day, tzinfo=UTC)) for day in (1, 2)
    )
    assert early == late
    assert hash(early) == hash(late)
    assert early != ToolCall("t", "hidden", "mcp", "a", "agent")


def test_what_had_no_shape_is_told_as_a_refusal_of_its_kind() -> None:
    who = Human("h").delegate("a")
    ended: dict[str, Any] = {
        "outcome": "invalid-args",
        "caller": "a",
        "caller_kind": "agent",
        "acts_for": "h",
        "code": "X_MCP_PROTOCOL",
    }
    assert malformed_call(who, "t", "http", "X_JSON_INVALID") == ToolCall(
        "t", "invalid-args", "http", "a", "agent", "h", code="X_JSON_INVALID"
    )
    assert malformed_read(who, "u") == ResourceRead("u", **ended)
    assert malformed_prompt(who, "p") == PromptGet("p", **ended)
    told = malformed_prompt(who, "p", "lang")
    assert told == PromptGet("p", **ended, completes="lang", kind="completion")
