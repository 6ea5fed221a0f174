"""The layers of a session by name, how sessions are made, and what was found on one. Sends nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .readonly_settings import Pins
from .readonly_wire import Statement

LOGIN: Final = "role:login"  # the session's own login only reads
SET: Final = "role:set"  # the session took the role on for the transaction, and could leave it
READ_ONLY, ONE_STATEMENT, SETTINGS = "read-only-transaction", "one-statement", "settings"
STATEMENT_TIMEOUT, TRANSACTION = "statement-timeout", "transaction-timeout"
REVOKED, LEFT_CLEAN = "execute-revoked", "session-check"


@dataclass(frozen=True, slots=True)
class Wanted:
    """How sessions are made: schemas after ``pg_catalog``, the longest a query may take, the role."""

    path: tuple[str, ...]
    timeout_ms: int
    role: str | None


@dataclass(frozen=True, slots=True)
class Standing:
    """What was found on a connection when it was opened: who it is, and which layers stand for its life.

    ``beginning`` is what each transaction begins with; the last of it asks what holds there. ``held`` asks
    that too, and nothing is run behind it if something else holds. ``verified`` are the layers that stand
    where it does.
    """

    user: str
    login: str
    pid: str
    pins: Pins
    settings: tuple[str | None, ...]
    beginning: tuple[Statement, ...]
    held: Statement
    guards: frozenset[str]
    verified: frozenset[str]


def verifiable(held: Pins) -> frozenset[str]:
    """Return the layers that stand in a transaction in which what a session was pinned to holds."""
    ends = {TRANSACTION} if "transaction_timeout" in held.names else set[str]()
    return frozenset({READ_ONLY, SETTINGS, STATEMENT_TIMEOUT, *ends})
