"""Signed tokens: only what the issuer signed for this endpoint is taken; no caller makes us fetch keys."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, TypeVar

import pytest

from nonsuch import Agent, Human, Principal, SignedTokens
from nonsuch.adapters.edge.tokens import keys
from nonsuch.adapters.edge.tokens.claims import Claims, agent_of
from nonsuch.adapters.edge.tokens.keys import KeysMissing
from nonsuch.kernel.model import owner_key

from . import issuer as made
from .issuer import (
    AUDIENCE,
    EC,
    ED,
    NAME,
    OTHER_RSA,
    RSA,
    SHARED,
    After,
    Issuer,
    claims,
    part,
    pem,
    published,
    signed,
)

T = TypeVar("T")
ROBOT = Agent("robot", roles={"editor"}, scopes={"posts:read", "posts:write"})


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


def resolver(issuer: Issuer, **given: Any) -> SignedTokens:
    settings: dict[str, Any] = {
        "issuer": NAME,
        "audience": AUDIENCE,
        "jwks_url": f"{issuer.url}/jwks",
        **given,
    }
    return SignedTokens(**settings)


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


# What is taken


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"aud": [AUDIENCE]},
        {"aud": ["https://login.example/userinfo", AUDIENCE]},
        {"nbf": 0, "iat": After(0), "jti": "x", "anything": {"else": 1}},
        {"nbf": After(20), "exp": After(60)},
        {"exp": 9_999_999_999.5},
        {"exp": After(-20)},
        {"client_id": ..., "sub": "robot"},
        {"scope": ..., "scp": ["posts:read", "posts:write"]},
        {"scope": " posts:read  posts:write posts:read "},
    ],
)
def test_a_token_of_the_issuers_for_us_is_its_client(issuer: Issuer, more: dict[str, Any]) -> None:
    """Clocks may disagree by half a minute."""
    assert who(issuer, signed(claims(**more))) == [ROBOT]


def test_two_people_who_use_one_client_are_two_callers(issuer: Issuer) -> None:
    """Or one would be answered by a retry what the other asked, and spend the other's allowance."""
    tokens = [signed(claims(sub=sub, org="acme")) for sub in ("ann", "bob", "robot", "")]
    found = who(issuer, *tokens)
    scopes = {"posts:read", "posts:write"}
    people = [Human(name, roles={"editor"}, org="acme") for name in ("ann", "bob")]
    alone = Agent("robot", roles={"editor"}, scopes=scopes, org="acme")
    assert found == [*(each.delegate("robot", scopes=scopes) for each in people), alone, alone]
    keys = {owner_key("server", each) for each in found if each is not None}
    assert len(keys) == 3


@pytest.mark.parametrize(("key", "alg"), [(RSA, "RS256"), (RSA, "PS512"), (EC, "ES256"), (ED, "EdDSA")])
def test_every_kind_of_key_is_taken(issuer: Issuer, key: Any, alg: str) -> None:
    issuer.keys = [published(OTHER_RSA, "zero", "RS256"), published(key, "one", alg)]
    assert who(issuer, signed(claims(), key, alg)) == [ROBOT]


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "application/at+jwt"])
def test_an_access_token_says_that_it_is_one(issuer: Issuer, kind: str) -> None:
    assert who(issuer, signed(claims(), typ=kind)) == [ROBOT]


def test_a_key_may_leave_out_its_algorithm_and_its_use(issuer: Issuer) -> None:
    (key,) = issuer.keys
    del key["alg"], key["use"]
    assert who(issuer, signed(claims())) == [ROBOT]


# What is refused, though the issuer signed it

