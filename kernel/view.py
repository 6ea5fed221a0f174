"""What one principal may see: the only reader of the catalog during a request.

A name is looked up in the view alone, so hidden and absent are one dictionary miss and no later
code can tell them apart. Knows no scope, no policy and no wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from .catalog import Catalog, Entry
from .judge import CALLERS, Caller, Judge
from .model import Principal, Surface
from .strict_json import Json

TABLES: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The entries of one set of audiences, shared by every caller who sees exactly these.

    ``listed`` are the tools that MCP callers name; a caller of the constant surface (``meta``) reaches
    the others by ``groups``, and ``about`` tells what those are. Compared by identity, so that adapters
    can keep what they encoded for it.
    """

    tools: Mapping[str, Entry]
    listed: Mapping[str, Entry]
    groups: Mapping[str, Mapping[str, Entry]]
    about: Mapping[str, str]
    meta: bool
    paths: Mapping[str, Entry]
    resources: Mapping[str, Entry]
    templates: tuple[Entry, ...]
    prompts: Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class View:
    """One principal, the entries it may see, and the judge who said so and decides the rest of the request.

    Holding one is the proof that visibility was decided.
    """

    caller: Caller
    table: Table
    judge: Judge

    @property
    def principal(self) -> Principal:
        """Who looks."""
        return self.caller.principal

    def find(self, name: str, surface: Surface) -> Entry | None:
        """Return the entry of a tool name, or of a path over HTTP; ``None`` for hidden and absent alike."""
        table = self.table
        named = table.listed if surface == "mcp" else table.paths if surface == "http" else table.tools
        return named.get(name)

    def holds(self, entry: Entry) -> bool:
        """Whether the principal sees an entry, as a tool or at its path."""
        return self.table.tools.get(entry.name) is entry or self.table.paths.get(entry.path) is entry

    def grouped(self, group: str, name: str) -> Entry | None:
        """Return the entry of a group's tool; ``None`` for hidden, absent and misplaced alike."""
        return self.table.groups.get(group, _NO_TOOLS).get(name)

    def resource(self, uri: str) -> tuple[Entry, Mapping[str, Json]] | None:
        """Return the entry that answers for a URI, with the variables of its template."""
        found = self.table.resources.get(uri)
        if found is not None:
            return found, {}
        for entry in self.table.templates:
            place = entry.place
            variables = place.template.match(uri) if place is not None and place.template else None
            if variables is not None:
                return entry, dict(variables)
        return None

    def prompt(self, name: str) -> Entry | None:
        """Return the entry of a prompt; ``None`` for hidden and absent alike."""
        return self.table.prompts.get(name)

    def template(self, text: str) -> Entry | None:
        """Return the entry of a URI template; ``None`` for hidden and absent alike."""
        return next((each for each in self.table.templates if each.place and each.place.uri == text), None)


class Viewer:
    """Makes views of one catalog."""

    def __init__(self, catalog: Catalog, judge: Judge) -> None:
        self._catalog, self.judge = catalog, judge
        self._view = lru_cache(CALLERS)(self._look)
        self._table = lru_cache(TABLES)(self._build)

    def view_for(self, principal: Principal) -> View:
        """Return what ``principal`` may see, decided by Cedar."""
        return self._view(self.judge.caller(principal))

    def _look(self, caller: Caller) -> View:
        return View(caller, self._table(self.judge.visible(caller)), self.judge)

    def _build(self, audiences: frozenset[str]) -> Table:
        seen = [entry for entry in self._catalog.entries if entry.audience in audiences]
        tools = {entry.name: entry for entry in seen if entry.exposed}
        meta = self._catalog.meta is not None and self._catalog.meta in audiences
        groups = _grouped(tools if meta else {})
        hides = self._catalog.hides_paths
        placed = [(entry, entry.place) for entry in seen if entry.place is not None]
        return Table(
            tools,
            {name: each for name, each in tools.items() if each.group is None} if meta else tools,
            groups,
            {name: self._catalog.groups[name] for name in groups},
            meta,
            {entry.path: entry for entry in (seen if hides else self._catalog.entries) if entry.path},
            {place.uri: entry for entry, place in placed if place.template is None},
            tuple(entry for entry, place in placed if place.template is not None),
            {entry.shown: entry for entry in seen if entry.kind == "prompt"},
        )


_NO_TOOLS: Final[Mapping[str, Entry]] = {}


def _grouped(tools: Mapping[str, Entry]) -> Mapping[str, Mapping[str, Entry]]:
    groups: dict[str, dict[str, Entry]] = {}
    for name, entry in sorted(tools.items()):
        if entry.group is not None:
            groups.setdefault(entry.group, {})[name] = entry
    return dict(sorted(groups.items()))
