"""A small authorization server for tests: metadata, registration, PKCE, codes and tokens, all in memory.

Nobody signs in: whoever asks is granted the scopes asked for, at once. Knows no MCP.
"""

import json
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

KNOWN: Final = frozenset({"read", "write", "delete"})
SECONDS: Final = 3_600


@dataclass(frozen=True, slots=True)
class Client:
    """Whoever registered; its name is the subject of its tokens."""

    name: str
    redirect_uris: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """What a code stands for, until it is redeemed."""

    client_id: str
    redirect_uri: str
    challenge: str
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Token:
    """What an access token stands for."""

    subject: str
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer."""

    status: int
    body: Mapping[str, object] | None = None
    location: str | None = None


class Refused(Exception):
    """An error response (RFC 6749 5.2)."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(error, description)
        self.answer = Answer(400, {"error": error, "error_description": description})


class Authority:
    """The server, from `with` to its end. ``tokens`` are those it issued, all for the one resource."""

    def __init__(self, resource: str, on_token: Callable[["Token"], object]) -> None:
        self._resource = resource
        self._on_token = on_token
        self._clients: dict[str, Client] = {}
        self._codes: dict[str, Grant] = {}
        self.tokens: dict[str, Token] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.answer))
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "Authority":
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, given: Mapping[str, Any]) -> Answer:
        """Answer one request; ``given`` is its query, its form or its JSON."""
        try:
            match method, path:
                case "GET", "/.well-known/oauth-authorization-server":
                    return Answer(200, self._metadata())
                case "POST", "/register":
                    return self._register(given)
                case "GET", "/authorize":
                    return self._authorize(given)
                case "POST", "/token":
                    return self._redeem(given)
                case _:
                    return Answer(404, {"error": "not_found"})
        except Refused as refused:
            return refused.answer

    def _metadata(self) -> Mapping[str, object]:
        """RFC 8414 2."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "scopes_supported": sorted(KNOWN),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
        }

    def _register(self, given: Mapping[str, Any]) -> Answer:
        """RFC 7591 3.1: a public client, whatever else it asks for."""
        client_id = secrets.token_urlsafe(8)
        self._clients[client_id] = Client(given["client_name"], tuple(given["redirect_uris"]))
        return Answer(201, {**given, "client_id": client_id, "token_endpoint_auth_method": "none"})

    def _authorize(self, given: Mapping[str, Any]) -> Answer:
        """RFC 6749 4.1.1, RFC 7636 4.3, RFC 8707 2."""
        client = self._clients.get(given.get("client_id", ""))
        if client is None or given.get("redirect_uri") not in client.redirect_uris:
            raise Refused("invalid_request", "no such client, or not its redirect address")
        if given.get("response_type") != "code" or given.get("code_challenge_method") != "S256":
            raise Refused("invalid_request", "a code with a challenge of S256 is what is given here")
        self._aimed(given)
        scopes = frozenset(given.get("scope", "").split())
        if not scopes or scopes - KNOWN:
            raise Refused("invalid_scope", "name scopes, of those in the metadata")
        code = secrets.token_urlsafe(16)
        self._codes[code] = Grant(given["client_id"], given["redirect_uri"], given["code_challenge"], scopes)
        answered = urlencode({"code": code, "state": given.get("state", ""), "iss": self.issuer})
        return Answer(302, location=f"{given['redirect_uri']}?{answered}")

    def _redeem(self, given: Mapping[str, Any]) -> Answer:
        """RFC 6749 4.1.3, RFC 7636 4.6."""
        grant = self._codes.pop(given.get("code", ""), None)
        if given.get("grant_type") != "authorization_code" or grant is None:
            raise Refused("invalid_grant", "no such code")
        digest = sha256(given.get("code_verifier", "").encode()).digest()
        shown = (
            given.get("client_id"),
            given.get("redirect_uri"),
            urlsafe_b64encode(digest).rstrip(b"=").decode(),
        )
        if shown != (grant.client_id, grant.redirect_uri, grant.challenge):
            raise Refused("invalid_grant", "the code was given to another")
        self._aimed(given)
        token = secrets.token_urlsafe(16)
        self.tokens[token] = Token(self._clients[grant.client_id].name, grant.scopes)
        self._on_token(self.tokens[token])
        told = {"token_type": "Bearer", "expires_in": SECONDS, "scope": " ".join(sorted(grant.scopes))}
        return Answer(200, {"access_token": token, **told})

    def _aimed(self, given: Mapping[str, Any]) -> None:
        if given.get("resource") != self._resource:
            raise Refused("invalid_target", f"tokens are for {self._resource}, not {given.get('resource')}")


def _handler(answer: Callable[[str, str, Mapping[str, Any]], Answer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            self._send(answer("GET", parts.path, dict(parse_qsl(parts.query))))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
            plain = self.headers.get_content_type() == "application/json"
            given = json.loads(body) if plain else dict(parse_qsl(body))
            self._send(answer("POST", urlsplit(self.path).path, given))

        def _send(self, told: Answer) -> None:
            self.send_response(told.status)
            if told.location is not None:
                self.send_header("location", told.location)
            body = b"" if told.body is None else json.dumps(told.body).encode()
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
