"""How much a caller is told before it asks for anything, in characters, held against declared ceilings.

For an app's own tests. Serves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol, cast

from pydantic_core import to_json

from ...kernel.errors import Fault, fault
from ...kernel.model import Principal
from ..wire import Head
from .endpoint import McpServer, Request
from .envelope import Message
from .introduce import initialize
from .revisions import LATEST_LEGACY

_HEAD: Final = Head("POST", "/", {})


class Served(Protocol):
    """An app that serves MCP."""

    @property
    def mcp(self) -> McpServer:
        """Its endpoint."""
        ...


@dataclass(frozen=True, slots=True)
class McpSurface:
    """What one caller is told first, in characters as they are on the wire.

    ``tools_list`` is the array of ``tools/list``, ``list_resources`` the text of that tool (0 for a caller
    of the flat surface), ``instructions`` the string sent when a connection begins (0 without one).
    """

    tools_list: int
    list_resources: int
    instructions: int


class SurfaceOverBudget(AssertionError):
    """A surface is longer than its ceiling; ``faults`` name every one that is."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        super().__init__("\n".join(map(str, faults)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SurfaceOverBudget) and self.faults == other.faults

    __hash__ = AssertionError.__hash__


def measure_mcp_surface(app: Served, caller: Principal) -> McpSurface:
    """Return how long each surface is for a caller."""
    server = app.mcp
    table = server.kernel.view_for(caller).table
    return McpSurface(
        tools_list=_characters(server.listing.whole(table, "tools")),
        list_resources=_characters(server.listing.catalog(table)) if table.meta else 0,
        instructions=_instructions(server, caller),
    )


def assert_mcp_surface_budget(
    app: Served,
    caller: Principal,
    *,
    tools_list: int | None = None,
    list_resources: int | None = None,
    instructions: int | None = None,
) -> None:
    """Hold each surface against its ceiling; put the reason for a number beside it.

    Raises: SurfaceOverBudget, with X_MCP_SURFACE_OVER_BUDGET for every surface that is over.
    """
    ceilings = {"tools_list": tools_list, "list_resources": list_resources, "instructions": instructions}
    faults = tuple(_over(asdict(measure_mcp_surface(app, caller)), ceilings, caller))
    if faults:
        raise SurfaceOverBudget(faults)


def _over(
    measured: Mapping[str, int], ceilings: Mapping[str, int | None], caller: Principal
) -> Iterator[Fault]:
    for name, ceiling in ceilings.items():
        if ceiling is not None and measured[name] > ceiling:
            cause = f"`{name}` is {measured[name]} characters for `{caller.id}`, over {ceiling}"
            yield fault("X_MCP_SURFACE_OVER_BUDGET", cause)


def _instructions(server: McpServer, caller: Principal) -> int:
    message = Message(1, "initialize", {}, LATEST_LEGACY)
    told = cast("dict[str, Any]", json.loads(initialize(Request(server, _HEAD, message, 1, caller, False))))
    return _characters(to_json(told["instructions"])) if "instructions" in told else 0


def _characters(encoded: bytes) -> int:
    return len(encoded.decode())
