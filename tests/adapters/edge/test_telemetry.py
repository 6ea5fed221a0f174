"""Each outcome over each door is one span and one duration, exactly these, and nothing of a caller in it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from nonsuch import Agent, Limits, Open, OpenSync, Principal, Rate, asgi, wsgi
from nonsuch.kernel.strict_json import Json

from ..mcp.live import LEGACY, MODERN, Live, play, request
from . import environs
from .observatory import (
    CHIEF,
    EDITOR,
    PERSON,
    SENTINEL,
    Observatory,
    Recorded,
    asked,
    body_of,
    http_headers,
)
from .test_stdio import connected

ERAS: Final = (LEGACY[1], MODERN)
GOOD: Final = {"title": "x"}
MCP: Final = "mcp.server.operation.duration"
HTTP: Final = "http.server.request.duration"
TOOL: Final = "gen_ai.execute_tool.duration"
# What a span has and a metric has not: the caller's id, names of the catalog, why.
DETAILS: Final = frozenset(
    {
        "jsonrpc.request.id",
        "gen_ai.tool.name",
        "gen_ai.prompt.name",
        "mcp.resource.uri",
        "url.path",
        "nonsuch.code",
        "nonsuch.reason",
    }
)
Expected = Mapping[str, object]


def message(
    method: str, revision: str, told: Expected, *, transport: str = "tcp", ident: str = "1"
) -> Expected:
    """The attributes of a message's span."""
    called = {"gen_ai.operation.name": "execute_tool"} if method == "tools/call" else {}
    return {
        "mcp.method.name": method,
        "mcp.protocol.version": revision,
        "network.transport": transport,
        "jsonrpc.request.id": ident,
        **called,
        **told,
    }


def refused(code: int, outcome: str | None = None, reason: str | None = None) -> dict[str, object]:
    """What an error of the protocol adds."""
    told: dict[str, object] = {"rpc.response.status_code": str(code), "error.type": str(code)}
    told |= {} if outcome is None else {"nonsuch.outcome": outcome}
    return told if reason is None else {**told, "nonsuch.code": reason}


def answered(outcome: str, reason: str | None = None) -> dict[str, object]:
    """What a result with `isError` adds."""
    told: dict[str, object] = {"nonsuch.outcome": outcome, "error.type": "tool_error"}
    return told if reason is None else {**told, "nonsuch.code": reason}


def called(name: str) -> dict[str, object]:
    return {"gen_ai.tool.name": name}


def labels(span: Recorded, *, actions: bool = False) -> frozenset[tuple[str, object]]:
    """What of a span is a label too; the path of an action is a name of the catalog."""
    dropped = DETAILS | ({"http.route"} if actions else set[str]())
    return frozenset((key, value) for key, value in span.attributes.items() if key not in dropped)


OK: Final = {"nonsuch.outcome": "ok"}
UNKNOWN: Final = {LEGACY[1]: -32601, MODERN: -32602}
LOST: Final = {LEGACY[1]: -32002, MODERN: -32602}

# Of a call: the tool, its arguments, what its span says, and whether its operator is to look at it.
CALLS: Final[Mapping[str, tuple[str, dict[str, Any], Callable[[str], Expected], bool]]] = {
    "ok": ("publish", GOOD, lambda _: {**OK, **called("publish")}, False),
    "hidden": ("vault", GOOD, lambda r: refused(UNKNOWN[r], "hidden", "X_MCP_TOOL_UNKNOWN"), False),
    "absent": ("nothing", GOOD, lambda r: refused(UNKNOWN[r], "hidden", "X_MCP_TOOL_UNKNOWN"), False),
    "scope": (
        "sealed",
        GOOD,
        lambda _: {**refused(-32600, "scope-denied", "X_MCP_SCOPE_DENIED"), **called("sealed")},
        False,
    ),
    "policy": (
        "denied",
        GOOD,
        lambda _: {**answered("policy-denied", "X_FORBIDDEN"), **called("denied")},
        False,
    ),
    "policy error": (
        "total",
        {"n": 1},
        lambda _: {**answered("policy-error", "X_FORBIDDEN"), **called("total")},
        True,
    ),
    "arguments": (
        "publish",
        {"title": 1},
        lambda _: {**answered("invalid-args", "X_INPUT_INVALID"), **called("publish")},
        False,
    ),
    "bug": ("fails", GOOD, lambda _: {**answered("failed", "X_INTERNAL"), **called("fails")}, True),
    "own error": ("refuses", GOOD, lambda _: {**answered("failed"), **called("refuses")}, True),
}


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("case", CALLS)
def test_a_call_is_one_span_and_one_duration(case: str, revision: str) -> None:
    name, arguments, told, failed = CALLS[case]
    held = Observatory()
    play(Live(held.app).ask(request(revision, "tools/call", "editor", name=name, arguments=arguments)))
    attributes = message("tools/call", revision, told(revision))
    target = attributes.get("gen_ai.tool.name")
    shown = "tools/call" if target is None else f"tools/call {target}"
    span = Recorded(shown, "SERVER", attributes, "ERROR" if failed else "UNSET")
    assert held.recorded() == [span]
    assert held.durations() == Counter({(MCP, labels(span)): 1})


