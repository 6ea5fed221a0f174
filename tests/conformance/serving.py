"""The fixture app as a server process of its own: `python -m tests.conformance.serving asgi` or `... wsgi`.

The suite sends no token, so the app stands behind a gateway that adds one. Knows nothing of the suite.
"""

import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from tempfile import TemporaryFile
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import uvicorn

from nonsuch import App, asgi, wsgi

from .environment import ROOT
from .fixture import TOKEN, app

MODULE: Final = "tests.conformance.serving"
SECONDS_TO_STOP: Final = 20


@contextmanager
def served(door: str) -> Generator[str]:
    """Yield the URL of the fixture behind a door; what the server said goes to stderr afterwards."""
    with TemporaryFile("w+") as said:
        command = [sys.executable, "-m", MODULE, door]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=said, text=True)
        try:
            yield _url(process)
        finally:
            process.terminate()
            process.communicate(timeout=SECONDS_TO_STOP)
            said.seek(0)
            sys.stderr.write(said.read())


def _url(process: subprocess.Popen[str]) -> str:
    """Wait for the one line that says where the server listens."""
    line = process.stdout.readline().strip() if process.stdout else ""
    if not line:
        raise RuntimeError(f"the server did not start: exit code {process.wait(SECONDS_TO_STOP)}")
    return line


# The program


class ThreadedServer(ThreadingMixIn, WSGIServer):
    """The standard library's WSGI server, one thread a request."""

    daemon_threads = True


class Silent(WSGIRequestHandler):
    """Logs no request."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def asgi_gateway(application: Any) -> Any:
    """Return the application behind the gateway."""

    async def gateway(scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = [*scope.get("headers", ()), (b"authorization", f"Bearer {TOKEN}".encode())]
        await application({**scope, "headers": headers}, receive, send)

    return gateway


def wsgi_gateway(application: Any) -> Any:
    """Return the application behind the gateway."""

    def gateway(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        answered: Iterable[bytes] = application(
            {**environ, "HTTP_AUTHORIZATION": f"Bearer {TOKEN}"}, start_response
        )
        return answered

    return gateway


def serve_asgi(served_app: App, listening: socket.socket) -> None:
    """Serve until terminated."""
    gateway = asgi_gateway(asgi(served_app))
    config = uvicorn.Config(gateway, log_level="warning", lifespan="on", ws="none")
    uvicorn.Server(config).run(sockets=[listening])


def serve_wsgi(served_app: App, listening: socket.socket) -> None:
    """Serve until terminated."""
    server = ThreadedServer(listening.getsockname(), Silent, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    server.server_name, server.server_port = listening.getsockname()
    server.setup_environ()
    server.set_app(wsgi_gateway(wsgi(served_app)))
    server.serve_forever()


DOORS: Final[Mapping[str, Callable[[App, socket.socket], None]]] = {"asgi": serve_asgi, "wsgi": serve_wsgi}


def main() -> None:
    """Listen on a free port, say where, and serve."""
    serve = DOORS[sys.argv[1]]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sys.stdout.write(f"http://localhost:{listening.getsockname()[1]}/mcp\n")
        sys.stdout.flush()
        serve(app, listening)


if __name__ == "__main__":
    main()
