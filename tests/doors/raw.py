"""Requests as bytes: shapes that two readers read differently, heads and bodies that lie, and large ones.

Each says what it is an attempt at; what is answered stands in `raw.json`. Opens no socket.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

CRLF: Final = b"\r\n"
BODY_LIMIT: Final = 65_536
BASE: Final = (
    (b"Host", b"localhost"),
    (b"Authorization", b"Bearer ann"),
    (b"Content-Type", b"application/json"),
    (b"Accept", b"application/json"),
    (b"MCP-Protocol-Version", b"2025-11-25"),
)
Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Case:
    """One attempt: what is sent on a fresh connection, and what once nothing more comes back."""

    name: str
    raw: bytes
    late: bytes = b""


def rpc(method: str, params: Mapping[str, Any] | None = None, ident: int = 1) -> bytes:
    """Return a message."""
    told: dict[str, Any] = {"jsonrpc": "2.0", "id": ident, "method": method}
    return json.dumps(told if params is None else {**told, "params": params}).encode()


PING: Final = rpc("ping")
MARK: Final = rpc("tools/call", {"name": "mark", "arguments": {}}, 666)  # must never run


def head(
    *more: Header, line: bytes = b"POST /mcp HTTP/1.1", without: Iterable[bytes] = (), end: bytes = CRLF
) -> bytes:
    """Return a head: the usual headers but some, then more of them."""
    gone = {each.lower() for each in without}
    kept = [(name, value) for name, value in BASE if name.lower() not in gone]
    lines = [line, *(b"%b: %b" % pair for pair in (*kept, *more))]
    return end.join(lines) + end + end


def length(body: bytes, *more: Header, **given: Any) -> bytes:
    """Return a request with a Content-Length."""
    return head((b"Content-Length", b"%d" % len(body)), *more, **given) + body


def chunked(body: bytes, size: int = 10) -> bytes:
    """Return a body in chunks."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


CHUNKED: Final = (b"Transfer-Encoding", b"chunked")
SMUGGLED: Final = length(MARK)
FOLLOW: Final = length(rpc("ping", None, 777))


def _lengths() -> dict[str, bytes]:
    cl, short = b"%d" % len(PING), b"%d" % (len(PING) - 5)
    return {
        "a plain request": length(PING),
        "two requests, one behind the other": length(PING) + length(rpc("ping", None, 2)),
        "a length twice, the same": head((b"Content-Length", cl), (b"Content-Length", cl)) + PING,
        "a length twice, two values": head((b"Content-Length", cl), (b"Content-Length", b"0")) + PING,
        "a length twice, the smaller first": head((b"Content-Length", b"0"), (b"Content-Length", cl))
        + PING
        + SMUGGLED,
        "a length as a list": head((b"Content-Length", b"%b, %b" % (cl, cl))) + PING,
        "a length as a list of two values": head((b"Content-Length", b"0, %b" % cl)) + PING,
        "a length with a plus": head((b"Content-Length", b"+" + cl)) + PING,
        "a length with a minus": head((b"Content-Length", b"-1")) + PING,
        "a length in hex": head((b"Content-Length", b"0x%x" % len(PING))) + PING,
        "a length with leading zeros": head((b"Content-Length", b"000" + cl)) + PING,
        "a length with an underscore": head((b"Content-Length", b"4_0")) + PING,
        "a length in other digits": head((b"Content-Length", "\u0664\u0660".encode())) + PING,
        "a length with spaces inside": head((b"Content-Length", b"4 0")) + PING,
        "an empty length": head((b"Content-Length", b"")) + PING,
        "a length of twenty digits": head((b"Content-Length", b"9" * 20)) + PING,
        "a length of a thousand digits": head((b"Content-Length", b"9" * 1_000)) + PING,
        "a length shorter than the body": head((b"Content-Length", short)) + PING,
        "no length at all": head() + PING,
        "a length over the limit": head((b"Content-Length", b"%d" % (BODY_LIMIT + 1))),
        "a body over the limit": length(b" " * BODY_LIMIT + PING),
        "a body at the limit": length(b" " * (BODY_LIMIT - len(PING)) + PING),
        "a body of nothing": length(b""),
        "a body cut short": length(PING)[:-5],
        "a head cut short": length(PING)[:40],
        "content_length spelt with an underscore": head((b"Content_Length", cl)) + PING,
        "a length behind a space": head((b"Content-Length ", cl)) + PING,
        "a length behind a folded line": head((b"X-Folded", b"a\r\n Content-Length: %b" % cl)) + PING,
        "a length after a bare line feed": head((b"X-Bare", b"a\nContent-Length: %b" % cl)) + PING,
        "a length after a bare carriage return": head((b"X-Bare", b"a\rContent-Length: %b" % cl)) + PING,
    }


