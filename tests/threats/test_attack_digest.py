"""Attacks on the digest of a call: calls that a handler can tell apart are one confirmation or one key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field

from nonsuch.adapters.edge.run import Running
from nonsuch.kernel.idempotency import canonical
from nonsuch.kernel.model import Ok, Unconfirmed
from nonsuch.kernel.schema import publish_input
from nonsuch.kernel.strict_json import Json

from ..adapters.edge.shop import Shop, call, code_of, decide
from ..adapters.edge.test_confirming import within

OPEN: Final = ConfigDict(extra="allow")
MISMATCH: Final = "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"


class Refund(BaseModel):
    model_config = OPEN
    order: str
    amount: int


class Named(BaseModel):
    model_config = OPEN
    shown: str = Field("", alias="seen")


@pydantic.dataclasses.dataclass(config=OPEN)
class Part:
    size: int = 0


class Inner(BaseModel):
    part: Part = Part()
    note: Named = Field(default_factory=lambda: Named.model_validate({}))


def digest(model: type[BaseModel], sent: Mapping[str, Any]) -> bytes:
    given = publish_input(model).parse(sent)
    assert isinstance(given, model)
    return canonical(given, dict(sent))


ATTRIBUTES: Final = sorted({*dir(Named), "__weakref__", "shown", "model_extra"})


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_undeclared_argument_may_have_the_name_of_an_attribute(name: str) -> None:
    sent: list[dict[str, Any]] = [{}, {name: "good"}, {name: "evil"}]
    assert len({digest(Named, each) for each in sent}) == 3
    assert len({digest(Inner, {"note": each}) for each in sent}) == 3


def test_an_undeclared_argument_is_no_declared_one_of_the_same_name() -> None:
    sent = [{"seen": a, "shown": b} for a in ("good", "evil") for b in ("good", "evil")]
    assert len({digest(Named, each) for each in sent}) == 4
    assert digest(Named, {"seen": "a"}) != digest(Named, {"shown": "a"})


def test_what_a_dataclass_does_not_declare_is_told_apart() -> None:
    sent: list[dict[str, Any]] = [
        {"part": {"size": 1}},
        {"part": {"size": 1, "to": "ann"}},
        {"part": {"size": 1, "to": "eve"}},
    ]
    assert len({digest(Inner, each) for each in sent}) == 3


def test_nobody_runs_what_was_not_approved_under_the_name_of_an_attribute() -> None:
    shop = Shop(model=Refund)
    good: dict[str, Json] = {"order": "o1", "amount": 5, "__doc__": "to ann"}
    evil: dict[str, Json] = {"order": "o1", "amount": 5, "__doc__": "to eve"}

    async def using(running: Running) -> None:
        outcome = await call(running, sent=good)
        assert isinstance(outcome, Unconfirmed)
        ident = outcome.ident
        assert code_of(await decide(running, ident, "approve", arguments=evil)) == MISMATCH
        assert isinstance(await decide(running, ident, "approve", arguments=good), Ok)
        assert code_of(await call(running, sent=evil)) == "X_MCP_CONFIRMATION_PENDING"
        assert shop.ran == []
        assert isinstance(await call(running, sent=good), Ok)

    within(shop, using)
