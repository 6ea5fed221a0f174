"""What a text tells of a statement: relations and columns, calls, names and where they are looked for."""

from __future__ import annotations

import pytest

from nonsuch.kernel.sql_catalog import Own
from nonsuch.kernel.sql_facts import full_name, schema_of, shown

from .queries import facts, judged, refusal

OF_THE_APP = Own(
    ("app", "public"),
    frozenset({"app.total", "public.label"}),
    frozenset({"app.@#@"}),
    frozenset({"app.level"}),
)


@pytest.mark.parametrize(
    ("text", "relations"),
    [
        ("SELECT 1", ""),
        ("TABLE orders", "public.orders"),
        ('SELECT 1 FROM a, "B", stock.items, lab.public.c', "public.a public.B stock.items public.c"),
        ('SELECT 1 FROM "a.b", "c""d"', 'public."a.b" public."c""d"'),
        ("SELECT 1 FROM Orders WHERE EXISTS (SELECT FROM ONLY Lines)", "public.orders public.lines"),
        ("SELECT 1 FROM pg_class, pg_catalog.pg_type", "pg_catalog.pg_class pg_catalog.pg_type"),
        ("SELECT 1 FROM pg_newer", "pg_catalog.pg_newer public.pg_newer"),
        ("SELECT 1 FROM a JOIN LATERAL (TABLE c) d ON true", "public.a public.c"),
        ("SELECT (SELECT max(x) FROM a) FROM b TABLESAMPLE SYSTEM (1)", "public.a public.b"),
        ("VALUES ((SELECT x FROM a))", "public.a"),
        ("EXPLAIN SELECT 1 UNION (SELECT x FROM a LIMIT (SELECT 1 FROM b))", "public.a public.b"),
        ("SELECT sum(x) OVER (ORDER BY (SELECT 1 FROM b)) FROM a", "public.a public.b"),
        ("SELECT sum(x) FILTER (WHERE x IN (TABLE b)) FROM a", "public.a public.b"),
        ("SHOW search_path", ""),
        ("SELECT 1 FROM generate_series(1, 2) a, JSON_TABLE('[]', '$' COLUMNS (x int)) b", ""),
    ],
)
def test_the_relations_of_a_statement(text: str, relations: str) -> None:
    assert facts(text).relation_names == set(relations.split())


