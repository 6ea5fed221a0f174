"""Writes audit events: one ASCII JSON line each, and the app's hook. Called after the answer has left."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import logging
from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
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
    kind: tuple(each.name for each in dataclasses.fields(kind) if each.name != "at")
    for kind in (ToolCall, ResourceRead, PromptGet, TaskAsked, RateLimited, AuthRefused)
}
_HELD: Final = {kind: attrgetter(*names) for kind, names in _MEMBERS.items()}
MAX_URI_CHARS: Final = 512
MAX_FACT_CHARS: Final = 512  # of what came with a request that nobody need be anybody to send
_SENT: Final = frozenset({"hidden", "rate-limited", "invalid-args"})  # the name may be the caller's own
_LOUD: Final = frozenset({"X_INTERNAL", "X_OUTPUT_INVALID", "X_RATE_STORE_FAILED"})


def record(app: App, events: Iterable[Event], at: datetime) -> None:
    """Write each event to the log ``nonsuch.audit`` and hand it to ``on_audit``; no fault of it counts."""
    for event in events:
        told = _declared(app, event)
        importance = level(told)
        if log.isEnabledFor(importance):
            made = logging.getLogRecordFactory()  # an application's own: its formats can need its members
            log.handle(made(log.name, importance, "", 0, line(told, at), None, None))
        if app.on_audit is not None:
            object.__setattr__(told, "at", at)  # whoever made it has no clock; no event equals another by it
            _hand_on(app.on_audit, told)


def _declared(app: App, event: Event) -> Event:
    """Tell the operator hidden from absent, and cut what a caller sent; no caller sees this look-up."""
    match event:
        case ToolCall(tool, outcome):
            if outcome not in _SENT:
                return event
            declared = event.declared
            if outcome != "invalid-args":
                declared = declared or app.kernel.catalog.declares(tool, event.surface)
            return dataclasses.replace(event, tool=tool[:MAX_NAME_CHARS], declared=declared)
        case ResourceRead(uri):
            return dataclasses.replace(event, uri=uri[:MAX_URI_CHARS])
        case PromptGet(prompt, completes=named):
            named = None if named is None else named[:MAX_NAME_CHARS]
            return dataclasses.replace(event, prompt=prompt[:MAX_URI_CHARS], completes=named)
        case RateLimited(method):
            return dataclasses.replace(event, method=method[:MAX_NAME_CHARS])
        case AuthRefused(path=path, user_agent=agent, origin=origin):
            agent, origin = (each and each[:MAX_FACT_CHARS] for each in (agent, origin))
            return dataclasses.replace(event, path=path[:MAX_FACT_CHARS], user_agent=agent, origin=origin)
        case TaskAsked():
            return event
        case _:
            assert_never(event)


def line(event: Event, at: datetime) -> str:
    """Return one line of ASCII JSON; members without a value are left out."""
    kind = type(event)
    held = zip(_MEMBERS[kind], _HELD[kind](event), strict=True)
    members = {
        "at": at.isoformat(),
        **{name: value for name, value in held if value is not None and value != ()},
    }
    try:
        text = to_json(members)
    except ValueError:  # half a surrogate pair in a name that an in-process caller gave
        text = b"\xff"
    told = text.decode() if text.isascii() else json.dumps(members, separators=(",", ":"))
    return told.replace("\x7f", "\\u007f")  # the one control character that JSON leaves as it is


def level(event: Event) -> int:
    """Return the log level: refusals by a gate at warning, so that probing shows."""
    if isinstance(event, AuthRefused):
        return logging.WARNING
    match event.outcome:
        case "ok" | "invalid-args" | "unconfirmed" | "input-required" | "begun":
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
