"""Weighs the names of a statement by what one database says is behind them. Knows no connection.

A name passes only if everything behind it does: the bodies of functions, the definitions of views, the
checks of domains. A label such as IMMUTABLE is a promise of whoever wrote the function, so it alone lets
nothing pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from .sql_catalog import BUILT_IN, Catalogue, Own
from .sql_facts import Offence, Piece, Relation, SqlFacts, full_name, split_name
from .sql_families import TRUSTED, family_of
from .sql_live import SYSTEM, Behind, Kind, Live, Look, Read, Stored, Weighed, Weighing
from .sql_names import Resolver, Spelt

MAX_LEVELS: Final = 8  # views of views, functions in functions
MAX_TEXTS: Final = 256
_FAMILY: Final = {
    "functions": "unlisted-function",
    "operators": "unlisted-operator",
    "types": "unlisted-type",
    "relations": "unlisted-relation",
}
_UNKNOWN: Final = "is not known to only read"
_OF_THE_DATABASE: Final = "is a function of this database that may do more than read"
_DEFERRED: Final = frozenset({"unlisted-function", "unlisted-operator", "unlisted-type"})


@dataclass(frozen=True, slots=True)
class _Root:
    """A name in the statement: of what kind, its full name where it was found, the first piece that is it."""

    kind: Literal["functions", "operators", "types", "relations"]
    full: str
    piece: Piece = field(compare=False)


@dataclass(slots=True)
class _Found:
    """What the weighing has found so far."""

    wrong: dict[_Root, str] = field(default_factory=dict[_Root, str])
    right: set[_Root] = field(default_factory=set[_Root])
    read: set[tuple[_Root, str]] = field(default_factory=set[tuple[_Root, str]])


def weighed(facts: SqlFacts, catalogue: Catalogue, own: Own) -> Weighing:
    """Weigh the names of a statement, level by level: what they name, then what stands behind that."""
    weigher = _Weigher(Resolver(catalogue, own), own)
    level: list[tuple[_Root | None, SqlFacts]] = [(None, facts)]
    for _ in range(MAX_LEVELS):
        live = yield _asked([each for _, each in level])
        assert isinstance(live, Live)  # noqa: S101  (the protocol of this generator)
        texts = [each for root, held in level for each in weigher.level(root, held, live)]
        if not texts:
            return weigher.result()
        read = yield Read(tuple(text for _, text in texts))
        assert isinstance(read, tuple)  # noqa: S101  (the protocol of this generator)
        level = [(root, _body(held)) for (root, _), held in zip(texts, read, strict=True)]
    weigher.too_deep(root for root, _ in level)
    return weigher.result()


class _Weigher:
    def __init__(self, names: Resolver, own: Own) -> None:
        self._names, self._own, self._found = names, own, _Found()

    def result(self) -> Weighed:
        found = self._found
        offences = (
            Offence(_FAMILY[root.kind], root.piece.text, root.piece.at, f"`{root.piece.text}` {why}")
            for root, why in found.wrong.items()
        )
        bad = {(each.kind, each.full) for each in found.wrong}
        good = {(each.kind, each.full) for each in found.right} - bad
        functions, operators, types = (
            frozenset(full for held, full in good if held == kind)
            for kind in ("functions", "operators", "types")
        )
        return Weighed(tuple(offences), Own(functions=functions, operators=operators, types=types))

    def too_deep(self, roots: Iterator[_Root | None]) -> None:
        for root in roots:
            if root is not None:
                self._wrong(root, "goes through more views and functions than are followed")

    def level(self, root: _Root | None, facts: SqlFacts, live: Live) -> list[tuple[_Root, str]]:
        """Weigh the names of one text; return the texts behind them that are yet to be read."""
        if root is not None:
            self._of_a_body(root, facts)
        found = [*self._calls(root, facts, live), *self._dotted(root, facts, live)]
        found += [*self._plain(root, facts, live), *self._casts(root, facts, live)]
        found += self._relations(root, facts, live)
        fresh = [each for each in dict.fromkeys(found) if each not in self._found.read]
        self._found.read.update(fresh)
        if len(self._found.read) > MAX_TEXTS:
            self.too_deep(each for each, _ in fresh)
            return []
        return fresh

    def _of_a_body(self, root: _Root, facts: SqlFacts) -> None:
        """What a body or a definition does besides reading is done by whoever reads through it."""
        for each in facts.offences:
            if each.family not in _DEFERRED:
                what = f" (`{each.text}`)" if each.text else ""
                self._wrong(root, f"does more than read: {each.family}{what}")

    def _wrong(self, root: _Root, why: str) -> None:
        self._found.wrong.setdefault(root, why)

    # functions

    def _calls(self, root: _Root | None, facts: SqlFacts, live: Live) -> Iterator[tuple[_Root, str]]:
        for call in facts.calls:
            spelt = _spelt(call.piece)
            if self._own.has("functions", spelt):
                continue
            held = [
                each
                for each in self._visible("functions", spelt, live)
                if call.notation == "call" or each.takes(1)
            ]
            fitting = [each for each in held if each.takes(call.arguments)]
            yield from self._weigh("functions", root, call.piece, fitting)
            if not fitting and self._names.call(spelt, call.arguments) == _FAMILY["functions"]:
                self._unknown(root, call.piece)

    def _dotted(self, root: _Root | None, facts: SqlFacts, live: Live) -> Iterator[tuple[_Root, str]]:
        """``(x).f`` and ``t.f`` call a function ``f`` of the app's own, if there is no such field."""
        for piece in facts.attributes:
            held = self._visible("functions", (piece.names[0],), live)
            yield from self._weigh("functions", root, piece, [each for each in held if each.takes(1)])
        for name, piece in _of_rows(facts, live):
            held = self._visible("functions", (name,), live)
            called = [each for each in held if each.takes(1) and each.row]
            yield from self._weigh("functions", root, piece, called)

    def _visible(self, kind: Kind, spelt: Spelt, live: Live) -> list[Behind]:
        """Return what a name may mean here besides what the system has by it."""
        schemas = spelt[:-1] or self._own.path
        return [
            each
            for each in live.behind
            if each.kind == kind and each.on[1] == spelt[-1] and each.on[0] in schemas
        ]

    # operators and types

    def _plain(self, root: _Root | None, facts: SqlFacts, live: Live) -> Iterator[tuple[_Root, str]]:
        pieces: tuple[tuple[Literal["operators", "types"], tuple[Piece, ...]], ...] = (
            ("operators", facts.operators),
            ("types", facts.types),
        )
        for kind, each in pieces:
            for piece in each:
                spelt = _spelt(piece)
                if self._own.has(kind, spelt):
                    continue
                built_in = self._names.lists(kind, spelt)
                held = self._visible(kind, spelt, live)
                if kind == "types" and built_in:
                    continue  # a type is the first of its name, and the system's comes first
                yield from self._weigh(kind, root, piece, held)
                if not held and not built_in:
                    self._unknown(root, piece)

    def _casts(self, root: _Root | None, facts: SqlFacts, live: Live) -> Iterator[tuple[_Root, str]]:
        """What the database added to the system's own types: a cast of one into another calls it."""
        named = {_spelt(piece)[-1]: piece for piece in facts.types}
        for each in live.behind:
            if each.kind == "types" and each.on[0] == BUILT_IN and not self._own.has("types", each.on):
                piece = named.get(each.on[1], Piece(each.on[1], (full_name(*each.on),), None))
                yield from self._weigh("types", root, piece, [each])

    # relations

    def _relations(self, root: _Root | None, facts: SqlFacts, live: Live) -> Iterator[tuple[_Root, str]]:
        for relation in facts.relations:
            there = _stored(relation, live)
            if there is None or full_name(*there.names) in self._own.relations:
                continue
            here = root or _Root("relations", full_name(*there.names), relation.piece)
            if there.foreign:
                self._wrong(here, "is kept outside of this database")
            else:
                yield from ((here, text) for text in there.texts)

    # both

    def _weigh(
        self, kind: Kind, root: _Root | None, piece: Piece, held: list[Behind]
    ) -> Iterator[tuple[_Root, str]]:
        for each in held:
            here = root or _Root(kind, full_name(*each.on), piece)
            self._found.right.add(here)
            why = self._wrong_of(each)
            if why is not None:
                itself = root is None and kind == "functions"
                self._wrong(here, why if itself else f"calls `{each.name}`, which {why}")
            elif not each.extension:
                yield from ((here, text) for text in each.texts)

    def _wrong_of(self, one: Behind) -> str | None:
        """Return what keeps a function from being known to only read, by its catalogue entry."""
        family = family_of(one.name)
        if family is not None:
            return f"is of the family {family}"
        if one.schema in SYSTEM:
            reads = self._names.catalogue.built_in.call(one.name, None) == "reads"
            return None if reads else _UNKNOWN
        if one.extension:
            trusted = one.extension in TRUSTED and not one.may
            return None if trusted else f"is of the extension `{one.extension}`"
        return _OF_THE_DATABASE if one.may or one.language != "sql" else None

    def _unknown(self, root: _Root | None, piece: Piece) -> None:
        """A name in the statement itself is an offence already; in a body it is one now."""
        if root is not None:
            self._wrong(root, f"uses `{piece.text}`, which {_UNKNOWN}")


