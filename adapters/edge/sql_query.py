"""``db.query`` as a tool of an app: reads the query for its policies, then asks the database for its rows.

Decides nothing: the policies of the app and the shipped ones (``policies/never.cedar``, ``sql.cedar``) judge
what was read, as for every tool.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from ...kernel.codes import CODES
from ...kernel.declare import Action, Context, VisibleTo, can, tool
from ...kernel.errors import ActionError
from ...kernel.sql_catalog import NOTHING, Own
from ...kernel.sql_verdict import QueryFacts
from .postgres.readonly import SECONDS, Asked, ReadOnly
from .postgres.readonly_caps import MAX_ROWS, ROWS
from .postgres.readonly_live import LiveCheck
from .postgres.readonly_role import ROLE
from .postgres.refused import DatabaseRefused
from .sql_guard import Guard, facts_of_async, guard

PERMISSION: Final = "db:read"
_TOLD: Final = (
    "Ask the database: one read-only SELECT, VALUES, TABLE, SHOW or EXPLAIN in PostgreSQL's SQL, at most"
    f" {MAX_ROWS} rows. `guards` says which layers kept it from doing more, `truncatedBy` what was left out"
)


class DbQuery(BaseModel):
    """A query: its SQL, how many rows at most, and whether its plan is asked for instead."""

    model_config = ConfigDict(extra="forbid")
    sql: str
    limit: Annotated[int, Field(ge=1, description=f"rows at most; never more than {MAX_ROWS}")] = ROWS
    explain: Annotated[bool, Field(description="return the plan instead; nothing is run")] = False


class DbColumn(BaseModel):
    """A column: its name, and the name of its type."""

    name: str
    type: str


class DbAnswer(BaseModel):
    """The rows of a query; ``truncatedBy`` names the limits that cut them, of rows, bytes and cells."""

    columns: list[DbColumn]
    rows: list[list[JsonValue]]
    guards: list[str]
    truncatedBy: list[str]
    bytes: int


class Queries:
    """A database that an app lets be asked by ``db.query``; ``close`` ends its connections."""

    def __init__(
        self,
        dsn: str,
        *,
        own: Own = NOTHING,
        role: str | None = ROLE,
        seconds: float = SECONDS,
        connections: int = 4,
        required: tuple[str, ...] = (),
    ) -> None:
        """``own`` lists what of the app's own only reads; ``required`` are guards without which nothing runs.

        Raises: ExtraMissing, without psycopg or pglast; ValueError, for a guard that there is not.
        """
        self.guard: Guard = guard(own)
        self.database = ReadOnly(
            dsn,
            role=role,
            path=own.path,
            seconds=seconds,
            connections=connections,
            required=required,
            check=LiveCheck(self.guard),
        )

    async def close(self) -> None:
        """Close the connections; a later query opens others."""
        await self.database.close()


def db_query(
    queries: Queries,
    *,
    permission: str = PERMISSION,
    description: str = _TOLD,
    visible_to: VisibleTo = None,
    title: str | None = "Query the database",
) -> Action:
    """Return the tool for ``define_app_mcp(tools={"db.query": db_query(...)})``; it has that name only.

    Policies about ``Action::"db.query"`` read the statement in ``context``: ``kinds``, ``relations``,
    ``columns``, ``functions``, ``schemas`` and ``families``. Name it in ``scopes`` under ``db:read``, and let
    the app's lifespan close ``queries``.
    """

    async def read(input: DbQuery) -> QueryFacts:
        return QueryFacts.of(input.sql, await facts_of_async(input.sql, queries.guard))

    async def handle(input: DbQuery, ctx: Context[Any]) -> DbAnswer:
        told: QueryFacts = ctx.resource
        try:
            asked = Asked(told.text, told.facts)
            found = await queries.database.query(asked, input.limit, explain=input.explain)
        except DatabaseRefused as refusal:
            raise ActionError(refusal.code, refusal.cause, refusal.fix, _for_callers(refusal)) from None
        return DbAnswer(
            columns=[DbColumn(name=name, type=kind) for name, kind in found.columns],
            rows=found.rows,
            guards=list(found.guards),
            truncatedBy=list(found.truncated_by),
            bytes=found.bytes,
        )

    return tool(
        description,
        handle,
        policy=can(permission, read),
        destructive=False,
        visible_to=visible_to,
        title=title,
        annotations={"readOnlyHint": True},
    )


def _for_callers(refusal: DatabaseRefused) -> str:
    """Return what a caller can do about it: where only an operator can, the code's own words say so."""
    known = CODES.get(refusal.code)
    return known.caller_fix if known is not None and known.culprit == "operator" else refusal.fix
