"""What a request costs for its size: under a hundred times what a JSON parser takes for as many bytes.

That is the line of the threat model between load and amplification.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from ..mcp.wire import Answer, Request, in_process
from .counter import ask, counter, session

FACTOR: Final = 100
HEAD: Final = 64 * 1024
SESSIONS: Final = counter(resolve_principal=session)


def seconds(call: Callable[[], object]) -> float:
    """The CPU time of a call, at its best."""

    def once() -> float:
        before = time.process_time()
        call()
        return time.process_time() - before

    return min(once() for _ in range(3))


def unit(size: int) -> float:
    """What the standard library's JSON parser takes for so many bytes."""
    text = json.dumps([{"name": "value", "n": 1}] * (size // 26))
    return seconds(lambda: json.loads(text))


def cookies(many: int) -> Answer:
    told = ";".join(f"{number:x}=" for number in range(many))
    return in_process(SESSIONS, Request("GET", "/api/items", (("host", "localhost"), ("cookie", told))))


def query(text: str) -> Answer:
    return ask("GET", f"items?{text}")


def body(value: Any) -> Answer:
    return ask("POST", "items", value)


MANY: Final = 190_000  # of a list that fits into the limit of a body
ATTEMPTS: Final[dict[str, tuple[int, int, Callable[[], Answer]]]] = {
    "cookies": (HEAD, 401, lambda: cookies(11_000)),
    "one cookie again and again": (
        HEAD,
        401,
        lambda: in_process(
            SESSIONS, Request("GET", "/api/items", (("host", "localhost"), ("cookie", "a=;" * 21_000)))
        ),
    ),
    "keys of a query string": (HEAD, 422, lambda: query("&".join(f"k{at}" for at in range(9_000)))),
    "one key again and again": (HEAD, 422, lambda: query("limit=1&" * 8_000)),
    "items of a list": (HEAD, 422, lambda: query("state_in=" + "," * HEAD)),
    "digits": (HEAD, 422, lambda: query("limit=" + "9" * HEAD)),
    "escapes": (HEAD, 422, lambda: query("limit=" + "%39" * 21_000)),
    "a list of what is not allowed": (2**20, 422, lambda: body({"state_in": ["x"] * MANY})),
    "a list in place of a number": (2**20, 422, lambda: body({"limit": ["x"] * MANY})),
    "members that nobody declared": (2**20, 422, lambda: body({f"k{at}": 1 for at in range(60_000)})),
    "a list in an object": (
        2**20,
        422,
        lambda: ask("POST", "items/search", {"item": {"id": ["x"] * MANY}}),
    ),
    "members of an object in it": (
        2**20,
        422,
        lambda: ask("POST", "items/search", {"item": {f"k{at}": 1 for at in range(60_000)}}),
    ),
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_no_request_costs_more_than_it_is_long(name: str) -> None:
    size, status, send = ATTEMPTS[name]
    answer = send()
    assert answer.status == status
    assert len(answer.body) < 1_000
    assert seconds(send) < FACTOR * unit(size)
