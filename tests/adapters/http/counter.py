"""A small app that answers by every method, to sessions and to tokens; knows no test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field

from nonsuch import (
    Agent,
    App,
    Human,
    ListParams,
    Registry,
    SessionFacts,
    can,
    define_app_mcp,
    expose,
    grant,
)

from ..mcp.wire import Answer, Request, in_process

registry: Final = Registry()
RAN: Final[list[str]] = []


class Item(BaseModel):
    id: str
    state: Literal["new", "sold"] = "new"


class ListItems(BaseModel):
    state_in: list[Literal["new", "sold"]] | None = None
    price_gt: int = 0
    sort: Literal["id", "-id", "price"] = "id"
    cursor: str | None = None
    limit: int = Field(default=10, ge=1, le=100)
    secret: str = ""


class ItemId(BaseModel):
    id: str = Field(description="The item", examples=["i1"])


class Nested(BaseModel):
    item: Item


class Said(BaseModel):
    what: str


def noted(name: str, given: BaseModel) -> Said:
    RAN.append(name)
    return Said(what=given.model_dump_json(exclude_defaults=True))


@registry.query(
    policy=can("item:read"),
    mcp=expose(
        "Items for sale",
        title="List items",
        list_params=ListParams(
            filters={"state": ["_in"], "price": ["_gt"]}, sort=["id"], fields=[], max_limit=20
        ),
    ),
    path="items",
)
def listItems(input: ListItems) -> list[Said]:
    return [noted("listItems", input)]


@registry.query(
    policy=can("item:read"), mcp=expose("One item"), path="items/get", methods=["GET"], single=True
)
def getItem(input: ItemId) -> Said | None:
    return None if input.id == "none" else noted("getItem", input)


@registry.query(policy=can("item:read"), mcp=expose("Items like this one"), path="items/search")
def searchItems(input: Nested) -> list[Item]:
    noted("searchItems", input)
    return [input.item]


@registry.action(
    policy=can("item:sell"), mcp=expose("Sell", visible_to=["seller"]), path="items/sell", idempotent=True
)
def sellItem(input: ItemId) -> Said:
    return noted("sellItem", input)


@registry.action(policy=can("item:sell"), path="items/change", methods=["PUT", "PATCH"])
def changeItem(input: Item) -> Said:
    return noted("changeItem", input)


@registry.action(
    policy=can("item:drop"),
    mcp=expose("Drop", visible_to=["seller"]),
    path="items/drop",
    methods=["DELETE"],
    idempotent=True,
    requires_key=True,
)
def dropItem(input: ItemId) -> None:
    noted("dropItem", input)


CALLERS: Final[Mapping[str, Agent | Human]] = {
    "seller": Agent("sam", roles={"seller"}),
    "guest": Agent("gil", roles={"guest"}),
    "person": Human("pia", roles={"seller"}),
}


def session(facts: SessionFacts) -> Human | None:
    """A cookie is the name of its person; two of the facts are asked for by tests."""
    if facts.cookies.get("session") == "outage":
        raise ConnectionError
    if "session" in facts.cookies:
        return Human(facts.cookies["session"], roles={"seller"})
    return Human(facts.headers["x-user"]) if "x-user" in facts.headers else None


def counter(**given: Any) -> App:
    """Return the app."""
    settings: dict[str, Any] = {
        "name": "counter",
        "version": "3",
        "include": "exposed",
        "grants": [grant("seller", "any"), grant("guest", "item:read")],
        "resolve_token": CALLERS.get,
        "roles": ["seller", "guest"],
        "rate_limits": None,
        **given,
    }
    return define_app_mcp(registry, **settings)


APP: Final = counter()


def ask(
    method: str,
    target: str,
    body: object = None,
    caller: str | None = "seller",
    app: App = APP,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Ask over ASGI."""
    parts = urlsplit(target)
    raw = b"" if body is None else json.dumps(body).encode()
    told = [("host", "localhost"), ("content-type", "application/json")]
    if caller is not None:
        told.append(("authorization", f"Bearer {caller}"))
    told += (headers or {}).items()
    return in_process(app, Request(method, f"/api/{parts.path}", tuple(told), raw, parts.query))


def header(answer: Answer, name: str) -> str | None:
    return dict(answer.headers).get(name)
