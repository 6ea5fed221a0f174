"""A server's side of WSGI, in memory and on a socket: builds environments, keeps what it is answered.

Knows no app. Headers are folded as servers fold them: a repeated one is joined with a comma.
"""

import io
import socket
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import quote
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.util import setup_testing_defaults

PATIENCE = 20


class Input:
    """A body that counts how often it is asked, and may end early or raise."""

    def __init__(self, body: bytes, *, fault: Exception | None = None) -> None:
        self._file, self._fault = io.BytesIO(body), fault
        self.asked: list[int] = []

    def read(self, size: int = -1) -> bytes:
        assert size > 0, "who reads all of it may wait for ever"
        self.asked.append(size)
        if self._fault is not None:
            raise self._fault
        return self._file.read(size)

    def readline(self, size: int = -1) -> bytes:
        """Be what PEP 3333 asks for; nobody calls it."""
        raise NotImplementedError

    readlines = __iter__ = readline


def environ_of(
    method: str,
    path: str,
    headers: Iterable[tuple[str, str]] = (),
    body: bytes = b"",
    *,
    script: str = "",
    source: Input | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the environment of a request (PEP 3333: bytes as latin-1)."""
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": script,
        "PATH_INFO": path.encode("utf-8", "surrogateescape").decode("latin-1"),
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": source or Input(body),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "CONTENT_LENGTH": str(len(body)),
    }
    for name, value in headers:
        key = name.upper().replace("-", "_")
        key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
        environ[key] = f"{environ[key]},{value}" if key in environ and key != "CONTENT_LENGTH" else value
    return {**environ, **more}


@dataclass
class Answered:
    """An answer, as it left."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    parts: list[bytes] = field(default_factory=list[bytes])

    @property
    def body(self) -> bytes:
        """All of it."""
        return b"".join(self.parts)


class Asking:
    """One request under way: its status is known, its parts are taken one at a time."""

    def __init__(self, application: Any, environ: Mapping[str, Any]) -> None:
        self.answered = Answered()
        self._body = application(dict(environ), self._start)
        self._parts = iter(self._body)

    def _start(self, status: str, headers: list[tuple[str, str]], _fault: object = None) -> Any:
        code, _, phrase = status.partition(" ")
        assert phrase
        self.answered.status, self.answered.headers = int(code), headers
        return None

    def part(self) -> bytes:
        """Take the next part."""
        part: bytes = next(self._parts)
        self.answered.parts.append(part)
        return part

    def rest(self) -> Answered:
        """Take all there is."""
        self.answered.parts.extend(self._parts)
        return self.answered

    def leave(self) -> None:
        """Let go of it, as servers do at the end and when the client left."""
        close = getattr(self._body, "close", None)
        if close is not None:
            close()


def asked(application: Any, *request: Any, **more: Any) -> Answered:
    """Ask, and take the whole answer."""
    asking = Asking(application, environ_of(*request, **more))
    try:
        return asking.rest()
    finally:
        asking.leave()


def defaults() -> dict[str, Any]:
    """Return an environment that the standard library fills in."""
    environ: dict[str, Any] = {}
    setup_testing_defaults(environ)
    return environ


# on a socket


class ThreadedServer(ThreadingMixIn, WSGIServer):
    """The standard library's WSGI server, one thread a request."""

    daemon_threads = True
    request_queue_size = 256


class Silent(WSGIRequestHandler):
    """Logs no request."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(application: Any) -> Generator[tuple[str, int]]:
    """Serve on a free port."""
    server = ThreadedServer(("127.0.0.1", 0), Silent)
    server.set_app(application)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield ("127.0.0.1", server.server_port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def posted(path: str, headers: Iterable[tuple[str, str]], body: bytes, *, method: str = "POST") -> bytes:
    """Return a request as it is written on the wire."""
    lines = [f"{method} {quote(path)} HTTP/1.0", *(f"{name}: {value}" for name, value in headers)]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def connected(address: tuple[str, int]) -> socket.socket:
    """Connect, with little patience."""
    client = socket.socket()
    client.settimeout(PATIENCE)
    client.connect(address)
    return client


def received(client: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Read until the server closes, and return status, headers and body."""
    return parsed(b"".join(iter(partial(client.recv, 65_536), b"")))


def parsed(raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Take an answer apart."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split(" ")[1]), headers, body
