"""What the names of a generated schema are in the app that it was generated for, argument by argument."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Final, Literal

import pytest
from pydantic import BaseModel, Field

from nonsuch import App, Registry, can, expose
from nonsuch.adapters.analysis.counterparts import Counterparts, counterparts
from nonsuch.adapters.analysis.schema_json import schema_json
from nonsuch.adapters.analysis.schema_types import Types
from nonsuch.adapters.edge import policies
from nonsuch.adapters.mcp.describe import tool_list_entry

from ...kernel.trial import boot
from .parcels import VECTORS, parcels, theirs

DEFAULT: Final = {
    "address": "it is `Post::ship::Input::Address` there and `{city: String, zip?: String}` here",
    "at": "it is of a type here that no policy can read",
    "express": "same",
    "extra": "it is `Post::ship::Input::extra` there and `Set<{k: String, v: String}>` here",
    "id": "same",
    "items": "it is `Set<Post::ship::Input::Item>` there and `Set<{count: Long, sku: String}>` here",
    "kind": "choice",
    "limit": "it can be absent there; here it has a default, which policies see",
    "note": "same or null",
    "price": "it is of a type here that no policy can read",
    "speed": "choice or null",
    "tags": "same",
    "to": "record",
    "urgent": "same or null",
    "weight": "same",
}
RECORDS: Final = {
    **DEFAULT,
    "address": (
        "it is `{city: String, zip?: {typeChoice0?: String, typeChoice1?: Post::Null}}` there"
        " and `{city: String, zip?: String}` here"
    ),
    "extra": "it is `Post::ship_Input_extra` there and `Set<{k: String, v: String}>` here",
    "items": "it can be absent there; here it has a default, which policies see",
    "to": "same",
}


@cache
def app() -> App:
    return parcels()


def known(
    name: str = "default.cedarschema",
    of: App | None = None,
    schema: str = "",
    kinds: Mapping[str, str] | None = None,
) -> Counterparts:
    text = schema or (VECTORS / name).read_text()
    found = {f"Post::{theirs}": ours for theirs, ours in (kinds or {}).items()}
    return counterparts(Types(schema_json(text)), (of or app()).kernel.catalog, policies.base(), found)


def told(found: Counterparts, tool: str) -> dict[str, str]:
    arguments = found.tools["Post::Action", tool].arguments.values()
    return {
        each.name: f"{each.how}{' or null' * each.nullable}" if each.how else each.cause for each in arguments
    }


@pytest.mark.parametrize(
    ("name", "table"), [("default.cedarschema", DEFAULT), ("records.cedarschema", RECORDS)]
)
def test_each_argument_has_the_counterpart_that_reads_the_same(name: str, table: dict[str, str]) -> None:
    found = known(name)
    assert told(found, "ship") == table
    assert (told(found, "label"), told(found, "parcel")) == ({"id": "same", "kind": "choice"}, {"id": "same"})
    resources = {tool.name: tool.resource for tool in found.tools.values()}
    assert resources == {"ship": "Server", "label": "Server", "parcel": "Parcel"}


def test_types_are_known_by_their_names_here_or_by_what_the_operator_says() -> None:
    assert known().kinds == {"Post::Role": "Role"}
    assert known(kinds={"User": "Human"}).kinds == {"Post::Role": "Role", "Post::User": "Human"}


def test_the_tools_of_the_vectors_are_those_of_the_app() -> None:
    served = [tool_list_entry(each) for each in app().kernel.catalog.entries if each.exposed]
    kept = json.loads((VECTORS / "tools.json").read_text())
    assert [(each["name"], each["inputSchema"]) for each in kept] == [
        (each["name"], each["inputSchema"]) for each in served
    ]


def test_our_encoding_of_a_call_for_tests_is_the_generators() -> None:
    """But for the ids, which it draws."""
    request = json.loads((VECTORS / "request.json").read_text())
    _, made = theirs(request["tool"], request["arguments"])
    assert sorted(map(shape, made)) == sorted(map(shape, request["entities"]))


def shape(entity: dict[str, object]) -> str:
    told = {**entity, "uid": {**entity["uid"], "id": ""}}  # type: ignore[dict-item]  # a uid is an object
    return json.dumps(told, sort_keys=True)


# an app that differs from the one that the schema was made for


class Label(BaseModel):
    kind: Literal["box", "letter", "crate"]


class Parcel(BaseModel):
    name: str | None = Field(default=None, alias="id")


class Ship(BaseModel):
    limit: int
    note: str
    speed: Literal["slow", "fast"] | None = "fast"
    urgent: Literal[True] | None
    tags: tuple[str, ...] = Field(default_factory=tuple)
    express: str
    fresh: int


def label(input: Label) -> str:
    return ""


def parcel(input: Parcel) -> str:
    return ""


def ship(input: Ship) -> str:
    return ""


def test_what_is_not_the_same_here_has_no_counterpart() -> None:
    registry = Registry()
    for each in (label, parcel, ship):
        registry.action(policy=can("a:b"), mcp=expose("Do it."))(each)
    found = known(of=boot(registry))
    assert told(found, "label") == {
        "id": "it is no argument here",
        "kind": "it is `Post::label::Input::kind` there and `String` here",
    }
    assert told(found, "parcel") == {"id": "it is never absent there and can be here"}
    gone = {name: "it is no argument here" for name in DEFAULT if name not in Ship.model_fields}
    assert told(found, "ship") == {
        **gone,
        "limit": "it is never absent here",
        "note": "it can be null there, and here it never is",
        "speed": "it can be absent there; here it has a default, which policies see",
        "urgent": "same or null",
        "tags": "same",
        "express": "it is `Bool` there and `String` here",
        "fresh": "the schema has no such argument",
    }


def test_a_tool_that_is_gone_or_no_tool_any_more_is_none() -> None:
    registry = Registry()
    registry.action(policy=can("a:b"), mcp=expose("Label."))(label)
    registry.action(policy=can("a:b"))(ship)
    found = known(of=boot(registry))
    assert {name[1]: tool.entry is not None for name, tool in found.tools.items()} == {
        "label": True,
        "parcel": False,
        "ship": False,
    }
    assert set(told(found, "ship").values()) == {"there is no such tool here"}
