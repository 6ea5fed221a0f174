"""Who calls over HTTP: by a token, or by a session where there is none; never by a session beside a token."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any, cast

import pytest
from starlette.middleware.cors import CORSMiddleware
from starlette.testclient import TestClient

from nonsuch import Agent, BootError, Human, SessionFacts, asgi
from nonsuch.adapters.http.invoke import key_of
from nonsuch.adapters.http.session import cookies_of
from nonsuch.adapters.wire import Head
from nonsuch.kernel.audit import AuthRefused, Event, ToolCall

from ..mcp.wire import Request, in_process
from .asking import REALM, error, told
from .counter import CALLERS, ask, counter, header, session

APP = counter(resolve_principal=session, principal_headers=["X-User"])
NOBODY = error(
    "X_UNAUTHENTICATED", "the request carries no token that is known here", "connect with a valid token"
)


def who(headers: dict[str, str], caller: str | None = None, app: Any = APP) -> str | int:
    """Who a request is of, as the audit has it; or the status of its refusal."""
    heard: list[Event] = []
    held = (
        counter(resolve_principal=session, principal_headers=["X-User"], on_audit=heard.append)
        if app is APP
        else app
    )
    answer = ask("GET", "items", None, caller, held, headers)
    (event,) = heard
    if isinstance(event, ToolCall):
        return f"{event.caller_kind} {event.caller}"
    assert isinstance(event, AuthRefused)
    assert event.status == answer.status
    return answer.status


@pytest.mark.parametrize(
    ("headers", "caller", "found"),
    [
        ({"cookie": "session=ann"}, None, "human ann"),
        ({"cookie": "a=b; session=ann; c=d"}, None, "human ann"),
        ({"x-user": "bob"}, None, "human bob"),
        ({"cookie": "session=ann"}, "guest", "agent gil"),
        ({"cookie": "session=ann"}, "person", "human pia"),
        ({}, "seller", "agent sam"),
    ],
)
def test_a_token_comes_first_and_a_session_where_there_is_none(
    headers: dict[str, str], caller: str | None, found: str
) -> None:
    assert who(headers, caller) == found


@pytest.mark.parametrize(
    ("headers", "caller"),
    [
        ({}, None),
        ({"cookie": "other=ann"}, None),
        ({"cookie": "session=ann; session=bob"}, None),
        ({"cookie": "session"}, None),
        ({"session": "ann"}, None),
        ({"cookie": "session=ann"}, "unknown"),
        ({"cookie": "session=ann", "authorization": "Basic YW5uOg=="}, None),
        ({"cookie": "session=ann", "authorization": ""}, None),
    ],
)
def test_nothing_else_lets_anybody_in(headers: dict[str, str], caller: str | None) -> None:
    assert who(headers, caller) == 401


def test_a_refusal_says_no_more_than_that_nobody_called() -> None:
    answer = ask("POST", "items", {}, None, APP, {"cookie": "session"})
    assert told(answer) == (401, NOBODY)
    assert header(answer, "www-authenticate") == REALM


def test_a_session_that_cannot_be_looked_up_lets_nobody_in() -> None:
    assert who({"cookie": "session=outage"}) == 503


@pytest.mark.parametrize("answered", ["ann", 7, object(), Agent, ["ann"]])
def test_what_is_no_principal_lets_nobody_in(answered: object) -> None:
    def wrong(_: SessionFacts) -> object:
        return answered

    app = counter(resolve_principal=wrong)
    assert ask("GET", "items", None, None, app).status == 503


@pytest.mark.parametrize("principal", [Human("ann", roles={"seller"}), Agent("ann", roles={"seller"})])
def test_a_resolver_may_be_async_and_name_either_kind(principal: Human | Agent) -> None:
    async def later(_: SessionFacts) -> Human | Agent:
        return principal

    assert ask("GET", "items", None, None, counter(resolve_principal=later)).status == 200


def test_without_a_resolver_a_cookie_says_nothing() -> None:
    assert ask("GET", "items", None, None, counter(), {"cookie": "session=ann"}).status == 401


def test_a_session_opens_no_door_but_this_one() -> None:
    """A page of another site can make a browser send a cookie: MCP never reads one."""
    app = counter(resolve_principal=session)
    headers = (("host", "localhost"), ("content-type", "application/json"), ("cookie", "session=ann"))
    assert in_process(app, Request("POST", "/mcp", headers, b"{}")).status == 401


def test_an_app_for_sessions_alone_is_served() -> None:
    app = counter(resolve_token=None, resolve_principal=session)
    assert ask("GET", "items", None, None, app, {"cookie": "session=ann"}).status == 200
    assert ask("GET", "items", None, "seller", app).status == 401
    with pytest.raises(BootError):
        asgi(counter(resolve_token=None))


# what a resolver is told


def test_a_resolver_is_told_what_it_was_promised_and_can_change_none_of_it() -> None:
    heard: list[SessionFacts] = []
    app = counter(resolve_principal=heard.append, principal_headers=["X-User", "X-Missing"])
    headers = {
        "cookie": "a=1; b=2",
        "x-user": "ann",
        "x-other": "hidden",
        "user-agent": "ua",
        "origin": "http://localhost",
    }
    ask("GET", "items?q=1", None, None, app, headers)
    (facts,) = heard
    assert (facts.request.address, facts.request.user_agent) == ("127.0.0.1", "ua")
    assert (facts.request.origin, facts.request.path) == ("http://localhost", "/api/items")
    assert (dict(facts.cookies), dict(facts.headers)) == ({"a": "1", "b": "2"}, {"x-user": "ann"})
    changes: list[Callable[[], object]] = [
        lambda: setattr(facts, "cookies", {}),
        lambda: operator.setitem(cast("Any", facts.cookies), "a", "2"),
        lambda: operator.setitem(cast("Any", facts.headers), "a", "2"),
    ]
    for change in changes:
        with pytest.raises((FrozenInstanceError, TypeError)):
            change()


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("", {}),
        ("a=1", {"a": "1"}),
        ("a=1;b=2 ;  c=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=b=c", {"a": "b=c"}),
        ('a="quoted"', {"a": '"quoted"'}),
        ("a=", {"a": ""}),
        ("=1", {}),
        ("a", {}),
        ("a=1; a=1", {}),
        ("a=1; b=2; a=3", {"b": "2"}),
        ("a=1, b=2", {"a": "1, b=2"}),
        ("A=1; a=2", {"A": "1", "a": "2"}),
    ],
)
def test_a_cookie_is_read_as_it_was_sent_and_once(sent: str, read: dict[str, str]) -> None:
    assert cookies_of(sent) == read


def test_a_page_of_another_site_changes_nothing() -> None:
    """A form cannot send JSON, and a script of another origin is refused before anybody asks who it is."""
    cookie = {"cookie": "session=ann"}
    for headers in (
        {**cookie, "content-type": "application/x-www-form-urlencoded"},
        {**cookie, "content-type": "text/plain"},
        {**cookie, "origin": "https://evil.example"},
        {**cookie, "origin": "null"},
    ):
        plain = [(name, value) for name, value in headers.items()]
        assert ask("POST", "items/sell", {"id": "1"}, None, APP, dict(plain)).status in (403, 415)


EMBEDDED: list[tuple[dict[str, str], str | int]] = [
    ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}, 401),
    ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}, 401),
    ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, 401),
    ({"sec-fetch-site": "cross-site"}, 401),
    (
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        "human ann",
    ),
    ({"sec-fetch-site": "cross-site", "origin": "http://localhost:3000"}, "human ann"),
    ({"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}, "human ann"),
    ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, "human ann"),
]


@pytest.mark.parametrize(("sent", "found"), EMBEDDED, ids=str)
def test_what_a_page_of_another_site_embeds_is_nobodys(sent: dict[str, str], found: str | int) -> None:
    """Or whether it loads would tell that page what the person may do, and spend the person's allowance."""
    assert who({"cookie": "session=ann", **sent}) == found
    assert who(sent, "seller") == "agent sam"  # a page cannot send a token there


