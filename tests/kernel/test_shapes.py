"""The typed encoder: a position holds what its declared type says, whatever the value spells.

INVARIANT under test: no input makes the engine read a string, a map or a key as anything but data.
"""

from __future__ import annotations

import enum
import json
import types
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Dict, FrozenSet, List, Literal, Optional, Set, Tuple, Union  # noqa: UP035
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from nonsuch.kernel import cedar, cedar_text
from nonsuch.kernel.policy_text import quoted
from nonsuch.kernel.shapes import (
    LONG_MAX,
    LONG_MIN,
    MAX_DEPTH,
    Shape,
    Unencodable,
    encode_fields,
    entity,
    fields_of,
    record_text,
    shape_of,
    uid,
)
from nonsuch.kernel.unreadable import Unreadable

from .trial import unchecked


class Colour(enum.StrEnum):
    RED = "red"


class Grade(enum.IntEnum):
    ONE = 1


class OldColour(str, enum.Enum):  # noqa: UP042  (test material)
    RED = "red"


class Plain(enum.Enum):
    RED = "red"


class Inner(BaseModel):
    size: int
    note: str | None = None
    ratio: float = 1.0


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Wood(BaseModel):
    tree: Tree
    trees: list[Tree] = []


class Twig(BaseModel):
    left: Twig | None = None
    right: Twig | None = None


UUID_ONE = UUID("6F9619FF-8B86-D011-B42D-00C04FC964FF")

TYPES: list[tuple[Any, str | None]] = [
    (str, "String"),
    (int, "Long"),
    (bool, "Bool"),
    (UUID, "String"),
    (Colour, "String"),
    (OldColour, "String"),
    (Grade, "Long"),
    (Literal["a", "b"], "String"),
    (Literal[1, 2], "Long"),
    (Literal[True], "Bool"),
    (Annotated[str, Field(min_length=1)], "String"),
    (list[str], "Set<String>"),
    (set[int], "Set<Long>"),
    (frozenset[bool], "Set<Bool>"),
    (tuple[str, ...], "Set<String>"),
    (Iterable[str], "Set<String>"),
    (list[list[int]], "Set<Set<Long>>"),
    (list[Annotated[str, "note"]], "Set<String>"),
    (dict[str, int], "Set<{k: String, v: Long}>"),
    (Mapping[str, bool], "Set<{k: String, v: Bool}>"),
    (dict[str, list[str]], "Set<{k: String, v: Set<String>}>"),
    (Inner, '{"size": Long, "note"?: String}'),
    (list[Inner], 'Set<{"size": Long, "note"?: String}>'),
    # what a policy cannot read
    (float, None),
    (Decimal, None),
    (date, None),
    (bytes, None),
    (Any, None),
    (object, None),
    (Plain, None),
    (None, None),
    (str | int, None),
    (Optional[str], None),  # noqa: UP045  (test material)
    (Union[str, int], None),  # noqa: UP007  (test material)
    (list[float], None),
    (list[str | None], None),
    (dict[int, str], None),
    (dict[str, float], None),
    (tuple[str, int], None),
    (tuple[()], None),
    (Literal["a", 1], None),
    (list, None),
    (dict, None),
    (Tuple, None),  # noqa: UP006  (test material)
]


@pytest.mark.parametrize(("annotation", "text"), TYPES, ids=lambda value: str(value))
def test_the_cedar_type_of_a_python_type(annotation: Any, text: str | None) -> None:
    shape = shape_of(annotation)
    assert (shape.text if isinstance(shape, Shape) else None) == text


@pytest.mark.parametrize("annotation", [List, Dict, Set, FrozenSet])  # noqa: UP006  (test material)
def test_a_bare_generic_has_no_cedar_type(annotation: Any) -> None:
    assert isinstance(shape_of(annotation), Unreadable)


WHY: list[tuple[Any, str]] = [
    (float, "declare `Money`, or an `int` of the smallest unit"),
    (list[Decimal], "declare `Money`, or an `int` of the smallest unit"),
    (datetime, "declare an `int`, such as seconds since 1970"),
    (dict[str, timedelta], "declare an `int`, such as seconds since 1970"),
    (bytes, "declare a `str`"),
    (Plain, "make it a `StrEnum` or an `IntEnum`"),
    (str | int, "declare one type; `| None` makes it optional"),
    (Literal["a", 1], "let all literals be strings, or all of them integers"),
    (Any, "declare a model, `str`, `int`, `bool`, or a list of one"),
    (list, "declare a model, `str`, `int`, `bool`, or a list of one"),
    (tuple[str, int], "declare a model, `str`, `int`, `bool`, or a list of one"),
]


