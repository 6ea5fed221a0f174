"""What an operation is called in telemetry, by the conventions, read from its steps and its answer.

OpenTelemetry GenAI semantic conventions 0.1.0 (MCP servers, tool executions), semantic conventions 1.44.0
(HTTP servers). Pure; knows no OpenTelemetry. INVARIANT: every label has one of finitely many values, whoever
calls: a constant, a status, or a name of the catalog that its caller sees. A caller's own text is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, assert_never

from pydantic_core import to_json

from ...kernel.audit import AuthRefused, Event, PromptGet, RateLimited, ResourceRead, TaskAsked, ToolCall
from ...kernel.codes import CODES
from ...kernel.meta import TOOLS
from ...kernel.steps import Heard
from ...kernel.values import value
from ...kernel.view import View
from ..mcp.revisions import INTERNAL_ERROR
from ..wire import Head, Reply

Value = str | int
Labels = Mapping[str, Value]

MCP_DURATION: Final = "mcp.server.operation.duration"
HTTP_DURATION: Final = "http.server.request.duration"
TOOL_DURATION: Final = "gen_ai.execute_tool.duration"
BUCKETS: Final[Mapping[str, tuple[float, ...]]] = {
    MCP_DURATION: (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300),
    HTTP_DURATION: (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10),
    TOOL_DURATION: (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300),
}
OTHER: Final = "_OTHER"
TOOL_ERROR: Final = "tool_error"
MAX_ID_CHARS: Final = 128

METHODS: Final = frozenset(
    {
        *("initialize", "ping", "server/discover", "logging/setLevel", "completion/complete"),
        *("tools/list", "tools/call", "prompts/list", "prompts/get"),
        *("resources/list", "resources/templates/list", "resources/read"),
        *("resources/subscribe", "resources/unsubscribe", "subscriptions/listen"),
        *("tasks/get", "tasks/update", "tasks/cancel"),
        *("notifications/initialized", "notifications/cancelled", "notifications/progress"),
        "notifications/roots/list_changed",
    }
)
HTTP_METHODS: Final = frozenset(
    {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"}
)
_FAILED: Final = frozenset({"policy-error", "failed"})  # what its operator is to look at
_WELL: Final = frozenset({"ok", "begun", "input-required"})
_CALLS: Final[Labels] = {"gen_ai.operation.name": "execute_tool"}


@dataclass(slots=True, eq=False)
class Seen:
    """What was seen of an operation: its message, its caller's view, the last event, what broke it off."""

    heard: Heard | None = None
    view: View | None = None
    event: Event | None = None
    broken: str | None = None


@value
class Closing:
    """What is known of an operation at its end: ``failed`` says whether its operator is to look at it.

    ``names`` are of the catalog: on the span, and in metrics only where that was asked for.
    """

    labels: Labels
    names: Labels
    details: Labels
    target: Value | None
    failed: bool


@dataclass(frozen=True, slots=True, eq=False)
class Opening:
    """What is known of an operation when it begins, and how it is told at its end."""

    name: str
    server: bool
    metric: str | None
    labels: Labels
    closing: Callable[[object, Seen], Closing]


# an MCP message


def of_message(heard: Heard, *, piped: bool) -> Opening:
    """Return how the span of an MCP request or notification opens."""
    return _message(heard.method if heard.method in METHODS else OTHER, heard.version, piped)


@cache
def _message(method: str, version: str, piped: bool) -> Opening:
    labels = {"mcp.method.name": method, "mcp.protocol.version": version}
    labels["network.transport"] = "pipe" if piped else "tcp"
    called = _CALLS if method == "tools/call" else {}
    return Opening(method, True, MCP_DURATION, {**labels, **called}, _message_over)


def details_of(heard: Heard) -> Labels:
    """Return what a span alone has of a message when it begins."""
    return {} if heard.ident is None else {"jsonrpc.request.id": str(heard.ident)[:MAX_ID_CHARS]}


def _message_over(answer: object, seen: Seen) -> Closing:
    outcome = _outcome(seen.event)
    code = None if seen.broken or outcome == "ok" else _error(answer, seen.heard)
    names = _names(seen)
    target = names.get("gen_ai.tool.name") or names.get("gen_ai.prompt.name")
    failed = bool(seen.broken) or code == INTERNAL_ERROR or (code == TOOL_ERROR and outcome in _FAILED)
    return Closing(_ended(outcome, seen.broken or code), names, _code(seen.event), target, failed)


