"""``db.query`` over its layers: one query on one reserved connection, and which layers stood for it.

Judges no text and decides nothing: what may be asked was decided before. What a layer must stop is stopped
by the server; here it is asked to, and asked whether it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ....kernel.sql_facts import SqlFacts
from ..extras import require
from .readonly_batch import Unpinned
from .readonly_caps import (
    MAX_COLUMNS,
    PLAN,
    Column,
    Rows,
    capped,
    explaining,
    rows_of,
)
from .readonly_plans import Asking
from .readonly_pool import Sessions
from .readonly_role import ROLE
from .readonly_runaways import Runaways
from .readonly_session import Session, opened
from .readonly_standing import (
    LEFT_CLEAN,
    LOGIN,
    ONE_STATEMENT,
    READ_ONLY,
    REVOKED,
    SET,
    SETTINGS,
    STATEMENT_TIMEOUT,
    TRANSACTION,
    Wanted,
)
from .readonly_text import explained, kind, shown
from .readonly_types import TypeNames
from .readonly_wire import LinkLost, ServerError, Statement, Wire
from .readonly_words import lost, of_server, unpinned
from .refused import DatabaseRefused, one_line

TEXT, CATALOGUE = "text", "catalogue"
ROW_LIMIT, CELL_LIMIT, BYTE_LIMIT = "row-limit", "cell-limit", "byte-limit"
GUARDS: Final = (
    *(TEXT, CATALOGUE, LOGIN, SET, READ_ONLY, ONE_STATEMENT, REVOKED, SETTINGS, STATEMENT_TIMEOUT),
    *(TRANSACTION, ROW_LIMIT, CELL_LIMIT, BYTE_LIMIT, LEFT_CLEAN),
)
SECONDS: Final = 5.0
_SLACK: Final = 3.0  # seconds beyond the server's own limit, after which it counts as silent
_PLAN: Final = (Column("QUERY PLAN", 25),)
_PATH: Final = ("public",)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as it may be run: its text, what the guard read in it, and whether a policy judged that."""

    text: str
    facts: SqlFacts
    judged: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows, and what is true of them: the layers that stood, the limits that cut, the bytes of the rows.

    ``truncated_by`` holds ``rows``, ``bytes`` and ``cells``, or nothing where nothing was left out.
    """

    columns: tuple[tuple[str, str], ...]
    rows: list[list[Any]]
    guards: tuple[str, ...]
    truncated_by: tuple[str, ...]
    bytes: int


class Check(Protocol):
    """What a database itself says of the names in a query; the times are of the loop's clock."""

    def passed(self, text: str, now: float) -> bool:
        """Whether it was asked about a query a moment ago, and had nothing against it."""
        ...

    async def __call__(
        self, session: Session, text: str, facts: SqlFacts, now: float
    ) -> DatabaseRefused | None:
        """Return why a query is refused after all. Raises: ServerError, LinkLost."""
        ...


