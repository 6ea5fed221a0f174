# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
"""Asks the guarded sites and the app's own paths, and prints what came of each request: one JSON object.

A program of the environment with the frameworks; it judges nothing. Each site is asked by its framework's own
test client, Django once over WSGI and once over ASGI.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final
from warnings import catch_warnings, simplefilter

from nonsuch.kernel.audit import Event

from .stage import CALLERS, EVENTS, LOADED, POSTS, RAN

TOLD: Final = ("content-type", "content-length", "www-authenticate", "retry-after")
SAID: Final = (
    *("tool", "outcome", "surface", "caller", "caller_kind", "scope", "code", "policies", "declared"),
    *("reason", "status"),
)
Headers = Mapping[str, str]
Send = Callable[[str, str, Headers, bytes], tuple[int, Any, bytes]]


def main() -> None:
    """Print {site: {case: what came of it}}; the app's own answers are those of the site `api`."""
    logging.disable(logging.CRITICAL)
    with catch_warnings():
        simplefilter("ignore")  # what the frameworks deprecate among themselves
        sites = {
            "fastapi": fastapi(),
            "flask": flask(),
            "django": django(),
            "django over asgi": django_asgi(),
        }
    told = {name: {case: asked(send, *of) for case, of in CASES.items()} for name, send in sites.items()}
    told["api"] = {case: asked(api(), *of) for case, of in OWN.items()}
    while api()(*SPEND)[0] == 200:
        pass
    told["api"]["spent"] = asked(api(), *SPEND)
    for name, send in sites.items():
        told[name]["spent"] = asked(send, *SPENT)
    json.dump(told, sys.stdout)


def token(who: str, **more: str) -> Headers:
    return {"authorization": f"Bearer {who}", **more} if who else more


SPENT: Final = ("POST", "/plain/mine", token("hasty"))
SPEND: Final = (
    "POST",
    "/api/publish",
    token("hasty", **{"content-type": "application/json"}),
    b'{"id":"mine"}',
)
WHO: Final = (*(each for each in CALLERS if each != "hasty"), "", "stranger")
CASES: Final[Mapping[str, tuple[str, str, Headers]]] = {
    **{
        f"{view} {who} {post}": ("POST", f"/{view}/{post}", token(who))
        for view in ("plain", "later")
        for who in WHO
        for post in (*POSTS, "missing", "gone")
    },
    **{f"price {who} {n}": ("POST", f"/price/{n}", token(who)) for who in WHO for n in ("5", "500", "x")},
    **{
        f"session {who} {post}": ("POST", f"/session/{post}", {"x-user": who})
        for who in WHO
        for post in POSTS
    },
    "cookie": ("POST", "/plain/mine", {"cookie": "session=human"}),
    "cookie of a foreign page": (
        "POST",
        "/plain/mine",
        {"cookie": "session=human", "origin": "https://evil.example"},
    ),
    "cookie beside a token": ("POST", "/plain/mine", {**token("stranger"), "cookie": "session=human"}),
    "open": ("GET", "/open", {}),
}
OWN: Final[Mapping[str, tuple[str, str, Headers, bytes]]] = {
    **{
        f"{who} {post}": ("POST", "/api/publish", token(who), json.dumps({"id": post}).encode())
        for who in WHO
        for post in (*POSTS, "missing")
    },
    **{
        f"price {who} {n}": ("POST", "/api/price", token(who), b'{"amount":%b}' % n.encode())
        for who in WHO
        for n in ("5", "500", '"x"')
    },
    **{
        each: ("POST", "/api/publish", CASES[each][2], b'{"id":"mine"}')
        for each in ("cookie", "cookie of a foreign page", "cookie beside a token")
    },
}


def asked(send: Send, method: str, path: str, headers: Headers, body: bytes = b"") -> dict[str, Any]:
    """Send one request, and tell its answer and all that it left behind."""
    for kept in (RAN, LOADED, EVENTS):
        kept.clear()
    status, all_headers, answer = send(method, path, headers, body)
    told = {name.lower(): value for name, value in all_headers}
    return {
        "status": status,
        "headers": {name: told[name] for name in TOLD if name in told},
        "body": answer.decode(),
        "ran": list(RAN),
        "loaded": list(LOADED),
        "events": [[type(each).__name__, _event(each)] for each in EVENTS],
    }


def _event(event: Event) -> dict[str, Any]:
    """Return what the event says of the call; when it was is another matter."""
    return {name: value for name, value in dataclasses.asdict(event).items() if name in SAID}


# the sites


def api() -> Send:
    from starlette.testclient import TestClient

    from nonsuch import asgi

    from .stage import mcp

    return _starlette(TestClient(asgi(mcp), "http://localhost"))


def fastapi() -> Send:
    from starlette.testclient import TestClient

    from .fastapi_site import site

    return _starlette(TestClient(site, "http://localhost", raise_server_exceptions=False))


def _starlette(client: Any) -> Send:
    def send(method: str, path: str, headers: Headers, body: bytes) -> tuple[int, Any, bytes]:
        typed = {"content-type": "application/json", **headers} if body else dict(headers)
        answer = client.request(method, path, headers=typed, content=body)
        return answer.status_code, answer.headers.items(), answer.content

    return send


def flask() -> Send:
    from .flask_site import site

    client = site.test_client(use_cookies=False)

    def send(method: str, path: str, headers: Headers, body: bytes) -> tuple[int, Any, bytes]:
        answer = client.open(path, "http://localhost", method=method, headers=dict(headers), data=body)
        return answer.status_code, answer.headers.items(), answer.get_data()

    return send


def django() -> Send:
    import django as framework
    from django.test import Client

    from . import django_site  # noqa: F401  (its settings)

    framework.setup()
    client = Client(raise_request_exception=False)

    def send(method: str, path: str, headers: Headers, body: bytes) -> tuple[int, Any, bytes]:
        answer = client.generic(method, path, body, headers={"host": "localhost", **headers})
        return answer.status_code, answer.headers.items(), answer.content

    return send


def django_asgi() -> Send:
    from django.core.asgi import get_asgi_application
    from starlette.testclient import TestClient

    from . import django_site  # noqa: F401  (its settings)

    return _starlette(TestClient(get_asgi_application(), "http://localhost", raise_server_exceptions=False))


if __name__ == "__main__":
    main()
