"""Postly as a server process with a database of its own: prints its address and a token of each person.

Run as ``python -m tests.adapters.http.postly_server``; ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading

import uvicorn

from nonsuch import asgi
from nonsuch.adapters.demo.postly import db as tables
from nonsuch.adapters.demo.postly.app import postly
from nonsuch.adapters.demo.postly.tokens import issue
from nonsuch.adapters.edge.embedded import embedded_postgres


def main() -> None:
    """Serve until nobody needs it any more."""
    with embedded_postgres() as dsn, socket.socket() as door:
        asyncio.run(tables.prepare(dsn))
        tokens = issue()
        door.bind(("127.0.0.1", 0))
        app = asgi(postly(dsn, tokens, rate_limits=None))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        threading.Thread(target=_watch, args=(server,), daemon=True).start()
        told = {"url": f"http://127.0.0.1:{door.getsockname()[1]}", "tokens": dict(tokens.by_person)}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
        server.run([door])


def _watch(server: uvicorn.Server) -> None:
    sys.stdin.read()
    server.should_exit = True


if __name__ == "__main__":
    main()
