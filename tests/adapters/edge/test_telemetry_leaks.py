"""What telemetry never does: tell a payload, count what callers make up, tell hidden from absent, break."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Sampler
from opentelemetry.trace import NoOpTracerProvider

from nonsuch import Agent, Limits, Open, Rate, asgi, otel
from nonsuch.adapters.edge import extras
from nonsuch.adapters.edge.extras import ExtraMissing
from nonsuch.adapters.edge.run import Running
from nonsuch.adapters.edge.telemetry_terms import HTTP_METHODS, METHODS
from nonsuch.kernel.audit import ToolCall

from ..mcp.live import LEGACY, MODERN, request
from .observatory import EDITOR, SENTINEL, Observatory, asked, body_of, http_headers

ROOT: Final = Path(__file__).resolve().parents[3]
ERAS: Final = (LEGACY[1], MODERN)
PARENT: Final = ("traceparent", f"00-{'1' * 32}-{'2' * 16}-01")
Sent = tuple[str, list[tuple[str, str]], bytes]


def over(held: Observatory, requests: Iterable[Sent]) -> list[tuple[int, bytes]]:
    """Send requests one after the other, and return the answers."""

    async def scene() -> list[tuple[int, bytes]]:
        application = asgi(held.app)
        return [await asked(application, *each) for each in requests]

    return asyncio.run(scene())


# no payload


def spoiled() -> Iterable[Sent]:
    """A sentinel wherever a caller, a row or an exception can bring one, but for the id of a message."""
    more = [
        ("user-agent", SENTINEL),
        ("cookie", f"session={SENTINEL}"),
        ("baggage", f"who={SENTINEL}"),
        ("tracestate", f"{SENTINEL}, {SENTINEL}"),
        ("forwarded", f"for={SENTINEL}"),
        ("idempotency-key", SENTINEL),
    ]
    bad: dict[str, Any] = {"title": SENTINEL, SENTINEL: SENTINEL}
    names = ("publish", "vault", "sealed", "denied", "total", "fails", "refuses", "nests", SENTINEL)
    for revision in ERAS:
        for name in names:
            for arguments in (bad, {"title": SENTINEL}):
                meta = {SENTINEL: SENTINEL, "traceparent": SENTINEL, "tracestate": SENTINEL}
                sent = request(
                    revision,
                    "tools/call",
                    "editor",
                    meta=meta,
                    headers=[*more, PARENT],
                    name=name,
                    arguments=arguments,
                )
                yield "/mcp", *sent
        for uri in (f"obs://org/{SENTINEL}", "obs://note", "obs://org/nobody", SENTINEL):
            yield "/mcp", *request(revision, "resources/read", "editor", headers=more, uri=uri)
        for name in ("greet", "whisper", SENTINEL):
            given: dict[str, Any] = {"name": name, "arguments": bad}
            yield "/mcp", *request(revision, "prompts/get", "editor", headers=more, **given)
        yield "/mcp", *request(revision, SENTINEL, "editor", headers=more, **bad)
        yield "/mcp", *request(revision, "tools/list", SENTINEL, headers=more, cursor=SENTINEL)
    for name in (*names, f"x?{SENTINEL}"):
        for token in ("editor", SENTINEL):
            yield f"/api/posts/{name}", http_headers(token, *more), body_of({"title": SENTINEL})
    yield "/mcp", http_headers("editor", *more), SENTINEL.encode()
    yield f"/{SENTINEL}", http_headers("editor", *more), b"{}"


@pytest.mark.parametrize("options", [{}, {"names_in_metrics": True}, {"caller_traces": "link"}])
def test_no_payload_is_exported_or_logged(
    options: Mapping[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    held = Observatory(options=options)
    with caplog.at_level(logging.DEBUG):
        over(held, spoiled())
    assert len(held.spans()) >= 70
    assert SENTINEL not in held.exported()
    told = [
        each.getMessage() for each in caplog.records if each.name.startswith(("opentelemetry", "nonsuch.t"))
    ]
    assert told == []


def test_a_handler_that_raises_writes_no_exception_on_our_span() -> None:
    held = Observatory()
    over(held, [("/mcp", *request(MODERN, "tools/call", "editor", name="fails", arguments={"title": "x"}))])
    [span] = held.spans()
    assert (span.events, span.status.description) == ((), None)


# no label of a caller's

TEXT: Final = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
HEADER: Final = st.text(st.characters(codec="latin-1"), min_size=1, max_size=30)
PLAIN: Final = st.text("abcdefgh/-._", min_size=1, max_size=12)


@given(method=HEADER, name=TEXT, uri=TEXT, path=PLAIN, verb=PLAIN, token=PLAIN)
def test_whatever_a_caller_makes_up_becomes_no_label_and_no_name(
    method: str, name: str, uri: str, path: str, verb: str, token: str
) -> None:
    """Every text in a span or a metric, but for the id, is one of those that the conventions and we know."""
    held = MADE_UP
    held.exporter.clear()

    async def scene() -> None:
        application = asgi(held.app)
        for revision in ERAS:
            for sent in (
                request(revision, method, "editor", ident="id"),
                request(revision, "tools/call", "editor", ident="id", name=name, arguments={}),
                request(revision, "resources/read", "editor", ident="id", uri=uri),
                request(revision, "prompts/get", "editor", ident="id", name=name),
                request(revision, "tools/list", token, ident="id"),
            ):
                await asked(application, "/mcp", *sent)
        await asked(application, f"/api/{path}", http_headers("editor"), b"{}", method=verb)
        await asked(application, f"/{path}", http_headers(token), b"{}", method=verb)
        async with Open(held.app) as running:
            await running.invoke(EDITOR, name, {})

    asyncio.run(scene())
    values = {str(value) for each in held.spans() for value in (each.attributes or {}).values()}
    values |= {str(value) for _, labels in held.durations() for _, value in labels}
    words = {word for each in held.spans() for word in each.name.split(" ")}
    assert {
        each for each in values | words if each not in KNOWN_WORDS and not each.lstrip("-").isdecimal()
    } == set()


MADE_UP: Final = Observatory(options={"names_in_metrics": True})
KNOWN_WORDS: Final = frozenset(
    {
        *METHODS,
        *HTTP_METHODS,
        *ERAS,
        *("_OTHER", "HTTP", "http", "tcp", "pipe", "/mcp", "execute_tool", "id", "tool_error"),
        *("ok", "hidden", "invalid-args", "auth-refused", "unknown-token", "no-token", "scope-denied"),
        *("X_MCP_TOOL_UNKNOWN", "X_MCP_RESOURCE_UNKNOWN", "X_MCP_PROMPT_UNKNOWN", "X_MCP_PROTOCOL"),
        *("X_INPUT_INVALID", "X_METHOD_NOT_ALLOWED"),
    }
)


def test_any_number_of_names_is_no_more_series_than_one() -> None:
    def walked(count: int) -> int:
        held = Observatory(options={"names_in_metrics": True})
        over(held, walk(count))
        return len(held.durations())

    def walk(count: int) -> Iterable[Sent]:
        for each in range(count):
            yield "/mcp", *request(MODERN, f"m/{each}", "editor")
            yield "/mcp", *request(MODERN, "tools/call", "editor", name=f"n{each}", arguments={})
            yield "/mcp", *request(MODERN, "resources/read", "editor", uri=f"obs://org/{each}")
            yield f"/api/{each}", http_headers("editor"), b"{}"
            yield f"/api/{each}", http_headers(f"t{each}"), b"{}"

    assert walked(1) == walked(60) == 5


# two worlds

HIDDEN: Final = frozenset({"vault", "secret", "whisper"})


def shared_trace() -> Iterable[Sent]:
    """Everything that a caller who sees nothing hidden could try to find it by."""
    for revision in ERAS:
        for method in ("tools/list", "resources/list", "prompts/list", "initialize"):
            yield "/mcp", *request(revision, method, "editor")
        for name in ("vault", "absent", "publish", "Vault", "vault ", "posts/vault"):
            for arguments in ({"title": "x"}, {"title": 1}, {}, 7):
                yield "/mcp", *request(revision, "tools/call", "editor", name=name, arguments=arguments)
            params = {"resource": "desk", "action": name, "params": {"title": "x"}}
            yield "/mcp", *request(revision, "tools/call", "editor", name="manage_resource", arguments=params)
        for uri in ("obs://secret", "obs://absent", "obs://note"):
            yield "/mcp", *request(revision, "resources/read", "editor", uri=uri)
            ref = {"type": "ref/resource", "uri": uri}
            given = {"name": "x", "value": ""}
            yield "/mcp", *request(revision, "completion/complete", "editor", ref=ref, argument=given)
        for name in ("whisper", "absent", "greet"):
            yield "/mcp", *request(revision, "prompts/get", "editor", name=name, arguments={"title": "x"})
            yield "/mcp", *request(revision, "prompts/get", "editor", name=name, arguments=7)
            ref = {"type": "ref/prompt", "name": name}
            given = {"name": "title", "value": "m"}
            yield "/mcp", *request(revision, "completion/complete", "editor", ref=ref, argument=given)
    for name in ("vault", "absent", "publish"):
        for body in (b'{"title":"x"}', b"{}", b"[", b""):
            for headers in (http_headers("editor"), http_headers(None)):
                yield f"/api/posts/{name}", headers, body


SETTINGS: Final[Mapping[str, Callable[[Observatory], Mapping[str, Any]]]] = {
    "flat": lambda _: {},
    "constant": lambda held: held.grouped(),
    "limited": lambda _: {"rate_limits": Limits(Rate(20), Rate(20), Rate(3))},
}


@pytest.mark.parametrize("options", [{}, {"names_in_metrics": True}])
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_telemetry_of_what_is_hidden_is_that_of_a_world_without_it(
    settings: str, options: Mapping[str, Any]
) -> None:
    """So nobody who reads a dashboard learns of it either; the operator's audit tells, and nothing else."""
    worlds: list[Observatory] = []
    answers: list[list[tuple[int, bytes]]] = []
    for undeclared in (frozenset[str](), HIDDEN):
        plain = Observatory(undeclared)
        held = Observatory(undeclared, SETTINGS[settings](plain), options)
        answers.append(over(held, shared_trace()))
        worlds.append(held)
    one, other = worlds
    assert answers[0] == answers[1]
    assert one.recorded() == other.recorded()
    assert one.durations() == other.durations()
    assert len(one.recorded()) == len(list(shared_trace()))
    differing = [(a, b) for a, b in zip(one.events, other.events, strict=True) if a != b]
    for ours, theirs in differing:
        assert isinstance(ours, ToolCall)
        assert isinstance(theirs, ToolCall)
        assert (ours.declared, theirs) == (True, dataclasses.replace(ours, declared=False))
    assert differing


