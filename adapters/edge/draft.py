"""What an app declares, whether it boots or not: enough to try other policies for it. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...kernel.catalog import Catalog
from ...kernel.errors import BootError, Fault
from ...kernel.loader import Sources


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """All that policies are checked against, and the policies and grants that the app itself names.

    ``faults`` are those of the declarations; unless ``complete`` they cost the catalog an entry.
    """

    catalog: Catalog
    sources: Sources
    faults: tuple[Fault, ...] = ()
    complete: bool = True

    @property
    def name(self) -> str:
        """The name of the app."""
        return self.catalog.server


class NotBooted(BootError):
    """A ``BootError`` that knows what was declared."""

    def __init__(self, faults: Iterable[Fault], draft: Draft) -> None:
        super().__init__(faults)
        self.draft = draft
