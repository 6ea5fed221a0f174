"""Operations as spans and durations: sees the steps of one go by, and answers none but that it was told.

Knows the OpenTelemetry API and no SDK. No fault of a provider changes an answer, and nothing of a span
reaches a caller.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextvars import Token
from dataclasses import dataclass, field
from typing import Final, TypeVar

from opentelemetry import metrics
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.metrics import Histogram
from opentelemetry.trace import INVALID_SPAN, Link, Span, SpanKind, StatusCode, Tracer, get_tracer_provider
from opentelemetry.trace.propagation import set_span_in_context

from ...kernel.model import Agent, Human, Outcome, Principal
from ...kernel.steps import (
    Answer,
    Audit,
    Heard,
    Launch,
    Raised,
    ReadBody,
    ResolvePrincipal,
    ResolveToken,
    Returned,
    Step,
    Steps,
    Write,
)
from ..wire import Head, Reply
from .app import App
from .route import is_mcp, route
from .telemetry import Telemetry
from .telemetry_terms import (
    A_CALL,
    BUCKETS,
    Labels,
    Opening,
    Seen,
    details_of,
    of_message,
    of_request,
)
from .telemetry_traces import Traces, nested

T = TypeVar("T")
log: Final = logging.getLogger("nonsuch.telemetry")

SCOPE: Final = "nonsuch"
_TOLD: Final = Returned(None)
_NOTED: Final = (Audit, Launch)
_RESOLVES: Final = (ResolveToken, ResolvePrincipal)


def recorder(telemetry: Telemetry, app: App) -> Recorder | None:
    """Return a recorder, or nothing where no provider would keep what it records."""
    tracers = telemetry.tracer_provider or get_tracer_provider()
    meters = telemetry.meter_provider or metrics.get_meter_provider()
    if _of_the_api(tracers) and _of_the_api(meters):
        return None
    meter = meters.get_meter(SCOPE)
    durations = {
        name: meter.create_histogram(name, "s", explicit_bucket_boundaries_advisory=list(buckets))
        for name, buckets in BUCKETS.items()
    }
    return Recorder(
        app,
        tracers.get_tracer(SCOPE),
        durations,
        Traces(telemetry.caller_traces == "continue"),
        telemetry.names_in_metrics,
    )


def _of_the_api(provider: object) -> bool:
    """Whether nobody set a provider: the API's own ones keep nothing."""
    return type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


