"""What is asked of one database about the names in a statement, and what it answers, as values.

Asks nothing itself: ``sql_weigh.py`` yields these questions, and the edge answers them.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final, Literal

from .sql_catalog import BUILT_IN, Own
from .sql_facts import Offence, SqlFacts

SYSTEM: Final = frozenset({BUILT_IN, "information_schema"})
Kind = Literal["functions", "operators", "types"]


@dataclass(frozen=True, slots=True)
class Look:
    """Ask the database for what is behind these names. Answered with ``Live``."""

    functions: frozenset[str]
    operators: frozenset[str]
    types: frozenset[str]
    relations: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Read:
    """Ask for the facts of texts, in order. Answered with a tuple of ``SqlFacts``."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Behind:
    """A function that is of a name, or that an operator or a type of that name calls.

    ``on`` is the schema and the name of what was asked for, the others are of the function itself. ``may``
    says that it may change something by what the catalogue knows: its own label, a definer's rights, a
    language that nobody here reads. ``texts`` are what it runs, as SQL. ``row`` says that its first argument
    can be a row, of one relation or of any.
    """

    kind: Kind
    on: tuple[str, str]
    schema: str
    name: str
    least: int
    most: int | None
    may: bool
    language: str
    extension: str
    texts: tuple[str, ...]
    row: bool

    def takes(self, arguments: int | None) -> bool:
        """Whether it can be called with so many; ``None`` is any number."""
        if arguments is None:
            return True
        return self.least <= arguments and (self.most is None or arguments <= self.most)


@dataclass(frozen=True, slots=True)
class Stored:
    """A relation of the database, and ``texts`` as SQL of what a read of it may run.

    They are what a view selects, the policies of a table, and the types of its columns: a literal beside a
    column becomes a value of its type, by the type's checks and casts. ``foreign`` says that it, or a table
    under it, is kept by another server or program.
    """

    names: tuple[str, str]
    texts: tuple[str, ...]
    columns: frozenset[str]
    foreign: bool


@dataclass(frozen=True, slots=True)
class Live:
    """What a database answered."""

    behind: tuple[Behind, ...] = ()
    stored: tuple[Stored, ...] = ()


Step = Look | Read
Weighing = Generator[Step, "Live | tuple[SqlFacts, ...]", "Weighed"]


@dataclass(frozen=True, slots=True)
class Weighed:
    """What was found: offences that the text does not show, and names that were found to only read."""

    offences: tuple[Offence, ...]
    honest: Own


def lifted(own: Own, honest: Own) -> Own:
    """Return what an app lists together with what was found to only read."""
    return Own(
        own.path,
        own.functions | honest.functions,
        own.operators | honest.operators,
        own.types | honest.types,
        own.relations,
    )
