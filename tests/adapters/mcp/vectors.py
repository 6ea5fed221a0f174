"""Reads cases of `tests/vectors/mcp_*.json` and compares an answer with the whole of what a case settles."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .press import VECTORS
from .wire import Answer, Request


@dataclass(frozen=True, slots=True)
class Case:
    """One request and its answer, as another language could read them."""

    name: str
    request: Request
    status: int
    headers: Mapping[str, str] | None
    body: str | None
    exact: bool
    method: str | None
    revision: str | None

    def expected(self) -> tuple[object, ...]:
        """Return everything that the case settles."""
        return self.status, self.headers, self.body

    def settled(self, answer: Answer) -> tuple[object, ...]:
        """Return of an answer what the case settles. Raises AssertionError when it lies about its length."""
        headers = dict(answer.headers)
        length = headers.pop("content-length", None)
        assert length in (None, str(len(answer.body)))
        assert (length is None) <= (answer.body == b"" or headers.get("cache-control") == "no-store")
        return (
            answer.status,
            None if self.headers is None else headers,
            None if self.body is None else _spelt(answer.body, exact=self.exact),
        )


def _spelt(body: bytes, *, exact: bool) -> str:
    """Return the text of a body, or with `exact` false one spelling of its value, types told apart."""
    return body.decode() if exact else canonical(json.loads(body))


def canonical(value: object) -> str:
    """Return one spelling of a JSON value."""
    return json.dumps(value, sort_keys=True)


def cases_of(file: str) -> list[Case]:
    """Return the cases of a file of vectors."""
    return [_case(entry) for entry in json.loads((VECTORS / file).read_text("utf-8"))["cases"]]


def _case(entry: Mapping[str, Any]) -> Case:
    asked, told = entry["request"], entry["response"]
    headers = tuple((name, value) for name, value in asked["headers"])
    exact = "text" in told
    body = told["text"] if exact else canonical(told["json"]) if "json" in told else None
    return Case(
        entry["name"],
        Request(asked["method"], asked["path"], headers, _body(asked)),
        told["status"],
        told.get("headers"),
        body,
        exact,
        entry.get("method"),
        entry.get("revision"),
    )


def _body(asked: Mapping[str, Any]) -> bytes:
    if "base64" in asked:
        return b64decode(asked["base64"])
    text: str = asked["text"] if "text" in asked else json.dumps(asked["json"]) if "json" in asked else ""
    return text.encode().ljust(asked.get("padTo", 0))