def test_in_process_the_hidden_is_the_absent() -> None:
    held = Observatory()

    async def scene() -> None:
        async with Open(held.app) as running:
            for name in ("vault", "absent"):
                await running.invoke(EDITOR, name, {"title": "x"})

    asyncio.run(scene())
    hidden, absent = held.recorded()
    assert hidden == absent


def test_recording_runs_the_same_code_for_the_hidden_and_the_absent() -> None:
    """Call for call, in Python and in C, to the end of the answer: nothing to be timed apart."""
    held = Observatory()
    traces = {name: asyncio.run(_traced(held, name)) for name in ("absent", "vault", "vaulx")}
    assert traces["vault"] == traces["vaulx"]
    assert any("telemetry_spans" in each for each in traces["vault"])


async def _traced(held: Observatory, name: str) -> list[str]:
    """What ran until the audit, which tells them apart for the operator once the answer has left."""
    application, ran = asgi(held.app), list[str]()
    sent = request(MODERN, "tools/call", "editor", name=name, arguments={"title": "x"})

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event in ("call", "c_call"):
            code = frame.f_code
            ran.append(
                f"{code.co_filename}:{code.co_qualname}" if event == "call" else f"{arg}".split(" at ")[0]
            )

    for _ in range(3):
        await asked(application, "/mcp", *sent)
    sys.setprofile(note)
    try:
        await asked(application, "/mcp", *sent)
    finally:
        sys.setprofile(None)
    return ran[: next(at for at, each in enumerate(ran) if each.endswith("Edge.flush"))]