class ReadOnly:
    """A database that queries are asked of. Connections are opened when needed; ``close`` ends them."""

    def __init__(
        self,
        dsn: str,
        *,
        role: str | None = ROLE,
        path: tuple[str, ...] = _PATH,
        seconds: float = SECONDS,
        connections: int = 4,
        connect_seconds: float = 5.0,
        required: Collection[str] = (),
        check: Check | None = None,
    ) -> None:
        """``required`` are guards without which nothing is run; ``check`` asks the live catalogue.

        Raises: ExtraMissing, when psycopg is not installed; ValueError.
        """
        require("psycopg", "nonsuch[postgres]")
        if not set(required) <= set(GUARDS):
            raise ValueError(f"no guards are called {', '.join(sorted(set(required) - set(GUARDS)))}")
        self._dsn, self._connect_seconds, self._check = dsn, connect_seconds, check
        self._required, self._seconds = frozenset(required), seconds
        self._wanted = Wanted(path, max(1, round(seconds * 1_000)), role)
        self._types, self._runaways = TypeNames(), Runaways(connections)
        self._sessions = Sessions(self._opened, connections, connect_seconds, self._runaways.add)

    async def close(self) -> None:
        """Close the connections; a later query opens others."""
        self._sessions.close()

    async def query(self, asked: Asked, limit: int | None = None, *, explain: bool = False) -> Answer:
        """Return the rows of a query, or with ``explain`` its plan. Raises: DatabaseRefused."""
        try:
            async with asyncio.timeout(self._seconds + self._connect_seconds + _SLACK):
                return await self._query(
                    asked, rows_of(limit), explain=explain or kind(asked.facts) == "explain"
                )
        except TimeoutError:
            raise lost("it is silent") from None

    async def _query(self, asked: Asked, limit: int, *, explain: bool) -> Answer:
        try:
            return await self._once(asked, limit, explain=explain, fresh=False)
        except _Stale:  # as when the server was started again since
            pass
        try:
            return await self._once(asked, limit, explain=explain, fresh=True)
        except _Stale:
            raise lost("it ends connections") from None

    async def _once(self, asked: Asked, limit: int, *, explain: bool, fresh: bool) -> Answer:
        async with self._sessions.one(fresh=fresh) as session:
            try:
                found = None if explain else await self._again(session, asked, limit)
                if found is None:
                    found = await self._on(session, asked, limit, explain=explain)
            except LinkLost as fault:
                raise lost(str(fault)) from None
            except Unpinned as fault:
                raise unpinned(str(fault)) from None
        if isinstance(found, DatabaseRefused):
            raise found
        return found

    async def _again(self, session: Session, asked: Asked, limit: int) -> Answer | DatabaseRefused | None:
        """Answer a query that the session has planned, all at once; return nothing where it must be begun.

        The server itself runs none of it where the session is not what it was pinned to.
        """
        plan = session.plans.known(_asking(asked, limit))
        if plan is None or self._unasked(asked) is not None:
            return None
        names = self._types.known(plan.columns)
        standing = self._standing(session.standing.guards | session.standing.verified, asked)
        if names is None or self._lacking(standing) is not None:
            return None
        if not session.is_there():
            raise _Stale
        rows = Rows(plan.columns, limit)
        try:
            if not await session.again(rows, plan, asked.text):
                raise _Stale
        except ServerError as refusal:
            return of_server(refusal, asked.text)
        return self._answer(session, asked, rows, names)

    async def _on(
        self, session: Session, asked: Asked, limit: int, *, explain: bool
    ) -> Answer | DatabaseRefused:
        """1. begin, verify  2. the live catalogue  3. the columns  4. the query  5. the end, what is left."""
        try:
            columns = await self._columns(session, asked)  # 1, 2, 3
        except ServerError as refusal:
            columns = of_server(refusal, asked.text)
        if not isinstance(columns, DatabaseRefused) and not explain and len(columns) > MAX_COLUMNS:
            columns = DatabaseRefused("X_DB_QUERY_FAILED", f"the query has more than {MAX_COLUMNS} columns")
        if isinstance(columns, DatabaseRefused):
            await session.leave()
            return columns
        return await self._run(session, asked, Rows(_PLAN if explain else columns, limit), explain=explain)

    async def _columns(self, session: Session, asked: Asked) -> tuple[Column, ...] | DatabaseRefused:
        """Begin, and return the columns of a query that the live catalogue has nothing against.

        The server reads no text before, unless that was said a moment ago: then both are asked at once.
        Raises: ServerError, for the query; Unpinned; LinkLost.
        """
        check = self._unasked(asked)
        try:
            columns = await session.begin(asked.text if check is None else None)
        except LinkLost:
            raise _Stale from None
        refused = self._lacking(self._standing(session.guards, asked))
        if refused is None and check is not None:
            refused = await self._checked(check, session, asked)
        if refused is not None:
            return refused
        return columns if check is None else await session.columns(asked.text)

    def _unasked(self, asked: Asked) -> Check | None:
        """Return the check that is to be asked about a query, if it was not a moment ago."""
        now = asyncio.get_running_loop().time()
        return None if self._check is None or self._check.passed(asked.text, now) else self._check

    async def _checked(self, check: Check, session: Session, asked: Asked) -> DatabaseRefused | None:
        try:
            return await check(session, asked.text, asked.facts, asyncio.get_running_loop().time())
        except ServerError as refusal:  # a catalogue that cannot be read lets nothing pass
            cause = f"the live catalogue cannot be read: {one_line(refusal.message)}"
            return DatabaseRefused("X_DB_GUARD_MISSING", cause)

    async def _run(
        self, session: Session, asked: Asked, rows: Rows, *, explain: bool
    ) -> Answer | DatabaseRefused:
        names = await self._types.of(session, rows.columns)
        before = (Statement(explaining(explained(asked.text, asked.facts))),) if explain else ()
        text = PLAN if explain else capped(shown(asked.text, asked.facts), len(rows.columns), rows.limit)
        try:
            plan = await session.run(rows, text, before)  # 4, 5
        except ServerError as refusal:
            return of_server(refusal, "")
        if plan is not None and not explain:
            session.plans.answered(_asking(asked, rows.limit), plan)
        return self._answer(session, asked, rows, names, explain=explain)

    def _answer(
        self, session: Session, asked: Asked, rows: Rows, names: Sequence[str], *, explain: bool = False
    ) -> Answer:
        caps = {BYTE_LIMIT} if explain else {ROW_LIMIT, CELL_LIMIT, BYTE_LIMIT}
        stood = self._standing(session.guards, asked) | caps
        return Answer(
            tuple((column.name, name) for column, name in zip(rows.columns, names, strict=True)),
            rows.kept,
            tuple(each for each in GUARDS if each in stood),
            tuple(each for each in ("rows", "bytes", "cells") if each in rows.cut),
            rows.bytes,
        )

    def _standing(self, stood: Collection[str], asked: Asked) -> set[str]:
        judged = {TEXT} if asked.judged else set[str]()
        return {*stood, *judged, *({CATALOGUE} if self._check is not None else ())}

    def _lacking(self, standing: set[str]) -> DatabaseRefused | None:
        later = {ROW_LIMIT, CELL_LIMIT, BYTE_LIMIT, LEFT_CLEAN}
        lacking = sorted(self._required - standing - later)
        if not lacking:
            return None
        names = ", ".join(f"`{each}`" for each in lacking)
        return DatabaseRefused("X_DB_GUARD_MISSING", f"these layers do not stand: {names}")

    async def _opened(self, since: float) -> Session:
        from psycopg import AsyncConnection, Error

        try:
            seconds = max(2, round(self._connect_seconds))  # less is not kept by libpq
            connection = await AsyncConnection.connect(
                self._dsn, autocommit=True, connect_timeout=seconds, application_name="nonsuch db.query"
            )
        except Error as fault:
            raise lost(one_line(fault)) from None
        wire = Wire(connection)
        try:
            session = await opened(wire, self._wanted, since)
            await self._runaways.few(session)
            return session
        except (ServerError, LinkLost, Unpinned) as fault:
            wire.close()
            raise unpinned(str(fault)) from None
        except BaseException:
            wire.close()
            raise


class _Stale(Exception):
    """The connection was gone before anything was run on it, or what it had planned is another query now."""


def _asking(asked: Asked, limit: int) -> Asking:
    return asked.text, shown(asked.text, asked.facts), limit
