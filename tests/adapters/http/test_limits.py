"""Rates over HTTP: the rule of MCP, the words of HTTP, and no path that shows by what it costs."""

from __future__ import annotations

import json

import pytest

from nonsuch import Limits, Rate, SessionFacts
from nonsuch.kernel.audit import ToolCall

from ..mcp.counted import MANY, Counted, Told
from .asking import error, plain

ONE = Rate(1)
READS, WRITES = Limits(read=ONE, write=MANY), Limits(read=MANY, write=ONE)
LIMITED = error(
    "X_MCP_RATE_LIMITED",
    "the allowance for requests of this kind is spent",
    "wait as long as `Retry-After` says, then send the request again",
)


def ask(
    desk: Counted, path: str, body: bytes = b"{}", method: str = "POST", caller: str = "t", kind: str = "json"
) -> Told:
    headers = [
        ("host", "127.0.0.1"),
        ("content-type", f"application/{kind}"),
        ("authorization", f"Bearer {caller}"),
    ]
    return desk.send(headers, body, path, method)


COSTS: dict[str, tuple[bool, str, bytes, str]] = {
    "query": (True, "/api/lookup", b"{}", "POST"),
    "query that cannot be read": (True, "/api/lookup", b"{", "POST"),
    "query with wrong arguments": (True, "/api/lookup", b'{"x":1}', "POST"),
    "action": (False, "/api/change", b'{"id":"1"}', "POST"),
    "hidden": (False, "/api/hidden", b"{}", "POST"),
    "absent": (False, "/api/nothing", b"{}", "POST"),
    "query by GET": (True, "/api/lookup", b"", "GET"),
    "query by another method": (False, "/api/lookup", b"", "DELETE"),
    "action by another method": (False, "/api/change", b"", "PUT"),
    "absent by another method": (False, "/api/nothing", b"", "GET"),
    "elsewhere": (False, "/", b"", "GET"),
    "below": (False, "/api/", b"{}", "POST"),
}


@pytest.mark.parametrize("case", COSTS)
def test_a_request_is_counted_once_as_what_it_is(case: str) -> None:
    reads, path, body, method = COSTS[case]
    for limits, costs in ((READS, reads), (WRITES, not reads)):
        desk = Counted(limits)
        seen = [ask(desk, path, body, method).status == 429 for _ in range(3)]
        assert seen == ([False, True, True] if costs else [False, False, False])


def test_a_query_costs_a_person_what_it_costs_an_agent() -> None:
    desk = Counted(READS)
    assert [ask(desk, "/api/lookup", caller="person").status for _ in range(2)] == [200, 429]
    assert ask(desk, "/api/lookup", caller="ann").status == 200


def test_a_refusal_says_when_to_come_again() -> None:
    desk = Counted(Limits(read=Rate(2, 7), write=MANY))
    told = [ask(desk, "/api/lookup") for _ in range(3)][-1]
    assert plain(told.value, told.status) == LIMITED
    assert told.headers == {
        "content-type": "application/problem+json",
        "content-length": str(len(told.body)),
        "retry-after": "4",
    }
    assert desk.ran == ["lookup"] * 2


def test_hidden_and_absent_are_refused_alike() -> None:
    desk = Counted(WRITES)
    ask(desk, "/api/nothing")
    for method in ("POST", "GET"):
        hidden, absent = (ask(desk, path, method=method) for path in ("/api/hidden", "/api/absent"))
        assert hidden == absent
        assert hidden.status == 429


def test_what_is_over_the_allowance_is_refused_before_its_body_is_read() -> None:
    desk = Counted(WRITES)
    assert ask(desk, "/api/change", b"x" * 2**21).status == 413
    assert ask(desk, "/api/change", b"x" * 2**21).status == 429
    assert ask(desk, "/api/change", b"x", kind="xml").status == 429


def test_each_refusal_is_one_event() -> None:
    desk = Counted(Limits(read=ONE, write=ONE))
    for path in ("/api/lookup", "/api/hidden", "/api/lookup", "/api/hidden", "/api/nothing", "/else"):
        ask(desk, path, json.dumps({"id": "s3cret"}).encode())
    events = [each for each in desk.events if isinstance(each, ToolCall) and each.outcome == "rate-limited"]
    assert events == [
        ToolCall(name, "rate-limited", "http", "a", "agent", code="X_MCP_RATE_LIMITED", declared=declared)
        for name, declared in (("lookup", True), ("hidden", True), ("nothing", False), ("/else", False))
    ]


def test_without_limits_nothing_is_counted() -> None:
    desk = Counted(None)
    assert {ask(desk, "/api/nothing").status for _ in range(200)} == {404}


# Sessions: what fails, and what only asks


def visits(count: int, *headers: tuple[str, str]) -> list[int]:
    """Ask without a token as often as that, then with a good one."""

    def nobody(_facts: SessionFacts) -> None:
        return None

    given = {"resolve_principal": nobody, "principal_headers": ["X-User"], "session_cookie": "sid"}
    desk = Counted(Limits(MANY, MANY, Rate(3)), settings=given)
    sent = [("host", "127.0.0.1"), ("content-type", "application/json"), *headers]
    seen = [desk.send(sent, b"{}", "/api/lookup").status for _ in range(count)]
    return [*seen, ask(desk, "/api/lookup").status]


@pytest.mark.parametrize("shown", [("cookie", "sid=guess"), ("cookie", "a=b; sid="), ("x-user", "guess")])
def test_a_session_that_is_nobodys_is_a_failure(shown: tuple[str, str]) -> None:
    assert visits(4, shown) == [401, 401, 401, 429, 429]


@pytest.mark.parametrize("shown", [[], [("cookie", "theme=dark; session=x")], [("x-other", "guess")]])
def test_the_page_of_a_visitor_who_never_signed_in_keeps_nobody_out(shown: list[tuple[str, str]]) -> None:
    assert visits(20, *shown) == [401] * 20 + [200]
