"""The names of the types of an answer's columns. Knows no row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

from .readonly_caps import Column
from .readonly_session import Session
from .readonly_wire import Statement

_ASK: Final = "SELECT t::text, pg_catalog.format_type(t, NULL) FROM pg_catalog.unnest($1::oid[]) t"
_MOST: Final = 4_096


class TypeNames:
    """Names by OID: those of every server are known, others are asked for once."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def known(self, columns: Sequence[Column]) -> list[str] | None:
        """Return the name of each column's type, if no server must be asked."""
        found = [self._names.get(each.type) for each in columns]
        return None if None in found else cast("list[str]", found)

    async def of(self, session: Session, columns: Sequence[Column]) -> list[str]:
        """Return the name of each column's type. Raises: ServerError, LinkLost."""
        names = self._names
        unknown = {each.type for each in columns if each.type not in names}
        if unknown:
            if len(names) > _MOST:
                names.clear()
            names.update(_built_in(unknown))
            await self._asked(session, unknown - names.keys())
        return [names[each.type] for each in columns]

    async def _asked(self, session: Session, unknown: set[int]) -> None:
        if unknown:
            given = "{" + ",".join(map(str, sorted(unknown))) + "}"
            ((rows),) = await session.look(Statement(_ASK, (given,)))
            self._names.update(dict.fromkeys(unknown, "unknown"))
            self._names.update((int(str(oid)), str(name)) for oid, name in rows)


def _built_in(oids: Iterable[int]) -> Iterator[tuple[int, str]]:
    from psycopg.postgres import types

    for oid in oids:
        found = types.get(oid)
        if found is not None:
            yield oid, found.regtype if found.oid == oid else f"{found.regtype}[]"
