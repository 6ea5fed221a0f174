"""``subscriptions/listen``: one stream of what changed for its caller, until either side leaves.

Whether a list changed is found by comparing what this caller is served, never by what was touched: a
change of what is hidden from it is none (MCP 2026-07-28, basic/patterns/subscriptions).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, cast

from pydantic_core import to_json

from ...kernel.model import Principal
from ...kernel.steps import Change, ResolveToken, Returned, Steps, Watch, Write
from ...kernel.strict_json import Json
from ...kernel.view import View
from ..wire import Reply, bearer, facts_of
from .describe import Listed
from .endpoint import INFO_KEY, Request
from .envelope import Id, result
from .exchange import notification

SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
MAX_URIS: Final = 1_000
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_LISTS: Final[Mapping[str, tuple[str, tuple[Listed, ...]]]] = {
    "toolsListChanged": ("notifications/tools/list_changed", ("tools",)),
    "promptsListChanged": ("notifications/prompts/list_changed", ("prompts",)),
    "resourcesListChanged": ("notifications/resources/list_changed", ("resources", "resourceTemplates")),
}
Lists = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one stream was opened for."""

    lists: tuple[str, ...]
    uris: tuple[str, ...]

    def told(self) -> dict[str, Json]:
        """Return the filter as it is acknowledged: every URI that was sent, visible or not."""
        body: dict[str, Json] = dict.fromkeys(self.lists, True)
        return {**body, "resourceSubscriptions": list(self.uris)} if self.uris else body


def listen(request: Request) -> Steps[Reply]:
    """Answer ``subscriptions/listen``: acknowledge, then send what changes."""
    wanted = _wanted(request.message.params.get("notifications"))
    if wanted is None:
        return request.malformed("`notifications` must say what to listen for")
    if not request.streams:
        return request.malformed("a subscription needs an `Accept` that takes text/event-stream")
    who: Principal | None = request.who
    seen = yield from _changed(0)
    lists = _lists(request, request.view())
    yield Write(_told(request.id, _ACKNOWLEDGED, {"notifications": wanted.told()}))
    while seen is not None:
        change = yield from _changed(seen.count)
        who = yield from _still(request)
        if change is None or who is None:
            break
        view = request.server.kernel.view_for(who)
        fresh = _lists(request, view)
        for message in _differing(request.id, wanted, lists, fresh):
            yield Write(message)
        for message in _updated(request.id, wanted, view, change):
            yield Write(message)
        lists, seen = fresh, change
    return result(request.id, _ended(request))


def _changed(count: int) -> Steps[Change | None]:
    answer = yield Watch(count)
    held = answer.value if isinstance(answer, Returned) else None
    return held if isinstance(held, Change) else None


def _still(request: Request) -> Steps[Principal | None]:
    """Ask again who the token is: a stream must not outlive the right to it."""
    token = bearer(request.head.headers.get("authorization"))
    if token is None:  # a connection that its caller owns
        return request.who
    answer = yield ResolveToken(token, facts_of(request.head))
    who = answer.value if isinstance(answer, Returned) else None
    same = type(who) is type(request.who) and cast(Principal, who).id == request.who.id
    return cast(Principal, who) if same else None


def _wanted(held: Json) -> Wanted | None:
    if not isinstance(held, dict):
        return None
    uris = held.get("resourceSubscriptions", [])
    flags = [held.get(name, False) for name in _LISTS]
    if not isinstance(uris, list) or len(uris) > MAX_URIS:
        return None
    if not all(isinstance(each, str) for each in uris) or not all(isinstance(each, bool) for each in flags):
        return None
    return Wanted(tuple(n for n, on in zip(_LISTS, flags, strict=True) if on), tuple(cast("list[str]", uris)))


def _lists(request: Request, view: View) -> Lists:
    listing = request.server.listing
    return {
        name: sha256(b"".join(listing.whole(view.table, kind) for kind in kinds)).digest()
        for name, (_, kinds) in _LISTS.items()
    }


def _differing(ident: Id, wanted: Wanted, before: Lists, after: Lists) -> Iterator[bytes]:
    for name in wanted.lists:
        if before[name] != after[name]:
            yield _told(ident, _LISTS[name][0], {})


def _updated(ident: Id, wanted: Wanted, view: View, change: Change) -> Iterator[bytes]:
    for uri in wanted.uris:
        if uri in change.uris and view.resource(uri) is not None:
            yield _told(ident, "notifications/resources/updated", {"uri": uri})


def _told(ident: Id, method: str, params: dict[str, Json]) -> bytes:
    return notification(method, {"_meta": {SUBSCRIPTION_KEY: ident}, **params})


def _ended(request: Request) -> bytes:
    meta: dict[str, object] = {SUBSCRIPTION_KEY: request.id, INFO_KEY: request.server.about.info()}
    return to_json({"resultType": "complete", "_meta": meta})
