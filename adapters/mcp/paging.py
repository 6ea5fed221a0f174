"""Pages of a list: where a caller's page ends is sealed to the caller and the list, and tells nothing else.

A page is cut from what its caller sees, so what is hidden shows in no page and no cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...kernel.model import Principal, owner_key
from ...kernel.seal import Seal

_PURPOSE: Final = "nonsuch cursor"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of named things, and the cursor of the next if there is one."""

    names: Sequence[str]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Pages:
    """Cuts lists into pages of ``size`` names; ``None`` sends a list whole."""

    seal: Seal
    size: int | None

    def page(self, who: Principal, kind: str, names: Sequence[str], cursor: object) -> Page | None:
        """Return the page after a cursor (``None``: the first), or nothing for a cursor that is not theirs.

        ``names`` are sorted. A cursor is the last name of its page, so a list that changed between two
        pages skips and repeats nothing that stayed.
        """
        start = 0
        if cursor is not None:
            after = self._opened(who, kind, cursor)
            if after is None:
                return None
            start = sum(name <= after for name in names)
        end = len(names) if self.size is None else start + self.size
        more = end < len(names)
        return Page(names[start:end], self._sealed(who, kind, names[end - 1]) if more else None)

    def _sealed(self, who: Principal, kind: str, name: str) -> str:
        return self.seal.seal(_PURPOSE, _bound(who, kind), name.encode())

    def _opened(self, who: Principal, kind: str, cursor: object) -> str | None:
        if not isinstance(cursor, str):
            return None
        payload = self.seal.unseal(_PURPOSE, _bound(who, kind), cursor)
        return None if payload is None else payload.decode()


def _bound(who: Principal, kind: str) -> bytes:
    return f"{owner_key('', who)} {kind}".encode()
