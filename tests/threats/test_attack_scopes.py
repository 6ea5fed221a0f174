"""A token that opens the other door: an action that is no tool, over HTTP, under no scope."""

from __future__ import annotations

from typing import Any, Final

import pytest

from nonsuch import Agent, App, Human, Principal, Registry, can, expose, grant
from nonsuch.kernel.audit import Event, ToolCall
from nonsuch.kernel.model import PrincipalInvalid

from ..adapters.mcp.wire import Answer, Request, in_process
from ..kernel.trial import boot, faults

WRITE: Final = "press:write"
EDITOR: Final = frozenset({"editor"})
SESSION: Final = Human("vera", roles=EDITOR)
TOKENS: Final[dict[str, Principal]] = {
    "an agent without scopes": Agent("a", roles=EDITOR),
    "an agent with every scope": Agent("a", roles=EDITOR, scopes={WRITE, "purge", "post:purge", "*"}),
    "an agent of a session": SESSION.delegate("a", scopes={WRITE}),
    "an agent of a token": Human("h", roles=EDITOR, scopes={WRITE}).delegate("a", scopes={WRITE}),
    "a token of a person": Human("h", roles=EDITOR, scopes={WRITE, "purge", "*"}),
    "a token of a person without scopes": Human("h", roles=EDITOR, scopes=()),
}


def press() -> tuple[Registry, list[str]]:
    """Declare a tool and an action that is none, and keep what ran."""
    registry, ran = Registry(), list[str]()

    @registry.action(policy=can("post:publish"), mcp=expose("Publish"))
    def publish() -> None:
        ran.append("publish")

    @registry.action(policy=can("post:purge"))
    def purge() -> None:
        ran.append("purge")

    return registry, ran


def app_of(registry: Registry, who: Principal, events: list[Event], **given: Any) -> App:

    def resolve(_token: str) -> Principal:
        return who

    settings: dict[str, Any] = {"scopes": {WRITE: ["publish"]}, **given}
    return boot(
        registry,
        grants=[grant("editor", "any")],
        resolve_token=resolve,
        on_audit=events.append,
        **settings,
    )


def purged(app: App) -> Answer:
    headers = (("Host", "localhost"), ("Authorization", "Bearer t"), ("Content-Type", "application/json"))
    return in_process(app, Request("POST", "/api/purge", headers, b"{}"))


@pytest.mark.parametrize("name", TOKENS)
def test_no_token_opens_an_action_under_no_scope(name: str) -> None:
    registry, ran = press()
    who, events = TOKENS[name], list[Event]()
    answer = purged(app_of(registry, who, events))
    assert answer.status == 403
    assert b"X_MCP_SCOPE_DENIED" in answer.body
    assert ran == []
    (event,) = events
    assert isinstance(event, ToolCall)
    assert (event.tool, event.outcome, event.caller) == ("purge", "scope-denied", who.id)


def test_a_persons_session_opens_it() -> None:
    registry, ran = press()
    assert purged(app_of(registry, SESSION, [])).status == 200
    assert ran == ["purge"]


def test_an_action_that_is_no_tool_can_be_put_under_a_scope() -> None:
    scopes = {WRITE: ["publish"], "press:purge": ["purge"]}
    told: list[int] = []
    for held in ({WRITE}, {"press:purge"}):
        registry, _ = press()
        who = Agent("a", roles=EDITOR, scopes=held)
        told.append(purged(app_of(registry, who, [], scopes=scopes)).status)
    assert told == [403, 200]


def test_without_scopes_no_action_asks_for_one() -> None:
    registry, ran = press()
    assert purged(app_of(registry, Agent("a", roles=EDITOR), [], scopes=None)).status == 200
    assert ran == ["purge"]


def test_the_scope_of_no_scope_is_nobodys_to_name() -> None:
    with pytest.raises(PrincipalInvalid):
        Agent("a", scopes={"-"})
    with pytest.raises(PrincipalInvalid):
        Human("h", scopes={"-"})
    registry, _ = press()
    told = faults(registry, scopes={"-": ["purge"], WRITE: ["publish"]})
    assert [each.code for each in told] == ["X_NAME_INVALID"]
