"""Tokens and their places: what a fault points at, and where a text is too much for the engine."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.kernel import cedar_text
from nonsuch.kernel.policy_text import (
    MAX_LINKS,
    MAX_NESTING,
    Lines,
    Place,
    Statement,
    Strain,
    Token,
    first_unexpected,
    place,
    schema_too_deep,
    statements,
    tokens,
    too_deep,
)

# tokens

TOKENS = {
    "": [],
    " \t\r\n": [],
    "// a comment": [],
    "// one\n// two\r\n": [],
    "a// b\nc": ["a", "c"],
    '"// no comment"': ['"// no comment"'],
    r'"a\"b" c': [r'"a\"b"', "c"],
    r'"a\\" c': [r'"a\\"', "c"],
    '"never closed': ['"', "never", "closed"],
    '"goes on\n (over lines" x': ['"goes on\n (over lines"', "x"],
    "A::B": ["A", "::", "B"],
    "a:b": ["a", ":", "b"],
    "a==b!=c<=d>=e<f>g": ["a", "==", "b", "!=", "c", "<=", "d", ">=", "e", "<", "f", ">", "g"],
    "a=b": ["a", "=", "b"],
    "a&&b||!c": ["a", "&&", "b", "||", "!", "c"],
    "a&b|c": ["a", "&", "b", "|", "c"],
    "_a1 2b": ["_a1", "2", "b"],
    "-9223372036854775808": ["-", "9223372036854775808"],
    "@id": ["@", "id"],
    "?principal": ["?", "principal"],
    "日本": ["日", "本"],
}


@pytest.mark.parametrize("text", TOKENS)
def test_the_tokens_of_a_text(text: str) -> None:
    assert [each.text for each in tokens(text)] == TOKENS[text]


@given(st.text(alphabet='ab1_"\\/&|=!<>:.;,()[]{} \t\r\n@?日#', max_size=60))
def test_tokens_stand_where_they_say_and_leave_out_only_white_space_and_comments(text: str) -> None:
    at = 0
    for token in tokens(text):
        assert re.fullmatch(r"(?:\s|//[^\r\n]*)*", text[at : token.at])
        assert text[token.at : token.end] == token.text != ""
        at = token.end
    assert re.fullmatch(r"(?:\s|//[^\r\n]*)*", text[at:])


# places


def test_a_place_counts_lines_and_characters_from_one() -> None:
    text = "a\nbc\n\n日d"
    found = {offset: str(place(text, offset)) for offset in range(len(text) + 1)}
    assert found == {0: "1:1", 1: "1:2", 2: "2:1", 3: "2:2", 4: "2:3", 5: "3:1", 6: "4:1", 7: "4:2", 8: "4:3"}
    assert place("", 0) == Place(1, 1)


@given(st.text("a\n\r\u2028日", max_size=40))
def test_every_place_of_a_text_is_that_of_its_lines(text: str) -> None:
    """Only a line feed ends a line, as editors and the engine count."""
    lines = Lines(text)
    for at in range(len(text) + 1):
        before = text[:at].split("\n")
        assert lines.place(at) == place(text, at) == Place(len(before), len(before[-1]) + 1)


# statements

STATEMENTS = {
    "": [],
    "// nothing": [],
    "a;": ["a;"],
    "a; b;": ["a;", "b;"],
    "a; b": ["a;", "b"],
    ";;": [";", ";"],
    "a(;);": ["a(;);"],
    "a{[(;)]};b;": ["a{[(;)]};", "b;"],
    "a);b;": ["a);", "b;"],
    "a(;b;": ["a(;b;"],
    'a";";b;': ['a";";', "b;"],
    "a // ;\n;b;": ["a // ;\n;", "b;"],
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_text_is_split_at_the_semicolons_outside_brackets(text: str) -> None:
    assert [text[each.start : each.end] for each in statements(text)] == STATEMENTS[text]


def test_a_statement_finds_the_first_of_some_words_or_itself() -> None:
    (statement,) = statements("  a b c b;")
    assert [statement.find(*words) for words in (["b"], ["c"], ["c", "b"], ["z"], [])] == [4, 6, 4, 2, 2]


# depth


def nested(opening: str, levels: int, closing: str = "") -> str:
    return opening * levels + "x" + closing * levels


NESTING = {
    "brackets": ("(", ")"),
    "lists": ("[", "]"),
    "records": ("{", "}"),
    "mixed brackets": ("([{", "}])"),
    "negations": ("!", ""),
    "minuses": ("-", ""),
    "branches": ("if a then ", " else b"),
}


@pytest.mark.parametrize("what", NESTING)
def test_nesting_is_bounded(what: str) -> None:
    opening, closing = NESTING[what]
    each = 3 if what == "mixed brackets" else 1
    extra = 1 if what in ("negations", "minuses") else 0  # the first prefix operator nests nothing
    most = MAX_NESTING // each + extra
    assert too_deep(nested(opening, most, closing)) is None
    strain = too_deep(nested(opening, most + 1, closing))
    assert strain is not None
    assert strain.why == "more than 32 levels of nesting"
    assert strain.at // len(opening) == most


CHAINS = {
    "conjunctions": "&&",
    "disjunctions": "||",
    "sums": "+",
    "differences": "-",
    "products": "*",
    "attributes": ".",
}


@pytest.mark.parametrize("what", CHAINS)
def test_chains_are_bounded(what: str) -> None:
    link = CHAINS[what]
    assert too_deep("x" + f"{link}x" * MAX_LINKS) is None
    text = "x" + f"{link}x" * (MAX_LINKS + 1)
    at = 1 + MAX_LINKS * (len(link) + 1)
    assert too_deep(text) == Strain(at, "a chain of more than 96 links")


def test_indices_and_calls_are_links_of_a_chain() -> None:
    assert too_deep("x" + '["a"]' * MAX_LINKS) is None
    assert too_deep("x" + '["a"]' * (MAX_LINKS + 1)) == Strain(
        1 + 5 * MAX_LINKS, "a chain of more than 96 links"
    )
    assert too_deep("x" + ".f()" * MAX_LINKS) is None
    assert too_deep("f()" + '["a"]' * (MAX_LINKS + 1)) is not None
    assert too_deep("[" + '["a"], ' * (MAX_LINKS + 1) + "]") is None


@pytest.mark.parametrize(
    "between", ["==", "!=", "<", "<=", ">", ">=", ",", "in", "like", "is", "then", "else", "&&", "||", "+"]
)
def test_an_operator_ends_a_chain_of_attributes(between: str) -> None:
    half = "x" + ".a" * (MAX_LINKS // 2 + 1)
    assert too_deep(f"{half} {between} {half}") is None
    assert too_deep(f"{half} | {half}") is not None


def test_a_semicolon_ends_what_may_be_chained() -> None:
    chain = "x" + "&&x" * MAX_LINKS
    branches = nested("if a then ", MAX_NESTING, " else b")
    assert too_deep(f"{chain};{chain};{branches};{branches}") is None
    assert too_deep(f"{chain}&&x;") is not None
    assert too_deep(f"{branches} {branches}") is not None


def test_what_stands_in_a_string_or_a_comment_nests_nothing() -> None:
    assert too_deep('"' + "(" * 100 + '" // ' + "(" * 100 + "\n(x)") is None


# where a parser stumbles


def stumbles_at(word: str) -> Callable[[str], bool]:
    """A parser that takes everything up to a word."""
    return lambda prefix: not prefix.endswith(word) and f"{word} " not in prefix


@given(st.integers(0, 20), st.integers(1, 21))
def test_the_first_token_that_a_parser_does_not_take_is_found(before: int, after: int) -> None:
    text = "a " * before + "z " + "b " * after
    (statement,) = statements(text)
    assert first_unexpected(text, statement, stumbles_at("z")) == 2 * before


def test_a_text_that_only_ends_too_early_is_unexpected_at_its_last_token() -> None:
    text = "a b c"
    (statement,) = statements(text)
    assert first_unexpected(text, statement, lambda _: True) == 4
    assert first_unexpected("a", Statement((Token("a", 0),)), lambda _: False) == 0


SYNTAX = [
    "permit(principal, action, resource) when { 1 + ‸* 2 };",
    "// c\n\npermit(‸, action, resource);",
    "@id(‸5) permit(principal, action, resource);",
    "permit(principal, action, resource)‸) when { true };",
]


@pytest.mark.parametrize("marked", SYNTAX)
def test_the_engines_own_parser_is_asked_where_it_stumbles(marked: str) -> None:
    text = marked.replace("‸", "")
    (statement,) = statements(text)
    assert first_unexpected(text, statement, cedar_text.ends_early) == marked.index("‸")


@pytest.mark.parametrize("opening", ["(", "[", "{", "({["])
def test_brackets_that_were_closed_before_hide_no_nesting(opening: str) -> None:
    deep = opening * (MAX_NESTING + 1)
    assert too_deep(")]}" * 100 + ";" + deep) is not None
    assert schema_too_deep(")]}>" * 100 + ";" + deep) is not None


LOADS = st.sampled_from(
    ["(", ")", "[", "]", "{", "}", "!", "-", "if", ".", "&&", "||", "+", "*", "when", "a", ";"]
)
RUNS = st.lists(st.tuples(LOADS, st.sampled_from([1, 2, MAX_NESTING, MAX_NESTING + 2])), max_size=4)


@given(RUNS)
def test_only_what_is_short_is_let_through_uncounted(runs: list[tuple[str, int]]) -> None:
    """A text with few tokens that nest is taken as it is; the answer is that of a text with more of them."""
    text = " ".join(word for word, times in runs for _ in range(times))
    padding = " , ".join(["( )"] * (MAX_NESTING + 1))  # loads that nest one level
    assert (too_deep(text) is None) is (too_deep(f"{padding} ; {text}") is None)
