"""Reads that nobody wrote for a guard, drawn from a grammar: none is refused.

The grammar speaks of tables, columns, literals, operators, casts and functions as an analyst does, with
names and texts that look like what a guard refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .queries import judged

TABLES: Final = [
    "orders",
    "customers c",
    "stock.items i",
    'public."Update" u',
    "pg_catalog.pg_class k",
    "sensors",
]
COLUMNS: Final = [
    "id",
    "total",
    "c.name",
    "i.qty",
    '"select"',
    'u."delete"',
    "pg_sleep_for_seconds",
    "sensors.nextval_hint",
    "set_config_done",
    '"pg_read_file"',
    "(c.address).city",
    "tags[1]",
    "attrs['a']['b']",
]
LITERALS: Final = [
    "1",
    "-2.5e3",
    "NULL",
    "true",
    "'x'",
    "'; DROP TABLE orders; --'",
    "'pg_sleep(10)'",
    "$$; DELETE FROM orders $$",
    "$a$ set_config('x') $a$",
    "E'it\\'s \\u00e9'",
    "U&'caf\\00e9'",
    "B'101'",
    "X'1f'",
    "DATE '2026-01-31'",
    "interval '1 day 2 hours'",
    "ARRAY[1, 2]",
    "'{\"update\": 1}'::jsonb",
    "CURRENT_DATE",
    "LOCALTIMESTAMP",
]
BINARY: Final = [
    *(
        "+",
        "-",
        "*",
        "/",
        "%",
        "^",
        "||",
        "=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "~",
        "!~*",
        "->",
        "->>",
        "#>",
        "#>>",
    ),
    *("@>", "<@", "&&", "?", "@@", "<->", "<<", "&", "#", "~~", "!~~*"),
    *("AND", "OR", "IS DISTINCT FROM", "LIKE", "NOT ILIKE", "SIMILAR TO", "AT TIME ZONE"),
]
TYPES: Final = [
    *("int", "text", "numeric(10,2)", "timestamptz", "jsonb", "uuid", "bigint[]", "regclass", "varchar(20)"),
    *("date", "inet", "tsvector"),
]
ONE: Final = ["lower", "upper", "length", "abs", "round", "trunc", "md5", "to_jsonb"]
CALLS: Final = [
    "coalesce({0}, {1})",
    "nullif({0}, {1})",
    "greatest({0}, {1})",
    "date_trunc('day', {0})",
    "to_char({0}, 'YYYY-MM')",
    "split_part({0}, '@', 1)",
    "jsonb_build_object('a', {0}, 'b', {1})",
    "string_agg({0}, ',' ORDER BY {1})",
    "count(DISTINCT {0}) FILTER (WHERE {1} IS NOT NULL)",
    "row_number() OVER (PARTITION BY {0} ORDER BY {1} DESC NULLS LAST)",
    "lag({0}, 1, {1}) OVER w",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY {0})",
    "EXTRACT(epoch FROM {0})",
    "SUBSTRING({0} FROM 1 FOR 2)",
    "TRIM(BOTH FROM {0})",
    "POSITION({0} IN {1})",
    "make_interval(hours => 1)",
    "ts_rank(to_tsvector('english', {0}), websearch_to_tsquery({1}))",
    "regexp_replace({0}, '\\d+', '#', 'g')",
    "random()",
    "pg_size_pretty(pg_total_relation_size('orders'))",
    "similarity({0}, {1})",
    "num_nonnulls({0}, {1})",
]


def _expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, st.sampled_from(BINARY), inner).map(" ".join).map(_bracketed),
        st.tuples(inner, st.sampled_from(TYPES)).map(lambda each: f"({each[0]})::{each[1]}"),
        st.tuples(st.sampled_from(ONE), inner).map(lambda each: f"{each[0]}({each[1]})"),
        st.tuples(st.sampled_from(CALLS), pairs).map(lambda each: each[0].format(*each[1])),
        st.tuples(inner, inner).map(lambda each: f"CASE WHEN {each[0]} THEN {each[1]} ELSE NULL END"),
        st.tuples(inner, inner).map(lambda each: f"({each[0]} BETWEEN {each[1]} AND 9)"),
        st.tuples(inner, inner).map(lambda each: f"({each[0]} IN ({each[1]}, 2))"),
        st.tuples(inner, inner).map(lambda each: f"({each[0]} = ANY (ARRAY[{each[1]}]))"),
        inner.map(lambda each: f"(({each}) IS NOT NULL)"),
        inner.map(lambda each: f"(NOT ({each}))"),
        inner.map(lambda each: f"ROW({each}, 1)"),
        inner.map(lambda each: f'(({each}) COLLATE "C")'),
    )


def _bracketed(text: str) -> str:
    return f"({text})"


EXPRESSIONS: Final = st.recursive(st.sampled_from([*COLUMNS, *LITERALS]), _expressions, max_leaves=8)


@st.composite
def _sources(draw: st.DrawFn, query: Callable[[], st.SearchStrategy[str]]) -> str:
    first = draw(st.sampled_from(TABLES))
    joins = [
        "JOIN orders o2 ON {0}",
        "LEFT JOIN customers USING (id)",
        "NATURAL JOIN stock.items",
        "CROSS JOIN generate_series(1, 3) AS g(n)",
        "CROSS JOIN LATERAL unnest(ARRAY[1, 2]) WITH ORDINALITY AS x(v, i)",
        "JOIN LATERAL ({1}) q ON true",
        ", jsonb_to_recordset('[]') AS r(a int, b text)",
        ", JSON_TABLE('[]', '$[*]' COLUMNS (a int PATH '$.a')) jt",
        ", (VALUES (1, 'a'), (2, 'b')) v(id, pg_sleep)",
        "TABLESAMPLE BERNOULLI (10)",
    ]
    join = draw(st.sampled_from(["", *joins]))
    if join.startswith("TABLESAMPLE"):
        return f"{first} {join}"
    return f"{first} {join.format(draw(EXPRESSIONS), draw(query()) if '{1}' in join else '')}"


@st.composite
def _queries(draw: st.DrawFn, depth: int = 2) -> str:
    def inner() -> st.SearchStrategy[str]:
        return _queries(depth - 1) if depth else st.just("SELECT 1")

    listed = ", ".join(draw(st.lists(EXPRESSIONS, min_size=1, max_size=3)))
    head = draw(st.sampled_from(["SELECT", "SELECT DISTINCT", "SELECT DISTINCT ON (1)"]))
    label = draw(st.sampled_from(["", ' AS "delete"', " AS pg_sleep", ", *"]))
    parts = [f"{head} {listed}{label}", f"FROM {draw(_sources(inner))}"]
    optional = [
        "WHERE {0}",
        "GROUP BY {0}, ROLLUP (1, 2)",
        "HAVING count(*) > 1",
        "WINDOW w AS (PARTITION BY {0} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "ORDER BY {0} DESC NULLS FIRST",
        "LIMIT 10 OFFSET 5",
    ]
    parts += [each.format(draw(EXPRESSIONS)) for each in optional if draw(st.booleans())]
    query = " ".join(parts)
    if draw(st.booleans()) and depth:
        query = f"({query}) UNION ALL ({draw(inner())})"
    return query


@st.composite
def _statements(draw: st.DrawFn) -> str:
    query = draw(_queries())
    whole = draw(
        st.sampled_from(
            [
                "{q}",
                "{q};",
                "{q} ; -- done; DROP",
                "/* report; FOR UPDATE */ {q}",
                "EXPLAIN {q}",
                "EXPLAIN (FORMAT JSON, VERBOSE, COSTS off) {q}",
                'WITH "update" AS ({q}), w AS NOT MATERIALIZED (TABLE "update") SELECT * FROM w',
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9) {q}",
                "SELECT EXISTS ({q}), ARRAY({q})",
                "TABLE orders",
                "SHOW TIME ZONE",
            ]
        )
    )
    return whole.format(q=query)


@settings(max_examples=250)
@given(_statements())
def test_an_honest_read_is_accepted(text: str) -> None:
    if len(text.encode()) <= 16_384:
        assert judged(text).verdict.allow, (text, judged(text).verdict)


@settings(max_examples=100)
@given(_statements(), st.sampled_from(["DELETE FROM orders", "SELECT 1"]))
def test_the_same_read_with_something_behind_it_is_not(text: str, more: str) -> None:
    """Or the one above could not fail."""
    assert not judged(f"{text.partition(';')[0] if 'DROP' in text else text}\n;{more}").verdict.allow


@pytest.mark.parametrize("call", CALLS)
def test_every_call_of_the_grammar_is_a_read(call: str) -> None:
    text = f"{call.format('a', 'b')} FROM t WINDOW w AS ()"
    assert judged(" ".join(("SELECT", text))).verdict.allow
