"""`nonsuch serve` and `nonsuch dev`: mount what the app's module exports, say so, and serve it until stopped.

uvicorn serves; a signal to stop ends subscriptions at once and gives requests under way a time to end.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_network
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from ...kernel.errors import Fault
from ..edge.app import App
from ..edge.endpoints import endpoints
from ..edge.extras import ExtraMissing, require
from ..edge.runtime import Runtime, name_of
from .locate import named
from .options import AsJson, Module
from .render import Refused, Result, answer, table
from .served import (
    FACTORY,
    MODULE,
    RELOAD,
    counted_apart,
    log_to_stderr,
    loopback_only,
    mountable,
    runtime_of,
)

if TYPE_CHECKING:
    import uvicorn

log: Final = logging.getLogger("nonsuch.serve")
BACKLOG: Final = 2_048
PARSER: Final = f"{__name__.rpartition('.')[0]}.parser:Bounded"
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")

Host = Annotated[str, Parameter(help="address to listen at")]
Port = Annotated[int, Parameter(help="port to listen at; 0 takes a free one")]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be served, and where."""

    module: str
    host: str
    port: int
    workers: int = 1
    grace: int = 1
    behind: str | None = None
    dev: bool = False


def serve(
    *,
    app: Module = None,
    json: AsJson = False,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: int = 1,
    grace: int = 30,
    forwarded_allow_ips: str | None = None,
) -> None:
    """Serve the app over HTTP until SIGTERM or SIGINT; SIGHUP reads the policies again.

    Parameters
    ----------
    workers
        Processes. Give the app a `secret`, and stores that they share: else each counts rates by itself.
        SIGHUP then starts each of them anew.
    grace
        Seconds that a request under way has to end once the server is to stop. Subscriptions end at once.
    forwarded_allow_ips
        Addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed, with
        commas between. Behind a proxy that is not named all callers have its address, and one who guesses
        tokens keeps out all of them.
    """
    _served(_Plan(named(app), host, port, workers, grace, forwarded_allow_ips), as_json=json)


def dev(*, app: Module = None, json: AsJson = False, host: Host = "127.0.0.1", port: Port = 8000) -> None:
    """Serve the app on this machine: policies are read again and code is started again when files change."""
    _served(_Plan(named(app), host, port, dev=True), as_json=json)


def _served(plan: _Plan, *, as_json: bool) -> None:
    _check(plan)
    log_to_stderr()
    mounted = _mounted(plan)
    with closing(_listening(plan)) as listening:
        answer(_told(plan, mounted, listening), as_json=as_json)
        sys.stdout.flush()
        _log(plan, mounted)
        os.environ[MODULE] = plan.module
        os.environ[RELOAD] = "watch" if plan.dev else "signal"
        _run(plan, listening)


@dataclass(frozen=True, slots=True)
class _Mounted:
    """What a module exports: the apps that can be served, why the others cannot, how they run."""

    ready: tuple[App, ...]
    faults: tuple[Fault, ...]
    runtime: Runtime


def _mounted(plan: _Plan) -> _Mounted:
    ready, faults = mountable(plan.module)
    runtime = runtime_of(plan.module)
    return _Mounted(endpoints(runtime.counted(ready)), faults, runtime)


def _check(plan: _Plan) -> None:
    try:
        require("uvicorn", "nonsuch[serve]")
    except ExtraMissing as missing:
        raise Refused(missing.code, missing.cause, missing.fix) from None
    if not 0 <= plan.port <= 65_535:
        raise Refused("X_CLI_USAGE", f"`--port {plan.port}` is no port", "give 0 to 65535")
    if plan.workers < 1:
        raise Refused("X_CLI_USAGE", f"`--workers {plan.workers}` serves nothing", "give 1 or more")
    if plan.grace < 0:
        raise Refused("X_CLI_USAGE", f"`--grace {plan.grace}` is no time", "give 0 or more seconds")
    for each in () if plan.behind is None else plan.behind.split(","):
        _check_proxy(each.strip())


def _check_proxy(named: str) -> None:
    """Refuse what is no address: `*` would believe whatever a caller says of itself, a slip nobody."""
    try:
        ip_network(named)
    except ValueError:
        cause = f"`--forwarded-allow-ips` names `{named}`, which is no address and no network"
        raise Refused("X_CLI_USAGE", cause, "name proxies or their networks: 10.0.0.0/8,fd00::/8") from None


