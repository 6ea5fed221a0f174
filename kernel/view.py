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

TABLES: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The entries of one set of audiences, shared by every caller who sees exactly these.

    Compared by identity, so that adapters can keep what they encoded for it.
    """

    tools: Mapping[str, Entry]
    paths: Mapping[str, Entry]


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
        return (self.table.paths if surface == "http" else self.table.tools).get(name)


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
        return Table(tools, {entry.path: entry for entry in seen if entry.path})
