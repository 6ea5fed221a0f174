"""Which methods an action's path answers, and how its query string is read: made once, at boot.

A caller's view says which paths there are; nothing here is asked about a path that it does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ...kernel.catalog import Catalog, Entry
from ...kernel.errors import Fault, fault
from .flat import Shape, shapes_of

OPENAPI: Final = "openapi.json"
WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True)
class Route:
    """The methods of a path, the one it is known by first, and the shapes of its query string's keys."""

    methods: tuple[str, ...]
    shapes: Mapping[str, Shape]

    def answers(self, method: str) -> bool:
        """Whether a method runs something here. What answers GET answers HEAD (RFC 9110 9.3.2)."""
        return ("GET" if method == "HEAD" else method) in self.methods

    @property
    def allow(self) -> tuple[str, str]:
        """The header that names the methods (RFC 9110 10.2.1)."""
        head = ("HEAD",) if "GET" in self.methods else ()
        return "allow", ", ".join(sorted((*self.methods, *head, "OPTIONS")))


DOCUMENT: Final = Route(("GET",), {})


def routes_of(catalog: Catalog) -> Mapping[Entry, Route]:
    """Return the route of each entry that has a path."""
    return {entry: route_of(entry) for entry in catalog.entries if entry.path}


def route_of(entry: Entry) -> Route:
    """Return the route of one entry. A query whose input a query string cannot hold answers POST."""
    shapes = shapes_of(entry.input.document)
    if isinstance(shapes, str):
        return Route(entry.methods or ("POST",), {})
    return Route(entry.methods or (("GET", "POST") if entry.kind == "query" else ("POST",)), shapes)


def faults(catalog: Catalog) -> Iterator[Fault]:
    """Yield why a path could not be served."""
    for entry in (each for each in catalog.entries if each.path):
        if entry.path == OPENAPI:
            cause = f"`{entry.name}` claims `{OPENAPI}`, where the document about all paths is"
            yield fault("X_ROUTE_DUPLICATE", cause)
        unread = shapes_of(entry.input.document)
        if isinstance(unread, str) and not WITH_BODY.issuperset(entry.methods):
            cause = f"`{entry.name}` takes `{unread}`, which a query string cannot hold"
            yield fault("X_DECLARATION_INVALID", cause, "leave GET and DELETE out of `methods`")
