"""`nonsuch db branch create|ls|drop`: databases that an agent may change, made of one that it may not."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter
from cyclopts.types import Port
from rich.console import Console

from ...edge.postgres.branch_key import branch_key
from ...edge.postgres.branch_load import Contents
from ...edge.postgres.branch_names import preview_of
from ...edge.postgres.branch_source import Branch
from ...edge.postgres.branches import create as create_branch
from ...edge.postgres.branches import drop as drop_branch
from ...edge.postgres.branches import ls as list_branches
from ...edge.postgres.refused import one_line
from ...edge.postgres.sql_file import read_file
from ..options import AsJson
from ..render import Result, table
from .branch_where import WHERE, Where, files, shown

_PORT: Final = 8000  # that of `nonsuch serve`

PreviewPort = Annotated[
    Port | None, Parameter("--port", help="of the preview address. Otherwise PORT, or 8000")
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Filled:
    """What the branch holds when it is made."""

    full: Annotated[
        bool,
        Parameter("--full", negative="--schema-only", help="copy all rows too, of a source in no use"),
    ] = False
    rows: Annotated[
        tuple[str, ...], Parameter("--rows", negative="", help="a table whose rows are copied as well")
    ] = ()
    seed: Annotated[
        tuple[Path, ...],
        Parameter("--seed", negative="", help="a SQL file to run in it. Otherwise `seeds` of the project"),
    ] = ()

    def contents(self) -> Contents:
        """Return it as it is carried out: a full copy has rows, and runs only seeds that are named."""
        seeds = self.seed or (() if self.full else files().seeds)
        return Contents(self.full, self.rows, tuple(read_file(each) for each in seeds))


FILLED: Final = Filled()


def create(
    name: str,
    /,
    *,
    filled: Filled = FILLED,
    where: Where = WHERE,
    port: PreviewPort = None,
    json: AsJson = False,
) -> Result:
    """Make a branch of the database that is named: its schema with seed data, or with `--full` everything.

    Parameters
    ----------
    name
        What to call it, such as `feat-new-billing`.
    """
    del json
    with where.address() as dsn:
        made = create_branch(dsn, branch_key(make=True), name, filled.contents())
        document = _document(made, dsn, _of_preview(port))
        document |= {"without": list(made.without)} if made.without else {}
    return Result({"data": document}, lambda console: _tell(console, document))


def ls(*, where: Where = WHERE, port: PreviewPort = None, json: AsJson = False) -> Result:
    """List the branches of the database that is named, which are those that `drop` may drop."""
    del json
    with where.address() as dsn:
        branches = list_branches(dsn, branch_key(make=True))
        documents = [_document(each, dsn, _of_preview(port)) for each in branches]

    def show(console: Console) -> None:
        if not documents:
            console.print("no branches: make one with `nonsuch db branch create <name>`")
            return
        heads = ("name", "database", "made", "MiB", "preview")
        console.print(table(heads, [_row(each) for each in documents]))

    return Result({"data": {"branches": documents}}, show)


def drop(name: str, /, *, where: Where = WHERE, json: AsJson = False) -> Result:
    """Drop a branch that `ls` shows.

    Parameters
    ----------
    name
        Its name, as `ls` shows it.
    """
    del json
    with where.address() as dsn:
        gone = drop_branch(dsn, branch_key(make=True), name)
    document = {"name": gone.name, "database": gone.database}
    told = f"dropped the branch {one_line(gone.name)} with its database {one_line(gone.database)}"
    return Result({"data": document}, lambda console: console.print(told, soft_wrap=True))


def _of_preview(given: int | None) -> int:
    said = os.environ.get("PORT", "")
    return given or (int(said) if said.isascii() and said.isdecimal() and 0 < int(said) < 65_536 else _PORT)


def _document(branch: Branch, dsn: str, port: int) -> dict[str, Any]:
    return {
        "name": branch.name,
        "database": branch.database,
        "source": branch.source,
        "created": branch.created,
        "bytes": branch.size,
        "url": shown(dsn, branch.database),
        "preview": preview_of(branch.name, port),
    }


def _tell(console: Console, document: dict[str, Any]) -> None:
    told = {
        "branch": document["name"],
        "database": document["database"],
        "made of": document["source"],
        "address": document["url"],
        "preview": document["preview"],
    }
    for name, value in told.items():
        console.print(f"{name:<9}{one_line(value)}", soft_wrap=True)
    for role in document.get("without", ()):
        console.print(
            f"without  what {one_line(role)} grants on objects it will make: only it can say that",
            soft_wrap=True,
        )


def _row(document: dict[str, Any]) -> tuple[str, ...]:
    size = document["bytes"]
    mib = "?" if size is None else f"{size / 1024 / 1024:.0f}"
    named = (one_line(document["name"]), one_line(document["database"]))
    return (*named, document["created"], mib, document["preview"])
