"""``guard``: the app's judge in front of a view that the app does not route. Knows no framework.

The view runs as before; what a guard refuses is answered with the very problem that ``/api`` answers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, cast

from ...kernel.audit import Event
from ...kernel.catalog import Entry
from ...kernel.errors import BootError, fault, refused
from ...kernel.guarded import PERMITTED, guarded
from ...kernel.model import Agent, Human, Outcome, Principal
from ...kernel.steps import Audit, Returned, Steps
from ...kernel.strict_json import Json
from ..http.invoke import reply_to
from ..http.status import STATUS
from ..wire import Reply, Unauthenticated, problem
from .app import App
from .audit import record
from .run import Clock, utc_now

P = ParamSpec("P")
R = TypeVar("R")
Asking = Callable[..., Any]


class Refused(Exception):
    """A guard refused; ``reply`` is the answer to send: its status, body and headers.

    In Starlette or FastAPI::

        app.add_exception_handler(
            Refused, lambda _, e: Response(e.reply.body, e.reply.status, dict(e.reply.all_headers()))
        )
    """

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        super().__init__(reply.status)


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """One action's gates, for a view that does its work. Safe to share between threads and event loops."""

    app: App
    entry: Entry
    principal: Asking | None
    resource: Asking | None
    arguments: Asking | None
    answer: Callable[[Reply], Any] | None
    clock: Clock

    def check(
        self, who: Principal | None, resource: object = None, arguments: Mapping[str, Json] | None = None
    ) -> Reply | None:
        """Return why ``who`` may not act on ``resource``, as the answer to send; ``None`` if they may.

        ``resource`` is an instance of the model that the action's loader returns, ``None`` where there is
        no such row; ``arguments`` are the action's. The decision waits for nothing, and is audited.
        """
        if type(who) not in (Agent, Human):
            door = self.app.http.door
            return problem(STATUS["X_UNAUTHENTICATED"], refused("X_UNAUTHENTICATED", door.audience), _NOBODY)
        view = self.app.kernel.view_for(cast("Principal", who))
        outcome, events = _driven(guarded(view, self.entry, resource, arguments))
        record(self.app, events, self.clock())
        return None if outcome is PERMITTED else reply_to(self.app.http, self.entry.name, outcome)

    def require(
        self, who: Principal | None, resource: object = None, arguments: Mapping[str, Json] | None = None
    ) -> None:
        """Raises: Refused, where ``check`` returns an answer."""
        reply = self.check(who, resource, arguments)
        if reply is not None:
            raise Refused(reply)

    def __call__(self, view: Callable[P, R]) -> Callable[P, R]:
        """Decorate a view, plain or ``async``: what ``guard`` was given is called with its arguments first.

        Raises: Refused, from the decorated view; with ``answer`` it returns what that makes of the reply.
        """
        if not inspect.iscoroutinefunction(view):
            return self._plain(view)
        return cast("Callable[P, R]", self._async(cast("Callable[..., Awaitable[Any]]", view)))

    def _plain(self, view: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(view)
        def asked_first(*args: P.args, **kwargs: P.kwargs) -> R:
            reply = self.check(*(ask(*args, **kwargs) for ask in self._asking()))
            return view(*args, **kwargs) if reply is None else self._refused(reply)

        return asked_first

    def _async(self, view: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(view)
        async def asked_first(*args: Any, **kwargs: Any) -> Any:
            given = [await _waited(ask(*args, **kwargs)) for ask in self._asking()]
            reply = self.check(*given)
            return await view(*args, **kwargs) if reply is None else self._refused(reply)

        return asked_first

    def _asking(self) -> Iterator[Asking]:
        return (
            _nothing if each is None else each for each in (self.principal, self.resource, self.arguments)
        )

    def _refused(self, reply: Reply) -> Any:
        if self.answer is None:
            raise Refused(reply)
        return self.answer(reply)


def guard(
    app: App,
    name: str,
    *,
    principal: Asking | None = None,
    resource: Asking | None = None,
    arguments: Asking | None = None,
    answer: Callable[[Reply], Any] | None = None,
    clock: Clock = utc_now,
) -> Guard:
    """Return a guard that asks the app's judge for an action, named itself or by its permission.

    As a decorator it needs ``principal(...)``, and ``resource(...)`` for an action that acts on one; both
    take what the view takes, and may be async before an async view::

        @guard(app, "post:publish", principal=signed_in, resource=post_of)
        async def publish(request): ...

    Elsewhere (a dependency, a middle of a view) call ``require(who, post)`` or ``check``.

    Raises: BootError, when nothing or more than one action is of that name or asks for that permission.
    """
    found = [each for each in app.kernel.catalog.entries if name in (each.name, each.permission)]
    if len(found) != 1:
        names = ", ".join(f"`{each.name}`" for each in found) or "no action"
        cause = f"a guard asks for `{name}`, which is {names}"
        raise BootError([fault("X_DECLARATION_INVALID", cause, "name one action of this app")])
    return Guard(app, found[0], principal, resource, arguments, answer, clock)


_NOBODY = Unauthenticated("no-token", 401, refused("X_UNAUTHENTICATED")).headers()


def _driven(steps: Steps[Outcome]) -> tuple[Outcome, list[Event]]:
    """Take the steps of a decision: it asks for nothing but its audit."""
    events: list[Event] = []
    try:
        step = next(steps)
        while isinstance(step, Audit):
            events.append(step.event)
            step = steps.send(Returned(None))
    except StopIteration as done:
        return cast("Outcome", done.value), events
    raise TypeError(f"a decision asked for {type(step).__name__}")


def _nothing(*_args: object, **_named: object) -> None:
    return None


async def _waited(given: object) -> Any:
    return await given if inspect.isawaitable(given) else given
