"""ASGI messages in and out: paths, bodies whole and in pieces, lies about length, the lifespan."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from nonsuch import App, Principal, asgi
from nonsuch.adapters.edge.asgi import head_of
from nonsuch.adapters.wire import Head
from nonsuch.kernel.audit import AuthRefused, ToolCall

from .post_office import CLERK, PERSON, SENTINEL, World

HEADERS = [(b"host", b"localhost"), (b"content-type", b"application/json")]
TOKEN = (b"authorization", b"Bearer clerk")
MCP = [*HEADERS, TOKEN, (b"accept", b"application/json"), (b"mcp-protocol-version", b"2025-11-25")]
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'
KNOWN: dict[str, Principal] = {"clerk": CLERK, "person": PERSON}
LETTER = b'{"to":"x"}'


def resolve(token: str) -> Principal | None:
    if token == "raise":
        raise KeyError(SENTINEL)
    return KNOWN.get(token)


@dataclass
class Client:
    """A server's side of ASGI: sends what it is given, keeps what it is sent."""

    app: Any
    sent: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    asked: int = 0

    async def request(
        self,
        path: str,
        body: bytes | Iterable[bytes] | None = b"",
        headers: list[tuple[bytes, bytes]] | None = None,
        **scope: Any,
    ) -> tuple[int, Any]:
        """Send one request; ``None`` for a body is a client that goes away."""
        chunks = [body] if isinstance(body, bytes) else list(body or ())
        messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": chunk, "more_body": number < len(chunks) - 1 or body is None}
            for number, chunk in enumerate(chunks)
        ]
        queue = iter(messages)

        async def receive() -> dict[str, Any]:
            self.asked += 1
            await asyncio.sleep(0)
            return next(queue, {"type": "http.disconnect"})

        self.sent = []
        given = HEADERS if headers is None else headers
        base = {"type": "http", "method": "POST", "path": path, "headers": given, "client": ("1.2.3.4", 5)}
        await self.app({**base, **scope}, receive, self.send)
        return self.answer()

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def answer(self) -> tuple[int, Any]:
        """The status and the body that were sent."""
        if not self.sent:
            return 0, None
        start, end = self.sent
        assert (start["type"], end["type"]) == ("http.response.start", "http.response.body")
        lengths = [int(value) for name, value in start["headers"] if name == b"content-length"]
        assert lengths in ([len(end["body"])], [])
        return start["status"], end["body"]


def client(world: World | None = None, **given: Any) -> Client:
    app = (world or World()).app(**{"resolve_token": resolve, "lifespan": None, **given})
    return Client(asgi(app))


def code(body: bytes) -> str:
    told: str = json.loads(body)["code"]
    return told


def asked(
    target: str,
    body: Any = LETTER,
    headers: Any = None,
    *,
    world: World | None = None,
    scope: Any = None,
    **given: Any,
) -> tuple[int, Any]:
    held = [*HEADERS, TOKEN] if headers is None else headers
    return asyncio.run(client(world, **given).request(target, body, held, **(scope or {})))


# paths


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_the_apps_path_is_mcp(path: str) -> None:
    assert asked(path, PING, MCP) == (200, PONG)


def test_an_app_may_say_its_path() -> None:
    assert asked("/tools", PING, MCP, path="tools/") == (200, PONG)
    assert asked("/mcp", PING, MCP, path="tools/")[0] == 404


def test_an_action_answers_at_its_path() -> None:
    assert asked("/api/letters/nothing", b"{}") == (200, b"null")


@pytest.mark.parametrize(
    "path",
    [
        "/api/letters/gone",
        "/api/letters/nothing/",
        "/api/nothing",
        "/api//letters/nothing",
        "/API/letters/nothing",
        "/letters/nothing",
        "letters/nothing",
        "/",
        "",
        "/api/",
        "/mcp/letters/nothing",
        "/mcp//",
    ],
)
def test_every_other_path_is_one_unknown_path(path: str) -> None:
    status, body = asked(path, b"{}")
    assert (status, code(body)) == (404, "X_ROUTE_NOT_FOUND")


@pytest.mark.parametrize(
    ("root", "path", "status"),
    [
        ("", "/api/letters/nothing", 200),
        ("/app", "/app/api/letters/nothing", 200),
        ("/app", "/api/letters/nothing", 200),
        ("/app", "/app/app/api/letters/nothing", 404),
        ("/app/", "/app/letters/nothing", 404),
        ("/app/api", "/app/api/letters/nothing", 404),
        ("/ap", "/api/letters/nothing", 200),
    ],
)
def test_a_root_path_is_taken_off_once_and_whole(root: str, path: str, status: int) -> None:
    """ASGI: `path` holds the whole target, `root_path` where the app is mounted, in whole segments."""
    assert asked(path, b"{}", scope={"root_path": root})[0] == status


def test_the_head_of_a_scope() -> None:
    headers = [(b"X-One", b"a"), (b"x-one", b"b"), (b"Y", b"\xe9")]
    scope = {"method": "GET", "path": "/m/p", "root_path": "/m", "headers": headers, "client": ("::1", 9)}
    assert head_of(scope) == Head("GET", "/p", {"x-one": "a, b", "y": "é"}, "::1", prefix="/m")
    assert head_of({"method": "GET", "path": "/p", "headers": [], "client": None}) == Head(
        "GET", "/p", {}, None
    )


