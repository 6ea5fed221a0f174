"""One reserved connection of ``db.query``: what stands on it, a query in a transaction, what is left of it.

Judges no text. A layer is told only where the server itself said, on this connection, that it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ....kernel.sql_families import family_of
from .readonly_batch import Batch, Unpinned
from .readonly_caps import Column, Rows, chunk_of, columns_of
from .readonly_plans import Plan, Plans
from .readonly_role import BESIDES_READING, EXECUTABLE, MAY_BECOME
from .readonly_settings import (
    AFTER,
    AS_BEFORE,
    BEGIN,
    GENERIC,
    HELD,
    ROLLBACK,
    VERIFY,
    Pins,
    identifier,
    listed,
    nothing_left,
    pins,
)
from .readonly_standing import LEFT_CLEAN, LOGIN, ONE_STATEMENT, REVOKED, SET, Standing, Wanted, verifiable
from .readonly_wire import ServerError, Statement, Wire, has_rows, is_refusal, refused

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

_PROBE: Final = "SELECT 1; SELECT 2"
_TWO: Final = "42601"
_ENDING: Final = (Statement(ROLLBACK), Statement(name=AFTER))
_DRAINED: Final = 4 * 1024 * 1024  # bytes of an answer that was cut short: beyond, the connection is closed


class Session:
    """A connection on which one query runs at a time. After an exception it must be closed."""

    def __init__(self, wire: Wire, standing: Standing, since: float) -> None:
        self._wire, self.standing, self.since = wire, standing, since
        self._guards: set[str] = set()
        self.plans = Plans()

    @property
    def guards(self) -> frozenset[str]:
        """The layers that stood for the query that was begun last."""
        return self.standing.guards | self._guards

    def is_there(self) -> bool:
        """Whether nothing was heard of the end of the connection. Sends nothing."""
        return self._wire.is_there()

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
        self._guards |= self._verified(_row(answers[len(beginning) - 1]))
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

    def _verified(self, told: Sequence[str | None]) -> frozenset[str]:
        """Return what the server says stands in this transaction. Raises: Unpinned."""
        standing, (user, login, pid, read_only, *held) = self.standing, told
        if (user, login, pid) != (standing.user, standing.login, standing.pid):
            raise Unpinned("the session is another one, or another user's")
        if tuple(held) != standing.settings:
            raise Unpinned("a setting is not what it was pinned to")
        if read_only != "on":
            raise Unpinned("the transaction is not read-only")
        return standing.verified

    async def look(self, *statements: Statement) -> list[list[tuple[str | None, ...]]]:
        """Run statements of ours in the transaction and return their rows; those with a name stay prepared.

        Raises: ServerError, LinkLost.
        """
        fresh = [each for each in statements if each.name and each.name not in self.plans.looks]
        for each in fresh:
            self._wire.prepare(each.name, each.text)
        self._wire.run(Statement(GENERIC), *statements, Statement(AS_BEFORE))
        self._wire.sync()
        answers = await self._wire.answers()
        self.plans.looks.update(each.name for each in fresh)
        return [[tuple(row) for row in _rows(each)] for each in answers[len(fresh) + 1 : -1]]

    async def run(self, rows: Rows, text: str, before: Sequence[Statement] = ()) -> Plan | None:
        """Run a statement that answers, then end the transaction and look at what is left.

        ``before`` is run first. Returns the plan of the statement, if it has one now. Raises: ServerError, of
        a statement, once it is known what is left; LinkLost.
        """
        self._wire.run(*before)
        plan, made = self._send(text, rows.columns)
        await self._ended(Batch(rows, len(before) + made))
        return plan

    async def again(self, rows: Rows, plan: Plan, text: str) -> bool:
        """Do all that a query needs at once: begin, verify, read the text, run its plan, end, look.

        The server stops the batch where the session is not what it was pinned to, and what it verified is
        verified here before a row is taken. Tells whether the text still has the columns of the plan; else
        nothing is taken, and the session must be closed. Raises: ServerError, Unpinned, LinkLost.
        """
        self._guards = set()
        beginning = (*self.standing.beginning[:-1], self.standing.held)
        self._wire.run(*beginning)
        self._describe(text)
        self._wire.run(Statement(name=plan.name))
        batch = Batch(rows, place=len(beginning) + 2, verified=len(beginning) - 1)
        await self._ended(batch)
        return batch.same and self.standing.verified <= self._guards

    async def _ended(self, batch: Batch) -> None:
        """End a batch that runs a query, and take what comes of it."""
        self._wire.flush()
        self._wire.run(*_ENDING)
        self._wire.sync()

        def take(at: int, answer: PGresult) -> bool:
            if is_refusal(answer):
                batch.fails(at, refused(answer))
            elif batch.error is not None:
                return False  # the server skipped it
            elif at == batch.verified:
                self._guards |= self._verified(_row(answer)[:-1])
            elif at == batch.described:
                batch.same = columns_of(answer) == batch.rows.columns
                return not batch.same
            elif at == batch.place and has_rows(answer) and batch.same:
                batch.rows.take(answer)
                return batch.rows.received > _DRAINED and batch.rows.ended  # it is closed: nobody looked
            elif at == batch.place + len(_ENDING) and has_rows(answer):
                self._looked_at(answer)
            return False

        await self._wire.stream(take, batch.place, chunk_of(len(batch.rows.columns)))
        if batch.error is not None:
            await self.leave()
            raise batch.error

    def _send(self, text: str, columns: tuple[Column, ...]) -> tuple[Plan | None, bool]:
        """Send a statement, planned if it came before; return its plan, and whether it is prepared first."""
        plan = self.plans.of(text, columns)
        if plan is not None:
            self._wire.run(Statement(name=plan.name))
            return plan, False
        plan = self.plans.made(text, columns)
        if plan is None:
            self._wire.run(Statement(text))
            return None, False
        self._wire.prepare(plan.name, text)
        self._wire.run(Statement(name=plan.name))
        return plan, True

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
        if same and user == login and left == nothing_left(self.plans.names):
            self._guards.add(LEFT_CLEAN)


def _row(answer: PGresult) -> list[str | None]:
    return next(_rows(answer))


def _rows(answer: PGresult) -> Iterator[list[str | None]]:
    value, columns = answer.get_value, range(answer.nfields)
    for row in range(answer.ntuples):
        cells = [value(row, column) for column in columns]
        yield [None if each is None else each.decode(errors="replace") for each in cells]


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
    who = (role or str(user), str(login), str(pid))
    stops = Statement(parameters=(listed((*who, "on", *map(str, settings))),), name=HELD)
    return Standing(*who, held, settings, beginning, stops, guards, verifiable(held))


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
    return any(row == ["true"] for row in _rows((await wire.answers())[0]))


async def _harmless(wire: Wire, role: str | None) -> bool:
    """Whether no function of a family may be executed."""
    names = await _as_role(wire, role, EXECUTABLE)
    return all(family_of(str(name)) is None for (name,) in names)


async def _as_role(wire: Wire, role: str | None, text: str) -> list[list[str | None]]:
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
