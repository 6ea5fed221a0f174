"""A function that may change something is refused in every notation, every spelling and every place.

Which functions these are is read from the catalogue's file by a rule of this module's own.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.kernel.sql_families import REVIEWED, family_of

from .queries import VECTORS, facts, judged

CATALOGUE: Final = json.loads(
    (Path(__file__).parents[2] / "adapters" / "edge" / "sql_catalog.json").read_text("utf-8")
)
MAY_BE_CALLED: Final = frozenset(
    cast(
        "list[str]",
        json.loads((VECTORS / "reviewed.json").read_text("utf-8"))["volatile functions that are called"],
    )
)
DATA_TYPES: Final = frozenset(
    cast("list[str]", json.loads((VECTORS / "reviewed.json").read_text("utf-8"))["extensions of data types"])
)


def _takes_one(code: str) -> bool:
    least, most, endless = cast(
        "tuple[str, str, str]", cast("re.Match[str]", re.fullmatch(r".(\d+)(?:-(\d+))?(\+?)", code)).groups()
    )
    return int(least) <= 1 and (bool(endless) or int(most or least) >= 1)


def _harmful(held: dict[str, Any], *, trusted: bool) -> set[str]:
    """What one owner has of functions that take one argument and may change something, or are not trusted."""
    functions = cast("dict[str, str]", held["functions"])
    one = {name: [each for each in code.split() if _takes_one(each)] for name, code in functions.items()}
    return {
        name
        for name, codes in one.items()
        if codes and (not trusted or any(each.startswith("v") for each in codes))
    }


HARMFUL: Final = sorted(
    {
        *_harmful(CATALOGUE["schemas"]["pg_catalog"], trusted=True),
        *(
            name
            for extension, held in CATALOGUE["extensions"].items()
            for name in _harmful(held, trusted=extension in DATA_TYPES)
        ),
    }
    - MAY_BE_CALLED
)
TO_COME: Final = [
    "pg_advisory_new",
    "pg_try_advisory_new",
    "pg_sleep_some",
    "nextval_of",
    "set_config_all",
    "pg_notify_all",
    "pg_read_new",
    "pg_ls_new",
    "lo_new",
    "dblink_new",
    "pg_terminate_all",
    "pg_reload_all",
    "pg_switch_all",
    "pg_wal_replay_new",
    "pg_logical_new",
    "pg_create_new",
    "pg_drop_new",
    "pg_replication_new",
    "pg_import_new",
    "row_to_xml_new",
    "ts_stat_new",
    "crosstab9",
]  # of the families, though no server has them yet

NOTATIONS: Final = {
    "call": "SELECT {f}(1)",
    "call of the schema": "SELECT pg_catalog.{f}(1)",
    "from": "SELECT * FROM {f}(1)",
    "rows from": "SELECT * FROM ROWS FROM (lower('a'), {f}(1)) x",
    "literal": "SELECT (1).{f}",
    "text": "SELECT ('a'::text).{f}",
    "subscript": "SELECT (ARRAY[1])[1].{f}",
    "subquery": "SELECT (SELECT 1).{f}",
    "row": "SELECT (t.c).{f} FROM t",
    "field": "SELECT ((t.c).a).{f} FROM t",
    "called": "SELECT (abs(1)).{f}",
    "alias": "SELECT a.{f} FROM abs(1) AS a",
    "alias with columns": "SELECT a.{f} FROM abs(1) AS a(b)",
    "no alias": "SELECT abs.{f} FROM abs(1)",
    "cast": "SELECT int4.{f} FROM CAST(1 AS int)",
    "coalesce": "SELECT coalesce.{f} FROM COALESCE(1, 2)",
    "rows from one": "SELECT abs.{f} FROM ROWS FROM (abs(1))",
    "whole": "SELECT (a.*).{f} FROM abs(1) a",
    "whole in brackets": "SELECT (a).{f} FROM abs(1) a",
    "outer": "SELECT (SELECT a.{f}) FROM abs(1) a",
    "lateral": "SELECT b.c FROM abs(1) a, LATERAL (SELECT a.{f}) b(c)",
    "joined": "SELECT a.{f} FROM t JOIN abs(1) a ON true",
}
PLACES: Final = [
    "{q}",
    "EXPLAIN {q}",
    "WITH w AS ({q}) TABLE w",
    "SELECT 1 FROM ({q}) s",
    "SELECT 1 WHERE ({q}) IS NULL",
    "SELECT 1 ORDER BY ({q})",
    "SELECT 1 GROUP BY 1 HAVING ({q}) IS NULL",
    "SELECT 1 LIMIT ({q})",
    "SELECT CASE WHEN ({q}) IS NULL THEN 1 END",
    "VALUES (1), (({q}))",
    "SELECT sum(1) FILTER (WHERE ({q}) IS NULL)",
    "SELECT sum(1) OVER (PARTITION BY ({q}) ORDER BY ({q}))",
    "SELECT 1 FROM t JOIN u ON ({q}) IS NULL",
    "SELECT 1 UNION ALL ({q})",
    "SELECT ARRAY({q}), ROW(({q})), COALESCE(({q}), 1), GREATEST(({q}))",
    "SELECT json_object('a' VALUE ({q})), ({q})::text COLLATE \"C\"",
    "SELECT 1 FROM t TABLESAMPLE SYSTEM (({q}))",
    "SELECT 1 FROM XMLTABLE('a' PASSING ({q}) COLUMNS b int DEFAULT ({q}))",
    "SELECT 1 FROM JSON_TABLE(({q}), '$' COLUMNS (b int PATH '$'))",
    "SELECT JSON_VALUE('1', '$' DEFAULT ({q}) ON ERROR)",
    "SELECT DISTINCT ON (({q})) 1",
    "SELECT 1 IN (({q}), 2), 1 = ANY ({q}), EXISTS ({q}), 1 BETWEEN ({q}) AND 2",
]
_COLUMNS: Final = 'SELECT "{n}", t.{s}, t."{n}" AS "{n}" FROM t, "{n}" AS u("{n}")'
GAPS: Final = [" ", "\t", "\n", "\r", "\f", "\v", "/**/", "/* ( */", "--\n", "/* /* */ */", "\n--x(\r\n"]


def _plain(name: str) -> str:
    return name if re.fullmatch("[a-z_][a-z0-9_]*", name) else f'"{name}"'


def test_the_names_are_there() -> None:
    assert len(HARMFUL) > 150
    assert {
        "pg_sleep",
        "pg_advisory_lock",
        "nextval",
        "pg_read_file",
        "lo_get",
        "setseed",
        "bt_metap",
    } <= set(HARMFUL)
    assert MAY_BE_CALLED.isdisjoint(HARMFUL)


def test_the_review_is_of_names_that_the_server_calls_volatile() -> None:
    """Written twice: what the kernel lets pass of them is what was reviewed."""
    functions = cast("dict[str, str]", CATALOGUE["schemas"]["pg_catalog"]["functions"])
    assert REVIEWED == MAY_BE_CALLED
    assert [name for name in MAY_BE_CALLED if "v" not in functions[name]] == []
    assert [name for name in MAY_BE_CALLED if family_of(name) is not None] == []


@pytest.mark.parametrize("notation", NOTATIONS)
def test_a_harmful_function_is_refused_in_every_notation(notation: str) -> None:
    passed = [
        name
        for name in (*HARMFUL, *TO_COME)
        if judged(NOTATIONS[notation].format(f=_plain(name))).verdict.allow
    ]
    assert passed == []


@pytest.mark.parametrize("notation", NOTATIONS)
def test_a_harmless_function_is_not(notation: str) -> None:
    """Or the one above could not fail."""
    assert judged(NOTATIONS[notation].format(f="abs")).verdict.allow


@pytest.mark.parametrize("place", PLACES)
def test_a_harmful_function_is_refused_in_every_place(place: str) -> None:
    for notation in NOTATIONS.values():
        assert not judged(place.format(q=notation.format(f="pg_sleep"))).verdict.allow
        assert judged(place.format(q=notation.format(f="abs"))).verdict.allow, notation


@st.composite
def _spelt(draw: st.DrawFn, name: str) -> str:
    """One of the ways to write a name: any case, quotes, comments and white space around it."""
    written = draw(st.sampled_from(("case", "quotes")))
    if written == "quotes" or _plain(name) != name:
        return f'"{name}"'
    upper = draw(st.lists(st.booleans(), min_size=len(name), max_size=len(name)))
    return "".join(each.upper() if big else each for each, big in zip(name, upper, strict=True))


@given(st.data())
def test_a_harmful_function_is_refused_in_every_spelling(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(HARMFUL))
    spelt = data.draw(_spelt(name))
    around = [data.draw(st.sampled_from(GAPS)) for _ in range(2)]
    text = data.draw(st.sampled_from(sorted(NOTATIONS.values()))).format(f=f"{around[0]}{spelt}{around[1]}")
    text = data.draw(st.sampled_from(PLACES)).format(q=text)
    told = judged(text)
    assert not told.verdict.allow
    assert told.verdict.family not in ("malformed", "unlisted-function"), (text, told.verdict)


@given(st.sampled_from(HARMFUL), st.sampled_from(sorted(NOTATIONS.values())), st.data())
def test_a_name_in_escapes_is_refused_undecoded(name: str, notation: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 1))
    spelt = f'{data.draw(st.sampled_from("uU"))}&"{name[:at]}\\{ord(name[at]):04x}{name[at + 1 :]}"'
    assert judged(notation.format(f=spelt)).verdict.family == "escaped-name"


@given(st.sampled_from(HARMFUL))
def test_a_column_that_is_named_like_a_harmful_function_is_read(name: str) -> None:
    """The unit is the call: a name that is none is a column, a label or a table."""
    spelt = _plain(name) if name.isascii() else f'"{name}"'
    told = facts(_COLUMNS.format(n=name, s=spelt))
    assert told.functions == set()
