"""A query string as arguments: one spelling for each value, and what a body says, a query string says."""

from __future__ import annotations

import json
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, cast
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from nonsuch.adapters.http.flat import arguments, shapes_of
from nonsuch.kernel.schema import Invalid, publish_input


class Level(Enum):
    LOW = 1
    HIGH = 2


class Deep(BaseModel):
    n: int


class Wanted(BaseModel):
    text: str | None = None
    count: int | None = None
    ratio: float | None = None
    flag: bool | None = None
    price: Decimal | None = None
    either: int | bool | None = None
    word: int | str | None = None
    level: Level | None = None
    status: Literal["open", "paid"] | None = None
    mixed: Literal["a", 1, True] | None = None
    status_in: list[Literal["open", "paid"]] | None = None
    count_in: list[int] | None = None
    tags: list[str] | None = None
    flags: list[bool] | None = None
    sort: str | list[str] | None = None


INPUT = publish_input(Wanted)
SHAPES = shapes_of(INPUT.document)


def read(query: str) -> dict[str, Any]:
    assert not isinstance(SHAPES, str)
    return arguments(query, SHAPES)


READ: list[tuple[str, dict[str, Any]]] = [
    ("", {}),
    ("&&", {}),
    ("text=", {"text": ""}),
    ("text", {"text": ""}),
    ("text=a=b", {"text": "a=b"}),
    ("text=a+b%20c%2B", {"text": "a b c+"}),
    ("text=%C3%BC", {"text": "\u00fc"}),
    ("text=\u00c3\u00bc", {"text": "\u00fc"}),  # raw bytes, as a server hands them on
    ("text=%zz%", {"text": "%zz%"}),
    ("te%78t=1", {"text": "1"}),
    ("text=null", {"text": "null"}),
    ("count=5&text=5", {"count": 5, "text": "5"}),
    ("count=-5", {"count": -5}),
    ("count=0", {"count": 0}),
    ("count=" + "9" * 30, {"count": 10**30 - 1}),
    ("ratio=1.5e3", {"ratio": 1500.0}),
    ("ratio=-0.0", {"ratio": -0.0}),
    ("ratio=2", {"ratio": 2}),
    ("flag=true", {"flag": True}),
    ("price=1.50", {"price": "1.50"}),
    ("either=true", {"either": True}),
    ("either=1", {"either": 1}),
    ("word=1", {"word": "1"}),
    ("level=2", {"level": 2}),
    ("mixed=1", {"mixed": "1"}),
    ("status_in=open", {"status_in": ["open"]}),
    ("status_in=open,paid", {"status_in": ["open", "paid"]}),
    ("status_in=open&status_in=paid", {"status_in": ["open", "paid"]}),
    ("status_in=open%2Cpaid", {"status_in": ["open,paid"]}),
    ("count_in=1,2,3", {"count_in": [1, 2, 3]}),
    ("tags=a,b", {"tags": ["a,b"]}),
    ("tags=a&text=x&tags=b", {"tags": ["a", "b"], "text": "x"}),
    ("flags=true&flags=false", {"flags": [True, False]}),
    ("sort=-a", {"sort": "-a"}),
    ("sort=-a&sort=b", {"sort": ["-a", "b"]}),
    ("unknown=1", {"unknown": "1"}),
]


@pytest.mark.parametrize(("query", "told"), READ, ids=[query[:40] for query, _ in READ])
def test_a_query_string_reads_as_one_value(query: str, told: dict[str, Any]) -> None:
    assert repr(read(query)) == repr(told)


