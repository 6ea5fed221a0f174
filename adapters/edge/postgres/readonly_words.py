"""What a server or a connection said -> a refusal of ours: code, cause, fix. Never a row, never the query."""

from __future__ import annotations

from typing import Final

from ....kernel.policy_text import place, printable
from .readonly_wire import ServerError
from .refused import DatabaseRefused

_TIMEOUTS: Final = frozenset({"57014", "25P04", "55P03"})
_SHOWN: Final = 500


def of_server(error: ServerError, text: str) -> DatabaseRefused:
    """Return what is told of a statement that the server refused; a place in ``text``, if it names one."""
    said = printable(error.message)[:_SHOWN]
    if error.state in _TIMEOUTS:
        return DatabaseRefused("X_DB_TIMEOUT", f"the query was stopped: {said}")
    at = f" at {place(text, error.at)}" if error.at is not None and text else ""
    return DatabaseRefused("X_DB_QUERY_FAILED", f"the server refuses the query: {said}{at}")


def lost(said: str) -> DatabaseRefused:
    """Return what is told when there is no connection, or none any more."""
    return DatabaseRefused("X_DB_UNREACHABLE", f"the database does not answer: {printable(said)[:_SHOWN]}")


def unpinned(said: str) -> DatabaseRefused:
    """Return what is told of a session that cannot be made what it must be."""
    cause = f"the session cannot be pinned, so nothing was run: {printable(said)[:_SHOWN]}"
    return DatabaseRefused("X_DB_GUARD_MISSING", cause)
