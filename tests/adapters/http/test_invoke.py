"""A status and a body over HTTP for every outcome, for people and for agents."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from ..mcp.press import DESCRIBED
from ..mcp.wire import sans_io
from .asking import (
    APP,
    METHODS,
    PROBLEM,
    REALM,
    TYPED,
    UNKNOWN,
    ask,
    call,
    challenge,
    error,
    request,
    told,
)

NO_TOKEN = error(
    "X_UNAUTHENTICATED", "the request carries no token that is known here", "connect with a valid token"
)
NO_GRANT = error(
    "X_FORBIDDEN",
    "no policy permits `post:publish` here",
    "ask the account owner for the permission `post:publish`, or name one that you may act on",
)
NO_SCOPE = error(
    "X_MCP_SCOPE_DENIED",
    "`publishPost` needs the scope `posts:write`, which this connection's token does not carry",
    "ask for a token with the scope `posts:write`",
)
INVALID = error(
    "X_INPUT_INVALID",
    "input for tool `publishPost` failed validation: postId: must be of type string; x: not an argument",
    "correct the named fields and send the call again",
)
CRASHED = error("X_INTERNAL", "the action did not succeed", "try again later, or tell the app's developer")
STRANGE = error(
    "X_OUTPUT_INVALID",
    "the handler's answer does not satisfy its declared output",
    "tell the app's developer",
)
NO_ROW = error("X_NOT_FOUND", "nothing answers to that input", "check the id that was sent")
LOCKED = error("X_POST_LOCKED", "`locked` is being printed", "wait a minute")
PUBLISHED = error("X_FORBIDDEN", "the post is published already", "choose a draft")
QUIET = error("X_POST_QUIET", "notifications are off this week", "send `notify` false")


# What a permitted call answers


ALPHA = {"id": "p1", "title": "Alpha", "subtitle": None}
BETA = {"id": "p2", "title": "Beta", "subtitle": "b"}


@pytest.mark.parametrize("who", ["editor", "erna"])
@pytest.mark.parametrize(
    ("path", "arguments", "value"),
    [
        ("posts/publish", {"postId": "p1"}, {"id": "p1", "published": True}),
        ("listPosts", {}, [ALPHA, BETA]),
        ("posts/get", {"postId": "p1"}, ALPHA),
        ("countPosts", {}, 2),
        ("archivePost", {"postId": "p1"}, "p1 is archived"),
        ("posts/purge", {}, {"purged": 2}),
    ],
)
def test_a_value_is_the_whole_body(who: str, path: str, arguments: dict[str, Any], value: Any) -> None:
    answer = call(who, path, **arguments)
    assert told(answer) == (200, value)
    assert answer.headers == {TYPED, ("content-length", str(len(answer.body)))}


# What a refused one answers


@pytest.mark.parametrize("who", ["editor", "erna"])
@pytest.mark.parametrize(
    ("path", "arguments", "status", "body"),
    [
        ("posts/publish", {"postId": "p2"}, 403, PUBLISHED),
        ("posts/publish", {"postId": "p1", "notify": True}, 403, QUIET),
        ("posts/publish", {"postId": "g1"}, 403, NO_GRANT),
        ("posts/publish", {"postId": "none"}, 403, NO_GRANT),
        ("posts/publish", {"postId": 1, "x": 2}, 422, INVALID),
        ("posts/get", {"postId": "none"}, 404, NO_ROW),
        ("archivePost", {"postId": "locked"}, 409, LOCKED),
        ("archivePost", {"postId": "broken"}, 500, CRASHED),
        ("archivePost", {"postId": "strange"}, 500, STRANGE),
    ],
)
def test_a_refusal_has_its_status_and_says_what_to_do(
    who: str, path: str, arguments: dict[str, Any], status: int, body: dict[str, str]
) -> None:
    answer = call(who, path, **arguments)
    assert told(answer) == (status, body)
    assert answer.headers == {PROBLEM, ("content-length", str(len(answer.body)))}


@pytest.mark.parametrize("who", ["reader", "token"])
@pytest.mark.parametrize("arguments", [{"postId": "p1"}, {"postId": "p2"}, {"x": 1}], ids=str)
def test_a_missing_scope_is_challenged(who: str, arguments: dict[str, Any]) -> None:
    answer = call(who, "posts/publish", **arguments)
    assert told(answer) == (403, NO_SCOPE)
    assert challenge(answer) == f'{REALM}, error="insufficient_scope", scope="posts:write"'


def test_a_session_that_no_token_limits_needs_no_scope() -> None:
    assert call("erna", "posts/publish", postId="p1").status == 200


# Who is let in


@pytest.mark.parametrize("path", ["/api/posts/publish", "/api/nope", "/api/", "/", "/favicon.ico"])
@pytest.mark.parametrize("method", METHODS)
def test_nobody_learns_a_path_without_a_token(path: str, method: str) -> None:
    answer = ask(request(None, path, method=method))
    assert told(answer) == (401, NO_TOKEN)
    assert challenge(answer) == REALM


def test_an_unknown_token_is_told_apart_from_none() -> None:
    answer = call("nobody", "listPosts")
    assert told(answer) == (401, NO_TOKEN)
    assert challenge(answer) == f'{REALM}, error="invalid_token"'


@pytest.mark.parametrize("path", ["listPosts", "nope"])
def test_a_token_that_cannot_be_looked_up_lets_nobody_in(path: str) -> None:
    answer = call("outage", path)
    assert (told(answer), challenge(answer)) == ((503, CRASHED), None)


@pytest.mark.parametrize(
    "more", [{"Host": "evil.example"}, {"Host": ""}, {"Origin": "null"}, {"Origin": "https://evil.example"}]
)
@pytest.mark.parametrize("path", ["listPosts", "nope"])
def test_a_foreign_host_or_origin_is_refused(more: dict[str, str], path: str) -> None:
    answer = ask(request("erna", f"/api/{path}", headers=more))
    assert (answer.status, json.loads(answer.body)["code"]) == (403, "X_MCP_PROTOCOL")


# Bodies


@pytest.mark.parametrize("path", ["listPosts", "posts/publish", "nope", ""])
@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b"", "the text is not json; send one json value (byte 0)"),
        (b"{", "the text is not json; send one json value (byte 1)"),
        (b'{"a":1,"a":2}', "an object has the same key twice; send each key once"),
        (b'{"a":NaN}', "a number is not finite or has too many digits; send it as a string"),
        (b"{}{}", "something follows the json value; send one value only (byte 2)"),
        (b"\xef\xbb\xbf{}", "the text is not plain utf-8; send utf-8 without a byte order mark (byte 0)"),
        (b"[]", "the body is not a JSON object"),
        (b"null", "the body is not a JSON object"),
        (b'"{}"', "the body is not a JSON object"),
    ],
)
def test_a_body_is_one_strict_object_at_every_path(path: str, body: bytes, cause: str) -> None:
    fix = "send one JSON object in UTF-8, without duplicate keys"
    for who in ("viewer", "vito"):
        assert told(ask(request(who, f"/api/{path}", body))) == (400, error("X_JSON_INVALID", cause, fix))


@pytest.mark.parametrize("path", ["listPosts", "posts/publish", "nope"])
def test_a_body_beyond_the_limit_is_refused_at_every_path(path: str) -> None:
    limit: int = DESCRIBED["bodyLimitBytes"]
    fits, beyond = b"{}".ljust(limit), b"{}".ljust(limit + 1)
    assert ask(request("viewer", f"/api/{path}", fits)).status in (200, 404)
    status, body = told(ask(request("viewer", f"/api/{path}", beyond)))
    assert (status, body["code"]) == (413, "X_MCP_BODY_TOO_LARGE")


@pytest.mark.parametrize("path", ["listPosts", "posts/publish", "nope"])
@pytest.mark.parametrize(
    "more",
    [
        {"Content-Type": ""},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Encoding": "gzip"},
    ],
)
def test_another_media_type_is_refused_at_every_path(path: str, more: dict[str, str]) -> None:
    status, body = told(ask(request("viewer", f"/api/{path}", headers=more)))
    assert (status, body["code"]) == (415, "X_MEDIA_TYPE_UNSUPPORTED")


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "APPLICATION/JSON"])
def test_parameters_and_capitals_of_the_media_type_are_read_past(kind: str) -> None:
    assert ask(request("viewer", "/api/countPosts", headers={"Content-Type": kind})).status == 200


# Paths


def bodies() -> Iterable[bytes]:
    yield b'{"postId":"p1"}'
    yield b'{"x":1}'
    yield b"{}"
    yield b"{"
    yield b" " * 5_000


HIDDEN = ("posts/publish",)
NEVER_PATHS = ("seatReport", "publishPost", "posts", "posts/", "see", "mcp", "../mcp", "posts%2Fpublish")


@pytest.mark.parametrize("who", ["viewer", "vito"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("suffix", ["", "/", "//", "/x", "?", " "])
@pytest.mark.parametrize("path", [*HIDDEN, *NEVER_PATHS])
def test_a_hidden_path_is_an_unknown_path(who: str, method: str, suffix: str, path: str) -> None:
    for body in bodies():
        theirs = sans_io(APP, request(who, f"/api/{path}{suffix}", body, method))
        nobodys = sans_io(APP, request(who, f"/api/{'n' * len(path)}{suffix}", body, method))
        assert theirs == nobodys
        if method not in ("POST", "PUT", "PATCH"):  # these have a body, which is read first
            assert (told(theirs), challenge(theirs)) == ((404, UNKNOWN), None)


@pytest.mark.parametrize("who", ["viewer", "vito", "editor", "erna"])
@pytest.mark.parametrize(
    "path",
    [
        "/api/nope",
        "/api/",
        "/api",
        "/",
        "/posts/publish",
        "/api//posts/publish",
        "/API/listPosts",
        "/api/ListPosts",
        "/api/listPosts/",
        "/api/listPosts/x",
        "/api/seatReport",
        "/api/posts/publish/",
        "/mcp/x",
        "/mcp//",
    ],
)
def test_a_path_is_its_exact_characters(who: str, path: str) -> None:
    assert told(ask(request(who, path))) == (404, UNKNOWN)
