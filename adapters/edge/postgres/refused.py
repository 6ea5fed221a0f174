"""Why something cannot be done to a database: code, cause, fix. Knows no surface that tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....kernel.codes import CODES

if TYPE_CHECKING:
    from psycopg import Error


class DatabaseRefused(Exception):
    """The database, its server or what was asked of them does not allow it."""

    def __init__(self, code: str, cause: str, fix: str | None = None) -> None:
        self.code, self.cause, self.fix = code, cause, fix or CODES[code].fix
        super().__init__(code, cause, self.fix)

    def __str__(self) -> str:
        return f"{self.code}: {self.cause}\nfix: {self.fix}"


def one_line(text: object) -> str:
    """Return a text of others as it can stand in one line of ours."""
    return " ".join("".join(each if each.isprintable() else " " for each in str(text)).split())


def unreachable(error: Error) -> DatabaseRefused:
    """Return why there is no connection. The driver's words name hosts and users, never a password."""
    return DatabaseRefused("X_DB_UNREACHABLE", f"the database does not answer: {one_line(error)}")


def by_server(error: Error, doing: str) -> DatabaseRefused:
    """Return what the server said when it refused: its first line, which is without rows' details."""
    said = error.diag.message_primary or type(error).__name__
    return DatabaseRefused("X_DB_REFUSED", f"{doing}: {one_line(said)}")
