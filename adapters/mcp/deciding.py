"""A call that waits for a person, told to a client that can take its person to where that is decided.

The client opens an address (elicitation in URL mode) and learns nothing of what was decided there: an agent
that answers for its person has decided nothing.
"""

from __future__ import annotations

from typing import Final

from pydantic_core import to_json

from ...kernel.asks import ElicitUrl
from ...kernel.catalog import Entry
from ...kernel.confirmation import Gated
from ...kernel.errors import refusal
from ...kernel.model import Unconfirmed
from ...kernel.strict_json import Json
from ..wire import Reply
from . import asking
from .endpoint import Request
from .envelope import result
from .exchange import Exchange
from .revisions import LATEST_LEGACY, URL_ELICITATION_REQUIRED

PENDING: Final = "X_MCP_CONFIRMATION_PENDING"


def led(request: Request, line: Exchange, entry: Entry | None, outcome: Unconfirmed) -> Reply | None:
    """Return the answer that has the client open the place of decision; ``None``, where it is told in words.

    In words: where people decide elsewhere than at an address, to a client that did not say it opens one,
    and in the round in which it comes back.
    """
    gate = None if entry is None else entry.confirming
    if outcome.code != PENDING or not isinstance(gate, Gated):
        return None
    address = gate.place(outcome.ident)
    if not address.startswith(("https://", "http://")) or not line.opens_addresses:
        return None
    message = f"A person has to confirm this call. Confirmation {outcome.ident}"
    asked = asking.request_of(ElicitUrl(message, address))
    if request.modern:
        return None if "inputResponses" in request.message.params else _round(request, outcome.ident, asked)
    return _required(request, outcome, asked) if request.message.revision is LATEST_LEGACY else None


def _round(request: Request, ident: str, asked: Json) -> Reply:
    """Return an input-required result (2026-07-28, basic/patterns/mrtr) that remembers nothing.

    Its key is one that no handler can ask under: what a client answers here is no answer to the handler.
    """
    body = to_json({"resultType": "input_required", "inputRequests": {f"confirmation {ident}": asked}})
    return result(request.id, body[:-1] + request.server.meta + b"}")


def _required(request: Request, outcome: Unconfirmed, asked: dict[str, Json]) -> Reply:
    """Return a URLElicitationRequiredError (2025-11-25, client/elicitation)."""
    told = refusal(outcome, "", request.server.audience)
    params = asked["params"]
    opened: Json = {**params, "elicitationId": outcome.ident} if isinstance(params, dict) else params
    data: Json = {"code": told.code, "cause": told.cause, "fix": told.fix, "elicitations": [opened]}
    return request.error(URL_ELICITATION_REQUIRED, told.cause, data)
