"""One app that is recorded: a tool for every outcome, and all that an exporter is given. Knows no test."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from opentelemetry import baggage, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, Metric, MetricsData
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel

from nonsuch import (
    ActionError,
    Agent,
    App,
    Context,
    Human,
    Principal,
    Registry,
    can,
    define_app_mcp,
    expose,
    grant,
    group,
    otel,
    prompt,
    resource,
)
from nonsuch.kernel.audit import Event

SENTINEL: Final = "s3ntinel"
EDITOR: Final = Agent("editor", roles={"editor"}, scopes={"write"})
CHIEF: Final = Agent("chief", roles={"editor", "chief"}, scopes={"write", "seal"})
PERSON: Final = Human("person", roles={"editor"})
KNOWN: Final[Mapping[str, Principal]] = {"editor": EDITOR, "chief": CHIEF, "person": PERSON}
POLICY: Final = """
@id("sums") permit (principal, action in Action::"sum:up", resource)
when { context.args.n + 9223372036854775807 > 0 };
"""


class Post(BaseModel):
    title: str


class Number(BaseModel):
    n: int


class Org(BaseModel):
    org: str


class Done(BaseModel):
    title: str
    row: str = SENTINEL


@dataclass(frozen=True, slots=True)
class Recorded:
    """A span as an exporter gets it, but for its ids and times."""

    name: str
    kind: str
    attributes: Mapping[str, object]
    status: str = "UNSET"

    @staticmethod
    def of(span: ReadableSpan) -> Recorded:
        """Hold to what every span keeps to: no event, and no word about a status."""
        assert (span.events, span.status.description) == ((), None)
        return Recorded(span.name, span.kind.name, dict(span.attributes or {}), span.status.status_code.name)


@dataclass
class Observatory:
    """The app, what was recorded of it, and what its handlers wait for.

    ``undeclared`` are tools, resources and prompts that this world does not have.
    """

    undeclared: frozenset[str] = frozenset()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    events: list[Event] = field(default_factory=list[Event])
    started: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)
    seen: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    carried: list[Mapping[str, object]] = field(default_factory=list[Mapping[str, object]])
    tracers: TracerProvider = field(default_factory=lambda: TracerProvider(shutdown_on_exit=False))
    meters: MeterProvider = field(init=False)
    app: App = field(init=False)

    def __post_init__(self) -> None:
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.app = self.boot()

    # what was recorded

    def spans(self, scope: str = "nonsuch") -> list[ReadableSpan]:
        """Every span that ended, of our own scope or of another."""
        ended = self.exporter.get_finished_spans()
        return [each for each in ended if (each.instrumentation_scope or each).name == scope]

    def recorded(self) -> list[Recorded]:
        """Every span of ours, without what differs from run to run."""
        return [Recorded.of(each) for each in self.spans()]

    def durations(self) -> Counter[tuple[str, frozenset[tuple[str, object]]]]:
        """How often each metric was recorded, by its labels."""
        counted = Counter[tuple[str, frozenset[tuple[str, object]]]]()
        data = self.reader.get_metrics_data()
        for metric in _metrics(data):
            assert metric.unit == "s"
            for point in metric.data.data_points:
                assert isinstance(point, HistogramDataPoint)
                assert point.sum >= 0
                counted[metric.name, frozenset((point.attributes or {}).items())] += point.count
        return counted

    def exported(self) -> str:
        """Everything that an exporter is given, as one text."""
        told = [each.to_json(indent=None) for each in self.exporter.get_finished_spans()]
        data = self.reader.get_metrics_data()
        return "\n".join([*told, "" if data is None else data.to_json()])

    # what is declared

    def boot(self) -> App:
        """Declare everything."""
        held: dict[str, Any] = {
            "name": "observatory",
            "include": "exposed",
            "scopes": self._scopes(),
            "grants": [grant("editor", "post:write"), grant("chief", "post:write")],
            "roles": ["editor", "chief"],
            "resolve_token": KNOWN.get,
            "on_audit": self.events.append,
            "rate_limits": None,
            "resources": [each for each in self._resources() if each.name not in self.undeclared],
            "prompts": [each for each in self._prompts() if each.name not in self.undeclared],
            "telemetry": otel(tracer_provider=self.tracers, meter_provider=self.meters, **self.options),
        }
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "app.cedar").write_text(POLICY)
            return define_app_mcp(self._registry(), policies_dir=directory, **{**held, **self.settings})

    def grouped(self) -> dict[str, Any]:
        """Settings that serve the tools by the constant surface."""
        names = [each for each in ("publish", "vault", "denied", "sealed") if each not in self.undeclared]
        return {"surface": "meta", "groups": {"desk": group("What is on it", names)}}

    def _scopes(self) -> dict[str, list[str]]:
        write = [name for name in self._handlers() if name != "sealed"]
        return {"write": write, "seal": ["sealed"]}

    def _registry(self) -> Registry:
        registry = Registry()
        permissions = {"denied": "post:deny", "total": "sum:up"}
        faces: dict[str, dict[str, Any]] = {"vault": {"visible_to": ["chief"]}, "keep": {"task": "optional"}}
        for name, handler in self._handlers().items():
            face = expose("Do", **faces.get(name, {}))
            policy = can(permissions.get(name, "post:write"))
            registry.action(policy=policy, mcp=face, path=f"posts/{name}")(handler)
        return registry

    def _handlers(self) -> dict[str, Callable[..., Any]]:
        handlers = (
            publish,
            vault,
            sealed,
            denied,
            total,
            fails,
            refuses,
            self.nests,
            self.plainly,
            self.waits,
            self.counts,
            self.keep,
        )
        return {each.__name__: each for each in handlers if each.__name__ not in self.undeclared}

    def _resources(self) -> Iterable[Any]:
        yield resource("obs://note", "note", "N", note, mime_type="text/plain")
        yield resource("obs://org/{org}", "org", "O", org, mime_type="text/plain")
        yield resource("obs://secret", "secret", "S", note, mime_type="text/plain", visible_to=["chief"])

    def _prompts(self) -> Iterable[Any]:
        yield prompt(greet, description="G", complete={"title": ["morning", "mourning"]})
        yield prompt(greet, description="W", name="whisper", visible_to=["chief"])

    # handlers that look at their span, or take their time

    async def nests(self, input: Post) -> Done:
        """Open a span of the application's own."""
        self._look("nests")
        with trace.get_tracer("app", tracer_provider=self.tracers).start_as_current_span("work"):
            await asyncio.sleep(0)
        return Done(title=input.title)

    def plainly(self, input: Post) -> Done:
        """The same, in a thread."""
        assert threading.current_thread() is not threading.main_thread()
        self._look("plainly")
        with trace.get_tracer("app", tracer_provider=self.tracers).start_as_current_span("work"):
            return Done(title=input.title)

    async def waits(self, input: Post) -> Done:
        """Wait for the test."""
        self.started.set()
        await self.release.wait()
        self._look(input.title)
        return Done(title=input.title)

    async def counts(self, input: Number, ctx: Context[None]) -> Done:
        """Say how far it is."""
        for at in range(input.n):
            await ctx.client.progress(at, input.n, SENTINEL)
        return Done(title="counted")

    async def keep(self, input: Post) -> Done:
        """Go on as a task."""
        self.started.set()
        await self.release.wait()
        if input.title == "break":
            raise ValueError(SENTINEL)
        return Done(title=input.title)

    def _look(self, what: str) -> None:
        self.seen.append((what, trace.get_current_span().get_span_context().span_id))
        self.carried.append(baggage.get_all())