@pytest.mark.parametrize(("annotation", "fix"), WHY, ids=str)
def test_what_a_policy_cannot_read_says_what_to_declare(annotation: Any, fix: str) -> None:
    told = shape_of(annotation)
    assert isinstance(told, Unreadable)
    assert told.fix == fix


def encoded(annotation: Any, value: object) -> object:
    shape = shape_of(annotation)
    assert isinstance(shape, Shape)
    return shape.encode(value)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (str, "a", "a"),
        (str, "", ""),
        (str, Colour.RED, "red"),
        (Colour, Colour.RED, "red"),
        (OldColour, OldColour.RED, "red"),
        (int, 0, 0),
        (int, LONG_MIN, LONG_MIN),
        (int, LONG_MAX, LONG_MAX),
        (Grade, Grade.ONE, 1),
        (bool, True, True),
        (bool, False, False),
        (UUID, UUID_ONE, "6f9619ff-8b86-d011-b42d-00c04fc964ff"),
        (UUID, "as text", "as text"),
        (Literal["a"], "a", "a"),
        (list[str], ["a", "a"], ["a", "a"]),
        (list[str], [], []),
        (tuple[int, ...], (1, 2), [1, 2]),
        (dict[str, int], {"a": 1}, [{"k": "a", "v": 1}]),
        (dict[str, int], {}, []),
        (Inner, Inner(size=1), {"size": 1}),
        (Inner, Inner(size=1, note="n", ratio=2.5), {"size": 1, "note": "n"}),
        (dict[str, Inner], {"a": Inner(size=1)}, [{"k": "a", "v": {"size": 1}}]),
    ],
)
def test_a_value_is_encoded_by_its_declared_type(annotation: Any, value: object, expected: object) -> None:
    told = encoded(annotation, value)
    assert told == expected
    assert json.dumps(told) == json.dumps(expected)  # 1 == True, and JSON knows better


INTEGER_64 = "must be an integer of 64 bits, because a policy reads it"


@pytest.mark.parametrize(
    ("annotation", "value", "path", "problem"),
    [
        (str, 1, "", "must be a string"),
        (str, None, "", "must be a string"),
        (str, {"__entity": {"type": "Role", "id": "admin"}}, "", "must be a string"),
        (str, Plain.RED, "", "must be a string"),
        (UUID, 5, "", "must be a string"),
        (int, "1", "", "must be an integer"),
        (int, True, "", "must be an integer"),
        (int, 1.0, "", "must be an integer"),
        (int, LONG_MAX + 1, "", INTEGER_64),
        (int, LONG_MIN - 1, "", INTEGER_64),
        (int, 10**1000, "", INTEGER_64),
        (bool, 1, "", "must be true or false"),
        (bool, "true", "", "must be true or false"),
        (list[str], ["a", 1], "1", "must be a string"),
        (list[list[int]], [[1], [1, "x"]], "1.1", "must be an integer"),
        (dict[str, int], {"secret": "x"}, "value", "must be an integer"),
        (dict[str, int], {1: 1}, "", "must be a string"),
        (Inner, unchecked(Inner, size="x"), "size", "must be an integer"),
        (Inner, unchecked(Inner, size=None), "size", "is missing"),
        (list[Inner], [unchecked(Inner, size=LONG_MAX + 1)], "0.size", INTEGER_64),
    ],
)
def test_what_does_not_fit_is_told_by_path_and_never_repeated(
    annotation: Any, value: object, path: str, problem: str
) -> None:
    with pytest.raises(Unencodable) as caught:
        encoded(annotation, value)
    assert (caught.value.path, caught.value.problem) == (path, problem)
    assert caught.value.args == (problem, path)


def test_a_value_without_a_required_attribute_does_not_fit() -> None:
    """`model_construct` makes such values; the gate must deny them, not fall over them."""
    with pytest.raises(Unencodable) as caught:
        encoded(Inner, unchecked(Inner, note="n"))
    assert (caught.value.path, caught.value.problem) == ("size", "is missing")


def test_what_is_not_iterable_does_not_fit_a_set() -> None:
    for annotation in (list[str], dict[str, str]):
        with pytest.raises(Unencodable):
            encoded(annotation, 5)


# fields


class Everything(BaseModel):
    plain: str
    defaulted: int = 3
    optional: str | None = None
    nullable: Optional[int]  # noqa: UP045  (test material)
    aliased: Annotated[str, Field(alias="wireName")]
    validated: Annotated[str, Field(validation_alias="inName", serialization_alias="outName")]
    constrained: Annotated[int, Field(ge=0)] = 0
    either: str | int = 0
    either_or_none: str | int | None = None
    ratio: float = 1.0
    when: date | None = None