@dataclass(slots=True, eq=False)
class _Operation:
    """One operation under way; ``opening`` says what it is, as soon as that is known.

    ``unheard`` is what it is when it brought no message; nothing, where that is no operation.
    """

    context: Context
    unheard: Callable[[], Opening] | None
    links: list[Link]
    who: Principal | None = None
    piped: bool = False
    began: int = field(default_factory=time.time_ns)
    tick: int = field(default_factory=time.perf_counter_ns)
    seen: Seen = field(default_factory=Seen)
    opening: Opening | None = None
    span: Span = INVALID_SPAN
    before: Token[Context] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Recorder:
    """Records the operations of one running app. Safe to share between threads and event loops."""

    app: App
    tracer: Tracer
    durations: Mapping[str, Histogram]
    traces: Traces
    names: bool

    def http(self, head: Head) -> Steps[Reply]:
        """Return the steps of an HTTP request, watched: it is its MCP message's, if it brings one."""
        context, links = self.traces.arrived(head.headers)
        waits = is_mcp(self.app, head)

        def unheard() -> Opening:
            place = self.app.path if waits else None
            return of_request(head, self.app.http.prefix, place, nested=nested(context))

        operation = _Operation(context, unheard, links)
        return self._watched(route(self.app, head, observed=True), operation, waits=waits)

    def piped(self, steps: Steps[Reply], who: Principal) -> Steps[Reply]:
        """Return the steps of a message that came without HTTP, watched."""
        return self._watched(steps, _Operation(get_current(), None, [], who, piped=True), waits=True)

    def call(self, steps: Steps[Outcome], who: Principal) -> Steps[Outcome]:
        """Return the steps of a call in process, watched."""
        return self._watched(steps, _Operation(get_current(), _a_call, [], who), waits=False)

    def _watched(self, steps: Steps[T], operation: _Operation, *, waits: bool) -> Steps[T]:
        """Watch the steps of an operation; ``waits``: it begins when its message is heard, or never was."""
        ended: T | None = None
        self._enter(operation, waits=waits)
        try:
            step = steps.send(None)  # type: ignore[arg-type]  # a generator starts with None
            while True:
                if isinstance(step, Heard):
                    self._hear(operation, step)
                    step = steps.send(_TOLD)
                    continue
                if isinstance(step, _NOTED):
                    step = self._noted(operation, step)
                answer = yield step
                if isinstance(answer, Raised):
                    operation.seen.broken = _breaks(step, answer.error)
                elif isinstance(step, _RESOLVES) and isinstance(answer.value, Agent | Human):
                    operation.who = answer.value
                step = steps.send(answer)
        except StopIteration as done:
            value: T = done.value
            ended = value
            return value
        except BaseException as fault:  # a bug of ours, or nobody wants the steps any more
            operation.seen.broken = operation.seen.broken or type(fault).__qualname__
            raise
        finally:
            steps.close()
            self._end(operation, ended)

    def _noted(self, operation: _Operation, step: Audit | Launch) -> Step:
        """See what a step gives away. What goes on as a task is watched to its own end."""
        if isinstance(step, Launch):
            return self._followed(step, operation)
        operation.seen.event = step.event
        return step

    def _followed(self, step: Launch, operation: _Operation) -> Launch:
        """A task has a span of its own, from here to its end, under the one of the call that began it."""
        began, tick, context = time.time_ns(), time.perf_counter_ns(), set_span_in_context(operation.span)

        def finish(answer: Answer, ident: str) -> Steps[Outcome]:
            rest = _Operation(context, _a_call, [], step.permit.principal, began=began, tick=tick)
            return self._watched(step.finish(answer, ident), rest, waits=False)

        return Launch(step.permit, step.tasks, step.owner, finish)

    # its span

    def _enter(self, operation: _Operation, *, waits: bool) -> None:
        operation.before = attach(operation.context)
        if not waits and operation.unheard is not None:
            self._begin(operation, operation.unheard(), {})

    def _hear(self, operation: _Operation, heard: Heard) -> None:
        operation.seen.heard = heard
        operation.context, links = self.traces.heard(operation.context, heard.meta)
        operation.links += links
        self._begin(operation, of_message(heard, piped=operation.piped), details_of(heard))

    def _begin(self, operation: _Operation, opening: Opening, details: Labels) -> None:
        operation.opening = opening
        try:
            operation.span = self.tracer.start_span(
                opening.name,
                operation.context,
                SpanKind.SERVER if opening.server else SpanKind.INTERNAL,
                {**opening.labels, **details},
                operation.links,
                operation.began,
                record_exception=False,
                set_status_on_exception=False,
            )
        except Exception as fault:  # noqa: BLE001  (a sampler's or processor's, of any kind)
            _complain(fault)
        attach(set_span_in_context(operation.span, operation.context))

    def _end(self, operation: _Operation, answer: object) -> None:
        """Tell an operation, and be again in the context that it was begun in."""
        if operation.opening is None and operation.unheard is not None:
            self._begin(operation, operation.unheard(), {})
        try:
            if operation.opening is not None:
                self._tell(operation, operation.opening, answer)
        except Exception as fault:  # noqa: BLE001  (a processor's or reader's, of any kind)
            _complain(fault)
        finally:
            if operation.before is not None:
                detach(operation.before)

    def _tell(self, operation: _Operation, opening: Opening, answer: object) -> None:
        elapsed, span = time.perf_counter_ns() - operation.tick, operation.span
        try:
            if operation.who is not None:
                operation.seen.view = self.app.kernel.view_for(operation.who)
            told = opening.closing(answer, operation.seen)
            if opening.metric is not None:
                labels = {**opening.labels, **told.labels, **(told.names if self.names else {})}
                self.durations[opening.metric].record(elapsed / 1e9, labels)
            if span.is_recording():
                span.set_attributes({**told.labels, **told.names, **told.details})
                if told.target is not None:
                    span.update_name(f"{opening.name} {told.target}")
                if told.failed:
                    span.set_status(StatusCode.ERROR)
        finally:
            span.end(operation.began + elapsed)


def _breaks(step: Step, error: BaseException) -> str | None:
    """Return what kept an operation from its end: what stops one is sent to its steps as an answer."""
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    if isinstance(step, ReadBody):
        return "body_unread"
    return "disconnected" if isinstance(step, Write) else None


def _a_call() -> Opening:
    return A_CALL


def _complain(fault: Exception) -> None:
    log.error("telemetry raised %s", type(fault).__name__)
