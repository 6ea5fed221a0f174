"""Each way that a request can end has one event and one line of the log; what only lists has none."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from nonsuch import Refused, guard
from nonsuch.adapters.edge.audit import line
from nonsuch.kernel.audit import AuthRefused, Event, ToolCall

from ...world import NOON
from ..mcp.live import LEGACY, MODERN, REVISIONS, request, response
from .ledger import CALLERS, SENTINEL, SPENT, TASKS, Ledger

Way = Callable[[Ledger], Awaitable[object]]
Told = tuple[str, str, str | None]
OLD: Final = LEGACY[-1]


@pytest.fixture
def ledger(tmp_path: Path) -> Generator[Ledger]:
    with heard(Ledger(tmp_path / "policies")) as held:
        yield held


class heard:
    """Let a ledger hear the log."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.log = ledger, logging.getLogger("nonsuch.audit")

    def __enter__(self) -> Ledger:
        self.before, self.off = self.log.level, logging.root.manager.disable
        logging.disable(logging.NOTSET)  # whoever runs this may have silenced all
        self.log.addHandler(self.ledger)
        self.log.setLevel(logging.DEBUG)
        return self.ledger

    def __exit__(self, *_: object) -> None:
        self.log.removeHandler(self.ledger)
        self.log.setLevel(self.before)
        logging.disable(self.off)


def told(event: Event) -> Told:
    """What kind of event it is, how it ended, and the code of that."""
    if isinstance(event, AuthRefused):
        return event.kind, event.reason, str(event.status)
    return event.kind, event.outcome, event.code


def checked(ledger: Ledger) -> list[Told]:
    """What was told; the log said the same, a line of ASCII each, at this time, and no payload."""
    assert ledger.lines == [line(each, NOON) for each in ledger.events]
    assert all(each.at == NOON for each in ledger.events)
    whole = repr(ledger.events) + "".join(ledger.lines)
    assert SENTINEL not in whole
    assert "\n" not in "".join(ledger.lines)
    return [told(each) for each in ledger.events]


def tried(ledger: Ledger, way: Way) -> list[Told]:
    """Go one way, and return what was told of it."""

    async def whole() -> None:
        async with asyncio.timeout(30), ledger.served.lifespan():
            await way(ledger)

    asyncio.run(whole())
    return checked(ledger)


def mcp(method: str, who: str = "t", /, **params: Any) -> Way:
    return lambda ledger: ledger.mcp(method, who, **params)


def old(method: str, who: str = "t", /, **params: Any) -> Way:
    return lambda ledger: ledger.mcp(method, who, OLD, **params)


def call(name: Any, who: str = "t", /, **arguments: Any) -> Way:
    return mcp("tools/call", who, name=name, arguments=arguments)


def http(path: str, *given: Any, **headers: str) -> Way:
    return lambda ledger: ledger.http(path, *given, **headers)


def inside(name: str, who: str = "t", /, **arguments: Any) -> Way:
    return lambda ledger: ledger.invoke(name, who, **arguments)


def bare(method: str, revision: str = MODERN, /, **params: Any) -> Way:
    """A message without an id."""

    def go(ledger: Ledger) -> Awaitable[bytes]:
        headers, body = request(revision, method, **params)
        message = json.loads(body)
        del message["id"]
        return ledger.send("/mcp", headers, json.dumps(message).encode())

    return go


def raw(body: bytes, **headers: str) -> Way:
    def go(ledger: Ledger) -> Awaitable[bytes]:
        sent = dict(request(OLD, "tools/call", name="find")[0])
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return ledger.send("/mcp", list(sent.items()), body)

    return go


def a_call(outcome: str, code: str | None = None) -> list[Told]:
    return [("tool-call", outcome, code)]


def a_read(outcome: str, code: str | None = None) -> list[Told]:
    return [("resource-read", outcome, code)]


def a_prompt(outcome: str, code: str | None = None) -> list[Told]:
    return [("prompt-get", outcome, code)]


def a_word(outcome: str, code: str | None = None) -> list[Told]:
    return [("completion", outcome, code)]


def a_task(outcome: str, code: str | None = None) -> list[Told]:
    return [("task", outcome, code)]


def refused(reason: str, status: int) -> list[Told]:
    return [("auth-refused", reason, str(status))]


