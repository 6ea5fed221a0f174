"""One reserved connection of ``db.query``: what stands on it, a query in a transaction, what is left of it.

Judges no text. A layer is told only where the server itself said, on this connection, that it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ....kernel.sql_families import family_of
from .readonly_caps import Column, Rows, chunk_of, columns_of
from .readonly_plans import Plans
from .readonly_role import BESIDES_READING, EXECUTABLE, MAY_BECOME
from .readonly_settings import (
    AFTER,
    BEGIN,
    ROLLBACK,
    VERIFY,
    Pins,
    identifier,
    nothing_left,
    pins,
)
from .readonly_wire import ServerError, Statement, Wire, has_rows, is_refusal, refused

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

LOGIN: Final = "role:login"  # the session's own login only reads
SET: Final = "role:set"  # the session took the role on for the transaction, and could leave it
READ_ONLY, ONE_STATEMENT, SETTINGS = "read-only-transaction", "one-statement", "settings"
STATEMENT_TIMEOUT, TRANSACTION = "statement-timeout", "transaction-timeout"
REVOKED, LEFT_CLEAN = "execute-revoked", "session-check"
_PROBE: Final = "SELECT 1; SELECT 2"
_TWO: Final = "42601"
_ENDING: Final = (Statement(ROLLBACK), Statement(name=AFTER))
_DRAINED: Final = 4 * 1024 * 1024  # bytes of an answer that was cut short: beyond, the connection is closed


class Unpinned(Exception):
    """The session is not what it was made to be: nothing was run on it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How sessions are made: schemas after ``pg_catalog``, the longest a query may take, the role."""

    path: tuple[str, ...]
    timeout_ms: int
    role: str | None


@dataclass(frozen=True, slots=True)
class Standing:
    """What was found on a connection when it was opened: who it is, and which layers stand for its life.

    ``beginning`` is what each transaction begins with; the last of it asks what holds there.
    """

    user: str
    login: str
    pid: str
    pins: Pins
    settings: tuple[str | None, ...]
    beginning: tuple[Statement, ...]
    guards: frozenset[str]


class Session:
    """A connection on which one query runs at a time. After an exception it must be closed."""

    def __init__(self, wire: Wire, standing: Standing, since: float) -> None:
        self._wire, self.standing, self.since = wire, standing, since
        self._guards: set[str] = set()
        self._plans = Plans()

    @property
    def guards(self) -> frozenset[str]:
        """The layers that stood for the query that was begun last."""
        return self.standing.guards | self._guards

    def close(self) -> None:
        """End it."""
        self._wire.close()

    async def begin(self, text: str | None = None) -> tuple[Column, ...]:
        """Begin a read-only transaction and verify the session; with a statement, as ``columns`` does too.

        Raises: ServerError, for the statement; Unpinned; LinkLost.
        """
        self._guards = set()
        beginning = self.standing.beginning
        self._wire.run(*beginning)
        if text is not None:
            self._describe(text)
        self._wire.sync()
        answers = await self._wire.outcomes()
        wrong = next((place for place, each in enumerate(answers) if is_refusal(each)), len(answers))
        if wrong < len(beginning):
            raise Unpinned(refused(answers[wrong]).message)
        self._guards.update(self._verified(answers[len(beginning) - 1]))
        if wrong < len(answers):
            raise refused(answers[wrong])
        return () if text is None else columns_of(answers[-1])

    async def columns(self, text: str) -> tuple[Column, ...]:
        """Return the columns of a statement; the server reads it as it is, and refuses two.

        No row of it is read. But a literal beside a composite type becomes a value at once, by that type's
        checks: names must have been weighed before. Raises: ServerError, for the statement; LinkLost.
        """
        self._describe(text)
        self._wire.sync()
        return columns_of((await self._wire.answers())[-1])

    def _describe(self, text: str) -> None:
        self._wire.prepare("", text)
        self._wire.describe()

    def _verified(self, answer: PGresult) -> Iterator[str]:
        """Yield what the server says stands in this transaction. Raises: Unpinned."""
        standing, (user, login, pid, read_only, *held) = self.standing, _row(answer)
        if (user, login, pid) != (standing.user, standing.login, standing.pid):
            raise Unpinned("the session is another one, or another user's")
        if tuple(held) != standing.settings:
            raise Unpinned("a setting is not what it was pinned to")
        if read_only != "on":
            raise Unpinned("the transaction is not read-only")
        yield from (READ_ONLY, SETTINGS, STATEMENT_TIMEOUT)
        if "transaction_timeout" in standing.pins.names:
            yield TRANSACTION

    async def look(self, *statements: Statement) -> list[list[tuple[str | None, ...]]]:
        """Run statements of ours in the transaction and return their rows. Raises: ServerError, LinkLost."""
        self._wire.run(*statements)
        self._wire.sync()
        return [list(_rows(each)) for each in await self._wire.answers()]

    async def run(self, rows: Rows, text: str, before: Sequence[Statement] = ()) -> None:
        """Run a statement that answers, then end the transaction and look at what is left.

        ``before`` is run first. Raises: ServerError, of a statement, once it is known what is left; LinkLost.
        """
        self._wire.run(*before)
        place = len(before) + self._send(text)
        self._wire.run(*_ENDING)
        self._wire.sync()
        error: ServerError | None = None
        async for at, each in self._wire.stream(place, chunk_of(len(rows.columns))):
            if is_refusal(each):
                error = refused(each)
            elif at == place and has_rows(each):
                rows.take(each)
                if rows.received > _DRAINED and rows.ended:
                    return  # and nobody looked at what is left: it is closed
            elif at == place + len(_ENDING) and has_rows(each):
                self._looked_at(each)
        if error is not None:
            await self.leave()
            raise error

    def _send(self, text: str) -> bool:
        """Send a statement, planned if it came before; tell whether it is prepared first."""
        known = self._plans.of(text)
        made = None if known is not None else self._plans.made(text)
        if made is not None:
            self._wire.prepare(made, text)
        name = known or made
        self._wire.run(Statement(text) if name is None else Statement(name=name))
        return made is not None

    async def leave(self) -> None:
        """End the transaction and look at what is left. Raises: LinkLost."""
        self._wire.run(*_ENDING)
        self._wire.sync()
        self._looked_at((await self._wire.answers())[1])

    def _looked_at(self, answer: PGresult) -> None:
        """Tell a session that is as it was when it was opened; every other one is closed."""
        user, login, pid, *rest = _row(answer)
        left, held = tuple(rest[:4]), tuple(rest[4:])
        standing = self.standing
        same = (login, pid, held) == (standing.login, standing.pid, standing.settings)
        if same and user == login and left == nothing_left(self._plans.names):
            self._guards.add(LEFT_CLEAN)


def _row(answer: PGresult) -> list[str | None]:
    return list(next(_rows(answer)))


def _rows(answer: PGresult) -> Iterator[tuple[str | None, ...]]:
    for row in range(answer.ntuples):
        cells = (answer.get_value(row, column) for column in range(answer.nfields))
        yield tuple(None if each is None else each.decode(errors="replace") for each in cells)


async def opened(wire: Wire, wanted: Wanted, since: float) -> Session:
    """Return a session on a connection, once it is known what stands on it.

    1. does the server refuse two statements in one message?  2. does the login only read?  3. if not, may it
    become the role, and does that?  4. which functions may be executed?  5. pin it.
    Raises: ServerError, Unpinned, LinkLost.
    """
    guards = {ONE_STATEMENT} if await _refuses_two(wire) else set[str]()  # 1
    version = wire.pg.server_version
    role = None
    if await _besides_reading(wire, None) is None:  # 2
        guards.add(LOGIN)
    elif wanted.role is not None and await _may_become(wire, wanted.role):  # 3
        role = wanted.role
        if await _besides_reading(wire, role) is None:
            guards.add(SET)
    if await _harmless(wire, role):  # 4
        guards.add(REVOKED)
    standing = await _pinned(wire, pins(wanted.path, wanted.timeout_ms, version), role, frozenset(guards))
    return Session(wire, standing, since)


async def _pinned(wire: Wire, held: Pins, role: str | None, guards: frozenset[str]) -> Standing:
    """Pin a session, and prepare what each query asks. Raises: Unpinned, ServerError, LinkLost."""
    wire.run(*map(Statement, held.made()))
    for name, text in held.prepared():
        wire.prepare(name, text)
    wire.run(Statement(name=AFTER))
    wire.sync()
    user, login, pid, *rest = _row((await wire.answers())[-1])
    settings = tuple(rest[4:])
    if not held.hold(settings):
        raise Unpinned("a setting cannot be pinned")
    taken = () if role is None else (Statement(f"SET LOCAL ROLE {identifier(role)}"),)
    beginning = (Statement(BEGIN), *taken, Statement(name=VERIFY))
    return Standing(role or str(user), str(login), str(pid), held, settings, beginning, guards)


async def _refuses_two(wire: Wire) -> bool:
    wire.prepare("", _PROBE)
    wire.sync()
    try:
        await wire.answers()
    except ServerError as refusal:
        return refusal.state == _TWO
    return False


async def _besides_reading(wire: Wire, role: str | None) -> str | None:
    return (await _as_role(wire, role, BESIDES_READING))[0][0]


async def _may_become(wire: Wire, role: str) -> bool:
    wire.run(Statement(MAY_BECOME, (role,)))
    wire.sync()
    return any(row == ("true",) for row in _rows((await wire.answers())[0]))


async def _harmless(wire: Wire, role: str | None) -> bool:
    """Whether no function of a family may be executed."""
    names = await _as_role(wire, role, EXECUTABLE)
    return all(family_of(str(name)) is None for (name,) in names)


async def _as_role(wire: Wire, role: str | None, text: str) -> list[tuple[str | None, ...]]:
    taken = "SELECT" if role is None else f"SET LOCAL ROLE {identifier(role)}"
    wire.run(Statement(BEGIN), Statement(taken), Statement(text), Statement(ROLLBACK))
    wire.sync()
    try:
        return list(_rows((await wire.answers())[2]))
    except ServerError:
        wire.run(Statement(ROLLBACK))
        wire.sync()
        await wire.answers()
        raise
