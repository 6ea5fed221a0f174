"""HTTP as values: a request's head, a reply, and how both are written. Shared by the MCP and HTTP adapters.

Opens no socket and refuses nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from pydantic_core import to_json

from ..kernel.codes import CODES
from ..kernel.errors import Refusal
from ..kernel.strict_json import Json
from ..kernel.values import value

MEMO: Final = 256
MEMO_CHARS: Final = 512  # of a text that is remembered; no host has as many (RFC 1035 3.1)
JSON_TYPE: Final = "application/json"
PROBLEM_TYPE: Final = "application/problem+json"
STREAM_TYPE: Final = "text/event-stream"


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
