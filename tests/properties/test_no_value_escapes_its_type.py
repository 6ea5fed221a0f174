"""No value escapes its type: what the engine holds is what was sent, and no input or row turns a forbid off.

Escapes of Cedar's JSON (`__entity`, `__extn`, `__expr`) stand anywhere: as text, as key, as value.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, Literal, TypeVar, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic import Field as aliased

from nonsuch.kernel import cedar
from nonsuch.kernel.catalog import Catalog
from nonsuch.kernel.gates import Kernel
from nonsuch.kernel.shapes import Field, Unencodable, encode_fields, entity, fields_of, record_text

from ..rules import LONG, Caller
from . import plain_policies as plain
from . import shelf
from .drawn_policies import ESCAPES, MOST, ROWS, callers, numbered, numbers, tools, words
from .plain_policies import Given, Head, Line, Row, Set, Tool

M = TypeVar("M", bound=BaseModel)

# what is told to the engine, read back from it


class Mood(enum.StrEnum):
    """A text by another type."""

    STOP = "stop"
    EXTN = '{"__extn":{"fn":"unknown","arg":"x"}}'


class Size(enum.IntEnum):
    """A number by another type."""

    LEAST = -(2**63)
    MOST = MOST


class Leaf(BaseModel):
    """A record within."""

    name: str
    most: int | None = None


class Whole(BaseModel):
    """One field of every shape; some of them are called what Cedar calls its escapes."""

    text: str
    maybe: str | None
    number: int
    flag: bool
    mood: Mood
    size: Size
    one: Literal["a", "__entity"]
    key: UUID
    texts: list[str]
    numbers: frozenset[int]
    several: tuple[bool, ...]
    pairs: dict[str, str]
    counts: dict[str, int]
    leaf: Leaf
    leaves: list[Leaf]
    named: dict[str, Leaf]
    deep: dict[str, dict[str, list[str]]]
    quoted: str = aliased(alias='a "b" \\ c')
    reserved: str = aliased(alias="in")


@cache
def fields() -> tuple[Field, ...]:
    """What the kernel makes of it."""
    return fields_of(Whole)


def forget() -> None:
    """Make it again when next asked."""
    fields.cache_clear()
    shelf.forget()


_leaf: Final = st.builds(Leaf, name=words, most=st.none() | numbers)
_some = st.lists(words, max_size=3)
_values: Final[dict[str, st.SearchStrategy[Any]]] = {
    "text": words,
    "maybe": st.none() | words,
    "number": numbers,
    "flag": st.booleans(),
    "mood": st.sampled_from(Mood),
    "size": st.sampled_from(Size),
    "one": st.sampled_from(("a", "__entity")),
    "key": st.uuids(),
    "texts": _some,
    "numbers": st.frozensets(numbers, max_size=3),
    "several": st.lists(st.booleans(), max_size=3).map(tuple),
    "pairs": st.dictionaries(words, words, max_size=3),
    "counts": st.dictionaries(words, numbers, max_size=3),
    "leaf": _leaf,
    "leaves": st.lists(_leaf, max_size=2),
    "named": st.dictionaries(words, _leaf, max_size=2),
    "deep": st.dictionaries(words, st.dictionaries(words, _some, max_size=2), max_size=2),
    "quoted": words,
    "reserved": words,
}
ALIASES: Final = {"quoted": 'a "b" \\ c', "reserved": "in"}


def unchecked(model: type[M], **values: Any) -> M:
    """A value that was never validated, as applications make them of database rows."""
    return model.model_construct(**values)


@cache
def schema() -> cedar.Schema:
    """The engine's own type of it."""
    return cedar.schema(f"entity Whole = {record_text(fields())};")


