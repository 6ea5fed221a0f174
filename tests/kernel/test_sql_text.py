"""What no parser sees: size, comments, operators, no text; and that nothing of it costs time or a process."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Final

import pytest

from nonsuch.kernel.sql_facts import Offence
from nonsuch.kernel.sql_text import MAX_BYTES, MAX_COMMENTS, MAX_OPERATOR, Offsets, refused

from .queries import judged, refusal

TOO_LONG: Final = Offence("oversize", "", None, f"the text is longer than {MAX_BYTES} bytes")
SLOWEST: Final = 1.0  # seconds for one text of the largest size

_END: Final = MAX_BYTES - 64
WORST: Final = {
    "sums": "SELECT 1" + "+1" * (_END // 2),
    "signs": "SELECT " + "- " * (_END // 2) + "1",
    "nots": "SELECT " + "NOT " * (_END // 4) + "a",
    "brackets": "SELECT " + "(" * (_END // 2) + "1" + ")" * (_END // 2),
    "casts": "SELECT 1" + "::int" * (_END // 5),
    "unions": "TABLE a" + " UNION TABLE a" * (_END // 14),
    "joins": "SELECT FROM a" + " CROSS JOIN a" * (_END // 13),
    "subqueries": "SELECT " + "(SELECT " * (_END // 9) + "1" + ")" * (_END // 9),
    "subqueries in from": "SELECT" + " FROM(SELECT" * (_END // 13) + ")" * (_END // 13),
    "cases": "SELECT " + "CASE WHEN " * (_END // 21) + "1" + " THEN 1 END" * (_END // 21),
    "calls": "SELECT " + "f(" * (_END // 3) + "1" + ")" * (_END // 3),
    "arrays": "SELECT ARRAY[" + "[" * (_END // 2) + "1" + "]" * (_END // 2) + "]",
    "rows": "SELECT " + "ROW(" * (_END // 5) + "1" + ")" * (_END // 5),
    "nulls": "SELECT 1" + " ISNULL" * (_END // 7),
    "zones": "SELECT 1" + " AT LOCAL" * (_END // 9),
    "comments": "SELECT " + "/*" * MAX_COMMENTS + "*/" * MAX_COMMENTS + "1",
    "operators": "SELECT 1 " + ("+" * MAX_OPERATOR + " ") * (_END // (MAX_OPERATOR + 1)) + "1",
    "mixed operators": "SELECT 1 " + ("+-" * (MAX_OPERATOR // 2) + " ") * (_END // (MAX_OPERATOR + 1)) + "1",
    "a list": "SELECT 1 IN(" + "1," * (_END // 2) + "1)",
    "columns": "SELECT " + "a," * (_END // 2) + "a FROM b",
    "columns of tables": "SELECT " + "a," * (_END // 4) + "a FROM b" + ",b" * (_END // 4),
    "accents": "SELECT " + "'é'," * (_END // 5) + "1",
    "names with accents": "SELECT " + "é.é," * (_END // 6) + "1 FROM é",
    "attributes": "SELECT (a)" + ".a" * (_END // 2),
    "subscripts": "SELECT a" + "[1]" * (_END // 3),
    "quotes": "SELECT '" + "''" * (_END // 2) + "'",
    "escapes": "SELECT E'" + "\\u00e9" * (_END // 6) + "'",
    "lines of one text": "SELECT 'a'" + "\n'a'" * (_END // 4),
    "conjunctions": "SELECT a" + " AND a" * (_END // 6),
    "windows": "SELECT " + "f()OVER(ORDER BY " * (_END // 19) + "1" + ")" * (_END // 19),
    "objects": "SELECT " + "JSON_OBJECT(a:" * (_END // 15) + "1" + ")" * (_END // 15),
    "offences": "SELECT " + "pg_sleep(1)," * (_END // 12) + "1",
    "fields": "SELECT " + "(a).setseed," * (_END // 12) + "1",
    "fields of many names": "SELECT " + "".join(f"(a).lo_{each:04}," for each in range(_END // 12)) + "1",
    "columns behind dots": "SELECT 1 FROM t" + ",t" * (_END // 4) + " ORDER BY 1" + ",a.b" * (_END // 9),
    "columns of schemas": "SELECT 1 FROM t"
    + ",t" * 900
    + " ORDER BY 1"
    + "".join(f",s.t.c{n}" for n in range(900)),
    "named queries": "WITH " + ",".join(f"c{n} AS(TABLE c{n - 1})" for n in range(700)) + "TABLE c1",
    "relations": ",".join(("SELECT 1 FROM t", *(f"t{n}" for n in range(_END // 6)))),
}


@pytest.mark.parametrize(
    ("text", "offence"),
    [
        (None, Offence("malformed", "", None, "the statement is no text")),
        (b"SELECT 1", Offence("malformed", "", None, "the statement is no text")),
        ("SELECT \ud800", Offence("malformed", "", 7, "it is no UTF-8")),
        ("SELECT 1\0; DROP", Offence("malformed", "", 8, "a NUL would hide what stands behind it")),
        ("é" * (MAX_BYTES // 2 + 1), TOO_LONG),
        ("x" * (MAX_BYTES + 1), TOO_LONG),
        ("x" * 1_048_576, TOO_LONG),
        (
            "/*" * (MAX_COMMENTS + 1),
            Offence("oversize", "", None, f"`/*` stands there more than {MAX_COMMENTS} times"),
        ),
        (
            "SELECT 1 " + "+-" * MAX_OPERATOR + " 1",
            Offence(
                "oversize",
                f"{'+-' * 31}+…",
                9,
                f"more than {MAX_OPERATOR} operator characters stand in a row",
            ),
        ),
    ],
)
def test_a_text_that_is_refused_unread(text: object, offence: Offence) -> None:
    assert refused(text) == offence
    assert not judged(text).verdict.allow


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT 'é'",
        "x" * MAX_BYTES,
        "é" * (MAX_BYTES // 2),
        "/*" * MAX_COMMENTS,
        "+" * MAX_OPERATOR,
        "\ufeff",
    ],
)
def test_a_text_that_a_parser_may_see(text: str) -> None:
    assert refused(text) is None


def test_a_megabyte_is_refused_at_once() -> None:
    text = "SELECT '" + "é" * 1_048_576 + "'"
    began = time.perf_counter()
    assert refusal(text)[0] == "oversize"
    assert time.perf_counter() - began < SLOWEST / 4


def test_offsets_are_counted_in_characters() -> None:
    text = "aé€😀z"
    assert [Offsets(text).characters(len(text[:at].encode())) for at in range(6)] == [0, 1, 2, 3, 4, 5]
    assert Offsets("abc").characters(2) == 2


_TIMED: Final = """
import sys, time
from tests.kernel.queries import judged
from tests.kernel.test_sql_text import WORST
judged("SELECT 1")
began = time.process_time()
judged(WORST[sys.argv[1]])
print(time.process_time() - began)
"""


@pytest.mark.parametrize("name", WORST)
def test_the_worst_texts_of_the_largest_size_take_less_than_a_second(name: str) -> None:
    """Processor time of a process that nothing traces: the machine may have other things to do."""
    assert len(WORST[name].encode()) <= MAX_BYTES
    program = [sys.executable, "-c", _TIMED, name]
    done = subprocess.run(program, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    assert float(done.stdout) < SLOWEST


_IN_A_SMALL_THREAD: Final = """
import sys, threading
from tests.kernel.queries import judged
from tests.kernel.test_sql_text import WORST
judged("SELECT 1")
texts = {"a chain of 60 KB": "SELECT 1" + "+1" * 30_000, **WORST}
told = []
threading.stack_size(512 * 1024)
thread = threading.Thread(target=lambda: told.extend(judged(text).verdict for text in texts.values()))
thread.start()
thread.join()
assert len(told) == len(texts)
print(told[0].allow, told[0].family)
"""


def test_no_text_ends_the_process() -> None:
    """The caller's own stack is that of a secondary thread on macOS: what nests is read on another."""
    program = [sys.executable, "-c", _IN_A_SMALL_THREAD]
    done = subprocess.run(program, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False oversize\n", "")
