"""What a module that exports `mcp` may export beside it: how its apps run, here as in a container."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from .app import App
from .asgi import Receive, Scope, Send
from .limits import RateStore

Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
Middleware = Callable[[Asgi], Asgi]


@dataclass(frozen=True, slots=True)
class Runtime:
    """Exported as ``runtime``, it holds for ``nonsuch dev`` and ``nonsuch serve`` alike.

    ``middleware`` wraps the whole application, the first outermost: functions of an ASGI application that
    return one, as ``partial(GZipMiddleware, minimum_size=500)`` is. Each also sees the lifespan go by.
    ``rate_limit_store`` is where the apps count that were given no store of their own.
    """

    middleware: tuple[Middleware, ...] = ()
    rate_limit_store: RateStore | None = None

    def counted(self, apps: Iterable[App]) -> tuple[App, ...]:
        """Return the apps as they count here."""
        return tuple(self._counting(app) for app in apps)

    def _counting(self, app: App) -> App:
        store = self.rate_limit_store
        if store is None or not app.counts_alone:
            return app
        return replace(app, rate_store=store, counts_alone=False)

    def wrapped(self, application: Asgi) -> Asgi:
        """Return an application within the middleware. Raises: whatever making one of them raises."""
        for each in reversed(self.middleware):
            application = each(application)
        return application

    @property
    def names(self) -> tuple[str, ...]:
        """What the middleware is called, outermost first."""
        return tuple(name_of(each) for each in self.middleware)


def name_of(given: object) -> str:
    """Return what a function, or what makes an object, is called."""
    made = given.func if isinstance(given, partial) else given
    return getattr(made, "__name__", type(made).__name__)
