"""Which surface of an app a request is for, and what lets a page of another origin read the answer.

Knows no server protocol: every door asks here, so that one request has one answer.
"""

from __future__ import annotations

from ...kernel.steps import Steps
from ..door import cross_origin
from ..http import inbox
from ..http import invoke as http
from ..mcp import server as mcp
from ..wire import Head, Reply
from .app import App


def route(app: App, head: Head, *, observed: bool = False) -> Steps[Reply]:
    """Return the steps of one request: MCP at the app's path, with or without a slash, else an action.

    The document about a protected resource is at its well-known place (RFC 9728 3.1), without a token.
    Clients look for other documents beside it and below the MCP path, also without one: there is nothing,
    and asking is no failure that would count against their address.
    """
    protected = app.mcp.protected
    if protected is not None and protected.serves(head, root=True):
        return mcp.described(app.mcp, protected, head)
    if is_mcp(app, head):
        return mcp.serve(app.mcp, head, observed=observed)
    if app.inbox is not None and inbox.is_inbox(app.inbox, head):
        return inbox.serve(app.http, app.inbox, head)
    if "/.well-known/" in head.path:
        return http.nothing(app.http, head)
    return http.serve(app.http, head)


def shared(app: App, head: Head) -> tuple[tuple[str, str], ...]:
    """Return the headers that let a page read the answer; the actions' pages are their host's matter."""
    if "origin" not in head.headers:
        return ()
    ours = is_mcp(app, head) or _is_document(app, head)
    return cross_origin(head) if ours and app.mcp.door.refuses(head) is None else ()


def beyond(announced: str, limit: int) -> bool:
    """Whether a body is announced as longer than what is read; what is no number announces nothing."""
    return announced.isdecimal() and (len(announced) > 18 or int(announced) > limit)


def _is_document(app: App, head: Head) -> bool:
    protected = app.mcp.protected
    return protected is not None and protected.serves(head, root=True)


def is_mcp(app: App, head: Head) -> bool:
    """An app whose path is `/` is asked for without one where it is mounted under a prefix."""
    return head.path.removesuffix("/") == app.path.removesuffix("/")
