"""Published documents are closed and judge exactly; refusals repeat no value; answers are as declared."""

from __future__ import annotations

import json
import math
import socket
import time
from collections.abc import Iterator
from datetime import date
from enum import Enum
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    computed_field,
    field_serializer,
    field_validator,
)

from nonsuch.kernel.model import Issue
from nonsuch.kernel.schema import (
    MAX_ISSUES,
    InputBroken,
    InputSchema,
    Invalid,
    NoInput,
    OutputRefused,
    SchemaRefused,
    publish_input,
    publish_output,
)
from nonsuch.kernel.strict_json import Json

from .trial import unchecked

SENTINEL = "s3ntinel"


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    size: Annotated[int, Field(ge=1, le=9)]


class Given(BaseModel):
    word: str
    inner: Inner | None = None
    rows: list[Inner] = []
    notes: dict[str, int] = {}
    colour: Colour = Colour.RED
    mode: Literal["on", "off"] = "on"
    code: Annotated[str, Field(pattern="^[a-z]+$", min_length=2, max_length=4)] = "ab"
    day: date = date(2026, 1, 2)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    word: str


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


# the published document


def test_the_published_document_whole() -> None:
    assert publish_input(Given).document == {
        "type": "object",
        "additionalProperties": False,
        "required": ["word"],
        "properties": {
            "word": {"type": "string"},
            "inner": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}], "default": None},
            "rows": {"type": "array", "items": {"$ref": "#/$defs/Inner"}, "default": []},
            "notes": {"type": "object", "additionalProperties": {"type": "integer"}, "default": {}},
            "colour": {"$ref": "#/$defs/Colour", "default": "red"},
            "mode": {"type": "string", "enum": ["on", "off"], "default": "on"},
            "code": {
                "type": "string",
                "pattern": "^[a-z]+$",
                "minLength": 2,
                "maxLength": 4,
                "default": "ab",
            },
            "day": {"type": "string", "format": "date", "default": "2026-01-02"},
        },
        "$defs": {
            "Colour": {"type": "string", "enum": ["red", "blue"], "title": "Colour"},
            "Inner": {
                "type": "object",
                "additionalProperties": False,
                "required": ["size"],
                "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9}},
            },
        },
    }


def test_no_input_is_an_empty_closed_object() -> None:
    schema = publish_input(NoInput)
    assert schema.document == {"type": "object", "properties": {}, "additionalProperties": False}
    assert schema.parse({}) == NoInput()
    assert schema.parse({"x": 1}) == Invalid((Issue("x", "not an argument"),))


def objects(node: object) -> Iterator[dict[str, Any]]:
    """Every sub-schema that describes named properties."""
    if isinstance(node, dict):
        held = cast("dict[str, Any]", node)
        if isinstance(held.get("properties"), dict) and held.get("type") == "object":
            yield held
        for each in held.values():
            yield from objects(each)
    elif isinstance(node, list):
        for each in cast("list[object]", node):
            yield from objects(each)


@pytest.mark.parametrize("model", [Given, Inner, Tree, NoInput])
def test_every_object_of_a_published_document_is_closed(model: type[BaseModel]) -> None:
    found = list(objects(publish_input(model).document))
    assert found
    assert [each for each in found if each.get("additionalProperties") is not False] == []


def test_a_model_that_says_it_is_open_stays_open() -> None:
    schema = publish_input(Open)
    assert schema.document["additionalProperties"] is True
    assert schema.parse({"word": "a", "more": 1}) == Open.model_validate({"word": "a", "more": 1})


def test_titles_that_an_author_wrote_stay() -> None:
    class Titled(BaseModel):
        model_config = ConfigDict(title="Derived")
        plain: str
        titled: Annotated[str, Field(title="Of my own")]
        title: str
        default: str = "default"
        properties: Inner

    properties = publish_input(Titled).document["properties"]
    assert properties["plain"] == {"type": "string"}
    assert properties["titled"] == {"type": "string", "title": "Of my own"}
    assert properties["title"] == {"type": "string"}
    assert properties["properties"] == {"$ref": "#/$defs/Inner"}
    assert "title" not in publish_input(Titled).document


