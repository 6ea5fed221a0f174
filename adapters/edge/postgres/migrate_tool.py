"""The tool ``db.migrate``: declared by an app, judged by the kernel as every tool, carried out on a branch.

The policy judges what the database says of itself; the run sees that again, on its own connection.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel

from ....kernel.codes import CODES
from ....kernel.declare import Action, VisibleTo, can, tool
from ....kernel.errors import ActionError
from ..extras import require
from .branch_key import branch_key
from .migrate import DEFAULT_SECONDS, NAME, Migrated, migrate
from .migration_files import read_migrations
from .refused import DatabaseRefused
from .standing import Standing, connected, standing

_T = TypeVar("_T")
log: Final = logging.getLogger("nonsuch.migrate")
PERMISSION: Final = "db:migrate"
_TOLD: Final = (
    "Apply the app's pending migrations to its database. Works in a branch database only, and refuses every "
    "other one. With `dryRun` the migrations run and are taken back"
)
# What these say names addresses, roles and files of the operator's.
_OPERATORS: Final = frozenset({"X_DB_UNREACHABLE", "X_DB_REFUSED", "X_DB_BRANCH_KEY"})


class Migrate(BaseModel):
    """What the tool takes."""

    dryRun: bool = False


class MigrateResult(BaseModel):
    """What it answers: the files that it applied, or with ``dryRun`` ran and took back.

    As a ``superuser`` they were confined to the branch by nothing but what they are.
    """

    database: str
    branch: str
    dryRun: bool
    applied: list[str]
    superuser: bool


class Database(BaseModel):
    """What a policy can read of the database: what its server says, never what an address says."""

    id: str
    branch: bool
    name: str
    source: str
    superuser: bool


def db_migrate(
    dsn: str,
    migrations: Path | str,
    *,
    visible_to: VisibleTo = None,
    key: bytes | None = None,
    timeout_seconds: int = DEFAULT_SECONDS,
) -> Action:
    """Return the tool, for ``define_app_mcp(tools={"db.migrate": db_migrate(dsn, "migrations")})``.

    ``migrations`` is a directory of numbered SQL files. The permission is ``db:migrate``. ``key`` is the key
    that branches are made with; without one it is looked for where `nonsuch db branch create` finds it.
    Raises: ExtraMissing, when psycopg is not installed.
    """
    require("psycopg", "nonsuch[postgres]")
    directory = Path(migrations)

    def database() -> Database:
        return _answered(lambda: described(dsn, _key(key)))

    def run(input: Migrate) -> MigrateResult:
        files = _answered(lambda: read_migrations(directory))
        seconds, dry = timeout_seconds, input.dryRun
        return _result(_answered(lambda: migrate(dsn, _key(key), files, dry_run=dry, seconds=seconds)))

    return tool(_TOLD, run, policy=can(PERMISSION, resource=database), visible_to=visible_to)


def _key(given: bytes | None) -> bytes:
    """Return the key; where none is kept no database is a branch, and a fresh one says so."""
    if given is not None:
        return given
    try:
        return branch_key()
    except DatabaseRefused as refusal:
        log.warning("no database is a branch here: %s", refusal.cause)
        return secrets.token_bytes(32)


def described(dsn: str, key: bytes) -> Database:
    """Return the database of an app as its server describes it. Raises: DatabaseRefused."""
    with connected(dsn, name=NAME) as session:
        here: Standing = standing(session)
    marker = here.branch(key)
    return Database(
        id=here.place.database,
        branch=marker is not None,
        name="" if marker is None else marker.name,
        source="" if marker is None else marker.source,
        superuser=here.superuser,
    )


def _result(done: Migrated) -> MigrateResult:
    if done.failed is not None:
        before = f"; applied before it: {', '.join(done.applied)}" if done.applied else ""
        cause = f"{done.failed.cause}{before}"
        raise ActionError("X_DB_MIGRATION_FAILED", cause, done.failed.fix)
    return MigrateResult(
        database=done.database,
        branch=done.branch,
        dryRun=done.dry_run,
        applied=list(done.applied),
        superuser=done.superuser,
    )


def _answered(work: Callable[[], _T]) -> _T:
    """Tell a refusal as the caller may hear it."""
    try:
        return work()
    except DatabaseRefused as refusal:
        code = CODES[refusal.code]
        if refusal.code in _OPERATORS:
            log.warning("%s: %s", refusal.code, refusal.cause)
            raise ActionError(code.code, code.cause, code.fix, code.caller_fix) from None
        raise ActionError(code.code, refusal.cause, refusal.fix, code.caller_fix or refusal.fix) from None
