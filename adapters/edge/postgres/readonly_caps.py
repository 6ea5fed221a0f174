"""The limits of an answer: how a query is asked so that the server keeps to them, how rows are read and cut.

Sends nothing. The row limit and the cell limit are part of what the server runs, so no answer that comes
over the connection is larger than they allow; the byte limit ends an answer once it is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json, to_json

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

MAX_ROWS: Final = 1_000
ROWS: Final = 100
MAX_BYTES: Final = 256 * 1024
MAX_CELL: Final = 64 * 1024
MAX_ROW: Final = 8 * 1024 * 1024
MAX_COLUMNS: Final = 800
_SIZE: Final = "pg_catalog.octet_length(pg_catalog.concat({}))"  # of what the type's own output writes
_HELD: Final = 4 * 1024 * 1024  # bytes of rows that are in memory at once, at most; one row may be larger

CUT: Final = b"cut"
_THERE: Final = ord("1")

# A plan may hold a constant of any size, and EXPLAIN stands in no SELECT: so the server cuts it line by line.
_TEXT, _END = "nonsuch.explained", "nonsuch.cut"
_EXPLAIN: Final = """
DO $outer$
DECLARE
  line text;
  told text := '';
  ending text := '1';
BEGIN
  FOR line IN EXECUTE $inner${text}$inner$ LOOP
    IF octet_length(told) + octet_length(line) >= {most} THEN
      ending := '{cut}';
      EXIT;
    END IF;
    told := told || line || E'\\n';
  END LOOP;
  EXECUTE 'SET LOCAL {keep} = ' || quote_literal(rtrim(told, E'\\n'));
  EXECUTE 'SET LOCAL {end} = ' || quote_literal(ending);
END
$outer$
"""
PLAN: Final = (
    f"SELECT line, current_setting('{_END}')"  # noqa: S608  (constants of ours)
    f" FROM unnest(string_to_array(current_setting('{_TEXT}'), E'\\n')) line"
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an answer: its name, the OID of its type, and what was declared beside that."""

    name: str
    type: int
    modifier: int = -1


def rows_of(limit: int | None) -> int:
    """Return how many rows an answer may have: what is asked for, into the ceiling and never past it."""
    return ROWS if limit is None else max(1, min(limit, MAX_ROWS))


