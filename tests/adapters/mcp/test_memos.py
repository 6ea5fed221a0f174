"""What is remembered of headers: short ones, which clients repeat. Long ones anybody can send, all unlike."""

from __future__ import annotations

import tracemalloc
from itertools import count

from nonsuch.adapters.door import Door
from nonsuch.adapters.wire import Head, accepted

LONG = 60_000
_numbers = count()


def asked(header: str, value: str) -> Head:
    return Head("POST", "/mcp", {"host": "localhost", header: value})


def grown(header: str) -> int:
    """The bytes that stay after a hundred long headers, no two alike."""
    door = Door()
    for _ in range(5):
        door.refuses(asked(header, "localhost"))
    tracemalloc.start()
    try:
        for _ in range(100):
            head = asked(header, f"a{next(_numbers)}/b," * (LONG // 8))
            assert accepted(head) == (header != "accept", False)
            assert (door.refuses(head) is None) is (header == "accept")
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_long_headers_leave_nothing_behind() -> None:
    assert grown("accept") < LONG
    assert grown("host") < LONG
    assert grown("origin") < LONG


def test_a_long_accept_is_read_all_the_same() -> None:
    padding = ", ".join(f"a/b{number}" for number in range(2_000))
    assert accepted(asked("accept", f"{padding}, application/json")) == (True, False)
    assert accepted(asked("accept", f"text/event-stream, {padding}")) == (False, True)
    assert accepted(asked("accept", f"{padding}, application/json;q=0")) == (False, False)
