# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
"""Serves one mount under one server until the process is told to stop. Runs where the frameworks are."""

import asyncio
import atexit
import importlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

HOST: Final = "127.0.0.1"
THREADS: Final = 8
GRACE_SECONDS: Final = 2


def uvicorn_h11(application: Any, port: int) -> None:
    _uvicorn(application, port, "h11")


def uvicorn_httptools(application: Any, port: int) -> None:
    _uvicorn(application, port, "httptools")


def _uvicorn(application: Any, port: int, http: str) -> None:
    import uvicorn

    uvicorn.run(
        application,
        host=HOST,
        port=port,
        http=http,
        log_level="warning",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def hypercorn_asgi(application: Any, port: int) -> None:
    _hypercorn(application, port, "asgi")


def hypercorn_wsgi(application: Any, port: int) -> None:
    _hypercorn(application, port, "wsgi")


def _hypercorn(application: Any, port: int, mode: str) -> None:
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    config = Config()
    config.bind, config.graceful_timeout = [f"{HOST}:{port}"], GRACE_SECONDS

    async def main() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await serve(application, config, shutdown_trigger=stop.wait, mode=mode)

    asyncio.run(main())


def granian_asgi(application: Any, port: int) -> None:
    _granian(application, port, "asgi")


def granian_wsgi(application: Any, port: int) -> None:
    _granian(application, port, "wsgi")


def _granian(application: Any, port: int, interface: str) -> None:
    from granian import Granian

    multiprocessing.set_start_method("fork", force=True)  # everything is imported already
    threads = THREADS if interface == "wsgi" else None
    server = Granian("mount", HOST, port, interface=interface, blocking_threads=threads, log_enabled=False)
    server.serve(target_loader=lambda *_: application, wrap_loader=False)


def gunicorn_asgi(application: Any, port: int) -> None:
    _gunicorn(application, port, worker_class="uvicorn_worker.UvicornWorker")


def gunicorn_wsgi(application: Any, port: int) -> None:
    _gunicorn(application, port, worker_class="gthread", threads=THREADS)


def _gunicorn(application: Any, port: int, **options: Any) -> None:
    from gunicorn.app.base import BaseApplication

    class Mounted(BaseApplication):
        def load_config(self) -> None:
            bound = {"bind": f"{HOST}:{port}", "graceful_timeout": GRACE_SECONDS, "loglevel": "warning"}
            for name, value in {**bound, **options}.items():
                self.cfg.set(name, value)

        def load(self) -> Any:
            return application

    Mounted().run()


def waitress(application: Any, port: int) -> None:
    import waitress as server

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server.serve(application, host=HOST, port=port, threads=THREADS, _quiet=True)


def aiohttp(application: Any, port: int) -> None:
    from aiohttp import web

    web.run_app(application, host=HOST, port=port, print=None, shutdown_timeout=GRACE_SECONDS)


SERVERS: Final[Mapping[str, Callable[[Any, int], None]]] = {
    each.__name__: each
    for each in (
        uvicorn_h11,
        uvicorn_httptools,
        hypercorn_asgi,
        granian_asgi,
        gunicorn_asgi,
        aiohttp,
        gunicorn_wsgi,
        waitress,
        granian_wsgi,
        hypercorn_wsgi,
    )
}


def host(mount: str, server: str, port: int, output: str) -> None:
    """Serve, and write whatever is said to a file."""
    said = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    module = importlib.import_module(f"tests.frameworks.mounts.{mount}")
    try:
        SERVERS[server](module.application, port)
    finally:
        atexit._run_exitfuncs()  # a server is started as a program, and a child of multiprocessing is none
