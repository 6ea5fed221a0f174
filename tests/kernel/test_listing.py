"""A list query takes what its whitelist admits and its input requires, by every door, before it runs."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AliasChoices, AliasPath, BaseModel, Field

from nonsuch import App, ListParams, Registry, can, expose, grant, group
from nonsuch.kernel.model import Call, InvalidArguments, Ok, Outcome
from nonsuch.kernel.schema import InputSchema
from nonsuch.kernel.steps import Permit, Returned

from .trial import EDITOR, Spy, boot, called, drive, faults


class Filter(BaseModel):
    field: str


class Query(BaseModel):
    org: str
    status_eq: str | None = None
    status_in: list[str] = []
    createdAt_gt: int | None = None
    secret_eq: str = "no"
    inner: Filter | None = None
    sort: Annotated[str | None, Field(description="The order")] = None
    fields: list[str] | None = None
    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=500)] = 50


class Row(BaseModel):
    id: str


WHOLE = ListParams(
    filters={"status": ["_eq", "_in"], "createdAt": ["_gt"]}, sort=["createdAt"], fields=["id"], max_limit=100
)


def served(params: ListParams, model: type[BaseModel] = Query, **given: Any) -> App:
    return boot(declared(params, model), grants=[grant("editor", "any")], **given)


def declared(params: ListParams, model: type[BaseModel] = Query, **face: Any) -> Registry:
    def listRows(input: Any) -> list[Row]:
        raise AssertionError("the spy runs it")

    listRows.__annotations__["input"] = model
    registry = Registry()
    registry.query(policy=can("row:list"), mcp=expose("Rows", list_params=params), path="rows", **face)(
        listRows
    )
    return registry


def schema(params: ListParams, model: type[BaseModel] = Query) -> InputSchema:
    (entry,) = served(params, model).kernel.catalog.entries
    return entry.input


# what is published


def test_the_input_is_narrowed_to_the_whitelist_and_what_is_required() -> None:
    string, null = {"type": "string"}, {"type": "null"}
    assert schema(WHOLE).document == {
        "type": "object",
        "properties": {
            "org": string,
            "status_eq": {"anyOf": [string, null], "default": None},
            "status_in": {"type": "array", "items": string, "default": []},
            "createdAt_gt": {"anyOf": [{"type": "integer"}, null], "default": None},
            "sort": {
                "anyOf": [{"type": "string", "enum": ["createdAt", "-createdAt"]}, null],
                "default": None,
                "description": "The order",
            },
            "fields": {
                "anyOf": [{"type": "array", "items": {"type": "string", "enum": ["id"]}}, null],
                "default": None,
            },
            "cursor": {"anyOf": [string, null], "default": None},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 50},
        },
        "required": ["org"],
        "additionalProperties": False,
    }


def test_an_empty_whitelist_admits_what_is_required() -> None:
    assert list(schema(ListParams()).document["properties"]) == ["org"]


def test_without_a_whitelist_the_input_is_as_declared() -> None:
    registry = Registry()

    def listRows(input: Query) -> list[Row]:
        raise AssertionError(input)

    registry.query(policy=can("row:list"), mcp=expose("Rows"))(listRows)
    (entry,) = boot(registry).kernel.catalog.entries
    assert set(entry.input.document["properties"]) == set(Query.model_fields)


class Spelled(BaseModel):
    model_config = {"extra": "allow", "populate_by_name": True}
    state: Annotated[Literal["on", "off"], Field(alias="status_eq")] = "on"
    hidden: Annotated[str, Field(alias="secret")] = "no"
    sort: list[Literal["a", "b", "-b"]] = ["a"]
    limit: Annotated[int, Field(le=10, json_schema_extra={"x-mcp-header": "Limit"})] = 5
    cursor: str = ""


def test_a_whitelist_names_what_callers_send_and_never_widens() -> None:
    told = schema(ListParams({"status": ["_eq"]}, sort=["a", "b"], max_limit=100), Spelled)
    assert told.document["properties"] == {
        "status_eq": {"type": "string", "enum": ["on", "off"], "default": "on"},
        "sort": {
            "type": "array",
            "items": {"type": "string", "enum": ["a", "b", "-b"]},
            "default": ["a"],
        },
        "limit": {"type": "integer", "maximum": 10, "default": 5, "x-mcp-header": "Limit"},
        "cursor": {"type": "string", "default": ""},
    }
    for name in ("state", "hidden", "secret", "else"):
        assert isinstance(told.parse({"status_eq": "on"}), Spelled)
        assert not isinstance(told.parse({name: "on"}), Spelled)


def test_a_default_outside_of_the_whitelist_is_the_handlers_alone() -> None:
    class Sorted(BaseModel):
        sort: str = Field("-secret", max_length=9, json_schema_extra={"x-mcp-header": "Order"})

    told = schema(ListParams(sort=["a"]), Sorted)
    assert told.document["properties"] == {
        "sort": {"type": "string", "enum": ["a", "-a"], "x-mcp-header": "Order"}
    }
    assert told.parse({}) == Sorted(sort="-secret")


def test_what_is_required_and_not_whitelisted_is_as_declared() -> None:
    class Needed(BaseModel):
        sort: str
        fields: list[str]
        limit: int

    told = schema(ListParams(), Needed)
    assert told.document["properties"] == {
        "sort": {"type": "string"},
        "fields": {"type": "array", "items": {"type": "string"}},
        "limit": {"type": "integer"},
    }
    assert told.document["required"] == ["sort", "fields", "limit"]


class Order(Enum):
    UP = "createdAt"
    DOWN = "-createdAt"
    SECRET = "secret"


def test_an_order_may_be_an_enumeration_and_more_than_text() -> None:
    class Ordered(BaseModel):
        sort: Order | int | None = None

    told = schema(ListParams(sort=["createdAt"]), Ordered)
    choice = {"type": "string", "enum": ["createdAt", "-createdAt"]}
    assert told.document["properties"] == {"sort": {"anyOf": [choice, {"type": "null"}], "default": None}}
    assert "$defs" not in told.document


def test_definitions_of_what_was_left_out_are_left_out() -> None:
    class Deep(BaseModel):
        inner_eq: Filter | None = None
        other: Query | None = None

    assert list(schema(ListParams({"inner": ["_eq"]}), Deep).document["$defs"]) == ["Filter"]


# what is refused, by every door

REFUSED: dict[str, dict[str, Any]] = {
    "an optional key that was left out": {"secret_eq": "x"},
    "its default": {"secret_eq": "no"},
    "another operator": {"createdAt_lt": 1},
    "another order": {"sort": "secret"},
    "another order, downwards": {"sort": "-secret"},
    "two signs": {"sort": "--createdAt"},
    "another field": {"fields": ["id", "secret"]},
    "too many rows": {"limit": 101},
    "no rows": {"limit": 0},
    "another case": {"Status_eq": "x"},
    "a key that is required, left out": {"org": None},
}
TAKEN: dict[str, dict[str, Any]] = {
    "nothing else": {},
    "a filter": {"status_eq": "x", "status_in": ["y"], "createdAt_gt": 1},
    "an order": {"sort": "-createdAt"},
    "fields": {"fields": ["id", "id"]},
    "as many rows as there may be": {"limit": 100, "cursor": "c"},
    "nulls": {"sort": None, "fields": None, "cursor": None},
}
APP = served(WHOLE, surface=["staff"], groups={"rows": group("Rows", ["listRows"])})
META = served(WHOLE, surface="meta", groups={"rows": group("Rows", ["listRows"])})


def answer(app: App, call: Call, spy: Spy) -> Outcome:
    return drive(app.kernel.invoke(app.kernel.view_for(EDITOR), call), spy)


DOORS: dict[str, Callable[[dict[str, Any], Spy], Outcome]] = {
    "by name": lambda given, spy: called(APP, EDITOR, "listRows", given, spy, "mcp"),
    "in process": lambda given, spy: called(APP, EDITOR, "listRows", given, spy, "agent"),
    "over HTTP": lambda given, spy: called(APP, EDITOR, "rows", given, spy, "http"),
    "by its resource": lambda given, spy: answer(META, Call("listRows", given, "mcp", "rows"), spy),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", REFUSED)
def test_what_the_whitelist_leaves_out_is_refused_before_the_query_runs(door: str, case: str) -> None:
    spy = Spy()
    outcome = DOORS[door]({"org": "acme", **REFUSED[case]}, spy)
    assert isinstance(outcome, InvalidArguments)
    assert spy.kinds == ["Audit"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", TAKEN)
def test_what_it_admits_runs(door: str, case: str) -> None:
    spy = Spy(handled=lambda _: Returned([]))
    assert DOORS[door]({"org": "acme", **TAKEN[case]}, spy) == Ok(b"[]")
    (permit,) = (step for step in spy.transcript if isinstance(step, Permit))
    assert permit.input == Query(org="acme", **TAKEN[case])


# any whitelist

KEYS = ("status_eq", "status_in", "createdAt_gt", "secret_eq")
VALUES: dict[str, st.SearchStrategy[object]] = {
    "org": st.just("acme"),
    "status_eq": st.sampled_from(("x", None, 1)),
    "status_in": st.sampled_from((["x"], None)),
    "createdAt_gt": st.sampled_from((1, "1")),
    "secret_eq": st.just("x"),
    "sort": st.sampled_from(("a", "-a", "b", "-b", "", None)),
    "fields": st.sampled_from((["a"], ["b", "a"], [], None)),
    "cursor": st.just("c"),
    "limit": st.sampled_from((0, 1, 50, 51, 100, 500, 501)),
    "else": st.just(1),
}


@given(
    st.sets(st.sampled_from(KEYS)),
    st.sets(st.sampled_from(("a", "b"))),
    st.sets(st.sampled_from(("a", "b"))),
    st.none() | st.sampled_from((50, 100, 1_000)),
    st.fixed_dictionaries({}, optional=VALUES),
)
def test_a_list_query_takes_the_declared_values_of_the_keys_that_are_admitted_and_no_other(
    keys: set[str], sort: set[str], fields: set[str], most: int | None, sent: dict[str, Any]
) -> None:
    """The naive rule: the input as it is declared takes it, and so does the whitelist, key by key."""
    filters: dict[str, list[str]] = {}
    for name, operator in (key.split("_") for key in sorted(keys)):
        filters.setdefault(name, []).append(f"_{operator}")
    narrow = schema(ListParams(filters, sorted(sort), sorted(fields), most))
    admitted = {"org", *keys}
    admitted |= {"sort"} if sort else set()
    admitted |= {"fields"} if fields else set()
    admitted |= {"cursor", "limit"} if most is not None else set()
    wanted = (
        set(sent) <= admitted
        and sent.get("sort") in (None, *sort, *(f"-{each}" for each in sort))
        and set(sent.get("fields") or ()) <= fields
        and (most is None or sent.get("limit", 1) <= most)
        and jsonschema_rs.is_valid(Query.model_json_schema(), sent)
    )
    assert isinstance(narrow.parse(sent), Query) is wanted


# what cannot boot


class Choice(BaseModel):
    status_eq: str = ""
    secret: str = Field("no", validation_alias=AliasChoices("other", AliasPath("status_eq", "secret")))


class ByName(BaseModel):
    model_config = {"validate_by_name": True}
    b: str = Field("no", alias="a_eq")
    a_eq: str = Field("", alias="b")


class Typed(BaseModel):
    sort: int = 0
    fields: str | None = None
    limit: str = ""
    cursor: str = ""


class Generous(BaseModel):
    limit: int = 500
    cursor: str = ""


class Ordered(BaseModel):
    sort: Literal["a"] = "a"


WRONG: dict[str, tuple[ListParams, type[BaseModel], list[str]]] = {
    "keys that are not declared": (
        ListParams({"state": ["_eq"], "status": ["eq"]}, sort=["a"], fields=["a"], max_limit=1),
        Row,
        [
            f"whitelists `{key}`, which its input does not declare"
            for key in ("state_eq", "statuseq", "sort", "fields", "cursor", "limit")
        ],
    ),
    "a string for a list": (
        ListParams({"status": "_eq"}, sort="createdAt", fields="id"),
        Query,
        [
            "gives `filters['status']` of its whitelist one string, not a list",
            "gives `sort` of its whitelist one string, not a list",
            "gives `fields` of its whitelist one string, not a list",
        ],
    ),
    "fields of other types": (
        ListParams(sort=["a"], fields=["b"], max_limit=1),
        Typed,
        [
            "whitelists `limit`, and its input field is not an integer",
            "whitelists `a`, which its input field `sort` does not accept",
            "whitelists `sort`, and its input field is not a string or a list of strings",
        ],
    ),
    "an order that is not declared": (
        ListParams(sort=["a", "b"]),
        Ordered,
        ["whitelists `b`, which its input field `sort` does not accept"],
    ),
    "more rows by default than there may be": (
        ListParams(max_limit=100),
        Generous,
        ["has a `limit` of 500 by default, and `max_limit` is 100"],
    ),
    "a limit of nothing": (
        ListParams(max_limit=0),
        Query,
        [
            "gives `max_limit` 0, which admits no row",
            "has a `limit` of 50 by default, and `max_limit` is 0",
        ],
    ),
    "a key from which another field is read": (
        ListParams({"status": ["_eq"]}),
        Choice,
        ["whitelists `status_eq`, from which its input field `secret` is read too"],
    ),
    "a key that is the name of another field": (
        ListParams({"a": ["_eq"]}),
        ByName,
        ["whitelists `a_eq`, from which its input field `a_eq` is read too"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_whitelist_that_does_not_fit_its_input_cannot_boot(case: str) -> None:
    params, model, causes = WRONG[case]
    found = faults(declared(params, model))
    assert {each.code for each in found} == {"X_MCP_LIST_PARAMS_INVALID"}
    assert [each.cause for each in found] == [f"`listRows` {cause}" for cause in causes]


@pytest.mark.parametrize("kind", ["an action", "a query of one row"])
def test_only_a_query_of_a_list_has_list_params(kind: str) -> None:
    registry = Registry()

    def one(input: Query) -> Row:
        raise AssertionError(input)

    face = expose("One", list_params=ListParams())
    if kind == "an action":
        registry.action(policy=can("row:list"), mcp=face)(one)
    else:
        registry.query(policy=can("row:list"), mcp=face, single=True)(one)
    (found,) = faults(registry)
    assert (found.code, found.cause) == (
        "X_MCP_LIST_PARAMS_INVALID",
        "`one` has `list_params` and is no query of a list",
    )