def test_only_the_path_is_believed_of_the_target() -> None:
    assert asked("/api/letters/nothing", b"{}", scope={"raw_path": b"/mcp"}) == (200, b"null")
    assert asked("/api/letters/nothing", b"{}", scope={"query_string": b"path=/mcp"})[0] == 422


# who calls


@pytest.mark.parametrize(
    ("header", "status", "reason"),
    [
        (None, 401, "no-token"),
        (b"Bearer gone", 401, "unknown-token"),
        (b"Bearer raise", 503, "resolver-failed"),
        (b"Basic clerk", 401, "no-token"),
    ],
)
def test_who_is_not_let_in_is_audited(header: bytes | None, status: int, reason: Any) -> None:
    world = World()
    headers = [*HEADERS, *([] if header is None else [(b"authorization", header)])]
    assert asked("/api/letters/nothing", b"{}", headers, world=world)[0] == status
    assert world.events == [AuthRefused(reason, status, "1.2.3.4", "/api/letters/nothing")]


def test_a_resolver_that_raises_is_a_503_on_both_surfaces(caplog: pytest.LogCaptureFixture) -> None:
    headers = [*HEADERS, (b"authorization", b"Bearer raise"), (b"accept", b"application/json")]
    assert [asked(path, PING, headers)[0] for path in ("/mcp", "/api/letters/nothing")] == [503, 503]
    assert SENTINEL not in caplog.text


def test_an_event_is_recorded_after_the_answer_has_left() -> None:
    order: list[str] = []

    def hook(_event: object) -> None:
        order.append("audit")

    held = client(on_audit=hook)
    keep = held.send

    async def send(message: dict[str, Any]) -> None:
        order.append(message["type"])
        await keep(message)

    held.send = send  # type: ignore[method-assign]  # a spy
    asyncio.run(held.request("/api/letters/nothing", b"{}", [*HEADERS, TOKEN]))
    assert order == ["http.response.start", "http.response.body", "audit"]


def test_an_answer_that_cannot_be_sent_is_audited_all_the_same() -> None:
    world = World()
    held = client(world)

    async def send(message: dict[str, Any]) -> None:
        raise OSError("the client is gone")

    held.send = send  # type: ignore[method-assign]  # a spy
    with pytest.raises(OSError, match="the client is gone"):
        asyncio.run(held.request("/api/letters/nothing", b"{}", [*HEADERS, TOKEN]))
    assert world.events == [ToolCall("nothing", "ok", "http", "clerk", "agent")]


# bodies


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_body_in_pieces_is_the_body(size: int) -> None:
    chunks = [PING[at : at + size] for at in range(0, len(PING), size)]
    assert asked("/mcp", chunks, MCP) == (200, PONG)
    assert asked("/mcp", [b"", *chunks, b""], MCP) == (200, PONG)


def test_a_message_without_a_body_member_is_an_empty_piece() -> None:
    held = client()
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "more_body": True},
        {"type": "http.request", "body": PING},
    ]

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0)
        return messages.pop(0)

    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": MCP}
    asyncio.run(held.app(scope, receive, held.send))
    assert held.answer() == (200, PONG)


LIMIT = 1_000


def padded(size: int) -> bytes:
    return PING + b" " * (size - len(PING))


@pytest.mark.parametrize(("size", "status"), [(LIMIT, 200), (LIMIT + 1, 413), (LIMIT * 100, 413)])
@pytest.mark.parametrize("announced", [None, "true", "less", "more", "nonsense", "twice"])
def test_the_cap_counts_what_arrives(size: int, status: int, announced: str | None) -> None:
    lengths: dict[str, list[int | str]] = {
        "true": [size],
        "less": [len(PING)],
        "more": [LIMIT],
        "nonsense": ["²"],
        "twice": [size, size],
    }
    headers = [(b"content-length", str(each).encode("latin-1")) for each in lengths.get(announced or "", [])]
    body = padded(size)
    chunks = [body[at : at + 300] for at in range(0, len(body), 300)]
    held = client(body_limit_bytes=LIMIT)
    told, _ = asyncio.run(held.request("/mcp", chunks, [*MCP, *headers]))
    assert told == status
    assert held.asked <= 5


@pytest.mark.parametrize("announced", [b"1001", b"9" * 18, b"9" * 19, b"9" * 10_000])
def test_an_announced_length_beyond_the_cap_is_refused_unread(announced: bytes) -> None:
    held = client(body_limit_bytes=LIMIT)
    headers = [*MCP, (b"content-length", announced)]
    status, body = asyncio.run(held.request("/mcp", PING, headers))
    assert (status, json.loads(body)["error"]["data"]["code"], held.asked) == (413, "X_MCP_BODY_TOO_LARGE", 0)


def test_a_body_is_read_only_for_who_was_let_in() -> None:
    held = client()
    assert asyncio.run(held.request("/mcp", PING))[0] == 401
    assert held.asked == 0


