"""Tokens that the issuer is asked about: live ones for this endpoint are taken, for as long as was said."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

import httpx
import pytest

from nonsuch import Agent, Human, IntrospectedTokens, Principal
from nonsuch.adapters.edge.tokens.claims import Claims

from . import issuer as made
from .issuer import AUDIENCE, ID, SECRET, Issuer

T = TypeVar("T")
ROBOT = Agent("robot", scopes={"posts:read"})


@pytest.fixture
def issuer() -> Generator[Issuer]:
    with made.issuer() as held:
        yield held


class Clock:
    """A clock that starts as the real one does."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


def resolver(issuer: Issuer, **given: Any) -> IntrospectedTokens:
    settings: dict[str, Any] = {"client_id": ID, "client_secret": SECRET, "audience": AUDIENCE, **given}
    return IntrospectedTokens(f"{issuer.url}/introspect", **settings)


def live(**more: object) -> dict[str, object]:
    """What the issuer says of a live token; a value of `...` leaves a member out."""
    told: dict[str, object] = {
        "active": True,
        "aud": AUDIENCE,
        "client_id": "robot",
        "scope": "posts:read",
        "exp": int(time.time()) + 3_600,
        **more,
    }
    return {name: value for name, value in told.items() if value is not ...}


def who(issuer: Issuer, *tokens: str, **given: Any) -> list[Principal | None]:
    """Whose tokens they are, asked one after the other."""
    held = resolver(issuer, **given)

    async def scene() -> list[Principal | None]:
        return [await held(token) for token in tokens]

    return asyncio.run(scene())


def play(work: Callable[[], Awaitable[T]]) -> T:
    async def scene() -> T:
        return await work()

    return asyncio.run(scene())


# What is taken, and what is not


@pytest.mark.parametrize(
    "more", [{}, {"aud": [AUDIENCE, "x"]}, {"exp": ...}, {"client_id": ..., "sub": "robot"}]
)
def test_a_live_token_for_us_is_its_client(issuer: Issuer, more: dict[str, Any]) -> None:
    issuer.known["a token"] = live(**more)
    assert who(issuer, "a token") == [ROBOT]
    assert issuer.asked == [{"token": "a token", "token_type_hint": "access_token"}]


REFUSED: dict[str, dict[str, Any]] = {
    "not active": {"active": False},
    "active absent": {"active": ...},
    "active a text": {"active": "true"},
    "active a number": {"active": 1},
    "audience absent": {"aud": ...},
    "audience null": {"aud": None},
    "audience another": {"aud": "https://other.example/mcp"},
    "audience with a slash": {"aud": f"{AUDIENCE}/"},
    "audience a prefix": {"aud": "https://api.example"},
    "audience longer": {"aud": f"{AUDIENCE}x"},
    "audience in other case": {"aud": AUDIENCE.upper()},
    "audience a list of others": {"aud": [f"{AUDIENCE}/"]},
    "audience a list in a list": {"aud": [[AUDIENCE]]},
    "end past": {"exp": 1},
    "end null": {"exp": None},
    "end a text": {"exp": "9999999999"},
    "end true": {"exp": True},
    "nobody": {"client_id": ...},
    "scopes that are none": {"scope": 7},
    "a client that no policy could be asked about": {"client_id": "a\nb"},
}


@pytest.mark.parametrize("case", REFUSED)
def test_any_other_token_is_nobodys(issuer: Issuer, case: str) -> None:
    issuer.known |= {"a token": live(**REFUSED[case]), "good": live()}
    assert who(issuer, "a token", "good") == [None, ROBOT]


@pytest.mark.parametrize("token", ["unknown", "", "a&token_type_hint=x", "\u00fc\x00 %41", "x" * 50_000])
def test_a_token_is_asked_about_as_it_came(issuer: Issuer, token: str) -> None:
    assert who(issuer, token) == [None]
    assert [each.get("token", "") for each in issuer.asked] == [token]


def test_the_app_says_who_it_is_at_each_request(issuer: Issuer) -> None:
    roles = ["editor"]

    def person(told: Claims) -> Principal | None:
        return Human(str(told["client_id"]), roles=roles).delegate("bot") if roles else None

    issuer.known["a token"] = live()
    held = resolver(issuer, principal=person)

    async def scene() -> list[Principal | None]:
        first = await held("a token")
        roles.clear()
        return [first, await held("a token")]

    assert asyncio.run(scene()) == [Human("robot", roles={"editor"}).delegate("bot"), None]
    assert len(issuer.asked) == 1


# For how long


