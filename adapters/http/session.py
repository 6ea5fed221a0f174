"""Who calls over HTTP: a token goes to the resolver of tokens; without one a session may say who it is.

Knows what a cookie looks like and not what it means.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from ...kernel.steps import ResolvePrincipal, SessionFacts
from ..wire import Head, facts_of


def session_of(head: Head, headers: Iterable[str]) -> ResolvePrincipal | None:
    """Return the question who a request without an ``Authorization`` header is of; ``None`` with one.

    A token that is refused is refused: it never falls back on a cookie.
    """
    if "authorization" in head.headers:
        return None
    told = {name: head.headers[name] for name in headers if name in head.headers}
    cookies = MappingProxyType(cookies_of(head.headers.get("cookie", "")))
    return ResolvePrincipal(SessionFacts(facts_of(head), cookies, MappingProxyType(told)))


def cookies_of(header: str) -> dict[str, str]:
    """Return the cookies of a request (RFC 6265 4.2), values as they were sent.

    A name that comes twice is left out: one of the two can have been set by a neighbour of the site.
    """
    pairs = [part.strip(" \t").partition("=") for part in header.split(";")]
    named = [(name.strip(" \t"), value.strip(" \t")) for name, equals, value in pairs if equals]
    names = [name for name, _ in named]
    return {name: value for name, value in named if name and names.count(name) == 1}
