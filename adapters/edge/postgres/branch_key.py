"""The key of branch markers: from the environment, or from a file that only this user may read.

Who holds it can say that a database is a branch. It is made when the first branch is.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from .refused import DatabaseRefused

CODE: Final = "X_DB_BRANCH_KEY"
VARIABLE: Final = "NONSUCH_BRANCH_KEY"
MIN_BYTES: Final = 32
_FILE: Final = Path("nonsuch") / "branch.key"


def branch_key(*, make: bool = False) -> bytes:
    """Return the key: the text of ``NONSUCH_BRANCH_KEY``, else what the file in the state directory holds.

    With ``make`` a file that is not there is written. Raises: DatabaseRefused.
    """
    given = os.environ.get(VARIABLE)
    if given is not None:
        return _long_enough(given.strip().encode(), f"`{VARIABLE}`")
    path = _path()
    try:
        if make:
            _make(path)
        return _long_enough(_read(path), f"`{path}`")
    except FileNotFoundError:
        cause = f"there is no key of branches: neither `{VARIABLE}` nor `{path}`"
        raise DatabaseRefused(
            CODE, cause, "make a branch here first, or give the key that it was made with"
        ) from None
    except OSError as error:
        raise DatabaseRefused(CODE, f"`{path}` cannot be used: {error.strerror}") from None


def _path() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    try:
        return (Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state") / _FILE
    except RuntimeError:
        cause = "there is no home directory to keep the key of branches in"
        raise DatabaseRefused(
            CODE, cause, f"set `{VARIABLE}` to {MIN_BYTES} random characters or more"
        ) from None


def _make(path: Path) -> None:
    """Write a new key and link it to its place: of two makers one wins, and nobody reads half a key."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(MIN_BYTES) + "\n")
        os.link(fresh, path)
    except FileExistsError:
        return
    finally:
        fresh.unlink()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_IMODE(mode) & 0o077:
            cause = f"`{path}` can be read by others than its owner"
            raise DatabaseRefused(CODE, cause, f"chmod 600 {path}; if they may have read it, make a new key")
        return file.read(4096).strip()


def _long_enough(key: bytes, where: str) -> bytes:
    if len(key) < MIN_BYTES:
        raise DatabaseRefused(
            CODE, f"{where} holds a key of {len(key)} bytes: too short", f"give {MIN_BYTES} or more"
        )
    return key
