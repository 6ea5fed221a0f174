"""Honest queries answer as they would without any layer, and what their cells hold is JSON of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nonsuch.adapters.edge.postgres.readonly import Asked, ReadOnly
from nonsuch.adapters.edge.postgres.readonly_caps import (
    MAX_CELL,
    MAX_COLUMNS,
    MAX_ROW,
    capped,
    cell_of,
    chunk_of,
    explaining,
    rows_of,
)
from nonsuch.adapters.edge.postgres.readonly_settings import duration, identifier, listed, literal

from .readonly_lab import GUARD, Lab, laboratory


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with laboratory() as made:
        yield made


TABLES: Final = {
    "orders o": ("o.id", "o.customer_id", "o.total", "o.status", "o.placed_at", "o.shipped"),
    "customers c": ("c.id", "c.name", "c.tags", "c.address", "(c.address).city", "c.region"),
    "products p": ("p.id", "p.price", "p.attrs", "p.attrs->>'color'", "p.title", "p.tags[1]"),
    "events e": ("e.id", "e.payload", "e.during", "e.at", "e.kind", "e.payload->'n'"),
    "sensors s": ("s.id", 's."select"', "s.update_date", "s.pg_sleep_for_seconds", "s.set2", "s.delete_flag"),
}
LITERALS: Final = ("1", "-2.5", "NULL", "true", "'a''b; DROP'", "$$x$$", "'{1,2}'::int[]", "now() IS NULL")
WRAPS: Final = (
    "{0}",
    "({0})::text",
    "coalesce({0}::text, '-')",
    "md5({0}::text)",
    "ROW({0}, 1)",
    "to_jsonb({0})",
    "ARRAY[{0}]",
    "({0} IS NULL)",
    "CASE WHEN {0} IS NOT NULL THEN 1 ELSE 0 END",
    "count(*) OVER ()",
    "length({0}::text) * 1.5",
    "jsonb_build_object('k', {0})",
)


@st.composite
def _honest(draw: st.DrawFn, depth: int = 1) -> str:
    table = draw(st.sampled_from(sorted(TABLES)))
    columns = st.sampled_from((*TABLES[table], *TABLES[table], *LITERALS))
    cells = draw(st.lists(st.builds(str.format, st.sampled_from(WRAPS), columns), min_size=1, max_size=4))
    key = f"{table.split()[1]}.id"
    text = f"SELECT {draw(st.sampled_from(('', 'DISTINCT ')))}{', '.join(cells)} FROM {table}"  # noqa: S608  (for a test)
    if draw(st.booleans()):
        text += f" WHERE {key} > {draw(st.integers(0, 40))}"
    shape = draw(
        st.sampled_from(
            (
                "{0} ORDER BY 1::text LIMIT 20",
                "{0}",
                "({0}) UNION ALL ({0})",
                "WITH w AS ({0}) SELECT * FROM w",
                "SELECT * FROM ({0}) q OFFSET 1",
                "SELECT x.* FROM generate_series(1, 2) g, LATERAL ({0}) x",
                "{0} ;  -- done",
            )
        )
    )
    return shape.format(text)


def test_an_honest_query_answers_as_without_any_layer(lab: Lab) -> None:
    """The oracle is the driver's own query, in text, as the same role, without a wrap, a pin or a limit."""
    import asyncio

    runner = asyncio.Runner()
    database, seen = ReadOnly(lab.of("agent_login"), seconds=20), {"rows": 0, "queries": 0}

    @settings(max_examples=250)
    @given(_honest())
    def same(text: str) -> None:
        told = GUARD.judge(text)
        assert told.verdict.allow, told.verdict
        wanted = _plainly(plain, text)
        assume(wanted is not None)
        found = runner.run(database.query(Asked(text, told.facts), 1_000))
        assert found.truncated_by == ()
        ordered = "ORDER BY" in text
        given_, expected = _texts(found.rows), wanted or []
        assert given_ == expected if ordered else sorted(given_) == sorted(expected), text
        seen["rows"] += len(found.rows)
        seen["queries"] += 1

    with psycopg.connect(lab.of("agent_login"), autocommit=True) as plain, runner:
        same()
        runner.run(database.close())
    assert min(seen.values()) > 100, seen


