"""An issuer of tokens on this machine: signs them, publishes its keys, tells what a token is.

It can be stopped and started, and answers wrongly when it is told to. Knows no resolver.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Final, Literal
from urllib.parse import parse_qs, unquote_plus

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import get_default_algorithms

AUDIENCE: Final = "https://api.example/mcp"
NAME: Final = "https://login.example"
ID, SECRET = "the endpoint", "its s3cret: +/&"
Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
Mode = Literal["well", "failing", "hanging", "garbage", "empty", "elsewhere", "dripping"]

RSA: Final = rsa.generate_private_key(65_537, 2_048)
OTHER_RSA: Final = rsa.generate_private_key(65_537, 2_048)
EC: Final = ec.generate_private_key(ec.SECP256R1())
ED: Final = ed25519.Ed25519PrivateKey.generate()
SHARED: Final = b"a secret that was published by mistake, of many bytes"


def pem(key: Private) -> bytes:
    """The public half as text."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def published(key: Private, ident: str, alg: str, **more: object) -> dict[str, object]:
    """The public half as a JWK."""
    held: dict[str, object] = json.loads(get_default_algorithms()[alg].to_jwk(key.public_key()))
    return {**held, "kid": ident, "alg": alg, "use": "sig", **more}


class After(int):
    """A time that many seconds after the token is made."""


def claims(**more: object) -> dict[str, object]:
    """What a good token says now; a value of `...` leaves the claim out."""
    now = int(time.time())
    told: dict[str, object] = {
        "iss": NAME,
        "aud": AUDIENCE,
        "exp": now + 86_400,
        "client_id": "robot",
        "scope": "posts:read posts:write",
        "roles": ["editor"],
        **more,
    }
    kept = {name: value for name, value in told.items() if value is not ...}
    return {name: now + value if isinstance(value, After) else value for name, value in kept.items()}


def signed(
    told: Mapping[str, object], key: Any = RSA, alg: str = "RS256", ident: str | None = "one", **headers: Any
) -> str:
    """A token, whatever it says."""
    named = {"typ": "JWT"} if ident is None else {"typ": "JWT", "kid": ident}
    return jwt.PyJWS().encode(json.dumps(dict(told)).encode(), key, alg, {**named, **headers})


def part(told: object) -> str:
    """A part of a token, whatever it says."""
    raw = told if isinstance(told, bytes) else json.dumps(told).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@dataclass(eq=False)
class Issuer:
    """The server; ``keys`` are what it publishes, ``known`` what it says of tokens."""

    keys: list[dict[str, object]] = field(default_factory=lambda: [published(RSA, "one", "RS256")])
    known: dict[str, dict[str, object]] = field(default_factory=dict[str, dict[str, object]])
    mode: Mode = "well"
    fetched: int = 0
    stolen: int = 0
    asked: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    port: int = 0
    released: Event = field(default_factory=Event)
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Where it is, or was."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen; always at the same place."""
        ThreadingHTTPServer.allow_reuse_address = True
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        self._server = None

    def answer(self, method: str, path: str, auth: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Answer one request."""
        match method, path:
            case "GET", "/jwks":
                self.fetched += 1
                return self._wrong() or (200, json.dumps({"keys": self.keys}).encode())
            case "POST", "/introspect":
                self.asked.append(dict(form))
                wrong = self._wrong()
                if wrong is not None:
                    return wrong
                if auth != f"{ID}:{SECRET}":
                    return 401, b'{"error":"invalid_client"}'
                told = self.known.get(form["token"], {"active": False})
                return 200, json.dumps(told).encode()
            case _, "/stolen":
                self.stolen += 1
                return 200, b"{}"
            case _:
                return 404, b"{}"

    def _wrong(self) -> tuple[int, bytes] | None:
        match self.mode:
            case "well":
                return None
            case "failing":
                return 500, b"{}"
            case "hanging":
                self.released.wait(10)
                return 500, b"{}"
            case "garbage":
                return 200, b"<html>"
            case "empty":
                return 200, b"[]"
            case "elsewhere":
                return 307, b""
            case "dripping":
                return 200, b"{" + b" " * 50 + b"}"


@contextmanager
def issuer() -> Generator[Issuer]:
    """An issuer, listening."""
    made = Issuer()
    made.start()
    try:
        yield made
    finally:
        made.released.set()
        made.stop()


def _handler(held: Issuer) -> type[BaseHTTPRequestHandler]:
    answer: Callable[..., tuple[int, bytes]] = held.answer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(*answer("GET", self.path, "", {}))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
            form = {name: values[0] for name, values in parse_qs(body, keep_blank_values=True).items()}
            self._send(*answer("POST", self.path, self._credentials(), form))

        def _credentials(self) -> str:
            raw = base64.b64decode(self.headers.get("authorization", "").removeprefix("Basic ")).decode()
            return ":".join(unquote_plus(each) for each in raw.split(":"))

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            if status == 307:
                self.send_header("location", f"http://127.0.0.1:{held.port}/stolen")
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            for each in [body] if held.mode != "dripping" else [body[at : at + 1] for at in range(len(body))]:
                self.wfile.write(each)
                self.wfile.flush()
                held.released.wait(0.1 if held.mode == "dripping" else 0)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
