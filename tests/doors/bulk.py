"""Requests that are read to their end: bodies, heads and query strings made to cost more than they weigh.

Each stays within the cap of a body. Says nothing of what is answered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from nonsuch import (
    Agent,
    App,
    Human,
    Registry,
    SessionFacts,
    can,
    define_app_mcp,
    expose,
    grant,
    prompt,
    resource,
)

from .raw import BODY_LIMIT, Case, Header, length

MODERN: Final = "2026-07-28"
ROOM: Final = BODY_LIMIT - 2_048
META: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Line(BaseModel):
    sku: Annotated[str, Field(pattern="^[a-z]+$", max_length=20)]
    count: Annotated[int, Field(ge=1)]


class Node(BaseModel):
    next: Node | None = None


class Order(BaseModel):
    lines: list[Line] = []
    tags: dict[str, int] = {}
    kinds: list[Literal["one", "two"]] = []
    price: float = 0
    note: str = ""
    node: Node | None = None


class Row(BaseModel):
    id: str
    part: str


class Find(BaseModel):
    ids: list[int] = []


async def read_row(input: Row) -> str:
    return input.id


async def render() -> str:
    return "a prompt"


def counter() -> App:
    """An app that takes an order over both doors, by a token or a session."""
    registry = Registry()

    @registry.action(policy=can("order:make"), mcp=expose("Order"), idempotent=True)
    async def order(input: Order) -> int:
        return len(input.lines)

    @registry.query(policy=can("order:find"), mcp=expose("Find"), methods=["GET"])
    async def find(input: Find) -> list[int]:
        return input.ids

    def resolve(token: str) -> Agent | None:
        return Agent("ann", roles={"member"}) if token == "ann" else None

    def session(facts: SessionFacts) -> Human | None:
        return Human("ann", roles={"member"}) if facts.cookies.get("session") == "ann" else None

    return define_app_mcp(
        registry,
        name="counter",
        include="exposed",
        resources=[resource("row://{id}/{part}", "row", "R", read_row)],
        prompts=[prompt(render, description="P", name="p")],
        grants=[grant("member", "any")],
        resolve_token=resolve,
        resolve_principal=session,
        body_limit_bytes=BODY_LIMIT,
        rate_limits=None,
    )


# over MCP


def asked(method: str, params: Any, ident: Any = 1, *headers: Header) -> bytes:
    """A message of the newest revision."""
    told: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": ident,
        "method": method,
        "params": {**params, "_meta": META},
    }
    named = params.get("name", params.get("uri"))
    mirror = [(b"Mcp-Name", named.encode())] if isinstance(named, str) and len(named) < 4_096 else []
    body = json.dumps(told).encode()
    modern = ((b"MCP-Protocol-Version", MODERN.encode()), (b"Mcp-Method", method.encode()[:999]), *mirror)
    return length(body, *modern, *headers, without=[b"mcp-protocol-version"])


def called(arguments: Any, *headers: Header) -> bytes:
    return asked("tools/call", {"name": "order", "arguments": arguments}, 1, *headers)


def written(arguments: bytes) -> bytes:
    """A call whose arguments are spelled by hand."""
    return called("@").replace(b'"@"', b"@", 1).partition(b"\r\n\r\n")[2].replace(b"@", arguments)


def _by_hand() -> Iterator[tuple[str, bytes]]:
    deep, half = ROOM // 2, ROOM // 4
    for name, raw in {
        "arrays as deep as it goes": b"[" * deep + b"]" * deep,
        "objects as deep as it goes": b'{"a":' * (ROOM // 6) + b"0" + b"}" * (ROOM // 6),
        "empty arrays": b"[" + b"[]," * (ROOM // 3 - 1) + b"[]]",
        "empty objects": b"[" + b"{}," * (ROOM // 3 - 1) + b"{}]",
        "zeros": b"[" + b"0," * (deep - 1) + b"0]",
        "a number of all digits": b"9" * ROOM,
        "numbers of a thousand digits": b"[" + (b"9" * 999 + b",") * (ROOM // 1_000) + b"0]",
        "a fraction of all digits": b"0." + b"3" * (ROOM - 2),
        "exponents": b"[" + b"1e308," * (ROOM // 6 - 1) + b"0]",
        "one key, again and again": b"{" + b'"a":0,' * (ROOM // 6 - 1) + b'"a":0}',
        "escapes": b'"' + b"\\u00e9" * (ROOM // 6) + b'"',
        "pairs of escapes": b'"' + b"\\ud83d\\ude00" * (ROOM // 12) + b'"',
        "backslashes": b'"' + b"\\\\" * deep + b'"',
        "halves of pairs": b'"' + b"\\ud83d" * (ROOM // 6) + b'"',
        "spaces": b" " * (ROOM - 2) + b"{}",
        "colons": b"{" + b":" * half,
        "quotes": b'"' * ROOM,
    }.items():
        body = written(raw)
        head = called({}).partition(b"\r\n\r\n")[0].split(b"\r\n")
        kept = [line for line in head if not line.lower().startswith(b"content-length")]
        yield name, b"\r\n".join([*kept, b"Content-Length: %d" % len(body), b"", body])


def _arguments() -> Iterator[tuple[str, bytes]]:
    wrong = {"sku": "A", "count": 0}
    for name, given in {
        "lines that are right": {"lines": [{"sku": "a", "count": 1}] * (ROOM // 26)},
        "lines that are wrong twice": {"lines": [wrong] * (ROOM // 26)},
        "lines that are no lines": {"lines": [0] * (ROOM // 3)},
        "lines of other keys": {"lines": [{"x": 0}] * (ROOM // 10)},
        "kinds that are none": {"kinds": ["x"] * (ROOM // 5)},
        "tags": {"tags": {f"t{number}": number for number in range(ROOM // 18)}},
        "tags that are none": {"tags": {f"t{number}": "x" for number in range(ROOM // 16)}},
        "arguments that nobody declared": {f"a{number}": 0 for number in range(ROOM // 12)},
        "a long argument that nobody declared": {"a" * (ROOM - 64): 0},
        "a long note": {"note": "x" * (ROOM - 64)},
        "a note for a price": {"price": "x" * (ROOM - 64)},
        "a long key": {"idempotencyKey": "x" * (ROOM - 64)},
        "a chain": _chain(60),
        "sku of many letters": {"lines": [{"sku": "a" * (ROOM - 99), "count": 1}]},
    }.items():
        yield name, called(given)


def _chain(depth: int) -> dict[str, Any]:
    node: dict[str, Any] = {}
    for _ in range(depth):
        node = {"next": node}
    return {"node": node}


def _messages() -> Iterator[tuple[str, bytes]]:
    text = "x" * (ROOM - 256)
    yield "a long name", asked("tools/call", {"name": text, "arguments": {}})
    yield "a long method", asked(text, {})
    yield "a long id", asked("tools/list", {}, text)
    yield "a long cursor", asked("tools/list", {"cursor": text})
    yield "a long state", asked("tools/call", {"name": "order", "arguments": {}, "requestState": text})
    yield "a long uri", asked("resources/read", {"uri": f"row://{text}"})
    yield "a uri of slashes", asked("resources/read", {"uri": "row://" + "/" * (ROOM - 256)})
    ref = {"type": "ref/resource", "uri": "row://{id}/{part}"}
    yield (
        "a long value to complete",
        asked("completion/complete", {"ref": ref, "argument": {"name": "id", "value": text}}),
    )
    yield (
        "many members of a message",
        asked("tools/list", {f"m{number}": 0 for number in range(ROOM // 13)}),
    )
    yield "many headers of arguments", called({}, *_many(b"Mcp-Param-A%d", 1_000))


# over HTTP, and heads


def _many(name: bytes, count: int) -> list[Header]:
    return [(name % number, b"x") for number in range(count)]


def _heads() -> Iterator[tuple[str, bytes]]:
    room, api = 60_000, b"POST /api/order HTTP/1.1"
    signed_in: dict[str, Any] = {"line": api, "without": [b"authorization"]}
    yield "many media types", length(b"{}", (b"Accept", b"a/b," * (room // 4)), without=[b"accept"])
    yield "many parameters", length(b"{}", (b"Accept", b"a/b" + b";a" * (room // 2)), without=[b"accept"])
    yield "many cookies", length(b"{}", (b"Cookie", b"".join(_cookies(room))), **signed_in)
    yield "one cookie, again and again", length(b"{}", (b"Cookie", b"a=;" * (room // 3)), **signed_in)
    yield "many headers", length(b"{}", *_many(b"X-%d", 6_000))
    yield (
        "a long token",
        length(b"{}", (b"Authorization", b"Bearer " + b"a" * room), without=[b"authorization"]),
    )
    yield "a long host", length(b"{}", (b"Host", b"a." * (room // 2)), without=[b"host"])
    yield "a long origin", length(b"{}", (b"Origin", b"http://" + b"a." * (room // 2)))
    yield (
        "a long key of HTTP",
        length(b"{}", (b"Idempotency-Key", b'"' + b"\\\\" * (room // 2) + b'"'), line=api),
    )
    for name, query in {
        "many values": b"ids=1&" * (room // 6),
        "values that are none": b"ids=x&" * (room // 6),
        "many keys": b"".join(b"k%d&" % number for number in range(room // 8)),
        "escapes of a query": b"ids=" + b"%31" * (room // 3 - 2),
        "ampersands": b"&" * room,
        "a digit after the other": b"ids=" + b"9" * (room - 4),
    }.items():
        line = b"GET /api/find?%b HTTP/1.1" % query
        yield name, length(b"", line=line)


def _cookies(room: int) -> Iterator[bytes]:
    return (b"c%d=;" % number for number in range(room // 8))


BULK: Final = tuple(
    Case(name, raw) for named in (_by_hand(), _arguments(), _messages(), _heads()) for name, raw in named
)
# One after the other and never read: a parser that takes them all at once holds each of them.
IN_LINE: Final = (
    Case("requests in line", b"GET / HTTP/1.1\r\n\r\n" * 3_600),
    Case("requests in line, with a host", b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1_700),
)
