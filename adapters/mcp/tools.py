"""``tools/call``: parameters to a call, through the kernel's gates, and the outcome back."""

from __future__ import annotations

from functools import partial

from ...kernel.meta import MANAGE, TOOLS, asked_for
from ...kernel.model import Begun, Call, InputRequired, Unconfirmed
from ...kernel.steps import Steps
from ..meters import class_of
from ..wire import Reply
from . import meta, tasks
from .deciding import led
from .endpoint import Request
from .metering import counted, limited
from .refusals import answer
from .rounds import another


def call(request: Request) -> Steps[Reply]:
    """Answer ``tools/call``."""
    params = request.message.params
    name, arguments = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        malformed = request.malformed("`name` must be a string and `arguments` an object")
        return (yield from counted(request, "write", malformed))
    line = request.exchange()
    if not line.reopen(request.server.seal):
        return (yield from counted(request, "write", request.stale()))
    view = request.view()  # 8
    asked = Call(name, arguments, "mcp")
    if view.table.meta and name in TOOLS:
        given = asked_for(name, arguments)
        if not isinstance(given, Call):
            refused = yield from limited(request, "write" if name == MANAGE else "read", name, seen=True)
            return refused if refused is not None else (yield from meta.told(request, view, name, given))
        asked, line.mirrored = given, False
    group = asked.group
    entry = view.find(asked.name, "mcp") if group is None else view.grouped(group, asked.name)
    refused = yield from limited(request, class_of(entry), asked.name, seen=entry is not None)
    if refused is not None:
        return refused
    if entry is not None and entry.task != "never" and line.keeps_tasks:
        line.tasks = tasks.Spelled(request.id, partial(answer, request, asked.name, entry))
    outcome = yield from request.server.kernel.invoke(view, asked, line)
    if isinstance(outcome, Begun):
        return tasks.created(request, outcome.task)
    if isinstance(outcome, InputRequired):
        return another(request, line, outcome)
    if isinstance(outcome, Unconfirmed):
        told = led(request, line, entry, outcome)
        return told if told is not None else answer(request, asked.name, entry, outcome)
    return answer(request, asked.name, entry, outcome)
