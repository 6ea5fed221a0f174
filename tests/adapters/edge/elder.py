"""A PostgreSQL 15 with libxml beside the one that ships: from a registry package, for tests alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from nonsuch.adapters.edge.unprivileged import Account, account_for

from ...conformance.environment import npm_modules

_PACKAGE: Final = Path("@embedded-postgres", "linux-x64")


@contextmanager
def postgres_15() -> Generator[str]:
    """A server of its own; its address as superuser. Skips where the package is for another machine."""
    package = npm_modules() / _PACKAGE
    if not package.exists():
        pytest.skip("the package of PostgreSQL 15 is for Linux on x86-64")
    with tempfile.TemporaryDirectory(prefix="nonsuch-15-") as held:
        home = Path(held)
        data = home / "data"
        account = account_for(data)
        _unpacked(package, home)
        data.mkdir()
        for each in (home, data):
            each.chmod(0o755)
            if account is not None:
                account.give(each)
        made = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
        _run(home, account, "initdb", f"--pgdata={data}", *made)
        options = f"-k {home} -c listen_addresses='' -c fsync=off"
        control = ("pg_ctl", f"--pgdata={data}", "--wait")
        _run(home, account, *control, f"--log={data / 'log'}", f"--options={options}", "start")
        try:
            yield f"host={home} user=postgres dbname=postgres"
        finally:
            _run(home, account, *control, "--mode=immediate", "stop")


def _unpacked(package: Path, home: Path) -> None:
    """Copy the programs where another account reaches them, with the links that a package cannot hold."""
    shutil.copytree(package / "native", home / "native")
    for each in json.loads((package / "native" / "pg-symlinks.json").read_text("utf-8")):
        link, target = home / each["target"], home / each["source"]
        if not link.exists():
            link.symlink_to(target)
    for each in (home / "native" / "bin").iterdir():
        each.chmod(0o755)


def _run(home: Path, account: Account | None, program: str, *options: str) -> None:
    libraries: Mapping[str, str] = {"LD_LIBRARY_PATH": str(home / "native" / "lib"), "LC_ALL": "C.UTF-8"}
    who: dict[str, Any] = {}
    if account is not None:
        who = {"user": account.uid, "group": account.gid, "extra_groups": []}
    command = [str(home / "native" / "bin" / program), *options]
    done = subprocess.run(
        command,
        cwd=home,
        env={**os.environ, **libraries},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **who,
    )
    assert done.returncode == 0, done.stderr
