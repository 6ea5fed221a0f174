"""Writes audit events: one ASCII JSON line each, and the app's hook. Called after the answer has left."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Final, assert_never

from pydantic_core import to_json

from ...kernel.audit import (
    MAX_NAME_CHARS,
    AuthRefused,
    Event,
    PromptGet,
    RateLimited,
    ResourceRead,
    TaskAsked,
    ToolCall,
)
from .app import App, OnAudit

log: Final = logging.getLogger("nonsuch.audit")
_hooks: Final = logging.getLogger("nonsuch.audit-hook")
_pending: Final[set[asyncio.Future[object]]] = set()
_MEMBERS: Final = {
    kind: tuple(each.name for each in dataclasses.fields(kind))
    for kind in (ToolCall, ResourceRead, PromptGet, TaskAsked, RateLimited, AuthRefused)
}
MAX_URI_CHARS: Final = 512
_LOUD: Final = frozenset({"X_INTERNAL", "X_OUTPUT_INVALID", "X_RATE_STORE_FAILED"})


def record(app: App, events: Iterable[Event], at: datetime) -> None:
    """Write each event to the log ``nonsuch.audit`` and hand it to ``on_audit``; no fault of it counts."""
    for event in events:
        told = _declared(app, event)
        importance = level(told)
        if log.isEnabledFor(importance):
            log.handle(logging.LogRecord(log.name, importance, "", 0, line(told, at), None, None))
        if app.on_audit is not None:
            _hand_on(app.on_audit, told)


def _declared(app: App, event: Event) -> Event:
    """Tell the operator hidden from absent; no caller can see this second look-up."""
    if isinstance(event, ToolCall) and event.outcome in ("hidden", "rate-limited"):
        declared = event.declared or app.kernel.catalog.declares(event.tool, event.surface)
        return dataclasses.replace(event, tool=event.tool[:MAX_NAME_CHARS], declared=declared)
    if isinstance(event, ResourceRead):
        return dataclasses.replace(event, uri=event.uri[:MAX_URI_CHARS])
    if isinstance(event, PromptGet):
        return dataclasses.replace(event, prompt=event.prompt[:MAX_URI_CHARS])
    if isinstance(event, RateLimited):
        return dataclasses.replace(event, method=event.method[:MAX_NAME_CHARS])
    return event


def line(event: Event, at: datetime) -> str:
    """Return one line of ASCII JSON; members without a value are left out."""
    members: dict[str, object] = {"at": at.isoformat()}
    for name in _MEMBERS[type(event)]:
        value = getattr(event, name)
        if value is not None and value != ():
            members[name] = value
    try:
        text = to_json(members)
    except ValueError:  # half a surrogate pair in a name that an in-process caller gave
        return json.dumps(members, separators=(",", ":"))
    return text.decode() if text.isascii() else json.dumps(members, separators=(",", ":"))


def level(event: Event) -> int:
    """Return the log level: refusals by a gate at warning, so that probing shows."""
    if isinstance(event, AuthRefused):
        return logging.WARNING
    match event.outcome:
        case "ok" | "invalid-args" | "input-required" | "begun":
            return logging.INFO
        case "hidden" | "scope-denied" | "policy-denied":
            return logging.WARNING
        case "rate-limited":
            return logging.ERROR if event.code in _LOUD else logging.WARNING
        case "policy-error":
            return logging.ERROR
        case "failed":
            return logging.ERROR if event.code in _LOUD else logging.INFO
        case _:
            assert_never(event.outcome)


def _hand_on(hook: OnAudit, event: Event) -> None:
    try:
        given = hook(event)
        if inspect.isawaitable(given):
            task = asyncio.ensure_future(given)
            _pending.add(task)
            task.add_done_callback(_settled)
    except BaseException as fault:
        if isinstance(fault, (KeyboardInterrupt, SystemExit)):
            raise
        _complain(fault)  # whatever else it raises: a hook cannot change an answer


def _settled(task: asyncio.Future[object]) -> None:
    _pending.discard(task)
    fault = None if task.cancelled() else task.exception()
    if fault is not None:
        _complain(fault)


def _complain(fault: BaseException) -> None:
    _hooks.error("audit hook failed: %s", getattr(fault, "code", type(fault).__name__))
