"""``guard``: the app's judge in front of a view that the app does not route. Knows no framework.

The view runs as before; what a guard refuses is answered with the very problem that ``/api`` answers.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, ParamSpec, TypeVar, cast

from ...kernel.audit import AuthRefused, Event, ToolCall
from ...kernel.catalog import Entry
from ...kernel.errors import BootError, fault, refused
from ...kernel.guarded import PERMITTED, guarded, stops_early
from ...kernel.model import Agent, Human, Outcome, Principal
from ...kernel.steps import Audit, Returned, Steps
from ...kernel.strict_json import Json
from ..authentication import Unauthenticated
from ..http.invoke import admitted, reply_to
from ..wire import Head, Reply, problem
from .app import App
from .audit import record
from .opening import Portal
from .run import Clock, Edge, Running, run, utc_now

P = ParamSpec("P")
R = TypeVar("R")
Asking = Callable[..., Any]
MEMO: Final = 64


class Refused(Exception):
    """A guard refused; ``reply`` is the answer to send: its status, body and headers."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        super().__init__(reply.status)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a guard let pass: who calls, and the resource that was judged, to go on with that very one.

    INVARIANT: made by a guard only, once every gate was passed.
    """

    principal: Principal
    resource: Any = None


@dataclass(frozen=True, slots=True)
class Asks:
    """What tells a guard of a call, each called with what its view is called with.

    ``head`` reads the request that says who calls, where no ``principal`` does. ``answer`` makes what the
    framework sends of a refusal; without one ``Refused`` is raised.
    """

    principal: Asking | None = None
    head: Callable[..., Head] | None = None
    resource: Asking | None = None
    arguments: Asking | None = None
    answer: Callable[[Reply], Any] | None = None

    @property
    def waits(self) -> bool:
        """Whether one of them is async."""
        asked = (self.principal, self.resource, self.arguments)
        return any(inspect.iscoroutinefunction(each) for each in asked)


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """One action's gates, for a view that does its work. Safe to share between threads and event loops."""

    app: App
    entry: Entry
    asks: Asks
    clock: Clock = utc_now

    def check(
        self, who: Principal | None, resource: object = None, arguments: Mapping[str, Json] | None = None
    ) -> Reply | None:
        """Return why ``who`` may not act on ``resource``, as the answer to send; ``None`` if they may.

        ``resource`` is an instance of the model that the action's loader returns, ``None`` where there is
        no such row; ``arguments`` are the action's. The decision waits for nothing, and is audited.
        """
        if type(who) not in (Agent, Human):
            return self._nobody()
        view = self.app.kernel.view_for(cast("Principal", who))
        outcome, events = _driven(guarded(view, self.entry, resource, arguments))
        record(self.app, map(_declared, events), self.clock())
        return None if outcome is PERMITTED else reply_to(self.app.http, self.entry.name, outcome)

    def _nobody(self) -> Reply:
        told = Unauthenticated("no-token", 401, refused("X_UNAUTHENTICATED", self.app.http.door.audience))
        record(self.app, [AuthRefused(told.reason, told.status, None, "")], self.clock())
        return problem(told.status, told.refusal, told.headers())

    def require(
        self, who: Principal | None, resource: object = None, arguments: Mapping[str, Json] | None = None
    ) -> Allowed:
        """Return the proof that ``who`` may act. Raises: Refused, where ``check`` returns an answer."""
        reply = self.check(who, resource, arguments)
        if reply is not None:
            raise Refused(reply)
        return Allowed(cast("Principal", who), resource)

    def closed(self, who: Principal | None) -> Reply | None:
        """Return why ``who`` may act on nothing: nobody, hidden, out of scope. ``None``: it depends on what.

        Ask before a resource is loaded: who may not act learns nothing of it, and costs no query.
        """
        known = type(who) in (Agent, Human)
        view = self.app.kernel.view_for(cast("Principal", who)) if known else None
        return self.check(who) if view is None or stops_early(view, self.entry) else None

    async def admit(self, head: Head) -> Principal | Reply:
        """Say whose a request is by the app's own tokens and sessions, counted and audited as at ``/api``."""
        edge = Edge(_running(self.app, self.clock))
        try:
            return await run(admitted(self.app.http, head, self.entry), edge)
        finally:
            edge.flush()

    def admit_now(self, head: Head) -> Principal | Reply:
        """Say the same where no event loop runs."""
        return _portal(os.getpid()).call(self.admit(head))

    def __call__(self, view: Callable[P, R]) -> Callable[P, R]:
        """Decorate a view, plain or ``async``. One with a parameter ``allowed`` is given what was allowed.

        Raises: Refused, from the decorated view, where there is no ``answer``; BootError, when a plain view
        would have to wait for what is asked of it.
        """
        hands = "allowed" in inspect.signature(view).parameters
        if inspect.iscoroutinefunction(view):
            return cast(
                "Callable[P, R]", self._async(cast("Callable[..., Awaitable[Any]]", view), hands=hands)
            )
        if self.asks.waits:
            cause = f"a guard waits before `{getattr(view, '__name__', 'a view')}`, which is not async"
            raise BootError([fault("X_DECLARATION_INVALID", cause, "make the view async")])
        return self._plain(view, hands=hands)

    def _plain(self, view: Callable[..., R], *, hands: bool) -> Callable[..., R]:
        @functools.wraps(view)
        def asked_first(*args: Any, **kwargs: Any) -> Any:
            steps, answer = self._asked(args, kwargs), None
            try:
                while True:
                    asked = steps.send(answer)
                    answer = self.admit_now(asked) if isinstance(asked, Head) else asked
            except StopIteration as done:
                told = cast("Allowed | Reply", done.value)
            if isinstance(told, Reply):
                return self._refused(told)
            return view(*args, **kwargs, **({"allowed": told} if hands else {}))

        return asked_first

    def _async(self, view: Callable[..., Awaitable[Any]], *, hands: bool) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(view)
        async def asked_first(*args: Any, **kwargs: Any) -> Any:
            steps, answer = self._asked(args, kwargs), None
            try:
                while True:
                    asked = steps.send(answer)
                    answer = await (self.admit(asked) if isinstance(asked, Head) else _waited(asked))
            except StopIteration as done:
                told = cast("Allowed | Reply", done.value)
            if isinstance(told, Reply):
                return self._refused(told)
            return await view(*args, **kwargs, **({"allowed": told} if hands else {}))

        return asked_first

    def _asked(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Generator[Any, Any, Allowed | Reply]:
        """Yield what may have to be waited for: a head for its principal, or a value that was asked for.

        1. who calls  2. whether to load anything for them  3. the resource and the arguments  4. the gates.
        """
        asks = self.asks
        who: Principal | Reply | None = yield (asks.principal or asks.head or _nothing)(*args, **kwargs)  # 1
        if isinstance(who, Reply):
            return who
        told = self.closed(who)  # 2
        if told is not None:
            return told
        resource = yield (asks.resource or _nothing)(*args, **kwargs)  # 3
        arguments = yield (asks.arguments or _nothing)(*args, **kwargs)
        return self.check(who, resource, arguments) or Allowed(cast("Principal", who), resource)  # 4

    def _refused(self, reply: Reply) -> Any:
        if self.asks.answer is None:
            raise Refused(reply)
        return self.asks.answer(reply)


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

    ``fastapi_guard``, ``flask_guard`` and ``django_guard`` make those of these frameworks. In another one a
    guard decorates a view; ``principal(...)``, and ``resource(...)`` for an action that acts on one, take
    what the view takes, and may be async before an async view::

        @guard(app, "post:publish", principal=signed_in, resource=post_of)
        async def publish(request): ...

    Elsewhere, as in the middle of a view, call ``require(who, post)`` or ``check``.

    Raises: BootError, when nothing or more than one action is of that name or asks for that permission.
    """
    return guarding(app, name, Asks(principal, None, resource, arguments, answer), clock)


def guarding(app: App, name: str, asks: Asks, clock: Clock = utc_now) -> Guard:
    """Return the guard of an action. Raises: BootError."""
    found = [each for each in app.kernel.catalog.entries if name in (each.name, each.permission)]
    if len(found) != 1:
        names = ", ".join(f"`{each.name}`" for each in found) or "no action"
        cause = f"a guard asks for `{name}`, which is {names}"
        raise BootError([fault("X_DECLARATION_INVALID", cause, "name one action of this app")])
    if found[0].confirming is not None:
        cause = f"a guard asks for `{found[0].name}`, which waits for a person or is where people decide"
        fix = "let the app call it over `/api`, or take it out of `confirmations`"
        raise BootError([fault("X_DECLARATION_INVALID", cause, fix)])
    return Guard(app, found[0], asks, clock)


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


def _declared(event: Event) -> Event:
    """A guard has an action of the app: hidden from a caller or not, it is one that was declared."""
    if isinstance(event, ToolCall) and event.outcome == "hidden":
        return replace(event, declared=True)
    return event


def _nothing(*_args: object, **_named: object) -> None:
    return None


async def _waited(given: object) -> Any:
    return await given if inspect.isawaitable(given) else given


@functools.lru_cache(MEMO)
def _running(app: App, clock: Clock) -> Running:
    """Return what answers the steps of all guards of an app; nothing of its lifespan is asked."""
    return Running(app, None, clock)


@functools.lru_cache(1)
def _portal(_process: int) -> Portal:
    """Return the event loop of a process for views without one: a fork has none of its parent's threads."""
    return Portal().__enter__()
