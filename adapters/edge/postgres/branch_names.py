"""What a branch is called: its database and its address for a browser. Opens nothing.

A name proves nothing: whether a database is a branch is said by its marker.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from .refused import DatabaseRefused

CODE: Final = "X_DB_BRANCH_NAME"
MAX_BYTES: Final = 63  # PostgreSQL cuts a longer name without a word
_INFIX: Final = "_branch_"
_OTHER: Final = re.compile(r"[^A-Za-z0-9_]")
_OTHER_IN_HOSTS: Final = re.compile(r"[^a-z0-9-]")
_ENDS_LIKE_OURS: Final = re.compile(r".*[_-][0-9a-f]{8}", re.DOTALL)
_LABEL: Final = 63  # RFC 1035 2.3.4


def database_of(source: str, name: str) -> str:
    """Return the database of a branch: no two names of one source have the same.

    A character that an unquoted identifier does not hold becomes ``_``; a name that this changes, and
    one that looks as if it had, gets a short digest behind it. Raises: DatabaseRefused.
    """
    _checked(name)
    database = f"{source}{_INFIX}{_told_apart(name, _OTHER.sub('_', name), '_')}"
    size = len(database.encode())
    if size > MAX_BYTES:
        left = MAX_BYTES - len(f"{source}{_INFIX}".encode())
        fix = (
            f"choose a name of at most {left} characters" if left > 0 else "choose a source of a shorter name"
        )
        raise DatabaseRefused(CODE, f"`{database}` has {size} bytes, and PostgreSQL holds {MAX_BYTES}", fix)
    return database


def preview_of(name: str, port: int) -> str:
    """Return where a browser would look for the app on a branch. Nothing is served there by itself."""
    label = _OTHER_IN_HOSTS.sub("-", name.lower()).strip("-")[:_LABEL]
    told = _told_apart(name, label, "-")
    if len(told) > _LABEL:
        told = _told_apart(name, label[: _LABEL - 9], "-")
    return f"http://{told.strip('-')}.localhost:{port}"


def _told_apart(name: str, slug: str, joint: str) -> str:
    plain = slug == name and not _ENDS_LIKE_OURS.fullmatch(name)
    return name if plain else f"{slug}{joint}{sha256(name.encode()).hexdigest()[:8]}"


def _checked(name: str) -> None:
    if not name or not name.isprintable() or name != name.strip():
        cause = "a branch needs a name of printable characters, without blanks around it"
        raise DatabaseRefused(CODE, cause)
