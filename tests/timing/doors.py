"""Where a name can be asked for, and the requests that ask: hidden names and absent ones, alike but for it.

The apps are whole, with audit and rates; nothing waits, so a request runs without an event loop.
"""

from __future__ import annotations

import json
import logging
import random
import string
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Final

from pydantic import BaseModel, Field

from nonsuch import Agent, App, Limits, Rate, Registry, asgi, can, define_app_mcp, expose, grant, group

NAMES: Final = (
    256  # each name has a cost of its own, by its hash and its place: few of them differ in any case
)
LETTERS: Final = 12
MANY: Final = Rate(1_000_000_000)
LEGACY, MODERN = "2025-11-25", "2026-07-28"
META: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
SHAPES: Final[Mapping[str, dict[str, Any]]] = {
    "none": {},
    "valid": {"region": "eu", "count": 1},
    "invalid": {"region": 7, "more": [1, 2]},
}
HEADERS: Final = (
    ("host", "localhost"),
    ("authorization", "Bearer t"),
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
)


class Plain(BaseModel):
    region: str
    count: int = 1


class Mirrored(BaseModel):
    region: str = Field(json_schema_extra={"x-mcp-header": "Region"})
    count: int = 1


@dataclass(frozen=True, slots=True)
class Names:
    """Names of one length: of hidden tools, and of none; the second ones of none are the null control's."""

    hidden: tuple[str, ...]
    absent: tuple[str, ...]
    others: tuple[str, ...]


def names(seed: int) -> Names:
    """Draw names; what is kept beside each other in memory is of all three kinds."""
    source = random.Random(seed)  # noqa: S311  (names, not secrets)
    drawn = list(dict.fromkeys(_name(source) for _ in range(4 * NAMES)))[: 3 * NAMES]
    return Names(tuple(drawn[0::3]), tuple(drawn[1::3]), tuple(drawn[2::3]))


def _name(source: random.Random) -> str:
    return "".join(source.choices(string.ascii_lowercase, k=LETTERS))


def app_of(hidden: tuple[str, ...], *, mirrored: bool = False, meta: bool = False) -> App:
    """An app whose caller sees a few tools and none of the hidden ones, which are paths as well."""
    registry, shown = Registry(), [f"shown{number}" for number in range(8)]
    model: type[BaseModel] = Mirrored if mirrored else Plain
    for name in (*shown, *hidden):
        audience = None if name in shown else ["staff"]
        registry.action(policy=can(f"desk:{name}"), mcp=expose("D", visible_to=audience), path=name)(
            _handler(name, model)
        )
    groups = {"desk": group("A desk", [*shown, *hidden[::2]]), "vault": group("A vault", list(hidden[1::2]))}
    settings: dict[str, Any] = {"surface": "meta", "groups": groups} if meta else {}
    return define_app_mcp(
        registry,
        name="timed",
        include="exposed",
        scopes={"use": shown, "staff": list(hidden)},
        grants=[grant("member", f"desk:{name}") for name in (*shown, *hidden)],
        resolve_token={"t": Agent("ann", roles={"member", "other"}, scopes={"use"})}.get,
        rate_limits=Limits(MANY, MANY, MANY),
        **settings,
    )


def _handler(name: str, model: type[BaseModel]) -> Callable[..., Any]:
    async def handle(input: Any) -> str:
        return name

    handle.__name__ = handle.__qualname__ = name
    handle.__annotations__ = {"input": model, "return": str}
    return handle


# requests


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as an ASGI server hands it over."""

    scope: MutableMapping[str, Any]
    body: bytes


def _asked(path: str, body: bytes, more: Iterator[tuple[str, str]], method: str = "POST") -> Asked:
    sent = [*HEADERS, ("content-length", str(len(body))), *more]
    headers = [(name.encode(), value.encode()) for name, value in sent]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "client": ("127.0.0.1", 9)}
    return Asked({**scope, "query_string": b""}, body)


def called(name: str, arguments: Mapping[str, Any], revision: str) -> Asked:
    """A call by name; the newest revision repeats the name, and arguments, in headers."""
    return _message("tools/call", name, {"name": name, "arguments": arguments}, revision, arguments)


def managed(name: str, arguments: Mapping[str, Any]) -> Asked:
    """The same call through the constant surface."""
    given = {"resource": "desk", "action": name, "params": arguments}
    return _message(
        "tools/call", "manage_resource", {"name": "manage_resource", "arguments": given}, MODERN, {}
    )


def _message(
    method: str, named: str, params: Mapping[str, Any], revision: str, arguments: Mapping[str, Any]
) -> Asked:
    held = {**params, "_meta": META} if revision == MODERN else params
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": held}).encode()
    return _asked("/mcp", body, _mirror(method, named, revision, arguments))


def _mirror(
    method: str, named: str, revision: str, arguments: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    yield "mcp-protocol-version", revision
    if revision == MODERN:
        yield "mcp-method", method
        yield "mcp-name", named
        if "region" in arguments:
            yield "mcp-param-region", "eu"


def posted(name: str, arguments: Mapping[str, Any]) -> Asked:
    """The same call by path."""
    return _asked(f"/api/{name}", json.dumps(arguments).encode(), iter(()))


def got(name: str, _arguments: Mapping[str, Any]) -> Asked:
    """A path by another method."""
    return _asked(f"/api/{name}", b"", iter(()), "GET")


# doors


@dataclass(frozen=True, slots=True)
class Door:
    """Where names are asked for: an app, how it is asked, and with what."""

    name: str
    app: Callable[[tuple[str, ...]], App]
    ask: Callable[[str, Mapping[str, Any]], Asked]
    shapes: tuple[str, ...] = tuple(SHAPES)


def _door(name: str, ask: Callable[[str, Mapping[str, Any]], Asked], **of: Any) -> Door:
    shapes = of.pop("shapes", tuple(SHAPES))
    return Door(name, lambda hidden: app_of(hidden, **of), ask, shapes)


DOORS: Final = (
    _door("call, 2025-11-25", lambda name, given: called(name, given, LEGACY)),
    _door("call, 2026-07-28", lambda name, given: called(name, given, MODERN)),
    _door("call, with x-mcp-header", lambda name, given: called(name, given, MODERN), mirrored=True),
    _door("manage", managed, meta=True),
    _door("POST", posted),
    _door("GET", got, shapes=("none",)),
)


class Desk:
    """One served app, asked in memory."""

    def __init__(self, app: App) -> None:
        self._serve = asgi(app)
        logging.getLogger("nonsuch.audit").setLevel(logging.CRITICAL)  # where lines go is not ours to time

    def ask(self, asked: Asked, burn: int = 0) -> tuple[int, int]:
        """Return the nanoseconds until the answer has left, and until all is done; burn some turns first."""
        left = 0

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": asked.body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal left
            if message["type"] == "http.response.body":
                left = perf_counter_ns()

        work = self._serve(asked.scope, receive, send)
        began = perf_counter_ns()
        for _ in range(burn):
            pass
        try:
            work.send(None)
        except StopIteration:
            return left - began, perf_counter_ns() - began
        raise RuntimeError("the request waits for something")

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        """Return what is answered."""
        heard: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": asked.body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            heard.append(message)

        try:
            self._serve(asked.scope, receive, send).send(None)
        except StopIteration:
            return heard[0]["status"], heard[1]["body"]
        raise RuntimeError("the request waits for something")
