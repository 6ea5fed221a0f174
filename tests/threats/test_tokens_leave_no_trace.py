"""A token goes to its resolver and nowhere else: not to logs, errors, audit or answers; none keeps it."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from nonsuch import (
    Agent,
    BootError,
    Context,
    Human,
    IntrospectedTokens,
    Limits,
    Principal,
    Rate,
    Registry,
    RequestFacts,
    SignedTokens,
    StaticTokens,
    asgi,
    can,
    define_app_mcp,
    expose,
    grant,
    oauth,
)
from nonsuch.kernel.audit import Event
from nonsuch.kernel.errors import Fault

from ..adapters.edge import issuer as issuers
from ..adapters.edge.issuer import AUDIENCE, ID, NAME, OTHER_RSA, SECRET, Issuer, claims, signed
from ..adapters.edge.test_static_tokens import sha
from ..adapters.mcp.live import REVISIONS, request

SENTINEL: Final = "s3ntinel"


@pytest.fixture
def issuer() -> Generator[Issuer]:
    with issuers.issuer() as held:
        yield held


class Heard(logging.Handler):
    """Everything that any logger was told, as anybody could write it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
        self.records.append(f"{record.getMessage()} {record.__dict__!r} {trace}")


@pytest.fixture
def heard() -> Generator[Heard]:
    root, held = logging.getLogger(), Heard()
    before = root.level
    root.addHandler(held)
    root.setLevel(logging.DEBUG)
    try:
        yield held
    finally:
        root.setLevel(before)
        root.removeHandler(held)


class World:
    """An app behind a resolver, and everything that left it."""

    def __init__(self, resolver: Any) -> None:
        self.events, self.left, self.seen = list[Event](), list[str](), list[str]()
        registry = Registry()

        async def fine(ctx: Context[None]) -> str:
            self.seen.append(repr(ctx))
            return "fine"

        async def broken(ctx: Context[None]) -> str:
            self.seen.append(repr(ctx))
            raise LookupError(repr(ctx))

        for handler in (fine, broken):
            registry.action(policy=can("a:b"), mcp=expose("x"))(handler)
        self.app = define_app_mcp(
            registry,
            name="traces",
            include="exposed",
            scopes={"held": ["fine", "broken"]},
            grants=[grant("editor", "any")],
            resolve_token=resolver,
            on_audit=self.events.append,
            oauth=oauth([NAME]),
            rate_limits=Limits(Rate(1_000), Rate(1_000), Rate(3)),
        )

    def ask(self, token: str, name: str = "fine", address: str = "192.0.2.1") -> list[int]:
        """Call over every revision of MCP and over HTTP; the statuses."""

        async def scene() -> list[int]:
            sent = [
                ("/mcp", *request(each, "tools/call", token, name=name, arguments={})) for each in REVISIONS
            ]
            headers = [("host", "127.0.0.1"), ("content-type", "application/json")]
            sent.append((f"/api/{name}", [*headers, ("authorization", f"Bearer {token}")], b"{}"))
            return [await self._one(*each, address) for each in sent]

        return asyncio.run(scene())

    async def _one(self, path: str, headers: list[tuple[str, str]], body: bytes, address: str) -> int:
        status = 0

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            self.left.append(repr(message))

        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
        scope = {"type": "http", "method": "POST", "path": path, "headers": raw, "client": (address, 1)}
        await asgi(self.app)(scope, receive, send)
        return status


def everything(world: World, heard: Heard, *kept: object) -> list[str]:
    """All that left, and all that stayed."""
    assert world.events
    assert heard.records
    stayed = [repr(each) for each in (*world.events, world.app)]
    return [
        *heard.records,
        *world.left,
        *world.seen,
        *stayed,
        *(told for each in kept for told in inside(each)),
    ]


def inside(kept: object, depth: int = 3) -> list[str]:
    """What an object shows, and what it holds."""
    held = vars(kept).values() if hasattr(kept, "__dict__") and depth else ()
    return [repr(kept), *(told for each in held for told in inside(each, depth - 1))]


def no_trace(world: World, heard: Heard, *kept: object) -> None:
    """Nothing that left or stayed holds the sentinel."""
    assert [told for told in everything(world, heard, *kept) if SENTINEL in told] == []


# a resolver of the application's, for every status

ROBOT: Final = Agent("robot", roles={"editor"}, scopes={"held"})
KNOWN: Final[Mapping[str, Principal]] = {
    f"{SENTINEL}-good": ROBOT,
    f"{SENTINEL}-bare": Agent("bare", roles={"editor"}),
    f"{SENTINEL}-human": Human("ann", roles={"editor"}, scopes=()),
}