def cell_of(columns: int) -> int:
    """Return how many bytes a cell may have: a row of many columns stays below ``MAX_ROW``."""
    return min(MAX_CELL, MAX_ROW // max(columns, 1))


def capped(text: str, columns: int, rows: int) -> str:
    """Return a query that asks for one row more than ``rows`` of what ``text`` selects, in cells of a size.

    A cell is measured as it would be sent. One that is too large becomes null, and the last column tells,
    a digit for each column, which are not null in truth. ``text`` is one SELECT that a server has read by
    itself, so nothing in it can end the brackets.
    """
    names = [f"c{each}" for each in range(columns)]
    if not names:
        return f"SELECT '' FROM (\n{text}\n) AS q LIMIT {rows + 1}"  # noqa: S608  (as below)
    limit = cell_of(columns)
    cells = ", ".join(f"CASE WHEN {_SIZE.format(each)} <= {limit} THEN {each} END" for each in names)
    there = _joined([f"pg_catalog.num_nonnulls({each})" for each in names])
    listed = f"{cells}, {there} FROM (\n{text}\n) AS q({', '.join(names)})"
    return f"SELECT {listed} LIMIT {rows + 1}"


def _joined(digits: Sequence[str]) -> str:
    """A function takes a hundred arguments, so they are joined in parts."""
    parts = [", ".join(digits[at : at + 50]) for at in range(0, len(digits), 50)]
    return f"pg_catalog.concat({', '.join(f'pg_catalog.concat({each})' for each in parts)})"


def explaining(text: str) -> str:
    """Return a statement that runs an EXPLAIN and keeps as much of its plan as an answer may hold.

    The text stands in it between two marks that it does not hold.
    """
    outer, inner = (_mark(text, name) for name in ("outer", "inner"))
    made = _EXPLAIN.format(text=text, most=MAX_BYTES, cut=CUT.decode(), keep=_TEXT, end=_END)
    head, body, tail = made.partition(text)
    frame = (each.replace("$outer$", outer).replace("$inner$", inner) for each in (head, tail))
    return body.join(frame)


def _mark(text: str, name: str) -> str:
    number = next(each for each in range(len(text) + 1) if f"${name}{each}" not in text)
    return f"${name}{number}$"


def chunk_of(columns: int) -> int:
    """Return how many rows to take at once."""
    return max(1, min(128, _HELD // (cell_of(columns) * max(columns, 1))))


def columns_of(described: PGresult) -> tuple[Column, ...]:
    """Return the columns of a described statement."""
    return tuple(
        Column(
            (described.fname(each) or b"").decode(errors="replace"),
            described.ftype(each),
            described.fmod(each),
        )
        for each in range(described.nfields)
    )


@dataclass(slots=True)
class Rows:
    """Rows as they come, and what of them is left out."""

    columns: tuple[Column, ...]
    limit: int
    kept: list[list[Any]] = field(default_factory=list[list[Any]])
    bytes: int = 0
    cut: set[str] = field(default_factory=set[str])
    received: int = 0

    @property
    def ended(self) -> bool:
        """Whether the answer is as long as it may be."""
        return not self.cut.isdisjoint({"rows", "bytes"})

    def take(self, result: PGresult) -> None:
        """Keep what of some rows is within the limits. What comes after the end of an answer is left out."""
        if self.ended:
            self.received += sum(map(_size, _values(result, len(self.columns) + 1)))
            return
        readers = [_READERS.get(each.type, _text) for each in self.columns]
        for values in _values(result, len(self.columns) + 1):
            there = values.pop() or b""
            row = [None if each is None else read(each) for each, read in zip(values, readers, strict=True)]
            if not self._fits(row):
                return
            if None in values and _cut(values, there):
                self.cut.add("cells")
            if there == CUT:
                self.cut.add("bytes")

    def _fits(self, row: list[Any]) -> bool:
        """Keep a row if it is within the limits of rows and of bytes, as JSON."""
        size = len(to_json(row)) + 1
        full = len(self.kept) == self.limit
        if full or self.bytes + size > MAX_BYTES:
            self.cut.add("rows" if full else "bytes")
            return False
        self.kept.append(row)
        self.bytes += size
        return True


def _cut(values: Sequence[bytes | None], there: bytes) -> bool:
    """Whether a cell is null that was none."""
    return any(each is None and mark == _THERE for each, mark in zip(values, there, strict=False))


def _values(result: PGresult, columns: int) -> Iterator[list[bytes | None]]:
    value, places = result.get_value, range(columns)
    for row in range(result.ntuples):
        yield [value(row, column) for column in places]


def _size(values: list[bytes | None]) -> int:
    return sum(len(each) for each in values if each is not None)


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _number(value: bytes) -> int | str:
    return int(value)


def _real(value: bytes) -> float | str:
    """JSON has no infinity and no NaN: they stay what the server wrote."""
    number = float(value)
    return number if number - number == 0 else _text(value)


def _json(value: bytes) -> Any:
    """A document that nests deeper than can be read stays a text, and so does one with a number beyond."""
    try:
        read = from_json(value, allow_inf_nan=False)
        return _text(value) if b"Infinity" in to_json(read) else read
    except (ValueError, RecursionError):
        return _text(value)


# By the OIDs that every PostgreSQL has: bool, int8, int2, int4, oid, float4, float8, json, jsonb. Numeric
# stays a text, for a JSON number is read as a float by many.
_READERS: Final[Mapping[int, Callable[[bytes], Any]]] = {
    16: lambda value: value == b"t",
    **dict.fromkeys((20, 21, 23, 26), _number),
    **dict.fromkeys((700, 701), _real),
    **dict.fromkeys((114, 3802), _json),
}