CLAIMS: dict[str, dict[str, Any]] = {
    "audience absent": {"aud": ...},
    "audience null": {"aud": None},
    "audience empty": {"aud": []},
    "audience another": {"aud": "https://other.example/mcp"},
    "audience a prefix": {"aud": "https://api.example"},
    "audience longer": {"aud": f"{AUDIENCE}/x"},
    "audience with a slash": {"aud": f"{AUDIENCE}/"},
    "audience in other case": {"aud": "https://API.example/mcp"},
    "audience with a blank": {"aud": f"{AUDIENCE} "},
    "audience in one text": {"aud": f"https://other.example {AUDIENCE}"},
    "audience a list of others": {"aud": ["https://other.example/mcp", f"{AUDIENCE}/"]},
    "audience a list in a list": {"aud": [[AUDIENCE]]},
    "audience an object": {"aud": {AUDIENCE: True}},
    "audience a number": {"aud": 7},
    "issuer absent": {"iss": ...},
    "issuer another": {"iss": "https://evil.example"},
    "issuer with a slash": {"iss": f"{NAME}/"},
    "issuer a list": {"iss": [NAME]},
    "end absent": {"exp": ...},
    "end null": {"exp": None},
    "end past": {"exp": After(-32)},
    "end a text": {"exp": "9999999999"},
    "end true": {"exp": True},
    "end infinite": {"exp": float("inf")},
    "end too far": {"exp": 2**60},
    "not yet": {"nbf": After(120)},
    "issued tomorrow": {"iat": After(86_400)},
    "nobody": {"client_id": ...},
    "a client that is none": {"client_id": 7},
    "an empty client": {"client_id": "", "sub": ""},
    "a subject that is none": {"sub": 7},
    "a subject that no policy could be asked about": {"sub": "a\nb"},
    "a client that no policy could be asked about": {"client_id": "a\nb"},
    "scopes that are none": {"scope": 7},
    "scopes that are some": {"scope": ..., "scp": ["a", 7]},
    "roles in one text": {"roles": "admin"},
    "an organisation that is none": {"org": 7},
}


@pytest.mark.parametrize("case", CLAIMS)
def test_a_token_of_the_issuers_for_somebody_else_is_refused(issuer: Issuer, case: str) -> None:
    assert who(issuer, signed(claims(**CLAIMS[case])), signed(claims())) == [None, ROBOT]


@pytest.mark.parametrize(
    "headers",
    [
        {"typ": "logout+jwt"},
        {"typ": "dpop+jwt"},
        {"typ": 7},
        {"crit": ["exp"], "exp": 1},
        {"crit": ["b64"], "b64": False},
    ],
)
def test_a_token_that_is_something_else_is_refused(issuer: Issuer, headers: dict[str, Any]) -> None:
    head = {"alg": "RS256", "kid": "one", **headers}
    assert who(issuer, by_hand(head, claims(), RSA)) == [None]


# What is refused because nobody can have signed it


def by_hand(head: object, told: object, key: Any = None, secret: bytes | None = None) -> str:
    """A token that no library would make: any header, signed by a key, a secret or nobody."""
    text = f"{part(head)}.{part(told)}"
    if secret is not None:
        return f"{text}.{part(hmac.digest(secret, text.encode(), hashlib.sha256))}"
    if key is None:
        return f"{text}."
    from jwt.algorithms import get_default_algorithms

    return f"{text}.{part(get_default_algorithms()['RS256'].sign(text.encode(), key))}"


def test_the_tokens_of_these_tests_are_good_but_for_what_they_say(issuer: Issuer) -> None:
    assert who(issuer, by_hand({"alg": "RS256", "kid": "one"}, claims(), RSA)) == [ROBOT]