NONE: Final[list[Told]] = []
GREET: Final[dict[str, Any]] = {
    "ref": {"type": "ref/prompt", "name": "greet"},
    "argument": {"name": "name", "value": ""},
}
ROW: Final[dict[str, Any]] = {
    "ref": {"type": "ref/resource", "uri": "r:row/{id}"},
    "argument": {"name": "id", "value": "x"},
}
SHAPE: Final = "X_MCP_PROTOCOL"

WAYS: Final[dict[str, tuple[Way, list[Told]]]] = {
    # tools/call
    "call: fine": (call("find", name=SENTINEL), a_call("ok")),
    "call: fine, older": (old("tools/call", name="find", arguments={"name": SENTINEL}), a_call("ok")),
    "call: absent": (call("absent", name=SENTINEL), a_call("hidden", "X_MCP_TOOL_UNKNOWN")),
    "call: hidden": (call("secret", name=SENTINEL), a_call("hidden", "X_MCP_TOOL_UNKNOWN")),
    "call: no scope": (call("scoped"), a_call("scope-denied", "X_MCP_SCOPE_DENIED")),
    "call: wrong arguments": (call("weigh", weight=SENTINEL), a_call("invalid-args", "X_INPUT_INVALID")),
    "call: policy": (call("forbidden", name=SENTINEL), a_call("policy-denied", "X_FORBIDDEN")),
    "call: policy errs": (call("weigh", weight=1), a_call("policy-error", "X_FORBIDDEN")),
    "call: raises": (call("breaks", name=SENTINEL), a_call("failed", "X_INTERNAL")),
    "call: wrong output": (call("wrong"), a_call("failed", "X_OUTPUT_INVALID")),
    "call: an application's refusal": (call("busy"), a_call("failed", "X_BUSY")),
    "call: a capability lacks": (call("needs"), a_call("invalid-args", "X_MCP_CAPABILITY_MISSING")),
    "call: another round": (
        mcp("tools/call", name="asks", capabilities={"elicitation": {}}),
        a_call("input-required"),
    ),
    "call: nobody to ask": (call("asks"), a_call("invalid-args", "X_MCP_CAPABILITY_MISSING")),
    "call: no name": (mcp("tools/call", arguments={"name": SENTINEL}), a_call("invalid-args", SHAPE)),
    "call: a name that is none": (mcp("tools/call", name=[SENTINEL]), a_call("invalid-args", SHAPE)),
    "call: arguments that are none": (
        mcp("tools/call", name="find", arguments=SENTINEL),
        a_call("invalid-args", SHAPE),
    ),
    "call: a state that nobody gave": (
        mcp("tools/call", name="find", requestState=SENTINEL),
        a_call("invalid-args", SHAPE),
    ),
    "call: a meta that is none": (
        old("tools/call", name="find", _meta=SENTINEL),
        a_call("invalid-args", SHAPE),
    ),
    "call: without an id": (
        bare("tools/call", name="find", arguments={"name": SENTINEL}),
        a_call("invalid-args", SHAPE),
    ),
    "call: without an id, older": (bare("tools/call", OLD, name="secret"), a_call("invalid-args", SHAPE)),
    "call: without an id and a name": (bare("tools/call", OLD), a_call("invalid-args", SHAPE)),
    # the constant surface
    "meta: the catalog": (call("list_resources", "meta"), a_call("ok")),
    "meta: a description": (
        call("describe_resource", "meta", resources=["all"]),
        a_call("ok"),
    ),
    "meta: fine": (
        call("manage_resource", "meta", resource="all", action="find", params={"name": SENTINEL}),
        a_call("ok"),
    ),
    "meta: wrong arguments": (
        call("manage_resource", "meta", resource="all", action="weigh", params={}),
        a_call("invalid-args", "X_INPUT_INVALID"),
    ),
    "meta: absent": (
        call("manage_resource", "meta", resource="all", action="absent", params={}),
        a_call("hidden", "X_MCP_TOOL_UNKNOWN"),
    ),
    "meta: no shape": (call("manage_resource", "meta"), a_call("invalid-args", "X_INPUT_INVALID")),
    "meta: a grouped tool by its name": (call("find", "meta"), a_call("hidden", "X_MCP_TOOL_UNKNOWN")),
    # resources
    "read: fine": (mcp("resources/read", uri="r:fine"), a_read("ok")),
    "read: a template": (mcp("resources/read", uri="r:row/7"), a_read("ok")),
    "read: absent": (mcp("resources/read", uri="r:absent"), a_read("hidden", "X_MCP_RESOURCE_UNKNOWN")),
    "read: hidden": (mcp("resources/read", uri="r:secret"), a_read("hidden", "X_MCP_RESOURCE_UNKNOWN")),
    "read: policy": (mcp("resources/read", uri="r:forbidden"), a_read("policy-denied", "X_FORBIDDEN")),
    "read: raises": (mcp("resources/read", uri="r:breaks"), a_read("failed", "X_INTERNAL")),
    "read: no URI": (mcp("resources/read"), a_read("invalid-args", SHAPE)),
    "read: a state that nobody gave": (
        mcp("resources/read", uri="r:fine", requestState=SENTINEL),
        a_read("invalid-args", SHAPE),
    ),
    "read: without an id": (bare("resources/read", OLD, uri="r:fine"), a_read("invalid-args", SHAPE)),
    # prompts and completions
    "prompt: fine": (mcp("prompts/get", name="greet", arguments={"name": SENTINEL}), a_prompt("ok")),
    "prompt: absent": (mcp("prompts/get", name="absent"), a_prompt("hidden", "X_MCP_PROMPT_UNKNOWN")),
    "prompt: wrong arguments": (
        mcp("prompts/get", name="greet", arguments={SENTINEL: "x"}),
        a_prompt("invalid-args", "X_INPUT_INVALID"),
    ),
    "prompt: policy": (mcp("prompts/get", name="forbidden"), a_prompt("policy-denied", "X_FORBIDDEN")),
    "prompt: raises": (mcp("prompts/get", name="breaks"), a_prompt("failed", "X_INTERNAL")),
    "prompt: no name": (mcp("prompts/get", name=7), a_prompt("invalid-args", SHAPE)),
    "prompt: without an id": (bare("prompts/get", OLD, name="greet"), a_prompt("invalid-args", SHAPE)),
    "completion: of a prompt": (mcp("completion/complete", **GREET), a_word("ok")),
    "completion: of a template": (mcp("completion/complete", **ROW), a_word("ok")),
    "completion: of nothing": (
        mcp("completion/complete", **{**GREET, "ref": {"type": "ref/prompt", "name": "absent"}}),
        a_word("hidden", "X_MCP_PROMPT_UNKNOWN"),
    ),
    "completion: no shape": (mcp("completion/complete", ref=7), a_word("invalid-args", SHAPE)),
    "completion: without an id": (bare("completion/complete", OLD, **GREET), a_word("invalid-args", SHAPE)),
    # tasks
    "task: no such id": (
        mcp("tasks/get", taskId="x" * 30, capabilities=TASKS),
        a_task("hidden", "X_MCP_TASK_UNKNOWN"),
    ),
    "task: no such id, given up": (
        mcp("tasks/cancel", taskId="x" * 30, capabilities=TASKS),
        a_task("hidden", "X_MCP_TASK_UNKNOWN"),
    ),
    "task: no capability": (
        mcp("tasks/get", taskId="x" * 30),
        a_task("invalid-args", "X_MCP_CAPABILITY_MISSING"),
    ),
    "task: no id": (mcp("tasks/get", capabilities=TASKS), a_task("invalid-args", SHAPE)),
    "task: answers that are none": (
        mcp("tasks/update", taskId="x" * 30, inputResponses=7, capabilities=TASKS),
        a_task("invalid-args", SHAPE),
    ),
    # who is nobody
    "MCP: no token": (raw(b"{}", authorization=""), refused("no-token", 401)),
    "MCP: unknown token": (mcp("tools/list", SENTINEL), refused("unknown-token", 401)),
    "MCP: a person": (mcp("tools/list", "person"), refused("not-an-agent", 403)),
    "MCP: the resolver fails": (mcp("tools/list", "down"), refused("resolver-failed", 503)),
    "HTTP: no token": (http("make", b"{}", None), refused("no-token", 401)),
    "HTTP: unknown token": (http("absent", b"{}", SENTINEL), refused("unknown-token", 401)),
    "HTTP: the resolver fails": (http("make", b"{}", "down"), refused("resolver-failed", 503)),
    # over HTTP
    "HTTP: fine": (http("make", b'{"id": "s3ntinel"}'), a_call("ok")),
    "HTTP: fine, a session": (http("make", b'{"id": "1"}', None, cookie="session=x"), a_call("ok")),
    "HTTP: fine, a query": (http("find", b"", "t", "GET", f"name={SENTINEL}"), a_call("ok")),
    "HTTP: a query with another key": (
        http("find", b"", "t", "GET", f"{SENTINEL}=1"),
        a_call("invalid-args", "X_INPUT_INVALID"),
    ),
    "HTTP: absent": (http("absent"), a_call("hidden", "X_MCP_TOOL_UNKNOWN")),
    "HTTP: hidden": (http("secret"), a_call("hidden", "X_MCP_TOOL_UNKNOWN")),
    "HTTP: hidden, another method": (
        http("secret", b"{}", "t", "PUT"),
        a_call("hidden", "X_MCP_TOOL_UNKNOWN"),
    ),
    "HTTP: no scope": (http("scoped"), a_call("scope-denied", "X_MCP_SCOPE_DENIED")),
    "HTTP: wrong arguments": (http("make", b'{"id": 7}'), a_call("invalid-args", "X_INPUT_INVALID")),
    "HTTP: policy": (http("forbidden"), a_call("policy-denied", "X_FORBIDDEN")),
    "HTTP: policy errs": (http("weigh", b'{"weight": 1}'), a_call("policy-error", "X_FORBIDDEN")),
    "HTTP: raises": (http("breaks"), a_call("failed", "X_INTERNAL")),
    "HTTP: wrong output": (http("wrong"), a_call("failed", "X_OUTPUT_INVALID")),
    "HTTP: no JSON": (http("make", SENTINEL.encode()), a_call("invalid-args", "X_JSON_INVALID")),
    "HTTP: no object": (http("make", b"[]"), a_call("invalid-args", "X_JSON_INVALID")),
    "HTTP: no JSON, hidden": (http("secret", b"{"), a_call("invalid-args", "X_JSON_INVALID")),
    "HTTP: another media type": (
        http("make", content_type="text/plain"),
        a_call("invalid-args", "X_MEDIA_TYPE_UNSUPPORTED"),
    ),
    "HTTP: a query before a body": (
        http("make", b"{}", "t", "POST", f"id={SENTINEL}"),
        a_call("invalid-args", "X_INPUT_INVALID"),
    ),
    "HTTP: too large": (
        http("make", b'{"id":"' + b"x" * 2_000_000 + b'"}'),
        a_call("invalid-args", "X_MCP_BODY_TOO_LARGE"),
    ),
    "HTTP: another method": (
        http("make", b"{}", "t", "DELETE"),
        a_call("invalid-args", "X_METHOD_NOT_ALLOWED"),
    ),
    "HTTP: a key that is none": (
        http("busy", idempotency_key=SENTINEL),
        a_call("invalid-args", "X_INPUT_INVALID"),
    ),
    # in process
    "in process: fine": (inside("find", name=SENTINEL), a_call("ok")),
    "in process: a person": (inside("find", "person"), a_call("ok")),
    "in process: absent": (inside("absent", name=SENTINEL), a_call("hidden", "X_MCP_TOOL_UNKNOWN")),
    "in process: hidden": (inside("secret"), a_call("hidden", "X_MCP_TOOL_UNKNOWN")),
    "in process: no scope": (inside("scoped"), a_call("scope-denied", "X_MCP_SCOPE_DENIED")),
    "in process: wrong arguments": (inside("weigh"), a_call("invalid-args", "X_INPUT_INVALID")),
    "in process: policy": (inside("forbidden"), a_call("policy-denied", "X_FORBIDDEN")),
    "in process: policy errs": (inside("weigh", weight=1), a_call("policy-error", "X_FORBIDDEN")),
    "in process: raises": (inside("breaks"), a_call("failed", "X_INTERNAL")),
    # what calls nothing and reads nothing
    "list: tools": (mcp("tools/list"), NONE),
    "list: resources": (mcp("resources/list"), NONE),
    "list: templates": (mcp("resources/templates/list"), NONE),
    "list: prompts": (mcp("prompts/list"), NONE),
    "list: a cursor that nobody gave": (mcp("tools/list", cursor=SENTINEL), NONE),
    "discovery": (mcp("server/discover"), NONE),
    "handshake": (old("initialize"), NONE),
    "ping": (old("ping"), NONE),
    "a level of logging": (old("logging/setLevel", level="info"), NONE),
    "a subscription of the older kind": (old("resources/subscribe", uri="r:fine"), NONE),
    "no such method": (mcp(SENTINEL), NONE),
    "a notification": (bare("notifications/initialized", OLD), NONE),
    "a list without an id": (bare("tools/list", OLD), NONE),
    "no JSON": (raw(SENTINEL.encode()), NONE),
    "no message": (raw(b'{"jsonrpc":"1.0","id":1,"method":"tools/call"}'), NONE),
    "a batch": (raw(b"[]"), NONE),
    "another media type": (raw(b"{}", content_type="text/plain"), NONE),
    "a foreign host": (raw(b"{}", host="example.com"), refused("foreign-host", 403)),
    "a page of another origin": (raw(b"{}", origin="https://evil.example"), refused("foreign-origin", 403)),
    "HTTP: a foreign host": (http("make", b"{}", "t", host="example.com"), refused("foreign-host", 403)),
    "HTTP: a page of another origin": (
        http("make", b"{}", "t", origin="https://evil.example"),
        refused("foreign-origin", 403),
    ),
    "HTTP: what a path can": (http("make", b"{}", "t", "OPTIONS"), NONE),
    "HTTP: the document": (http("openapi.json", b"", "t", "GET"), NONE),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_has_its_one_line(way: str, ledger: Ledger) -> None:
    go, expected = WAYS[way]
    assert tried(ledger, go) == expected


def test_an_answer_of_a_client_to_no_question_is_no_event(ledger: Ledger) -> None:
    async def go(ledger: Ledger) -> None:
        headers, body = response(OLD, 7, {"held": SENTINEL})
        await ledger.send("/mcp", headers, body)

    assert tried(ledger, go) == NONE


def test_a_call_without_an_id_runs_nothing_and_names_what_it_named(ledger: Ledger) -> None:
    """Hidden and absent alike, over every revision; the answer says nothing of either."""
    bodies: list[object] = []

    async def go(ledger: Ledger) -> None:
        for revision in REVISIONS:
            for name in ("find", "secret", "absent"):
                way = bare("tools/call", revision, name=name, arguments={"name": SENTINEL})
                bodies.append(await way(ledger))

    assert tried(ledger, go) == 9 * a_call("invalid-args", SHAPE)
    assert set(bodies) == {b""}
    assert ledger.ran == []
    assert [each.tool for each in ledger.events if isinstance(each, ToolCall)] == 3 * [
        "find",
        "secret",
        "absent",
    ]


# What is refused for its rate is the event of what it was

LIMITED: Final[dict[str, tuple[Way, Told]]] = {
    "call": (call("make", id=SENTINEL), ("tool-call", "rate-limited", "X_MCP_RATE_LIMITED")),
    "hidden": (call("secret", id=SENTINEL), ("tool-call", "rate-limited", "X_MCP_RATE_LIMITED")),
    "no shape": (mcp("tools/call", name=7), ("rate-limited", "rate-limited", "X_MCP_RATE_LIMITED")),
    "no id": (bare("tools/call", OLD, name="make"), ("tool-call", "rate-limited", "X_MCP_RATE_LIMITED")),
    "managed": (
        call("manage_resource", "meta", resource="all", action="weigh", params={"weight": 1}),
        ("tool-call", "rate-limited", "X_MCP_RATE_LIMITED"),
    ),
    "read": (mcp("resources/read", uri="r:fine"), ("resource-read", "rate-limited", "X_MCP_RATE_LIMITED")),
    "prompt": (mcp("prompts/get", name="greet"), ("prompt-get", "rate-limited", "X_MCP_RATE_LIMITED")),
    "completion": (
        mcp("completion/complete", **GREET),
        ("rate-limited", "rate-limited", "X_MCP_RATE_LIMITED"),
    ),
    "list": (mcp("tools/list"), ("rate-limited", "rate-limited", "X_MCP_RATE_LIMITED")),
    "notification": (
        bare("notifications/initialized", OLD),
        ("rate-limited", "rate-limited", "X_MCP_RATE_LIMITED"),
    ),
    "HTTP": (http("make", b'{"id": "1"}'), ("tool-call", "rate-limited", "X_MCP_RATE_LIMITED")),
    "HTTP, hidden": (http("secret"), ("tool-call", "rate-limited", "X_MCP_RATE_LIMITED")),
    "HTTP, no JSON": (http("make", b"{"), ("tool-call", "rate-limited", "X_MCP_RATE_LIMITED")),
}


@pytest.mark.parametrize("way", LIMITED)
def test_every_way_that_is_over_its_rate_has_its_one_line(way: str, tmp_path: Path) -> None:
    go, expected = LIMITED[way]
    limits = replace(SPENT, read=SPENT.unauthenticated, write=SPENT.unauthenticated)
    with heard(Ledger(tmp_path, limits)) as ledger:

        async def twice(ledger: Ledger) -> None:
            await go(ledger)
            ledger.events.clear()
            ledger.lines.clear()
            await go(ledger)

        assert tried(ledger, twice) == [expected]


@pytest.mark.parametrize("way", ["MCP: no token", "MCP: unknown token", "HTTP: unknown token"])
def test_an_address_that_failed_too_often_has_its_one_line(way: str, tmp_path: Path) -> None:
    go, first = WAYS[way]
    with heard(Ledger(tmp_path, SPENT)) as ledger:

        async def twice(ledger: Ledger) -> None:
            await go(ledger)
            await go(ledger)

        assert tried(ledger, twice) == [*first, *refused("address-limited", 429)]


# Calls of several events


def test_a_call_that_goes_on_is_told_when_it_begins_and_when_it_ends(ledger: Ledger) -> None:
    async def go(ledger: Ledger) -> None:
        begun = await ledger.mcp("tools/call", name="goes_on", capabilities=TASKS)
        ident = begun["result"]["taskId"]
        while len(ledger.events) < 2:  # noqa: ASYNC110  (what is waited for tells nobody)
            await asyncio.sleep(0.005)
        await ledger.mcp("tasks/get", taskId=ident, capabilities=TASKS)  # a look that is granted is none
        await ledger.mcp("tasks/cancel", taskId=ident, capabilities=TASKS)
        assert ident not in "".join(ledger.lines)

    assert tried(ledger, go) == [*a_call("begun"), *a_call("ok"), *a_task("ok")]
    begun, ended = (each for each in ledger.events if isinstance(each, ToolCall))
    assert begun.task is not None
    assert begun.task == ended.task


def test_each_round_of_a_call_is_told(ledger: Ledger) -> None:
    async def go(ledger: Ledger) -> None:
        able: dict[str, Any] = {"elicitation": {}}
        asked = (await ledger.mcp("tools/call", name="asks", capabilities=able))["result"]
        answers = {key: {"action": "accept", "content": {"name": SENTINEL}} for key in asked["inputRequests"]}
        await ledger.mcp(
            "tools/call",
            name="asks",
            capabilities=able,
            inputResponses=answers,
            requestState=asked["requestState"],
        )

    assert tried(ledger, go) == [*a_call("input-required"), *a_call("ok")]


def test_a_retry_under_a_key_is_told_as_one(ledger: Ledger) -> None:
    async def go(ledger: Ledger) -> None:
        for body in (b'{"id": "1"}', b'{"id": "1"}', b'{"id": "2"}'):
            await ledger.http("make", body, idempotency_key=SENTINEL)

    assert tried(ledger, go) == [*a_call("ok"), *a_call("ok"), *a_call("failed", "X_IDEMPOTENCY_CONFLICT")]
    assert [each.replayed for each in ledger.events if isinstance(each, ToolCall)] == [None, True, None]
    assert ledger.ran == ["make"]


# A view of the application's own


@pytest.mark.parametrize(
    ("name", "who", "expected"),
    [
        ("find", "t", "ok"),
        ("secret", "t", "hidden"),
        ("scoped", "t", "scope-denied"),
        ("weigh", "t", "invalid-args"),
        ("forbidden", "t", "policy-denied"),
    ],
)
def test_what_a_guard_decides_has_its_one_line(name: str, who: str, expected: str, ledger: Ledger) -> None:
    @guard(ledger.app, name, principal=lambda: CALLERS[who], arguments=dict, clock=lambda: NOON)
    def view() -> str:
        return SENTINEL

    if expected == "ok":
        assert view() == SENTINEL
    else:
        with pytest.raises(Refused):
            view()
    assert [each[1] for each in checked(ledger)] == [expected]