def _transfers() -> dict[str, bytes]:
    cl = (b"Content-Length", b"%d" % len(PING))
    both = chunked(b"") + SMUGGLED
    te = b"Transfer-Encoding"
    return {
        "chunks": head(CHUNKED) + chunked(PING),
        "chunks of one byte": head(CHUNKED) + chunked(PING, 1),
        "chunks and a length": head(CHUNKED, cl) + chunked(PING),
        "a length and chunks": head(cl, CHUNKED) + chunked(PING),
        "a length of zero and chunks": head((b"Content-Length", b"0"), CHUNKED) + chunked(PING),
        "chunks that end at once, a request behind": head((b"Content-Length", b"%d" % len(both)), CHUNKED)
        + both,
        "chunked in capitals": head((te, b"CHUNKED")) + chunked(PING),
        "chunked behind a tab": head((te, b"\tchunked")) + chunked(PING),
        "chunked behind a vertical tab": head((te, b"\x0bchunked")) + chunked(PING),
        "chunked twice": head(CHUNKED, CHUNKED) + chunked(PING),
        "chunked, then identity": head((te, b"chunked, identity")) + chunked(PING),
        "identity, then chunked": head((te, b"identity"), CHUNKED) + chunked(PING),
        "gzip, then chunked": head((te, b"gzip, chunked")) + chunked(gzip.compress(PING)),
        "xchunked": head((te, b"xchunked")) + chunked(PING),
        "a quoted chunked": head((te, b'"chunked"')) + chunked(PING),
        "chunked behind a space in the name": head((te + b" ", b"chunked")) + chunked(PING),
        "chunked behind a folded line": head((te, b"\r\n chunked")) + chunked(PING),
        "chunks over HTTP 1.0": head(CHUNKED, line=b"POST /mcp HTTP/1.0") + chunked(PING),
        "a chunk size in capitals": head(CHUNKED) + b"%X\r\n%b\r\n0\r\n\r\n" % (len(PING), PING),
        "a chunk size with 0x": head(CHUNKED) + b"0x%x\r\n%b\r\n0\r\n\r\n" % (len(PING), PING),
        "a chunk size with a minus": head(CHUNKED) + b"-1\r\n%b\r\n0\r\n\r\n" % PING,
        "a chunk size with zeros in front": head(CHUNKED) + b"00000%x\r\n%b\r\n0\r\n\r\n" % (len(PING), PING),
        "a chunk size of 32 digits": head(CHUNKED) + b"f" * 32 + CRLF + PING,
        "a chunk size over 64 bits": head(CHUNKED) + b"1%016x\r\n%b\r\n0\r\n\r\n" % (len(PING), PING),
        "a chunk extension": head(CHUNKED) + b"%x;a=b\r\n%b\r\n0\r\n\r\n" % (len(PING), PING),
        "a chunk extension with a line feed": head(CHUNKED)
        + b"%x;a\nb\r\n%b\r\n0\r\n\r\n" % (len(PING), PING),
        "a chunk extension of a megabyte": head(CHUNKED) + b"1;%b\r\n " % (b"a" * 1_048_576),
        "chunks ended by bare line feeds": head(CHUNKED) + chunked(PING).replace(CRLF, b"\n"),
        "a chunk longer than its size": head(CHUNKED) + b"5\r\n%b\r\n0\r\n\r\n" % PING,
        "chunks without an end": head(CHUNKED) + chunked(PING)[:-5],
        "a trailer": head(CHUNKED) + chunked(PING)[:-2] + b"X-Trailer: a\r\n\r\n",
        "a trailer that is a token": head(CHUNKED, without=[b"authorization"])
        + chunked(PING)[:-2]
        + b"Authorization: Bearer ann\r\n\r\n",
        "chunks over the limit": head(CHUNKED) + chunked(b" " * BODY_LIMIT + PING, 10_000),
    }


