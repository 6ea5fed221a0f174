"""`nonsuch db query`: one query through every layer, its rows, and which layers stood for it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from ....kernel.policy_text import printable
from ....kernel.sql_verdict import CODE
from ...edge.sql_guard import guard as guard_of
from ..options import AsJson
from ..render import FINDINGS, Refused, Result, counted, table
from .branch_where import WHERE, Where
from .guard import LISTED, Listed, text_of_input


def query(
    sql: Annotated[str | None, Parameter(help="the query; otherwise standard input is read")] = None,
    /,
    *,
    limit: Annotated[int | None, Parameter(help="rows at most: 100, and never more than 1000")] = None,
    explain: Annotated[bool, Parameter(negative="", help="show the plan, run nothing")] = False,
    role: Annotated[str | None, Parameter(help="role to take on")] = None,
    require: Annotated[
        tuple[str, ...], Parameter(negative="", help="layer without which nothing is run: `role:login`")
    ] = (),
    listed: Listed = LISTED,
    where: Where = WHERE,
    json: AsJson = False,
) -> Result:
    """Run one query, and say which layers stood for it; exit with 1 if it is refused."""
    del json
    text = text_of_input() if sql is None else sql
    asked = guard_of(listed.own())
    judged = asked.judge(text)
    if not judged.verdict.allow:
        return _refused(judged.verdict.code or CODE, judged.verdict.cause or "", judged.verdict.fix or "")
    from ...edge.postgres.readonly import Answer, Asked, ReadOnly
    from ...edge.postgres.readonly_live import LiveCheck
    from ...edge.postgres.readonly_role import ROLE
    from ...edge.postgres.refused import DatabaseRefused

    async def run(address: str) -> Answer:
        database = ReadOnly(
            address, role=role or ROLE, path=asked.own.path, required=require, check=LiveCheck(asked)
        )
        try:
            return await database.query(Asked(text, judged.facts), limit, explain=explain)
        finally:
            await database.close()

    with where.address() as address:
        try:
            found = asyncio.run(run(address))
        except DatabaseRefused as refusal:
            return _refused(refusal.code, refusal.cause, refusal.fix)
        except ValueError as wrong:
            raise Refused("X_CLI_USAGE", str(wrong)) from None
    return _result(found)


def _result(found: Any) -> Result:
    def show(console: Console) -> None:
        cells = (["" if cell is None else printable(str(cell)) for cell in row] for row in found.rows)
        console.print(table([printable(name) for name, _ in found.columns], list(cells)))
        if found.truncated_by:
            console.print(f"not the whole answer: cut by the limit of {', '.join(found.truncated_by)}")
        size = f"{counted(len(found.rows), 'row')}, {counted(found.bytes, 'byte')}"
        console.print(f"{size}; stood: {', '.join(found.guards)}")

    document = {
        "columns": [{"name": name, "type": type_} for name, type_ in found.columns],
        "rows": found.rows,
        "guards": list(found.guards),
        "truncatedBy": list(found.truncated_by),
        "bytes": found.bytes,
    }
    return Result(document, show)


def _refused(code: str, cause: str, fix: str) -> Result:
    def show(console: Console) -> None:
        console.print(f"{code}: {cause}\nfix: {fix}", soft_wrap=True)

    return Result({"error": {"code": code, "cause": cause, "fix": fix}}, show, FINDINGS)