def test_a_client_that_goes_away_is_answered_nothing_and_runs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    for chunks in (None, [b'{"to"']):
        held = client(world)

        async def gone(held: Client = held, chunks: Any = chunks) -> tuple[int, Any]:
            first = iter([{"type": "http.request", "body": each, "more_body": True} for each in chunks or ()])

            async def receive() -> dict[str, Any]:
                await asyncio.sleep(0)
                return next(first, {"type": "http.disconnect"})

            scope = {
                "type": "http",
                "method": "POST",
                "path": "/api/letters/send",
                "headers": [*HEADERS, TOKEN],
            }
            await held.app(scope, receive, held.send)
            return held.answer()

        assert asyncio.run(gone()) == (0, None)
    assert world.events == []
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_a_call_cancelled_by_its_server_is_audited() -> None:
    world = World()

    async def main() -> None:
        held = client(world)
        request = held.request("/api/letters/wait", LETTER, [*HEADERS, TOKEN])
        task = asyncio.create_task(request)
        await world.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert held.sent == []

    asyncio.run(main())
    assert world.events == [ToolCall("wait", "failed", "http", "clerk", "agent", code="X_INTERRUPTED")]


# the lifespan


@dataclass
class Lifetime:
    """One pass through the lifespan protocol, with requests in between."""

    app: Any
    sent: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    started: asyncio.Event = field(default_factory=asyncio.Event)

    async def through(self, *during: Any) -> list[tuple[int, Any]]:
        stop = asyncio.Event()
        messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
        first = True

        async def receive() -> dict[str, Any]:
            nonlocal first
            if not first:
                await stop.wait()
            first = False
            return next(messages)

        async def send(message: dict[str, Any]) -> None:
            self.sent.append(message)
            self.started.set()

        task = asyncio.create_task(self.app({"type": "lifespan"}, receive, send))
        started = asyncio.create_task(self.started.wait())
        await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        told = [await Client(self.app).request(*each) for each in during]
        stop.set()
        await task
        return told


SEND: tuple[str, bytes, list[tuple[bytes, bytes]]] = ("/api/letters/send", LETTER, [*HEADERS, TOKEN])


def test_what_the_lifespan_yields_is_there_for_each_request() -> None:
    world = World()
    lifetime = Lifetime(asgi(world.app(resolve_token=resolve)))
    told = asyncio.run(lifetime.through(SEND, SEND))
    assert [(status, json.loads(body)["to"]) for status, body in told] == [(200, "x/x/open")] * 2
    assert world.office.opened == ["open", "closed"]
    assert [each["type"] for each in lifetime.sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


def test_an_app_without_a_lifespan_takes_part_in_the_protocol() -> None:
    lifetime = Lifetime(asgi(World().app(resolve_token=resolve, lifespan=None)))
    nothing = ("/api/letters/nothing", b"{}", [*HEADERS, TOKEN])
    assert asyncio.run(lifetime.through(nothing)) == [(200, b"null")]


def app_with_lifespan() -> App:
    return World().app(resolve_token=resolve)


def test_before_its_lifespan_an_app_answers_503_to_everybody_alike(caplog: pytest.LogCaptureFixture) -> None:
    held = Client(asgi(app_with_lifespan()))
    told = [asyncio.run(held.request(*each)) for each in (("/mcp", b"{}", HEADERS), SEND)]
    assert told[0] == told[1]
    assert (told[0][0], code(told[0][1])) == (503, "X_INTERNAL")
    words = (
        "the lifespan of `office` never started: serve it with lifespan on, or give the application that"
        " mounts it `lifespan=mcp.lifespan`, where `mcp` is what `asgi` returned"
    )
    assert caplog.messages == [words] * 2


def test_after_its_lifespan_an_app_answers_503_again() -> None:
    application = asgi(app_with_lifespan())

    async def main() -> list[int]:
        during = await Lifetime(application).through(SEND)
        after = await Client(application).request(*SEND)
        return [during[0][0], after[0]]

    assert asyncio.run(main()) == [200, 503]


def test_a_lifespan_that_fails_is_told_without_its_message() -> None:
    @asynccontextmanager
    async def failing() -> AsyncGenerator[None]:
        raise OSError(SENTINEL)
        yield

    application = asgi(World().app(resolve_token=resolve, lifespan=failing))
    lifetime = Lifetime(application)
    with pytest.raises(OSError, match=SENTINEL):
        asyncio.run(lifetime.through())
    assert lifetime.sent == [{"type": "lifespan.startup.failed", "message": "OSError"}]
    assert asyncio.run(Client(application).request(*SEND))[0] == 503


# what is not served


@pytest.mark.parametrize("kind", ["websocket", "webtransport"])
def test_a_websocket_is_closed(kind: str) -> None:
    held = client()

    async def receive() -> dict[str, Any]:
        raise AssertionError("nothing is read")

    asyncio.run(held.app({"type": kind, "path": "/mcp"}, receive, held.send))
    assert held.sent == [{"type": "websocket.close", "code": 1000}]