def held_by_the_engine(value: BaseModel) -> Any:
    """The attributes of a value as the engine renders them, after it took what we encoded."""
    try:
        document = json.dumps([entity("Whole", "w", encode_fields(fields(), value))])
    except TypeError as fault:
        raise AssertionError("what was encoded is no JSON") from fault
    text = str(cedar.entities(document, schema()))
    assert not text.startswith("<"), "the engine holds what it cannot write down"
    rendered = json.loads(text)
    return canonical(rendered[0]["attrs"])


def canonical(value: Any) -> Any:
    """A value in which sets have no order and no doubles, and every type is itself."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return tuple(sorted((key, canonical(each)) for key, each in held.items()))
    if isinstance(value, list):
        return frozenset(canonical(each) for each in cast("Iterable[Any]", value))
    return (type(value).__name__, value)


def plainly(value: Any) -> Any:
    """What a value is, naively: a record of its fields, a map as pairs, without what is absent."""
    match value:
        case bool():
            return value
        case enum.Enum():
            return value.value
        case UUID():
            return str(value)
        case BaseModel():
            named = {ALIASES.get(name, name): getattr(value, name) for name in type(value).model_fields}
            return {name: plainly(each) for name, each in named.items() if each is not None}
        case Mapping():
            held = cast("Mapping[str, Any]", value)
            return [{"k": key, "v": plainly(each)} for key, each in held.items()]
        case list() | tuple() | frozenset():
            return [plainly(each) for each in cast("Iterable[Any]", value)]
        case _:
            return value


_field: Final = st.one_of(*(st.tuples(st.just(name), strategy) for name, strategy in _values.items()))


@settings(max_examples=max(settings().max_examples, 4_000))
@given(_field, _field)
def test_what_the_engine_holds_is_what_was_sent(one: tuple[str, Any], other: tuple[str, Any]) -> None:
    """Two fields at a time hold anything of their types."""
    value = unchecked(Whole, **{**FINE, **dict((one, other))})
    assert held_by_the_engine(value) == canonical(plainly(value))


# values of any other type

_LEAVES: Final = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | words
    | st.sampled_from((2**63, -(2**63) - 1, 1.0, b"stop", "\ud800"))
)
_SMUGGLED: Final = st.sampled_from(
    (
        {"__entity": {"type": "Human", "id": "a"}},
        {"__extn": {"fn": "unknown", "arg": "x"}},
        {"__extn": {"fn": "ip", "arg": "127.0.0.1"}},
        {"__expr": "true"},
        [{"__extn": {"fn": "unknown", "arg": "x"}}],
        {"k": {"__extn": {"fn": "unknown", "arg": "x"}}, "v": "stop"},
        {"stop": {"__entity": {"type": "Human", "id": "a"}}},
    )
)
_any: Final = st.recursive(
    _LEAVES | _SMUGGLED,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(ESCAPES) | words, inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(max_examples=max(settings().max_examples, 600))
@given(st.sampled_from(tuple(_values)), _any)
def test_any_other_value_is_refused_or_held_by_its_type(name: str, wrong: Any) -> None:
    """One field of a row that nobody validated holds anything at all."""
    refused_or_held(name, wrong)


def refused_or_held(name: str, wrong: Any) -> None:
    """We refuse it, not the engine, which would do so without a place; or the engine holds it as it is."""
    value = unchecked(Whole, **{**FINE, name: wrong})
    try:
        held = held_by_the_engine(value)
    except Unencodable:
        return
    except ValueError:
        assert "\\ud8" in json.dumps(wrong)  # half a surrogate pair is no JSON
        return
    assert held == canonical(plainly(value))


WRONG: Final[tuple[Any, ...]] = (
    *(None, True, False, 1, 1.0, 1.5, 2**63, -(2**63) - 1, "stop", "1", b"stop", [], {}, [[]], [None]),
    *([True], [1], ["stop"], [{"k": "a", "v": "b"}], {"k": "v"}, {"k": 1}, {"k": None}, {"k": {"k": ["v"]}}),
    *({"__entity": {"type": "Human", "id": "a"}}, {"__extn": {"fn": "unknown", "arg": "x"}}),
    *({"k": {"__extn": {"fn": "unknown", "arg": "x"}}}, [{"__extn": {"fn": "unknown", "arg": "x"}}]),
    *({"name": "n"}, Leaf(name="n"), [Leaf(name="n")], unchecked(Leaf, name=None), unchecked(Leaf)),
)


@pytest.mark.parametrize("name", _values)
def test_each_other_value_is_refused_or_held_by_its_type(name: str) -> None:
    """No chance: every field, every kind of value that is not its own."""
    for wrong in WRONG:
        refused_or_held(name, wrong)


FINE: Final[dict[str, Any]] = {
    "text": "t",
    "maybe": None,
    "number": 1,
    "flag": True,
    "mood": Mood.STOP,
    "size": Size.MOST,
    "one": "a",
    "key": UUID(int=1),
    "texts": ["t"],
    "numbers": frozenset({1}),
    "several": (True,),
    "pairs": {"k": "v"},
    "counts": {"k": 1},
    "leaf": Leaf(name="n"),
    "leaves": [],
    "named": {},
    "deep": {"k": {"k": ["v"]}},
    "quoted": "q",
    "reserved": "r",
}


def test_the_engine_would_hold_what_is_smuggled_if_it_were_passed_as_it_came() -> None:
    """The control: an unknown conforms to any declared type."""
    smuggled = {"__extn": {"fn": "unknown", "arg": "x"}}
    encoded: dict[str, Any] = {**encode_fields(fields(), unchecked(Whole, **FINE)), "text": smuggled}
    document = json.dumps([entity("Whole", "w", encoded)])
    assert len(cedar.entities(document, schema())) == 1
    with pytest.raises(Unencodable):
        encode_fields(fields(), unchecked(Whole, **{**FINE, "text": smuggled}))


# end to end: an independent reading of every input and every row


def _sets() -> tuple[Set, ...]:
    """A few sets in which every condition stands in a forbid, beside a permit of everything."""
    every = Line("", "permit", Head(), ("any",), False, Head())
    conditions = [name for name in plain.CONDITIONS if name != "always"]
    docs, free = ("doc:look", "doc:edit"), ("any",)
    forbids = [
        dataclasses.replace(
            every,
            effect="forbid",
            actions=docs if plain.CONDITIONS[name].reads_resource else free,
            condition=name,
        )
        for name in conditions
    ]
    alone = tuple(numbered((every, forbid)) for forbid in forbids)
    return (*alone, *(numbered((every, *forbids[at::4])) for at in range(4)))


SETS: Final = _sets()


@cache
def _kernel(_: Catalog, at: int) -> Kernel:
    return shelf.kernel(SETS[at])


def kernel(at: int) -> Kernel:
    """A kernel for each of the sets, made once for a catalog."""
    return _kernel(shelf.catalog(), at)


class Misfit(Exception):
    """A value is not of its declared type."""


def text(value: object) -> str:
    """A text that is one: half a surrogate pair is none."""
    if not isinstance(value, str) or any("\ud800" <= char <= "\udfff" for char in value):
        raise Misfit
    return value


def maybe(value: object) -> str | None:
    """A text, or nothing."""
    return None if value is None else text(value)


def texts(value: object) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list):
        raise Misfit
    return tuple(text(each) for each in cast("list[object]", value))


def pairs(value: object) -> tuple[tuple[str, str], ...]:
    """A map of texts."""
    if not isinstance(value, dict):
        raise Misfit
    return tuple((text(key), text(each)) for key, each in cast("dict[object, object]", value).items())


def integer(value: object) -> int:
    """A number of JSON that is whole; true is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        raise Misfit
    return int(value)


