"""Two calls are one confirmation exactly when the handler could not tell them apart.

What a handler can tell is written here a second time, by observation: types, values, order, signs of zero,
code points, and which arguments were sent (`model_fields_set`). The kernel's digest is never asked why.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Literal, cast

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from nonsuch import Agent, Registry, can, expose, grant, mcp_confirmations, memory_confirmation_store
from nonsuch.kernel.model import Call
from nonsuch.kernel.steps import Answer, Audit, OpenConfirmation, Returned, Step

from ..kernel.trial import boot


class Speed(Enum):
    SLOW = "slow"
    FAST = "fast"


class Inner(BaseModel):
    depth: int = 1
    ratio: float = 0.5


class Input(BaseModel):
    count: int = 0
    ratio: float = 0.0
    either: int | float = 0
    text: str = ""
    flag: bool = False
    price: Decimal = Decimal(0)
    day: date | None = None
    at: datetime | None = None
    speed: Speed = Speed.SLOW
    word: Literal["a", "b"] = "a"
    tags: list[str] = []
    weights: dict[str, float] = {}
    inner: Inner = Inner()
    anything: Any = None


def handle(input: Input) -> str:
    raise AssertionError("nothing runs here")


def gated() -> Any:
    registry = Registry()
    registry.action(policy=can("a:b"), mcp=expose("A tool"))(handle)
    decide = mcp_confirmations(tools=["handle"], store=memory_confirmation_store(), permission="a:decide")
    return boot(registry, confirmations=registry.add(decide), grants=[grant("clerk", "a:b")])


APP: Final = gated()
WHO: Final = Agent("ag", roles={"clerk"})


def told(arguments: Mapping[str, Any]) -> tuple[object, str | None]:
    """Return what a handler would be given, and the fingerprint under which the call waits."""
    prints: list[str] = []

    def answer(step: Step) -> Answer:
        if isinstance(step, OpenConfirmation):
            prints.append(step.asking.fingerprint)
        assert isinstance(step, (OpenConfirmation, Audit))
        return Returned(None)

    kernel = APP.kernel
    steps = kernel.invoke(kernel.view_for(WHO), Call("handle", arguments, "agent"))
    try:
        step = next(steps)
        while True:
            step = steps.send(answer(step))
    except StopIteration:
        pass
    entry = next(each for each in APP.kernel.catalog.entries if each.name == "handle")
    return entry.input.parse(arguments), prints[0] if prints else None


def seen(value: object) -> object:
    """What a handler can observe of a value, as something that is equal only to what looks the same."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        held = frozenset((name, seen(getattr(value, name))) for name in fields)
        return type(value), frozenset(value.model_fields_set), held
    if isinstance(value, dict):
        pairs = cast("dict[object, object]", value).items()
        return dict.__name__, frozenset((key, seen(each)) for key, each in pairs)
    if isinstance(value, list):
        return list.__name__, tuple(seen(each) for each in cast("list[object]", value))
    return type(value), repr(value)


COMPOSED, DECOMPOSED = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")
NUMBERS: Final = st.sampled_from([0, 0.0, -0.0, 1, 1.0, 2, 0.5, 1e20, 10**20])
WHOLE: Final = st.sampled_from([0, 0.0, 1, 1.0, 2])
TEXTS: Final = st.sampled_from(["", "a", "A", "\u0430", COMPOSED, DECOMPOSED, " a", "a\u200b", "1"])
JSON: Final = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
FIELDS: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    "count": WHOLE,
    "ratio": NUMBERS,
    "either": NUMBERS,
    "text": TEXTS,
    "flag": st.booleans(),
    "price": st.sampled_from(["0", "0.0", "-0", "1", "1.0", 1, 1.0]),
    "day": st.sampled_from([None, "2026-01-02", "2026-02-01"]),
    "at": st.sampled_from(
        [None, "2026-01-02T00:00:00Z", "2026-01-02T00:00:00+00:00", "2026-01-02T01:00:00+01:00"]
    ),
    "speed": st.sampled_from(["slow", "fast"]),
    "word": st.sampled_from(["a", "b"]),
    "tags": st.lists(TEXTS, max_size=2),
    "weights": st.dictionaries(st.sampled_from(["a", "b"]), NUMBERS, max_size=2),
    "inner": st.fixed_dictionaries({}, optional={"depth": WHOLE, "ratio": NUMBERS}),
    "anything": JSON,
}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two calls that differ in few arguments: most of them alike, in another order."""
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), unique=True, max_size=4))
    one = {name: draw(FIELDS[name]) for name in names}
    other = {name: one[name] for name in draw(st.permutations(names))}
    for name in draw(st.lists(st.sampled_from(sorted(FIELDS)), unique=True, max_size=2)):
        other.pop(name, None)
        if draw(st.booleans()):
            other[name] = draw(FIELDS[name])
    return one, other


@given(pairs())
def test_two_calls_are_one_confirmation_exactly_when_the_handler_cannot_tell_them_apart(
    pair: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    (one, first), (other, second) = told(pair[0]), told(pair[1])
    assert first is not None
    assert second is not None
    assert (first == second) is (seen(one) == seen(other))


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return told(one)[1] == told(other)[1]


def test_the_values_that_are_known_to_be_confused() -> None:
    assert same({"count": 1}, {"count": 1.0})
    assert same({"ratio": 1}, {"ratio": 1.0})
    assert not same({"either": 1}, {"either": 1.0})
    assert not same({"anything": 1}, {"anything": True})
    assert same({"text": "a", "count": 2}, {"count": 2, "text": "a"})
    assert same({"weights": {"a": 1, "b": 2}}, {"weights": {"b": 2, "a": 1}})
    assert not same({"text": COMPOSED}, {"text": DECOMPOSED})
    assert not same({"ratio": 0.0}, {"ratio": -0.0})
    assert same({"count": 0}, {"count": 0.0})
    assert not same({"price": "1.0"}, {"price": "1.00"})
    assert not same({"tags": ["a", "b"]}, {"tags": ["b", "a"]})
    assert not same({"day": "2026-01-02"}, {"text": "2026-01-02"})
    assert not same({}, {"count": 0})  # a handler that reads `model_fields_set` can tell
    assert same({"inner": {"depth": 1}}, {"inner": {"depth": 1.0}})