def _heads() -> dict[str, bytes]:
    token = (b"Authorization", b"Bearer ann")
    return {
        "no host": length(PING, without=[b"host"]),
        "two hosts": length(PING, (b"Host", b"localhost")),
        "two hosts, one foreign": length(PING, (b"Host", b"evil.example")),
        "a foreign host": length(PING, (b"Host", b"evil.example"), without=[b"host"]),
        "a host with a user": length(PING, (b"Host", b"localhost@evil.example"), without=[b"host"]),
        "an absolute target": length(PING, line=b"POST http://localhost/mcp HTTP/1.1"),
        "an absolute target of another host": length(PING, line=b"POST http://evil.example/mcp HTTP/1.1"),
        "an absolute target, and a foreign host": length(
            PING, (b"Host", b"evil.example"), without=[b"host"], line=b"POST http://localhost/mcp HTTP/1.1"
        ),
        "a target of two slashes": length(PING, line=b"POST //mcp HTTP/1.1"),
        "a target with dots": length(PING, line=b"POST /x/../mcp HTTP/1.1"),
        "a target with an escaped slash": length(PING, line=b"POST /%6dcp%2f HTTP/1.1"),
        "a target with an escaped nul": length(PING, line=b"POST /mcp%00 HTTP/1.1"),
        "a target with a bad escape": length(PING, line=b"POST /mcp%zz HTTP/1.1"),
        "a target with a fragment": length(PING, line=b"POST /mcp#a HTTP/1.1"),
        "a target with a query": length(PING, line=b"POST /mcp?path=/api HTTP/1.1"),
        "a target that is no path": length(PING, line=b"POST mcp HTTP/1.1"),
        "a target of a star": length(PING, line=b"OPTIONS * HTTP/1.1"),
        "a target with raw bytes": length(PING, line=b"POST /m\xc3\xa9cp HTTP/1.1"),
        "a target of ninety thousand bytes": length(PING, line=b"POST /%b HTTP/1.1" % (b"a" * 90_000)),
        "a line with two spaces": length(PING, line=b"POST  /mcp  HTTP/1.1"),
        "a line with a tab": length(PING, line=b"POST\t/mcp HTTP/1.1"),
        "an empty line first": CRLF + length(PING),
        "HTTP 0.9": b"POST /mcp\r\n\r\n",
        "HTTP 1.0": length(PING, line=b"POST /mcp HTTP/1.0"),
        "HTTP 1.2": length(PING, line=b"POST /mcp HTTP/1.2"),
        "HTTP 2.0": length(PING, line=b"POST /mcp HTTP/2.0"),
        "the preface of HTTP 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "the hello of TLS": bytes.fromhex("16030100a5010000a10303") + bytes(100),
        "an upgrade to h2c": length(
            PING,
            (b"Connection", b"Upgrade, HTTP2-Settings"),
            (b"Upgrade", b"h2c"),
            (b"HTTP2-Settings", b"AAMAAABk"),
        ),
        "an upgrade to websocket": head(
            (b"Connection", b"Upgrade"),
            (b"Upgrade", b"websocket"),
            (b"Sec-WebSocket-Key", b"dGhlIHNhbXBsZSBub25jZQ=="),
            (b"Sec-WebSocket-Version", b"13"),
            line=b"GET /mcp HTTP/1.1",
        ),
        "expect continue": head((b"Content-Length", b"%d" % len(PING)), (b"Expect", b"100-continue")) + PING,
        "expect something else": length(PING, (b"Expect", b"the-impossible")),
        "connection close": length(PING, (b"Connection", b"close")),
        "connection names the token": length(PING, (b"Connection", b"authorization")),
        "OPTIONS": head(line=b"OPTIONS /mcp HTTP/1.1"),
        "a preflight": head(
            (b"Origin", b"http://localhost"),
            (b"Access-Control-Request-Method", b"POST"),
            line=b"OPTIONS /mcp HTTP/1.1",
        ),
        "TRACE": head(line=b"TRACE /mcp HTTP/1.1"),
        "CONNECT": head(line=b"CONNECT localhost:443 HTTP/1.1"),
        "GET": head(line=b"GET /mcp HTTP/1.1"),
        "HEAD": head(line=b"HEAD /mcp HTTP/1.1"),
        "a method of another case": length(PING, line=b"post /mcp HTTP/1.1"),
        "a made up method": length(PING, line=b"BREW /mcp HTTP/1.1"),
        "a method that is overridden": length(
            PING, (b"X-HTTP-Method-Override", b"POST"), line=b"GET /mcp HTTP/1.1"
        ),
        "a path that is overridden": length(
            PING, (b"X-Original-URL", b"/mcp"), line=b"POST /nothing HTTP/1.1"
        ),
        "two tokens, the same": length(PING, token),
        "two tokens": length(PING, (b"Authorization", b"Bearer bob")),
        "a token in an underscore header": length(
            PING, (b"Authoriz_ation", b"x"), without=[b"authorization"]
        ),
        "a header without a colon": length(PING, line=b"POST /mcp HTTP/1.1\r\nX-Nothing"),
        "a header without a name": length(PING, (b"", b"a")),
        "a header with a nul": length(PING, (b"X-Nul", b"a\x00b")),
        "a header with high bytes": length(PING, (b"X-High", bytes(range(128, 256)))),
        "a header name with high bytes": length(PING, (b"X-\xe9", b"a")),
        "a header of sixty thousand bytes": length(PING, (b"X-Large", b"a" * 60_000)),
        "a header of a megabyte": length(PING, (b"X-Large", b"a" * 1_048_576)),
        "ten thousand headers": length(PING, *((b"X-%d" % at, b"a") for at in range(10_000))),
        "a thousand of one header": length(PING, *((b"X-Same", b"a") for _ in range(1_000))),
        "a head that ends in bare line feeds": length(PING, end=b"\n"),
        "a cookie of sixteen thousand": length(PING, (b"Cookie", b"a=b; " * 3_200)),
        "an origin that is foreign": length(PING, (b"Origin", b"https://evil.example")),
        "an origin twice": length(
            PING, (b"Origin", b"http://localhost"), (b"Origin", b"https://evil.example")
        ),
        "two versions of the protocol": length(PING, (b"MCP-Protocol-Version", b"2026-07-28")),
        "nothing but line ends": CRLF * 1_000,
        "nothing but spaces": b" " * 1_000,
    }


