"""Whose trace a span is in, what nests in it, and that every one of them ends."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import pytest
from opentelemetry import baggage, trace
from opentelemetry.context import get_current
from opentelemetry.propagate import get_global_textmap
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased

from nonsuch import Agent, Open, OpenSync, asgi, wsgi

from ..mcp.live import LEGACY, MODERN, Live, play, request
from . import environs
from .observatory import EDITOR, SENTINEL, Observatory, asked, body_of, http_headers
from .test_stdio import connected

GOOD: Final = {"title": "x"}
TRACE, SPAN, OTHER = "1" * 32, "2" * 16, "3" * 16
META: Final = f"00-{TRACE}-{SPAN}-01"
HEADER: Final = ("traceparent", f"00-{TRACE}-{OTHER}-01")
Ids = tuple[str, str]


def ids(context: Any) -> Ids | None:
    """Of a span context: its trace and its span."""
    return None if context is None else (f"{context.trace_id:032x}", f"{context.span_id:016x}")


def place(span: ReadableSpan) -> tuple[Ids | None, list[Ids | None]]:
    """A span's parent and links."""
    return ids(span.parent), [ids(each.context) for each in span.links]


def tools_call(**given: Any) -> tuple[list[tuple[str, str]], bytes]:
    return request(MODERN, "tools/call", "editor", name="publish", arguments=GOOD, **given)


# Of a call: what its `_meta` says, its headers, the parent of its span, and its links.
TOLD: Final[dict[str, tuple[dict[str, Any], list[tuple[str, str]], Ids | None, list[Ids]]]] = {
    "nothing": ({}, [], None, []),
    "headers": ({}, [HEADER], (TRACE, OTHER), []),
    "message": ({"traceparent": META}, [], (TRACE, SPAN), []),
    "both": ({"traceparent": META}, [HEADER], (TRACE, SPAN), [(TRACE, OTHER)]),
    "the same twice": ({"traceparent": META}, [("traceparent", META)], (TRACE, SPAN), []),
    "no text": ({"traceparent": [META]}, [], None, []),
    "no trace": ({"traceparent": f"00-{'0' * 32}-{SPAN}-01"}, [], None, []),
    "no span": ({"traceparent": f"00-{TRACE}-{'0' * 16}-01"}, [], None, []),
    "no version": ({"traceparent": f"ff-{TRACE}-{SPAN}-01"}, [], None, []),
    "capitals": ({"traceparent": META.replace("1", "A")}, [], None, []),
    "more behind it": ({"traceparent": META + "\n"}, [], None, []),
    "two headers": ({}, [HEADER, HEADER], None, []),
}


@pytest.mark.parametrize("case", TOLD)
def test_a_message_is_in_the_trace_that_its_client_says(case: str) -> None:
    meta, headers, parent, links = TOLD[case]
    held = Observatory()
    play(Live(held.app).ask(tools_call(meta=meta, headers=headers)))
    [span] = held.spans()
    assert place(span) == (parent, links)


@pytest.mark.parametrize("case", TOLD)
def test_callers_that_are_not_believed_are_linked(case: str) -> None:
    meta, headers, parent, links = TOLD[case]
    held = Observatory(options={"caller_traces": "link"})
    play(Live(held.app).ask(tools_call(meta=meta, headers=headers)))
    [span] = held.spans()
    told = {*links, *([] if parent is None else [parent])}
    assert span.parent is None
    assert {ids(each.context) for each in span.links} == told


def test_a_flag_of_a_callers_samples_where_it_is_believed_only() -> None:
    unsampled = META[:-1] + "0"
    for believed, count in (("continue", 0), ("link", 1)):
        held = Observatory(options={"caller_traces": believed})
        held.tracers.sampler = ParentBased(ALWAYS_ON)
        play(Live(held.app).ask(tools_call(meta={"traceparent": unsampled})))
        assert len(held.spans()) == count
        assert sum(held.durations().values()) == 1


