"""The app behind the raw requests, and its doors on real sockets: both parsers of uvicorn, and WSGI.

Counts the calls of a tool that no attempt may reach.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import uvicorn

from nonsuch import Agent, App, Registry, asgi, can, define_app_mcp, expose, grant, wsgi
from nonsuch.adapters.cli.serve import PARSER

from ..adapters.edge.environs import served
from .raw import BODY_LIMIT

Address = tuple[str, int]
ANN = Agent("ann", roles={"member"})


@dataclass
class Marked:
    """An app, and how often its tool ran."""

    marks: int = 0
    app: App = field(init=False)

    def __post_init__(self) -> None:
        registry = Registry()

        @registry.query(policy=can("mark:make"), mcp=expose("Leave a mark"))
        def mark() -> str:
            self.marks += 1
            return "marked"

        def resolve(token: str) -> Agent | None:
            return ANN if token == "ann" else None

        self.app = define_app_mcp(
            registry,
            name="marked",
            include="exposed",
            grants=[grant("member", "any")],
            resolve_token=resolve,
            body_limit_bytes=BODY_LIMIT,
            rate_limits=None,
        )


def config(app: App, parser: str) -> uvicorn.Config:
    """Return uvicorn's settings as `nonsuch serve` has them, whose parser is named `serve`."""
    return uvicorn.Config(
        asgi(app),
        http=PARSER if parser == "serve" else parser,
        interface="asgi3",
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )


@contextmanager
def over_asgi(app: App, parser: str) -> Generator[Address]:
    """Serve on a free port, in a thread."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(config(app, parser))
    thread = threading.Thread(target=asyncio.run, args=(server.serve([listening]),))
    thread.start()
    try:
        yield listening.getsockname()
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def over_wsgi(app: App) -> Generator[Address]:
    """Serve on a free port, each request in a thread."""
    door = wsgi(app)
    try:
        with served(door) as address:
            yield address
    finally:
        door.close()
