"""Who calls over HTTP: a token goes to the resolver of tokens; without one a session may say who it is.

Knows what a cookie looks like and not what it means.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from ...kernel.steps import ResolvePrincipal, SessionFacts
from ..door import facts_of
from ..wire import Head


def session_of(head: Head, headers: Iterable[str]) -> ResolvePrincipal | None:
    """Return the question who a request without an ``Authorization`` header is of; ``None`` with one.

    A token that is refused is refused: it never falls back on a cookie.
    """
    if "authorization" in head.headers or _embedded(head):
        return None
    told = {name: head.headers[name] for name in headers if name in head.headers}
    cookies = MappingProxyType(cookies_of(head.headers.get("cookie", "")))
    return ResolvePrincipal(SessionFacts(facts_of(head), cookies, MappingProxyType(told)))


def _embedded(head: Head) -> bool:
    """Whether a page of another site loads this as a part of itself (Fetch Metadata 2): a script, a frame.

    A browser sends the person's cookie along, and no Origin; whether it loads tells the page what that person
    may do. A link that is followed is another matter, and so is a page whose origin is admitted.
    """
    told = head.headers
    followed = told.get("sec-fetch-mode") == "navigate" and told.get("sec-fetch-dest") == "document"
    return told.get("sec-fetch-site") == "cross-site" and not followed and "origin" not in told


def shown(asked: ResolvePrincipal, cookie: str | None) -> bool:
    """Whether a request without a token shows something to be known by: the cookie of sessions, a header.

    The page of a visitor who never signed in sends other cookies along, which is no attempt at anything.
    """
    return cookie in asked.facts.cookies or bool(asked.facts.headers)


def cookies_of(header: str) -> dict[str, str]:
    """Return the cookies of a request (RFC 6265 4.2), values as they were sent.

    A name that comes twice is left out: one of the two can have been set by a neighbour of the site.
    """
    pairs = [part.strip(" \t").partition("=") for part in header.split(";")]
    named = [(name.strip(" \t"), value.strip(" \t")) for name, equals, value in pairs if equals]
    times = dict[str, int]()
    for name, _ in named:
        times[name] = times.get(name, 0) + 1
    return {name: value for name, value in named if name and times[name] == 1}