def forged() -> dict[str, str]:
    """What somebody without the issuer's key can send."""
    head = {"alg": "RS256", "kid": "one"}
    good = signed(claims())
    first, second, third = good.split(".")
    flipped = third[:-6] + ("A" if third[-6] != "A" else "B") + third[-5:]
    secrets = {
        "pem": pem(RSA),
        "pem without its end": pem(RSA).strip(),
        "jwk": json.dumps(published(RSA, "one", "RS256")).encode(),
        "empty": b"",
        "shared": SHARED,
    }
    confused = {
        f"{alg} with the {name} as a secret": by_hand({**head, "alg": alg}, claims(), secret=secret)
        for name, secret in secrets.items()
        for alg in ("HS256", "RS256", "hs256")
    }
    nothing = {
        f"alg {alg!r}, {len(sign)} bytes of signature": by_hand({**head, "alg": alg}, claims()) + sign
        for alg in ("none", "None", "NONE", "nOnE", "", None, 7, ["RS256"])
        for sign in ("", third)
    }
    return {
        **confused,
        **nothing,
        "no alg": by_hand({"kid": "one"}, claims()),
        "another's key": signed(claims(), OTHER_RSA),
        "another's key in the header": signed(claims(), OTHER_RSA, jwk=published(OTHER_RSA, "one", "RS256")),
        "a key of another kind": signed(claims(), EC, "ES256"),
        "another payload": f"{first}.{part(claims(roles=['admin']))}.{third}",
        "another header": f"{part({**head, 'x': 1})}.{second}.{third}",
        "a flipped signature": f"{first}.{second}.{flipped}",
        "no signature": f"{first}.{second}.",
        "two parts": f"{first}.{second}",
        "five parts": f"{first}.{second}.{third}.{third}.{third}",
        "one part": first,
        "nothing": "",
        "dots": "..",
        "no base64": f"{first}.!!!.{third}",
        "no JSON": f"{part(b'{')}.{second}.{third}",
        "a list": f"{part([1])}.{second}.{third}",
        "deep": f"{part(b'[' * 9_000)}.{second}.{third}",
        "deep inside": f"{part(head)}.{part(b'[' * 9_000)}.{third}",
        "long": signed(claims(x="y" * 20_000)),
        "not ASCII": "\u00fc" + good,
        "half a pair": "\ud800" + good,
        "no key's name": signed(claims(), ident=None),
        "a key's name that is none": by_hand({**head, "kid": 7}, claims(), RSA),
        "an empty key's name": by_hand({**head, "kid": ""}, claims(), RSA),
        "a path for a key's name": by_hand({**head, "kid": "../../dev/null"}, claims(), secret=b""),
    }


FORGED = forged()


@pytest.mark.parametrize("case", FORGED)
def test_a_token_that_the_issuer_did_not_sign_is_refused(issuer: Issuer, case: str) -> None:
    assert who(issuer, FORGED[case], signed(claims())) == [None, ROBOT]


def test_a_secret_among_the_published_keys_signs_nothing(issuer: Issuer) -> None:
    key: dict[str, object] = {"kty": "oct", "k": part(SHARED), "kid": "shared"}
    issuer.keys += [key, {**key, "kid": "lies", "alg": "RS256"}, {**key, "kid": "hs", "alg": "HS256"}]
    tokens = [
        by_hand({"alg": alg, "kid": ident}, claims(), secret=SHARED)
        for alg in ("HS256", "RS256")
        for ident in ("shared", "lies", "hs")
    ]
    assert who(issuer, *tokens, signed(claims())) == [None] * 6 + [ROBOT]


@pytest.mark.parametrize("use", ["enc", "", 7])
def test_a_key_for_something_else_signs_nothing(issuer: Issuer, use: object) -> None:
    issuer.keys += [published(OTHER_RSA, "two", "RS256", use=use)]
    assert who(issuer, signed(claims(), OTHER_RSA, ident="two"), signed(claims())) == [None, ROBOT]


def test_only_chosen_algorithms_are_taken(issuer: Issuer) -> None:
    issuer.keys += [published(EC, "two", "ES256")]
    tokens = (signed(claims()), signed(claims(), EC, "ES256", "two"))
    assert who(issuer, *tokens, algorithms=["ES256"]) == [None, ROBOT]


@pytest.mark.parametrize("algorithms", [[], ["none"], ["HS256"], ["RS256", "HS512"], ["rs256"]])
def test_an_algorithm_that_a_reader_of_the_key_could_sign_by_is_not_chosen(
    issuer: Issuer, algorithms: Sequence[str]
) -> None:
    with pytest.raises(ValueError, match="public key"):
        resolver(issuer, algorithms=algorithms)


@pytest.mark.parametrize(
    "url",
    ["http://login.example/jwks", "ftp://login.example", "file:///etc/passwd", "https://u:p@x.example", ""],
)
def test_keys_are_not_fetched_from_where_anybody_could_answer(issuer: Issuer, url: str) -> None:
    with pytest.raises(ValueError, match="https"):
        resolver(issuer, jwks_url=url)


# Whom a token is, today