@pytest.mark.parametrize(
    ("text", "relations"),
    [
        ("WITH a AS (SELECT 1) TABLE a", ""),
        ("WITH a AS (SELECT 1) SELECT 1 FROM public.a", "a"),
        ("WITH a AS (TABLE a) TABLE a", "a"),
        ("WITH a AS (TABLE b), b AS (SELECT 1) TABLE a", "b"),
        ("WITH b AS (SELECT 1), a AS (TABLE b) TABLE a", ""),
        ("WITH RECURSIVE a AS (TABLE b), b AS (SELECT 1) TABLE a", ""),
        ("WITH RECURSIVE a(x) AS (SELECT 1 UNION SELECT x FROM a) TABLE a", ""),
        ("SELECT 1 FROM a, (WITH a AS (SELECT 1) TABLE a) b", "a"),
        ("SELECT 1 FROM (WITH a AS (SELECT 1) TABLE a) b, a", "a"),
        ("WITH a AS (SELECT 1) SELECT 1 FROM (TABLE a) b WHERE EXISTS (TABLE a)", ""),
        ("(WITH a AS (SELECT 1) TABLE a) UNION TABLE a", "a"),
        ("WITH a AS (SELECT 1) (TABLE a UNION (TABLE b ORDER BY (TABLE a)))", "b"),
        ("WITH a AS (WITH b AS (SELECT 1) TABLE b) TABLE b", "b"),
        ("WITH a AS (SELECT 1) VALUES ((TABLE a))", ""),
        ("WITH a AS (SELECT 1) SELECT 1 LIMIT (TABLE a)", ""),
        ('WITH "A" AS (SELECT 1) TABLE a', "a"),
    ],
)
def test_a_named_query_hides_a_relation_only_where_it_is_seen(text: str, relations: str) -> None:
    """Or a statement could name a query like a table that it reads, and hide the table from policies."""
    assert facts(text).relation_names == {f"public.{each}" for each in relations}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT x FROM a", "a.x"),
        ("SELECT a.x, b.y FROM a, b", "a.x b.y"),
        ("SELECT x FROM a, b", "a.x b.x"),
        ("SELECT c.x FROM a c", "a.x"),
        ("SELECT a.x FROM a c, b a", "b.x"),
        ("SELECT public.a.x, stock.a.y FROM public.a, a.b", "a.x"),
        ("SELECT lab.public.a.x FROM a", "a.x"),
        ("SELECT x, z FROM a JOIN b USING (y)", "a.x a.y a.z b.x b.y b.z"),
        ("SELECT * FROM a", "a.*"),
        ("SELECT a.* FROM a, b", "a.*"),
        ("TABLE a", "a.*"),
        ("SELECT a FROM a", "a.* a.a"),
        ("SELECT (c).x FROM a c", "a.* a.c"),
        ("SELECT row_to_json(c) FROM a c, b", "a.* a.c b.c"),
        ("SELECT c.* IS NULL FROM a c", "a.*"),
        ("SELECT count(*) FROM a", ""),
        ("SELECT 1 FROM a NATURAL JOIN b", "a.* b.*"),
        ("SELECT c.x FROM a AS c(x, y)", "a.* a.x"),
        ("SELECT j.x FROM (a CROSS JOIN b) j", "a.x b.x"),
        ("SELECT j FROM (a CROSS JOIN b) j", "a.* a.j b.* b.j"),
        ("SELECT j.x FROM (a CROSS JOIN b) AS j(x)", "a.* a.x b.* b.x"),
        ("SELECT u.x FROM a JOIN b USING (x) AS u", "a.x b.x"),
        ("SELECT q.y FROM (SELECT x AS y FROM a) q", "a.x"),
        ("SELECT 1 FROM a WHERE x = 1 GROUP BY y HAVING max(z) > 1 ORDER BY v", "a.v a.x a.y a.z"),
        ("SELECT 1 FROM a WHERE EXISTS (SELECT FROM b WHERE b.x = a.y)", "a.y b.x"),
        ("SELECT 1 FROM XMLTABLE('/x' PASSING (SELECT d FROM a) COLUMNS e int)", "a.d"),
        ('SELECT "x y", "x.y" FROM a', "a.x y|a.x.y"),
    ],
)
def test_the_columns_that_a_statement_may_read(text: str, columns: str) -> None:
    wanted = columns.split("|" if "|" in columns else None)
    assert facts(text).columns == {f"public.{each}" for each in wanted} - {"public."}


def test_more_columns_than_anybody_lists_are_refused() -> None:
    listed = ", ".join(f"c{each}" for each in range(100))
    assert len(facts(" ".join(("SELECT", listed, "FROM a, b, c"))).columns) == 300
    tables = ", ".join(f"t{each}" for each in range(20))
    family, cause, place = refusal(" ".join(("SELECT", listed, "FROM", tables)))
    assert (family, place) == ("oversize", None)
    assert cause == ("the query is too large to be read safely: the columns it may read are more than 1024")


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        ("SELECT lower('x'), pg_catalog.upper('x')", "lower upper"),
        ("SELECT (x).lower, (y[1]).abs FROM a", "lower abs"),
        ("SELECT f.lower FROM upper('x') f", "lower upper"),
        ("SELECT upper.lower FROM upper('x')", "lower upper"),
        ("SELECT x.lower FROM CAST('x' AS text)", "lower"),
        ("SELECT t.lower FROM t, upper('x') u", "upper"),
        ("SELECT EXTRACT(year FROM now()), trim(both FROM 'x')", "btrim extract now"),
        ("SELECT 'x' SIMILAR TO 'y', 'a' LIKE 'b' ESCAPE 'c'", "similar_to_escape like_escape"),
        ("SELECT x AT TIME ZONE 'utc', OVERLAY('a' PLACING 'b' FROM 1) FROM t", "overlay timezone"),
        ("SELECT sum(x) OVER (ORDER BY abs(x)) FROM t", "abs sum"),
        ("SELECT 1 FROM ROWS FROM (lower('a'), upper('b')) WITH ORDINALITY q", "lower upper"),
    ],
)  # fmt: skip
def test_the_functions_that_a_statement_calls(text: str, functions: str) -> None:
    assert facts(text).functions == {f"pg_catalog.{each}" for each in functions.split()}


