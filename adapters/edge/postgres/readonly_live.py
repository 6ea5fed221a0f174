"""The live catalogue: answers what a statement's names mean in one database, for ``kernel/sql_weigh.py``.

Decides nothing. It asks in the transaction of the query, as the query's role, and runs no function of the
database's own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, LiteralString

from ....kernel import sql_verdict
from ....kernel.sql_facts import SqlFacts
from ....kernel.sql_live import Behind, Kind, Live, Look, Read, Step, Stored, Weighed, lifted
from ....kernel.sql_verdict import CODE, Verdict
from ....kernel.sql_weigh import weighed
from ..sql_guard import Guard, Judged
from ..sql_parse import facts_of_async
from .readonly_session import Session
from .readonly_settings import listed
from .readonly_wire import Statement
from .refused import DatabaseRefused

_MOST: Final = 256
BEHIND, STORED = "nonsuch_behind", "nonsuch_stored"  # what a session prepares, for planning takes the longest
FRESH_SECONDS: Final = 5.0
Row = tuple[str | None, ...]
Looks = Callable[..., Awaitable[list[list[Row]]]]  # of statements

# What is behind names: functions by that name, an operator's function, those of a type and of its casts. A
# range, an array or a domain stands for what it is made of, so that is asked for as a text: the checks and
# the types of it.
_BEHIND: Final[LiteralString] = r"""
WITH behind(kind, space, name, f, more) AS (
  SELECT 'functions', p.pronamespace, p.proname, p.oid, '{}'::text[]
  FROM pg_catalog.pg_proc p WHERE p.proname = ANY ($1::text[])
  UNION ALL SELECT 'operators', o.oprnamespace, o.oprname, o.oprcode::oid, '{}'
  FROM pg_catalog.pg_operator o WHERE o.oprname = ANY ($2::text[])
  UNION ALL SELECT 'types', t.typnamespace, t.typname, f, ARRAY(
      SELECT 'SELECT NULL::' || pg_catalog.format_type(h, NULL) FROM (
        SELECT a.atttypid FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = t.typrelid AND t.typrelid <> 0 AND a.attnum > 0 AND NOT a.attisdropped
        UNION SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE r.rngtypid = t.oid
        UNION SELECT t.typbasetype WHERE t.typbasetype <> 0
        UNION SELECT t.typelem WHERE t.typelem <> 0) s(h)
      UNION ALL SELECT 'SELECT ' || pg_catalog.pg_get_expr(c.conbin, 0)
      FROM pg_catalog.pg_constraint c WHERE c.contypid = t.oid AND c.conbin IS NOT NULL)
  FROM pg_catalog.pg_type t, LATERAL (
    SELECT unnest(ARRAY[t.typinput, t.typoutput, t.typmodin, t.typmodout]::oid[])
    UNION SELECT c.castfunc FROM pg_catalog.pg_cast c WHERE t.oid IN (c.castsource, c.casttarget)) s(f)
  WHERE t.typname = ANY ($3::text[]) AND f <> 0
    AND t.typnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
  UNION ALL SELECT 'types', t.typnamespace, t.typname, c.castfunc, '{}'
  FROM pg_catalog.pg_cast c JOIN pg_catalog.pg_proc p ON p.oid = c.castfunc
  JOIN pg_catalog.pg_type s ON s.oid = c.castsource JOIN pg_catalog.pg_type t ON t.oid = c.casttarget
  WHERE s.typnamespace = 'pg_catalog'::regnamespace AND t.typnamespace = 'pg_catalog'::regnamespace
    AND p.pronamespace <> 'pg_catalog'::regnamespace
    AND (c.castcontext = 'i' OR t.typname = ANY ($3::text[])))