def test_a_live_token_is_asked_about_twice_a_minute(issuer: Issuer) -> None:
    clock, told = Clock(), live()
    held = resolver(issuer, clock=clock)
    issuer.known["a token"] = told

    async def scene() -> list[tuple[bool, int]]:
        seen: list[tuple[bool, int]] = []
        for seconds in (0, 29, 1, 29, 1):
            clock.now += seconds
            if seconds == 1 and len(seen) > 2:
                told["active"] = False
            seen.append((await held("a token") is not None, len(issuer.asked)))
        return seen

    assert asyncio.run(scene()) == [(True, 1), (True, 1), (True, 2), (True, 2), (False, 3)]


def test_a_token_is_taken_no_longer_than_it_lives(issuer: Issuer) -> None:
    clock = Clock()
    held = resolver(issuer, clock=clock)
    issuer.known["a token"] = live(exp=int(clock.now) + 10)

    async def scene() -> list[Principal | None]:
        first = await held("a token")
        clock.now += 11
        return [first, await held("a token")]

    assert asyncio.run(scene()) == [ROBOT, None]


def test_a_token_that_is_not_live_is_asked_about_again(issuer: Issuer) -> None:
    held = resolver(issuer)

    async def scene() -> list[Principal | None]:
        first = await held("a token")
        issuer.known["a token"] = live()
        return [first, await held("a token")]

    assert asyncio.run(scene()) == [None, ROBOT]


# An issuer that cannot be asked


@pytest.mark.parametrize("mode", ["failing", "garbage", "empty", "elsewhere", "hanging", "dripping"])
def test_an_issuer_that_does_not_answer_is_nobodys_fault(issuer: Issuer, mode: Any) -> None:
    """It raises, which is 503; no answer is a yes, and none is remembered as a no."""
    issuer.known["a token"] = live()
    held = resolver(issuer, timeout_seconds=0.3)

    async def scene() -> Principal | None:
        issuer.mode = mode
        began = time.monotonic()
        with pytest.raises((httpx.HTTPError, ValueError, TimeoutError)) as raised:
            await held("a token")
        assert time.monotonic() - began < 3
        assert "a token" not in repr(raised.value)
        issuer.mode = "well"
        issuer.released.set()
        return await held("a token")

    assert asyncio.run(scene()) == ROBOT
    assert len(issuer.asked) == 2


def test_an_issuer_that_stops_and_comes_back(issuer: Issuer) -> None:
    issuer.known["a token"] = live()
    held = resolver(issuer)

    async def scene() -> Principal | None:
        issuer.stop()
        with pytest.raises(httpx.ConnectError):
            await held("a token")
        issuer.start()
        return await held("a token")

    assert asyncio.run(scene()) == ROBOT


def test_an_endpoint_that_the_issuer_does_not_know_learns_nothing(issuer: Issuer) -> None:
    issuer.known["a token"] = live()
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        who(issuer, "a token", client_secret="wrong")


@pytest.mark.parametrize(
    "url", ["http://login.example/x", "ftp://x", "https://u:p@login.example/x", "/x", ""]
)
def test_a_token_is_not_sent_to_where_anybody_could_listen(url: str) -> None:
    with pytest.raises(ValueError, match="https"):
        IntrospectedTokens(url, client_id=ID, client_secret=SECRET, audience=AUDIENCE)


def test_a_token_is_sent_to_no_other_place_whatever_client_asks(issuer: Issuer) -> None:
    issuer.mode = "elsewhere"

    async def scene() -> None:
        async with httpx.AsyncClient(follow_redirects=True) as client:
            with pytest.raises(httpx.HTTPStatusError, match="307"):
                await resolver(issuer, client=client)("a token")

    asyncio.run(scene())
    assert issuer.stolen == 0


def test_a_client_of_the_apps_own_is_used_and_left_open(issuer: Issuer) -> None:
    issuer.known["a token"] = live()

    async def scene() -> tuple[Principal | None, bool]:
        async with httpx.AsyncClient(headers={"x-app": "yes"}) as client:
            held = resolver(issuer, client=client)
            return await held("a token"), client.is_closed

    assert asyncio.run(scene()) == (ROBOT, False)


def test_a_resolver_shows_no_token_and_no_secret(issuer: Issuer) -> None:
    issuer.known["a s3cret token"] = live()
    held = resolver(issuer)
    assert play(lambda: held("a s3cret token")) == ROBOT
    assert repr(held) == f"IntrospectedTokens('{issuer.url}/introspect', audience='{AUDIENCE}')"
    assert "s3cret" not in str(vars(held))