async def publish(input: Post) -> Done:
    """Succeed."""
    return Done(title=input.title)


async def vault(input: Post) -> Done:
    """For chiefs."""
    return Done(title=input.title)


async def sealed(input: Post) -> Done:
    """Under another scope."""
    return Done(title=input.title)


async def denied(input: Post) -> Done:
    """Permitted to nobody."""
    return Done(title=input.title)


async def total(input: Number) -> Done:
    """Under a policy that errs."""
    return Done(title=str(input.n))


async def fails(input: Post) -> Done:
    """Have a bug."""
    raise ValueError(SENTINEL)


async def refuses(input: Post) -> Done:
    """Refuse in the application's own words."""
    raise ActionError(f"X_{SENTINEL}", SENTINEL, SENTINEL)


def note() -> str:
    """A resource."""
    return SENTINEL


def org(input: Org) -> str:
    """A resource of a template."""
    if input.org == "nobody":
        raise ActionError("X_NOT_FOUND", SENTINEL, SENTINEL)
    return input.org


def greet(input: Post) -> str:
    """A prompt."""
    return f"Good {input.title}"


def _metrics(data: MetricsData | None) -> Iterable[Metric]:
    if data is not None:
        scopes = (scope for resource in data.resource_metrics for scope in resource.scope_metrics)
        yield from (metric for scope in scopes for metric in scope.metrics)


# a client over ASGI, for requests of any kind


async def asked(
    application: Any,
    path: str,
    headers: Iterable[tuple[str, str]] = (),
    body: bytes = b"",
    *,
    method: str = "POST",
    receive: Callable[[], Awaitable[dict[str, Any]]] | None = None,
) -> tuple[int, bytes]:
    """Send one request and return the status and the body of its answer; 0, where there is none."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def received() -> dict[str, Any]:
        return waiting.pop() if waiting else await asyncio.Future()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 50_000),
    }
    await application(scope, receive or received, send)
    status = sent[0]["status"] if sent else 0
    return status, b"".join(each.get("body", b"") for each in sent)


def http_headers(token: str | None, *more: tuple[str, str]) -> list[tuple[str, str]]:
    """The headers of a request for an action."""
    bearer = [] if token is None else [("authorization", f"Bearer {token}")]
    return [("host", "127.0.0.1"), ("content-type", "application/json"), *bearer, *more]


def body_of(arguments: Mapping[str, object]) -> bytes:
    """A JSON body."""
    return json.dumps(dict(arguments)).encode()
