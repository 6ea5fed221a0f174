"""The constant surface over MCP: what its reading tools answer, and the call that the third stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic_core import to_json

from ...kernel.meta import LIST, MANAGE, asked_for, described, managed
from ...kernel.model import Call, Hidden, InvalidArguments, Ok, Outcome
from ...kernel.schema import Invalid
from ...kernel.steps import Steps
from ...kernel.strict_json import Json
from ...kernel.view import View
from ..wire import Reply
from .endpoint import Request
from .envelope import result
from .refusals import answer


def asked(request: Request, view: View, name: str, arguments: Mapping[str, Json]) -> Steps[Reply | Call]:
    """Answer a tool of the constant surface, or return the call that it stands for."""
    given = managed(arguments) if name == MANAGE else asked_for(name, arguments)
    if isinstance(given, Call):
        return given
    if isinstance(given, Invalid):
        outcome = yield from request.server.kernel.noted(view, name, InvalidArguments(given.issues))
        return answer(request, name, None, outcome)
    text, outcome = _listed(request, view) if name == LIST else _described(view, name, given)
    yield from request.server.kernel.noted(view, name, outcome)
    return result(request.id, b'{"content":[{"type":"text","text":%b}]%b}' % (text, request.tail()))


def _listed(request: Request, view: View) -> tuple[bytes, Outcome]:
    text = request.server.listing.catalog(view.table)
    return text, Ok(text)


def _described(view: View, name: str, resources: Sequence[str]) -> tuple[bytes, Outcome]:
    """A name that is not there is audited as hidden, so that the operator sees a walk of names."""
    told = described(view, resources)
    text = to_json(to_json(told).decode())
    return text, Hidden(name) if "unknown" in told else Ok(text)