GREET: Final = {"nonsuch.outcome": "ok", "gen_ai.prompt.name": "greet"}
OTHERS: Final[Mapping[str, tuple[str, dict[str, Any], Callable[[str], Expected]]]] = {
    "list": ("tools/list", {}, lambda _: {}),
    "templates": ("resources/templates/list", {}, lambda _: {}),
    "note": (
        "resources/read",
        {"uri": "obs://note"},
        lambda _: {**OK, "mcp.resource.uri": "obs://note"},
    ),
    "template": (
        "resources/read",
        {"uri": f"obs://org/{SENTINEL}"},
        lambda _: {**OK, "mcp.resource.uri": "obs://org/{org}"},
    ),
    "hidden resource": (
        "resources/read",
        {"uri": "obs://secret"},
        lambda r: refused(LOST[r], "hidden", "X_MCP_RESOURCE_UNKNOWN"),
    ),
    "absent resource": (
        "resources/read",
        {"uri": "obs://nothing"},
        lambda r: refused(LOST[r], "hidden", "X_MCP_RESOURCE_UNKNOWN"),
    ),
    "refusing resource": (
        "resources/read",
        {"uri": "obs://org/nobody"},
        lambda _: {**refused(-32602, "failed", "X_NOT_FOUND"), "mcp.resource.uri": "obs://org/{org}"},
    ),
    "prompt": ("prompts/get", {"name": "greet", "arguments": GOOD}, lambda _: GREET),
    "prompt without arguments": (
        "prompts/get",
        {"name": "greet"},
        lambda _: {**refused(-32602, "invalid-args", "X_INPUT_INVALID"), "gen_ai.prompt.name": "greet"},
    ),
    "hidden prompt": (
        "prompts/get",
        {"name": "whisper", "arguments": GOOD},
        lambda _: refused(-32602, "hidden", "X_MCP_PROMPT_UNKNOWN"),
    ),
    "completion": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "title", "value": "mo"}},
        lambda _: GREET,
    ),
    "template completion": (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "obs://org/{org}"},
            "argument": {"name": "org", "value": SENTINEL},
        },
        lambda _: OK,
    ),
    "malformed": (
        "tools/call",
        {"name": SENTINEL, "arguments": 7},
        lambda _: refused(-32602, "invalid-args", "X_MCP_PROTOCOL"),
    ),
    "malformed, hidden": (
        "tools/call",
        {"name": "vault", "arguments": 7},
        lambda _: refused(-32602, "invalid-args", "X_MCP_PROTOCOL"),
    ),
}


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("case", OTHERS)
def test_any_other_request_is_one_span_and_one_duration(case: str, revision: str) -> None:
    method, params, told = OTHERS[case]
    held = Observatory()
    play(Live(held.app).ask(request(revision, method, "editor", **params)))
    attributes = message(method, revision, told(revision))
    target = attributes.get("gen_ai.prompt.name")
    span = Recorded(method if target is None else f"{method} {target}", "SERVER", attributes)
    assert held.recorded() == [span]
    assert held.durations() == Counter({(MCP, labels(span)): 1})


@pytest.mark.parametrize("revision", ERAS)
def test_a_method_that_nobody_knows_has_no_name(revision: str) -> None:
    held = Observatory()
    play(Live(held.app).ask(request(revision, f"tools/{SENTINEL}", "editor", ident="i" * 500)))
    attributes = message("_OTHER", revision, refused(-32601), ident="i" * 128)
    assert held.recorded() == [Recorded("_OTHER", "SERVER", attributes)]


