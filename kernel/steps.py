"""What the kernel asks of the world, as values; a generator yields them and is sent answers.

Knows nothing of how they are carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeVar

from .model import Begun
from .strict_json import Json
from .values import value

if TYPE_CHECKING:
    from .audit import Event
    from .catalog import Entry
    from .confirmation import Asking, Confirmation, Gated, Status
    from .idempotency import Kept
    from .line import Line, TaskLine
    from .meter import Rate
    from .model import Outcome, Principal
    from .signatures import Handler
    from .tasks import Task

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What a token resolver may know of the request: never the raw headers.

    ``address`` is what the host resolved, never read from a header here; ``origin`` may be the
    string ``null`` (an opaque origin), which is not an absent one; ``path`` has no query string.
    """

    address: str | None
    user_agent: str | None
    origin: str | None
    path: str


@value
class ResolveToken:
    """Answered with ``Returned(Agent | Human | None)``."""

    token: str
    facts: RequestFacts


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a resolver of sessions may know of a request that carries no token.

    ``cookies`` are the request's, each name once (a name that comes twice is left out); ``headers`` are
    those that the app named, in lower case.
    """

    request: RequestFacts
    cookies: Mapping[str, str]
    headers: Mapping[str, str]


@value
class ResolvePrincipal:
    """Answered with ``Returned(Agent | Human | None)``."""

    facts: SessionFacts


@value
class TakeToken:
    """Count requests against a bucket; with ``count=0`` ask whether one would pass.

    Answered with ``Returned(Verdict)``. ``Raised`` says that nobody could count: then nothing passes.
    """

    key: str
    rate: Rate
    count: int = 1


@value
class ReadBody:
    """Answered with ``Returned(bytes)``, or ``Returned(None)`` once more than ``limit`` bytes arrived."""

    limit: int


@value
class Heard:
    """A message was understood and nothing of it is looked up yet; said only to who asked to be told.

    ``method``, ``ident`` and ``meta`` (its ``_meta``) are as the client sent them, ``version`` is the
    revision that answers. Answered with ``Returned(None)``; no answer changes what follows.
    """

    method: str
    ident: str | int | None
    version: str
    meta: Json


@value
class Load:
    """Load the facts of the resource acted on. Answered with ``Returned(model or None)``."""

    loader: Handler
    input: object
    principal: Principal


@value
class Permit:
    """Every gate was passed: the one value for which the edge runs a handler.

    INVARIANT: constructed by ``gates.py`` only (tests/boundaries/test_one_maker_of_permit.py).
    """

    entry: Entry
    input: object
    principal: Principal
    resource: object
    line: Line | None = None
    completes: Handler | None = None

    @property
    def handler(self) -> Handler:
        """The function to run: the entry's own, or the one that completes an argument of it."""
        return self.completes if self.completes is not None else self.entry.handler


@value
class Launch:
    """Run the handler of a permit as a task of this owner's, behind the answer to its call.

    ``tasks`` spells it. ``finish`` are the steps to take once it has ended, with its answer and the
    task's id. Answered with ``Returned(Launched)``: the handler may end before it becomes a task.
    """

    permit: Permit
    tasks: TaskLine
    owner: str
    finish: Callable[[Answer, str], Steps[Outcome]]


@value
class NoRoom:
    """No task was made: too many are kept."""


@value
class Ran:
    """The handler ended without a task."""

    answer: Answer


@value
class FindTask:
    """Look for one task of an owner's. Answered with ``Returned(Task or None)``."""

    ident: str
    owner: str


@value
class ChangeTask:
    """Change one task of an owner's; if somebody else changes it meanwhile, ask ``change`` again.

    Answered with ``Returned(Task)``, or ``Returned(None)`` where there was nothing to change.
    """

    ident: str
    owner: str
    change: Callable[[Task, datetime], Task | None]


@value
class Recall:
    """Look for the record of a keyed call. Answered with ``Returned(Kept or None)``."""

    slot: str


@value
class Reserve:
    """Begin the record of a keyed call, unless there is one. Answered with ``Returned(Reserved)``.

    ``atomic``: in a transaction that the handler works in too, and that ends when the record does.
    """

    slot: str
    digest: str
    judged: bytes
    atomic: bool = False


@value
class Reserved:
    """The record of a slot, and whether it is the one that was just begun."""

    kept: Kept
    ours: bool


@value
class Remember:
    """Keep how a call ended in its record; without an ``outcome`` forget that it was begun.

    Answered with ``Returned(None)``. Where it cannot be kept, the call stays begun; an atomic one is undone.
    """

    kept: Kept
    outcome: bytes | None


@value
class OpenConfirmation:
    """Look for the open row of a call that waits for a person, or make it.

    Answered with ``Returned(Opened)``, or ``Returned(None)`` where this caller waits for too many.
    """

    gated: Gated
    asking: Asking


@value
class MoveConfirmation:
    """Put a row in another state, if it is still what it was and its table allows it at this time.

    Answered with ``Returned(Confirmation)``, or ``Returned(None)`` where it was not moved.
    """

    row: Confirmation
    to: Status


@value
class ListConfirmations:
    """The confirmations that a person may view. Answered with ``Returned(list[Confirmation])``."""

    principal: Principal
    which: Literal["open", "ended"]


@value
class Deliver:
    """Hand a client's answer to the handler that asked for it, if one of this principal's still waits.

    Answered with ``Returned(None)``.
    """

    ident: str
    principal: Principal
    answer: Json


@value
class Write:
    """Send one message to the client now; the answer becomes a stream. Answered with ``Returned(None)``."""

    message: bytes


@value
class Change:
    """What an app said since somebody last looked: its count so far, and the URIs that were updated.

    ``tasks`` are those of the watched tasks that are no longer what they were.
    """

    count: int
    uris: frozenset[str]
    tasks: frozenset[str] = frozenset()


@value
class Listen:
    """Open a stream that tells a principal what changes; it is closed with its request.

    Answered with ``Returned(bool)``: whether there may be one more.
    """

    principal: Principal


@value
class Watch:
    """Wait until the app says that lists or resources changed after ``count``.

    Or until one of these ``tasks``, by id, has another version than this one. Answered with
    ``Returned(Change)``, or ``Returned(None)`` when the server closes.
    """

    count: int
    tasks: Mapping[str, int] = field(default_factory=dict[str, int])


@value
class Audit:
    """Record the event once the answer is on its way. Answered with ``Returned(None)``."""

    event: Event


Step = (
    ResolveToken
    | ResolvePrincipal
    | TakeToken
    | ReadBody
    | Heard
    | Load
    | Permit
    | Launch
    | FindTask
    | ChangeTask
    | Recall
    | Reserve
    | Remember
    | OpenConfirmation
    | MoveConfirmation
    | ListConfirmations
    | Deliver
    | Write
    | Listen
    | Watch
    | Audit
)


@value
class Returned:
    """The step was carried out."""

    value: object


@value
class Raised:
    """The step was not carried out: application code raised, or nobody knew the step."""

    error: BaseException


Answer = Returned | Raised
Launched = Begun | NoRoom | Ran
Steps = Generator[Step, Answer, T]


class UnknownStep(Exception):
    """An edge met a step that it does not know; the kernel reads this as a denial."""
