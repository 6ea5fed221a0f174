"""A call that goes on after its answer: the states of such a task as a table, its changes as functions.

Knows no store, no clock and no wire: time arrives as a value, and a change returns a new task or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final, Literal

from .strict_json import Json

Unfinished = Literal["working", "input_required"]
Finished = Literal["completed", "failed", "cancelled"]
Status = Literal[Unfinished, Finished]
Support = Literal["never", "optional", "required"]

_ANY: Final = frozenset[Status]({"working", "input_required", "completed", "failed", "cancelled"})
# To itself: something about the task changed and its status did not. A finished task never changes.
TRANSITIONS: Final[Mapping[Status, frozenset[Status]]] = {
    "working": _ANY,
    "input_required": _ANY,
    "completed": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}

# What an id looks like; anything else is unknown without a look. Safe in a header and in every store.
IDENT: Final = re.compile(r"[A-Za-z0-9_-]{16,64}")
MAX_MESSAGE_CHARS: Final = 1_000
STOPPED: Final = "the server stopped before the work ended"
TOO_LARGE: Final = "the work ended, and its result is larger than a task keeps"
# What a failed task met that has no body, by its message: the code that tells it.
BODILESS: Final[Mapping[str, str]] = {STOPPED: "X_INTERRUPTED", TOO_LARGE: "X_MCP_TASK_RESULT_TOO_LARGE"}


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """How long tasks are kept, how many there may be, and how large a result is.

    A task and its result are gone ``ttl_seconds`` after its call, and its work is stopped by then.
    ``poll_seconds`` is what clients are asked to wait between two looks. A process that died loses
    its tasks ``lease_seconds`` after its last sign of life. ``per_principal`` and ``in_all`` count
    the tasks that are kept, finished or not. ``result_bytes`` is how large a result may be as its caller
    reads it: a task whose result is larger ends as failed (X_MCP_TASK_RESULT_TOO_LARGE), and nothing of
    the result is kept. What the handler did is done by then, so let it store what is large and answer where.

    Raises: ValueError, for a limit that is none.
    """

    ttl_seconds: float = 3_600
    poll_seconds: float = 2
    lease_seconds: float = 30
    per_principal: int = 100
    in_all: int = 10_000
    result_bytes: int = 1_048_576

    def __post_init__(self) -> None:
        times = (self.ttl_seconds, self.poll_seconds, self.lease_seconds)
        counts = (self.per_principal, self.in_all, self.result_bytes)
        if not all(0 < each < float("inf") for each in (*times, *counts)):
            raise ValueError("every limit of tasks is a number greater than nothing")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a task ends: the result of its call or the error that it met, as the caller's wire spells it.

    Without a ``body`` a failed task met what its message says (``BODILESS``).
    """

    status: Finished
    body: bytes = b""
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One task. Holds what its caller may see of it and never the arguments of its call.

    INVARIANT: it asks something exactly while its status is ``input_required``, and has a ``body``
    only once it has ended. ``owner`` is a principal's key (``model.owner_key``), ``answers`` are those
    that the handler has not taken yet, ``version`` counts the changes. ``lease`` is how long the
    process that runs it may be silent.
    """

    ident: str
    owner: str
    tool: str
    status: Status
    created: datetime
    updated: datetime
    expires: datetime
    lease: datetime
    poll_ms: int
    version: int = 0
    message: str | None = None
    asks: Mapping[str, Json] = field(default_factory=dict[str, Json])
    answers: Mapping[str, Json] = field(default_factory=dict[str, Json])
    body: bytes = b""

    @property
    def finished(self) -> bool:
        """Whether nothing of it changes any more."""
        return not TRANSITIONS[self.status]

    @property
    def ttl_ms(self) -> int:
        """How long it is kept, from its creation."""
        return round((self.expires - self.created) / timedelta(milliseconds=1))


def begun(ident: str, owner: str, tool: str, at: datetime, limits: TaskLimits) -> Task:
    """Return a new task."""
    expires = at + timedelta(seconds=limits.ttl_seconds)
    lease = at + timedelta(seconds=limits.lease_seconds)
    poll_ms = max(1, round(limits.poll_seconds * 1_000))
    return Task(ident, owner, tool, "working", at, at, expires, lease, poll_ms)


def asked(task: Task, at: datetime, asks: Mapping[str, Json]) -> Task | None:
    """Return the task that waits for these answers too."""
    return _moved(task, "input_required", at, asks={**task.asks, **asks}) if asks else None


def answered(task: Task, at: datetime, answers: Mapping[str, Json]) -> Task | None:
    """Return the task with those of the answers that it waits for; nothing, if it waits for none of them."""
    fresh = {key: answer for key, answer in answers.items() if key in task.asks}
    if not fresh:
        return None
    asks = {key: ask for key, ask in task.asks.items() if key not in fresh}
    status: Status = "input_required" if asks else "working"
    return _moved(task, status, at, asks=asks, answers={**task.answers, **fresh})


def taken(task: Task, at: datetime, keys: Collection[str]) -> Task | None:
    """Return the task without the answers that its handler has taken."""
    kept = {key: answer for key, answer in task.answers.items() if key not in keys}
    return _moved(task, task.status, task.updated, answers=kept) if len(kept) < len(task.answers) else None


def noted(task: Task, at: datetime, message: str) -> Task | None:
    """Return the task with a word on how it is doing."""
    return _moved(task, task.status, at, message=_short(message))


def ended(task: Task, at: datetime, ending: Ending) -> Task | None:
    """Return the task at its end: it keeps what came of it, and nothing that was asked."""
    return _moved(
        task, ending.status, at, asks={}, answers={}, body=ending.body, message=_short(ending.message)
    )


def bounded(task: Task, limits: TaskLimits) -> Task:
    """Return the task as it may be kept: failed, and without its result, if that is too large."""
    if len(task.body) <= limits.result_bytes:
        return task
    return replace(task, status="failed", body=b"", message=TOO_LARGE)


def cancelled(task: Task, at: datetime) -> Task | None:
    """Return the task as its caller gave it up."""
    return ended(task, at, Ending("cancelled", message="cancelled by its caller"))


def lapsed(task: Task, at: datetime) -> Task | None:
    """Return the failed task of a process that has been silent for too long; nothing, if it is not one."""
    return ended(task, task.lease, Ending("failed", message=STOPPED)) if task.lease <= at else None


def fingerprint(ident: str) -> str:
    """Return what an operator may know of an id: it tells two tasks apart and opens neither."""
    return sha256(ident.encode()).hexdigest()[:16]


def _short(message: str | None) -> str | None:
    """Half a surrogate pair could be sent to nobody."""
    return None if message is None else message[:MAX_MESSAGE_CHARS].encode("utf-8", "replace").decode()


def _moved(task: Task, status: Status, at: datetime, **changed: Any) -> Task | None:
    if status not in TRANSITIONS[task.status]:
        return None
    updated = max(at, task.updated)  # clocks of two processes may disagree
    return replace(task, status=status, updated=updated, version=task.version + 1, **changed)