def _error(answer: object, heard: Heard | None) -> int | str | None:
    """Return the code of an answer that is an error, or that it is a tool's; other results are not read."""
    if not isinstance(answer, Reply) or not answer.body or heard is None:
        return None
    body = answer.body[answer.body.find(b"{") :]  # a client that takes nothing else is sent it as an event
    result = body.startswith(b'{"jsonrpc":"2.0","id":%b,"result":' % to_json(heard.ident))
    if result and heard.method != "tools/call":
        return None
    told = json.loads(body)
    if "error" in told:
        return int(told["error"]["code"])
    return TOOL_ERROR if told["result"].get("isError") is True else None


@cache
def _ended(outcome: str | None, error: int | str | None) -> Labels:
    """Return the labels of an end; an error that is a number is a code of the protocol."""
    labels = {
        "nonsuch.outcome": outcome,
        "rpc.response.status_code": str(error) if isinstance(error, int) else None,
        "error.type": None if error is None else str(error),
    }
    return {name: each for name, each in labels.items() if each is not None}


# an HTTP request


def of_request(head: Head, prefix: str, place: str | None, *, nested: bool) -> Opening:
    """Return how the span of an HTTP request opens that is no MCP message.

    ``prefix`` stands before the paths of actions; ``place`` is the MCP endpoint's path, if the request
    went there. ``nested``: the host traces its requests itself, and counts them.
    """
    method = head.method if head.method in HTTP_METHODS else OTHER
    labels: dict[str, Value] = {"http.request.method": method}
    if head.scheme in ("http", "https"):
        labels["url.scheme"] = head.scheme
    if place is not None:
        labels["http.route"] = place

    def over(answer: object, seen: Seen) -> Closing:
        sought = head.path.removeprefix(prefix) if head.path.startswith(prefix) else None
        entry = None if seen.view is None or sought is None else seen.view.find(sought, "http")
        return _request_over(answer, seen, place, None if entry is None else prefix + entry.path)

    name = "HTTP" if method == OTHER else method
    return Opening(name, not nested, None if nested else HTTP_DURATION, labels, over)


def _request_over(answer: object, seen: Seen, place: str | None, route: str | None) -> Closing:
    """A refusal is an answer: only what went wrong here is an error (HTTP spans, status)."""
    status = answer.status if isinstance(answer, Reply) and not seen.broken else None
    error = seen.broken or (str(status) if status is not None and status >= 500 else None)
    labels = dict(_ended(_outcome(seen.event), error))
    if status is not None:
        labels["http.response.status_code"] = status
    names: Labels = {} if route is None else {"http.route": route}
    shown = place or route
    path: Labels = {} if shown is None else {"url.path": shown}
    return Closing(labels, names, {**_code(seen.event), **path}, shown, error is not None)


# a tool that runs without a request, or after it


def _call_over(_: object, seen: Seen) -> Closing:
    outcome, names = _outcome(seen.event), _names(seen)
    error = seen.broken or (None if outcome in _WELL else outcome)
    failed = bool(seen.broken) or outcome in _FAILED
    target = names.get("gen_ai.tool.name")
    return Closing(_ended(outcome, error), names, _code(seen.event), target, failed)


A_CALL: Final = Opening("execute_tool", False, TOOL_DURATION, _CALLS, _call_over)
"""A call in process, or one that went on as a task."""


# what an event gives away


def _outcome(event: Event | None) -> str | None:
    if event is None:
        return None
    return "auth-refused" if isinstance(event, AuthRefused) else event.outcome


def _code(event: Event | None) -> Labels:
    """Return why, where a code says so that is ours: an application's own can hold anything."""
    if isinstance(event, AuthRefused):
        return {"nonsuch.reason": event.reason}
    code = None if event is None else event.code
    return {"nonsuch.code": code} if code is not None and code in CODES else {}


def _names(seen: Seen) -> Labels:
    """Return the names that the catalog has for what was asked, by its caller's view; else none at all.

    An event can hold a caller's own text: a name counts only if the view holds it.
    """
    event, view = seen.event, seen.view
    if view is None or event is None or isinstance(event, AuthRefused) or event.outcome == "hidden":
        return {}
    match event:
        case ToolCall(tool):
            ours = tool in view.table.tools or (view.table.meta and tool in TOOLS)
            return {"gen_ai.tool.name": tool} if ours else {}
        case PromptGet(name):
            return {"gen_ai.prompt.name": name} if view.prompt(name) is not None else {}
        case ResourceRead(uri):
            found = view.resource(uri)
            place = None if found is None else found[0].place
            return {} if place is None else {"mcp.resource.uri": place.uri}
        case RateLimited() | TaskAsked():
            return {}
        case _:
            assert_never(event)
