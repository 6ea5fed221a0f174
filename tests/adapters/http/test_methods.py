"""What each method does at each path, and that a hidden path does what no path does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pytest

from nonsuch import App, Registry, can, wsgi
from nonsuch.kernel.audit import Event, ToolCall

from ...kernel.trial import faults
from .asking import METHODS, UNKNOWN, error, told
from .counter import APP, CALLERS, RAN, ask, counter, header

KEY = "idempotency-key"

# what runs


@pytest.mark.parametrize(
    ("method", "target", "body", "name", "what"),
    [
        (
            "GET",
            "items?state_in=new,sold&limit=5",
            None,
            "listItems",
            {"state_in": ["new", "sold"], "limit": 5},
        ),
        ("POST", "items", {"limit": 5}, "listItems", {"limit": 5}),
        ("GET", "items/get?id=a%20b", None, "getItem", {"id": "a b"}),
        ("HEAD", "items/get?id=i1", None, "getItem", {"id": "i1"}),
        ("POST", "items/search", {"item": {"id": "1"}}, "searchItems", {"item": {"id": "1"}}),
        ("POST", "items/sell", {"id": "1"}, "sellItem", {"id": "1"}),
        ("PUT", "items/change", {"id": "1"}, "changeItem", {"id": "1"}),
        ("PATCH", "items/change", {"id": "1"}, "changeItem", {"id": "1"}),
    ],
)
def test_a_declared_method_runs_its_action(
    method: str, target: str, body: object, name: str, what: dict[str, Any]
) -> None:
    RAN.clear()
    answer = ask(method, target, body)
    assert answer.status == 200
    assert [name] == RAN
    heard: Any = json.loads(answer.body.strip(b"[]"))
    if name == "searchItems":
        assert heard == {**what["item"], "state": "new"}
    else:
        assert json.loads(heard["what"]) == what


def test_a_deletion_takes_its_arguments_from_the_query_string() -> None:
    RAN.clear()
    assert told(ask("DELETE", "items/drop?id=1", headers={KEY: "k1"})) == (200, None)
    assert RAN == ["dropItem"]


@pytest.mark.parametrize(
    "target", ["items?secret=1", "items?limit=21", "items?sort=price", "items?limit=5&limit=6"]
)
def test_a_query_string_is_judged_by_the_published_whitelist(target: str) -> None:
    RAN.clear()
    status, body = told(ask("GET", target))
    assert (status, body["code"]) == (422, "X_INPUT_INVALID")
    assert RAN == []


def test_what_a_get_answers_is_nobodys_to_keep() -> None:
    for method, target in (("GET", "items"), ("HEAD", "items"), ("GET", "nope"), ("GET", "items/sell")):
        assert header(ask(method, target), "cache-control") == "no-store"
    assert header(ask("POST", "items", {}), "cache-control") is None


# what does not


ALLOWED = {
    "items": "GET, HEAD, OPTIONS, POST",
    "items/get": "GET, HEAD, OPTIONS",
    "items/search": "OPTIONS, POST",
    "items/sell": "OPTIONS, POST",
    "items/change": "OPTIONS, PATCH, PUT",
    "items/drop": "DELETE, OPTIONS",
    "openapi.json": "GET, HEAD, OPTIONS",
}
NOT_ALLOWED = error(
    "X_METHOD_NOT_ALLOWED",
    "the path answers other methods than this one",
    "send one of the methods that `Allow` names",
)


@pytest.mark.parametrize("path", ALLOWED)
@pytest.mark.parametrize("method", [*METHODS, "TRACE", "get", "FOO"])
def test_another_method_is_told_which_there_are(path: str, method: str) -> None:
    RAN.clear()
    answer = ask(method, path, {"id": "1"}, headers={KEY: "k"})
    if method == "OPTIONS":
        assert (answer.status, answer.body, header(answer, "allow")) == (204, b"", ALLOWED[path])
    elif method not in ALLOWED[path].split(", "):
        assert told(answer) == (405, NOT_ALLOWED)
        assert header(answer, "allow") == ALLOWED[path]
        assert RAN == []
    else:
        assert answer.status in (200, 404, 422)
        assert header(answer, "allow") is None


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
@pytest.mark.parametrize("path", ["items", "items/change", "nope"])
def test_the_arguments_of_a_body_are_in_the_body(method: str, path: str) -> None:
    cause = f"the arguments of a {method} come in its body, and none in the query string"
    fix = "correct the named fields and send the call again"
    assert told(ask(method, f"{path}?limit=5", {})) == (422, error("X_INPUT_INVALID", cause, fix))


# a hidden path

HIDDEN = ("items/sell", "items/drop")
BODIES: tuple[object, ...] = (None, {}, {"id": "1"}, [])
TARGETS = ("", "?", "?id=1", "?id=1&id=2", "?%ff", "/", "//", "?idempotencyKey=k")


@pytest.mark.parametrize("method", [*METHODS, "TRACE", "FOO"])
@pytest.mark.parametrize("path", HIDDEN)
def test_a_hidden_path_is_an_unknown_path_for_every_method(method: str, path: str) -> None:
    absent = "n" * len(path)
    for after in TARGETS:
        for body in BODIES:
            for key in ({}, {KEY: "k"}, {KEY: ""}, {KEY: '"k", "k"'}):
                theirs = ask(method, path + after, body, "guest", headers=key)
                assert theirs == ask(method, absent + after, body, "guest", headers=key)
                assert "allow" not in dict(theirs.headers)
                if method not in ("POST", "PUT", "PATCH"):
                    assert told(theirs) == (404, UNKNOWN)


def test_an_unknown_path_is_audited_whatever_the_method() -> None:
    heard: list[Event] = []
    app = counter(on_audit=heard.append)
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FOO"):
        for path in ("items/sell", "nope"):
            ask(method, path, {}, "guest", app)
    seen = [(each.tool, each.outcome, each.declared) for each in heard if isinstance(each, ToolCall)]
    assert seen == [("items/sell", "hidden", True), ("nope", "hidden", False)] * 8


def open_paths() -> App:
    return counter(hide_paths=False)


def test_where_paths_are_not_hidden_policy_answers() -> None:
    """And MCP hides as before: the knob is about paths alone."""
    app = open_paths()
    status, body = told(ask("POST", "items/sell", {"id": "1"}, "guest", app))
    assert (status, body["code"]) == (403, "X_FORBIDDEN")
    assert ask("GET", "items/sell", None, "guest", app).status == 405
    assert "sellItem" not in app.kernel.view_for(CALLERS["guest"]).table.tools


# boot


@pytest.mark.parametrize(
    ("kind", "methods"),
    [
        ("action", ["GET"]),
        ("action", ["HEAD"]),
        ("action", ["POST", "POST"]),
        ("action", ["post"]),
        ("action", []),
        ("action", "POST"),
        ("query", ["DELETE"]),
        ("query", ["PUT", "GET"]),
        ("query", []),
    ],
)
def test_a_method_that_does_not_fit_is_refused_at_boot(kind: str, methods: Sequence[str]) -> None:
    registry = Registry()
    declare = registry.action if kind == "action" else registry.query

    def work() -> str:
        return ""

    declare(policy=can("a:b"), methods=methods)(work)
    assert [each.code for each in faults(registry)] == ["X_DECLARATION_INVALID"]


def test_an_input_that_a_query_string_cannot_hold_is_not_declared_for_get() -> None:
    registry = Registry()

    def work(input: Any) -> str:
        return ""

    work.__annotations__["input"] = APP.kernel.catalog.entries[2].input.model
    registry.query(policy=can("a:b"), methods=["GET"])(work)
    (fault,) = faults(registry)
    assert fault.cause == "`work` takes `item`, which a query string cannot hold"


def test_the_place_of_the_document_is_taken() -> None:
    registry = Registry()

    def work() -> str:
        return ""

    registry.query(policy=can("a:b"), path="openapi.json")(work)
    assert [each.code for each in faults(registry)] == ["X_ROUTE_DUPLICATE"]


# every door hands a query string and a key on


@pytest.mark.parametrize(
    ("method", "path", "query", "status"),
    [
        ("GET", "items", "state_in=new,sold", 200),
        ("GET", "items", "limit=05", 422),
        ("GET", "items/get", "id=%C3%BC", 200),
        ("GET", "items/get", "id=none", 404),
        ("DELETE", "items/drop", "id=1", 200),
        ("OPTIONS", "items", "", 204),
        ("PUT", "items", "", 405),
    ],
)
def test_wsgi_answers_as_asgi_does(method: str, path: str, query: str, status: int) -> None:
    keys = {"HTTP_IDEMPOTENCY_KEY": "wsgi"} if method == "DELETE" else {}
    sent = {KEY: "wsgi"} if keys else {}
    over_asgi = ask(method, f"{path}?{query}" if query else path, {}, headers=sent)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": f"/api/{path}",
        "QUERY_STRING": query,
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": "2",
        "HTTP_HOST": "localhost",
        "HTTP_AUTHORIZATION": "Bearer seller",
        **keys,
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(b"{}"),
    }
    started: list[Any] = []
    door = wsgi(APP)
    try:
        parts = door(environ, lambda *given: started.append(given))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        body = b"".join(parts)
        getattr(parts, "close", lambda: None)()
    finally:
        door.close()
    told, headers = started[0][:2]
    assert int(told.partition(" ")[0]) == over_asgi.status == status
    assert (frozenset(headers), body) == (over_asgi.headers, over_asgi.body)