def test_a_notification_has_no_id() -> None:
    held = Observatory()
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    headers = http_headers("editor", ("mcp-protocol-version", LEGACY[1]))
    status, _ = asyncio.run(asked(asgi(held.app), "/mcp", headers, body_of(told)))
    assert status == 202
    attributes = dict(message("notifications/initialized", LEGACY[1], {}))
    del attributes["jsonrpc.request.id"]
    assert held.recorded() == [Recorded("notifications/initialized", "SERVER", attributes)]


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
@pytest.mark.parametrize(("name", "outcome"), [("publish", "ok"), ("fails", "failed"), ("vault", "hidden")])
def test_the_form_of_an_answer_changes_no_span(name: str, outcome: str, accept: str) -> None:
    held = Observatory()
    sent = request(MODERN, "tools/call", "editor", accept=accept, name=name, arguments=GOOD)
    play(Live(held.app).ask(sent))
    [span] = held.recorded()
    assert span.attributes["nonsuch.outcome"] == outcome
    assert span.attributes.get("error.type") == {"failed": "tool_error", "hidden": "-32602"}.get(outcome)


# the constant surface

MANAGED: Final[Mapping[str, tuple[str, dict[str, Any], Callable[[str], Expected]]]] = {
    "list": ("list_resources", {}, lambda _: {**OK, **called("list_resources")}),
    "describe": (
        "describe_resource",
        {"resources": ["desk"]},
        lambda _: {**OK, **called("describe_resource")},
    ),
    "describe nothing": (
        "describe_resource",
        {"resources": [SENTINEL]},
        lambda _: {"nonsuch.outcome": "hidden", "nonsuch.code": "X_MCP_TOOL_UNKNOWN"},
    ),
    "run": (
        "manage_resource",
        {"resource": "desk", "action": "publish", "params": GOOD},
        lambda _: {**OK, **called("publish")},
    ),
    "run hidden": (
        "manage_resource",
        {"resource": "desk", "action": "vault", "params": GOOD},
        lambda r: refused(UNKNOWN[r], "hidden", "X_MCP_TOOL_UNKNOWN"),
    ),
    "run absent": (
        "manage_resource",
        {"resource": SENTINEL, "action": SENTINEL, "params": GOOD},
        lambda r: refused(UNKNOWN[r], "hidden", "X_MCP_TOOL_UNKNOWN"),
    ),
}


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("case", MANAGED)
def test_a_call_by_the_constant_surface_is_told_as_what_it_comes_down_to(case: str, revision: str) -> None:
    name, arguments, told = MANAGED[case]
    held = Observatory(settings=Observatory().grouped())
    play(Live(held.app).ask(request(revision, "tools/call", "editor", name=name, arguments=arguments)))
    [span] = held.recorded()
    assert span.attributes == message("tools/call", revision, told(revision))


# the allowance


@pytest.mark.parametrize("revision", ERAS)
def test_a_spent_allowance_names_what_its_caller_sees(revision: str) -> None:
    held = Observatory(settings={"rate_limits": Limits(Rate(1), Rate(1), Rate(9))})
    live = Live(held.app)

    async def scene() -> None:
        for name in ("publish", "publish", "vault", "nothing"):
            await live.ask(request(revision, "tools/call", "editor", name=name, arguments=GOOD))

    play(scene())
    told = refused(-32600, "rate-limited", "X_MCP_RATE_LIMITED")
    hidden = Recorded("tools/call", "SERVER", message("tools/call", revision, told))
    seen = message("tools/call", revision, {**told, **called("publish")})
    assert held.recorded()[1:] == [Recorded("tools/call publish", "SERVER", seen), hidden, hidden]


# the doors before a message is heard


def refused_at(status: int, told: Expected, *, method: str = "POST", name: str | None = None) -> Recorded:
    attributes = {
        "http.request.method": method,
        "url.scheme": "http",
        "http.route": "/mcp",
        "url.path": "/mcp",
        "http.response.status_code": status,
        **told,
    }
    return Recorded(f"{name or method} /mcp", "SERVER", attributes)


CALL: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "publish"}}
AUTH: Final = {"nonsuch.outcome": "auth-refused"}
DOORS: Final[Mapping[str, tuple[str | None, str, str, bytes, Recorded]]] = {
    "no token": (
        None,
        "POST",
        "application/json",
        body_of(CALL),
        refused_at(401, {**AUTH, "nonsuch.reason": "no-token"}),
    ),
    "unknown token": (
        SENTINEL,
        "POST",
        "application/json",
        body_of(CALL),
        refused_at(401, {**AUTH, "nonsuch.reason": "unknown-token"}),
    ),
    "a person": (
        "person",
        "POST",
        "application/json",
        body_of(CALL),
        refused_at(403, {**AUTH, "nonsuch.reason": "not-an-agent"}),
    ),
    "media type": ("editor", "POST", "text/plain", b"{}", refused_at(415, {})),
    "no JSON": ("editor", "POST", "application/json", SENTINEL.encode(), refused_at(400, {})),
    "too long": ("editor", "POST", "application/json", b" " * 2_000_000, refused_at(413, {})),
    "a method": ("editor", "GET", "application/json", b"", refused_at(405, {}, method="GET")),
    "no method": ("editor", SENTINEL, "x", b"", refused_at(405, {}, method="_OTHER", name="HTTP")),
}


