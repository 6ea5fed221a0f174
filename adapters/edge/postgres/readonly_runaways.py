"""Queries that were given up here and go on at the server all the same. Knows no query's text.

A loop inside one call of a built-in function may look at no signal: `translate` of two long texts, a search
of one in the other, arrays that are compared. No timeout ends it and no cancel does, only its own end or that
of the server. What can be done here is to let only a few of them be.
"""

from __future__ import annotations

from typing import Final, LiteralString

from .readonly_session import Session
from .readonly_settings import listed
from .readonly_wire import Statement
from .refused import DatabaseRefused

CODE: Final = "X_DB_BUSY"
# Overdue is what went on for longer than a query may, by some seconds.
_ASK: Final[LiteralString] = """
SELECT pid::text, (query_start < pg_catalog.clock_timestamp()
  - pg_catalog.current_setting('statement_timeout')::interval - interval '2 s')::text
FROM pg_catalog.pg_stat_activity WHERE pid = ANY ($1::int[]) AND state = 'active'
"""


class Runaways:
    """The processes at the server whose queries were given up here, until they are known to have ended."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._given_up: set[str] = set()

    def add(self, session: Session) -> None:
        """Remember the process of a session that was closed before its query had ended as it should."""
        self._given_up.add(session.standing.pid)

    async def few(self, session: Session) -> None:
        """See that fewer than ``most`` of them go on. Raises: DatabaseRefused; ServerError, LinkLost."""
        if not self._given_up:
            return
        ((*rows,),) = await session.look(Statement(_ASK, (listed(sorted(self._given_up)),)))
        self._given_up &= {str(pid) for pid, _ in rows}
        overdue = sorted(str(pid) for pid, late in rows if late == "true")
        if len(overdue) >= self._most:
            cause = (
                f"{len(overdue)} queries go on that the server cannot stop: processes {', '.join(overdue)}"
            )
            raise DatabaseRefused(CODE, cause, "end them at the server, or start it again")
