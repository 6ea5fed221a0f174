"""A WSGI environment as a Head and a body (PEP 3333). Of the target it believes only the path."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Final
from wsgiref.types import InputStream, WSGIEnvironment

from ..wire import Head, Reply, unread
from .route import beyond

log: Final = logging.getLogger("nonsuch.wsgi")
CHUNK: Final = 65_536
NO_LENGTH: Final = unread(411, "the body has no length, and this server reads no chunks")  # RFC 9110 15.5.12
CUT: Final = unread(400, "the body ended before its length")
_CONTENT: Final[Mapping[str, str]] = {"CONTENT_TYPE": "content-type", "CONTENT_LENGTH": "content-length"}


def head_of(environ: WSGIEnvironment, received: float = 0.0) -> Head:
    """Return the head of a WSGI request; of the target only what the server made of it is believed."""
    return Head(
        method=environ["REQUEST_METHOD"],
        path=_decoded(environ.get("PATH_INFO", "")),
        headers=dict(_headers(environ)),
        address=environ.get("REMOTE_ADDR") or None,
        scheme=environ.get("wsgi.url_scheme", "http"),
        received=received,
        query=environ.get("QUERY_STRING", ""),
        prefix=_decoded(environ.get("SCRIPT_NAME", "")).rstrip("/"),
    )


def _decoded(path: str) -> str:
    """PEP 3333: bytes as latin-1; and as ASGI servers read them, what is no UTF-8 is replaced."""
    return path.encode("latin-1").decode("utf-8", "replace")


def _headers(environ: WSGIEnvironment) -> Iterator[tuple[str, str]]:
    """Read CONTENT_TYPE and CONTENT_LENGTH from themselves alone: a header `Content_Type` is another one."""
    for key, name in _CONTENT.items():
        if environ.get(key):
            yield name, environ[key]
    for key, value in environ.items():
        if key.startswith("HTTP_") and key.removeprefix("HTTP_") not in _CONTENT:
            yield key.removeprefix("HTTP_").replace("_", "-").lower(), value


def body_of(environ: WSGIEnvironment, limit: int) -> bytes | Reply | None:
    """Return a body, nothing once it is longer than ``limit``, or the reply to one that cannot be read.

    A server that marks the end of its input (``wsgi.input_terminated``) is read to that end; another one
    to the announced length, because reading on would wait for ever.
    """
    announced = environ.get("CONTENT_LENGTH") or ""
    if beyond(announced, limit):
        return None
    size = int(announced) if announced.isdecimal() else None
    terminated = bool(environ.get("wsgi.input_terminated"))
    if size is None and not terminated:
        return NO_LENGTH if "HTTP_TRANSFER_ENCODING" in environ else b""
    try:
        body = _read(environ["wsgi.input"], limit + 1 if terminated or size is None else size)
    except Exception as fault:  # noqa: BLE001  (a server's own: its client left or is too slow)
        log.info("a body could not be read: %s", type(fault).__name__)
        return CUT
    if len(body) > limit:
        return None
    return body if size is None or len(body) >= size else CUT  # the client left halfway


def _read(stream: InputStream, most: int) -> bytes:
    chunks = list[bytes]()
    while most > 0 and (chunk := stream.read(min(CHUNK, most))):
        chunks.append(chunk)
        most -= len(chunk)
    return b"".join(chunks)
