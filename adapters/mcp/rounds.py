"""Another round: the result that asks a client first, in revision 2026-07-28 (basic/patterns/mrtr)."""

from __future__ import annotations

import logging
from typing import Final

from pydantic_core import to_json

from ...kernel.denials import failed
from ...kernel.model import InputRequired
from ...kernel.strict_json import Json
from ..wire import Reply
from . import asking
from .endpoint import Request
from .envelope import result
from .exchange import Exchange, RoundTooLong
from .refusals import internal, refuse

log: Final = logging.getLogger("nonsuch.mcp")


def another(request: Request, line: Exchange, outcome: InputRequired) -> Reply:
    """Return the result that asks, with what this round remembers."""
    body: dict[str, Json] = {"resultType": "input_required"}
    try:
        asks: dict[str, Json] = {key: asking.request_of(ask) for key, ask in outcome.asks.items()}
        if asks:
            body["inputRequests"] = asks
        sealed = line.suspend(request.server.seal, outcome.state)
        if sealed is not None:
            body["requestState"] = sealed
        encoded = to_json(body, inf_nan_mode="null")
    except RoundTooLong:
        return refuse(request, "", failed("X_MCP_ROUND_TOO_LONG"))
    except Exception as fault:  # noqa: BLE001  (a form that is none, a state that is no JSON: of the app's making)
        log.error("a question to the client cannot be asked: %s", type(fault).__name__)
        return internal(request)
    return result(request.id, encoded[:-1] + request.server.meta + b"}")