def test_the_fields_of_a_model_under_their_wire_names() -> None:
    assert record_text(fields_of(Everything)) == (
        '{"plain": String, "defaulted": Long, "optional"?: String, "nullable"?: Long, "wireName": String, '
        '"inName": String, "constrained": Long}'
    )


def test_none_is_left_out_and_a_default_is_sent() -> None:
    held = Everything.model_validate({"plain": "p", "nullable": None, "wireName": "w", "inName": "i"})
    assert encode_fields(fields_of(Everything), held) == {
        "plain": "p",
        "defaulted": 3,
        "wireName": "w",
        "inName": "i",
        "constrained": 0,
    }


def test_a_required_field_of_none_does_not_fit() -> None:
    with pytest.raises(Unencodable) as caught:
        encode_fields(fields_of(Inner), types.SimpleNamespace(size=None, note=None))
    assert (caught.value.path, caught.value.problem) == ("size", "is missing")


def depth_of(text: str) -> int:
    deepest = depth = 0
    for mark in text:
        depth += (mark == "{") - (mark == "}")
        deepest = max(deepest, depth)
    return deepest


def test_a_model_that_holds_itself_has_no_such_attribute() -> None:
    """Its shape would be endless, and one that branches would double with every level."""
    assert record_text(fields_of(Tree)) == '{"name": String}'
    assert record_text(fields_of(Twig)) == "{}"
    assert record_text(fields_of(Wood)) == '{"tree": {"name": String}, "trees": Set<{"name": String}>}'


def test_a_recursive_value_is_cut_where_its_type_ends() -> None:
    held = Tree(name="leaf")
    for _ in range(40):
        held = Tree(name="branch", children=[held])
    assert encode_fields(fields_of(Tree), held) == {"name": "branch"}


def test_models_that_nest_beyond_the_cap_have_no_shape() -> None:
    levels: list[type[BaseModel]] = [Inner]
    for level in range(40):
        levels.append(create_model(f"Level{level}", word=(str, ...), inner=(levels[-1], ...)))
    text = record_text(fields_of(levels[-1]))
    assert depth_of(text) == MAX_DEPTH
    cedar.schema(f"entity Deep = {text};")


def test_a_path_grows_outwards() -> None:
    fault = Unencodable("must be a string").under("b").under("a")
    assert (fault.path, fault.problem) == ("a.b", "must be a string")


# literals of Cedar text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS)
@example('"')
@example("\\")
@example('\\"')
@example('"; permit(principal, action, resource);//')
@example("\0\n\r\t\u2028\u202e\x7f'*")
@example("\\u{41}")
def test_a_quoted_text_reads_back_as_itself(text: str) -> None:
    literal = quoted(text)
    assert literal.isprintable()
    (policy,) = cedar_text.parse(
        f"@id({literal}) permit(principal, action, resource == Post::{literal});", "here"
    )
    assert policy.resource == ("Post", text)
    assert policy.id == (text or "here#0")


@given(TEXTS)
def test_a_quoted_text_names_an_attribute(text: str) -> None:
    source = (
        f'permit(principal, action == Action::"x", resource) when {{ context.args[{quoted(text)}] == 1 }};'
    )
    (policy,) = cedar_text.parse(source, "here")
    assert policy.reads == frozenset({text})


def test_entities_are_structured_and_need_no_escaping() -> None:
    assert uid("Post", 'a"b') == {"type": "Post", "id": 'a"b'}
    assert entity("Post", "1", {"org": "acme"}, [uid("Role", "r")]) == {
        "uid": {"type": "Post", "id": "1"},
        "attrs": {"org": "acme"},
        "parents": [{"type": "Role", "id": "r"}],
    }
    assert entity("Post", "1", {}) == {"uid": {"type": "Post", "id": "1"}, "attrs": {}, "parents": []}


# no input switches a policy off: values through the real engine


class Sent(BaseModel):
    text: str
    maybe: str | None = None
    texts: list[str] = []
    pairs: dict[str, str] = {}
    number: int = 0
    flag: bool = False
    inner: dict[str, Leaf] = {}


class Leaf(BaseModel):
    name: str


Sent.model_rebuild()

ESCAPES = [
    '{"__entity":{"type":"Agent","id":"root"}}',
    '{"__extn":{"fn":"unknown","arg":"x"}}',
    '{"__expr":"true"}',
    "__entity",
    "__extn",
    "__expr",
    "forbidden",
    "forbidden ",
    '"',
    "\\",
    "*",
    "\0",
]
WORDS = st.sampled_from(ESCAPES) | TEXTS
NESTED = st.dictionaries(WORDS, st.builds(Leaf, name=WORDS), max_size=3)
SENT = st.builds(
    Sent,
    text=WORDS,
    maybe=st.none() | WORDS,
    texts=st.lists(WORDS, max_size=4),
    pairs=st.dictionaries(WORDS, WORDS, max_size=4),
    number=st.integers(LONG_MIN, LONG_MAX),
    flag=st.booleans(),
    inner=NESTED,
)

