"""What a server tells a client first: versions, capabilities, who it is, instructions.

Capabilities are the same for every caller and every app: one that came with a hidden thing would show it.
"""

from __future__ import annotations

import logging
from typing import Final

from pydantic_core import to_json

from ...kernel.strict_json import Json
from .endpoint import Request
from .envelope import TASKS_KEY
from .revisions import MODERN, negotiated

log: Final = logging.getLogger("nonsuch.mcp")

CAPABILITIES: Final[dict[str, Json]] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}


def discover(request: Request) -> bytes:
    """Return the result of ``server/discover``."""
    extensions: Json = {TASKS_KEY: {}}
    capabilities: Json = {**CAPABILITIES, "extensions": extensions}
    body: dict[str, Json] = {"supportedVersions": [MODERN.name], "capabilities": capabilities}
    return to_json({**body, **_instructions(request)})[:-1] + request.cached() + b"}"


def initialize(request: Request) -> bytes:
    """Return the result of ``initialize``."""
    body: dict[str, object] = {
        "protocolVersion": negotiated(request.message.params.get("protocolVersion")).name,
        "capabilities": CAPABILITIES,
        "serverInfo": request.server.about.info(),
    }
    return to_json({**body, **_instructions(request)})


def _instructions(request: Request) -> dict[str, Json]:
    """A function of the caller's view; one that raises, or answers what says nothing, sends none."""
    text = request.server.instructions
    if callable(text):
        try:
            text = text(request.view())
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001  (application code: any fault of it sends none)
            log.error("instructions failed: %s", type(fault).__name__)
            return {}
    return {"instructions": text} if isinstance(text, str) and text.strip() and _sendable(text) else {}


def _sendable(text: str) -> bool:
    """Whether a text can be sent: half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        log.error("instructions failed: they hold half a surrogate pair")
        return False
    return True