def test_the_app_says_who_it_is_at_each_request(issuer: Issuer) -> None:
    roles = ["editor"]

    def person(told: Claims) -> Principal | None:
        return Human(str(told["client_id"]), roles=roles).delegate("bot") if roles else None

    token = signed(claims())
    held = resolver(issuer, principal=person)

    async def scene() -> list[Principal | None]:
        first = await held(token)
        roles[:] = ["viewer"]
        second = await held(token)
        roles.clear()
        return [first, second, await held(token)]

    first, second, third = asyncio.run(scene())
    assert (first, second, third) == (
        Human("robot", roles={"editor"}).delegate("bot"),
        Human("robot", roles={"viewer"}).delegate("bot"),
        None,
    )


def test_what_the_apps_function_raises_is_raised(issuer: Issuer) -> None:
    def person(_told: Claims) -> Principal | None:
        raise LookupError("the table is gone")

    with pytest.raises(LookupError, match="gone"):
        who(issuer, signed(claims()), principal=person)


def test_a_token_ends_when_it_ends_also_one_that_was_seen_before(issuer: Issuer) -> None:
    clock = Clock()
    held, token = resolver(issuer, clock=clock), signed(claims(exp=int(clock.now) + 40))

    async def scene() -> list[Principal | None]:
        seen = [await held(token)]
        for seconds in (69, 2):
            clock.now += seconds
            seen.append(await held(token))
        return seen

    assert asyncio.run(scene()) == [ROBOT, ROBOT, None]


# The keys: how often they are fetched, and what happens when they cannot be


def test_names_of_keys_that_nobody_has_make_nobody_fetch(issuer: Issuer) -> None:
    clock = Clock()
    held = resolver(issuer, clock=clock)
    guesses = [signed(claims(), OTHER_RSA, ident=f"guess {number}") for number in range(200)]

    async def scene() -> list[int]:
        assert await held(signed(claims())) == ROBOT
        counts = [issuer.fetched]
        for seconds in (0, 29, 2, 1, 31):
            clock.now += seconds
            assert set(await asyncio.gather(*(held(guess) for guess in guesses))) == {None}
            counts.append(issuer.fetched)
        return counts

    assert asyncio.run(scene()) == [1, 1, 1, 2, 2, 3]


def test_what_cannot_be_a_token_of_ours_makes_nobody_fetch(issuer: Issuer) -> None:
    refused = [
        FORGED[name]
        for name in FORGED
        if "alg" in name or name in ("long", "deep", "nothing", "no key's name")
    ]
    refused += [
        by_hand({"alg": "HS256", "kid": "one"}, claims(), secret=b""),
        signed(claims(), typ="logout+jwt"),
    ]
    assert set(who(issuer, *refused)) == {None}
    assert issuer.fetched == 0


def test_a_hundred_callers_at_once_fetch_once(issuer: Issuer) -> None:
    held = resolver(issuer)
    tokens = [signed(claims(client_id=f"robot {number}")) for number in range(100)]

    async def scene() -> set[str]:
        return {found.id for found in await asyncio.gather(*map(held, tokens)) if found is not None}

    assert asyncio.run(scene()) == {f"robot {number}" for number in range(100)}
    assert issuer.fetched == 1


def test_a_new_key_is_taken_within_half_a_minute_and_an_old_one_goes_within_six(issuer: Issuer) -> None:
    clock = Clock()
    held = resolver(issuer, clock=clock)
    old, new = signed(claims()), signed(claims(), OTHER_RSA, ident="two")

    async def scene() -> list[tuple[Principal | None, Principal | None]]:
        seen: list[tuple[Principal | None, Principal | None]] = [(await held(old), await held(new))]
        issuer.keys = [published(OTHER_RSA, "two", "RS256")]
        for seconds in (30, 61):
            clock.now += seconds
            seen.append((await held(new), await held(old)))
        return seen

    assert asyncio.run(scene()) == [(ROBOT, None), (ROBOT, ROBOT), (ROBOT, None)]


def test_a_key_that_was_taken_back_is_trusted_for_six_minutes_at_most(issuer: Issuer) -> None:
    clock = Clock()
    held, token = resolver(issuer, clock=clock), signed(claims())

    async def scene() -> list[Principal | None]:
        seen = [await held(token)]
        issuer.keys = [published(OTHER_RSA, "two", "RS256")]
        for seconds in (299, 60):
            clock.now += seconds
            seen.append(await held(token))
        return seen

    assert asyncio.run(scene()) == [ROBOT, ROBOT, None]


