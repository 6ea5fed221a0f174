"""A form is one flat object of plain fields: what a model becomes, and which answers fill it."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from nonsuch.kernel.form import form_of
from nonsuch.kernel.schema import SchemaRefused


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Person(BaseModel):
    name: str = Field(title="Name", description="Your name", min_length=1)
    age: int = Field(default=30, ge=0)
    score: float | None = None
    admin: bool = False
    colour: Colour = Colour.RED
    other: Colour | None = Field(default=None, description="Another one")
    size: Literal["s", "m"]
    tags: list[Literal["x", "y"]] = []
    palette: list[Colour] = []


PLAIN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "description": "Your name", "minLength": 1},
        "age": {"type": "integer", "title": "Age", "default": 30, "minimum": 0},
        "score": {"type": "number", "title": "Score"},
        "admin": {"type": "boolean", "title": "Admin", "default": False},
        "colour": {"type": "string", "title": "Colour", "enum": ["red", "blue"], "default": "red"},
        "other": {
            "type": "string",
            "title": "Colour",
            "enum": ["red", "blue"],
            "description": "Another one",
        },
        "size": {"type": "string", "title": "Size", "enum": ["s", "m"]},
        "tags": {
            "type": "array",
            "title": "Tags",
            "items": {"type": "string", "enum": ["x", "y"]},
            "default": [],
        },
        "palette": {
            "type": "array",
            "title": "Palette",
            "items": {"type": "string", "title": "Colour", "enum": ["red", "blue"]},
            "default": [],
        },
    },
    "required": ["name", "size"],
}


def test_a_model_is_told_without_references_and_without_null() -> None:
    assert form_of(Person).document == PLAIN


class Free(BaseModel):
    note: str = ""


def test_a_form_that_demands_nothing_has_no_list_of_what_it_demands() -> None:
    assert form_of(Free).document == {
        "type": "object",
        "properties": {"note": {"type": "string", "title": "Note", "default": ""}},
    }


def test_the_form_of_a_model_is_made_once() -> None:
    assert form_of(Free) is form_of(Free)


ANSWERS: tuple[tuple[object, bool], ...] = (
    ({"name": "Al", "size": "s"}, True),
    (
        {"name": "Al", "size": "m", "age": 0, "score": 1.5, "admin": True, "colour": "blue", "tags": ["x"]},
        True,
    ),
    ({"name": "Al", "size": "s", "more": 1}, True),
    ({"name": "", "size": "s"}, False),
    ({"name": "Al"}, False),
    ({"name": None, "size": "s"}, False),
    ({"name": "Al", "size": "l"}, False),
    ({"name": "Al", "size": "s", "age": "30"}, False),
    ({"name": "Al", "size": "s", "age": -1}, False),
    ({"name": "Al", "size": "s", "admin": 1}, False),
    ({"name": "Al", "size": "s", "tags": ["z"]}, False),
    ({"name": "Al", "size": "s", "score": None}, False),
    ({"name": "Al", "size": "s", "palette": ["red", "red"]}, True),
    ({"name": "Al", "size": "s", "palette": ["green"]}, False),
    ([], False),
    ("Al", False),
    (None, False),
)


@pytest.mark.parametrize(("answer", "fills"), ANSWERS)
def test_which_answers_fill_a_form(answer: object, fills: bool) -> None:
    assert form_of(Person).filled(answer) is fills


SCHEMA = {
    "type": "object",
    "properties": {"when": {"type": "string", "format": "date"}},
    "required": ["when"],
}


def test_a_schema_is_a_form_as_it_stands() -> None:
    form = form_of(SCHEMA)
    assert form.document == SCHEMA
    assert form.document is not SCHEMA
    assert form.filled({"when": "2026-07-28"})
    assert not form.filled({"when": "soon"})
    assert not form.filled({})


class Inner(BaseModel):
    name: str


class Nested(BaseModel):
    inner: Inner


class Either(BaseModel):
    value: int | str


class Anything(BaseModel):
    value: Any


class Mapped(BaseModel):
    value: dict[str, str]


class Words(BaseModel):
    value: list[str]


class Records(BaseModel):
    value: list[dict[str, int]]


class Untyped(BaseModel):
    value: list[Any]


class Below(BaseModel):
    below: Below | None = None


class Empty(BaseModel):
    pass


class Unreadable(BaseModel):
    value: Annotated[str, Field(json_schema_extra={"pattern": "(?=a)a"})]


UNPLAIN = "`{}` is no plain field: a form has text, numbers, yes or no, and choices"


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (Nested, "inner"),
        (Either, "value"),
        (Anything, "value"),
        (Mapped, "value"),
        (Words, "value"),
        (Records, "value"),
        (Untyped, "value"),
    ],
)
def test_a_field_that_no_client_draws_is_refused(model: type[BaseModel], name: str) -> None:
    with pytest.raises(SchemaRefused) as told:
        form_of(model)
    assert str(told.value) == UNPLAIN.format(name)


def test_a_model_that_holds_itself_is_no_form() -> None:
    with pytest.raises(SchemaRefused, match="a form has fields of its own"):
        form_of(Below)


def test_a_form_without_fields_asks_for_consent_alone() -> None:
    assert form_of(Empty).document == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    "schema", [Unreadable, {"type": 7}, {"$ref": "http://x.example/y"}, {"pattern": "("}]
)
def test_a_form_that_nothing_could_check_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaRefused):
        form_of(schema)
