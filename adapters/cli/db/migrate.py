"""`nonsuch db migrate`: applies an app's pending SQL files to a branch database, and to no other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.types import PositiveInt
from rich.console import Console

from ...edge.postgres.branch_key import branch_key
from ...edge.postgres.branches import chosen, ls
from ...edge.postgres.migrate import DEFAULT_SECONDS, Migrated
from ...edge.postgres.migrate import migrate as apply_to
from ...edge.postgres.migration_files import read_migrations
from ...edge.postgres.refused import one_line
from ..options import AsJson
from ..render import FINDINGS, FINE, Result
from .branch_where import WHERE, Where, files

Directory = Annotated[
    Path | None,
    Parameter("--migrations", help="directory of the numbered SQL files. Otherwise that of the project"),
]
Named = Annotated[
    str | None, Parameter("--branch", help="branch of the named database; it may be one itself instead")
]
DryRun = Annotated[
    bool, Parameter("--dry-run", negative="", help="run them in one transaction and take it back")
]
Seconds = Annotated[PositiveInt, Parameter("--timeout", help="seconds that a statement may take")]


def migrate(
    *,
    branch: Named = None,
    migrations: Directory = None,
    dry_run: DryRun = False,
    timeout: Seconds = DEFAULT_SECONDS,
    where: Where = WHERE,
    json: AsJson = False,
) -> Result:
    """Apply the pending SQL files, in the order of their numbers, each in a transaction of its own.

    Refuses every database that is not a branch. Exits with 1 when a file fails: of that one nothing stays,
    and those before it do.
    """
    del json
    with where.address() as dsn:
        key = branch_key(make=True)
        found = read_migrations(migrations or files().migrations)
        database = None if branch is None else chosen(ls(dsn, key), branch).database
        done = apply_to(dsn, key, found, database=database, dry_run=dry_run, seconds=timeout)
    status = FINE if done.failed is None else FINDINGS
    return Result(_document(done), lambda console: _tell(console, done), status)


def _document(done: Migrated) -> dict[str, Any]:
    failed = done.failed
    return {
        "database": done.database,
        "branch": done.branch,
        "dryRun": done.dry_run,
        "applied": list(done.applied),
        "pending": list(done.pending),
        "superuser": done.superuser,
        "failed": None
        if failed is None
        else {
            "code": "X_DB_MIGRATION_FAILED",
            "file": failed.file,
            "position": failed.where,
            "state": failed.state or None,
            "cause": failed.cause,
            "fix": failed.fix,
        },
    }


def _tell(console: Console, done: Migrated) -> None:
    about = f"{one_line(done.branch)} ({one_line(done.database)})"
    for name in done.applied:
        console.print(f"{'would apply' if done.dry_run else 'applied'} {name}", soft_wrap=True)
    if done.failed is not None:
        console.print(f"failed {done.failed.cause}\nfix: {done.failed.fix}", soft_wrap=True)
    if done.superuser and done.applied:
        console.print("they ran as a superuser, whom no database confines: prefer its owner", soft_wrap=True)
    left = len(done.pending)
    if done.dry_run:
        console.print(f"{about}: nothing was changed", soft_wrap=True)
    else:
        console.print(f"{about}: {'up to date' if not left else f'{left} pending'}", soft_wrap=True)
