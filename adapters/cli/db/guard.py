"""`nonsuch db guard`: whether SQL on standard input is one statement that only reads.

Needs no server; with `--database` it asks one what the names in the SQL mean there.
"""

from __future__ import annotations

import asyncio
import json as encoding
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final

from cyclopts import Parameter
from rich.console import Console

from ....kernel.sql_catalog import NOTHING, Own
from ....kernel.sql_facts import SqlFacts
from ....kernel.sql_text import MAX_BYTES
from ...edge.sql_guard import Guard, Judged
from ...edge.sql_guard import guard as guard_of
from ..options import AsJson
from ..render import FINDINGS, FINE, Lines, Refused, Result

_READS: Final = "of the app, and known to only read: `public.price_with_tax`"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Listed:
    """What an app lists: where its names are looked for, and those that only read, with their schema."""

    path: Annotated[
        tuple[str, ...],
        Parameter(
            "--schema", negative="", help="where names without a schema are looked for, after pg_catalog"
        ),
    ] = NOTHING.path
    functions: Annotated[tuple[str, ...], Parameter("--function", negative="", help=_READS)] = ()
    operators: Annotated[tuple[str, ...], Parameter("--operator", negative="", help=_READS)] = ()
    types: Annotated[tuple[str, ...], Parameter("--type", negative="", help=_READS)] = ()
    relations: Annotated[
        tuple[str, ...],
        Parameter("--relation", negative="", help="view or foreign table that may be read: `public.totals`"),
    ] = ()

    def own(self) -> Own:
        """Return it as the guard takes it."""
        named = (frozenset(each) for each in (self.functions, self.operators, self.types, self.relations))
        return Own(self.path, *named)


LISTED: Final = Listed()


@dataclass(frozen=True, slots=True)
class _Row:
    ident: Any
    judged: Judged


def guard(
    *,
    jsonl: Annotated[bool, Parameter(negative="", help='read lines `{"id": ..., "sql": ...}`')] = False,
    listed: Listed = LISTED,
    database: Annotated[
        str | None, Parameter(help="address of a database, whose functions and views are looked at too")
    ] = None,
    json: AsJson = False,
) -> Result:
    """Say whether SQL on standard input is one statement that only reads; exit with 1 if one is not."""
    del json
    asked = guard_of(listed.own())
    given = _lines() if jsonl else iter([(None, text_of_input())])
    if database is None:
        rows = [_Row(ident, asked.judge(sql)) for ident, sql in given]
    else:
        rows = _by_database(database, asked, given)

    def show(console: Console) -> None:
        for row in rows:
            console.print(_told(row), soft_wrap=True)

    refused = any(not row.judged.verdict.allow for row in rows)
    return Result(Lines([_document(row) for row in rows]), show, FINDINGS if refused else FINE)


def text_of_input() -> str:
    """Return what the guard needs of standard input: one byte more than it takes is enough to be refused."""
    return sys.stdin.buffer.read(MAX_BYTES + 1).decode(errors="surrogateescape")


def _by_database(address: str, asked: Guard, given: Iterator[tuple[Any, Any]]) -> list[_Row]:
    """Judge with what a database says of the names. Raises: Refused."""
    from ...edge.extras import ExtraMissing
    from ...edge.postgres.readonly_judge import judged_by
    from ...edge.postgres.refused import DatabaseRefused

    rows = list(given)
    try:
        told = asyncio.run(judged_by(address, asked, [sql for _, sql in rows]))
    except (DatabaseRefused, ExtraMissing) as refusal:
        raise Refused(refusal.code, refusal.cause, refusal.fix) from None
    return [_Row(ident, each) for (ident, _), each in zip(rows, told, strict=True)]


def _lines() -> Iterator[tuple[Any, Any]]:
    for number, line in enumerate(sys.stdin.buffer, 1):
        if line.strip():
            yield _read(line, number)


def _read(line: bytes, number: int) -> tuple[Any, Any]:
    try:
        held = encoding.loads(line)
        return held.get("id"), held["sql"]
    except (ValueError, AttributeError, KeyError, RecursionError):
        raise Refused("X_CLI_USAGE", f'line {number} is no `{{"id": ..., "sql": ...}}`') from None


def _told(row: _Row) -> str:
    head, verdict = "" if row.ident is None else f"{row.ident}: ", row.judged.verdict
    if verdict.allow:
        return f"{head}accept"
    return f"{head}refuse: {verdict.code}: {verdict.cause}: {verdict.fix}"


def _document(row: _Row) -> dict[str, Any]:
    verdict = row.judged.verdict
    place = verdict.place
    return {
        "id": row.ident,
        "verdict": "accept" if verdict.allow else "refuse",
        "code": verdict.code,
        "family": verdict.family,
        "cause": verdict.cause,
        "fix": verdict.fix,
        "position": None if place is None else {"line": place.line, "column": place.column},
        "policies": list(verdict.policies),
        "facts": _facts(row.judged.facts),
    }


def _facts(facts: SqlFacts) -> dict[str, list[str]]:
    return {
        "kinds": list(facts.kinds),
        "families": sorted(facts.families),
        "relations": sorted(facts.relation_names),
        "columns": sorted(facts.columns),
        "functions": sorted(facts.functions),
        "attributes": sorted({name for each in facts.attributes for name in each.names}),
        "operators": sorted({name for each in facts.operators for name in each.names}),
        "types": sorted({name for each in facts.types for name in each.names}),
        "schemas": sorted(facts.schemas),
        "explain": list(facts.explain),
        "settings": list(facts.settings),
    }
