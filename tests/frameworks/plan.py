"""Which framework is mounted under which server, what is checked there, and what is not and why. A table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Server:
    """A server as the tests start it, and its name for people."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Framework:
    """One mount: its file, its name for people, the servers that can run it, and the app's prefix."""

    mount: str
    title: str
    servers: tuple[str, ...]
    prefix: str = "/agents"


ASGI: Final = (
    Server("uvicorn_h11", "uvicorn, h11"),
    Server("uvicorn_httptools", "uvicorn, httptools"),
    Server("hypercorn_asgi", "hypercorn"),
    Server("granian_asgi", "granian"),
    Server("gunicorn_asgi", "gunicorn, uvicorn-worker"),
    Server("aiohttp", "aiohttp"),
)
WSGI: Final = (
    Server("gunicorn_wsgi", "gunicorn, gthread"),
    Server("waitress", "waitress"),
    Server("granian_wsgi", "granian"),
    Server("hypercorn_wsgi", "hypercorn"),
)
_ANY: Final = tuple(each.name for each in ASGI if each.name != "aiohttp")
_THREADED: Final = tuple(each.name for each in WSGI)

OVER_ASGI: Final = (
    Framework("nonsuch_asgi", "none", _ANY, ""),
    Framework("starlette", "Starlette", _ANY),
    Framework("fastapi", "FastAPI", _ANY),
    Framework("litestar", "Litestar", _ANY),
    Framework("quart", "Quart", _ANY),
    Framework("django_asgi", "Django", _ANY),
    Framework("falcon_asgi", "Falcon", _ANY),
    Framework("aiohttp", "aiohttp", ("aiohttp",)),
)
OVER_WSGI: Final = (
    Framework("nonsuch_wsgi", "none", _THREADED, ""),
    Framework("flask", "Flask", _THREADED),
    Framework("django_wsgi", "Django", _THREADED),
    Framework("falcon_wsgi", "Falcon", _THREADED),
    Framework("bottle", "Bottle", _THREADED),
    Framework("pyramid", "Pyramid", _THREADED),
)
PAIRS: Final = tuple((each, server) for each in (*OVER_ASGI, *OVER_WSGI) for server in each.servers)

NO_PAIR: Final = "aiohttp's applications run on its own server, and no others do"
# What a server does for no application: (server, check) and why. Nothing is run there.
NOT: Final[Mapping[tuple[str, str], str]] = {
    ("hypercorn_wsgi", "disconnect"): "hypercorn never tells a WSGI application that its client has left",
}

# Every check, in the order of the table; `checks.py` has those over a socket, and `stop` ends the server.
CHECKS: Final[Mapping[str, str]] = {
    "list": "the tools that the caller sees",
    "call": "a call that reads what the lifespan yielded",
    "hidden": "a hidden tool answers as one nobody declared, byte for byte",
    "scope": "a missing scope",
    "policy": "a refusal by policy",
    "413": "a body that is too large",
    "429": "a rate that is used up, on a second endpoint beside the first",
    "401": "no token",
    "stream": "events that leave while the handler runs",
    "disconnect": "a client that leaves stops its call",
    "stop": "SIGTERM ends the server in time, and the lifespan was left",
}


def planned(server: str) -> tuple[str, ...]:
    """Return the checks that are run under a server."""
    return tuple(check for check in CHECKS if (server, check) not in NOT)
