"""Applies migrations to a branch database and to no other: one transaction and one lock for each file.

In that transaction, on that connection, the server itself says which database it is; then the file runs, is
looked over for changes beyond its database, and is recorded. So a run that is killed leaves whole files, and
two runs apply each file once.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .migration_files import Migration, pending
from .refused import DatabaseRefused, by_server, one_line
from .sql_file import FileFailed, run_file
from .standing import branch_or_refuse, opened, standing

if TYPE_CHECKING:
    from psycopg import Connection

    Session = Connection[tuple[Any, ...]]

NAME: Final = "nonsuch db.migrate"
SQL_MIGRATIONS_TABLE: Final = """
create table if not exists public.nonsuch_migrations (
  name text primary key,
  digest text not null,
  applied_at timestamptz not null default now()
)
"""
_READ: Final = "select name, digest from public.nonsuch_migrations order by name"
_RECORD: Final = "insert into public.nonsuch_migrations (name, digest) values (%s, %s)"
DEFAULT_SECONDS: Final = 300
_LOCK: Final = (0x6E6F6E73, 0x6D696772)
# What the databases of a server share. A change there would reach beyond the branch.
_SHARED: Final = """
select case when current_setting('track_counts') = 'on' then
  (select sum(pg_stat_get_xact_tuples_inserted(oid) + pg_stat_get_xact_tuples_updated(oid)
    + pg_stat_get_xact_tuples_deleted(oid))
   from pg_class where relisshared and relkind = 'r' and relname <> 'pg_shdepend') end
"""


@dataclass(frozen=True, slots=True)
class Migrated:
    """What came of a run: the files it applied, those that are left, and the one that failed.

    Of a failed file nothing stays. After a dry run nothing stays at all. With ``superuser`` the files ran as
    one: they may have reached beyond their database, by a link to another or by a program of the server's.
    """

    database: str
    branch: str
    dry_run: bool
    applied: tuple[str, ...]
    pending: tuple[str, ...]
    failed: FileFailed | None = None
    superuser: bool = False


@dataclass(slots=True)
class _Run:
    """What is known while a run goes on."""

    key: bytes
    files: Sequence[Migration]
    seconds: int
    database: str = ""
    branch: str = ""
    superuser: bool = False
    path: str = ""
    at: str = ""


def migrate(
    dsn: str,
    key: bytes,
    files: Sequence[Migration],
    *,
    database: str | None = None,
    dry_run: bool = False,
    seconds: int = DEFAULT_SECONDS,
) -> Migrated:
    """Apply what has not run yet to the database that ``dsn`` leads to, if that is a branch.

    ``database`` takes the place of the one that ``dsn`` names. Raises: DatabaseRefused.
    """
    import psycopg

    run, applied = _Run(key, files, seconds), list[str]()
    session = opened(dsn, database, name=NAME)
    session.prepare_threshold = None  # what a file may discard is not counted on
    failed: FileFailed | None = None
    left: tuple[Migration, ...] = ()
    try:
        left = _tried(session, run, applied) if dry_run else _applied(session, run, applied)
    except FileFailed as failure:
        failed = failure
        left = tuple(each for each in files if each.number >= _number(files, failure.file))
    except psycopg.Error as error:
        raise by_server(error, "the migrations cannot be looked at") from None
    finally:
        session.close()
    names = tuple(each.name for each in left)
    return Migrated(run.database, run.branch, dry_run, tuple(applied), names, failed, run.superuser)


def _number(files: Sequence[Migration], name: str) -> int:
    return next(each.number for each in files if each.name == name)


def _applied(session: Session, run: _Run, applied: list[str]) -> tuple[Migration, ...]:
    """Apply one file after the other, each time the first that has not run, whoever ran the others."""
    while True:
        with _under_way(run), session.transaction():
            left = _entered(session, run)
            if left:
                _perform(session, run, left[0])
                session.execute("set transaction read only")  # a trigger that was put off again runs now
        if not left:
            return ()
        applied.append(left[0].name)
        session.execute("discard all")  # no file leaves settings, roles or locks to the next one


def _tried(session: Session, run: _Run, applied: list[str]) -> tuple[Migration, ...]:
    """Run all of them in one transaction, and take it back."""
    with _under_way(run), session.transaction(force_rollback=True):
        left = _entered(session, run)
        for each in left:
            _perform(session, run, each)
            applied.append(each.name)
    return left


@contextmanager
def _under_way(run: _Run) -> Generator[None]:
    """Say of which file an error is that comes with the end of its transaction."""
    import psycopg

    run.at = ""
    try:
        yield
    except psycopg.Error as error:
        if not run.at:
            raise
        raise _failure(run.at, error) from None


def _entered(session: Session, run: _Run) -> tuple[Migration, ...]:
    """Begin: see that this is a branch, be alone in it, and return what has not run."""
    (run.path,) = session.execute("select pg_catalog.current_setting('search_path')").fetchone() or ("",)
    _plain(session)
    stands = standing(session)
    marker = branch_or_refuse(stands, run.key)
    run.database, run.branch, run.superuser = stands.place.database, marker.name, stands.superuser
    (alone,) = session.execute("select pg_try_advisory_xact_lock(%s, %s)", _LOCK).fetchone() or (False,)
    if not alone:
        cause = f"migrations run in `{one_line(run.database)}` already"
        raise DatabaseRefused("X_DB_BRANCH_BUSY", cause)
    session.execute(SQL_MIGRATIONS_TABLE)
    rows = session.execute(_READ).fetchall()
    return pending(run.files, dict(rows))


def _perform(session: Session, run: _Run, each: Migration) -> None:
    """Run a file and record it, as whom and where the connection was before the file."""
    run.at = each.name
    before = _shared(session)
    limits = "select set_config('statement_timeout', %s, true), set_config('search_path', %s, true)"
    session.execute(limits, (f"{run.seconds}s", run.path))
    run_file(session, each.file)
    session.execute("set constraints all immediate")
    session.execute("reset session authorization")
    session.execute("reset role")
    _plain(session)
    session.execute(_RECORD, (each.name, each.digest))
    after = _shared(session)  # behind the record, whose table a file may have given triggers
    if before is None or after != before:
        raise _beyond(each.name, counted=before is not None and after is not None)


def _plain(session: Session) -> None:
    session.execute("select pg_catalog.set_config('search_path', 'pg_catalog', true)")


def _shared(session: Session) -> int | None:
    row = session.execute(_SHARED).fetchone()
    return None if row is None else row[0]


def _beyond(name: str, *, counted: bool) -> FileFailed:
    if not counted:
        said = "the server does not count changes, so none beyond this database would be seen"
        return FileFailed(name, "", said, None, "set `track_counts` to on")
    said = "it changes what all databases of the server share: roles, databases, their settings or comments"
    return FileFailed(
        name, "", said, None, "do that outside of migrations, where you know which databases it reaches"
    )


def _failure(name: str, error: Any) -> FileFailed:
    said = one_line(error.diag.message_primary or str(error) or type(error).__name__)
    return FileFailed(name, error.sqlstate or "", said, None, "correct the file, then run it again")