STATES: Final[dict[str, dict[str, str]]] = {
    "a=b": {"a": "b"},
    "a=b, c@d=e": {"a": "b", "c@d": "e"},
    "": {},
    "A=b": {},
    "a=b\nERROR forged": {},
    "a=b,ERROR forged": {},
    ",".join(f"k{each}=v" for each in range(33)): {},
    f"a={'x' * 511}": {},
    "a=b;c": {"a": "b;c"},
}


@pytest.mark.parametrize("state", STATES)
def test_the_state_of_a_trace_is_taken_as_it_should_be_written_or_not_at_all(
    state: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What the API logs of a malformed one would be a caller's own text, line ends and all."""
    held = Observatory()
    with caplog.at_level(logging.DEBUG):
        play(Live(held.app).ask(tools_call(meta={"traceparent": META, "tracestate": state})))
    [span] = held.spans()
    assert span.context is not None
    assert dict(span.context.trace_state) == STATES[state]
    assert [each.name for each in caplog.records if each.name.startswith("opentelemetry")] == []


def test_no_baggage_of_a_callers_arrives_at_a_handler() -> None:
    """The global propagator takes it, and a handler's clients send it on to every service that they ask."""
    told = {"traceparent": META, "baggage": "who=me"}
    assert dict(baggage.get_all(get_global_textmap().extract(told))) == {"who": "me"}
    held = Observatory()
    sent = request(
        MODERN, "tools/call", "editor", name="nests", arguments=GOOD, meta=told, headers=[("baggage", "a=b")]
    )
    play(Live(held.app).ask(sent))
    assert held.carried == [{}]


# the host's own spans


def test_a_host_that_traces_itself_has_our_span_inside_and_its_metrics_alone() -> None:
    held = Observatory()
    host = trace.get_tracer("host", tracer_provider=held.tracers)

    async def scene() -> None:
        with host.start_as_current_span("GET /"):
            await asked(asgi(held.app), "/api/posts/publish", http_headers("editor"), body_of(GOOD))
            await asked(asgi(held.app), "/mcp", *tools_call(headers=[HEADER]))
            await asked(asgi(held.app), "/mcp", *tools_call(meta={"traceparent": META}, headers=[HEADER]))

    asyncio.run(scene())
    [outer] = held.spans("host")
    within = ids(outer.context)
    assert [(each.kind.name, place(each)) for each in held.spans()] == [
        ("INTERNAL", (within, [])),
        ("SERVER", (within, [])),
        ("SERVER", ((TRACE, SPAN), [within])),
    ]
    assert {name for name, _ in held.durations()} == {"mcp.server.operation.duration"}


# what nests


@pytest.mark.parametrize("door", ["mcp", "http", "inside", "pipes", "wsgi"])
@pytest.mark.parametrize("name", ["nests", "plainly"])
def test_what_a_handler_traces_is_inside_of_its_call(name: str, door: str) -> None:
    held = Observatory()
    sent = request(MODERN, "tools/call", "editor", name=name, arguments=GOOD)
    if door == "wsgi":
        application = wsgi(held.app)
        environs.asked(application, "POST", "/mcp", *sent)
        application.close()
    else:
        asyncio.run(_through(door, held, name, sent))
    calls = [each for each in held.spans() if name in each.name]
    assert held.seen == [(name, each.context.span_id) for each in calls if each.context]
    [work] = held.spans("app")
    assert ids(work.parent) == ids(calls[0].context)


async def _through(
    door: str, held: Observatory, name: str, sent: tuple[list[tuple[str, str]], bytes]
) -> None:
    match door:
        case "mcp":
            await asked(asgi(held.app), "/mcp", *sent)
        case "http":
            await asked(asgi(held.app), f"/api/posts/{name}", http_headers("editor"), body_of(GOOD))
        case "pipes":
            async with connected(held.app, EDITOR) as peer:
                await peer.initialize(LEGACY[1])
                params = {"name": name, "arguments": GOOD}
                await peer.ask({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params})
        case _:
            async with Open(held.app) as running:
                await running.invoke(EDITOR, name, {"title": "x"})


def test_calls_that_run_beside_each_other_each_see_their_own_span() -> None:
    held = Observatory()

    def waiting(ident: int) -> tuple[list[tuple[str, str]], bytes]:
        given = {"title": str(ident)}
        return request(MODERN, "tools/call", "editor", ident=ident, name="waits", arguments=given)

    async def scene() -> None:
        live = Live(held.app)
        streams = [live.open(waiting(each)) for each in range(20)]
        await asyncio.sleep(0.01)
        held.release.set()
        for stream in streams:
            await stream.rest()

    play(scene())
    spans = {(each.attributes or {})["jsonrpc.request.id"]: each for each in held.spans()}
    assert dict(held.seen) == {
        str(each): span.context.span_id for each, span in spans.items() if span.context is not None
    }
    assert len(set(dict(held.seen).values())) == 20


def test_a_request_leaves_its_task_as_it_found_it() -> None:
    """Who awaits an application in a task of his own has no span of ours current afterwards."""
    held = Observatory()

    async def scene() -> None:
        before = get_current()
        application = asgi(held.app)
        for name in ("publish", "vault", "fails"):
            sent = request(MODERN, "tools/call", "editor", name=name, arguments=GOOD, headers=[HEADER])
            await asked(application, "/mcp", *sent)
            await asked(application, f"/api/posts/{name}", http_headers("editor", HEADER), body_of(GOOD))
            assert get_current() is before
        async with Open(held.app) as running:
            await running.invoke(EDITOR, "publish", {"title": "x"})
            assert get_current() is before

    asyncio.run(scene())


def test_a_call_inside_of_a_handlers_span_is_its_child() -> None:
    held = Observatory()
    host = trace.get_tracer("host", tracer_provider=held.tracers)
    with OpenSync(held.app) as running, host.start_as_current_span("agent"):
        running.invoke(EDITOR, "publish", {"title": "x"})
    [outer], [inner] = held.spans("host"), held.spans()
    assert (ids(inner.parent), inner.kind.name) == (ids(outer.context), "INTERNAL")


def test_what_a_resolver_traces_is_in_the_trace_of_its_request() -> None:
    held = Observatory()
    tracer = trace.get_tracer("app", tracer_provider=held.tracers)

    async def resolve(token: str) -> Agent:
        with tracer.start_as_current_span("introspection"):
            return EDITOR

    held.settings = {"resolve_token": resolve}
    app = held.boot()
    asyncio.run(asked(asgi(app), "/mcp", *tools_call(headers=[HEADER])))
    asyncio.run(asked(asgi(app), "/api/posts/publish", http_headers("x", HEADER), body_of(GOOD)))
    first, second = held.spans("app")
    assert ids(first.parent) == (TRACE, OTHER)
    assert ids(second.parent) == ids(held.spans()[1].context)


# that every span ends


def broken(span: ReadableSpan) -> tuple[str, object, str]:
    return span.name, (span.attributes or {}).get("error.type"), span.status.status_code.name


def test_a_stream_is_one_span_to_its_end() -> None:
    held = Observatory()
    play(
        Live(held.app).ask(
            request(
                MODERN,
                "tools/call",
                "editor",
                name="counts",
                arguments={"n": 3},
                meta={"progressToken": SENTINEL},
            )
        )
    )
    assert [broken(each) for each in held.spans()] == [("tools/call counts", None, "UNSET")]


def test_a_client_that_leaves_ends_the_span_of_its_call() -> None:
    held = Observatory()

    async def scene() -> None:
        stream = Live(held.app).open(request(MODERN, "tools/call", "editor", name="waits", arguments=GOOD))
        await held.started.wait()
        await stream.leave()

    play(scene())
    assert [broken(each) for each in held.spans()] == [("tools/call waits", "cancelled", "ERROR")]
    [(_, labels)] = held.durations()
    assert ("error.type", "cancelled") in labels
    assert not any(key == "rpc.response.status_code" for key, _ in labels)


def test_a_client_that_leaves_ends_the_span_of_its_subscription() -> None:
    held = Observatory()

    async def scene() -> None:
        wanted = {"toolsListChanged": True}
        stream = Live(held.app).open(request(MODERN, "subscriptions/listen", "editor", notifications=wanted))
        await stream.message()
        assert held.spans() == []
        await stream.leave()

    play(scene())
    assert [broken(each) for each in held.spans()] == [("subscriptions/listen", "cancelled", "ERROR")]


def test_a_client_that_leaves_within_its_body_ends_a_span_without_a_status() -> None:
    held = Observatory()
    told: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return told.pop(0)

    status, _ = asyncio.run(asked(asgi(held.app), "/mcp", tools_call()[0], receive=receive))
    assert status == 0
    assert [broken(each) for each in held.spans()] == [("POST /mcp", "body_unread", "ERROR")]
    assert "http.response.status_code" not in (held.spans()[0].attributes or {})


def test_a_client_that_leaves_an_action_ends_its_span() -> None:
    held = Observatory()

    async def scene() -> None:
        work = asyncio.create_task(
            asked(asgi(held.app), "/api/posts/waits", http_headers("editor"), body_of(GOOD))
        )
        await held.started.wait()
        work.cancel()
        await asyncio.wait([work])

    asyncio.run(scene())
    assert [broken(each) for each in held.spans()] == [("POST /api/posts/waits", "cancelled", "ERROR")]


def test_a_request_that_is_cancelled_by_name_ends_its_span() -> None:
    held = Observatory()

    async def scene() -> None:
        async with connected(held.app, EDITOR) as peer:
            await peer.initialize(LEGACY[1])
            params: dict[str, Any] = {"name": "waits", "arguments": GOOD}
            peer.say({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params})
            await held.started.wait()
            cancelled = {"method": "notifications/cancelled", "params": {"requestId": 9}}
            peer.say({"jsonrpc": "2.0", **cancelled})
            await peer.ask({"jsonrpc": "2.0", "id": 10, "method": "ping"})

    asyncio.run(scene())
    assert ("tools/call waits", "cancelled", "ERROR") in [broken(each) for each in held.spans()]


def test_a_bug_of_ours_ends_a_span_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Observatory()

    def bug(*_: object) -> None:
        raise LookupError(SENTINEL)

    monkeypatch.setattr("nonsuch.adapters.mcp.server.listed", bug)
    with pytest.raises(LookupError):
        play(Live(held.app).ask(request(MODERN, "tools/list", "editor")))
    assert [broken(each) for each in held.spans()] == [("tools/list", "LookupError", "ERROR")]
    assert SENTINEL not in held.exported()


@pytest.mark.parametrize(("title", "error"), [("x", None), ("break", "failed")])
def test_a_task_has_a_span_of_its_own_under_the_call_that_began_it(title: str, error: str | None) -> None:
    held = Observatory()
    able: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}

    async def scene() -> None:
        async with Open(held.app):
            live = Live(held.app)
            sent = request(
                MODERN, "tools/call", "editor", capabilities=able, name="keep", arguments={"title": title}
            )
            [told] = await live.ask(sent)
            assert told["result"]["resultType"] == "task"
            assert [each.name for each in held.spans()] == ["tools/call keep"]
            held.release.set()
            for _ in range(100):
                if len(held.spans()) > 1:
                    break
                await asyncio.sleep(0.01)
            for each in [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]:
                each.cancel()

    asyncio.run(scene())
    call, task = held.spans()
    assert (call.attributes or {})["nonsuch.outcome"] == "begun"
    assert broken(task) == ("execute_tool keep", error, "UNSET" if error is None else "ERROR")
    assert ids(task.parent) == ids(call.context)
    assert (task.end_time or 0) > (call.end_time or 0) >= (task.start_time or 0)
