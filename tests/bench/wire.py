"""The requests of the bench as bytes, in both protocol revisions; it knows neither subjects nor sockets."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal

from . import service

Wire = Literal["legacy", "modern"]
WIRES: tuple[Wire, ...] = ("legacy", "modern")

POOL = 8_192
"""How many different calls there are: more than a memo of decisions could sensibly hold."""

# ASGI's own types are untyped mappings: `Any` is the interface, not a shortcut.
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]

Headers = tuple[tuple[bytes, bytes], ...]

_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True, slots=True)
class Request:
    """One POST: what a client would send, and what a good answer holds."""

    headers: Headers
    body: bytes
    marker: bytes

    def http(self, path: str = "/mcp") -> bytes:
        """The request for a keep-alive HTTP/1.1 connection."""
        lines = [b"POST %s HTTP/1.1" % path.encode(), *(b"%s: %s" % pair for pair in self.headers)]
        return b"\r\n".join([*lines, b"", self.body])

    def scope(self, path: str = "/mcp") -> dict[str, Any]:
        """The request for an ASGI application in this process."""
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": list(self.headers),
            "client": ("127.0.0.1", 40_000),
            "server": ("127.0.0.1", 8_000),
        }


def call(wire: Wire, index: int, amount: int = 1, token: str = service.TOKEN) -> Request:
    """A `tools/call`."""
    name = service.tool_name(index)
    params = {"name": name, "arguments": service.arguments(index, amount)}
    return _request(wire, "tools/call", params, token, service.MARKER, name)


def listing(wire: Wire, tools: int, token: str = service.TOKEN) -> Request:
    """A `tools/list`; a good answer holds the last tool."""
    return _request(wire, "tools/list", {}, token, service.tool_name(tools - 1), None)


def calls(wire: Wire, tools: int) -> list[Request]:
    """Calls of the hot tools, no two alike: no memo of decisions by argument can answer for the engine."""
    hot = service.hot(tools)
    return [call(wire, hot[turn % len(hot)], 1 + turn // len(hot) % service.LIMIT) for turn in range(POOL)]


def _request(
    wire: Wire, method: str, params: dict[str, Any], token: str, marker: str, name: str | None
) -> Request:
    full = params | ({"_meta": _META} if wire == "modern" else {})
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": full}
    body = json.dumps(message, separators=(",", ":")).encode()
    headers = [
        (b"host", b"127.0.0.1:8000"),
        (b"authorization", b"Bearer " + token.encode()),
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
        *_version_headers(wire, method, name),
        (b"content-length", str(len(body)).encode()),
    ]
    return Request(tuple(headers), body, marker.encode())


def _version_headers(wire: Wire, method: str, name: str | None) -> list[tuple[bytes, bytes]]:
    """MCP 2026-07-28 transports: version, method and name are mirrored; before it, the version alone."""
    if wire == "legacy":
        return [(b"mcp-protocol-version", b"2025-11-25")]
    mirrored = [(b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", method.encode())]
    return mirrored if name is None else [*mirrored, (b"mcp-name", name.encode())]