@pytest.mark.parametrize("case", DOORS)
def test_what_never_became_a_message_is_an_http_request(case: str) -> None:
    token, method, media, body, span = DOORS[case]
    held = Observatory()
    headers = [each for each in http_headers(token) if each[0] != "content-type"]
    sent = [*headers, ("content-type", media)]
    asyncio.run(asked(asgi(held.app), "/mcp", sent, body, method=method))
    assert held.recorded() == [span]
    assert held.durations() == Counter({(HTTP, labels(span)): 1})


# actions


def action(status: int, told: Expected, route: str | None = None, *, method: str = "POST") -> Recorded:
    place = {} if route is None else {"http.route": route, "url.path": route}
    attributes = {
        "http.request.method": method,
        "url.scheme": "http",
        "http.response.status_code": status,
        **place,
        **told,
    }
    return Recorded(
        method if route is None else f"{method} {route}",
        "SERVER",
        attributes,
        "UNSET" if status < 500 else "ERROR",
    )


GONE: Final = {"nonsuch.outcome": "hidden", "nonsuch.code": "X_MCP_TOOL_UNKNOWN"}
DENIED: Final = {"nonsuch.outcome": "policy-denied", "nonsuch.code": "X_FORBIDDEN"}
ACTIONS: Final[Mapping[str, tuple[str | None, str, Mapping[str, object], Recorded]]] = {
    "ok": ("editor", "posts/publish", GOOD, action(200, OK, "/api/posts/publish")),
    "hidden": ("editor", "posts/vault", GOOD, action(404, GONE)),
    "absent": ("editor", f"posts/{SENTINEL}", GOOD, action(404, GONE)),
    "scope": (
        "editor",
        "posts/sealed",
        GOOD,
        action(
            403,
            {"nonsuch.outcome": "scope-denied", "nonsuch.code": "X_MCP_SCOPE_DENIED"},
            "/api/posts/sealed",
        ),
    ),
    "policy": ("editor", "posts/denied", GOOD, action(403, DENIED, "/api/posts/denied")),
    "arguments": (
        "editor",
        "posts/publish",
        {},
        action(
            422,
            {"nonsuch.outcome": "invalid-args", "nonsuch.code": "X_INPUT_INVALID"},
            "/api/posts/publish",
        ),
    ),
    "bug": (
        "editor",
        "posts/fails",
        GOOD,
        action(
            500,
            {"nonsuch.outcome": "failed", "nonsuch.code": "X_INTERNAL", "error.type": "500"},
            "/api/posts/fails",
        ),
    ),
    "nobody": (None, "posts/publish", GOOD, action(401, {**AUTH, "nonsuch.reason": "no-token"})),
}


@pytest.mark.parametrize("case", ACTIONS)
def test_an_action_over_http_is_one_span_and_one_duration(case: str) -> None:
    token, path, arguments, span = ACTIONS[case]
    held = Observatory()
    status, _ = asyncio.run(asked(asgi(held.app), f"/api/{path}", http_headers(token), body_of(arguments)))
    assert status == span.attributes["http.response.status_code"]
    assert held.recorded() == [span]
    assert held.durations() == Counter({(HTTP, labels(span, actions=True)): 1})


def test_names_are_in_metrics_where_that_is_asked_for() -> None:
    held = Observatory(options={"names_in_metrics": True})

    async def scene() -> None:
        live = Live(held.app)
        for name in ("publish", "vault"):
            await live.ask(request(MODERN, "tools/call", "editor", name=name, arguments=GOOD))
        await asked(asgi(held.app), "/api/posts/publish", http_headers("editor"), body_of(GOOD))

    play(scene())
    named = [dict(told) for _, told in held.durations()]
    assert [told.get("gen_ai.tool.name", told.get("http.route")) for told in named] == [
        "publish",
        None,
        "/api/posts/publish",
    ]


# in process

INSIDE: Final[Mapping[str, tuple[Principal, str, dict[str, Json], Expected, bool]]] = {
    "ok": (EDITOR, "publish", {"title": "x"}, OK, False),
    "person": (PERSON, "publish", {"title": "x"}, OK, False),
    "hidden": (EDITOR, "vault", {"title": "x"}, {**GONE, "error.type": "hidden"}, False),
    "absent": (EDITOR, SENTINEL, {"title": "x"}, {**GONE, "error.type": "hidden"}, False),
    "visible": (CHIEF, "vault", {"title": "x"}, OK, False),
    "policy": (EDITOR, "denied", {"title": "x"}, {**DENIED, "error.type": "policy-denied"}, False),
    "bug": (
        EDITOR,
        "fails",
        {"title": "x"},
        {"nonsuch.outcome": "failed", "nonsuch.code": "X_INTERNAL", "error.type": "failed"},
        True,
    ),
}