# What each policy says, in Cedar and in Python. All forbid, under one blanket permit.
RULES: dict[str, tuple[str, Callable[[Sent], bool]]] = {
    "text": ('context.args.text == "forbidden"', lambda sent: sent.text == "forbidden"),
    "like": ('context.args.text like "*forbid*"', lambda sent: "forbid" in sent.text),
    "not": ('context.args.text != "allowed"', lambda sent: sent.text != "allowed"),
    "maybe": (
        'context.args has maybe && context.args.maybe == "forbidden"',
        lambda sent: sent.maybe == "forbidden",
    ),
    "absent": ("!(context.args has maybe)", lambda sent: sent.maybe is None),
    "member": ('context.args.texts.contains("forbidden")', lambda sent: "forbidden" in sent.texts),
    "empty": ("context.args.texts.isEmpty()", lambda sent: not sent.texts),
    "escape": ('context.args.texts.contains("__extn")', lambda sent: "__extn" in sent.texts),
    "pair": (
        'context.args.pairs.contains({k: "__entity", v: "forbidden"})',
        lambda sent: sent.pairs.get("__entity") == "forbidden",
    ),
    "number": ("context.args.number < 0", lambda sent: sent.number < 0),
    "bound": (f"context.args.number == {LONG_MAX}", lambda sent: sent.number == LONG_MAX),
    "flag": ("context.args.flag", lambda sent: sent.flag),
    "inner": (
        'context.args.inner.contains({k: "__expr", v: {name: "forbidden"}})',
        lambda sent: sent.inner.get("__expr") == Leaf(name="forbidden"),
    ),
}
FIELDS = fields_of(Sent)


@cache
def engine(name: str) -> tuple[cedar.Schema, cedar.PolicySlice]:
    schema = cedar.schema(
        "entity Agent; entity Server;"
        'action "act" appliesTo { principal: [Agent], resource: [Server], '
        f"context: {{ args: {record_text(FIELDS)} }} }};"
    )
    forbids = f'@id("no") forbid(principal, action, resource) when {{ {RULES[name][0]} }};'
    source = '@id("yes") permit(principal, action, resource);' + forbids
    policies = cedar_text.parse(source, "here")
    assert cedar.invalid(policies, schema) == []
    return schema, cedar.policy_set(policies)


def asked(name: str, sent: Sent) -> cedar.Decision:
    schema, policies = engine(name)
    context = json.dumps({"args": encode_fields(FIELDS, sent)})
    held = cedar.entities("[]", schema)
    return cedar.decide(uid("Agent", "a"), "act", uid("Server", "s"), context, policies, held, schema)


@pytest.mark.parametrize("name", RULES)
@given(sent=SENT)
@example(sent=Sent(text="forbidden", maybe="forbidden", texts=["forbidden", "__extn"], number=LONG_MAX))
@example(
    sent=Sent(text='{"__extn":{"fn":"unknown","arg":"x"}}', pairs={"__entity": "forbidden"}, number=LONG_MIN)
)
@example(sent=Sent(text="", inner={"__expr": Leaf(name="forbidden")}, flag=True))
def test_no_input_switches_a_policy_off(name: str, sent: Sent) -> None:
    forbidden = RULES[name][1](sent)
    expected = cedar.Decision(not forbidden, ("no",) if forbidden else ("yes",), ())
    assert asked(name, sent) == expected


def test_the_smuggled_escape_would_switch_a_policy_off_if_it_were_passed_as_it_came() -> None:
    """The control: the engine reads escapes, so that the property above has something to hold off."""
    policies = cedar.policy_set(
        cedar_text.parse(
            '@id("yes") permit(principal, action, resource);'
            '@id("no") forbid(principal, action, resource) when { resource.text == "forbidden" };',
            "here",
        )
    )
    schema = cedar.schema(
        "entity Agent; entity Post = { text: String };"
        'action "act" appliesTo { principal: [Agent], resource: [Post], context: {} };'
    )
    smuggled: Any = {"__extn": {"fn": "unknown", "arg": "x"}}
    held = cedar.entities(json.dumps([entity("Post", "1", {"text": smuggled})]), schema)
    told = cedar.decide(uid("Agent", "a"), "act", uid("Post", "1"), "{}", policies, held, schema)
    assert (told.allow, told.errors) == (False, ("no",))
    text = shape_of(str)
    assert isinstance(text, Shape)
    with pytest.raises(Unencodable):
        text.encode(smuggled)