def _plainly(plain: psycopg.Connection[Any], text: str) -> list[str] | None:
    """The rows as JSON text, by the server's own row_to_json where there are rows; nothing for an error."""
    with psycopg.RawCursor(plain) as cursor:
        try:
            cursor.execute(text.encode(), binary=False)
        except psycopg.Error:
            return None
        result = cursor.pgresult
        assert result is not None
        cells = (
            [result.get_value(row, each) for each in range(result.nfields)] for row in range(result.ntuples)
        )
        return [_line(each, [result.ftype(column) for column in range(result.nfields)]) for each in cells]


def _line(cells: list[bytes | None], types: list[int]) -> str:
    return json.dumps([_read(cell, kind) for cell, kind in zip(cells, types, strict=True)], sort_keys=True)


def _read(cell: bytes | None, kind: int) -> Any:
    """A cell as the answer's documentation has it: numbers, truth and JSON as such, everything else text."""
    if cell is None:
        return None
    text = cell.decode()
    if kind == 16:
        return text == "t"
    if kind in (20, 21, 23, 26):
        return int(text)
    if kind in (700, 701):
        return float(text)
    return json.loads(text) if kind in (114, 3802) else text


def _texts(rows: list[list[Any]]) -> list[str]:
    return [json.dumps(each, sort_keys=True) for each in rows]


@pytest.mark.parametrize(
    ("text", "type_", "cell"),
    [
        ("true", "boolean", True),
        ("7::smallint", "smallint", 7),
        ("9223372036854775807", "bigint", 9_223_372_036_854_775_807),
        ("0.1::float8", "double precision", 0.1),
        ("'NaN'::float8", "double precision", "NaN"),
        ("'-Infinity'::float4", "real", "-Infinity"),
        ("1.10::numeric", "numeric", "1.10"),
        ("'{\"a\": [1, null]}'::jsonb", "jsonb", {"a": [1, None]}),
        ("'1e400'::json", "json", "1e400"),
        ("repeat('[', 5000) || repeat(']', 5000)", "text", "[" * 5_000 + "]" * 5_000),
        ("(repeat('[', 5000) || repeat(']', 5000))::json", "json", "[" * 5_000 + "]" * 5_000),
        ("'a'::\"char\"", '"char"', "a"),
        ("ARRAY[1, NULL]", "integer[]", "{1,NULL}"),
        ("'x'::name", "name", "x"),
        ("'\\x00ff'::bytea", "bytea", "\\x00ff"),
        ("'1 day'::interval", "interval", "1 day"),
        ("ROW(1, 'a')", "record", "(1,a)"),
        ("'mid'::level_t", "level_t", "mid"),
        ("'[1,2,3]'::vector", "vector", "[1,2,3]"),
        ("'a=>1'::hstore", "hstore", '"a"=>"1"'),
        ("''", "text", ""),
        ("NULL", "text", None),
        ("'caf\u00e9 \U0001f600'", "text", "caf\u00e9 \U0001f600"),
    ],
)
def test_a_cell_is_what_json_can_hold_of_it(lab: Lab, text: str, type_: str, cell: object) -> None:
    found = lab.ask(f"SELECT {text} AS x", facts=GUARD.judge(f"SELECT {text} AS x").facts)
    assert (found.columns, found.rows) == ((("x", type_),), [[cell]])
    assert found.bytes == len(json.dumps([cell], separators=(",", ":"), ensure_ascii=False).encode()) + 1


STATEMENTS: Final[list[tuple[str, int, list[list[Any]]]]] = [
    ("SELECT", 0, [[]]),
    ("SELECT FROM generate_series(1, 3)", 0, [[], [], []]),
    ("SELECT 1 AS a, 2 AS a", 2, [[1, 2]]),
    ("VALUES (1, 'a'), (2, NULL)", 2, [[1, "a"], [2, None]]),
    ("TABLE categories ORDER BY id LIMIT 1", 3, [[1, None, "root"]]),
    ("(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1 DESC", 1, [[2], [1]]),
    ("SELECT 1; ", 1, [[1]]),
    (" ; SELECT 1 /* ; */ ; -- ;", 1, [[1]]),
    ("SELECT 1 -- to the end", 1, [[1]]),
    ("SHOW server_encoding", 1, [["UTF8"]]),
    ("SHOW transaction_read_only", 1, [["on"]]),
    ("SHOW TRANSACTION ISOLATION LEVEL", 1, [["read committed"]]),
    (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) TABLE r",
        1,
        [[1], [2], [3]],
    ),
]


