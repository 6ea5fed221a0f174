"""What a session of ``db.query`` is pinned to, and what is asked of it before and after each query. SQL only.

Sends nothing. Before: the settings that the guard's reading of a text rests on, and the time limits. After:
what a query could leave behind in the session, whichever way it got past the guard. Nothing here calls a
function that could be taken from everybody (layer 1b), so settings are made by SET.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ....kernel.sql_catalog import BUILT_IN

BEGIN: Final = "BEGIN TRANSACTION READ ONLY"
ROLLBACK: Final = "ROLLBACK"
# Around statements of ours that are prepared: their plans fit any parameter, and planning takes the longest.
GENERIC: Final = "SET LOCAL plan_cache_mode = force_generic_plan"
AS_BEFORE: Final = "SET LOCAL plan_cache_mode = DEFAULT"
VERIFY, HELD, AFTER = "nonsuch_verify", "nonsuch_held", "nonsuch_after"
_PATH: Final = "search_path"
_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))
TRANSACTION_TIMEOUT: Final = 170_000  # the first server that has it
_CHECKS_CLIENT: Final = 140_000
_GRACE_MS: Final = 1_000

# The guard reads a text as these settings do; another value would make a call of what it took for a literal.
# Notices are not read, so none is sent.
_READING: Final = (
    ("standard_conforming_strings", "on"),
    ("backslash_quote", "safe_encoding"),
    ("client_encoding", "UTF8"),
    ("transform_null_equals", "off"),
    ("bytea_output", "hex"),
    ("client_min_messages", "error"),
)
_WHO: Final = "current_user::text, session_user::text, pg_backend_pid()::text"
# What is no number is an error, and an error skips what was sent behind it. As the condition is stable, the
# server decides it when it runs this, and not when it plans it.
_STOPS: Final = (
    "(CASE WHEN ARRAY[{asked}] OPERATOR(pg_catalog.=) $1::text[] THEN '1'"
    " ELSE 'the session is not what it was pinned to' END)::pg_catalog.int4"
)
_LEFT: Final = (
    "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())::text,"
    " (SELECT string_agg(name, ',' ORDER BY name COLLATE \"C\")"
    " FROM pg_prepared_statements WHERE name <> ''),"
    " ((SELECT count(*) FROM pg_cursors WHERE name <> '')"
    " + (SELECT count(*) FROM pg_listening_channels()))::text,"
    " pg_my_temp_schema()::text"
)


@dataclass(frozen=True, slots=True)
class Pins:
    """The settings of a session, by name, as the server writes them back; the schemas by themselves."""

    settings: tuple[tuple[str, str], ...]
    path: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them, in the order in which they are read."""
        return (*(name for name, _ in self.settings), _PATH)

    def made(self) -> Iterator[str]:
        """Yield the statements that pin a session."""
        yield from (f"SET {name} = {literal(value)}" for name, value in self.settings)
        yield f"SET {_PATH} = {', '.join(map(identifier, self.path))}"

    def prepared(self) -> tuple[tuple[str, str], ...]:
        """Return what the session prepares, by name.

        ``HELD`` asks what ``VERIFY`` does, and is an error of the server's if that is not its parameter.
        """
        read = ", ".join(f"current_setting({literal(name)})" for name in self.names)
        asked = f"{_WHO}, current_setting('transaction_read_only'), {read}"
        stops = _STOPS.format(asked=asked)
        return (
            (VERIFY, f"SELECT {asked}"),
            (HELD, f"SELECT {asked}, {stops}"),
            (AFTER, f"SELECT {_WHO}, {_LEFT}, {read}"),
        )

    def hold(self, read: Sequence[str | None]) -> bool:
        """Whether these are what the server says."""
        *settings, path = read
        return tuple(settings) == tuple(value for _, value in self.settings) and _schemas(path) == self.path


def pins(path: Sequence[str], timeout_ms: int, version: int) -> Pins:
    """Return the pins of a session on a server of a version."""
    ends = [("statement_timeout", duration(timeout_ms)), ("lock_timeout", duration(max(1, timeout_ms // 2)))]
    if version >= TRANSACTION_TIMEOUT:
        ends.append(("transaction_timeout", duration(timeout_ms + _GRACE_MS)))
    if version >= _CHECKS_CLIENT:
        ends.append(("client_connection_check_interval", duration(1_000)))
    return Pins((*_READING, *ends), (BUILT_IN, *path))


def nothing_left(planned: Iterable[str]) -> tuple[str, ...]:
    """Return what a session answers that holds no lock, and has prepared what is ours and nothing else."""
    return ("0", ",".join(sorted((VERIFY, HELD, AFTER, *planned))), "0", "0")


def duration(milliseconds: int) -> str:
    """Return a time as the server writes it back: in the largest unit that holds it whole."""
    size, unit = next(each for each in _UNITS if milliseconds % each[0] == 0)
    return f"{milliseconds // size}{unit}"


def literal(text: str) -> str:
    """Return a text as a literal that every setting reads alike, without backslashes. Raises: ValueError."""
    if "\\" in text or "\0" in text:
        raise ValueError("no backslash may stand in a name or a setting")
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def listed(values: Iterable[str]) -> str:
    """Return an array of texts as a parameter."""
    quoted = ('"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"' for each in values)
    return "{" + ",".join(quoted) + "}"


def _schemas(path: str | None) -> tuple[str, ...]:
    """Return the schemas of a path as the server writes it, in quotes where that is needed."""
    found: list[str] = []
    rest = path or ""
    while rest:
        end = 1
        if rest.startswith('"'):
            while rest[end : end + 1] != '"' or rest[end + 1 : end + 2] == '"':
                end += 1 + (rest[end : end + 1] == '"')
            found.append(rest[1:end].replace('""', '"'))
            rest = rest[end + 1 :].removeprefix(", ")
        else:
            name, _, rest = rest.partition(", ")
            found.append(name)
    return tuple(found)
