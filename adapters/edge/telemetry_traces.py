"""Whose trace an operation belongs to: its host's, its caller's, or one that begins with it.

By W3C Trace Context and the MCP conventions. Knows the OpenTelemetry API, no step and no span of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from opentelemetry.context import Context, get_current
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, get_current_span
from opentelemetry.trace.propagation import set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_W3C: Final = TraceContextTextMapPropagator()
# What the API would write into the log if it met it is not handed to it: it is a caller's text.
_PARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_KEY: Final = r"(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
_MEMBER: Final = re.compile(_KEY + r"=[!-+\--<>-~]{1,255}")
_MOST_MEMBERS: Final = 32  # W3C Trace Context, 3.3.1.1
_MOST_CHARS: Final = 512


@dataclass(frozen=True, slots=True)
class Traces:
    """How far callers are believed: whether a trace that one sends is continued, or begun anew and linked."""

    continues: bool

    def arrived(self, headers: Mapping[str, str]) -> tuple[Context, list[Link]]:
        """Return where a request comes from before it is read: the host's span, or else its client's."""
        context = get_current()
        if "traceparent" not in headers or _of(context).is_valid:
            return context, []
        told = sent({"traceparent": headers["traceparent"], "tracestate": headers.get("tracestate")})
        return (context, []) if told is None else self._under(told, context)

    def heard(self, context: Context, meta: object) -> tuple[Context, list[Link]]:
        """Return the parent of a message: what it says itself, linked to what carried it (MCP spans)."""
        told = sent(meta)
        if told is None:
            return context, []
        carrier = _of(context)
        parent, links = self._under(told, context)
        if self.continues and carrier.is_valid and not _same(carrier, told):
            links.append(Link(carrier))
        return parent, links

    def _under(self, told: SpanContext, context: Context) -> tuple[Context, list[Link]]:
        if self.continues:
            return set_span_in_context(NonRecordingSpan(told), context), []
        return context, [Link(told)]


def nested(context: Context) -> bool:
    """Whether a span of this process is open: the host traces what it is asked itself."""
    here = _of(context)
    return here.is_valid and not here.is_remote


def sent(carrier: object) -> SpanContext | None:
    """Return the span that a caller says it is in, from headers or from ``_meta``; baggage is not read."""
    if not isinstance(carrier, dict) or "traceparent" not in carrier:
        return None
    held = cast("dict[str, object]", carrier)
    parent, state = held["traceparent"], held.get("tracestate")
    if not isinstance(parent, str) or not _PARENT.fullmatch(parent):
        return None
    told = {"traceparent": parent}
    if isinstance(state, str) and _is_state(state):
        told["tracestate"] = state
    found = _of(_W3C.extract(told, Context()))
    return found if found.is_valid else None


def _is_state(text: str) -> bool:
    members = text.split(",") if len(text) <= _MOST_CHARS else []
    return 0 < len(members) <= _MOST_MEMBERS and all(_MEMBER.fullmatch(each.strip(" \t")) for each in members)


def _of(context: Context) -> SpanContext:
    return get_current_span(context).get_span_context()


def _same(one: SpanContext, other: SpanContext) -> bool:
    return (one.trace_id, one.span_id) == (other.trace_id, other.span_id)