@pytest.mark.parametrize(("text", "columns", "rows"), STATEMENTS)
def test_every_kind_of_statement_is_answered(
    lab: Lab, text: str, columns: int, rows: list[list[Any]]
) -> None:
    found = lab.ask(text)
    assert (len(found.columns), found.rows) == (columns, rows)


def test_show_all_is_a_table(lab: Lab) -> None:
    found = lab.ask("SHOW ALL", limit=1_000)
    assert [name for name, _ in found.columns] == ["name", "setting", "description"]
    assert len(found.rows) > 200
    assert found.truncated_by == ()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM orders",
        "EXPLAIN SELECT id FROM orders",
        "EXPLAIN (FORMAT JSON, COSTS off) TABLE orders",
    ],
)
def test_a_plan_is_told_line_by_line(lab: Lab, text: str) -> None:
    with lab.admin() as connection:
        plain = text if text.startswith("EXPLAIN") else f"EXPLAIN {text}"
        rows = connection.execute(plain.encode()).fetchall()
    wanted = rows if "JSON" not in text else None
    found = lab.ask(text, explain=True)
    if wanted is not None:
        assert [row[0] for row in found.rows] == [row[0] for row in wanted]
    else:
        assert json.loads("\n".join(row[0] for row in found.rows))[0]["Plan"]["Relation Name"] == "orders"


def test_a_plan_of_a_text_with_any_mark_in_it(lab: Lab) -> None:
    text = "SELECT '$outer0$ $inner0$ $inner1$', $$; DELETE FROM orders$$, E'\\'' FROM orders"
    assert "Seq Scan" in lab.ask(text, explain=True).rows[0][0]
    assert text in explaining(text)


def test_too_many_columns_are_refused_and_as_many_as_may_be_are_not(lab: Lab) -> None:
    from nonsuch.adapters.edge.postgres.refused import DatabaseRefused

    row = lab.ask("SELECT " + ", ".join(map(str, range(MAX_COLUMNS)))).rows[0]
    assert row == list(range(MAX_COLUMNS))
    with pytest.raises(DatabaseRefused, match=f"more than {MAX_COLUMNS} columns"):
        lab.ask("SELECT " + ", ".join(["1"] * (MAX_COLUMNS + 1)))


def test_the_place_of_a_mistake_is_told(lab: Lab) -> None:
    from nonsuch.adapters.edge.postgres.refused import DatabaseRefused

    with pytest.raises(DatabaseRefused, match=r'column "nothing" does not exist at 2:8\n'):
        lab.ask("SELECT 'caf\u00e9',\n       nothing FROM orders")


@pytest.mark.parametrize(
    ("asked", "rows"), [(None, 100), (1, 1), (1_000, 1_000), (1_001, 1_000), (0, 1), (-5, 1), (2**70, 1_000)]
)
def test_a_limit_is_taken_into_the_ceiling(asked: int | None, rows: int) -> None:
    assert rows_of(asked) == rows


@given(st.integers(1, MAX_COLUMNS))
def test_a_row_of_cells_is_bounded(columns: int) -> None:
    assert cell_of(columns) * columns <= MAX_ROW
    assert cell_of(columns) <= MAX_CELL
    assert chunk_of(columns) * cell_of(columns) * columns <= max(MAX_ROW, 4 * 1024 * 1024)
    assert capped("SELECT 1", columns, 7).endswith("LIMIT 8")


@given(
    st.text(st.characters(blacklist_characters="\\\0", blacklist_categories=["Cs"])), st.integers(1, 10**9)
)
def test_what_is_written_into_statements_of_ours_is_quoted(text: str, milliseconds: int) -> None:
    assert literal(text)[1:-1].replace("''", "") == text.replace("'", "")
    assert identifier(text)[1:-1].replace('""', '"') == text
    assert listed([text]).startswith('{"')
    amount = duration(milliseconds)
    unit = amount.lstrip("0123456789")
    assert (
        int(amount.removesuffix(unit))
        * {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}[unit]
        == milliseconds
    )


@pytest.mark.parametrize("text", ["a\\b", "a\0b"])
def test_what_settings_read_in_two_ways_is_not_written(text: str) -> None:
    with pytest.raises(ValueError, match="no backslash"):
        literal(text)