def _asked(texts: list[SqlFacts]) -> Look:
    functions = {_spelt(call.piece)[-1] for facts in texts for call in facts.calls}
    functions |= {piece.names[0] for facts in texts for piece in (*facts.attributes, *facts.fields)}
    functions |= {name for facts in texts for each in facts.relations for name in each.columns} - {"*"}
    return Look(
        frozenset(functions),
        frozenset(_spelt(piece)[-1] for facts in texts for piece in facts.operators),
        frozenset(_spelt(piece)[-1] for facts in texts for piece in facts.types),
        frozenset(
            names
            for facts in texts
            for each in facts.relations
            for full in each.piece.names
            if len(names := split_name(full)) == 2 and names[0] not in SYSTEM
        ),
    )


def _spelt(piece: Piece) -> Spelt:
    """Return a name as it stands in the text: with its schema, if the text gives it."""
    schema, name = split_name(piece.names[0])
    spelt = f"{schema}.{name}"
    cut = piece.text.endswith("…") and spelt.startswith(piece.text[:-1])
    return (schema, name) if cut or piece.text == spelt else (name,)


def _stored(relation: Relation, live: Live) -> Stored | None:
    """Return the relation that a name means: the first on the path. The system's own are not asked for."""
    by_name = {each.names: each for each in live.stored}
    return next((by_name[names] for names in map(split_name, relation.piece.names) if names in by_name), None)


def _of_rows(facts: SqlFacts, live: Live) -> Iterator[tuple[str, Piece]]:
    """Yield the names behind a row that are no columns of it for sure, each with where it stands.

    A row of one relation passes for one of another, as a child's for its parent's; one of a query for any.
    """
    yield from ((piece.names[0], piece) for piece in facts.fields)
    for relation in facts.relations:
        there = _stored(relation, live)
        for name in relation.columns - {"*"} - (there.columns if there is not None else frozenset()):
            yield name, Piece(name, relation.piece.names, relation.piece.at)


def _body(facts: SqlFacts) -> SqlFacts:
    """A body may speak of its parameters; its statement is a SELECT, and one."""
    told = tuple(each for each in facts.offences if "parameter such as" not in each.why)
    return replace(facts, offences=told)
