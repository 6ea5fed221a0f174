"""``subscriptions/listen``: one stream of what changed for its caller, until either side leaves.

Whether a list changed is found by comparing what this caller is served, never by what was touched: a
change of what is hidden from it is none (MCP 2026-07-28, basic/patterns/subscriptions). An update of a
resource is told to whom a reading would be permitted at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from pydantic_core import to_json

from ...kernel.audit import limited_other
from ...kernel.model import Agent, Human, Principal, owner_key
from ...kernel.steps import Audit, Change, Listen, ResolveToken, Returned, Steps, Watch, Write
from ...kernel.strict_json import Json
from ...kernel.tasks import Task
from ...kernel.uri_template import MAX_URI_CHARS
from ...kernel.view import View
from ..authentication import bearer
from ..door import facts_of
from ..wire import JSON_TYPE, STREAM_TYPE, Reply
from . import tasks
from .describe import Listed
from .endpoint import INFO_KEY, McpServer, Request
from .envelope import Id, result
from .exchange import notification
from .revisions import INVALID_PARAMS, INVALID_REQUEST

SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
LISTS: Final[Mapping[str, tuple[str, tuple[Listed, ...]]]] = {
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
    tasks: tuple[str, ...] = ()

    def told(self, tasks: Iterable[str]) -> dict[str, Json]:
        """Return the filter as it is acknowledged: every URI that was sent, visible or not; these tasks."""
        body: dict[str, Json] = dict.fromkeys(self.lists, True)
        if self.uris:
            body["resourceSubscriptions"] = list(self.uris)
        return {**body, "taskIds": list(tasks)} if self.tasks else body


def listen(request: Request) -> Steps[Reply]:
    """Answer ``subscriptions/listen``: acknowledge, then send what changes."""
    wanted = _wanted(request.message.params.get("notifications"))
    if wanted is None:
        return request.malformed("`notifications` must say what to listen for")
    wrong = _unheld(request, wanted)
    if wrong is not None:
        return wrong
    if wanted.tasks and not request.exchange().keeps_tasks:
        return tasks.unkept(request)
    full = yield from _full(request)
    if full is not None:
        return full
    who: Principal | None = request.who
    seen = yield from changed(0, {})
    view = request.view()
    lists = lists_of(request.server, view)
    known = yield from tasks.followed(request, view, wanted.tasks)
    yield Write(_told(request.id, _ACKNOWLEDGED, {"notifications": wanted.told(known)}))
    yield from _told_tasks(request, known)
    while seen is not None:
        change = yield from changed(seen.count, tasks.unfinished(known))
        who = yield from _still(request)
        if change is None or who is None:
            break
        view = request.server.kernel.view_for(who)
        fresh = lists_of(request.server, view) if change.count != seen.count else lists
        for message in _differing(request.id, wanted, lists, fresh):
            yield Write(message)
        for uri in wanted.uris:
            if uri in change.uris and (yield from request.server.kernel.readable(view, uri)):
                yield Write(_told(request.id, "notifications/resources/updated", {"uri": uri}))
        moved = yield from tasks.followed(request, view, change.tasks)
        yield from _told_tasks(request, moved)
        lists, seen = fresh, change
        known = {**{ident: task for ident, task in known.items() if ident not in change.tasks}, **moved}
    return result(request.id, _ended(request))


def _unheld(request: Request, wanted: Wanted) -> Reply | None:
    """Refuse what no stream carries, whatever it names."""
    if not request.streams:
        cause = f"a subscription needs an `Accept` that takes {STREAM_TYPE}"
        return request.malformed(cause, f"send `Accept: {JSON_TYPE}, {STREAM_TYPE}`")
    if len(wanted.uris) > request.server.subscriptions:
        return request.refused("X_MCP_SUBSCRIPTIONS_FULL", INVALID_PARAMS)
    if any(len(uri) > MAX_URI_CHARS for uri in wanted.uris):
        return request.malformed(f"`resourceSubscriptions` has a URI of more than {MAX_URI_CHARS} characters")
    if len(wanted.tasks) > tasks.MAX_FOLLOWED:
        return request.malformed(f"`taskIds` names more than {tasks.MAX_FOLLOWED} tasks")
    return None


def _full(request: Request) -> Steps[Reply | None]:
    """Take a stream, and return the refusal of a caller who has as many open as there may be."""
    answer = yield Listen(request.who)
    if isinstance(answer, Returned) and answer.value is True:
        return None
    yield Audit(limited_other(request.who, request.message.method, "X_MCP_STREAMS_FULL"))
    return request.refused("X_MCP_STREAMS_FULL", INVALID_REQUEST)


def _told_tasks(request: Request, moved: Mapping[str, Task]) -> Steps[None]:
    """Send tasks as they are now, from the beginning: one that ended before anybody listened is told too."""
    for task in moved.values():
        yield Write(tasks.status(request, task, {SUBSCRIPTION_KEY: request.id}))


def changed(count: int, tasks: Mapping[str, int]) -> Steps[Change | None]:
    """Wait until something was said after ``count``; nothing when the server stops."""
    answer = yield Watch(count, tasks)
    held = answer.value if isinstance(answer, Returned) else None
    return held if isinstance(held, Change) else None


def _still(request: Request) -> Steps[Principal | None]:
    """Ask again who the token is: a stream must not outlive the right to it."""
    token = bearer(request.head.headers.get("authorization"))
    if token is None:  # a connection that its caller owns
        return request.who
    answer = yield ResolveToken(token, facts_of(request.head))
    who = answer.value if isinstance(answer, Returned) else None
    if not isinstance(who, Agent | Human) or owner_key("", who) != owner_key("", request.who):
        return None
    return who


def _wanted(held: Json) -> Wanted | None:
    if not isinstance(held, dict):
        return None
    uris = held.get("resourceSubscriptions", [])
    flags = [held.get(name, False) for name in LISTS]
    if not isinstance(uris, list):
        return None
    if not all(isinstance(each, str) for each in uris) or not all(isinstance(each, bool) for each in flags):
        return None
    followed = held.get("taskIds", [])
    if not isinstance(followed, list):
        return None
    if not all(isinstance(each, str) for each in followed):
        return None
    lists = tuple(name for name, on in zip(LISTS, flags, strict=True) if on)
    return Wanted(lists, tuple(cast("list[str]", uris)), tuple(cast("list[str]", followed)))


def lists_of(server: McpServer, view: View) -> Lists:
    """Return what stands for each list that a caller is served."""
    return {
        name: b"".join(server.listing.digest(view.table, kind) for kind in kinds)
        for name, (_, kinds) in LISTS.items()
    }


def _differing(ident: Id, wanted: Wanted, before: Lists, after: Lists) -> Iterator[bytes]:
    for name in wanted.lists:
        if before[name] != after[name]:
            yield _told(ident, LISTS[name][0], {})


def _told(ident: Id, method: str, params: dict[str, Json]) -> bytes:
    return notification(method, {"_meta": {SUBSCRIPTION_KEY: ident}, **params})


def _ended(request: Request) -> bytes:
    meta: dict[str, object] = {SUBSCRIPTION_KEY: request.id, INFO_KEY: request.server.about.info()}
    return to_json({"resultType": "complete", "_meta": meta})