@pytest.mark.parametrize("case", INSIDE)
def test_a_call_in_process_is_one_span_and_one_duration(case: str) -> None:
    who, name, arguments, told, failed = INSIDE[case]
    held = Observatory()
    with OpenSync(held.app) as running:
        running.invoke(who, name, arguments)
    shown = {} if told["nonsuch.outcome"] == "hidden" else called(name)
    attributes = {"gen_ai.operation.name": "execute_tool", **told, **shown}
    title = f"execute_tool {name}" if shown else "execute_tool"
    span = Recorded(title, "INTERNAL", attributes, "ERROR" if failed else "UNSET")
    assert held.recorded() == [span]
    assert held.durations() == Counter({(TOOL, labels(span)): 1})


# other doors


def test_wsgi_records_what_asgi_records() -> None:
    over: list[tuple[list[Recorded], Counter[Any]]] = []
    sent = [
        request(each, "tools/call", "editor", name=name, arguments=GOOD)
        for each in ERAS
        for name in ("publish", "vault", "fails")
    ]
    requests = [("/mcp", *each) for each in sent]
    requests += [("/mcp", *request(MODERN, "tools/list", SENTINEL))]
    requests += [
        (f"/api/posts/{name}", http_headers("editor"), body_of(GOOD))
        for name in ("publish", "vault", "fails")
    ]
    for serve in (_over_asgi, _over_wsgi):
        held = Observatory()
        serve(held, requests)
        over.append((held.recorded(), held.durations()))
    assert over[0] == over[1]
    assert len(over[0][0]) == len(requests)


def _over_asgi(held: Observatory, requests: list[tuple[str, list[tuple[str, str]], bytes]]) -> None:
    async def scene() -> None:
        for path, headers, body in requests:
            await asked(asgi(held.app), path, headers, body)

    asyncio.run(scene())


def _over_wsgi(held: Observatory, requests: list[tuple[str, list[tuple[str, str]], bytes]]) -> None:
    application = wsgi(held.app)
    try:
        for path, headers, body in requests:
            environs.asked(application, "POST", path, headers, body)
    finally:
        application.close()


def test_over_pipes_a_message_is_told_without_http() -> None:
    held = Observatory()

    async def scene() -> None:
        async with connected(held.app, EDITOR) as peer:
            await peer.initialize(LEGACY[1])
            for ident, name in enumerate(("publish", "vault", "fails")):
                params = {"name": name, "arguments": GOOD}
                await peer.ask({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})

    asyncio.run(scene())
    ours = [each for each in held.recorded() if each.attributes["mcp.method.name"] == "tools/call"]
    told = [
        {**OK, **called("publish")},
        refused(-32601, "hidden", "X_MCP_TOOL_UNKNOWN"),
        {**answered("failed", "X_INTERNAL"), **called("fails")},
    ]
    expected = [
        message("tools/call", LEGACY[1], each, transport="pipe", ident=str(ident))
        for ident, each in enumerate(told)
    ]
    assert [each.attributes for each in ours] == expected


def test_every_span_of_a_refused_call_says_what_its_answer_says() -> None:
    """`tool_error` exactly where an answer has `isError`, a code exactly where it has one."""
    for revision in ERAS:
        for name, arguments, _, _ in CALLS.values():
            held = Observatory()
            sent = request(revision, "tools/call", "editor", name=name, arguments=arguments)
            [answer] = play(Live(held.app).ask(sent))
            [span] = held.recorded()
            result, error = answer.get("result", {}), answer.get("error")
            told = None if error is None else str(error["code"])
            assert span.attributes.get("rpc.response.status_code") == told
            assert (span.attributes.get("error.type") == "tool_error") is result.get("isError", False)


def test_a_caller_that_may_see_it_is_told_by_name() -> None:
    held = Observatory()

    async def scene() -> None:
        async with Open(held.app) as running:
            await running.invoke(Agent("c", roles={"chief"}, scopes={"write"}), "vault", {"title": "x"})

    asyncio.run(scene())
    assert [each.name for each in held.spans()] == ["execute_tool vault"]
    assert json.loads(held.spans()[0].to_json())["attributes"]["gen_ai.tool.name"] == "vault"
