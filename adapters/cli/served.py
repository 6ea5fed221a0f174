"""The ASGI application of `nonsuch serve` and `nonsuch dev`, as each of their processes makes it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn, cast

from ...kernel.errors import BootError, Fault, fault
from ..edge.app import App
from ..edge.asgi import asgi
from ..edge.endpoints import unmounted
from ..edge.reload import When
from ..edge.runtime import Asgi, Runtime
from .locate import CODE as NOT_FOUND
from .locate import Unexported, apps
from .render import Refused

FACTORY: Final = f"{__name__}:application"
MODULE: Final = "NONSUCH_SERVED_MODULE"
RELOAD: Final = "NONSUCH_SERVED_RELOAD"
CODE: Final = "X_MCP_APP_UNMOUNTED"
NOT_STARTED: Final = 3  # of a process; its supervisor then stops, where it would start another


def application() -> Asgi:
    """Return the application that the environment names; a process that cannot have it ends."""
    log_to_stderr()
    module, reload = os.environ[MODULE], os.environ.get(RELOAD)
    try:
        ready, _ = mountable(module)
        runtime = runtime_of(module)
        return _wrapped(module, runtime, asgi(runtime.counted(ready), reload=cast("When | None", reload)))
    except (BootError, Refused) as refusal:
        _end(refusal)


def _wrapped(module: str, runtime: Runtime, made: Asgi) -> Asgi:
    try:
        return runtime.wrapped(made)
    except Exception as raised:  # noqa: BLE001  (application code: whatever it raises is told)
        cause = f"the middleware of `runtime` in `{_file(module)}` raised {type(raised).__name__}"
        raise Refused("X_SERVE_FAILED", cause, "give functions that take an ASGI application") from None


def _end(refusal: BootError | Refused) -> NoReturn:
    print(refusal, file=sys.stderr, flush=True)
    sys.exit(NOT_STARTED)


def mountable(module: str) -> tuple[tuple[App, ...], tuple[Fault, ...]]:
    """Return the apps of a module that can be served over HTTP, and why the others cannot.

    Raises: Refused, where there is none; BootError.
    """
    try:
        found = apps(module)
    except Unexported as refusal:
        raise Refused(CODE, refusal.cause, refusal.fix) from None
    faults = unmounted(found)
    fix = f"give `define_app_mcp` in `{_file(module)}` a `resolve_token`"
    told = tuple(fault(each.code, each.cause, fix) for each in faults)
    ready = tuple(app for app in found if not unmounted([app]))
    if not ready:
        raise Refused(CODE, told[0].cause, fix)
    return ready, told


def runtime_of(module: str) -> Runtime:
    """Return what a module that was imported exports as `runtime`, or how apps run without one.

    Raises: Refused, for something else of that name.
    """
    found = getattr(sys.modules[module], "runtime", None)
    if found is None:
        return Runtime()
    if not isinstance(found, Runtime):
        cause = f"`runtime` of `{module}` is a {type(found).__name__}"
        raise Refused(NOT_FOUND, cause, "export a `nonsuch.Runtime(...)`, or call what it is something else")
    return found


def _file(module: str) -> str:
    return getattr(sys.modules.get(module), "__file__", None) or module


def log_to_stderr() -> None:
    """Log what an operator reads; of the server only what went wrong."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def counted_apart(served: Sequence[App]) -> list[str]:
    """Return the names of apps that would count by themselves in each of several processes."""
    return [app.name for app in served if app.counts_alone and app.mcp.door.rates is not None]


def loopback_only(served: Sequence[App]) -> list[str]:
    """Return the names of apps that answer to loopback names alone."""
    return [app.name for app in served if not app.mcp.door.hosts]