def test_values_that_look_like_schemas_are_left_alone() -> None:
    value = {"type": "object", "properties": {"title": {"title": "Title"}}, "title": "kept"}

    class Held(BaseModel):
        held: Annotated[dict[str, Any], Field(examples=[value])] = value

    held = publish_input(Held).document["properties"]["held"]
    assert (held["default"], held["examples"]) == (value, [value])


def test_a_field_may_carry_the_name_of_a_keyword() -> None:
    class Awkward(BaseModel):
        type: str
        properties: str
        required: str
        enum: str

    schema = publish_input(Awkward)
    sent = {"type": "a", "properties": "b", "required": "c", "enum": "d"}
    assert schema.parse(sent) == Awkward(**sent)
    assert schema.parse({**sent, "more": 1}) == Invalid((Issue("more", "not an argument"),))


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A listening socket: whoever fetches a reference connects to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server


def test_a_reference_to_elsewhere_is_refused_and_never_fetched(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The validator is no Python code, so a patched socket proves nothing of it: a listener does."""

    def opened(*_: object) -> None:
        raise AssertionError("a socket was opened")

    address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
    accept = listener.accept
    monkeypatch.setattr(socket.socket, "connect", opened)

    class Remote(BaseModel):
        word: Annotated[str, Field(json_schema_extra={"$ref": address})]

    with pytest.raises(SchemaRefused):
        publish_input(Remote)
    with pytest.raises(TimeoutError):
        accept()


@pytest.mark.parametrize("reference", ["file:///etc/passwd", "https://example.invalid/s.json", "#/nowhere"])
def test_a_reference_that_leads_nowhere_is_refused(reference: str) -> None:
    class Remote(BaseModel):
        word: Annotated[str, Field(json_schema_extra={"$ref": reference})]

    with pytest.raises(SchemaRefused):
        publish_input(Remote)


def test_a_pattern_that_backtracks_is_linear() -> None:
    class Pattern(BaseModel):
        word: Annotated[str, Field(pattern="^(a+)+$")]

    schema = publish_input(Pattern)
    before = time.perf_counter()
    told = schema.parse({"word": "a" * 50_000 + "!"})
    assert time.perf_counter() - before < 1
    assert told == Invalid((Issue("word", "breaks `pattern`"),))
    assert schema.parse({"word": "a" * 50_000}) == Pattern(word="a" * 50_000)


@pytest.mark.parametrize("pattern", ["(?=a)a", r"(a)\1", "("])
def test_a_pattern_beyond_the_linear_engine_is_refused_at_boot(pattern: str) -> None:
    class Pattern(BaseModel):
        word: Annotated[str, Field(json_schema_extra={"pattern": pattern})]

    with pytest.raises(SchemaRefused) as caught:
        publish_input(Pattern)
    assert "\n" not in str(caught.value)


def test_a_recursive_model_is_published_as_an_object() -> None:
    document = publish_input(Tree).document
    root = {name: value for name, value in document.items() if name != "$defs"}
    children: dict[str, Any] = {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []}
    assert (
        root
        == document["$defs"]["Tree"]
        == {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "children": children},
        }
    )


def test_an_input_that_is_no_object_is_refused() -> None:
    with pytest.raises(SchemaRefused, match="an input is an object, so its model has fields"):
        publish_input(RootModel[list[str]])


# arguments


def test_what_is_left_out_takes_its_default_and_what_is_sent_is_typed() -> None:
    schema = publish_input(Given)
    assert schema.parse({"word": "a"}) == Given(word="a")
    sent: Any = {
        "word": "a",
        "inner": {"size": 2},
        "rows": [{"size": 3}],
        "notes": {"k": 1},
        "colour": "blue",
    }
    assert schema.parse({**sent, "mode": "off", "code": "xyz", "day": "2025-12-31"}) == Given(
        word="a",
        inner=Inner(size=2),
        rows=[Inner(size=3)],
        notes={"k": 1},
        colour=Colour.BLUE,
        mode="off",
        code="xyz",
        day=date(2025, 12, 31),
    )


REFUSED: dict[str, tuple[dict[str, Any], list[Issue]]] = {
    "missing": ({}, [Issue("word", "required")]),
    "null": ({"word": None}, [Issue("word", "must be of type string")]),
    "type": ({"word": 5}, [Issue("word", "must be of type string")]),
    "no coercion": ({"word": "a", "inner": {"size": "2"}}, [Issue("inner", "breaks `anyOf`")]),
    "a nested type": (
        {"word": "a", "rows": [{"size": "2"}]},
        [Issue("rows.0.size", "must be of type integer")],
    ),
    "a bool is no integer": (
        {"word": "a", "notes": {"k": True}},
        [Issue("notes.k", "must be of type integer")],
    ),
    "a fraction is no integer": (
        {"word": "a", "notes": {"k": 1.5}},
        [Issue("notes.k", "must be of type integer")],
    ),
    "nested missing": ({"word": "a", "rows": [{"size": 1}, {}]}, [Issue("rows.1.size", "required")]),
    "nested more": (
        {"word": "a", "rows": [{"size": 1, SENTINEL: 1}]},
        [Issue(f"rows.0.{SENTINEL}", "not an argument")],
    ),
    "enum": ({"word": "a", "mode": SENTINEL}, [Issue("mode", "must be one of on, off")]),
    "enum class": ({"word": "a", "colour": SENTINEL}, [Issue("colour", "must be one of red, blue")]),
    "pattern": ({"word": "a", "code": "AB"}, [Issue("code", "breaks `pattern`")]),
    "length": ({"word": "a", "code": "a"}, [Issue("code", "breaks `minLength` 2")]),
    "bound": ({"word": "a", "rows": [{"size": 10}]}, [Issue("rows.0.size", "breaks `maximum` 9")]),
    "format": ({"word": "a", "day": "2026-02-30"}, [Issue("day", "breaks `format`")]),
    "several, sorted": (
        {"zz": 1, "aa": 2, "mode": 3},
        [
            Issue("aa", "not an argument"),
            Issue("mode", "must be of type string"),
            Issue("mode", "must be one of on, off"),
            Issue("word", "required"),
            Issue("zz", "not an argument"),
        ],
    ),
    "a long name is cut": (
        {"word": "a", "n" * 100: 1},
        [Issue("n" * 61 + "...", "not an argument")],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_told_by_path(name: str) -> None:
    sent, issues = REFUSED[name]
    assert publish_input(Given).parse(sent) == Invalid(tuple(issues))


def test_no_more_than_32_issues_are_told() -> None:
    told = publish_input(Given).parse({"word": "a", "rows": [cast("Json", {})] * 100})
    assert isinstance(told, Invalid)
    assert len(told.issues) == MAX_ISSUES == 32
    many = publish_input(NoInput).parse({f"k{number}": 1 for number in range(100)})
    assert isinstance(many, Invalid)
    assert len(many.issues) == 32


SECRETS = st.sampled_from(
    [SENTINEL, [SENTINEL], {SENTINEL[:3]: SENTINEL}, 77_123_451, 77_123_451.5, -77_123_451]
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(Given.model_fields, SECRETS)))
def test_an_issue_never_repeats_a_value(sent: dict[str, Any]) -> None:
    told = publish_input(Given).parse(sent)
    if isinstance(told, Invalid):
        text = json.dumps([str(each) for each in told.issues])
        assert (SENTINEL in text, "77123451" in text) == (False, False)


class Judged(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def _judge(cls, word: str) -> str:
        if word == "wrong":
            raise ValueError("no word of ours")
        if word == "broken":
            raise KeyError(word)
        return word


def test_a_validator_of_the_application_refuses_in_its_own_words() -> None:
    schema = publish_input(Judged)
    assert schema.parse({"word": "wrong"}) == Invalid((Issue("word", "Value error, no word of ours"),))


def test_a_validator_of_the_application_that_breaks_says_nothing_of_the_input() -> None:
    with pytest.raises(InputBroken) as caught:
        publish_input(Judged).parse({"word": "broken"})
    assert caught.value.args == ()


class Tagged(BaseModel):
    kind: Literal["a"]


class Choice(BaseModel):
    when: Annotated[str, Field(json_schema_extra={"type": ["string", "integer"]})]


def test_what_only_the_model_refuses_is_told_without_the_value() -> None:
    told = publish_input(Choice).parse({"when": 77123451})
    assert told == Invalid((Issue("when", "Input should be a valid string"),))


def test_several_types_are_told_as_alternatives() -> None:
    assert publish_input(Choice).parse({"when": None}) == Invalid(
        (Issue("when", "must be of type integer or string"),)
    )


UNUSUAL: dict[str, dict[str, Json]] = {
    "a surrogate as a name": {"word": "a", "\ud800": 1},
    "a surrogate as a value": {"word": "a", "mode": "\ud800"},
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_arguments_that_no_wire_can_carry_are_refused_and_do_not_raise(name: str) -> None:
    """In-process callers come without a JSON door; every outcome is to be a value."""
    assert isinstance(publish_input(Given).parse(UNUSUAL[name]), Invalid)


def test_arguments_nested_beyond_the_validator_are_refused_and_do_not_raise() -> None:
    deep: Any = 1
    for _ in range(1_000):
        deep = [deep]
    assert isinstance(publish_input(Given).parse({"word": deep}), Invalid)


def test_any_mapping_will_do() -> None:
    assert publish_input(Given).parse(MappingProxyType({"word": "a"})) == Given(word="a")


def test_large_integers_are_judged_exactly() -> None:
    class Number(BaseModel):
        n: Annotated[int, Field(le=2**64)]

    schema = publish_input(Number)
    assert schema.parse({"n": 2**64}) == Number(n=2**64)
    assert schema.parse({"n": 2**64 + 1}) == Invalid((Issue("n", f"breaks `maximum` {2**64}"),))
    assert isinstance(schema.parse({"n": 10**400}), Invalid)


def test_recursive_input() -> None:
    schema: InputSchema = publish_input(Tree)
    sent: dict[str, Json] = {"name": "a", "children": [{"name": "b", "children": []}]}
    assert schema.parse(sent) == Tree(name="a", children=[Tree(name="b")])
    wrong: dict[str, Json] = {"name": "a", "children": [{"name": "b", "children": [{}]}]}
    assert schema.parse(wrong) == Invalid((Issue("children.0.children.0.name", "required"),))


# answers


class Row(BaseModel):
    id: str
    size: float = 1.0


class Fat(Row):
    password: str = SENTINEL


class Aliased(BaseModel):
    post_id: Annotated[str, Field(serialization_alias="postId")]


class Nested(BaseModel):
    rows: list[Row]


def answered(annotation: Any, value: object) -> str:
    return publish_output(annotation, rows=False).serialise(value).decode()


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Row, Row(id="a"), '{"id":"a","size":1.0}'),
        (Row, {"id": "a", "size": 2}, '{"id":"a","size":2.0}'),
        (Row, {"id": "a", "password": SENTINEL}, '{"id":"a","size":1.0}'),
        (Row, Fat(id="a"), '{"id":"a","size":1.0}'),
        (Nested, Nested(rows=[Fat(id="a")]), '{"rows":[{"id":"a","size":1.0}]}'),
        (list[Row], [Fat(id="a"), {"id": "b"}], '[{"id":"a","size":1.0},{"id":"b","size":1.0}]'),
        (dict[str, Row], {"k": Fat(id="a")}, '{"k":{"id":"a","size":1.0}}'),
        (Row | None, None, "null"),
        (None, None, "null"),
        (str, "naïve", '"naïve"'),
        (Aliased, Aliased(post_id="a"), '{"postId":"a"}'),
        (Any, {"k": [1, None]}, '{"k":[1,null]}'),
        (Any, {"k": ["null", (None, 1.5)]}, '{"k":["null",[null,1.5]]}'),
        (Any, {"k": ["NaN", {"Infinity": 1.5}]}, '{"k":["NaN",{"Infinity":1.5}]}'),
    ],
)
def test_an_answer_is_exactly_its_declared_fields(annotation: Any, value: object, expected: str) -> None:
    assert answered(annotation, value) == expected


class Refuses(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def _judge(cls, word: str) -> str:
        raise KeyError(word)


class Breaks(BaseModel):
    word: str

    @field_serializer("word")
    def _say(self, word: str) -> str:
        raise KeyError(word)


class Computes(BaseModel):
    word: str

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def again(self) -> str:
        raise KeyError(self.word)


def _circular() -> list[Any]:
    held: list[Any] = []
    held.append(held)
    return held


WRONG: dict[str, tuple[Any, object]] = {
    "another type": (Row, 5),
    "a string": (Row, SENTINEL),
    "nothing": (Row, None),
    "a missing field": (Row, {"size": 1}),
    "a wrong field": (Row, {"id": 5}),
    "a model that was never validated": (Row, unchecked(Row, id=5)),
    "a model without a required field": (Row, unchecked(Row, size=1.0)),
    "a nested model that was never validated": (Nested, Nested(rows=[unchecked(Row, id=5)])),
    "not a number": (Row, Row(id="a", size=math.nan)),
    "infinity": (Row, Row(id="a", size=math.inf)),
    "a bare not a number": (float, math.nan),
    "a nested not a number": (list[float], [1.0, -math.inf]),
    "half a surrogate pair": (str, "\ud800"),
    "half a surrogate pair in a model": (Row, unchecked(Row, id="\ud800", size=1.0)),
    "a validator that breaks": (Refuses, {"word": SENTINEL}),
    "a serialiser that breaks": (Breaks, {"word": SENTINEL}),
    "a computed field that breaks": (Computes, {"word": SENTINEL}),
    "a not a number deep inside": (dict[str, list[Row]], {"a": [Row(id="a"), Row(id="b", size=math.nan)]}),
    "an untyped not a number": (Any, {"a": [1.5, "NaN", {"b": math.nan}]}),
    "an untyped infinity": (Any, [{"a": {"b": -math.inf}}]),
    "a circle": (Any, _circular()),
    "no JSON": (Any, object()),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_answer_of_another_type_is_refused_and_not_repeated(name: str) -> None:
    annotation, value = WRONG[name]
    with pytest.raises(OutputRefused) as caught:
        publish_output(annotation, rows=False).serialise(value)
    assert caught.value.args == ()


def test_the_document_of_an_answer_keeps_structure_and_drops_bounds() -> None:
    class Bounded(BaseModel):
        model_config = ConfigDict(extra="forbid")
        title: Annotated[str, Field(title="A title", min_length=2, pattern="^a")]
        pattern: Annotated[int, Field(ge=1, le=2)]
        rows: Annotated[list[Row], Field(min_length=1)]

    schema = publish_output(Bounded, rows=False)
    assert (schema.wrapped, schema.document) == (
        False,
        {
            "type": "object",
            "required": ["title", "pattern", "rows"],
            "properties": {
                "title": {"type": "string"},
                "pattern": {"type": "integer"},
                "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
            },
            "$defs": {
                "Row": {
                    "type": "object",
                    "required": ["id"],
                    "properties": {"id": {"type": "string"}, "size": {"type": "number", "default": 1.0}},
                }
            },
        },
    )


def test_a_field_named_properties_loses_its_bounds_too() -> None:
    class Awkward(BaseModel):
        properties: Annotated[str, Field(max_length=3)]

    document = publish_output(Awkward, rows=False).document
    assert document is not None
    assert document["properties"] == {"properties": {"type": "string"}}


def test_rows_are_published_under_a_name_and_only_where_asked() -> None:
    row = {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string"}, "size": {"type": "number", "default": 1.0}},
    }
    rows = {"type": "array", "items": {"$ref": "#/$defs/Row"}}
    asked = publish_output(list[Row], rows=True)
    assert (asked.wrapped, asked.document) == (
        True,
        {"type": "object", "properties": {"rows": rows}, "required": ["rows"], "$defs": {"Row": row}},
    )
    plain = publish_output(list[str], rows=True)
    assert plain.document == {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"type": "string"}}},
        "required": ["rows"],
    }
    unasked = publish_output(list[Row], rows=False)
    assert (unasked.wrapped, unasked.document) == (False, None)
    scalar = publish_output(str, rows=True)
    assert (scalar.wrapped, scalar.document) == (False, None)


def test_an_answer_without_a_schema_is_refused() -> None:
    with pytest.raises(SchemaRefused):
        publish_output(type("Opaque", (), {}), rows=False)
