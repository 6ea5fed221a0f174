"""Which columns of its relations a statement may read: never fewer than it does. Knows no catalogue.

A text does not tell which relation of several a bare column is of, so it counts for each of them. What
names no column but reads it, such as ``*`` or a row taken whole, counts as all columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .sql_found import Found, Names, Table

MAX_COLUMNS: Final = 1_024
MAX_PAIRS: Final = 65_536  # of a relation and a column behind a dot
ALL: Final = frozenset({"*"})


def columns(found: Found) -> list[frozenset[str]] | None:
    """Return the columns of each table, in order; ``None`` when they are too many to list."""
    bare = frozenset(each.names[0] for each in found.columns if len(each.names) == 1)
    joined = frozenset(each.names[-1] for each in found.columns if each.names[0] in found.joins)
    dotted = frozenset(each.names for each in found.columns if len(each.names) > 1)
    listed = len(found.tables) * (len(bare) + len(joined)) + len(dotted)
    if listed > MAX_COLUMNS or len(found.tables) * len(dotted) > MAX_PAIRS:
        return None
    whole = ALL if found.whole or not bare.isdisjoint(found.joins) else frozenset[str]()
    return [whole | bare | joined | _of(table, dotted, bare) for table in found.tables]


def _of(table: Table, dotted: Iterable[Names], bare: frozenset[str]) -> frozenset[str]:
    read = frozenset(column for *qualifier, column in dotted if _qualifies(qualifier, table))
    return read | ALL if table.renamed or table.alias in bare else read


def _qualifies(qualifier: list[str], table: Table) -> bool:
    """Whether ``a.`` or ``schema.relation.`` before a column may mean a table."""
    if len(qualifier) == 1:
        return qualifier[0] == table.alias
    *_, name = table.spot.names
    schema = table.spot.names[:-1]
    return qualifier[-1] == name and (not schema or qualifier[-2] == schema[-1])