def test_no_answer_says_that_it_is_recorded() -> None:
    """Not a header, not a byte: what a caller gets with telemetry is what it gets without."""
    plain = Observatory(settings={"telemetry": None})
    assert over(Observatory(), spoiled()) == over(plain, spoiled())
    assert plain.spans() == []


# off


def test_off_nothing_is_imported(tmp_path: Path) -> None:
    told = _python(
        tmp_path,
        "import asyncio, sys\n"
        "from nonsuch import *\n"
        "from nonsuch import tool\n"
        "def t() -> str: return 'x'\n"
        "app = define_app_mcp(Registry(), name='a', tools={'t': tool('T', t, policy='a:b')},\n"
        "                     resolve_token=lambda _: Agent('a'))\n"
        "async def main():\n"
        "    async with Open(app) as running: await running.invoke(Agent('a'), 't', {})\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n",
    )
    assert told == "[]"


def _python(where: Path, program: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=where,
        env={"PYTHONPATH": str(ROOT / ".editable")},
    )
    return ended.stdout.strip()


def test_without_the_extra_otel_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: str) -> None:
        return None

    monkeypatch.setattr(extras, "find_spec", nothing)
    with pytest.raises(ExtraMissing) as refusal:
        otel()
    assert str(refusal.value) == (
        'X_EXTRA_MISSING: `opentelemetry-api` is not installed\nfix: pip install "nonsuch[otel]"'
    )