def long(value: object) -> int:
    """An integer of 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int) or value not in LONG:
        raise Misfit
    return value


def typed(sent: Mapping[str, Any]) -> Given | None:
    """The arguments as declared, or nothing."""
    held: dict[str, Any] = {"note": None, "size": 0, "tags": [], "pairs": {}, **sent}
    try:
        if held.keys() != {"id", "note", "size", "tags", "pairs"}:
            raise Misfit
        return Given(
            text(held["id"]),
            maybe(held["note"]),
            integer(held["size"]),
            texts(held["tags"]),
            pairs(held["pairs"]),
        )
    except (Misfit, OverflowError):  # an infinity is no integer
        return None


def as_row(held: Mapping[str, Any]) -> Row | Literal["broken"]:
    """A row as declared; broken where one value is not of its declared type."""
    try:
        return Row(
            held["id"],
            text(held["owner"]),
            long(held["level"]),
            texts(held["labels"]),
            pairs(held["extra"]),
            maybe(held["note"]),
        )
    except Misfit:
        return "broken"


_ids: Final = st.sampled_from(ROWS)
_maps: Final = st.dictionaries(words, words, max_size=3)
_sent: Final = st.fixed_dictionaries(
    {"id": _ids},
    optional={
        "note": st.none() | words,
        "size": numbers | st.sampled_from((2**63, 6.0)),
        "tags": _some,
        "pairs": _maps,
    },
)
_facts: Final = st.fixed_dictionaries(
    {
        "id": _ids,
        "owner": st.sampled_from(("a", "b", "keep")) | words,
        "level": numbers,
        "labels": _some,
        "extra": _maps,
        "note": st.none() | words,
    }
)


def _spoilt(held: dict[str, Any], name: str, wrong: object) -> dict[str, Any]:
    return {**held, name: wrong}


_spoilt_arguments: Final = st.builds(
    _spoilt,
    _sent,
    st.sampled_from(("id", "note", "size", "tags", "pairs", "__entity", "__extn", "__expr")),
    _any,
)
_spoilt_rows: Final = st.builds(
    _spoilt,
    _facts,
    st.sampled_from(("owner", "level", "labels", "extra", "note")),
    _any,
)


@settings(max_examples=max(settings().max_examples, 1_000))
@given(
    st.integers(0, len(SETS) - 1),
    callers,
    tools,
    _sent | _spoilt_arguments,
    _facts | _facts | _spoilt_rows,
)
def test_no_input_and_no_row_turns_a_forbid_off(
    at: int, caller: Caller, tool: Tool, sent: dict[str, Any], facts: dict[str, Any]
) -> None:
    row = as_row(facts)
    expected = plain.comes_of(SETS[at], caller, tool.name, typed(sent), row)
    assert shelf.called(kernel(at), caller, tool.name, sent, unchecked(shelf.Doc, **facts)) == expected


def test_every_way_that_a_call_can_end_is_met() -> None:
    """No chance: every condition alone, for what makes it hold, fail, err and not fit."""
    met: set[str] = set()
    caller = Caller("c", "human", frozenset({"r1"}), scopes=None)
    ends: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"id": "d1", **sent}, {"id": "d1", "owner": owner, "level": level, "note": note})
        for sent in ({}, {"note": "stop"}, {"size": 2**62, "note": "go"}, {"size": 2**63}, {"tags": ["stop"]})
        for owner, level, note in (("keep", 0, None), ("a", MOST, "stop"), (7, 0, "x"), ("c", 1, "x"))
    ]
    for at, held in enumerate(SETS):
        for sent, facts in ends:
            sent = {"tags": ["x"], "pairs": {"k": "v"}, **sent}
            facts = dict[str, Any](labels=[], extra={}, **facts)
            for tool in ("edit", "use"):
                expected = plain.comes_of(held, caller, tool, typed(sent), as_row(facts))
                assert shelf.called(kernel(at), caller, tool, sent, unchecked(shelf.Doc, **facts)) == expected
                met.add(expected.outcome)
    assert met == {"ok", "policy-denied", "policy-error", "invalid-args"}
