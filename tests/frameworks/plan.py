"""Which framework is mounted under which server, and why some are not. A table, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Framework:
    """One mount: its file, its name for people, and the prefix that the app is under."""

    mount: str
    title: str
    servers: tuple[str, ...]
    prefix: str = "/agents"


ASGI: Final = ("uvicorn_h11", "uvicorn_httptools", "hypercorn_asgi", "granian_asgi", "gunicorn_asgi")
WSGI: Final = ("gunicorn_wsgi", "waitress", "granian_wsgi", "hypercorn_wsgi")

FRAMEWORKS: Final = (
    Framework("nonsuch_asgi", "none, ASGI", ASGI, ""),
    Framework("starlette", "Starlette", ASGI),
    Framework("fastapi", "FastAPI", ASGI),
    Framework("litestar", "Litestar", ASGI),
    Framework("quart", "Quart", ASGI),
    Framework("django_asgi", "Django, ASGI", ASGI),
    Framework("falcon_asgi", "Falcon, ASGI", ASGI),
    Framework("aiohttp", "aiohttp", ("aiohttp",)),
    Framework("nonsuch_wsgi", "none, WSGI", WSGI, ""),
    Framework("flask", "Flask", WSGI),
    Framework("django_wsgi", "Django, WSGI", WSGI),
    Framework("falcon_wsgi", "Falcon, WSGI", WSGI),
    Framework("bottle", "Bottle", WSGI),
    Framework("pyramid", "Pyramid", WSGI),
)

PAIRS: Final = tuple((each, server) for each in FRAMEWORKS for server in each.servers)

# What a server does to every mount, or to one: (framework or None, server, check) and why.
NOT: Final[Mapping[tuple[str | None, str, str], str]] = {}
