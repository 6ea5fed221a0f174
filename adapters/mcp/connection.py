"""A connection of the older revisions: what it remembers of its client, and what changed for its caller.

Where there is a connection, what HTTP without sessions leaves out is done: who was subscribed is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ...kernel.asks import LEVELS
from ...kernel.model import Principal
from ...kernel.steps import Steps, Write
from ...kernel.uri_template import MAX_URI_CHARS
from ..wire import Connection
from .endpoint import MAX_URIS, McpServer
from .envelope import Message
from .exchange import notification
from .listen import LISTS, changed, lists_of
from .revisions import MODERN, negotiated

READY: Final = "notifications/initialized"
CANCELLED: Final = "notifications/cancelled"


def after(known: Connection, message: Message, most: int = MAX_URIS) -> Connection:
    """Return what a connection remembers once it has seen a message; a malformed one changes nothing.

    ``most`` is to how many resources it may be subscribed; a subscription beyond that is refused.
    """
    params = message.params
    if message.revision is MODERN:
        return known
    match message.method, params:
        case "initialize", {"capabilities": dict(declared)}:
            version = negotiated(params.get("protocolVersion")).name
            return Connection(version, declared, known.level, known.uris)
        case "logging/setLevel", {"level": str(level)} if level in LEVELS:
            return replace(known, level=level)
        case "resources/subscribe", {"uri": str(uri)} if len(known.uris) < most and len(uri) <= MAX_URI_CHARS:
            return replace(known, uris=known.uris | {uri})
        case "resources/unsubscribe", {"uri": str(uri)}:
            return replace(known, uris=known.uris - {uri})
        case _:
            return known


def follow(server: McpServer, who: Principal, known: Callable[[], Connection]) -> Steps[None]:
    """Tell what changed: a list when its caller is served another one, a resource that is subscribed to.

    A URI that the caller may not read is never told, whatever was subscribed (as in ``listen``).
    """
    seen = yield from changed(0, {})
    lists = lists_of(server, server.kernel.view_for(who))
    while seen is not None:
        change = yield from changed(seen.count, {})
        if change is None:
            return
        view = server.kernel.view_for(who)
        fresh = lists_of(server, view)
        for name, (method, _) in LISTS.items():
            if lists[name] != fresh[name]:
                yield Write(notification(method, {}))
        for uri in sorted(known().uris & change.uris):
            if (yield from server.kernel.readable(view, uri)):
                yield Write(notification("notifications/resources/updated", {"uri": uri}))
        lists, seen = fresh, change
