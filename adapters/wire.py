"""HTTP as values: a request's head, a reply, and the checks that come before any surface is chosen.

Shared by the MCP and HTTP adapters. Opens no socket.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal
from urllib.parse import urlsplit

from pydantic_core import to_json

from ..kernel.audit import AuthReason, AuthRefused
from ..kernel.codes import CODES
from ..kernel.errors import ErrorAudience, Refusal, refused
from ..kernel.meter import Limits as RateLimits
from ..kernel.meter import Verdict, address_key
from ..kernel.model import Agent, Human, Principal
from ..kernel.steps import (
    Audit,
    RequestFacts,
    ResolvePrincipal,
    ResolveToken,
    Returned,
    Steps,
    TakeToken,
)
from ..kernel.strict_json import Json, Limits
from ..kernel.values import value

BODY_LIMIT: Final = 1_048_576
MEMO: Final = 256
MEMO_CHARS: Final = 512  # of a text that is remembered; no host has as many (RFC 1035 3.1)
REALM: Final = "nonsuch-mcp"
JSON_TYPE: Final = "application/json"
PROBLEM_TYPE: Final = "application/problem+json"
STREAM_TYPE: Final = "text/event-stream"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Connection:
    """What a connection without headers remembers of its client: what the older revisions say only once."""

    version: str | None = None
    capabilities: Mapping[str, Json] = field(default_factory=dict[str, Json])
    level: str = "debug"
    uris: frozenset[str] = frozenset()


@value
class Head:
    """A request before its body.

    ``headers`` has lower-case names; a repeated header arrives joined with a comma (RFC 9110 5.3),
    so that it equals no single value. ``received`` is when, in seconds since 1970. ``connection`` is
    there where no headers are: then nothing mirrors the body. ``query`` is what followed the question mark,
    ``prefix`` where the application is mounted: it stood before ``path``, and says nothing of what is asked.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    address: str | None = None
    scheme: str = "http"
    received: float = 0.0
    connection: Connection | None = None
    query: str = ""
    prefix: str = ""

    @property
    def version(self) -> str | None:
        """The protocol's version as it is known before the body: a header, or what was negotiated."""
        held = self.connection
        return self.headers.get("mcp-protocol-version") if held is None else held.version


@value
class Reply:
    """One whole answer."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    media: str = JSON_TYPE

    def all_headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers to send, with the content's type and length."""
        if self.status == 204:  # RFC 9110 8.6: no length there
            return self.headers
        length = ("content-length", str(len(self.body)))
        typed = (("content-type", self.media), length) if self.body else (length,)
        return (*typed, *self.headers)


STREAM_HEADERS: Final = (
    ("content-type", STREAM_TYPE),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),  # a proxy that collects events would hold them back
)


def event(message: bytes) -> bytes:
    """Return one server-sent event around a JSON message (HTML, 9.2.6)."""
    return b"event: message\ndata: %b\n\n" % one_line(message)


def one_line(message: bytes) -> bytes:
    """Return a JSON message with the line ends of other alphabets escaped: some readers split lines there."""
    for char, escape in _LINE_ENDS:
        message = message.replace(char, escape)
    return message


def last_event(reply: Reply) -> bytes:
    """Return the end of a stream: the answer as an event, which it is already for who takes nothing else."""
    return reply.body if reply.media == STREAM_TYPE or not reply.body else event(reply.body)


_LINE_ENDS: Final = (
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
    ("\u0085".encode(), b"\\u0085"),
)


