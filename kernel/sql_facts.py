"""What a statement is and does, as plain values: kinds, relations, calls, operators, casts, offences.

Knows no parser, no catalogue and no policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from .policy_text import Place, place, printable

Notation = Literal["call", "attribute", "column"]
MAX_SHOWN: Final = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a statement: what it is called, and where it begins (in characters; ``None``: unknown).

    ``names`` are the full names it may have: an unqualified one is looked for in several schemas.
    """

    text: str
    names: tuple[str, ...]
    at: int | None


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view that the statement reads; ``columns`` may hold ``*``: it may read them all."""

    piece: Piece
    columns: frozenset[str]


@dataclass(frozen=True, slots=True)
class Call:
    """A function that is called: as ``f(x)``, as ``(x).f``, or as ``a.f`` of an alias ``a`` in FROM.

    ``arguments`` is ``None`` where the text does not tell how many there are.
    """

    piece: Piece
    notation: Notation
    arguments: int | None


@dataclass(frozen=True, slots=True)
class Offence:
    """A part of a statement that rules out a read, and its family; ``why`` where that does not say enough."""

    family: str
    text: str
    at: int | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class SqlFacts:
    """What the text of one statement tells. A set of names is never less than what the text says.

    ``kinds`` begins with what the statement is; a statement inside of it follows. ``attributes`` are
    names behind a dot that no built-in function has: fields, or functions of the app's own. ``fields`` are
    names behind that of a query in FROM: columns, or functions of the app's own that take a row.
    ``statement`` is the statement itself, without a semicolon behind it.
    """

    kinds: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    calls: tuple[Call, ...] = ()
    attributes: tuple[Piece, ...] = ()
    fields: tuple[Piece, ...] = ()
    operators: tuple[Piece, ...] = ()
    types: tuple[Piece, ...] = ()
    explain: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    offences: tuple[Offence, ...] = ()
    statement: str = ""

    def __deepcopy__(self, memo: object) -> SqlFacts:
        """Nothing in it can be changed."""
        return self

    @property
    def families(self) -> frozenset[str]:
        """The families of everything that rules out a read."""
        return frozenset(each.family for each in self.offences)

    @property
    def relation_names(self) -> frozenset[str]:
        """Every relation, as ``schema.name``."""
        return _names(each.piece for each in self.relations)

    @property
    def columns(self) -> frozenset[str]:
        """Every column that may be read, as ``schema.relation.column``; ``schema.relation.*`` is any."""
        return frozenset(
            f"{name}.{column}"
            for each in self.relations
            for name in each.piece.names
            for column in each.columns
        )

    @property
    def functions(self) -> frozenset[str]:
        """Every function that is called, as ``schema.name``."""
        return _names(each.piece for each in self.calls)

    @property
    def schemas(self) -> frozenset[str]:
        """Every schema that one of these names is of."""
        tables, calls = (each.piece for each in self.relations), (each.piece for each in self.calls)
        pieces = (*tables, *calls, *self.operators, *self.types)
        return frozenset(schema_of(name) for each in pieces for name in each.names)


def _names(pieces: Iterable[Piece]) -> frozenset[str]:
    return frozenset(name for each in pieces for name in each.names)


def full_name(*parts: str) -> str:
    """Return a name with its schema; a part with a dot, a quote or nothing in it stands in double quotes."""
    return ".".join([_quoted(each) if "." in each or '"' in each or not each else each for each in parts])


def _quoted(part: str) -> str:
    return '"' + part.replace('"', '""') + '"'


def split_name(name: str) -> tuple[str, str]:
    """Return the schema and the rest of a full name, without the quotes around them."""
    schema = schema_of(name)
    return _bare(schema), _bare(name[len(schema) + 1 :])


def _bare(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def schema_of(name: str) -> str:
    """Return the schema of a full name, as it stands there."""
    if not name.startswith('"'):
        return name.partition(".")[0]
    end = 1
    while name[end] != '"' or name[end + 1 : end + 2] == '"':
        end += 1 + (name[end] == '"')
    return name[: end + 1]


def shown(text: str) -> str:
    """Return a part of a statement as a message can hold it: on one line, and not too long of it."""
    one = text if text.isprintable() else printable(text)
    return one if len(one) <= MAX_SHOWN else f"{one[: MAX_SHOWN - 1]}…"


def where(text: str, at: int | None) -> Place | None:
    """Return line and column of an offset."""
    return None if at is None else place(text, at)
