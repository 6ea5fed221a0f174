"""The mutants of telemetry: a caller's text or what is hidden gets out, a span is misplaced or stays.

Numbers with an M are those of the list of leaks that a suite must see; the others are ours. Runs nothing.
"""

from __future__ import annotations

from typing import Final

from .mutant import mutant

SPANS: Final = "telemetry tells how each call ended"
WORLDS: Final = "telemetry tells nothing hidden"
TRACES: Final = "telemetry is in the right trace"
_TERMS: Final = "adapters.edge.telemetry_terms"
_SPANS: Final = "adapters.edge.telemetry_spans"
_TRACES: Final = "adapters.edge.telemetry_traces"

TELEMETRY_MUTANTS: Final = (
    mutant(
        "M28",
        "a metric has the name of a tool, whoever sees the tool",
        (f"{_SPANS}:Recorder._tell", "**(told.names if self.names else {})", "**told.names"),
        first=SPANS,
    ),
    mutant(
        "span-names-what-was-sent",
        "a span has the name that was sent",
        (f"{_TERMS}:_names", "ours = tool in view.table.tools or", "ours = True or"),
        first=SPANS,
    ),
    mutant(
        "span-names-what-is-declared",
        "a span names a hidden tool",
        (
            f"{_TERMS}:_names",
            'event.outcome == "hidden":\n        return {}',
            'event.outcome == "hidden":\n'
            '        known = getattr(event, "tool", None) in ("vault", "posts/vault")\n'
            '        return {"gen_ai.tool.name": "vault"} if known else {}',
        ),
        first=WORLDS,
    ),
    mutant(
        "span-method-of-a-caller",
        "a method that nobody knows is a label",
        (f"{_TERMS}:of_message", "heard.method if heard.method in METHODS else OTHER", "heard.method"),
        first=SPANS,
    ),
    mutant(
        "span-uri-of-a-caller",
        "a span has the address that was read, with its variables",
        (f"{_TERMS}:_names", '{"mcp.resource.uri": place.uri}', '{"mcp.resource.uri": uri}'),
        first=SPANS,
    ),
    mutant(
        "span-code-of-an-application",
        "a span has a code that an application made up",
        (f"{_TERMS}:_code", "code is not None and code in CODES", "code is not None"),
        first=SPANS,
    ),
    mutant(
        "span-path-of-a-caller",
        "a span has the path of a request that went nowhere",
        (
            f"{_TERMS}:_request_over",
            "path: Labels = {} if shown is None else",
            'path: Labels = {"url.path": "/api/posts/vault"} if shown is None else',
        ),
        first=SPANS,
    ),
    mutant(
        "span-status-has-words",
        "a status tells an answer",
        (
            f"{_SPANS}:Recorder._tell",
            "span.set_status(StatusCode.ERROR)",
            "span.set_status(StatusCode.ERROR, str(answer))",
        ),
        first=SPANS,
    ),
    mutant(
        "span-of-every-refusal-fails",
        "a refused call is a fault of the server",
        (
            f"{_TERMS}:_message_over",
            "failed = bool(seen.broken) or",
            "failed = bool(seen.broken) or code is not None or",
        ),
        first=SPANS,
    ),
    mutant(
        "trace-of-a-message-ignored",
        "`_meta` is not the parent of its message",
        (
            f"{_TRACES}:Traces.heard",
            "parent, links = self._under(told, context)",
            "parent, links = context, list[Link]()",
        ),
        first=TRACES,
    ),
    mutant(
        "trace-of-a-host-left",
        "a caller's header takes a request out of the host's trace",
        (f"{_TRACES}:Traces.arrived", " or _of(context).is_valid:", ":"),
        first=TRACES,
    ),
    mutant(
        "trace-of-a-caller-continued",
        "a caller is believed that is to be linked",
        (f"{_TRACES}:Traces._under", "if self.continues:", "if True:"),
        first=TRACES,
    ),
    mutant(
        "span-stays-current",
        "a request leaves its span behind in its task",
        (f"{_SPANS}:Recorder._end", "detach(operation.before)", "pass"),
        first=TRACES,
    ),
    mutant(
        "span-never-current",
        "a handler does not see the span of its call",
        (
            f"{_SPANS}:Recorder._begin",
            "attach(set_span_in_context(operation.span, operation.context))",
            "pass",
        ),
        first=TRACES,
    ),
    mutant(
        "span-of-who-left-stays",
        "the span of a client that left does not end",
        (
            f"{_SPANS}:Recorder._watched",
            "self._end(operation, ended)",
            "self._end(operation, ended) if operation.seen.broken is None else None",
        ),
        first=TRACES,
    ),
    mutant(
        "span-of-who-left-is-well",
        "the span of a client that left says that it was answered",
        (f"{_SPANS}:_breaks", 'return "cancelled"', "return None"),
        first=TRACES,
    ),
)
