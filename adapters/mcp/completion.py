"""``completion/complete``: what an argument of a visible prompt or template may become."""

from __future__ import annotations

import json
from typing import Final, cast

from pydantic_core import to_json

from ...kernel.catalog import Entry
from ...kernel.gates import Suggesting
from ...kernel.model import Hidden, Ok
from ...kernel.steps import Steps
from ...kernel.strict_json import Json
from ...kernel.view import View
from ..wire import Reply
from .endpoint import Request
from .envelope import result
from .metering import malformed
from .refusals import refuse
from .revisions import INVALID_PARAMS

MAX_VALUES: Final = 100  # MCP, CompleteResult
_UNKNOWN: Final = "completion reference not found - call prompts/list and resources/templates/list"


def complete(request: Request) -> Steps[Reply]:
    """Answer ``completion/complete``."""
    params = request.message.params
    ref, asked = _ref(params.get("ref")), _asked(params.get("argument"), params.get("context", {}))
    if ref is None or asked is None:
        told = request.malformed("`ref` names a prompt or a template, `argument` has a name and a value")
        return (yield from malformed(request, told))
    kind, name = ref
    view = request.view()
    outcome = yield from request.server.kernel.complete(view, _found(view, kind, name), name, asked)
    if isinstance(outcome, Ok):
        return result(request.id, _values(request, outcome.json))
    if isinstance(outcome, Hidden):
        return request.error(INVALID_PARAMS, _UNKNOWN)
    return refuse(request, name, outcome)


def _found(view: View, kind: str, name: str) -> Entry | None:
    return view.prompt(name) if kind == "prompt" else view.template(name)


def _values(request: Request, told: bytes) -> bytes:
    values = cast("list[str]", json.loads(told))
    more = len(values) > MAX_VALUES
    body: dict[str, Json] = {"values": list(values[:MAX_VALUES]), "total": len(values), "hasMore": more}
    return b'{"completion":%b%b}' % (to_json(body), request.tail())


def _ref(ref: Json) -> tuple[str, str] | None:
    if not isinstance(ref, dict):
        return None
    match ref.get("type"), ref.get("name"), ref.get("uri"):
        case "ref/prompt", str(name), _:
            return "prompt", name
        case "ref/resource", _, str(uri):
            return "template", uri
        case _:
            return None


def _asked(argument: Json, context: Json) -> Suggesting | None:
    if not isinstance(argument, dict) or not isinstance(context, dict):
        return None
    name, value, given = argument.get("name"), argument.get("value"), context.get("arguments", {})
    if not isinstance(name, str) or not isinstance(value, str) or not isinstance(given, dict):
        return None
    if not all(isinstance(each, str) for each in given.values()):
        return None
    return Suggesting(name, value, cast("dict[str, str]", given))
