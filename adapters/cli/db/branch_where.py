"""Which database the commands about branches mean, and what `[tool.nonsuch.db]` says of its files."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn, cast
from urllib.parse import quote, urlencode

from cyclopts import Parameter

from ...edge.embedded import ServerFailed, embedded_postgres
from ...edge.extras import ExtraMissing, require
from ...edge.postgres.refused import DatabaseRefused
from ...edge.postgres.sql_file import FileFailed
from ..render import Refused

USAGE: Final = "X_CLI_USAGE"
_SECRETS: Final = ("password", "sslpassword")
_FILE: Final = "pyproject.toml"

Database = Annotated[
    str | None,
    Parameter("--database", help="address of the database; with `--data` its name. Otherwise DATABASE_URL"),
]
Data = Annotated[Path | None, Parameter("--data", help="directory of an embedded server, started if need be")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Where:
    """A server of somebody's, or the embedded one on a directory."""

    database: Database = None
    data: Data = None

    @contextmanager
    def address(self) -> Generator[str]:
        """Yield the address. What cannot be done to the database leaves the block as ``Refused``."""
        try:
            require("psycopg", "nonsuch[postgres]")
            if self.data is None:
                yield self._given()
                return
            with embedded_postgres(self.data) as dsn:
                yield dsn if self.database is None else placed(dsn, self.database)
        except (DatabaseRefused, ServerFailed, ExtraMissing) as refusal:
            raise Refused(refusal.code, refusal.cause, refusal.fix) from None
        except FileFailed as failure:  # of a seed: a migration that fails is an answer
            raise Refused("X_DB_SEED_FAILED", failure.cause, failure.fix) from None

    def _given(self) -> str:
        address = self.database or os.environ.get("DATABASE_URL")
        if not address:
            fix = "name it: `--database postgresql://...`, `--data directory` or DATABASE_URL"
            raise Refused(USAGE, "no database is named", fix)
        return address


WHERE: Final = Where()


def placed(dsn: str, database: str) -> str:
    """Return the address of another database of a server."""
    from psycopg.conninfo import make_conninfo

    return make_conninfo(dsn, dbname=database)


def shown(dsn: str, database: str) -> str:
    """Return the address of a database as it may be printed: without a password."""
    from psycopg.conninfo import conninfo_to_dict

    held = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    more = urlencode({name: held[name] for name in sorted(held) if name not in (*_SECRETS, "user", "dbname")})
    user = f"{quote(held['user'], safe='')}@" if "user" in held else ""
    return f"postgresql://{user}/{quote(database, safe='')}{f'?{more}' if more else ''}"


@dataclass(frozen=True, slots=True)
class Files:
    """Where an app keeps its migrations and its seed files."""

    migrations: Path = Path("migrations")
    seeds: tuple[Path, ...] = ()


def files() -> Files:
    """Return what `[tool.nonsuch.db]` of the working directory says. Raises: Refused."""
    try:
        document: Any = tomllib.loads(Path(_FILE).read_text("utf-8"))
    except FileNotFoundError:
        return Files()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as refusal:
        raise Refused(USAGE, f"`{_FILE}` cannot be read: {refusal}", "correct the file") from None
    held = document
    for name in ("tool", "nonsuch", "db"):
        held = cast("dict[str, Any]", held).get(name, {})
        if not isinstance(held, dict):
            _misread(name)
    section = cast("dict[str, Any]", held)
    migrations, seeds = section.get("migrations", "migrations"), section.get("seeds", [])
    if not isinstance(migrations, str):
        _misread("migrations")
    if not isinstance(seeds, list) or not all(isinstance(each, str) for each in cast("list[object]", seeds)):
        _misread("seeds")
    return Files(Path(migrations), tuple(Path(each) for each in cast("list[str]", seeds)))


def _misread(name: str) -> NoReturn:
    fix = 'write `migrations = "directory"` and `seeds = ["file.sql"]` under `[tool.nonsuch.db]`'
    raise Refused(USAGE, f"`{name}` in `{_FILE}` is not what it should be", fix)
