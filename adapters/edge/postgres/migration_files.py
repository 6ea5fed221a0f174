"""The migrations of an app: numbered SQL files in the order of their numbers. Runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Final

from .refused import DatabaseRefused, one_line
from .sql_file import INVALID, SqlFile, read_file

DIFFER: Final = "X_DB_MIGRATIONS_DIFFER"
_NUMBERED: Final = re.compile(r"([0-9]{1,18})([_-][\w.-]*)?\.sql", re.ASCII)


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its number, its text, and a digest of that, blind to how lines end."""

    number: int
    file: SqlFile

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.file.name

    @property
    def digest(self) -> str:
        """What tells this text from others."""
        return sha256(self.file.text.replace("\r\n", "\n").encode()).hexdigest()


def read_migrations(directory: Path) -> tuple[Migration, ...]:
    """Return the migrations of a directory. Raises: DatabaseRefused, for a `.sql` file that is none too."""
    try:
        paths = [each for each in directory.iterdir() if each.name.lower().endswith(".sql")]
    except OSError as error:
        cause = f"the directory of migrations `{directory}` cannot be read: {error.strerror}"
        raise DatabaseRefused(INVALID, cause, "name it: `--migrations`") from None
    found = sorted((_migration(each) for each in paths), key=lambda each: each.number)
    for first, second in pairwise(found):
        if first.number == second.number:
            cause = f"`{first.name}` and `{second.name}` have one number"
            raise DatabaseRefused(INVALID, cause, "give one of the two another number")
    return tuple(found)


def _migration(path: Path) -> Migration:
    match = _NUMBERED.fullmatch(path.name)
    if match is None:
        cause = f"`{one_line(path.name)}` is no name of a migration"
        raise DatabaseRefused(INVALID, cause, "name it by its number and what it does: `0001_orders.sql`")
    return Migration(int(match[1]), read_file(path))


def pending(files: Iterable[Migration], applied: Mapping[str, str]) -> tuple[Migration, ...]:
    """Return the migrations that have not run, given the names and digests of those that have.

    Raises: DatabaseRefused, when what ran here is not what the directory begins with.
    """
    known = tuple(files)
    for cause in _differences({each.name: each for each in known}, applied):
        raise DatabaseRefused(DIFFER, cause)
    return tuple(each for each in known if each.name not in applied)


def _differences(files: Mapping[str, Migration], applied: Mapping[str, str]) -> Iterator[str]:
    for name, digest in applied.items():
        if name not in files:
            yield f"`{one_line(name)}` ran here, and the directory has no such file"
        elif files[name].digest != digest:
            yield f"`{name}` was changed since it ran here"
    last = max((each.number for each in files.values() if each.name in applied), default=-1)
    for each in files.values():
        if each.name not in applied and each.number < last:
            yield f"`{each.name}` comes before a migration that ran here already"
