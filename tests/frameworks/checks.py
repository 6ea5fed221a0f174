"""What a mount must do, asked over a real socket. Knows no framework; raises AssertionError."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .app import BODY_LIMIT, TIGHT

PATIENCE_SECONDS: Final = 10


@dataclass(frozen=True)
class Answer:
    """One whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Mount:
    """Where an app is mounted."""

    port: int
    prefix: str
    token: str | None = "agent-token"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def begin(self, body: bytes, path: str = "/mcp", **headers: str) -> http.client.HTTPConnection:
        """Send one request and keep its connection."""
        told = {
            "Host": f"localhost:{self.port}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
            **({} if self.token is None else {"Authorization": f"Bearer {self.token}"}),
            **headers,
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        connection.request("POST", self.prefix + path, body, told)
        return connection

    def post(self, body: bytes, path: str = "/mcp", **headers: str) -> Answer:
        """Send one request and read its answer."""
        connection = self.begin(body, path, **headers)
        try:
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, told, answer.read())
        finally:
            connection.close()

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Answer:
        """Call a tool."""
        return self.post(_call(tool, arguments))


def _call(tool: str, arguments: Mapping[str, Any] | None = None, **meta: Any) -> bytes:
    params: dict[str, Any] = {"name": tool, "arguments": dict(arguments or {})}
    return _rpc("tools/call", {**params, "_meta": meta} if meta else params)


def _rpc(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": dict(params or {})}).encode()


_MODERN: Final = "2026-07-28"  # there, and not before, a client that leaves stops its call
_MODERN_HEADERS: Final = {"MCP-Protocol-Version": _MODERN, "Mcp-Method": "tools/call"}


def _modern(tool: str, **meta: Any) -> bytes:
    said: dict[str, Any] = {"protocolVersion": _MODERN, "clientCapabilities": {}}
    held = {f"io.modelcontextprotocol/{name}": value for name, value in said.items()}
    return _call(tool, None, **held, **meta)


def _text(answer: Answer) -> str:
    assert answer.status == 200, answer
    text: str = answer.json["result"]["content"][0]["text"]
    return text


def a_list(mount: Mount) -> None:
    """The tools that the caller sees, and no other."""
    answer = mount.post(_rpc("tools/list"))
    names = sorted(tool["name"] for tool in answer.json["result"]["tools"])
    assert names == ["forbidden", "hello", "hold", "interrupted", "release", "scoped"], answer


def a_call(mount: Mount) -> None:
    """A call, with what the lifespan yielded."""
    assert _text(mount.call("hello", {"name": "ann"})) == "hello ann, we are open"


def hidden(mount: Mount) -> None:
    """A hidden tool answers what a name nobody declared answers, byte for byte."""
    first, second = mount.call("secret"), mount.call("secrex")
    told = {"x-request-id", "date"}
    heads = [{k: v for k, v in each.headers.items() if k not in told} for each in (first, second)]
    assert (first.status, first.body.replace(b"secret", b"secrex")) == (second.status, second.body)
    assert heads[0] == heads[1]
    assert first.json["error"]["message"].startswith("tool not found: secret"), first


def scope(mount: Mount) -> None:
    """A missing scope is told by name."""
    answer = mount.call("scoped")
    assert answer.json["error"]["data"]["scope"] == "more", answer


def policy(mount: Mount) -> None:
    """A refusal by policy is a result that a model can read."""
    answer = mount.call("forbidden")
    assert answer.json["result"]["isError"] is True, answer
    assert _text(answer).startswith("X_FORBIDDEN: "), answer


def too_large(mount: Mount) -> None:
    """A body over the limit is 413, in our words, and the server goes on."""
    answer = mount.post(b" " * (BODY_LIMIT + 1))
    assert (answer.status, answer.json["error"]["data"]["code"]) == (413, "X_MCP_BODY_TOO_LARGE"), answer
    assert mount.post(b" " * (BODY_LIMIT - 200) + _rpc("ping")).status == 200


def too_many(mount: Mount) -> None:
    """More requests than the rate are 429 with the seconds to wait, on the endpoint beside the first."""
    answers = [mount.post(_rpc("ping"), "/tight") for _ in range(TIGHT + 1)]
    assert [each.status for each in answers] == [*[200] * TIGHT, 429], answers
    assert int(answers[-1].headers["retry-after"]) > 0


def nobody(mount: Mount) -> None:
    """A caller without a token is 401 with the challenge."""
    answer = Mount(mount.port, mount.prefix, None).post(_rpc("ping"))
    assert (answer.status, answer.json["error"]["data"]["code"]) == (401, "X_UNAUTHENTICATED"), answer
    assert answer.headers["www-authenticate"] == 'Bearer realm="nonsuch-mcp"', answer


def stream(mount: Mount) -> None:
    """Events leave while the handler still runs: it ends after another request was answered."""
    connection = mount.begin(_call("hold", progressToken="held"))
    try:
        answer = connection.getresponse()
        assert answer.getheader("content-type") == "text/event-stream"
        first = _event(answer)
        assert first["method"] == "notifications/progress", first
        assert _text(mount.call("release")) == "done"
        while "result" not in (last := _event(answer)):
            pass
        assert last["result"]["content"][0]["text"] == "released", last
        assert answer.read().strip() == b""
    finally:
        connection.close()


def disconnect(mount: Mount) -> None:
    """A client that leaves in the middle of a stream stops its call."""
    before = _interrupted(mount)
    connection = mount.begin(_modern("hold", progressToken="left"), **{**_MODERN_HEADERS, "Mcp-Name": "hold"})
    answer = connection.getresponse()
    assert _event(answer)["method"] == "notifications/progress"
    answer.close()
    connection.close()
    end = time.monotonic() + PATIENCE_SECONDS
    while _interrupted(mount) == before:
        assert time.monotonic() < end, "the call went on without its client"
        time.sleep(0.05)


def listening(mount: Mount) -> http.client.HTTPResponse:
    """Open a subscription and wait until it is acknowledged."""
    said: dict[str, Any] = {"protocolVersion": _MODERN, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in said.items()}
    body = _rpc("subscriptions/listen", {"notifications": {}, "_meta": meta})
    headers = {"MCP-Protocol-Version": _MODERN, "Mcp-Method": "subscriptions/listen"}
    answer = mount.begin(body, **headers).getresponse()
    assert _event(answer)["method"].endswith("acknowledged")
    return answer


def ended(answer: http.client.HTTPResponse) -> None:
    """A subscription ended with its answer, and not by a socket that closed."""
    assert _event(answer)["result"]["resultType"] == "complete"


def _interrupted(mount: Mount) -> int:
    return int(_text(mount.call("interrupted")))


def _event(answer: http.client.HTTPResponse) -> Any:
    """Read one event with data."""
    while not (line := answer.readline()).startswith(b"data: "):
        assert line, "the stream ended"
    return json.loads(line.removeprefix(b"data: "))


OVER_A_SOCKET: Final[Mapping[str, Callable[[Mount], None]]] = {
    "list": a_list,
    "call": a_call,
    "hidden": hidden,
    "scope": scope,
    "policy": policy,
    "413": too_large,
    "429": too_many,
    "401": nobody,
    "stream": stream,
    "disconnect": disconnect,
}