def resolve(token: str, _facts: RequestFacts) -> Principal | None:
    if token.endswith("down"):
        raise ConnectionError(token)
    return KNOWN.get(token)


@pytest.mark.parametrize(
    ("token", "name", "statuses"),
    [
        ("good", "fine", [200, 200, 200, 200]),
        ("unknown", "fine", [401, 401, 401, 429]),
        ("human", "fine", [403, 403, 403, 429]),
        ("bare", "fine", [403, 403, 403, 403]),
        ("good", "broken", [200, 200, 200, 500]),
        ("down", "fine", [503, 503, 503, 503]),
    ],
)
def test_no_status_tells_a_token(heard: Heard, token: str, name: str, statuses: list[int]) -> None:
    world = World(resolve)
    assert world.ask(f"{SENTINEL}-{token}", name) == statuses
    no_trace(world, heard)


# the resolvers that come with the package


def jwt_of(text: str) -> str:
    """A good token that holds the sentinel in its claims, in its own spelling too."""
    return signed(claims(jti=text, roles=["editor"], scope="held"))


def statics(path: Path) -> StaticTokens:
    held = path / "tokens.toml"
    held.write_text(
        f'[[token]]\nsha256 = "{sha(SENTINEL)}"\nid = "robot"\nroles = ["editor"]\nscopes = ["held"]'
    )
    return StaticTokens(held)


def test_a_file_of_tokens_tells_none(heard: Heard, tmp_path: Path) -> None:
    tokens = statics(tmp_path)
    world = World(tokens)
    assert world.ask(SENTINEL) == [200] * 4
    assert world.ask(f"{SENTINEL}!") == [401, 401, 401, 429]
    no_trace(world, heard, tokens)


def test_a_signed_token_is_told_by_nobody(heard: Heard, issuer: Issuer) -> None:
    tokens = SignedTokens(issuer=NAME, audience=AUDIENCE, jwks_url=f"{issuer.url}/jwks")
    world, good = World(tokens), jwt_of("x")
    forged = signed(claims(), OTHER_RSA)
    assert world.ask(good) == [200] * 4
    assert world.ask(forged) == [401, 401, 401, 429]
    assert world.ask(f"{good}x", address="192.0.2.2") == [401, 401, 401, 429]
    told = everything(world, heard, tokens)
    for token in (good, forged):
        for secret in (token, token.split(".")[2]):
            assert not [each for each in told if secret in each]


def test_a_signed_token_of_an_issuer_that_is_down_is_told_by_nobody(heard: Heard, issuer: Issuer) -> None:
    issuer.stop()
    tokens = SignedTokens(issuer=NAME, audience=AUDIENCE, jwks_url=f"{issuer.url}/jwks")
    world, good = World(tokens), jwt_of("x")
    assert world.ask(good) == [503] * 4
    assert not [each for each in everything(world, heard, tokens) if good.split(".")[2] in each]


@pytest.mark.parametrize("mode", ["well", "failing", "garbage", "elsewhere", "down"])
def test_a_token_that_is_asked_about_is_told_to_the_issuer_alone(
    heard: Heard, issuer: Issuer, mode: Any
) -> None:
    issuer.known[SENTINEL] = {
        "active": True,
        "aud": AUDIENCE,
        "sub": "robot",
        "roles": ["editor"],
        "scope": "held",
    }
    tokens = IntrospectedTokens(
        f"{issuer.url}/introspect", client_id=ID, client_secret=SECRET, audience=AUDIENCE
    )
    world = World(tokens)
    if mode == "down":
        issuer.stop()
    else:
        issuer.mode = mode
    assert world.ask(SENTINEL) == ([200] * 4 if mode == "well" else [503] * 4)
    assert world.ask(f"{SENTINEL}!") == ([401, 401, 401, 429] if mode == "well" else [503] * 4)
    no_trace(world, heard, tokens)
    assert not [each for each in (*heard.records, *world.left) if SECRET in each or "s3cret" in each]


def test_no_fault_of_a_file_of_tokens_tells_what_stands_there(tmp_path: Path) -> None:
    def faults(make: Callable[[], object]) -> tuple[Fault, ...]:
        with pytest.raises(BootError) as raised:
            make()
        return raised.value.faults

    path = tmp_path / "tokens.toml"
    path.write_text(f'[[token]]\nsha256 = "{SENTINEL}"\nid = 7\nroles = "{SENTINEL}"')
    told = faults(lambda: StaticTokens(path))
    assert len(told) == 3
    assert SENTINEL not in repr(told)
