"""Which columns of its relations a statement may read: never fewer than it does. Knows no catalogue.

A text does not tell which relation of several a bare column is of, so it counts for each of them. What
names no column but reads it, such as ``*`` or a row taken whole, counts as all columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .sql_found import Found, Spot, Table

MAX_COLUMNS: Final = 1_024
ALL: Final = frozenset({"*"})


def columns(found: Found) -> list[frozenset[str]] | None:
    """Return the columns of each table, in order; ``None`` when they are too many to list."""
    bare = frozenset(each.names[0] for each in found.columns if len(each.names) == 1)
    joined = frozenset(each.names[-1] for each in found.columns if each.names[0] in found.joins)
    dotted = [each for each in found.columns if len(each.names) > 1]
    if len(found.tables) * (len(bare) + len(joined)) + len(dotted) > MAX_COLUMNS:
        return None
    whole = ALL if found.whole or not bare.isdisjoint(found.joins) else frozenset[str]()
    return [whole | bare | joined | _of(table, dotted, bare) for table in found.tables]


def _of(table: Table, dotted: Iterable[Spot], bare: frozenset[str]) -> frozenset[str]:
    read = frozenset(each.names[-1] for each in dotted if _qualifies(each.names[:-1], table))
    return read | ALL if table.renamed or table.alias in bare else read


def _qualifies(qualifier: tuple[str, ...], table: Table) -> bool:
    """Whether ``a.`` or ``schema.relation.`` before a column may mean a table."""
    if len(qualifier) == 1:
        return qualifier[0] == table.alias
    *_, name = table.spot.names
    schema = table.spot.names[:-1]
    return qualifier[-1] == name and (not schema or qualifier[-2] == schema[-1])