SELECT b.kind, n.nspname, b.name, m.nspname, p.proname,
  p.pronargs - p.pronargdefaults, CASE WHEN p.provariadic = 0 THEN p.pronargs END,
  p.provolatile = 'v' OR p.prosecdef OR EXISTS (
    SELECT FROM pg_catalog.pg_aggregate a JOIN pg_catalog.pg_proc q ON q.oid IN (a.aggtransfn, a.aggfinalfn,
      a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn)
    JOIN pg_catalog.pg_language k ON k.oid = q.prolang
    WHERE a.aggfnoid = p.oid AND (q.provolatile = 'v' OR q.prosecdef OR k.lanname NOT IN ('internal', 'c'))),
  CASE WHEN p.prokind = 'a' THEN 'sql' ELSE l.lanname END, e.extname,
  array_to_json(b.more || ARRAY(
    SELECT 'SELECT NULL::' || pg_catalog.format_type(h, NULL)
    FROM unnest(p.proargtypes::oid[] || p.prorettype) h JOIN pg_catalog.pg_type t ON t.oid = h
    WHERE m.nspname <> 'pg_catalog' AND t.typtype <> 'p' AND t.typnamespace <> 'pg_catalog'::regnamespace)
  || CASE WHEN m.nspname <> 'pg_catalog' AND e.extname IS NULL AND p.prokind <> 'a' AND l.lanname = 'sql'
     THEN ARRAY[coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc)] ELSE '{}' END
  || CASE WHEN m.nspname <> 'pg_catalog' AND p.proargdefaults IS NOT NULL
     THEN ARRAY['SELECT ' || pg_catalog.pg_get_expr(p.proargdefaults, 0)] ELSE '{}' END),
  t.typtype IN ('p', 'c', 'd')
FROM behind b JOIN pg_catalog.pg_namespace n ON n.oid = b.space
JOIN pg_catalog.pg_proc p ON p.oid = b.f JOIN pg_catalog.pg_namespace m ON m.oid = p.pronamespace
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
LEFT JOIN pg_catalog.pg_type t ON t.oid = p.proargtypes[0]
LEFT JOIN pg_catalog.pg_depend d
  ON d.objid = p.oid AND d.classid = 'pg_catalog.pg_proc'::regclass AND d.deptype = 'e'
LEFT JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
WHERE b.kind = 'types' OR n.nspname NOT IN ('pg_catalog', 'information_schema')
"""
# Behind a relation: what a view selects, the policies of a table, types of columns that are the database's
# own (those of an extension are used by the extension's functions), the row itself where a cast takes it.
_STORED: Final[LiteralString] = """
WITH RECURSIVE asked AS (
  SELECT c.oid, n.nspname, c.relname, c.relkind, c.oid AS below
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN unnest($1::text[], $2::text[]) a(space, name) ON a.space = n.nspname AND a.name = c.relname
  UNION SELECT q.oid, q.nspname, q.relname, q.relkind, i.inhrelid
  FROM asked q JOIN pg_catalog.pg_inherits i ON i.inhparent = q.below)
SELECT q.nspname, q.relname, array_to_json(
  CASE WHEN q.relkind = 'v' THEN ARRAY[pg_catalog.pg_get_viewdef(q.oid)] ELSE '{}' END
  || ARRAY(SELECT 'SELECT ' || pg_catalog.pg_get_expr(p.polqual, p.polrelid)
    FROM pg_catalog.pg_policy p JOIN pg_catalog.pg_class r ON r.oid = p.polrelid
    WHERE r.oid = q.oid AND r.relrowsecurity AND p.polcmd IN ('*', 'r') AND p.polqual IS NOT NULL)
  || ARRAY(SELECT DISTINCT 'SELECT NULL::' || pg_catalog.format_type(t.oid, NULL)
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = q.oid AND a.attnum > 0 AND NOT a.attisdropped
      AND t.typnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_type'::regclass
        AND d.objid IN (t.oid, t.typelem) AND d.deptype = 'e'))
  || ARRAY(SELECT 'SELECT NULL::' || pg_catalog.format_type(r.reltype, NULL) FROM pg_catalog.pg_class r
    WHERE r.oid = q.oid AND r.reltype <> 0
      AND EXISTS (SELECT FROM pg_catalog.pg_cast k WHERE r.reltype IN (k.castsource, k.casttarget)))),
  array_to_json(ARRAY(SELECT a.attname FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = q.oid AND NOT a.attisdropped)),
  bool_or(c.relkind = 'f')
