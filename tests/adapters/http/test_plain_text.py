"""What a person is shown of a value: all of it, and nothing that looks like something else."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.adapters.http.plain_text import Piece, alphabets, pieces, segments

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def back(parts: tuple[Piece, ...]) -> str:
    """The text again: a named character by its code."""
    return "".join(each.text if each.name is None else chr(int(f"0x{each.text[2:]}", 0)) for each in parts)


@given(VALUES)
def test_what_is_shown_is_the_value_and_nothing_else(value: object) -> None:
    told = segments(value)  # type: ignore[arg-type]  # JSON, by the strategy
    assert json.loads("".join(back(each.pieces) for each in told)) == value


@given(VALUES)
def test_each_string_stands_apart(value: object) -> None:
    for each in segments(value):  # type: ignore[arg-type]  # JSON, by the strategy
        text = back(each.pieces)
        assert (text.startswith('"') and text.endswith('"')) is each.string
        if not each.string:
            assert text.isascii()  # nothing that turns a direction stands between strings


INVISIBLE = (
    *"\u200b\u200c\u200d\u2060\ufeff",  # of no width
    *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",  # of direction
    *"\u00a0\u2003\u2009\u202f\u3000\u1680",  # spaces that are not the space
    *"\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u180b\ufe0f\U000e0101\U000e0041",  # drawn as nothing
    *"\u2028\u2029\u0085\u00ad\x7f\x9f\ud800\ue000",
)


@pytest.mark.parametrize("char", INVISIBLE, ids=lambda char: f"{ord(char):04X}")
def test_a_character_that_shows_nothing_is_named(char: str) -> None:
    code, name = f"U+{ord(char):04X}", unicodedata.name(char, "a character without a name")
    assert pieces(f"a{char}b") == (Piece("a"), Piece(code, name), Piece("b"))


@pytest.mark.parametrize("text", ["a b~!", "ä", "日本語", "שלום", "नमस्ते", "ไทย", "é", "\u0301", "😀"])
def test_what_can_be_seen_is_shown_as_it_is(text: str) -> None:
    assert pieces(text) == (Piece(text),)


@pytest.mark.parametrize(
    ("value", "mixed"),
    [
        ("раypal", ("CYRILLIC", "LATIN")),
        ({"key": ["fine", {"аdmin": 1}]}, ("CYRILLIC", "LATIN")),
        ("οnline", ("GREEK", "LATIN")),
        ("Москва and Paris", ()),
        ("日本のLINEアプリ", ()),
        ("naïve café", ()),
        (12, ()),
    ],
)
def test_a_word_of_two_alphabets_is_pointed_out(value: object, mixed: tuple[str, ...]) -> None:
    assert alphabets(value) == mixed  # type: ignore[arg-type]  # JSON