REFUSED = [
    *(f"count={text}" for text in ("", "+5", "05", "-0", "5.0", "5e1", " 5", "5 ", "0x5", "\u0665", "1_000")),
    *(f"ratio={text}" for text in ("", ".5", "5.", "+1", "NaN", "inf", "Infinity", "1e999", "1,5", "01.5")),
    *(f"flag={text}" for text in ("", "True", "TRUE", "1", "0", "yes", "on", "t", "null")),
    *(f"count_in={text}" for text in ("", "1,", ",1", "1,,2", "1;2", "01")),
    *(f"level={text}" for text in ("3", "LOW", "")),
    *("status=gone", "status=Open", "status_in=gone", "status_in=open,gone", "status_in=", "flags=1"),
    *("text=a&text=b", "count=1&count=1", "flag=true&flag=true", "status=open&status=paid"),
    *("unknown=1", "unknown", "Text=a", "text[]=a", "text%00=a", "__proto__=1"),
    *("text=%ff", "%ff=1", "text=%ed%a0%80", "text=%c0%af"),
]


@pytest.mark.parametrize("query", REFUSED, ids=ascii)
def test_no_other_spelling_is_taken(query: str) -> None:
    assert isinstance(INPUT.parse(read(query.encode().decode("latin-1"))), Invalid)


def test_a_refusal_does_not_repeat_what_no_document_reads() -> None:
    told = INPUT.parse(read("text=%ff"))
    assert isinstance(told, Invalid)
    assert [str(each) for each in told.issues] == ["cannot be read"]


# what a query string cannot hold


class Nested(BaseModel):
    deep: Deep


class Listed(BaseModel):
    deep: list[Deep]


class Matrix(BaseModel):
    rows: list[list[int]]


class Table(BaseModel):
    table: dict[str, int]


class Anything(BaseModel):
    what: Any


class Anythings(BaseModel):
    what: list[Any]


class Pair(BaseModel):
    pair: tuple[int, str]


class Mixed(BaseModel):
    what: int | Deep


class Nothing(BaseModel):
    what: None


class Recursive(BaseModel):
    more: Recursive | None = None


@pytest.mark.parametrize(
    ("model", "key"),
    [
        (Nested, "deep"),
        (Listed, "deep"),
        (Matrix, "rows"),
        (Table, "table"),
        (Anything, "what"),
        (Anythings, "what"),
        (Pair, "pair"),
        (Mixed, "what"),
        (Nothing, "what"),
        (Recursive, "more"),
    ],
)
def test_what_no_flat_key_holds_is_named(model: type[BaseModel], key: str) -> None:
    assert shapes_of(publish_input(model).document) == key


class Deeply(BaseModel):
    a: Annotated[Level | None, Field(description="x")] = None
    b: list[Level] = []


def test_definitions_are_looked_into() -> None:
    shapes = shapes_of(publish_input(Deeply).document)
    assert not isinstance(shapes, str)
    assert arguments("a=1&b=1&b=2", shapes) == {"a": 1, "b": [1, 2]}


# whatever JSON can say of these keys, a query string says

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
whole = st.integers(-(10**30), 10**30)
values = st.fixed_dictionaries(
    {},
    optional={
        "text": texts,
        "count": whole,
        "ratio": st.floats(allow_nan=False, allow_infinity=False),
        "flag": st.booleans(),
        "either": st.booleans() | whole,
        "status": st.sampled_from(["open", "paid"]),
        "status_in": st.lists(st.sampled_from(["open", "paid"]), min_size=1, max_size=3),
        "count_in": st.lists(whole, min_size=1, max_size=3),
        "tags": st.lists(texts, min_size=1, max_size=3),
        "flags": st.lists(st.booleans(), min_size=1, max_size=3),
    },
)


def spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@given(values, st.booleans())
def test_a_query_string_says_what_a_body_says(sent: dict[str, Any], commas: bool) -> None:
    pairs = list[tuple[str, str]]()
    raw = list[str]()
    for key, value in sent.items():
        many = [spelled(each) for each in cast("list[object]", value if isinstance(value, list) else [value])]
        if commas and key.endswith("_in"):
            raw.append(f"{key}={','.join(quote(each, safe='') for each in many)}")
        else:
            pairs += [(key, each) for each in many]
    query = "&".join([*raw, urlencode(pairs)])
    assert INPUT.parse(read(query)) == INPUT.parse(sent)
