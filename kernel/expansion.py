"""How large the types of schemas become when each is written out where it is named. Knows no engine.

The engine does write them out: twenty-odd types that each name the one before twice are a million.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final

from .policy_text import Strain, Token, tokens

MAX_WORDS: Final = 100_000
_WHY: Final = f"more than {MAX_WORDS} words, with each type written out where it is named"


@dataclass(frozen=True, slots=True)
class _Declaration:
    """A type or entity types: the whole name of a type, its place, the whole names that it may mean."""

    name: str | None
    at: int
    words: int
    names: tuple[tuple[str, str], ...]


class Expansion:
    """The types of some schemas, which may name those of one another."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = {text: tuple(_declarations(text)) for text in texts}
        self._named = {each.name: each for held in self._texts.values() for each in held if each.name}
        self._sizes = self._sized()
        self._words = 0

    def strain(self, text: str) -> Strain | None:
        """Return where a text exceeds what is left of ``MAX_WORDS``; one that does not uses it up."""
        words = self._words
        for each in self._texts[text]:
            words += self._size(each, self._sizes)
            if words > MAX_WORDS:
                return Strain(each.at, _WHY)
        self._words = words
        return None

    def _sized(self) -> Mapping[str, int]:
        sorter = TopologicalSorter({name: self._meant(each) for name, each in self._named.items()})
        sizes: dict[str, int] = {}
        try:
            for name in sorter.static_order():
                sizes[name] = self._size(self._named[name], sizes)
        except CycleError:  # no schema: the engine says so, and writes nothing out
            return {}
        return sizes

    def _size(self, declared: _Declaration, sizes: Mapping[str, int]) -> int:
        return declared.words + sum(sizes.get(name, 0) for name in self._meant(declared))

    def _meant(self, declared: _Declaration) -> list[str]:
        """Return the types that a declaration names, each as often as it does: the nearest is meant."""
        nearest = (next((each for each in names if each in self._named), None) for names in declared.names)
        return [name for name in nearest if name is not None]


def _declarations(text: str) -> Iterator[_Declaration]:
    held = tuple(tokens(text))
    space, depth = "", 0
    at = 0
    while at < len(held):
        mark = held[at].text
        depth += (mark == "{") - (mark == "}")
        space = space if depth else ""
        after = held[at + 1].text if at + 1 < len(held) else ""
        if mark == "namespace" and not depth:
            space, at = _path(held, at + 1)
            continue
        if mark in ("type", "entity") and after.isidentifier():
            end = next((stop for stop in range(at, len(held)) if held[stop].text == ";"), len(held))
            yield _declaration(held[at:end], space)
            at = end
        at += 1


def _declaration(held: Sequence[Token], space: str) -> _Declaration:
    first = held[1]
    whole = _within(space, first.text) if held[0].text == "type" else None
    names: list[tuple[str, str]] = []
    at = 2
    while at < len(held):
        annotation = held[at - 1].text == "@"
        name, at = _path(held, at)
        member = at < len(held) and held[at].text in (":", "?")
        if name and not member and not annotation:
            names.append((_within(space, name), name))
        at += not name
    return _Declaration(whole, first.at, len(held), tuple(names))


def _path(held: Sequence[Token], at: int) -> tuple[str, int]:
    """Return the name that begins at a token, nothing if none does, and where it ends."""
    found: list[str] = []
    while at < len(held) and held[at].text.isidentifier():
        found.append(held[at].text)
        at += 1
        if at == len(held) or held[at].text != "::":
            break
        at += 1
    return "::".join(found), at


def _within(space: str, name: str) -> str:
    return name if "::" in name or not space else f"{space}::{name}"