def _bodies() -> dict[str, bytes]:
    bomb = gzip.compress(b" " * 20_000_000)
    return {
        "a compressed body": length(gzip.compress(PING), (b"Content-Encoding", b"gzip")),
        "a compressed bomb": length(bomb, (b"Content-Encoding", b"gzip")),
        "a deflated bomb": length(zlib.compress(b" " * 20_000_000), (b"Content-Encoding", b"deflate")),
        "an unknown encoding": length(PING, (b"Content-Encoding", b"br")),
        "another character set": length(
            PING.decode().encode("utf-16"),
            (b"Content-Type", b"application/json; charset=utf-16"),
            without=[b"content-type"],
        ),
        "text": length(PING, (b"Content-Type", b"text/plain"), without=[b"content-type"]),
        "two types": length(PING, (b"Content-Type", b"text/plain")),
        "a form": length(
            b"a=b", (b"Content-Type", b"application/x-www-form-urlencoded"), without=[b"content-type"]
        ),
        "JSON that is deep": length(b"[" * 60_000),
        "JSON that is wide": length(b"[" + b"0," * 30_000 + b"0]"),
        "JSON of many keys": length(json.dumps({f"k{at}": at for at in range(4_000)}).encode()),
        "JSON with a key twice": length(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'),
        "JSON with a large number": length(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % (b"9" * 60_000)),
        "JSON with a byte order mark": length(b"\xef\xbb\xbf" + PING),
        "a batch": length(b"[" + PING + b"]"),
        "no JSON": length(b"\x00\xff" * 100),
    }


def _late() -> dict[str, tuple[bytes, bytes]]:
    """Bodies that are requests, behind a head that some server takes for whole."""
    size = (b"Content-Length", b"%d" % len(SMUGGLED))
    upgrade = (b"Connection", b"Upgrade")
    return {
        "a body that is a request": (head(size), SMUGGLED),
        "a body that is a request, behind an upgrade to h2c": (
            head(size, upgrade, (b"Upgrade", b"h2c")),
            SMUGGLED,
        ),
        "a body that is a request, behind an upgrade to websocket": (
            head(size, upgrade, (b"Upgrade", b"websocket")),
            SMUGGLED,
        ),
        "chunks that are a request, behind an upgrade": (
            head(CHUNKED, upgrade, (b"Upgrade", b"h2c")),
            SMUGGLED,
        ),
        "a length and chunks, and a request later": (head(size, CHUNKED) + b"0\r\n\r\n", SMUGGLED),
        "a body that is a request, of a GET": (head(size, line=b"GET /mcp HTTP/1.1"), SMUGGLED),
        "a body that is a request, behind no token": (head(size, without=[b"authorization"]), SMUGGLED),
        "a body that is a request, behind HTTP 1.0": (head(size, line=b"POST /mcp HTTP/1.0"), SMUGGLED),
        "a body that is a request, and expects to continue": (
            head(size, (b"Expect", b"100-continue")),
            SMUGGLED,
        ),
        "a body in two parts": (length(PING)[:-10], length(PING)[-10:]),
    }


CASES: Final = (
    *(
        Case(name, raw)
        for group in (_lengths(), _transfers(), _heads(), _bodies())
        for name, raw in group.items()
    ),
    *(Case(name, raw, late) for name, (raw, late) in _late().items()),
)
