"""`nonsuch db grant-readonly`: make the role that queries run as, or print what makes it."""

from __future__ import annotations

from typing import Annotated, Any, Final

from cyclopts import Parameter
from rich.console import Console

from ...edge.postgres.readonly_grant import Granted, Step, Wish, grant_readonly, statements
from ...edge.postgres.readonly_role import ROLE
from ...edge.postgres.refused import unreachable
from ..options import AsJson
from ..render import FINDINGS, FINE, Lines, Result
from .branch_where import WHERE, Where

CODE: Final = "X_DB_GRANT_REFUSED"


def grant(
    *,
    role: Annotated[str, Parameter(help="name of the role")] = ROLE,
    schema: Annotated[tuple[str, ...], Parameter(negative="", help="schema whose tables it reads")] = (
        "public",
    ),
    to: Annotated[tuple[str, ...], Parameter(negative="", help="login that may take it on")] = (),
    login: Annotated[
        bool, Parameter(negative="", help="make it a login of its own, which is stronger")
    ] = False,
    revoke_execute: Annotated[
        bool, Parameter(negative="", help="take harmful functions from everybody: for branch databases")
    ] = False,
    keep: Annotated[tuple[str, ...], Parameter(negative="", help="role that keeps these functions")] = (),
    print_: Annotated[bool, Parameter("--print", negative="", help="print the statements, run none")] = False,
    where: Where = WHERE,
    json: AsJson = False,
) -> Result:
    """Make the role that `db.query` runs as; it reads the tables of some schemas, present and future."""
    del json
    wish = Wish(role, schema, to, login, revoke_execute, keep)
    with where.address() as address:
        return _printed(address, wish) if print_ else _granted(address, wish)


def _granted(address: str, wish: Wish) -> Result:
    import psycopg

    try:
        with psycopg.connect(address, autocommit=True) as connection:
            found = grant_readonly(connection, wish)
    except psycopg.Error as error:
        raise unreachable(error) from None

    def show(console: Console) -> None:
        for line in _told(found, wish.role):
            console.print(line, soft_wrap=True)

    document = {
        "role": wish.role,
        "whole": found.whole,
        "besides": found.besides,
        "steps": [_document(each) for each in found.steps],
    }
    return Result(document, show, FINE if found.whole else FINDINGS)


def _printed(address: str, wish: Wish) -> Result:
    import psycopg

    try:
        with psycopg.connect(address, autocommit=True) as connection:
            found = statements(connection, wish)
    except psycopg.Error as error:
        raise unreachable(error) from None

    def show(console: Console) -> None:
        for each in found:
            console.print(f"{each};", soft_wrap=True)

    return Result(Lines([{"statement": each} for each in found]), show)


def _told(found: Granted, role: str) -> list[str]:
    refused = [each for each in found.steps if each.refused is not None]
    lines = [f"{CODE}: the server refuses `{each.statement}`: {each.refused}" for each in refused]
    if refused:
        lines.append("fix: run these statements as a role that may, then this command again")
    if found.besides is not None:
        lines.append(f"`{role}` {found.besides}: queries will not report its layer")
    done = len(found.steps) - len(refused)
    return [*lines, f"`{role}`: {done} of {len(found.steps)} statements done"]


def _document(step: Step) -> dict[str, Any]:
    return {"statement": step.statement, "refused": step.refused}