def test_a_field_is_no_function_of_the_server() -> None:
    told = facts("SELECT (c.address).city, (c.address).lower, (x.y).* FROM customers c, x")
    assert [each.names for each in told.attributes] == [("city",)]
    assert told.functions == {"pg_catalog.lower"}


@pytest.mark.parametrize(
    ("text", "family", "place"),
    [
        ("SELECT total(1)", "unlisted-function", "1:8"),
        ("SELECT lower('a', 'b')", "unlisted-function", "1:8"),
        ("SELECT stock.lower('a')", "unlisted-function", "1:8"),
        ("SELECT a.b.lower('a')", "unlisted-function", "1:8"),
        ("SELECT pg_catalog.levenshtein('a', 'b')", "unlisted-function", "1:8"),
        ("SELECT stock.levenshtein('a', 'b')", "unlisted-function", "1:8"),
        ("SELECT app.total(VARIADIC '{1}')", "unlisted-function", "1:8"),
        ("SELECT ts_rewrite('a'::tsquery, 'SELECT 1')", "sql-from-text", "1:8"),
        ("SELECT ts_rewrite(VARIADIC '{}')", "sql-from-text", "1:8"),
        ("SELECT unnest(ARRAY[1], 2, 3), pg_sleep(1)", "sleep", "1:32"),
        ("SELECT stock.unnest(ARRAY[1], 2)", "unlisted-function", "1:8"),
        ("SELECT money('1'), lockkey(5)", "unlisted-function", "1:20"),
        ("SELECT get_raw_page('a', 0)", "volatile", "1:8"),
        ("SELECT (1).bt_metap", "volatile", "1:12"),
        ("SELECT 1 @#@ 2", "unlisted-operator", "1:10"),
        ("SELECT 1 OPERATOR(stock.+) 2", "unlisted-operator", "1:10"),
        ("SELECT 1 FROM t ORDER BY x USING @#@", "unlisted-operator", "1:34"),
        ("SELECT 1 @#@ ANY (TABLE t)", "unlisted-operator", "1:10"),
        ("SELECT 1::level", "unlisted-type", "1:11"),
        ("SELECT 1::stock.int4", "unlisted-type", "1:11"),
        ("SELECT 1 FROM f() AS (a level)", "unlisted-function", "1:15"),
        ("SELECT 1 FROM json_to_record('{}') AS (a level)", "unlisted-type", "1:42"),
        ("SELECT 1 FROM t TABLESAMPLE system_rows(1)", "unlisted-sampling", "1:29"),
        ("SELECT 1 FROM t TABLESAMPLE stock.system(1)", "unlisted-sampling", "1:29"),
        ("SELECT $1", "malformed", "1:8"),
        ("SELECT 1 INTO t", "write", "1:15"),
        ("SELECT é, 1 FROM t FOR NO KEY UPDATE", "row-lock", "1:20"),
        ("SELECT 1;\n-- é\nDELETE FROM t", "several-statements", "3:1"),
        ("-- é\n  SAVEPOINT x", "statement", "2:3"),
        ("WITH é AS (DELETE FROM t RETURNING 1) TABLE é", "write", "1:24"),
        ("EXPLAIN (COSTS, WAL) SELECT 1", "explain", "1:17"),
        ("EXPLAIN ANALYZE SELECT pg_sleep(1)", "explain", "1:9"),
        ("EXPLAIN SHOW x", "malformed", "1:9"),
        ('SELECT U&"\\0061"', "escaped-name", "1:8"),
        ("SELECT 'é', 'U&\"'", "escaped-name", "1:14"),
        ("SELECT setseed(1), pg_sleep(1)", "session", "1:8"),
        ("SELECT (pg_sleep(1)).setseed", "sleep", "1:9"),
    ],
)
def test_a_refusal_names_the_first_piece_of_the_text(text: str, family: str, place: str) -> None:
    told, _, where = refusal(text)
    assert (told, where) == (family, place)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT total(1), app.total(1, 2), label(1), public.label()",
        "SELECT 1 @#@ 2, 1 OPERATOR(app.@#@) 2",
        "SELECT 1::level, NULL::app.level[]",
        "SELECT levenshtein('a', 'b'), app.levenshtein('a', 'b'), public.similarity('a', 'b')",
        "SELECT '[1]'::vector <=> '[1]'::public.vector",
    ],
)
def test_what_an_app_lists_is_read(text: str) -> None:
    assert judged(text, OF_THE_APP).verdict.allow


