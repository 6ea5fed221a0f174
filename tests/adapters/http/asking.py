"""Asks the app of `press.py` over HTTP, every way at once; knows no test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nonsuch import App
from nonsuch.kernel.codes import CODES

from ..mcp.press import DESCRIBED, press
from ..mcp.wire import Answer, Request, in_process, sans_io

APP = press()
TYPED = ("content-type", "application/json")
PROBLEM = ("content-type", "application/problem+json")
REALM = 'Bearer realm="nonsuch-mcp"'
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY")


def request(
    caller: str | None,
    path: str,
    body: bytes = b"{}",
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
) -> Request:
    """Return a request; a header given as an empty text is left out."""
    given = {"Host": "localhost", "Content-Type": "application/json", **(headers or {})}
    if caller is not None:
        given["Authorization"] = f"Bearer {caller}"
    return Request(method, path, tuple((name, value) for name, value in given.items() if value), body)


def ask(whole: Request, app: App = APP) -> Answer:
    """Ask the generators, and ASGI whole and in single bytes: one answer."""
    alone = sans_io(app, whole)
    assert in_process(app, whole) == alone
    if len(whole.body) <= DESCRIBED["bodyLimitBytes"] + 1:
        assert in_process(app, whole, 1) == alone
    return alone


def call(caller: str | None, path: str, **arguments: Any) -> Answer:
    return ask(request(caller, f"/api/{path}", json.dumps(arguments).encode()))


def told(answer: Answer) -> tuple[int, Any]:
    """The status and the value; of a refusal our members, after RFC 9457's were found to say the same."""
    value = json.loads(answer.body)
    if answer.status < 400:
        return answer.status, value
    assert dict(answer.headers)["content-type"] == PROBLEM[1]
    return answer.status, plain(value, answer.status)


def plain(value: dict[str, Any], status: int) -> dict[str, str]:
    ours = {name: value[name] for name in ("code", "cause", "fix", "docs")}
    title = CODES[ours["code"]].cause if ours["code"] in CODES else ours["code"]
    theirs = {"type": ours["docs"], "title": title, "status": status, "detail": ours["cause"]}
    assert value == {**ours, **theirs}
    return ours


def challenge(answer: Answer) -> str | None:
    return dict(answer.headers).get("www-authenticate")


def error(code: str, cause: str, fix: str) -> dict[str, str]:
    return {"code": code, "cause": cause, "fix": fix, "docs": f"nonsuch://errors/{code}"}


UNKNOWN = error("X_ROUTE_NOT_FOUND", "no action answers at that path", "check the path")
