"""``otel()``: an app's spans and metrics as a value for ``telemetry=``; OpenTelemetry is imported with it.

Knows whose providers are recorded to and how far callers are believed; what is recorded, it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .extras import require

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from .app import App
    from .telemetry_spans import Recorder

CallerTraces = Literal["continue", "link"]


@dataclass(frozen=True, slots=True, eq=False)
class Telemetry:
    """What ``otel()`` returns."""

    tracer_provider: TracerProvider | None
    meter_provider: MeterProvider | None
    caller_traces: CallerTraces
    names_in_metrics: bool

    def begin(self, app: App) -> Recorder | None:
        """Return what records an app from now on; nothing where no provider would keep it."""
        from .telemetry_spans import recorder

        return recorder(self, app)


def otel(
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    caller_traces: CallerTraces = "continue",
    names_in_metrics: bool = False,
) -> Telemetry:
    """Return telemetry for ``define_app_mcp(..., telemetry=otel())``: one span and one duration a request.

    Without providers the global ones are used that are set when the app's lifespan is entered; while
    none is, nothing is recorded and a request pays nothing.

    A span says what was done and how it ended, never by whom or on what: no arguments, rows, tokens,
    messages or exceptions. Names are those of the catalog, and only where the caller sees them, so that a
    hidden tool leaves the span of one that is not there. Metrics carry no such name, because who may read
    metrics may not see every tool; ``names_in_metrics=True`` adds those that were called, for an endpoint
    that no caller reads.

    A trace that a caller sends (``traceparent`` in ``_meta``, or in the HTTP headers) is continued, and its
    flag then tells a parent-based sampler what to record. ``caller_traces="link"`` begins a trace of our
    own instead and links the two. Baggage is never taken from a caller, and nothing is sent to one.

    Raises: ExtraMissing, without ``nonsuch[otel]``.
    """
    require("opentelemetry", "nonsuch[otel]", "opentelemetry-api")
    return Telemetry(tracer_provider, meter_provider, caller_traces, names_in_metrics)
