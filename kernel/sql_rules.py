"""What stands in a statement -> facts: full names, and what of it is no read. Decides nothing by itself.

What is not known to only read becomes an offence of a family, and the policies decide over families
(``policies/never.cedar``, ``policies/sql.cedar``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .sql_columns import ALL, MAX_COLUMNS, columns
from .sql_facts import Call, Notation, Offence, Piece, Relation, SqlFacts, shown
from .sql_families import SAMPLINGS
from .sql_found import Found, Spot
from .sql_names import Resolver
from .sql_text import Offsets


@dataclass(frozen=True, slots=True)
class _Dotted:
    """A name behind a dot that may be a call: ``(x).f``, or ``a.f`` of a function ``a`` in FROM."""

    spot: Spot
    notation: Notation

    @property
    def name(self) -> str:
        return self.spot.names[-1]


def facts(found: Found, names: Resolver, offsets: Offsets) -> SqlFacts:
    """Return the facts of what was found; ``offsets`` counts in characters what the tree counts in bytes."""
    dotted = tuple(_dotted(found))
    attributes = [each for each in dotted if not names.knows(each.name)]
    operators = ((each, names.full("operators", each.names)) for each in found.operators)
    types = ((each, names.full("types", each.names)) for each in found.types)
    read = columns(found)
    told = (*found.refused, *_offences(found, dotted, names), *_too_many(read))
    return SqlFacts(
        kinds=tuple(found.kinds),
        relations=tuple(_relations(found, names, read, offsets)),
        calls=tuple(_called(found, dotted, names, offsets)),
        attributes=tuple(_piece(each.spot, (each.name,), offsets) for each in attributes),
        fields=tuple(_piece(each, each.names[-1:], offsets) for each in _fields(found)),
        operators=tuple(_piece(spot, full, offsets) for spot, full in operators),
        types=tuple(_piece(spot, full, offsets) for spot, full in types),
        explain=tuple(found.explain),
        settings=tuple(found.settings),
        offences=tuple(replace(each, at=_at(each.at, offsets)) for each in told),
    )


def _piece(spot: Spot, full: tuple[str, ...], offsets: Offsets) -> Piece:
    return Piece(shown(".".join(spot.names)), full, _at(spot.at, offsets))


def _at(at: int | None, offsets: Offsets) -> int | None:
    return None if at is None else offsets.characters(at)


def _too_many(read: list[frozenset[str]] | None) -> Iterator[Offence]:
    if read is None:
        yield Offence("oversize", "", None, f"the columns it may read are more than {MAX_COLUMNS}")


def _dotted(found: Found) -> Iterator[_Dotted]:
    """Yield every name behind a dot that may be a call of a built-in function.

    Of a table only functions of the app's own can be called so: none that comes with a server takes a row.
    """
    yield from (_Dotted(each, "attribute") for each in found.attributes)
    for each in found.columns:
        if (
            len(each.names) == 2
            and (found.anonymous or each.names[0] in found.callers)
            and each.names[1] != "*"
        ):
            yield _Dotted(each, "column")


def _fields(found: Found) -> Iterator[Spot]:
    """Yield what stands behind the name of a query or a join in FROM."""
    rows = found.rows | found.joins
    yield from (each for each in found.columns if len(each.names) == 2 and each.names[0] in rows)


def _relations(
    found: Found, names: Resolver, read: list[frozenset[str]] | None, offsets: Offsets
) -> Iterator[Relation]:
    of_each = read if read is not None else [ALL] * len(found.tables)
    for table, held in zip(found.tables, of_each, strict=True):
        yield Relation(_piece(table.spot, names.relation(table.spot.names), offsets), held)


def _called(found: Found, dotted: tuple[_Dotted, ...], names: Resolver, offsets: Offsets) -> Iterator[Call]:
    for spot in found.calls:
        yield Call(_piece(spot, names.full("functions", spot.names), offsets), "call", spot.arguments)
    for each in dotted:
        if names.knows(each.name):
            piece = _piece(each.spot, names.full("functions", (each.name,)), offsets)
            yield Call(piece, each.notation, 1)


def _offences(found: Found, dotted: tuple[_Dotted, ...], names: Resolver) -> Iterator[Offence]:
    for spot in found.calls:
        family = names.call(spot.names, spot.arguments)
        if family is not None:
            yield _offence(family, spot)
    for each in dotted:
        family = names.behind_dot(each.name)
        if family is not None:
            yield _offence(family, Spot((each.name,), None))  # it stands where the name does
    yield from _unlisted(found, names)


def _unlisted(found: Found, names: Resolver) -> Iterator[Offence]:
    operators = (each for each in found.operators if not names.lists("operators", each.names))
    yield from (_offence("unlisted-operator", each) for each in operators)
    types = (each for each in found.types if not names.lists("types", each.names))
    yield from (_offence("unlisted-type", each) for each in types)
    methods = (each for each in found.samplings if each.names[-1] not in SAMPLINGS or len(each.names) > 1)
    yield from (_offence("unlisted-sampling", each) for each in methods)


def _offence(family: str, spot: Spot) -> Offence:
    return Offence(family, shown(".".join(spot.names)), spot.at)
