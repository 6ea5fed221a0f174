"""A value as a person can trust to have seen it: its JSON, and a name for what would deceive the eye.

Named is what shows nothing, what is spelled so that it looks like another text, and marks that pile up over
other lines. Knows no page: it returns the parts of a text, each to be shown as it is or by its name.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...kernel.strict_json import Json

MAX_MARKS: Final = 4  # on one letter; scripts need three
_STRING: Final = re.compile(r'("(?:[^"\\]|\\.)*")', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
_UNUSUAL: Final = re.compile(r"[^\n -~]")  # JSON escapes the line end within a string
# controls, formats (bidirectional marks, joiners, tags), halves, private and unassigned ones, separators
_SHOWS_NOTHING: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
# letters, marks and signs by their category, and drawn as nothing (Unicode, Default_Ignorable_Code_Point)
_DRAWN_AS_NOTHING: Final = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x2800, 0x2800),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),
        (0xFFA0, 0xFFA0),
        (0xE0100, 0xE01EF),
    )
    for code in range(first, last + 1)
)
_TOGETHER: Final = frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "LATIN", "FULLWIDTH"})


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text; with ``name``, one character that is to be named where it stands."""

    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """Neighbouring pieces. A ``string`` is one of the value's own: its direction must end with it."""

    pieces: tuple[Piece, ...]
    string: bool = False


def segments(value: Json) -> tuple[Segment, ...]:
    """Return a value as indented JSON (RFC 8259), its strings apart from what holds them together."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    parts = enumerate(_STRING.split(text))
    return tuple(Segment(pieces(part), bool(place % 2)) for place, part in parts if part)


def pieces(text: str) -> tuple[Piece, ...]:
    """Return a text in pieces: what can be seen, and the names of what cannot."""
    return tuple(_pieces(text))


def _pieces(text: str) -> Iterator[Piece]:
    start = 0
    for place in _named(text):
        if start < place:
            yield Piece(text[start:place])
        start, char = place + 1, text[place]
        yield Piece(f"U+{ord(char):04X}", unicodedata.name(char, "a character without a name"))
    if start < len(text):
        yield Piece(text[start:])


def _named(text: str) -> Iterator[int]:
    """Yield where a character stands that is to be named."""
    respelled = not unicodedata.is_normalized("NFC", text)
    last, marks = -1, 0
    for found in _UNUSUAL.finditer(text):
        place, char = found.start(), found[0]
        is_mark = unicodedata.category(char).startswith("M")
        marks = 1 + (marks if last == place - 1 else 0) if is_mark else 0
        last = place
        if _hides(char) or marks > MAX_MARKS or (respelled and (is_mark or _joins(text, place))):
            yield place


def _hides(char: str) -> bool:
    return char in _DRAWN_AS_NOTHING or unicodedata.category(char) in _SHOWS_NOTHING


def _joins(text: str, place: int) -> bool:
    """Whether a character, alone or with the one before, is another spelling of what looks the same (NFC)."""
    pair = text[max(place - 1, 0) : place + 1]
    return not unicodedata.is_normalized("NFC", pair)


def alphabets(value: Json) -> tuple[str, ...]:
    """Return the alphabets that some word of the value mixes: one can be taken for the other.

    The alphabet of a letter is the first word of its name.
    """
    found = set[str]()
    text = _ESCAPE.sub(" ", json.dumps(value, ensure_ascii=False))
    for word in re.findall(r"\w+", text):
        mixed = {unicodedata.name(char, "?").partition(" ")[0] for char in word if char.isalpha()}
        if len(mixed) > 1 and not mixed <= _TOGETHER:
            found |= mixed
    return tuple(sorted(found))
