"""Resources and prompts: parameters to a reading, through the kernel's gates, and the outcome back."""

from __future__ import annotations

import json
from typing import Final, cast

from pydantic_core import to_json

from ...kernel.asks import LEVELS
from ...kernel.catalog import Entry
from ...kernel.model import Hidden, InputRequired, Ok
from ...kernel.steps import Steps
from ...kernel.strict_json import Json
from ...kernel.uri_template import MAX_URI_CHARS
from ..wire import Reply
from .endpoint import Request
from .envelope import MAX_ECHOED_CHARS, result
from .metering import malformed
from .refusals import refuse
from .revisions import INVALID_PARAMS, RESOURCE_NOT_FOUND
from .rounds import another

_HINTS: Final = {
    "resource": "call resources/list and resources/templates/list to read what there is",
    "prompt": "call prompts/list to read what there is",
}


def read(request: Request) -> Steps[Reply]:
    """Answer ``resources/read``."""
    uri = request.message.params.get("uri")
    if not isinstance(uri, str):
        return (yield from malformed(request, request.malformed("`uri` must be a string")))
    line = request.exchange()
    if not line.reopen(request.server.seal):
        return (yield from malformed(request, request.stale()))
    view = request.view()
    outcome = yield from request.server.kernel.read(view, uri, line)
    found = view.resource(uri)
    if isinstance(outcome, Ok) and found is not None:
        return result(request.id, _contents(request, uri, found[0], outcome.json))
    if isinstance(outcome, InputRequired):
        return another(request, line, outcome)
    return _no_resource(request, uri) if isinstance(outcome, Hidden) else refuse(request, uri, outcome)


def _contents(request: Request, uri: str, entry: Entry, told: bytes) -> bytes:
    mime_type = entry.place.mime_type if entry.place is not None else ""
    head: dict[str, Json] = {"uri": uri, "mimeType": mime_type}
    match entry.output.form:
        case "text":
            member, text = b"text", told
        case "blob":
            member, text = b"blob", told
        case "content" | "value":
            member, text = b"text", to_json(told.decode())
    one = to_json(head)[:-1] + b',"%b":%b}' % (member, text)
    return b'{"contents":[%b]%b}' % (one, request.cached())


def _no_resource(request: Request, uri: str) -> Reply:
    """The one answer for a URI outside the caller's view: it knows the URI that was sent."""
    code = INVALID_PARAMS if request.modern else RESOURCE_NOT_FOUND
    shown = uri if len(uri) <= MAX_ECHOED_CHARS else uri[:MAX_ECHOED_CHARS] + "..."
    return request.error(code, f"resource not found - {_HINTS['resource']}", {"uri": shown})


def subscribe(request: Request) -> Reply:
    """Answer ``resources/subscribe`` and ``unsubscribe`` of the older revisions.

    Without a session there is nothing to remember and nowhere to send: a subscription is taken for
    any URI alike, so that it tells nothing of one. Updates are sent on ``subscriptions/listen``.
    """
    uri, known = request.message.params.get("uri"), request.head.connection
    if not isinstance(uri, str):
        return request.malformed("`uri` must be a string")
    if len(uri) > MAX_URI_CHARS:
        return request.malformed(f"`uri` has more than {MAX_URI_CHARS} characters")
    most = request.server.subscriptions
    if known is not None and uri not in known.uris and len(known.uris) >= most:
        return request.refused("X_MCP_SUBSCRIPTIONS_FULL", INVALID_PARAMS)
    return result(request.id, b"{}")


def set_level(request: Request) -> Reply:
    """Answer ``logging/setLevel`` of the older revisions; without a session every level is sent."""
    if request.message.params.get("level") not in LEVELS:
        return request.malformed(f"`level` must be one of {', '.join(LEVELS)}")
    return result(request.id, b"{}")


def prompt(request: Request) -> Steps[Reply]:
    """Answer ``prompts/get``."""
    params = request.message.params
    name, arguments = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        told = request.malformed("`name` must be a string and `arguments` an object")
        return (yield from malformed(request, told))
    line = request.exchange()
    if not line.reopen(request.server.seal):
        return (yield from malformed(request, request.stale()))
    view = request.view()
    outcome = yield from request.server.kernel.render(view, name, arguments, line)
    entry = view.prompt(name)
    if isinstance(outcome, Ok) and entry is not None:
        return result(request.id, _messages(request, entry, outcome.json))
    if isinstance(outcome, InputRequired):
        return another(request, line, outcome)
    return no_prompt(request, name) if isinstance(outcome, Hidden) else refuse(request, name, outcome)


def _messages(request: Request, entry: Entry, told: bytes) -> bytes:
    """A prompt's words are one message of the user's; messages are themselves."""
    held = cast(Json, json.loads(told))
    if isinstance(held, str):
        held = {"role": "user", "content": {"type": "text", "text": held}}
    messages = to_json(held if isinstance(held, list) else [held])
    description = to_json(entry.description)
    return b'{"description":%b,"messages":%b%b}' % (description, messages, request.tail())


def no_prompt(request: Request, name: str) -> Reply:
    """Return the one answer for a prompt outside the caller's view: it knows the name that was sent."""
    return request.error(INVALID_PARAMS, f"prompt not found - {_HINTS['prompt']}")
