"""Addresses that fail to become a caller: their failures alone count, and stop them before the resolver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from nonsuch import Limits, Rate, Registry, RequestFacts, define_app_mcp
from nonsuch.adapters.authentication import bearer
from nonsuch.kernel.audit import AuthRefused

from .counted import CALLERS, MANY, Counted, Told
from .live import MODERN, REVISIONS, request

HERE, THERE = "192.0.2.1", "192.0.2.2"
THREE = Limits(MANY, MANY, Rate(3))


def ask(desk: Counted, caller: str | None = "t", address: str | None = HERE, revision: str = MODERN) -> Told:
    """List the tools with a token, or without any."""
    headers, body = request(revision, "tools/list", caller or "")
    kept = [each for each in headers if caller is not None or each[0] != "authorization"]
    return desk.send(kept, body, address=address)


def post(desk: Counted, caller: str, address: str | None = HERE) -> Told:
    """Ask the other surface."""
    given = [
        ("host", "127.0.0.1"),
        ("content-type", "application/json"),
        ("authorization", f"Bearer {caller}"),
    ]
    return desk.send(given, b"{}", "/api/lookup", address=address)


def statuses(desk: Counted, callers: Sequence[str | None], address: str | None = HERE) -> list[int]:
    return [ask(desk, caller, address).status for caller in callers]


@pytest.mark.parametrize("bad", ["unknown", "", "a, b", "x" * 16_385, "\u00fc"])
def test_an_address_that_failed_too_often_is_stopped_before_its_token_is_read(bad: str) -> None:
    desk = Counted(THREE)
    assert statuses(desk, [bad] * 3) == [401] * 3
    desk.resolved.clear()
    assert statuses(desk, [bad, "t", "another guess", "t", None]) == [429] * 5
    assert post(desk, "t").status == 429
    assert desk.resolved == []


def test_who_asks_without_a_token_keeps_nobody_out() -> None:
    """Clients ask so first, to find out where tokens come from: an office of them must not stop itself."""
    desk = Counted(THREE)
    assert statuses(desk, [None] * 20) == [401] * 20
    assert statuses(desk, ["t", "unknown", None, "unknown", None, "t"]) == [200, 401, 401, 401, 401, 200]
    assert statuses(desk, ["unknown", None, "t"]) == [401, 429, 429]


TOKENS: Final[dict[str, tuple[str, str | None]]] = {
    "as usual": ("Bearer t", "t"),
    "another case": ("bEARER t", "t"),
    "more spaces": ("Bearer   t  ", "t"),
    "every sign of a token": ("Bearer aZ09-._~+/=", "aZ09-._~+/="),
    "signs of others' tokens": ('Bearer 1|a:b{"}', '1|a:b{"}'),
    "the longest": ("Bearer " + "x" * 16_384, "x" * 16_384),
    "one longer": ("Bearer " + "x" * 16_385, None),
    "a tab between": ("Bearer\tt", None),
    "no space": ("Bearert", None),
    "no token": ("Bearer ", None),
    "nothing": ("", None),
    "a token alone": ("t", None),
    "two words": ("Bearer t t", None),
    "two headers": ("Bearer t, Bearer t", None),
    "two headers, one of nothing": ("Bearer t, ", None),
    "a list": ("Bearer t,t", None),
    "another scheme": ("Basic t", None),
    "a longer scheme": ("Bearers t", None),
    "a scheme of other letters": ("\u0412earer t", None),
    "quoted": ('"Bearer t"', None),
    "not ASCII": ("Bearer \u00fc", None),
    "no character that is seen": ("Bearer \x7f", None),
    "a line": ("Bearer t\n", None),
    "no line of ours": ("Bearer t\x85", None),
    "a space of others": ("Bearer\u00a0t", None),
}


@pytest.mark.parametrize("case", TOKENS)
def test_what_can_be_no_token_reaches_no_resolver(case: str) -> None:
    """A resolver that compares text in constant time raises on what is not ASCII."""
    header, token = TOKENS[case]
    assert bearer(header) == token


@pytest.mark.parametrize("second", ["Bearer t", "Bearer unknown", "Basic x", ""])
@pytest.mark.parametrize("place", [0, 1])
def test_two_authorization_headers_are_no_token(second: str, place: int) -> None:
    desk, (headers, body) = Counted(THREE), request(MODERN, "tools/list")
    headers.insert(place * len(headers), ("authorization", second))
    assert desk.send(headers, body).status == 401
    assert desk.resolved == []


def test_other_addresses_are_untouched() -> None:
    desk = Counted(THREE)
    assert statuses(desk, ["unknown"] * 5) == [401, 401, 401, 429, 429]
    assert statuses(desk, ["unknown", "unknown", "t", "unknown", "t"], THERE) == [401, 401, 200, 401, 429]


def test_what_succeeds_is_not_counted() -> None:
    """Or callers behind one address would keep each other out."""
    desk = Counted(THREE)
    assert statuses(desk, ["t", "other"] * 50) == [200] * 100
    assert statuses(desk, ["unknown", "t"] * 3) == [401, 200, 401, 200, 401, 429]


def test_a_resolver_that_fails_is_no_failure_of_the_caller() -> None:
    desk = Counted(THREE)
    assert statuses(desk, ["down"] * 10) == [503] * 10
    assert statuses(desk, ["t"]) == [200]


def test_a_dictionary_of_tokens_is_a_resolver() -> None:
    """Its `get` takes a second argument too, which would be who everybody else is."""
    app = define_app_mcp(Registry(), name="x", resolve_token=CALLERS.get)
    assert app.resolve_token is not None
    facts = RequestFacts(HERE, None, None, "/mcp")
    assert [app.resolve_token(token, facts) for token in ("t", "unknown")] == [CALLERS["t"], None]


def test_a_person_at_the_door_of_agents_fails() -> None:
    desk = Counted(THREE)
    assert statuses(desk, ["person"] * 4) == [403, 403, 403, 429]


def test_both_surfaces_count_the_same_failures() -> None:
    desk = Counted(THREE)
    assert [post(desk, "unknown").status, *statuses(desk, ["unknown"]), post(desk, "unknown").status] == [
        401
    ] * 3
    assert (ask(desk).status, post(desk, "t").status) == (429, 429)


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
    ],
)
def test_a_host_does_not_begin_anew_by_another_of_its_addresses(
    first: str, second: str, *, shared: bool
) -> None:
    desk = Counted(THREE)
    statuses(desk, ["unknown"] * 3, first)
    assert ask(desk, "t", second).status == (429 if shared else 200)


def test_a_caller_whose_address_nobody_knows_is_not_counted_here() -> None:
    desk = Counted(THREE)
    assert statuses(desk, ["unknown"] * 10, None) == [401] * 10


def test_an_address_that_waits_may_try_again() -> None:
    desk = Counted(Limits(MANY, MANY, Rate(3, 30)))
    statuses(desk, ["unknown"] * 3)
    wait = int(ask(desk).headers["retry-after"])
    assert wait == 10
    desk.later(wait)
    assert statuses(desk, ["t", "unknown", "t"]) == [200, 401, 429]


def test_asking_without_a_token_for_what_needs_none_is_no_failure() -> None:
    desk = Counted(THREE)
    host = [("host", "127.0.0.1")]
    for path, method in (("/mcp", "GET"), ("/.well-known/oauth-protected-resource", "GET")):
        for _ in range(5):
            assert desk.send(host, b"", path, method, HERE).status in (404, 405)
    flight = [*host, ("origin", "http://localhost"), ("access-control-request-method", "POST")]
    assert {desk.send(flight, b"", "/mcp", "OPTIONS", HERE).status for _ in range(5)} == {204}
    assert ask(desk).status == 200


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_stopped_address_is_told_when_to_come_again_and_nothing_else(revision: str) -> None:
    desk = Counted(THREE)
    statuses(desk, ["unknown"] * 3)
    told = ask(desk, "t", HERE, revision)
    data = {
        "code": "X_MCP_RATE_LIMITED",
        "cause": "the allowance for requests of this kind is spent",
        "fix": "wait as long as `Retry-After` says, then send the request again",
    }
    error = {"code": -32600, "message": data["cause"], "data": data}
    null_id = {"id": None} if revision == "2025-06-18" else {}
    assert told.value == {"jsonrpc": "2.0", **null_id, "error": error}
    length = str(len(told.body))
    assert told.headers == {
        "content-type": "application/json",
        "content-length": length,
        "retry-after": "20",
    }


def test_every_refusal_is_one_event_without_a_token() -> None:
    desk = Counted(THREE)
    statuses(desk, [None, "s3cret-guess", "person", "s3cret, s3cret", "t"])
    assert desk.events == [
        AuthRefused("no-token", 401, HERE, "/mcp"),
        AuthRefused("unknown-token", 401, HERE, "/mcp"),
        AuthRefused("not-an-agent", 403, HERE, "/mcp"),
        AuthRefused("no-token", 401, HERE, "/mcp"),
        AuthRefused("address-limited", 429, HERE, "/mcp"),
    ]


def test_an_event_is_no_longer_than_it_must_be_whatever_nobody_asked_for() -> None:
    desk = Counted(THREE)
    assert desk.send([("host", "127.0.0.1")], b"", f"/api/{'x' * 60_000}", address=HERE).status == 401
    assert desk.events == [AuthRefused("no-token", 401, HERE, f"/api/{'x' * 507}")]
