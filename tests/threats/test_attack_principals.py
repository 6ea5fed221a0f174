"""Principals that are none: kinds of their own, agents of agents, look-alikes that a resolver returns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from nonsuch import Agent, Human, Registry, can, expose, grant
from nonsuch.kernel.audit import AuthRefused, Event
from nonsuch.kernel.model import PrincipalInvalid

from ..adapters.mcp.wire import Request, in_process
from ..kernel.trial import boot

VERA = Human("vera", roles={"editor"})


@pytest.mark.parametrize(
    "person", [Agent("bot"), Agent("bot", acts_for=VERA), "vera", {"id": "vera"}, Mock(spec=Human), True]
)
def test_an_agent_acts_for_nobody_but_a_human(person: Any) -> None:
    with pytest.raises(PrincipalInvalid):
        Agent("helper", roles={"editor"}, acts_for=person)


@pytest.mark.parametrize("kind", [Agent, Human])
def test_a_principal_has_no_kinds_of_its_own(kind: type[object]) -> None:
    with pytest.raises(TypeError, match="no kinds of its own"):
        type("Robot", (kind,), {})


async def _later(who: object) -> object:
    return who


LOOK_ALIKES: dict[str, Any] = {
    "a name": "vera",
    "true": True,
    "nothing but false": False,
    "a dictionary": {"id": "vera", "roles": ["editor"]},
    "an object with the same members": SimpleNamespace(
        id="vera", roles=frozenset({"editor"}), scopes=None, org=None, acts_for=None
    ),
    "a mock that says it is an agent": Mock(spec=Agent),
    "a mock that says it is a human": Mock(spec=Human),
    "the class": Agent,
}


@pytest.mark.parametrize("path", ["/api/publish", "/mcp"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_resolver_that_returns_another_type_lets_nobody_in(name: str, late: bool, path: str) -> None:
    found = LOOK_ALIKES[name]
    events: list[Event] = []
    ran: list[str] = []
    registry = Registry()

    @registry.action(policy=can("post:publish"), mcp=expose("Publish"))
    def publish() -> None:
        ran.append("published")

    def resolve(_token: str) -> Any:
        return _later(found) if late else found

    app = boot(
        registry,
        grants=[grant("editor", "any")],
        resolve_token=resolve,
        on_audit=events.append,
    )
    headers = (("Host", "localhost"), ("Authorization", "Bearer t"), ("Content-Type", "application/json"))
    answer = in_process(app, Request("POST", path, headers, b"{}"))
    assert answer.status == 503
    assert b"vera" not in answer.body
    assert events == [AuthRefused("resolver-failed", 503, "127.0.0.1", path)]
    assert ran == []
