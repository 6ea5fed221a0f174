"""What a resolver, a validator or a predicate raises never leaves the application, whatever its class."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from nonsuch import Agent, Context, OpenSync, Registry, RequestFacts, asgi, can, define_app_mcp, expose, grant
from nonsuch.kernel.audit import Event
from nonsuch.kernel.model import Failed, Hidden


class Given(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def never(cls, value: str) -> str:
        raise SystemExit(value)


def say(input: Given, ctx: Context[None]) -> str:
    return input.word


def leaving(_principal: object) -> bool:
    raise SystemExit("now")


WHO = Agent("a", roles=["editor"])
FAULTS: list[BaseException] = [SystemExit("s3ntinel"), asyncio.CancelledError("s3ntinel"), GeneratorExit()]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_resolver_that_raises_anything_lets_nobody_in_and_is_audited(fault: BaseException) -> None:
    async def resolve(_token: str, _facts: RequestFacts) -> Agent | None:
        raise fault

    events: list[Event] = []
    app = define_app_mcp(Registry(), name="trial", resolve_token=resolve, on_audit=events.append)
    sent: list[dict[str, object]] = []

    async def main() -> None:
        headers = [(b"host", b"localhost"), (b"authorization", b"Bearer t")]
        scope: dict[str, object] = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": b"{}"}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(dict(message))

        await asgi(app)(scope, receive, send)

    asyncio.run(main())
    assert sent[0]["status"] == 503
    assert b"s3ntinel" not in repr(sent).encode()
    assert [event.kind for event in events] == ["auth-refused"]


def test_a_validator_that_leaves_is_an_internal_error() -> None:
    registry = Registry()
    registry.action(policy=can("word:say"), mcp=expose("Say"))(say)
    app = define_app_mcp(registry, name="trial", include="exposed", grants=[grant("editor", "word:say")])
    with OpenSync(app) as running:
        told = running.invoke(WHO, "say", {"word": "s3ntinel"})
    assert isinstance(told, Failed)
    assert told.code == "X_INTERNAL"


def test_a_predicate_that_leaves_hides() -> None:
    registry = Registry()
    registry.action(policy=can("word:say"), mcp=expose("Say", visible_to=leaving))(say)
    app = define_app_mcp(registry, name="trial", include="exposed", grants=[grant("editor", "word:say")])
    with OpenSync(app) as running:
        assert running.invoke(WHO, "say", {"word": "x"}) == Hidden("say")
