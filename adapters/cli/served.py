"""The ASGI application of `nonsuch serve` and `nonsuch dev`, as each of their processes makes it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn, cast

from ...kernel.errors import BootError, Fault, fault
from ..edge.app import App
from ..edge.asgi import Application, asgi
from ..edge.endpoints import unmounted
from ..edge.reload import When
from .locate import Unexported, apps
from .render import Refused

FACTORY: Final = f"{__name__}:application"
MODULE: Final = "NONSUCH_SERVED_MODULE"
RELOAD: Final = "NONSUCH_SERVED_RELOAD"
CODE: Final = "X_MCP_APP_UNMOUNTED"
NOT_STARTED: Final = 3  # of a process; its supervisor then stops, where it would start another


def application() -> Application:
    """Return the application that the environment names; a process that cannot have it ends."""
    log_to_stderr()
    module, reload = os.environ[MODULE], os.environ.get(RELOAD)
    try:
        ready, _ = mountable(module)
        return asgi(ready, reload=cast("When | None", reload))
    except (BootError, Refused) as refusal:
        _end(refusal)


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


def _file(module: str) -> str:
    return getattr(sys.modules.get(module), "__file__", None) or module


def log_to_stderr() -> None:
    """Log what an operator reads; of the server only what went wrong."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def loopback_only(served: Sequence[App]) -> list[str]:
    """Return the names of apps that answer to loopback names alone."""
    return [app.name for app in served if not app.mcp.door.hosts]
