"""An app whose tools have arguments of every kind, and one call in both encodings: the generator's and ours.

The schemas that `cedar-policy-mcp-schema-generator` made of its tools are in `tests/vectors/generator`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from nonsuch import App, Registry, audience, can, define_app_mcp, expose, grant

VECTORS: Final = Path(__file__).parents[2] / "vectors" / "generator"
SERVER: Final = "post"
ROLES: Final = ("clerk", "manager")
AT: Final = datetime(2026, 1, 2, tzinfo=UTC)


class Place(BaseModel):
    city: str
    floor: int


class Address(BaseModel):
    city: str
    zip: str | None = None


class Item(BaseModel):
    sku: str
    count: int


class Ship(BaseModel):
    id: Annotated[str, Field(min_length=1)]
    express: bool
    weight: int
    kind: Literal["box", "letter"]
    tags: list[str]
    to: Place
    address: Address
    items: list[Item] = []
    price: float = 1.5
    at: datetime = AT
    extra: dict[str, str] = {}
    note: str | None = None
    speed: Literal["slow", "fast"] | None = None
    urgent: bool | None
    limit: int = 10


class Label(BaseModel):
    id: Annotated[str, Field(min_length=1)]
    kind: Literal["box", "letter"]


class Look(BaseModel):
    id: Annotated[str, Field(min_length=1)]


class Parcel(BaseModel):
    id: str
    owner: str
    weight: int


def ship(input: Ship) -> str:
    return "shipped"


def label(input: Label) -> str:
    return "labelled"


def find(input: Look) -> Parcel | None:
    return None


def parcel(input: Look) -> Parcel | None:
    return None


def parcels(policies: Path | None = None) -> App:
    """Return the app, with a directory of policies."""
    registry = Registry()
    registry.action(policy=can("parcel:ship"), mcp=expose("Ship a parcel."))(ship)
    registry.action(
        policy=can("parcel:label"), mcp=expose("Print a label.", visible_to=audience("principal has org"))
    )(label)
    seen = expose("Read a parcel.", visible_to=["clerk", "manager"])
    registry.query(policy=can("parcel:read", resource=find), mcp=seen, single=True)(parcel)
    return define_app_mcp(
        registry,
        name=SERVER,
        include="exposed",
        roles=ROLES,
        scopes={"write": ["ship", "label"], "read": ["parcel"]},
        grants=[grant("manager", "parcel:ship")],
        policies_dir=policies,
        resolve_token=lambda token: None,
    )


def theirs(tool: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return `context.input` and the entities of a call as the generator's request generator writes them."""
    entities: list[dict[str, Any]] = []

    def one(name: str, value: Any, space: str) -> Any:
        if name == "kind":
            return {"__entity": {"type": f"{space}::{name}", "id": value}}
        if name in ("note", "speed", "urgent", "zip"):
            return {"typeChoice1": _null()} if value is None else {"typeChoice0": _chosen(name, value, space)}
        if name in ("to", "address", "items"):
            held = [thing(name, each, space) for each in (value if name == "items" else [value])]
            return held if name == "items" else held[0]
        if name == "price":
            return {"__entity": {"type": "Post::Number", "id": str(value)}}
        if name == "at":
            return {"__extn": {"fn": "datetime", "arg": value}}
        if name == "extra":
            return added("extra", {}, space, tags=value)
        return value

    def thing(name: str, value: dict[str, Any], space: str) -> Any:
        kind = {"to": "Place", "address": "Address", "items": "Item"}[name]
        return added(kind, {key: one(key, each, space) for key, each in value.items()}, space)

    def added(kind: str, attributes: dict[str, Any], space: str, **more: Any) -> Any:
        uid = {"type": f"{space}::{kind}", "id": f"{kind}{len(entities)}"}
        entities.append({"uid": uid, "attrs": attributes, "parents": [], **more})
        return {"__entity": uid}

    space = f"Post::{tool}::Input"
    return {name: one(name, value, space) for name, value in arguments.items()}, entities


def _null() -> Any:
    return {"__entity": {"type": "Post::Null", "id": "null"}}


def _chosen(name: str, value: Any, space: str) -> Any:
    return {"__entity": {"type": f"{space}::{name}::TypeChoice0", "id": value}} if name == "speed" else value
