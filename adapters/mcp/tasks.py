"""The extension ``io.modelcontextprotocol/tasks``: how a call that goes on is answered and asked after.

Knows neither who runs it nor where it is kept. A task gives its caller the bytes that the call itself
would have been answered, because the same function makes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, cast

from pydantic_core import to_json

from ...kernel.asks import Ask, Elicit, ElicitUrl, Given, ListRoots, Sample
from ...kernel.audit import Asked, task_asked
from ...kernel.errors import refused
from ...kernel.held import held
from ...kernel.model import Hidden, Outcome, Unfit
from ...kernel.steps import Audit, ChangeTask, Raised, Steps
from ...kernel.strict_json import Json
from ...kernel.tasks import BODILESS, Ending, Task, answered, cancelled
from ...kernel.view import View
from ..wire import Reply
from . import asking, envelope
from .endpoint import Request
from .envelope import Id, result
from .exchange import NEEDS_TASKS
from .metering import malformed
from .refusals import internal, refuse
from .revisions import INTERNAL_ERROR, INVALID_PARAMS

MAX_FOLLOWED: Final = 100


# what a call needs to become a task


@dataclass(frozen=True, slots=True, eq=False)
class Spelled:
    """How one call spells its task (``kernel/line.TaskLine``)."""

    ident: Id
    answer: Callable[[Outcome], Reply]

    def question(self, ask: Ask) -> Json:
        """Return a question as the client reads it in ``inputRequests``.

        Raises: SchemaRefused, ValueError, for what cannot be asked: the application's bug, where it is.
        """
        return cast("Json", json.loads(to_json(asking.request_of(ask))))

    def understood(self, ask: Ask, answer: Json) -> Given | None:
        """Return a client's answer as a value."""
        return asking.given(ask, answer)

    def ended(self, outcome: Outcome) -> Ending:
        """Return the result of the call's answer, byte for byte, or the error of it."""
        body = self.answer(outcome).body
        head, tail = result(self.ident, b"").body[:-1], b"}"
        if body.startswith(head):
            return Ending("completed", body[len(head) : -len(tail)])
        error = cast("dict[str, Any]", json.loads(body)["error"])
        return Ending("failed", to_json(error), str(error["message"]))


def created(request: Request, task: Task) -> Reply:
    """Return the ``CreateTaskResult``."""
    stamped = b',"resultType":"task"' + request.server.meta
    return result(request.id, to_json(_members(task))[:-1] + stamped + b"}")


# what is asked of a task

_UNKEPT: Final = Unfit("the client does not declare the tasks extension", (NEEDS_TASKS,))


def get(request: Request) -> Steps[Reply]:
    """Answer ``tasks/get``."""
    task = yield from _asked(request, "look")
    if isinstance(task, Reply):
        return task
    return result(request.id, detailed(request, task)[:-1] + request.tail() + b"}")


def update(request: Request) -> Steps[Reply]:
    """Answer ``tasks/update``: what answers no open question, or answers it badly, changes nothing."""
    responses = request.message.params.get("inputResponses")
    if not isinstance(responses, dict):
        return (yield from malformed(request, request.malformed("`inputResponses` must be an object")))
    task = yield from _asked(request, "answer")
    if isinstance(task, Reply):
        return task
    good = {key: said for key, said in responses.items() if _answers(task.asks.get(key), said)}
    return (yield from _changed(request, task, partial(answered, answers=good)))


def cancel(request: Request) -> Steps[Reply]:
    """Answer ``tasks/cancel``."""
    task = yield from _asked(request, "cancel")
    return task if isinstance(task, Reply) else (yield from _changed(request, task, cancelled))


def _changed(request: Request, task: Task, change: Callable[[Task, datetime], Task | None]) -> Steps[Reply]:
    answer = yield ChangeTask(task.ident, task.owner, change)
    if isinstance(answer, Raised):
        return internal(request)
    return result(request.id, b"{%b}" % request.tail()[1:])


