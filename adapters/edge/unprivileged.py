"""Starts a program as an account other than root, which may not enter our directories.

Knows no PostgreSQL. Nobody's permissions are widened: what the account cannot reach by its name it
inherits as an open descriptor.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs the program."""

    uid: int
    gid: int

    def give(self, path: Path) -> None:
        """Make the account the owner of `path`."""
        os.chown(path, self.uid, self.gid, follow_symlinks=False)


def account_for(data: Path) -> Account | None:
    """Return whom to start programs as: ourselves; if we are root, the owner of `data` or `nobody`.

    Raises: KeyError, when we are root and there is no account `nobody`.
    """
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


def may_enter(account: Account | None, path: Path) -> bool:
    """Tell whether the account reaches `path` by its name. Access lists are not looked at."""
    if account is None:
        return True
    return all(_passes(account, folder.stat()) for folder in path.parents)


def may_run(account: Account | None, program: Path) -> bool:
    """Tell whether the account reaches and may execute `program`."""
    return account is None or (may_enter(account, program) and _passes(account, program.stat()))


def _passes(account: Account, status: os.stat_result) -> bool:
    if status.st_uid == account.uid:
        return bool(status.st_mode & 0o100)
    return bool(status.st_mode & (0o010 if status.st_gid == account.gid else 0o001))


@contextmanager
def reached(account: Account | None, folder: Path) -> Generator[tuple[str, tuple[int, ...]]]:
    """Yield a name by which the account reaches `folder`, and the descriptors it must inherit for that.

    Raises: NotADirectoryError where the system cannot name a directory by its descriptor.
    """
    if may_enter(account, folder):
        yield str(folder), ()
        return
    if not sys.platform.startswith("linux"):
        raise NotADirectoryError(f"the account of the server may not enter `{folder}`")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}", (descriptor,)
    finally:
        os.close(descriptor)


def start(
    command: Sequence[str],
    account: Account | None,
    *,
    environment: Mapping[str, str],
    inherited: Sequence[int],
    output: int,
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, so that Ctrl-C in our terminal reaches only us."""
    return subprocess.Popen(  # noqa: S603  our own programs, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environment,
        cwd="/",
        user=None if account is None else account.uid,
        group=None if account is None else account.gid,
        extra_groups=None if account is None else (),
        pass_fds=inherited,
        start_new_session=True,
    )