@pytest.mark.parametrize(
    "name", ["public.total", "stock.label", "app.dblink", "app.lo_report", "app.crosstab"]
)
def test_what_an_app_does_not_list_or_may_not_is_refused(name: str) -> None:
    own = Own(("app", "public"), OF_THE_APP.functions | {"app.dblink", "app.lo_report", "app.crosstab"})
    assert not judged(f"SELECT {name}(1)", own).verdict.allow


def test_names_are_looked_for_along_the_path() -> None:
    told = facts("SELECT 1 FROM orders, pg_class", OF_THE_APP)
    assert told.relation_names == {"app.orders", "public.orders", "pg_catalog.pg_class"}
    assert told.schemas == {"app", "public", "pg_catalog"}


@pytest.mark.parametrize(
    ("text", "kinds", "options"),
    [
        ("SELECT 1", ("select",), ()),
        ("VALUES (1)", ("select",), ()),
        ("SHOW ALL", ("show",), ()),
        ("EXPLAIN (VERBOSE, FORMAT JSON) TABLE t", ("explain", "select"), ("verbose", "format")),
    ],
)
def test_the_kinds_of_a_statement(text: str, kinds: tuple[str, ...], options: tuple[str, ...]) -> None:
    told = facts(text)
    assert (told.kinds, told.explain) == (kinds, options)


def test_the_kinds_of_what_is_refused() -> None:
    assert judged(
        "WITH a AS (MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE) SELECT 1"
    ).facts.kinds == (
        "select",
        "merge",
    )
    assert judged("EXPLAIN CREATE TABLE a AS SELECT 1").facts.kinds == ("explain", "create-table-as")
    assert judged("SHOW x").facts.settings == ("x",)


def test_names_are_written_so_that_none_is_another() -> None:
    names = [("a", "b.c"), ("a.b", "c"), ('a"', "b"), ("a", ""), ("A", "b")]
    written = [full_name(*each) for each in names]
    assert written == ['a."b.c"', '"a.b".c', '"a""".b', 'a.""', "A.b"]
    assert [schema_of(each) for each in written] == ["a", '"a.b"', '"a"""', "a", "A"]


def test_a_piece_is_shown_on_one_short_line() -> None:
    assert shown("a\n\u202eb") == "a\\u{a}\\u{202e}b"
    assert shown("x" * 64) == "x" * 64
    assert shown("x" * 65) == "x" * 63 + "…"
