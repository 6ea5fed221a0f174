"""What clients in the field trip over: faults that make them drop a tool, and warnings about the rest.

Reads the catalog at boot, never during a request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ...kernel.catalog import Catalog, Entry
from ...kernel.declare import EVERYONE
from ...kernel.errors import Fault, fault
from .mirror import misdeclared

_PORTABLE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_COMBINATORS: Final = ("anyOf", "oneOf", "allOf")
_NAME_FIX: Final = (
    "use A-Z a-z 0-9 _ - alone; a tool that keeps its name, as `db.query` and `db.migrate` do, goes into a"
    ' group of `surface="meta"`, or into an app of its own beside this one'
)
_HEADER_FIX: Final = "name it with A-Z a-z 0-9 - once, on a string, integer or boolean"


def faults(catalog: Catalog) -> Iterator[Fault]:
    """Yield why a tool could not be listed: clients must leave out one with such a header."""
    for entry in _served(catalog):
        for cause in misdeclared(entry):
            yield fault("X_DECLARATION_INVALID", cause, _HEADER_FIX)


def warnings(catalog: Catalog) -> Iterator[Fault]:
    """Yield what some clients do not take."""
    for entry in _served(catalog):
        if entry.exposed and not _PORTABLE.fullmatch(entry.name) and not _behind(catalog, entry):
            cause = f"some clients drop every tool of a server for the name `{entry.name}`"
            yield fault("X_MCP_CLIENT_TROUBLE", cause, _NAME_FIX)
        for cause in _troubles(entry):
            yield fault("X_MCP_CLIENT_TROUBLE", cause)


def _behind(catalog: Catalog, entry: Entry) -> bool:
    """Whether no caller has it in a list of tools: all are served it behind the three constant ones."""
    return entry.group is not None and catalog.meta == EVERYONE


def _served(catalog: Catalog) -> Iterator[Entry]:
    return (each for each in catalog.entries if each.exposed or each.kind in ("resource", "prompt"))


def _troubles(entry: Entry) -> Iterator[str]:
    if not entry.description.strip():
        yield f"`{entry.shown}` has no description, and a model chooses by it"
    for each in _COMBINATORS:
        if entry.exposed and each in entry.input.document:
            yield f"some clients drop `{entry.name}` for the `{each}` at the root of its input"