@pytest.mark.parametrize("mode", ["failing", "garbage", "empty", "elsewhere", "hanging"])
def test_an_issuer_that_does_not_answer_is_nobodys_fault(issuer: Issuer, mode: Any) -> None:
    """It raises, which is 503; and is asked again after five seconds, not by each request."""
    clock = Clock()
    held, token = resolver(issuer, clock=clock, timeout_seconds=0.3), signed(claims())

    async def scene() -> tuple[int, Principal | None]:
        issuer.mode = mode
        began = time.monotonic()
        with pytest.raises(Exception, match=r"(?s).*"):
            await held(token)
        assert time.monotonic() - began < 3
        issuer.released.set()
        await asyncio.sleep(0.1)
        for _ in range(50):
            with pytest.raises(KeysMissing):
                await held(token)
        asked = issuer.fetched
        issuer.mode = "well"
        clock.now += 5
        return asked, await held(token)

    assert asyncio.run(scene()) == (1, ROBOT)


def test_an_issuer_that_drips_is_not_waited_for(issuer: Issuer) -> None:
    held = resolver(issuer, timeout_seconds=0.3)

    async def scene() -> None:
        issuer.mode = "dripping"
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            await held(signed(claims()))
        assert time.monotonic() - began < 2
        issuer.released.set()

    asyncio.run(scene())


def test_an_issuer_that_drips_for_ever_is_asked_again(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "FETCH_SECONDS", 0.3)
    clock = Clock()
    held = resolver(issuer, clock=clock, timeout_seconds=0.1)

    async def scene() -> Principal | None:
        issuer.mode = "dripping"
        with pytest.raises(TimeoutError):
            await held(signed(claims()))
        await asyncio.sleep(0.4)
        issuer.mode = "well"
        clock.now += 5
        try:
            return await held(signed(claims()))
        finally:
            issuer.released.set()

    assert asyncio.run(scene()) == ROBOT


def test_an_issuer_that_stops_and_comes_back(issuer: Issuer) -> None:
    clock = Clock()
    held, tokens = resolver(issuer, clock=clock), [signed(claims(jti=str(number))) for number in range(4)]

    async def scene() -> list[Principal | None]:
        seen = [await held(tokens[0])]
        issuer.stop()
        clock.now += 200
        seen.append(await held(tokens[1]))  # by the keys that are still good
        clock.now += 200
        with pytest.raises(Exception, match="Fail to fetch"):
            await held(tokens[2])
        issuer.start()
        with pytest.raises(KeysMissing):
            await held(tokens[2])
        clock.now += 5
        return [*seen, await held(tokens[2])]

    assert asyncio.run(scene()) == [ROBOT] * 3


def test_a_caller_that_leaves_does_not_stop_the_fetch_for_others(issuer: Issuer) -> None:
    held = resolver(issuer)

    async def scene() -> Principal | None:
        issuer.mode = "hanging"
        leaving = asyncio.create_task(held(signed(claims(jti="a"))))
        staying = asyncio.create_task(held(signed(claims(jti="b"))))
        await asyncio.sleep(0.1)
        leaving.cancel()
        issuer.mode = "well"
        with pytest.raises(asyncio.CancelledError):
            await leaving
        issuer.released.set()
        with pytest.raises(Exception, match="Fail to fetch"):
            await staying
        return None

    asyncio.run(scene())
    assert issuer.fetched == 1


# What is kept and said of a token


def test_a_resolver_shows_no_token(issuer: Issuer) -> None:
    held, token = resolver(issuer), signed(claims())
    assert play(lambda: held(token)) == ROBOT
    assert repr(held) == f"SignedTokens(issuer={NAME!r}, audience={AUDIENCE!r})"
    assert token not in str(vars(held))


def test_claims_are_read_as_they_are_documented() -> None:
    assert agent_of({"client_id": "a", "sub": "b"}) == Human("b").delegate("a")
    assert agent_of({"sub": "b", "org": "acme", "roles": ["r"]}) == Agent("b", roles={"r"}, org="acme")
    assert agent_of({}) is None
