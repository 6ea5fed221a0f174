"""What a request must satisfy before anybody asks who sent it: its Host and Origin, and what pages may read.

Also the event of a request that never became a caller. Opens no socket.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import urlsplit

from ..kernel.audit import AuthReason, AuthRefused
from ..kernel.errors import ErrorAudience, Refusal
from ..kernel.meter import Limits as RateLimits
from ..kernel.steps import Audit, RequestFacts, Steps
from ..kernel.strict_json import Limits
from .wire import MEMO, MEMO_CHARS, Head, Reply

BODY_LIMIT: Final = 1_048_576
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
AuthStatus = Literal[401, 403, 429, 503]


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


def auth_refused(reason: AuthReason, status: AuthStatus, head: Head) -> AuthRefused:
    """Return the event of a request that never became a caller."""
    facts = facts_of(head)
    return AuthRefused(reason, status, facts.address, facts.path, facts.user_agent, facts.origin)


def facts_of(head: Head) -> RequestFacts:
    """Return what a token resolver may know."""
    path = f"{head.prefix}{head.path}"
    return RequestFacts(head.address, head.headers.get("user-agent"), head.headers.get("origin"), path)


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
