"""Cedar text as tokens with their places, so that a fault can say where. Knows no engine."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

MAX_NESTING: Final = 32
_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|//[^\r\n]*)
    |"(?:[^"\\]|\\.)*"
    |[A-Za-z_][A-Za-z0-9_]*
    |[0-9]+
    |::|==|!=|<=|>=|&&|\|\|
    |.""",
    re.VERBOSE | re.DOTALL,
)
_LINE_END: Final = re.compile("\n")
MAX_LINKS: Final = 96
_PREFIX: Final = frozenset("!-")
_CHAINING: Final = frozenset({"&&", "||", "+", "-", "*", "when", "unless"})
_BREAKS: Final = frozenset(
    {"==", "!=", "<", "<=", ">", ">=", ",", ";", "{", "then", "else", "in", "like", "is"}
)
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_LOADS: Final = _OPENING | _PREFIX | _CHAINING | {"if", "."}  # whatever nests or chains has one of these


class Token(NamedTuple):
    """One token and its offset in the text, in characters."""

    text: str
    at: int

    @property
    def end(self) -> int:
        """The offset after it."""
        return self.at + len(self.text)


@dataclass(frozen=True, slots=True)
class Place:
    """A line and a column, both counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Statement:
    """The tokens of one policy, up to and with its semicolon."""

    tokens: tuple[Token, ...]

    @property
    def start(self) -> int:
        """The offset of the first token."""
        return self.tokens[0].at

    @property
    def end(self) -> int:
        """The offset after the last token."""
        return self.tokens[-1].end

    def find(self, *words: str) -> int:
        """Return the offset of the first token that is one of ``words``, else of the statement."""
        return next((each.at for each in self.tokens if each.text in words), self.start)


def quoted(text: str) -> str:
    """Return ``text`` as a Cedar string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped)}"'


def printable(text: str) -> str:
    """Return ``text`` on one line: what does not print is escaped as Cedar does."""
    return "".join(each if each.isprintable() else f"\\u{{{ord(each):x}}}" for each in text)


def tokens(text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """Yield the tokens of a text or a part of it; white space and comments are none. Linear in the text."""
    for match in _TOKEN.finditer(text, start, len(text) if end is None else end):
        if match.lastgroup is None:
            yield Token(match[0], match.start())


class Lines:
    """Where the lines of a text begin, so that the place of each of many offsets is found at once."""

    def __init__(self, text: str) -> None:
        self._starts = (0, *(match.end() for match in _LINE_END.finditer(text)))

    def place(self, at: int) -> Place:
        """Return the place of an offset."""
        line = bisect_right(self._starts, at)
        return Place(line, at - self._starts[line - 1] + 1)


def place(text: str, at: int) -> Place:
    """Return the place of one offset; for many of one text take ``Lines``."""
    return Lines(text).place(at)


def statements(text: str) -> Iterator[Statement]:
    """Split a text at the semicolons outside brackets; what follows the last one is a statement too."""
    held: list[Token] = []
    depth = 0
    for token in tokens(text):
        held.append(token)
        depth = max(0, depth + (token.text in _OPENING) - (token.text in _CLOSING))
        if token.text == ";" and depth == 0:
            yield Statement(tuple(held))
            held = []
    if held:
        yield Statement(tuple(held))


def schema_too_deep(text: str) -> Strain | None:
    """Return where a schema nests more than 32 levels of brackets, angle brackets included."""
    depth = 0
    for token in tokens(text):
        depth = max(0, depth + (token.text in "([{<") - (token.text in ")]}>"))
        if depth > MAX_NESTING:
            return Strain(token.at, f"more than {MAX_NESTING} levels of nesting")
    return None


def too_deep(text: str) -> Strain | None:
    """Return where a policy is too much for the engine's stack, before any parser sees it.

    Brackets, prefix operators and ``if`` may nest 32 levels; a chain of one binary operator, of
    conditions, or of attributes and method calls, may have 96 links: each is one level for the engine.
    """
    return strain(tuple(tokens(text)))


def strain(held: Sequence[Token]) -> Strain | None:
    """Return the same for tokens at hand."""
    if sum(token.text in _LOADS for token in held) <= MAX_NESTING:
        return None
    load = _Load()
    for token in held:
        why = load.add(token.text)
        if why:
            return Strain(token.at, why)
    return None


@dataclass(frozen=True, slots=True)
class Strain:
    """Where a text passes what the engine's stack can bear, and how."""

    at: int
    why: str


class _Load:
    """How deep the tokens of a policy have nested, and how long its chains are, so far."""

    def __init__(self) -> None:
        self.depth = self.prefixes = self.branches = self.links = 0
        self.chains: dict[str, int] = {}
        self.before = ""

    def add(self, mark: str) -> str:
        """Take one token; return why it is one too many, or nothing."""
        self.depth = max(0, self.depth + (mark in _OPENING) - (mark in _CLOSING))
        self.prefixes = self.prefixes + 1 if mark in _PREFIX and self.before in _PREFIX else 0
        self._link(mark)
        if mark == ";":
            self.branches, self.chains = 0, {}
        elif mark == "if":
            self.branches += 1
        elif mark in _CHAINING:
            self.chains[mark] = self.chains.get(mark, 0) + 1
        self.before = mark
        if max(self.depth, self.prefixes, self.branches) > MAX_NESTING:
            return f"more than {MAX_NESTING} levels of nesting"
        if max(self.links, *self.chains.values(), 0) > MAX_LINKS:
            return f"a chain of more than {MAX_LINKS} links"
        return ""

    def _link(self, mark: str) -> None:
        if mark == "." or (mark == "[" and (self.before in ("]", ")") or self.before[:1].isidentifier())):
            self.links += 1
        elif mark in _CHAINING or mark in _BREAKS:
            self.links = 0


def first_unexpected(text: str, statement: Statement, ends_early: Callable[[str], bool]) -> int:
    """Return the offset of the token that a parser stumbles over.

    ``ends_early(prefix)`` says that a prefix is refused only because it ends. A prefix that goes on
    validly stays so when shortened, so a binary search finds the first token that breaks it.
    """
    low, high = 0, len(statement.tokens) - 1
    while low < high:
        middle = (low + high) // 2
        if ends_early(text[statement.start : statement.tokens[middle].end]):
            low = middle + 1
        else:
            high = middle
    return statement.tokens[low].at
