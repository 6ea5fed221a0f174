"""A template read backwards: what it expands to, it matches, with the values it was expanded with.

The oracle expands as RFC 6570 says (level 1, and reserved expansion) and knows no pattern.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.kernel.uri_template import (
    MAX_URI_CHARS,
    MAX_VARIABLES,
    TemplateRefused,
    UriTemplate,
    is_template,
    is_uri,
)

RESERVED = ":/?#[]@!$&'()*+,;="
words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


def expanded(template: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", quote(value, safe=""))
        template = template.replace(f"{{+{name}}}", quote(value, safe=RESERVED))
    return template


@given(words, words)
def test_what_a_template_expands_to_is_one_of_it(one: str, two: str) -> None:
    for text in ("t://{one}/{two}", "t:{one}/x/{two}?z", "t://a/{one}/{+two}", "t://{one}#{+two}"):
        values = {"one": one, "two": two}
        assert UriTemplate(text).match(expanded(text, values)) == values


@given(words)
def test_a_name_between_other_text_is_whole(value: str) -> None:
    assert UriTemplate("t://x.{id}.y/").match(expanded("t://x.{id}.y/", {"id": value})) == {"id": value}


ONE, REST = UriTemplate("t://posts/{id}"), UriTemplate("t://files/{+path}/raw")
PAIR = UriTemplate("t://{one}-{two}")  # a name ends where what stands behind it first begins
MATCHES: tuple[tuple[UriTemplate, str, Mapping[str, str] | None], ...] = (
    (ONE, "t://posts/1", {"id": "1"}),
    (ONE, "t://posts/%31", {"id": "1"}),
    (ONE, "t://posts/%C3%BC", {"id": "\u00fc"}),
    (ONE, "t://posts/%2F", {"id": "/"}),
    (ONE, "t://posts/..", {"id": ".."}),
    (ONE, "t://posts/%", {"id": "%"}),
    (ONE, "t://posts/%zz", {"id": "%zz"}),
    (ONE, "t://posts/a+b", {"id": "a+b"}),
    (ONE, "t://posts/%00", {"id": "\0"}),
    (ONE, "t://posts/{id}", {"id": "{id}"}),
    (ONE, "t://posts/", None),
    (ONE, "t://posts", None),
    (ONE, "t://posts/1/", None),
    (ONE, "t://posts/1/2", None),
    (ONE, "t://posts/1?x", None),
    (ONE, "t://posts/1#x", None),
    (ONE, "t://posts/1\n", None),
    (ONE, "t://posts/a b", None),
    (ONE, "t://posts/\u00fc", None),
    (ONE, "t://posts/\x7f", None),
    (ONE, "t://posts/%FF", None),
    (ONE, "t://posts/%C3", None),
    (ONE, "T://posts/1", None),
    (ONE, "xt://posts/1", None),
    (ONE, "", None),
    (REST, "t://files/a/b/raw", {"path": "a/b"}),
    (REST, "t://files/a?b#c/raw", {"path": "a?b#c"}),
    (REST, "t://files/raw/raw/raw", {"path": "raw/raw"}),
    (REST, "t://files//raw", None),
    (REST, "t://files/a/rawx", None),
    (REST, "t://files/a b/raw", None),
    (PAIR, "t://a-b", {"one": "a", "two": "b"}),
    (PAIR, "t://a-b-c", {"one": "a", "two": "b-c"}),
    (PAIR, "t://-b", None),
    (PAIR, "t://a-", None),
    (PAIR, "t://--", None),
    (PAIR, "t://a", None),
    (PAIR, "t://a%2Db-c", {"one": "a-b", "two": "c"}),
)


@pytest.mark.parametrize(("template", "uri", "told"), MATCHES)
def test_which_uri_is_one_of_a_template(
    template: UriTemplate, uri: str, told: Mapping[str, str] | None
) -> None:
    assert template.match(uri) == told


@pytest.mark.parametrize("text", ["t.x+y-1://{a}", "t://a.b(c)*[d]$^|{a}"])
def test_what_stands_between_is_taken_by_the_letter(text: str) -> None:
    assert UriTemplate(text).match(text.replace("{a}", "1")) == {"a": "1"}
    assert UriTemplate(text).match(text.replace("{a}", "1").replace(".", "x")) is None


def test_a_uri_beyond_the_limit_is_none_of_it() -> None:
    room = MAX_URI_CHARS - len("t://posts/")
    assert ONE.match("t://posts/" + "x" * room) == {"id": "x" * room}
    assert ONE.match("t://posts/" + "x" * (room + 1)) is None


LONG = {
    "two names with a mark between": ("t://{a}-{b}x", "-"),
    "two paths": ("t://{+a}/{+b}/x", "/"),
    "names in one segment": ("t://{a}-{b}-{c}-{d}x", "-"),
    "a path among names": ("t://{a}.{+b}.{c}.x", "."),
    "one name": ("t://{a}.x", "."),
}


@pytest.mark.parametrize("name", LONG)
def test_a_uri_that_almost_fits_costs_little(name: str) -> None:
    """Anybody who sees a template can send any URI: it must not stop the server."""
    text, mark = LONG[name]
    template, uri = UriTemplate(text), "t://" + mark * (MAX_URI_CHARS - 5) + "y"
    started = time.perf_counter()
    assert template.match(uri) is None
    assert time.perf_counter() - started < 0.05


REFUSED = {
    "t://{id": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "t://id}": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "t://{}": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "t://{a,b}": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "t://{#a}": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "t://{a*}": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "t://{1a}": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "t://{{a}}": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "t:// {a}": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "t://\u00fc/{a}": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "{a}": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "{a}://x": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "t{a}://x": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "/x/{a}": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "T://{a}": "takes `{name}` and `{+name}` in an absolute URI, and nothing else",
    "t://{a}/{a}": "names a variable twice, or more than 8",
    "t://{a}/{+a}": "names a variable twice, or more than 8",
    "t://"
    + "/".join(f"{{a{at}}}" for at in range(MAX_VARIABLES + 1)): "names a variable twice, or more than 8",
    "t://{a}{b}": "has two variables with nothing between them",
    "t://{a}{+b}": "has two variables with nothing between them",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_template_that_cannot_be_read_backwards_is_refused(text: str) -> None:
    with pytest.raises(TemplateRefused) as told:
        UriTemplate(text)
    assert str(told.value) == REFUSED[text]


def test_a_template_may_have_as_many_variables_as_the_limit() -> None:
    text = "t://" + "/".join(f"{{a{at}}}" for at in range(MAX_VARIABLES))
    assert UriTemplate(text).names == tuple(f"a{at}" for at in range(MAX_VARIABLES))


def test_templates_compare_by_their_text() -> None:
    assert UriTemplate("t://{a}") == UriTemplate("t://{a}") != UriTemplate("t://{b}")
    assert "_pattern" not in repr(ONE)


@pytest.mark.parametrize(
    ("text", "template"), [("t://a", False), ("t://{a}", True), ("t://{a", True), ("t://a}", True)]
)
def test_a_declared_uri_with_a_brace_means_to_be_a_template(text: str, template: bool) -> None:
    assert is_template(text) is template


@pytest.mark.parametrize(
    ("text", "absolute"),
    [
        ("app://x", True),
        ("a:b", True),
        ("a1+.-:", True),
        ("app://x?y#z", True),
        ("t:" + "x" * (MAX_URI_CHARS - 2), True),
        ("t:" + "x" * (MAX_URI_CHARS - 1), False),
        ("", False),
        ("x", False),
        ("/x", False),
        ("://x", False),
        ("1a:x", False),
        ("App://x", False),
        ("app://a b", False),
        ("app://\u00fc", False),
        ("app://x\n", False),
        ("a_b:x", False),
    ],
)
def test_a_resource_has_an_absolute_uri(text: str, absolute: bool) -> None:
    assert is_uri(text) is absolute