@dataclass(frozen=True, slots=True)
class Door:
    """What a request must satisfy before anything else is read.

    Loopback hosts and origins are admitted by default, because a page in a browser can reach them by
    a name of its own choosing (DNS rebinding); every other host or origin must be listed. ``server`` is
    the app's name: two apps that count in one store count apart.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    body_limit: int = BODY_LIMIT
    audience: ErrorAudience = field(default="caller")
    rates: RateLimits | None = None
    server: str = ""
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", Limits(max_bytes=self.body_limit))

    def refuses(self, head: Head) -> Refusal | None:
        """Return why a foreign Host or Origin is refused (403; MCP transports, security warning)."""
        if not self.admits_host(head):
            return _foreign("host", "allowed_hosts")
        origin = head.headers.get("origin")
        if origin is None or origin in self.origins or _is_loopback(_host_name(_after_scheme(origin))):
            return None
        return _foreign("origin", "allowed_origins")

    def admits_host(self, head: Head) -> bool:
        """Whether the request's Host is this machine's or a listed one."""
        host = head.headers.get("host", "")
        return _is_loopback(name := _host_name(host)) or not self.hosts.isdisjoint({host.lower(), name})


def foreign(head: Head, door: Door) -> Steps[Refusal | None]:
    """Return why a foreign Host or Origin is refused, which is audited, before anybody is asked for."""
    told = door.refuses(head)
    if told is not None:
        yield Audit(auth_refused("foreign-origin" if door.admits_host(head) else "foreign-host", 403, head))
    return told


def cross_origin(head: Head) -> tuple[tuple[str, str], ...]:
    """Return what lets a page of an admitted origin read the answer (Fetch, CORS protocol).

    Only for a request that ``Door.refuses`` let pass. Credentials are never asked of the browser: the
    token is a header that the page sends itself.
    """
    origin = head.headers.get("origin")
    if origin is None:
        return ()
    return (
        ("access-control-allow-origin", origin),
        ("access-control-expose-headers", "www-authenticate"),
        ("vary", "origin"),
    )


def preflight(head: Head, method: str = "POST") -> Reply:
    """Answer a browser that asks before it sends, which it does without a token.

    A header ``mcp-param-*`` is allowed by its form alone: a list of those that tools use would name them.
    """
    asked = head.headers.get("access-control-request-headers", "").lower().split(",")
    names = {each.strip() for each in asked}
    allowed = sorted(each for each in names if each in _MAY_SEND or _MIRRORED.fullmatch(each))
    methods = ("access-control-allow-methods", method)
    listed = (("access-control-allow-headers", ", ".join(allowed)),) if allowed else ()
    return Reply(204, headers=(methods, *listed, ("access-control-max-age", "600")))


_MAY_SEND: Final = frozenset(
    {"authorization", "content-type", "accept", "mcp-protocol-version", "mcp-method", "mcp-name"}
)
_MIRRORED: Final = re.compile(r"mcp-param-[a-z0-9-]{1,64}")


def _foreign(what: str, knob: str) -> Refusal:
    return Refusal(
        "X_MCP_PROTOCOL",
        f"the request's {what} is not one this server answers to",
        f"list it in `{knob}` of `define_app_mcp`",
    )


def _is_loopback(name: str) -> bool:
    """Whether a name is this machine's: nobody can be given one below ``localhost`` (RFC 6761 6.3)."""
    return name in _LOOPBACK or name.endswith(".localhost")


def _after_scheme(origin: str) -> str:
    scheme, _, rest = origin.partition("://")
    return rest if scheme in ("http", "https") and "/" not in rest else ""


def _host_name(host: str) -> str:
    """Return the host without its port, or nothing if it is not plainly a host and a port."""
    return _plain_host(host) if len(host) <= MEMO_CHARS else ""


@lru_cache(MEMO)
def _plain_host(host: str) -> str:
    try:
        parts = urlsplit(f"//{host}")
        plain = (
            parts.netloc == host
            and parts.username is None
            and not (parts.path or parts.query or parts.fragment)
        )
        _ = parts.port
    except ValueError:
        return ""
    return (parts.hostname or "") if plain else ""


