"""What a server's catalogue says of built-in names: which functions only read, operators, types, relations.

The text of it is written from a real server (``tests/boundaries/sql_catalog.py``); this module reads the
text and knows no server and no file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from .sql_facts import full_name
from .sql_families import REVIEWED, TRUSTED

BUILT_IN: Final = "pg_catalog"
FORMAT: Final = 1
Answer = Literal["reads", "volatile", "unknown"]
Kind = Literal["functions", "operators", "types", "relations"]


@dataclass(frozen=True, slots=True)
class Overload:
    """One function of a name: whether it may change something, and how many arguments it takes.

    ``most`` is ``None`` where there is no end to them.
    """

    volatile: bool
    least: int
    most: int | None

    def takes(self, arguments: int | None) -> bool:
        """Whether it can be called with so many; ``None`` is any number."""
        if arguments is None:
            return True
        return self.least <= arguments and (self.most is None or arguments <= self.most)


@dataclass(frozen=True, slots=True)
class Names:
    """What one schema, or some extensions, define."""

    functions: Mapping[str, tuple[Overload, ...]] = field(default_factory=dict[str, tuple[Overload, ...]])
    operators: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    relations: frozenset[str] = frozenset()

    def has(self, kind: Kind, name: str) -> bool:
        """Whether it defines something of that name."""
        return name in getattr(self, kind)

    def call(self, name: str, arguments: int | None) -> Answer:
        """Return what a call does, by the overloads that take so many arguments.

        A number that no overload takes is unknown: it is a mistake, or a function of somebody else's.
        """
        fitting = [each for each in self.functions.get(name, ()) if each.takes(arguments)]
        if not fitting:
            return "unknown"
        return "reads" if name in REVIEWED or not any(each.volatile for each in fitting) else "volatile"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The names that a server brings; ``trusted`` are of extensions that define types and what reads them."""

    version: str
    schemas: Mapping[str, Names]
    trusted: Names
    untrusted: frozenset[str]

    @property
    def built_in(self) -> Names:
        """What every statement finds first."""
        return self.schemas[BUILT_IN]


@dataclass(frozen=True, slots=True)
class Own:
    """What an app adds: where its names are looked for, and what of its own only reads.

    ``path`` follows ``pg_catalog``, as the session's ``search_path`` does. The others are full names:
    ``public.price_with_tax``. ``relations`` are views and foreign tables, which only a database can show.
    """

    path: tuple[str, ...] = ("public",)
    functions: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    relations: frozenset[str] = frozenset()

    def has(self, kind: Literal["functions", "operators", "types"], names: tuple[str, ...]) -> bool:
        """Whether the app says that something only reads."""
        return not getattr(self, kind).isdisjoint(self.full(names))

    def full(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the full names that a name may have outside of the catalogue."""
        if len(names) > 1:
            return (full_name(*names),)
        return tuple(full_name(schema, *names) for schema in self.path)

    def finds(self, names: tuple[str, ...]) -> bool:
        """Whether a name is one that the path leads to: where extensions are looked for."""
        return not names[:-1] or ".".join(names[:-1]) in self.path


NOTHING: Final = Own()


def read(text: str) -> Catalogue:
    """Return a catalogue from its text. Raises: ValueError."""
    document = cast("Mapping[str, Any]", json.loads(text))
    if document.get("format") != FORMAT:
        raise ValueError("the catalogue has another format")
    schemas = {name: _names(held) for name, held in document["schemas"].items()}
    extensions = {name: _names(held) for name, held in document["extensions"].items()}
    trusted = [held for name, held in extensions.items() if name in TRUSTED]
    others = [held for name, held in extensions.items() if name not in TRUSTED]
    untrusted = frozenset(name for held in others for name in held.functions)
    return Catalogue(str(document["postgres"]), schemas, _together(trusted), untrusted)


def _names(held: Mapping[str, Any]) -> Names:
    functions = {name: tuple(map(_overload, code.split())) for name, code in held["functions"].items()}
    return Names(functions, *(frozenset(held[kind]) for kind in ("operators", "types", "relations")))


def _overload(code: str) -> Overload:
    """Read ``i2``, ``s1-3`` or ``v0+``: volatility, and how many arguments."""
    least, _, most = code[1:].rstrip("+").partition("-")
    return Overload(code[0] == "v", int(least), None if code.endswith("+") else int(most or least))


def _together(all_: Iterable[Names]) -> Names:
    functions: dict[str, tuple[Overload, ...]] = {}
    for each in all_:
        for name, overloads in each.functions.items():
            functions[name] = (*functions.get(name, ()), *overloads)
    operators, types = (
        frozenset(name for each in all_ for name in getattr(each, kind)) for kind in ("operators", "types")
    )
    return Names(functions, operators, types)