FROM asked q JOIN pg_catalog.pg_class c ON c.oid = q.below GROUP BY q.oid, q.nspname, q.relname, q.relkind
"""


class LiveCheck:
    """Asks the live catalogue about queries that the guard let pass; what it says holds for a moment."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._known: OrderedDict[str, tuple[float, Verdict]] = OrderedDict()

    def passed(self, text: str, now: float) -> bool:
        """Whether it was asked about a query a moment ago, and had nothing against it."""
        verdict = self._said(text, now)
        return verdict is not None and verdict.allow

    def _said(self, text: str, now: float) -> Verdict | None:
        known = self._known.get(text)
        return known[1] if known is not None and 0 <= now - known[0] < FRESH_SECONDS else None

    async def __call__(
        self, session: Session, text: str, facts: SqlFacts, now: float
    ) -> DatabaseRefused | None:
        """Return why a query is refused after all. Raises: ServerError, LinkLost."""
        verdict = self._said(text, now)
        if verdict is None:
            verdict = (await judged(self._guard, session.look, text, facts)).verdict
            self._known[text] = (now, verdict)
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        if verdict.allow:
            return None
        return DatabaseRefused(verdict.code or CODE, verdict.cause or "", verdict.fix)


async def judged(guard: Guard, look: Looks, text: str, facts: SqlFacts) -> Judged:
    """Return the verdict on a statement with what the database says of its names.

    What it shows to do more than read is added to the facts, and what the text alone could not show to only
    read is taken away. Raises: ServerError, LinkLost.
    """
    found = await _driven(guard, look, facts)
    own = lifted(guard.own, found.honest)
    if own != guard.own and any(each.family.startswith("unlisted-") for each in facts.offences):
        facts = await facts_of_async(text, guard.catalogue, own)
    offences = {(each.family, each.text, each.at): each for each in (*facts.offences, *found.offences)}
    told = replace(facts, offences=tuple(offences.values()))
    return Judged(sql_verdict.judge(told, text, guard.policies), told)


async def _driven(guard: Guard, look: Looks, facts: SqlFacts) -> Weighed:
    steps = weighed(facts, guard.catalogue, guard.own)
    answer: Any = None
    try:
        while True:
            answer = await _answer(guard, look, steps.send(answer))
    except StopIteration as done:
        found: Weighed = done.value
        return found


async def _answer(guard: Guard, look: Looks, step: Step) -> Live | tuple[SqlFacts, ...]:
    match step:
        case Look():
            return await _looked(look, step)
        case Read(texts):
            bodies = [body(each) for each in texts]
            return tuple([await guard.facts_async(each) for each in bodies])


async def _looked(look: Looks, asked: Look) -> Live:
    names = [listed(sorted(each)) for each in (asked.functions, asked.operators, asked.types)]
    pairs = sorted(asked.relations)
    where = [listed(each[0] for each in pairs), listed(each[1] for each in pairs)]
    behind, stored = await look(
        Statement(_BEHIND, tuple(names), BEHIND), Statement(_STORED, tuple(where), STORED)
    )
    return Live(tuple(map(_behind, behind)), tuple(map(_stored, stored)))


def _behind(found: Row) -> Behind:
    from pydantic_core import from_json

    kind, space, name, schema, function, least, most, may, language, extension, texts, row = found
    kinds: dict[str | None, Kind] = {"functions": "functions", "operators": "operators", "types": "types"}
    return Behind(
        kinds[kind],
        (str(space), str(name)),
        str(schema),
        str(function),
        int(least or 0),
        None if most is None else int(most),
        may != "f",
        str(language),
        extension or "",
        tuple(from_json(texts or "[]")),
        row != "f",
    )


def _stored(row: Row) -> Stored:
    from pydantic_core import from_json

    space, name, texts, columns, foreign = row
    held = frozenset(from_json(columns or "[]"))
    return Stored((str(space), str(name)), tuple(from_json(texts or "[]")), held, foreign != "f")


def body(text: str) -> str:
    """Return the one SELECT that a body written in standard SQL is; every other body is what it is."""
    told = text.strip()
    if told.upper().startswith("RETURN "):
        return f"SELECT {told[7:]}"
    if told.upper().startswith("BEGIN ATOMIC"):
        return told[12:].strip().removesuffix("END").strip()
    return text