NOBODY: Final[dict[str, Any]] = {
    "tracer_provider": NoOpTracerProvider(),
    "meter_provider": NoOpMeterProvider(),
}


def test_without_a_provider_a_request_is_the_request_of_an_app_without_telemetry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Call for call, in Python and in C."""
    counted: list[int] = []
    for settings in ({"telemetry": None}, {"telemetry": otel(**NOBODY)}):
        held = Observatory(settings=settings)
        counted.append(asyncio.run(_counted(held)))
        assert Running(held.app).recorder is None
    assert counted[0] == counted[1] > 0

    async def scene() -> None:
        async with Open(Observatory(settings={"telemetry": otel(**NOBODY)}).app):
            pass

    asyncio.run(scene())
    assert [each.getMessage() for each in caplog.records if each.name == "nonsuch.run"] == [
        "no OpenTelemetry provider is set: nothing of `observatory` is recorded"
    ]


async def _counted(held: Observatory) -> int:
    application, calls = asgi(held.app), 0
    sent = request(MODERN, "tools/call", "editor", name="publish", arguments={"title": "x"})

    def note(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    for _ in range(3):
        await asked(application, "/mcp", *sent)
    sys.setprofile(note)
    try:
        await asked(application, "/mcp", *sent)
    finally:
        sys.setprofile(None)
    return calls


def test_one_provider_is_enough() -> None:
    """Spans without metrics, metrics without spans, and durations of what a sampler drops."""
    for other, spans, durations in (
        ({"meter_provider": NoOpMeterProvider()}, 1, 0),
        ({"tracer_provider": NoOpTracerProvider()}, 0, 1),
        ({"tracer_provider": TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)}, 0, 1),
    ):
        plain = Observatory()
        held: dict[str, Any] = {"tracer_provider": plain.tracers, "meter_provider": plain.meters, **other}
        plain.app = dataclasses.replace(plain.app, telemetry=otel(**held))
        over(plain, [("/mcp", *request(MODERN, "tools/list", "editor"))])
        assert (len(plain.spans()), sum(plain.durations().values())) == (spans, durations)


# faults


class Faulty(SpanProcessor):
    """A processor with a bug at the beginning or at the end of a span."""

    def __init__(self, where: str) -> None:
        self._where = where

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        if self._where == "start":
            raise LookupError(SENTINEL)

    def on_end(self, span: ReadableSpan) -> None:
        if self._where == "end":
            raise LookupError(SENTINEL)


class Undecided(Sampler):
    """A sampler with a bug."""

    def should_sample(self, *_: Any, **__: Any) -> Any:
        raise LookupError(SENTINEL)

    def get_description(self) -> str:
        return ""


HISTOGRAM: Final = "opentelemetry.sdk.metrics._internal.instrument._Histogram"


class Unmetered:
    """A histogram with a bug."""

    def record(self, *_: Any) -> None:
        raise LookupError(SENTINEL)


@pytest.mark.parametrize("fault", ["start", "end", "sampler", "metric"])
def test_no_fault_of_a_provider_changes_an_answer(
    fault: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = over(Observatory(settings={"telemetry": None}), list(shared_trace())[:40])
    held = Observatory()
    held.tracers.add_span_processor(Faulty(fault))
    if fault == "sampler":
        held.tracers.sampler = Undecided()
    if fault == "metric":
        monkeypatch.setattr(
            "opentelemetry.sdk.metrics._internal.instrument._Histogram.record", Unmetered.record
        )
    assert over(held, list(shared_trace())[:40]) == good
    told = [each.getMessage() for each in caplog.records if each.name == "nonsuch.telemetry"]
    assert set(told) == {"telemetry raised LookupError"}
    if fault == "metric":
        assert len(held.spans()) == 40, "a span ends though its duration could not be recorded"


def test_a_resolver_that_names_nobody_names_no_tool() -> None:
    """The names are those of the caller's view; without a caller there is none."""
    chief = Agent("a", roles={"chief"}, scopes={"write"})
    held = Observatory(settings={"resolve_token": {"any": chief}.get})
    sent = request(MODERN, "tools/call", "any", name="vault", arguments={"title": "x"})
    over(held, [("/mcp", *sent), ("/mcp", [each for each in sent[0] if each[0] != "authorization"], sent[1])])
    assert [each.name for each in held.spans()] == ["tools/call vault", "POST /mcp"]
