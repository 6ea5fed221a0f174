"""Entry -> its tools/list member, encoded once. One projection, field for field the served one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from pydantic_core import to_json

from ...kernel.catalog import Entry
from ...kernel.view import Table

LISTINGS: Final = 512


def hints(entry: Entry) -> dict[str, bool | str]:
    """Return the MCP hints: derived from the declaration, overridden key by key."""
    if entry.kind == "query":
        derived: dict[str, bool | str] = {"readOnlyHint": True}
    else:
        derived = {
            "readOnlyHint": False,
            "destructiveHint": entry.destructive,
            "idempotentHint": entry.idempotent,
        }
    return {**derived, **entry.annotations}


def tool_list_entry(entry: Entry) -> dict[str, object]:
    """Return the ``tools/list`` member of an entry; what it lacks is left out, never null."""
    described: dict[str, object] = {"name": entry.name}
    if entry.title is not None:
        described["title"] = entry.title
    described["description"] = entry.description
    described["inputSchema"] = entry.input.document
    if entry.output.document is not None:
        described["outputSchema"] = entry.output.document
    return {**described, "annotations": hints(entry)}


class Listing:
    """The encoded catalog of each set of visible tools, kept while it is asked for."""

    def __init__(self) -> None:
        self._entry = lru_cache(None)(_encoded)
        self.tools = lru_cache(LISTINGS)(self._tools)

    def _tools(self, table: Table) -> bytes:
        """Return the JSON array of a table's tools, in the order of their names."""
        return b"[" + b",".join(self._entry(entry) for entry in _ordered(table.tools.values())) + b"]"


def _encoded(entry: Entry) -> bytes:
    return to_json(tool_list_entry(entry))


def _ordered(entries: Iterable[Entry]) -> list[Entry]:
    """Order by name: what is hidden cannot show in the order of the rest."""
    return sorted(entries, key=lambda entry: entry.name)