def problem(status: int, told: Refusal, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """Return an error body as every HTTP surface gives it: our members, and beside them RFC 9457's."""
    known = CODES.get(told.code)
    body: dict[str, object] = {"code": told.code, "cause": told.cause, "fix": told.fix, "docs": told.docs}
    body |= {"type": told.docs, "title": told.code if known is None else known.cause}
    body |= {"status": status, "detail": told.cause}
    return Reply(status, to_json(body), headers, PROBLEM_TYPE)


def unread(status: int, cause: str, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """Return the answer to a request whose body cannot be read, whatever it is for."""
    fix = "send the whole body at once, with its `Content-Length`"
    return problem(status, Refusal("X_MCP_PROTOCOL", cause, fix), headers)


@dataclass(frozen=True, slots=True)
class Unauthenticated:
    """No caller came of the request."""

    reason: AuthReason
    status: AuthStatus
    refusal: Refusal
    retry_after: int = 0

    def headers(self, where: Mapping[str, str] = MappingProxyType({})) -> tuple[tuple[str, str], ...]:
        """Return the challenge (RFC 6750 3, RFC 9728 5.1), or how long to wait (RFC 9110 10.2.3)."""
        if self.retry_after:
            return (("retry-after", str(self.retry_after)),)
        if self.status != 401:
            return ()
        told = {} if self.reason == "no-token" else {"error": "invalid_token"}
        return (challenge({**told, **where}),)


AuthStatus = Literal[401, 403, 429, 503]


def challenge(parameters: Mapping[str, str]) -> tuple[str, str]:
    """Return a ``WWW-Authenticate`` header (RFC 6750 3) with these parameters after the realm."""
    told = "".join(f', {name}="{_quoted(value)}"' for name, value in parameters.items())
    return "www-authenticate", f'Bearer realm="{REALM}"{told}'


def _quoted(value: str) -> str:
    """Return text for a quoted string (RFC 9110 5.6.4): what the header cannot hold is replaced."""
    plain = "".join(char if " " <= char <= "~" else "?" for char in value)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def authenticate(
    head: Head,
    door: Door,
    *,
    agents_only: bool,
    session: ResolvePrincipal | None = None,
    shows: bool = True,
) -> Steps[Principal | Unauthenticated]:
    """Resolve the bearer token of a request to a principal. The token goes nowhere else.

    1. whether this address failed too often  2. the token  3. who it is  4. what kind of caller that is.
    Only failures count against an address, so that nobody is kept out by what callers behind it do; and
    who shows nothing has failed at nothing: clients ask so to find out where tokens come from.
    ``session`` is what to ask instead about a request without a token, which ``shows`` something for it.
    """
    held = yield from _held(head, door)  # 1
    if held is not None:
        return held
    token = bearer(head.headers.get("authorization"))  # 2
    asked = session if token is None else ResolveToken(token, facts_of(head))
    if asked is None:
        tried = "authorization" in head.headers
        return (yield from _refuse(head, door, "no-token", 401, tried=tried))
    answer = yield asked  # 3
    if not isinstance(answer, Returned):
        return (yield from _refuse(head, door, "resolver-failed", 503))
    if answer.value is not None and type(answer.value) not in (Agent, Human):
        return (yield from _refuse(head, door, "resolver-failed", 503))
    if not isinstance(answer.value, (Agent, Human)):
        reason: AuthReason = "no-token" if token is None else "unknown-token"
        return (yield from _refuse(head, door, reason, 401, tried=shows or token is not None))
    if agents_only and not isinstance(answer.value, Agent):  # 4
        return (yield from _refuse(head, door, "not-an-agent", 403))
    return answer.value


def _held(head: Head, door: Door) -> Steps[Unauthenticated | None]:
    """Refuse an address whose failures are used up, before its token is looked at."""
    if door.rates is None or head.address is None:
        return None
    key = address_key(door.server, head.address)
    answer = yield TakeToken(key, door.rates.unauthenticated, 0)
    verdict = answer.value if isinstance(answer, Returned) else None
    if not isinstance(verdict, Verdict):
        return (yield from _unauthenticated(head, door, "store-failed", 503, 1))
    if verdict.passes:
        return None
    return (yield from _unauthenticated(head, door, "address-limited", 429, verdict.retry_after))


def _refuse(
    head: Head, door: Door, reason: AuthReason, status: AuthStatus, *, tried: bool = True
) -> Steps[Unauthenticated]:
    """Refuse, and count the failure; one that nobody could count is told nothing of its token."""
    if tried and door.rates is not None and head.address is not None and status != 503:
        answer = yield TakeToken(address_key(door.server, head.address), door.rates.unauthenticated)
        if not isinstance(answer, Returned) or not isinstance(answer.value, Verdict):
            return (yield from _unauthenticated(head, door, "store-failed", 503, 1))
    return (yield from _unauthenticated(head, door, reason, status))


_CODES: Final[Mapping[AuthReason, str]] = {
    "no-token": "X_UNAUTHENTICATED",
    "unknown-token": "X_UNAUTHENTICATED",
    "not-an-agent": "X_MCP_AGENTS_ONLY",
    "resolver-failed": "X_INTERNAL",
    "address-limited": "X_MCP_RATE_LIMITED",
    "store-failed": "X_RATE_STORE_FAILED",
}


def _unauthenticated(
    head: Head, door: Door, reason: AuthReason, status: AuthStatus, retry_after: int = 0
) -> Steps[Unauthenticated]:
    yield Audit(auth_refused(reason, status, head))
    return Unauthenticated(reason, status, refused(_CODES[reason], door.audience), retry_after)


def auth_refused(reason: AuthReason, status: AuthStatus, head: Head) -> AuthRefused:
    """Return the event of a request that never became a caller."""
    facts = facts_of(head)
    return AuthRefused(reason, status, facts.address, facts.path, facts.user_agent, facts.origin)


MAX_TOKEN_CHARS: Final = 16_384
# RFC 6750 2.1, and whatever else is visible ASCII but a comma, with which repeated headers are joined
_BEARER: Final = re.compile(rf"bearer +([!-+\--~]{{1,{MAX_TOKEN_CHARS}}}) *", re.IGNORECASE | re.ASCII)


def bearer(header: str | None) -> str | None:
    """Return the token of an ``Authorization: Bearer`` header; what no token can be reaches no resolver."""
    found = _BEARER.fullmatch(header or "")
    return None if found is None else found[1]


def facts_of(head: Head) -> RequestFacts:
    """Return what a token resolver may know."""
    path = f"{head.prefix}{head.path}"
    return RequestFacts(head.address, head.headers.get("user-agent"), head.headers.get("origin"), path)


def media_type(head: Head) -> str:
    """Return the content's media type without parameters."""
    return head.headers.get("content-type", "").partition(";")[0].strip().lower()


def accepted(head: Head) -> tuple[bool, bool]:
    """Whether the caller takes JSON, and whether server-sent events (RFC 9110 12.5.1).

    No ``Accept`` takes anything, and is sent no events. A long one is not remembered: anybody can send many.
    """
    accept = head.headers.get("accept")
    if accept is None:
        return True, False
    return _accepted(accept) if len(accept) <= MEMO_CHARS else _accepted.__wrapped__(accept)


@lru_cache(MEMO)
def _accepted(accept: str) -> tuple[bool, bool]:
    ranges = (each.partition(";") for each in accept.lower().split(","))
    refusing = ("q=0", "q=0.0", "q=0.00", "q=0.000")
    taken = {kind.strip() for kind, _, rest in ranges if rest.replace(" ", "") not in refusing}
    return not taken.isdisjoint(_JSON_RANGES), not taken.isdisjoint(_STREAM_RANGES)


_JSON_RANGES: Final = (JSON_TYPE, "application/*", "*/*")
_STREAM_RANGES: Final = (STREAM_TYPE, "text/*", "*/*")
