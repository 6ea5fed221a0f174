"""Rates over MCP: what each request costs, what a refusal says, whose allowance it was, what is audited."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from nonsuch import Limits, Rate, Verdict, group
from nonsuch.adapters.edge.audit import level
from nonsuch.kernel.audit import AuthRefused, RateLimited, ResourceRead, ToolCall
from nonsuch.kernel.meter import RateClass

from .counted import MANY, Counted, Told
from .live import LEGACY, MODERN, REVISIONS, request

ONE = Rate(1)
READS, WRITES = Limits(read=ONE, write=MANY), Limits(read=MANY, write=ONE)


def ask(desk: Counted, revision: str, method: str, caller: str = "t", **params: Any) -> Told:
    headers, body = request(revision, method, caller, **params)
    return desk.send(headers, body)


def call(desk: Counted, name: Any, caller: str = "t", revision: str = MODERN, **arguments: Any) -> Told:
    return ask(desk, revision, "tools/call", caller, name=name, arguments=arguments)


# What it costs

COSTS: dict[str, tuple[RateClass, str, dict[str, Any]]] = {
    "list": ("read", "tools/list", {}),
    "resources": ("read", "resources/list", {}),
    "templates": ("read", "resources/templates/list", {}),
    "prompts": ("read", "prompts/list", {}),
    "read": ("read", "resources/read", {"uri": "a:b"}),
    "read of nothing": ("read", "resources/read", {"uri": "a:nothing"}),
    "read of hidden": ("read", "resources/read", {"uri": "a:hidden"}),
    "read malformed": ("read", "resources/read", {"uri": 7}),
    "prompt": ("read", "prompts/get", {"name": "p"}),
    "completion": (
        "read",
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
    ),
    "no such method": ("read", "tools/nothing", {}),
    "query": ("read", "tools/call", {"name": "lookup", "arguments": {}}),
    "query with wrong arguments": ("read", "tools/call", {"name": "lookup", "arguments": {"x": 1}}),
    "harmless tool": ("read", "tools/call", {"name": "peek"}),
    "action": ("write", "tools/call", {"name": "change", "arguments": {"id": "1"}}),
    "action with wrong arguments": ("write", "tools/call", {"name": "change", "arguments": {}}),
    "destructive tool": ("write", "tools/call", {"name": "drop"}),
    "hidden query": ("write", "tools/call", {"name": "hidden", "arguments": {}}),
    "absent": ("write", "tools/call", {"name": "absent", "arguments": {}}),
    "no name": ("write", "tools/call", {}),
    "a name that is none": ("write", "tools/call", {"name": 7}),
    "arguments that are none": ("write", "tools/call", {"name": "lookup", "arguments": 7}),
}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("case", COSTS)
def test_a_request_is_counted_once_as_what_it_is(case: str, revision: str) -> None:
    kind, method, params = COSTS[case]
    for limits, costs in ((READS, kind == "read"), (WRITES, kind == "write")):
        desk = Counted(limits)
        seen = [ask(desk, revision, method, **params).status == 429 for _ in range(3)]
        assert seen == ([False, True, True] if costs else [False, False, False])


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe"])
@pytest.mark.parametrize("revision", LEGACY)
def test_a_handshake_costs_a_read(method: str, revision: str) -> None:
    desk = Counted(READS)
    assert [ask(desk, revision, method, level="info", uri="a:b").status for _ in range(2)] == [200, 429]
    assert ask(Counted(WRITES), revision, method, level="info", uri="a:b").status == 200


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize(("method", "limits"), [("tools/list", READS), ("tools/call", WRITES)])
def test_a_meta_that_is_none_costs_what_its_method_does(revision: str, method: str, limits: Limits) -> None:
    """In 2026-07-28 it is refused with its envelope, before anything is counted."""
    desk, (headers, _) = Counted(limits), request(revision, method)
    told = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "lookup", "_meta": 7}}
    assert [desk.send(headers, json.dumps(told).encode()).status for _ in range(2)] == [200, 429]


def test_a_state_that_nobody_gave_costs_a_write() -> None:
    headers, body = request(MODERN, "tools/call", name="lookup", arguments={}, requestState="forged")
    desk = Counted(WRITES)
    assert [desk.send(headers, body).status for _ in range(2)] == [200, 429]


NOTIFIED = {"initialized": (READS, "notifications/initialized"), "a call": (WRITES, "tools/call")}


@pytest.mark.parametrize("name", ["lookup", "hidden", "absent"])
@pytest.mark.parametrize("case", NOTIFIED)
def test_leaving_out_the_id_is_no_way_around_the_meter(case: str, name: str) -> None:
    limits, method = NOTIFIED[case]
    desk, (headers, _) = Counted(limits), request("2025-11-25", method)
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": {"name": name}}).encode()
    first, second = desk.send(headers, body), desk.send(headers, body)
    assert (first.status, first.body, second.status) == (202, b"", 429)
    assert desk.ran == []


def test_an_answer_to_a_question_costs_a_read() -> None:
    desk, (headers, _) = Counted(READS), request("2025-11-25", "x")
    body = json.dumps({"jsonrpc": "2.0", "id": "none", "result": {}}).encode()
    assert [desk.send(headers, body).status for _ in range(2)] == [202, 429]


def test_what_is_over_the_allowance_does_not_run() -> None:
    desk = Counted(Limits(read=Rate(2), write=Rate(1)))
    for _ in range(5):
        call(desk, "lookup")
        call(desk, "change", id="1")
    assert sorted(desk.ran) == ["change", "lookup", "lookup"]


def test_without_limits_nothing_is_counted() -> None:
    desk = Counted(None)
    assert {call(desk, "absent").status for _ in range(200)} == {200}
    assert {ask(desk, MODERN, "tools/list", "nobody").status for _ in range(50)} == {401}


# What a refusal says

DATA = {
    "code": "X_MCP_RATE_LIMITED",
    "cause": "the allowance for requests of this kind is spent",
    "fix": "wait as long as `Retry-After` says, then send the request again",
}


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_refusal_says_when_to_come_again_and_nothing_of_the_bucket(revision: str) -> None:
    desk = Counted(Limits(read=Rate(2, 7), write=MANY))
    told = [ask(desk, revision, "tools/list", ident="mine") for _ in range(3)][-1]
    assert told.status == 429
    assert told.value == {
        "jsonrpc": "2.0",
        "id": "mine",
        "error": {"code": -32600, "message": DATA["cause"], "data": DATA},
    }
    assert told.headers == {
        "content-type": "application/json",
        "content-length": str(len(told.body)),
        "retry-after": "4",
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_refusal_of_a_notification_has_no_id(revision: str) -> None:
    desk, (headers, _) = Counted(READS), request(revision, "notifications/x")
    body = b'{"jsonrpc":"2.0","method":"notifications/x"}'
    told = [desk.send(headers, body) for _ in range(2)][-1]
    assert (told.status, told.headers["retry-after"]) == (429, "60")
    assert told.value.get("id", "left out") == (None if revision == "2025-06-18" else "left out")


def test_who_waits_as_long_as_told_passes() -> None:
    desk = Counted(Limits(read=Rate(3, 10), write=MANY))
    for _ in range(3):
        assert ask(desk, MODERN, "tools/list").status == 200
    wait = int(ask(desk, MODERN, "tools/list").headers["retry-after"])
    desk.later(wait - 1)
    assert ask(desk, MODERN, "tools/list").status == 429
    desk.later(1)
    assert ask(desk, MODERN, "tools/list").status == 200


def test_a_client_that_takes_events_alone_is_refused_alike() -> None:
    desk = Counted(READS)
    ask(desk, MODERN, "tools/list", accept="text/event-stream")
    told = ask(desk, MODERN, "tools/list", accept="text/event-stream")
    assert (told.status, told.headers["content-type"], told.headers["retry-after"]) == (
        429,
        "application/json",
        "60",
    )


# Whose allowance it was


@pytest.mark.parametrize(
    ("spender", "others"),
    [
        ("t", ["other", "elsewhere", "ann", "bot"]),
        ("ann", ["bob", "bot", "t"]),
        ("bot", ["ann", "bob"]),
    ],
)
def test_nobody_spends_anothers_allowance(spender: str, others: list[str]) -> None:
    desk = Counted(Limits(read=Rate(2), write=Rate(2)))
    for _ in range(5):
        call(desk, "lookup", spender)
        call(desk, "absent", spender)
    for other in others:
        assert [call(desk, "lookup", other).status for _ in range(3)] == [200, 200, 429]
        assert [call(desk, "absent", other).status for _ in range(3)] == [200, 200, 429]


def test_two_tokens_of_one_caller_are_one_allowance() -> None:
    desk = Counted(READS)
    assert [call(desk, "lookup", token).status for token in ("t", "t-again")] == [200, 429]


def test_reading_spends_no_writes_and_writing_no_reads() -> None:
    desk = Counted(Limits(read=Rate(1), write=Rate(1)))
    assert [call(desk, "lookup").status for _ in range(2)] == [200, 429]
    assert [call(desk, "drop").status for _ in range(2)] == [200, 429]


def test_mcp_and_http_are_one_allowance() -> None:
    desk = Counted(Limits(read=MANY, write=Rate(2)))
    headers = [("host", "127.0.0.1"), ("content-type", "application/json"), ("authorization", "Bearer t")]
    assert call(desk, "change", id="1").status == 200
    assert desk.send(headers, b'{"id":"1"}', "/api/change").status == 200
    assert call(desk, "change", id="1").status == 429
    assert desk.send(headers, b'{"id":"1"}', "/api/change").status == 429


# What is audited


def limited(desk: Counted) -> list[Any]:
    """The events of refusals of the meter."""
    return [each for each in desk.events if getattr(each, "outcome", None) == "rate-limited"]


CALLS: dict[str, tuple[str, bool]] = {
    "lookup": ("lookup", True),
    "change": ("change", True),
    "hidden": ("hidden", True),
    "absent": ("absent", False),
    "x" * 5_000: ("x" * 128, False),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_refused_call_is_one_event(name: str) -> None:
    desk = Counted(Limits(read=ONE, write=ONE))
    for _ in range(4):
        call(desk, name, "ann", id="secret")
    tool, declared = CALLS[name]
    event = ToolCall(
        tool,
        "rate-limited",
        "mcp",
        "bot",
        "agent",
        "ann",
        code="X_MCP_RATE_LIMITED",
        declared=declared,
    )
    assert limited(desk) == [event] * 3
    assert len(desk.events) == 4


def test_a_tool_of_the_constant_surface_is_one_that_its_caller_sees() -> None:
    groups = {"all": group("All there is", ["lookup", "change"])}
    desk = Counted(READS, settings={"surface": "meta", "groups": groups})
    for _ in range(2):
        call(desk, "list_resources")
        call(desk, "manage_resource", resource="all", action="lookup", params={})
    told = [(each.tool, each.declared) for each in limited(desk)]
    assert told == [("lookup", True), ("list_resources", True), ("lookup", True)]


@pytest.mark.parametrize(
    ("code", "expected"), [("X_MCP_RATE_LIMITED", logging.WARNING), ("X_RATE_STORE_FAILED", logging.ERROR)]
)
def test_a_store_that_fails_is_louder_than_a_caller_that_hurries(code: str, expected: int) -> None:
    assert level(ToolCall("t", "rate-limited", "mcp", "a", "agent", code=code)) == expected
    assert level(RateLimited("tools/list", code, "a", "agent")) == expected


OTHERS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "read": (
        "resources/read",
        {"uri": "a:b"},
        ResourceRead("a:b", "rate-limited", "a", "agent", code="X_MCP_RATE_LIMITED"),
    ),
    "list": ("tools/list", {}, RateLimited("tools/list", "X_MCP_RATE_LIMITED", "a", "agent")),
    "malformed": (
        "resources/read",
        {"uri": 7},
        RateLimited("resources/read", "X_MCP_RATE_LIMITED", "a", "agent"),
    ),
    "long": ("m" * 300, {}, RateLimited("m" * 128, "X_MCP_RATE_LIMITED", "a", "agent")),
}


@pytest.mark.parametrize("case", OTHERS)
def test_each_refused_reading_is_one_event(case: str) -> None:
    method, params, event = OTHERS[case]
    desk = Counted(READS)
    for _ in range(4):
        ask(desk, MODERN, method, **params)
    assert limited(desk) == [event] * 3


def test_a_refused_prompt_and_a_refused_notification_are_events() -> None:
    desk, (headers, _) = Counted(READS), request("2025-11-25", "notifications/x")
    for _ in range(2):
        ask(desk, MODERN, "prompts/get", name="p")
    desk.send(headers, b'{"jsonrpc":"2.0","method":"notifications/x"}')
    desk.send(headers, b'{"jsonrpc":"2.0","id":"x","result":1}')
    told = [(each.kind, getattr(each, "prompt", None) or each.method) for each in limited(desk)]
    assert told == [("prompt-get", "p"), ("rate-limited", "notifications/x"), ("rate-limited", "response")]


# The store


class Broken:
    """A store that fails, or says what it must not."""

    def __init__(self, says: Any, after: int = 0) -> None:
        self.says, self.after, self.asked = says, after, 0

    async def take(self, key: str, rate: Rate, count: int) -> Verdict:
        self.asked += 1
        if self.asked <= self.after:
            return Verdict(True)
        if isinstance(self.says, BaseException):
            raise self.says
        return self.says  # type: ignore[no-any-return]  # what it says is the point


@pytest.mark.parametrize("says", [ConnectionError("a s3cret address"), None, True, (True, 0)], ids=repr)
@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("revision", REVISIONS)
def test_what_nobody_counts_does_not_pass(says: Any, after: int, revision: str) -> None:
    """`after=0` fails where the address is looked at, `after=1` where the caller is counted."""
    desk = Counted(WRITES, Broken(says, after))
    told = call(desk, "lookup", revision=revision)
    assert (told.status, told.headers["retry-after"]) == (503, "1")
    assert told.value["error"]["code"] == -32603
    assert told.value["error"]["data"]["code"] == "X_RATE_STORE_FAILED"
    assert b"s3cret" not in told.body
    assert (desk.ran, len(desk.events)) == ([], 1)
    (event,) = desk.events
    if after:
        assert event == ToolCall(
            "lookup", "rate-limited", "mcp", "a", "agent", code="X_RATE_STORE_FAILED", declared=True
        )
    else:
        assert event == AuthRefused("store-failed", 503, "127.0.0.1", "/mcp")
        assert desk.resolved == []


@pytest.mark.parametrize("caller", ["unknown", "person"])
def test_a_failure_that_nobody_counts_is_told_nothing_of_its_token(caller: str) -> None:
    """Or guessing would be free while the store is down."""
    desk = Counted(READS, Broken(ConnectionError(), 1))
    told = call(desk, "lookup", caller)
    assert (told.status, told.headers["retry-after"]) == (503, "1")
    assert told.value["error"]["data"]["code"] == "X_RATE_STORE_FAILED"
    assert desk.events == [AuthRefused("store-failed", 503, "127.0.0.1", "/mcp")]
