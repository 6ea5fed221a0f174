"""What differs between the protocol's revisions, as one table.

Knows no catalog and no caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Era = Literal["legacy", "modern"]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002  # the older revisions only: 2026-07-28 must not send it
HEADER_MISMATCH: Final = -32020
CAPABILITY_MISSING: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
URL_ELICITATION_REQUIRED: Final = -32042  # 2025-11-25 only: 2026-07-28 must not send it


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of the Model Context Protocol.

    ``unknown_tool`` is the error code of a name that the caller's view does not hold; ``scope_status``
    and ``unknown_method_status`` are HTTP statuses; ``null_id`` says whether an error whose id is
    unknown carries ``"id": null`` or no id at all.
    """

    name: str
    era: Era
    unknown_tool: int
    unknown_method_status: int
    scope_status: int
    null_id: bool


_2025_06_18: Final = Revision("2025-06-18", "legacy", METHOD_NOT_FOUND, 200, 200, True)
_2025_11_25: Final = Revision("2025-11-25", "legacy", METHOD_NOT_FOUND, 200, 200, False)
MODERN: Final = Revision("2026-07-28", "modern", INVALID_PARAMS, 404, 403, False)

LATEST_LEGACY: Final = _2025_11_25
REVISIONS: Final = {each.name: each for each in (_2025_06_18, _2025_11_25, MODERN)}

# Versions whose clients speak the legacy wire. The two older ones are answered as the oldest we serve.
_LEGACY_HEADERS: Final = {
    "2024-11-05": _2025_06_18,
    "2025-03-26": _2025_06_18,
    "2025-06-18": _2025_06_18,
    "2025-11-25": _2025_11_25,
}


def legacy(header: str | None) -> Revision | None:
    """Return the legacy revision of an ``MCP-Protocol-Version`` header; none sent means the oldest."""
    return _2025_06_18 if header is None else _LEGACY_HEADERS.get(header)


def negotiated(requested: object) -> Revision:
    """Return the revision that answers ``initialize``: the requested legacy one, or the latest legacy one."""
    found = REVISIONS.get(requested) if isinstance(requested, str) else None
    return found if found is not None and found.era == "legacy" else LATEST_LEGACY