def _asked(request: Request, asked: Asked) -> Steps[Task | Reply]:
    """1. the shape  2. the capability, whatever the id  3. the view and the kernel."""
    ident = request.message.params.get("taskId")
    if not isinstance(ident, str):  # 1
        return (yield from malformed(request, request.malformed("`taskId` must be a string")))
    if not request.exchange().keeps_tasks:  # 2
        yield Audit(task_asked(request.who, asked, ident, None, _UNKEPT))
        return unkept(request)
    task, refusing = yield from held(request.server.kernel, request.view(), ident, asked)  # 3
    if task is None or isinstance(refusing, Hidden):
        return _unknown(request) if isinstance(refusing, Hidden) else internal(request)
    return task if refusing is None else refuse(request, task.tool, refusing)


def unkept(request: Request) -> Reply:
    """Return the refusal of a client that asks after tasks and does not declare that it keeps them."""
    return refuse(request, "", _UNKEPT)


def _unknown(request: Request) -> Reply:
    """The one answer for an id that is unknown, somebody else's, gone, or of a tool that is hidden."""
    told = refused("X_MCP_TASK_UNKNOWN", request.server.audience)
    return envelope.refusal(request.id, request.message.revision, INVALID_PARAMS, told)


def _answers(asked: Json, answer: Json) -> bool:
    """Whether this is an answer to a question, which is all that any process knows of it."""
    return asked is not None and asking.given(_ask_of(cast("dict[str, Any]", asked)), answer) is not None


def _ask_of(asked: dict[str, Any]) -> Ask:
    """Return a question from its spelling, with as much of it as its answers are judged by."""
    params = asked.get("params", {})
    match asked["method"], params.get("mode"):
        case "elicitation/create", "url":
            return ElicitUrl(params["message"], params["url"])
        case "elicitation/create", _:
            return Elicit(params["message"], params["requestedSchema"])
        case "sampling/createMessage", _:
            return Sample((), params["maxTokens"])
        case _:
            return ListRoots()


# how a task is told


def detailed(request: Request, task: Task) -> bytes:
    """Return a ``DetailedTask``."""
    told = to_json(_members(task))[:-1]
    match task.status:
        case "input_required":
            told += b',"inputRequests":' + to_json(dict(task.asks))
        case "completed":
            told += b',"result":' + task.body
        case "failed":
            told += b',"error":' + (task.body or _bodiless(request, task))
        case "working" | "cancelled":
            pass
    return told + b"}"


def _members(task: Task) -> dict[str, Json]:
    told: dict[str, Json] = {
        "taskId": task.ident,
        "status": task.status,
        "createdAt": _moment(task.created),
        "lastUpdatedAt": _moment(task.updated),
        "ttlMs": task.ttl_ms,
        "pollIntervalMs": task.poll_ms,
    }
    return told if task.message is None else {**told, "statusMessage": task.message}


def _moment(at: datetime) -> str:
    """Return a time as ISO 8601 has it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _bodiless(request: Request, task: Task) -> bytes:
    told = refused(BODILESS.get(task.message or "", "X_INTERRUPTED"), request.server.audience)
    data: dict[str, Json] = {"code": told.code, "cause": told.cause, "fix": told.fix}
    return to_json({"code": INTERNAL_ERROR, "message": told.cause, "data": data})


# subscriptions/listen


def status(request: Request, task: Task, meta: dict[str, Json]) -> bytes:
    """Return a ``notifications/tasks``: what ``tasks/get`` would give away now."""
    params = detailed(request, task)[:-1] + b',"_meta":%b}' % to_json(meta)
    return b'{"jsonrpc":"2.0","method":"notifications/tasks","params":%b}' % params


def followed(request: Request, view: View, idents: Iterable[str]) -> Steps[Mapping[str, Task]]:
    """Return those of the tasks that this caller may have to do with now."""
    found: dict[str, Task] = {}
    for ident in dict.fromkeys(idents):
        task, refusing = yield from held(request.server.kernel, view, ident, "look")
        if task is not None and refusing is None:
            found[ident] = task
    return found


def unfinished(tasks: Mapping[str, Task]) -> Mapping[str, int]:
    """Return the versions of what may still change."""
    return {ident: task.version for ident, task in tasks.items() if not task.finished}
