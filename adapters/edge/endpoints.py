"""One app or several, served together: what may be mounted, whose a request is, their lifespans as one.

Each app is a server of its own at its own MCP path. Knows no server protocol.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from ...kernel.errors import BootError, Fault, fault
from ..wire import Head
from .app import App
from .memory import give_back
from .opening import Open
from .reload import When, reloading
from .route import is_mcp
from .run import Clock, Running
from .signals import foretold

Mounted = App | Sequence[App]


def endpoints(given: Mounted) -> tuple[App, ...]:
    """Return the apps to serve, the first of which owns every path that is no other's.

    Raises: BootError, when there is none, one cannot tell who calls, or two have one path.
    """
    apps = (given,) if isinstance(given, App) else tuple(given)
    faults = [*unmounted(apps), *_duplicates(apps)]
    if faults:
        raise BootError(faults)
    return apps


def unmounted(apps: Sequence[App]) -> list[Fault]:
    """Return why apps cannot be served over HTTP."""
    if not apps:
        return [fault("X_MCP_APP_UNMOUNTED", "there is no app to serve", "give one app, or a list of them")]
    nobody = (each for each in apps if each.resolve_token is None and each.resolve_principal is None)
    return [fault("X_MCP_APP_UNMOUNTED", f"`{each.name}` has no `resolve_token`") for each in nobody]


def _duplicates(apps: Sequence[App]) -> list[Fault]:
    first, faults = dict[str, str](), list[Fault]()
    for app in apps:
        if app.path in first:
            cause = f"`{first[app.path]}` and `{app.name}` are both at `{app.path}`"
            faults.append(fault("X_MCP_PATH_DUPLICATE", cause))
        first.setdefault(app.path, app.name)
    return faults


def chosen(apps: tuple[App, ...], head: Head) -> App:
    """Return whose a request is: by its path alone, so that the answer tells nothing of a caller.

    Another than the first has its MCP path and its own well-known document (RFC 9728 3.1); the root's
    document, ``/api/...`` and every unknown path are the first one's.
    """
    for app in apps[1:]:
        protected = app.mcp.protected
        if is_mcp(app, head) or (protected is not None and protected.serves(head, root=False)):
            return app
    return apps[0]


@asynccontextmanager
async def opened(
    apps: tuple[App, ...], clock: Clock, reload: When | None
) -> AsyncGenerator[Mapping[App, Running]]:
    """Enter the lifespans of all apps in their order, and leave them in the other; the policies reload."""
    async with AsyncExitStack() as stack:
        running = {app: await stack.enter_async_context(Open(app, clock)) for app in apps}
        await stack.enter_async_context(reloading(apps, reload))
        stack.enter_context(foretold(partial(hush, apps)))
        for app in apps:
            app.notify.reopen()
        give_back()
        try:
            yield running
        finally:
            hush(apps)


def hush(apps: Sequence[App]) -> None:
    """End every subscription, with its last message: the server stops."""
    for app in apps:
        app.notify.close()
