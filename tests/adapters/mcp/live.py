"""A client that speaks to an app over ASGI while its handlers run: streams, late answers, leaving early.

Reads event streams by the rules of HTML 9.2.6 alone. Knows no test.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Coroutine, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, cast

from nonsuch import App, asgi

T = TypeVar("T")
Json = dict[str, Any]
LEGACY: Final = ("2025-06-18", "2025-11-25")
MODERN: Final = "2026-07-28"
REVISIONS: Final = (*LEGACY, MODERN)
BOTH: Final = "application/json, text/event-stream"
PATIENCE: Final = 5.0
_PREFIX: Final = "io.modelcontextprotocol/"
_PLAIN: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


def request(
    revision: str,
    method: str,
    caller: str = "t",
    *,
    accept: str | None = BOTH,
    meta: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    headers: Iterable[tuple[str, str]] = (),
    ident: object = 1,
    **params: Any,
) -> tuple[list[tuple[str, str]], bytes]:
    """Headers and body of a request as the revision wants it; dotted keys of ``meta`` are the protocol's."""
    sent = [
        ("host", "127.0.0.1"),
        ("content-type", "application/json"),
        ("authorization", f"Bearer {caller}"),
    ]
    sent += [("accept", accept)] if accept is not None else []
    held = {_PREFIX + key[1:] if key.startswith(".") else key: value for key, value in (meta or {}).items()}
    sent.append(("mcp-protocol-version", revision))
    if revision == MODERN:
        held = {
            _PREFIX + "protocolVersion": MODERN,
            _PREFIX + "clientCapabilities": capabilities or {},
            **held,
        }
        sent.append(("mcp-method", method))
        sent += [
            ("mcp-name", mirrored(params[key]))
            for key in ("name", "uri", "taskId")
            if isinstance(params.get(key), str)
        ][:1]
    if held:
        params["_meta"] = held
    message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
    return [*sent, *headers], json.dumps(message).encode()


def mirrored(text: str) -> str:
    """A text as a header value."""
    return text if _PLAIN.fullmatch(text) else f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def response(
    revision: str, ident: object, result: object = None, caller: str = "t", **error: Any
) -> tuple[list[tuple[str, str]], bytes]:
    """Headers and body of an answer to a question of the server's."""
    told = {"error": error} if error else {"result": result}
    headers, _ = request(revision, "x", caller)
    return headers, json.dumps({"jsonrpc": "2.0", "id": ident, **told}).encode()


class Reader:
    """An event stream, byte by byte: HTML 9.2.6 and nothing else."""

    def __init__(self) -> None:
        self._line, self._data = b"", list[bytes]()
        self._name = b""
        self.events: list[tuple[str, str]] = []
        self.comments = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._line += data
        while match := re.search(rb"\r\n|\n|\r(?!\Z)", self._line):
            line, self._line = self._line[: match.start()], self._line[match.end() :]
            self._take(line)

    def _take(self, line: bytes) -> None:
        if not line:
            if self._data:
                self.events.append((self._name.decode(), b"\n".join(self._data).decode()))
            self._data, self._name = [], b""
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"":
                self.comments += 1
            case b"data":
                self._data.append(value)
            case b"event":
                self._name = value
            case _:
                raise AssertionError(f"a field that nobody sends: {line!r}")


@dataclass(slots=True, eq=False)
class Stream:
    """The answer to one request, while it comes."""

    body: bytes
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    parts: list[bytes] = field(default_factory=list[bytes])
    ended: bool = False
    task: asyncio.Task[None] = field(init=False)
    _left: asyncio.Event = field(default_factory=asyncio.Event)
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    read: int = 0
    _sent: bool = False
    hung_up: bool = False

    async def receive(self) -> Json:
        """What the server hears: the body, and at last that the client is gone."""
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """What the server says; a server may say by raising that its client is gone (ASGI 2.4)."""
        if self.hung_up:
            raise ConnectionResetError
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            assert not self.ended
            self.parts.append(message.get("body", b""))
            self.ended = not message.get("more_body", False)
        self._heard.set()

    @property
    def raw(self) -> bytes:
        """All bytes so far."""
        return b"".join(self.parts)

    @property
    def streams(self) -> bool:
        """Whether it is an event stream."""
        return self.headers.get("content-type") == "text/event-stream"

    def messages(self) -> list[Json]:
        """Every message so far."""
        if not self.streams:
            return [json.loads(self.raw)] if self.ended and self.raw else []
        reader = Reader()
        reader.feed(self.raw)
        assert {name for name, _ in reader.events} <= {"message"}
        return [cast(Json, json.loads(data)) for _, data in reader.events]

    async def message(self) -> Json:
        """The next message; raises TimeoutError when none comes."""
        async with asyncio.timeout(PATIENCE):
            while len(self.messages()) <= self.read:
                assert not self.task.done(), "no message is left"
                self._heard.clear()
                await self._heard.wait()
        self.read += 1
        return self.messages()[self.read - 1]

    async def more(self) -> None:
        """Wait for more bytes, be they a message or not."""
        self._heard.clear()
        async with asyncio.timeout(PATIENCE):
            await self._heard.wait()

    async def rest(self) -> list[Json]:
        """Every message that was not read yet, once the answer is whole."""
        async with asyncio.timeout(PATIENCE):
            await self.task
        left = self.messages()[self.read :]
        self.read += len(left)
        return left

    async def silence(self, seconds: float = 0.05) -> None:
        """Raises AssertionError when a message comes or the answer ends."""
        await asyncio.sleep(seconds)
        assert self.messages()[self.read :] == []
        assert not self.task.done()

    async def leave(self) -> None:
        """Close the connection."""
        self._left.set()
        async with asyncio.timeout(PATIENCE):
            await self.task


class Live:
    """One served app, and its clock."""

    def __init__(self, app: App) -> None:
        self.app, self.now = app, datetime(2026, 7, 28, 12, tzinfo=UTC)
        self._serve = asgi(app, lambda: self.now)
        self._streams: list[Stream] = []

    def later(self, seconds: float) -> None:
        """Move the clock."""
        self.now += timedelta(seconds=seconds)

    def open(self, sent: tuple[list[tuple[str, str]], bytes]) -> Stream:
        """Send a request; its answer may be read while it comes."""
        headers, body = sent
        stream = Stream(body)
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
            "client": ("127.0.0.1", 50_000),
        }
        stream.task = asyncio.ensure_future(self._serve(scope, stream.receive, stream.send))
        self._streams.append(stream)
        return stream

    async def ask(self, sent: tuple[list[tuple[str, str]], bytes]) -> list[Json]:
        """Every message of an answer."""
        return await self.open(sent).rest()

    async def result(self, sent: tuple[list[tuple[str, str]], bytes]) -> Json:
        """The result that an answer ends with."""
        last = (await self.ask(sent))[-1]
        assert "result" in last, last
        return cast(Json, last["result"])


def play(work: Coroutine[Any, Any, T]) -> T:
    """Run a scene on an event loop of its own, and leave no task behind."""

    async def scene() -> T:
        value = await work
        await asyncio.sleep(0)
        left = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        assert left == [], "a task outlives its scene"
        return value

    return asyncio.run(scene())
