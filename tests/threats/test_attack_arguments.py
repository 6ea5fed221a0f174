"""Arguments that cost more to refuse than to send: unions that double, errors by the thousand."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

import pytest
from pydantic import AfterValidator, BaseModel, Field

from nonsuch import App, Principal, Registry, can, expose, grant
from nonsuch.kernel.model import InvalidArguments, Issue
from nonsuch.kernel.schema import Invalid, publish_input

from ..adapters.mcp.wire import Request, in_process
from ..kernel.trial import EDITOR, boot, called, faults

HEADERS: Final = (
    ("Host", "localhost"),
    ("Authorization", "Bearer ed"),
    ("Content-Type", "application/json"),
    ("MCP-Protocol-Version", "2025-11-25"),
)
MOST_BYTES: Final = 8 * 1024


def serving(model: type[BaseModel]) -> Registry:
    """Declare one action that takes a model."""
    registry = Registry()

    def search(input: Any) -> str:
        return "found"

    search.__annotations__["input"] = model
    registry.action(policy=can("post:search"), mcp=expose("Search"))(search)
    return registry


def editor(_token: str) -> Principal:
    return EDITOR


def app_of(model: type[BaseModel]) -> App:
    return boot(serving(model), grants=[grant("editor", "post:search")], resolve_token=editor)


# unions


class Either(BaseModel):
    either: Either | Neither | None = None


class Neither(BaseModel):
    neither: Either | Neither | None = None


class Lists(BaseModel):
    items: list[Lists | Others] = []


class Others(BaseModel):
    items: list[Lists | Others] = []


class Shapes(BaseModel):
    inner: list[Self] | dict[str, Self] | None = None


class Around(BaseModel):
    first: Either


@pytest.mark.parametrize("model", [Either, Lists, Shapes, Around])
def test_a_union_that_doubles_at_each_level_is_refused_at_boot(model: type[BaseModel]) -> None:
    assert [each.code for each in faults(serving(model))] == ["X_DECLARATION_INVALID"]


class Both(BaseModel):
    kind: Literal["both"]
    of: Condition


class Not(BaseModel):
    kind: Literal["not"]
    of: Condition


class Is(BaseModel):
    kind: Literal["is"]
    word: str


Condition = Annotated[Both | Not | Is, Field(discriminator="kind")]


class Query(BaseModel):
    where: Condition


class AllOf(BaseModel):
    a_list: list[Rule]  # before the discriminator, however properties are ordered
    kind: Literal["all"]


class AnyOf(BaseModel):
    a_list: list[Rule]
    kind: Literal["any"]


Rule = Annotated[AllOf | AnyOf, Field(discriminator="kind")]


class Rules(BaseModel):
    where: Rule


def chain(levels: int) -> dict[str, Any]:
    where: dict[str, Any] = {"kind": "is", "word": 1}
    for level in range(levels):
        where = {"kind": ("both", "not")[level % 2], "of": where}
    return {"where": where}


def listed(levels: int) -> dict[str, Any]:
    where: dict[str, Any] = {"a_list": 1, "kind": "all"}
    for level in range(levels):
        where = {"a_list": [where], "kind": ("all", "any")[level % 2]}
    return {"where": where}


def fastest(model: type[BaseModel], given: Mapping[str, Any]) -> float:
    """Return the least time that refusing took."""
    schema = publish_input(model)
    took: list[float] = []
    for _ in range(5):
        before = time.perf_counter()
        assert isinstance(schema.parse(given), Invalid)
        took.append(time.perf_counter() - before)
    return min(took)


@pytest.mark.parametrize(("model", "deep"), [(Query, chain), (Rules, listed)])
def test_a_union_with_a_discriminator_costs_no_more_than_its_size(model: type[BaseModel], deep: Any) -> None:
    """Seven levels more would be 128 times as much if each level doubled it."""
    outcome = called(app_of(model), EDITOR, "search", deep(14))
    assert isinstance(outcome, InvalidArguments)
    long = fastest(model, deep(14))
    assert long < 0.5
    assert long / fastest(model, deep(7)) < 16


class Perhaps(BaseModel):
    name: str
    child: Self | None = None


class Tree(BaseModel):
    name: str
    children: list[Self] = []


class Index(BaseModel):
    name: str
    pages: dict[str, Self] = {}


ONCE: Final[dict[type[BaseModel], tuple[dict[str, Any], Issue]]] = {
    Perhaps: ({"name": "a", "child": {"name": "b"}}, Issue("name", "must be of type string")),
    Tree: ({"name": "a", "children": [{"name": "b"}]}, Issue("name", "must be of type string")),
    Index: ({"name": "a", "pages": {"p": {"name": "b"}}}, Issue("name", "must be of type string")),
}


@pytest.mark.parametrize("model", ONCE)
def test_a_model_that_holds_itself_once_still_boots_and_explains(model: type[BaseModel]) -> None:
    sound, issue = ONCE[model]
    app = app_of(model)
    assert not isinstance(called(app, EDITOR, "search", sound), InvalidArguments)
    assert called(app, EDITOR, "search", {**sound, "name": 1}) == InvalidArguments((issue,))


# errors by the thousand


class Bag(BaseModel):
    items: dict[str, list[int]] = {}
    tree: dict[str, Any] = {}


def _odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("must be odd")
    return value


class OddBag(BaseModel):
    items: dict[str, list[Annotated[int, AfterValidator(_odd)]]] = {}


class Closed(BaseModel):
    """What it does not know is not an argument."""


LONG_KEY: Final = "k" * 100_000
LARGE: Final[dict[str, tuple[type[BaseModel], dict[str, Any]]]] = {
    "wrong items under a long key": (Bag, {"items": {LONG_KEY: ["x"] * 20_000}}),
    "wrong items under a short key": (Bag, {"items": {"k": ["x"] * 20_000}}),
    "one wrong item under a long key": (Bag, {"items": {LONG_KEY: ["x"]}}),
    "a few wrong items under a key": (
        Bag,
        {"items": {"k" * 4_000: ["x"] * 900}, "tree": {"a": "a" * 200_000}},
    ),
    "long names that are no arguments": (Closed, {f"{number}{LONG_KEY}": 1 for number in range(3)}),
    "many names that are no arguments": (Closed, {f"{number}": 1 for number in range(20_000)}),
    "items that a validator refuses": (OddBag, {"items": {LONG_KEY: [2] * 20_000}}),
    "a few items that a validator refuses": (OddBag, {"items": {LONG_KEY: [2] * 32}}),
}


def posted(app: App, path: str, body: bytes) -> tuple[int, bytes, int]:
    """Post a body: status, answer and the most memory that Python held meanwhile."""
    tracemalloc.start()
    try:
        answer = in_process(app, Request("POST", path, HEADERS, body))
        return answer.status, answer.body, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", LARGE)
def test_a_large_refusal_is_small_and_costs_little(name: str) -> None:
    model, given = LARGE[name]
    app = app_of(model)
    posted(app, "/api/search", b'{"items":1}')  # what is made once is not what a refusal costs
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search", "arguments": given},
    }
    for path, body in (("/api/search", json.dumps(given)), ("/mcp", json.dumps(call))):
        status, answer, peak = posted(app, path, body.encode())
        assert (path, status) in (("/api/search", 422), ("/mcp", 200))
        assert b"X_INPUT_INVALID" in answer
        assert len(answer) < MOST_BYTES
        assert peak < 50 * len(body)


def test_the_steps_of_a_path_are_short() -> None:
    invalid = publish_input(Bag).parse({"items": {LONG_KEY: ["x"]}})
    short = "k" * 61 + "..."
    assert invalid == Invalid((Issue(f"items.{short}.0", "must be of type integer"),))


def test_a_small_refusal_lists_every_issue() -> None:
    invalid = publish_input(Bag).parse({"items": {"a": ["x", 1, "y"], "b": 1}, "more": 1})
    assert invalid == Invalid(
        (
            Issue("items.a.0", "must be of type integer"),
            Issue("items.a.2", "must be of type integer"),
            Issue("items.b", "must be of type array"),
            Issue("more", "not an argument"),
        )
    )
