"""The constant surface over MCP: what its two reading tools answer."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_core import to_json

from ...kernel.meta import LIST, described
from ...kernel.model import Hidden, InvalidArguments, Ok, Outcome
from ...kernel.schema import Invalid
from ...kernel.steps import Steps
from ...kernel.view import View
from ..wire import Reply
from .endpoint import Request
from .envelope import MAX_ECHOED_CHARS, result
from .refusals import answer


def told(request: Request, view: View, name: str, given: tuple[str, ...] | Invalid) -> Steps[Reply]:
    """Answer a tool that reads, or one whose arguments are refused."""
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
    body = described(view, [each[:MAX_ECHOED_CHARS] for each in resources])
    text = to_json(to_json(body).decode())
    return text, Hidden(name) if "unknown" in body else Ok(text)