# the key


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        (None, None),
        ("k", "k"),
        ('"k"', "k"),
        (' "k" ', "k"),
        ('"a b, c; d"', "a b, c; d"),
        (r'"a\"b\\c"', r'a"b\c'),
        ("8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
        ("a/b+c=:", "a/b+c=:"),
        ('""', ""),
        ("", ""),
        ("a b", ""),
        ("a,b", ""),
        ("a, a", ""),
        ('"a", "a"', ""),
        ('"a";p=1', ""),
        ('"a', ""),
        ('a"', ""),
        (r'"a\b"', ""),
        ("a\\b", ""),
        ("\u00fc", ""),
        ('"\u00fc"', ""),
        ("a\tb", ""),
    ],
)
def test_a_key_is_a_string_or_bare_and_once(sent: str | None, key: str | None) -> None:
    headers = {} if sent is None else {"idempotency-key": sent}
    assert key_of(Head("POST", "/api/x", headers)) == key


def test_callers_of_the_tests_are_what_they_say() -> None:
    assert {name: type(each).__name__ for name, each in CALLERS.items()} == {
        "seller": "Agent",
        "guest": "Agent",
        "person": "Human",
    }


def test_cookies_in_several_lines_are_the_cookies_of_one_request() -> None:
    """HTTP/2 sends each in a line of its own (RFC 9113 8.2.3)."""
    app = counter(resolve_principal=session)
    headers = (("host", "localhost"), ("cookie", "a=1"), ("cookie", "session=ann"))
    assert in_process(app, Request("GET", "/api/items", headers)).status == 200
    twice = (*headers, ("cookie", "session=bob"))
    assert in_process(app, Request("GET", "/api/items", twice)).status == 401


def test_the_hosts_cors_lets_the_pages_read_that_the_door_admits() -> None:
    """Preflights carry no cookie: the host answers them, in front."""
    page, evil = "https://app.example", "https://evil.example"
    app = counter(resolve_principal=session, allowed_origins=[page])
    site = CORSMiddleware(asgi(app), allow_origins=[page], allow_methods=["POST"], allow_credentials=True)
    client = TestClient(site, "http://localhost", cookies={"session": "ann"})
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    assert client.options("/api/items/sell", headers={"origin": page, **asked}).status_code == 200
    answer = client.post("/api/items/sell", json={"id": "1"}, headers={"origin": page})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, page)
    assert client.options("/api/items/sell", headers={"origin": evil, **asked}).status_code == 400
    answer = client.post("/api/items/sell", json={"id": "1"}, headers={"origin": evil})
    assert (answer.status_code, answer.headers.get("access-control-allow-origin")) == (403, None)


@pytest.mark.parametrize("path", ["/api/items", "/api/items/sell", "/api/none"])
def test_a_preflight_is_not_ours_to_answer(path: str) -> None:
    """Without the host's middleware no page of another origin reads anything, and none learns a path."""
    asked = {"origin": "http://localhost:3000", "access-control-request-method": "POST"}
    answer = TestClient(asgi(APP), "http://localhost").options(path, headers=asked)
    assert answer.status_code == 401
    assert not [name for name in answer.headers if name.startswith("access-control")]