def _listening(plan: _Plan) -> socket.socket:
    """Listen before any process is started: whoever reads our address may connect at once."""
    family = socket.AF_INET6 if ":" in plan.host else socket.AF_INET
    try:
        made = socket.create_server((plan.host, plan.port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as refusal:
        why = str(getattr(refusal, "strerror", None) or refusal).partition(" (")[0].lower()
        cause = f"`{plan.host}` port {plan.port} cannot be listened at: {why}"
        raise Refused("X_SERVE_ADDRESS", cause) from None
    made.set_inheritable(True)
    return made


def _run(plan: _Plan, listening: socket.socket) -> None:
    """Serve, and come back once a signal to stop was obeyed. Raises: Refused, if it did not start."""
    import uvicorn
    from uvicorn.supervisors import ChangeReload, Multiprocess

    config = _config(plan)
    if plan.dev:
        ChangeReload(config, target=uvicorn.Server(config).run, sockets=[listening]).run()
    elif plan.workers > 1:
        crew = Multiprocess(config, sockets=[listening])
        crew.run()
        if any(each.exitcode not in (0, -signal.SIGTERM) for each in crew.processes):
            raise Refused("X_SERVE_FAILED", "a worker did not start")
    else:
        _in_this_process(uvicorn.Server(config), listening)


def _in_this_process(server: uvicorn.Server, listening: socket.socket) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):  # it raises them again once it has obeyed them
        signal.signal(each, _heard)
    try:
        server.run(sockets=[listening])
    except SystemExit:
        raise Refused("X_SERVE_FAILED", "the lifespan of the app did not start") from None


def _heard(_number: int, _frame: FrameType | None) -> None:
    """The server has stopped because of it."""


def _config(plan: _Plan) -> uvicorn.Config:
    import uvicorn

    return uvicorn.Config(
        FACTORY,
        factory=True,
        http=PARSER if find_spec("httptools") else "h11",
        interface="asgi3",
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=plan.behind is not None,
        forwarded_allow_ips=plan.behind,
        workers=plan.workers,
        reload=plan.dev,
        timeout_graceful_shutdown=plan.grace,
    )


# what is said at boot


def _log(plan: _Plan, mounted: _Mounted) -> None:
    for each in mounted.ready:
        log.info("app mcp mounted: `%s` at POST %s", each.name, each.path)
    for fault in mounted.faults:
        log.error("%s", fault)
    _log_runtime(plan, mounted)
    names = loopback_only(mounted.ready)
    if plan.host not in LOOPBACK and names:
        log.warning("`%s` answers to loopback names alone: list others in `allowed_hosts`", _listed(names))
    apart = counted_apart(mounted.ready)
    if plan.workers > 1 and apart:
        told = "`%s` counts rates in each of %d processes by itself: give it a `rate_limit_store`"
        log.warning(told, _listed(apart), plan.workers)


def _log_runtime(plan: _Plan, mounted: _Mounted) -> None:
    runtime = mounted.runtime
    if runtime.middleware:
        log.info("runtime of `%s`: within `%s`", plan.module, _listed(runtime.names))
    if runtime.rate_limit_store is not None:
        log.info("runtime of `%s`: rates in `%s`", plan.module, name_of(runtime.rate_limit_store))


def _listed(names: Iterable[str]) -> str:
    return "`, `".join(names)


def _told(plan: _Plan, mounted: _Mounted, listening: socket.socket) -> Result:
    url = _url(plan.host, listening.getsockname()[1])
    rows = [(each.name, each.path, len(each.kernel.catalog.entries)) for each in mounted.ready]
    store = mounted.runtime.rate_limit_store
    document: dict[str, Any] = {
        "url": url,
        "workers": plan.workers,
        "endpoints": [{"name": name, "mcp": url + path, "tools": tools} for name, path, tools in rows],
        "unmounted": [{"code": each.code, "cause": each.cause, "fix": each.fix} for each in mounted.faults],
        "runtime": {
            "middleware": list(mounted.runtime.names),
            "rate_limit_store": None if store is None else name_of(store),
        },
    }

    def show(console: Console) -> None:
        lines = [("mcp", f"POST {url}{path}", name, str(tools)) for name, path, tools in rows]
        console.print(table(("", "", "app", "actions"), [*lines, ("api", f"{url}/api/", rows[0][0], "")]))
        console.print(Text("stop it with Ctrl+C"))

    return Result(document, show)


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
