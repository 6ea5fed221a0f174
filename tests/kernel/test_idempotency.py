"""The rule of replays alone: which calls carry a key, which two are one call, what a record gives back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, Literal, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from nonsuch import Registry, can, expose
from nonsuch.kernel.catalog import Entry
from nonsuch.kernel.idempotency import (
    Asked,
    Judged,
    advertised,
    asked,
    attempt_of,
    canonical,
    frozen,
    is_keyed,
    packed,
    thawed,
    unpacked,
)
from nonsuch.kernel.model import Call, Failed, Issue, Ok, Surface
from nonsuch.kernel.schema import Invalid, publish_input
from nonsuch.kernel.seal import Seal
from nonsuch.kernel.strict_json import Json

from .trial import boot, faults

SEAL = Seal(b"k" * 32)


class Free(BaseModel):
    model_config = ConfigDict(extra="allow")
    id: str


class Held(BaseModel):
    id: str


class Own(BaseModel):
    idempotencyKey: int


def entries() -> dict[str, Entry]:
    registry = Registry()

    def free(input: Free) -> None: ...

    def held(input: Held) -> None: ...

    def own(input: Own) -> None: ...

    def read(input: Held) -> list[Held]:
        raise AssertionError("never called")

    registry.action(policy=can("a:b"), mcp=expose("x"), idempotent=True)(free)
    registry.action(policy=can("a:b"), mcp=expose("x"), idempotent=True, requires_key=True)(held)
    registry.action(policy=can("a:b"), mcp=expose("x"))(own)
    registry.query(policy=can("a:b"), mcp=expose("x"))(read)
    registry.action(policy=can("a:b"), mcp=expose("x"), path="plain")(_named("plain", held))
    registry.action(policy=can("a:b"), mcp=expose("x"), path="loose")(_named("loose", free))
    return {each.name: each for each in boot(registry).kernel.catalog.entries}


def _named(name: str, handler: Any) -> Any:
    def other(input: Any) -> None: ...

    other.__name__, other.__annotations__ = name, dict(handler.__annotations__)
    return other


ENTRIES = entries()

# which calls carry one


def test_an_idempotent_action_takes_a_key_and_nothing_else_does() -> None:
    assert {name for name, each in ENTRIES.items() if is_keyed(each)} == {"free", "held"}


def test_the_key_is_advertised_where_it_is_taken() -> None:
    told = advertised(ENTRIES["free"])
    assert told["properties"]["idempotencyKey"] == {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "description": "Choose a fresh one for each call; a retry that repeats it does not run twice",
    }
    assert told["required"] == ["id"]
    assert advertised(ENTRIES["held"])["required"] == ["id", "idempotencyKey"]
    for name in ("own", "read", "plain", "loose"):
        assert advertised(ENTRIES[name]) is ENTRIES[name].input.document


NOT_ONE = (Issue("idempotencyKey", "not an argument"),)


@pytest.mark.parametrize("surface", ["mcp", "agent"])
@pytest.mark.parametrize("name", ["free", "held"])
def test_the_key_is_taken_out_of_the_arguments(name: str, surface: Surface) -> None:
    call = Call(name, {"id": "1", "idempotencyKey": "k"}, surface)
    assert asked(ENTRIES[name], call) == Asked({"id": "1"}, "k")
    assert asked(ENTRIES[name], Call(name, {"id": "1"}, surface)) == Asked({"id": "1"})


@pytest.mark.parametrize("surface", ["mcp", "agent"])
@pytest.mark.parametrize("name", ["read", "plain", "loose"])
def test_what_takes_no_key_refuses_one(name: str, surface: Surface) -> None:
    """The one that takes any argument too: a caller who sends a key counts on it."""
    call = Call(name, {"id": "1", "idempotencyKey": "k"}, surface)
    assert asked(ENTRIES[name], call).issues == NOT_ONE
    assert asked(ENTRIES[name], Call(name, {"id": "1"}, "http", key="k")).issues == NOT_ONE


def test_an_argument_of_that_name_is_an_argument_where_no_key_is_taken() -> None:
    given: dict[str, Json] = {"idempotencyKey": 7}
    assert asked(ENTRIES["own"], Call("own", given, "mcp")) == Asked(given)
    assert asked(ENTRIES["own"], Call("own", given, "http")) == Asked(given)


@pytest.mark.parametrize("key", ["k", "k" * 255, "\u00fc\u2028 \U0001f600"])
def test_a_key_is_1_to_255_characters(key: str) -> None:
    assert asked(ENTRIES["free"], Call("free", {"idempotencyKey": key}, "mcp")).key == key
    assert asked(ENTRIES["free"], Call("free", {}, "http", key=key)).key == key


@pytest.mark.parametrize("key", ["", "k" * 256, None, 7, True, ["k"], {"k": 1}])
def test_anything_else_is_refused_as_the_advertised_schema_refuses_it(key: Json) -> None:
    for name in ("free", "held"):
        told = asked(ENTRIES[name], Call(name, {"id": "1", "idempotencyKey": key}, "mcp"))
        assert told.key is None
        assert [each.path for each in told.issues] == ["idempotencyKey"]


def test_over_http_the_key_comes_beside_the_arguments_only() -> None:
    told = asked(ENTRIES["held"], Call("held", {"id": "1", "idempotencyKey": "k"}, "http"))
    assert told.key is None
    assert told.issues
    free = asked(ENTRIES["free"], Call("free", {"id": "1", "idempotencyKey": "k"}, "http"))
    assert free.key is None
    assert free.issues


# boot


def test_an_input_that_names_the_key_is_refused_at_boot() -> None:
    registry = Registry()

    def shadow(input: Own) -> None: ...

    registry.action(policy=can("a:b"), idempotent=True)(shadow)
    assert [each.code for each in faults(registry)] == ["X_MCP_IDEMPOTENCY_KEY_SHADOWED"]


def test_an_alias_of_the_key_is_refused_at_boot() -> None:
    class Aliased(BaseModel):
        key: str = Field(alias="idempotencyKey")

    registry = Registry()

    def shadow(input: Any) -> None: ...

    shadow.__annotations__["input"] = Aliased
    registry.action(policy=can("a:b"), idempotent=True)(shadow)
    assert [each.code for each in faults(registry)] == ["X_MCP_IDEMPOTENCY_KEY_SHADOWED"]


def test_a_key_is_required_of_idempotent_actions_only() -> None:
    registry = Registry()

    def act() -> None: ...

    registry.action(policy=can("a:b"), requires_key=True)(act)
    assert [each.cause for each in faults(registry)] == ["`act` requires a key and is not idempotent"]


# which two calls are one


class Colour(Enum):
    RED = 1
    BLUE = "blue"


class Word(StrEnum):
    A = "a"


@dataclass
class Pair:
    left: int
    right: str = ""


class Inner(BaseModel):
    n: int = 0


class Other(BaseModel):
    n: int = 0


class Big(BaseModel):
    model_config = ConfigDict(extra="allow")
    n: int = 0
    x: float = 0.0
    any: Any = None
    text: str = ""
    flag: bool = False
    maybe: int | None = None
    either: int | str = 0
    model: Inner | Other | None = None
    items: list[Any] = []
    table: dict[str, Any] = {}
    names: frozenset[str] = frozenset()
    two: tuple[int, str] = (0, "")
    money: Decimal = Decimal(0)
    day: date = date(2026, 1, 1)
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    clock: time = time(1)
    span: timedelta = timedelta(0)
    ident: UUID = UUID(int=0)
    colour: Colour = Colour.RED
    word: Word = Word.A
    choice: Literal["a", "b", 1] = "a"
    pair: Pair = Pair(0)
    raw: bytes = b""


BIG = publish_input(Big)


def same(one: dict[str, Any], two: dict[str, Any]) -> bool:
    digests: list[bytes] = []
    for sent in (one, two):
        given = BIG.parse(sent)
        assert not isinstance(given, Invalid), given
        digests.append(canonical(given, sent))
    return digests[0] == digests[1]


ONE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"n": 1}, {"n": 1.0}),
    ({"x": 1}, {"x": 1.0}),
    ({"x": 1e2}, {"x": 100}),
    ({"n": 1, "text": "a"}, {"text": "a", "n": 1}),
    ({"table": {"a": 1, "b": 2}}, {"table": {"b": 2, "a": 1}}),
    ({"names": ["a", "b"]}, {"names": ["b", "a"]}),
    ({"at": "2026-01-01T00:00:00Z"}, {"at": "2026-01-01T00:00:00.000Z"}),
    ({"ident": "00000000-0000-0000-0000-00000000000a"}, {"ident": "00000000-0000-0000-0000-00000000000A"}),
    ({"model": {"n": 2}}, {"model": {"n": 2.0}}),
]
TWO: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"any": 1}, {"any": 1.0}),
    ({"any": 1}, {"any": True}),
    ({"any": 0}, {"any": False}),
    ({"any": "1"}, {"any": 1}),
    ({"any": None}, {}),
    ({"any": []}, {"any": {}}),
    ({"any": ["a", "b"]}, {"any": [["a", "b"]]}),
    ({"any": ["a"]}, {"any": "a"}),
    ({"x": 0.0}, {"x": -0.0}),
    ({"text": "\u00e9"}, {"text": "e\u0301"}),
    ({"text": "a"}, {"text": "a "}),
    ({"items": [1, 2]}, {"items": [2, 1]}),
    ({"n": 2**70}, {"n": 2**70 + 1}),
    ({"n": 0}, {}),  # a handler sees whether a field was sent
    ({"maybe": None}, {}),
    ({"extra": 1}, {"extra": 2}),
    ({"extra": 1}, {"other": 1}),
    ({"money": "1.0"}, {"money": "1.00"}),
    ({"at": "2026-01-01T00:00:00Z"}, {"at": "2026-01-01T01:00:00+01:00"}),
    ({"colour": 1}, {"colour": "blue"}),
    ({"choice": "a"}, {"choice": 1}),
    ({"pair": {"left": 1}}, {"pair": {"left": 1, "right": "x"}}),
    ({"raw": "a"}, {"raw": "b"}),
    ({"table": {"a": {"b": 1}}}, {"table": {"a": {"b": 2}}}),
]


@pytest.mark.parametrize(("one", "two"), ONE, ids=str)
def test_two_inputs_that_no_handler_tells_apart_are_one(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert same(one, two)


@pytest.mark.parametrize(("one", "two"), TWO, ids=str)
def test_two_inputs_that_a_handler_tells_apart_are_two(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert not same(one, two)


def test_what_hides_its_value_is_told_apart_all_the_same() -> None:
    class Login(BaseModel):
        password: SecretStr
        n: int = 0

    sent: list[dict[str, Json]] = [{"password": "a"}, {"password": "b"}, {"password": "a", "n": 1}]
    seen = {canonical(Login.model_validate(each), dict(each)) for each in sent}
    assert len(seen) == 3


def test_what_changes_by_itself_is_no_part_of_the_input() -> None:
    class Stamped(BaseModel):
        id: str
        at: datetime = Field(default_factory=lambda: datetime.now(UTC))

    assert canonical(Stamped(id="1"), None) == canonical(Stamped(id="1"), None)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(plain, plain)
def test_untyped_values_are_one_exactly_when_they_are_the_same_value(one: Any, two: Any) -> None:
    """Compared by Python, type and all: `1`, `1.0` and `True` are three."""

    def typed(value: object) -> object:
        if isinstance(value, dict):
            return {"dict": {key: typed(each) for key, each in cast("dict[str, object]", value).items()}}
        if isinstance(value, list):
            return {"list": [typed(each) for each in cast("list[object]", value)]}
        return [type(value).__name__, repr(value)]

    digests = [canonical(Big(any=each), None) for each in (one, two)]
    assert (digests[0] == digests[1]) is (typed(one) == typed(two))


# where a call is filed


def filed(owner: str, name: str, key: str, seal: Seal = SEAL, text: str = "1") -> tuple[str, tuple[str, ...]]:
    found = attempt_of(seal, owner, ENTRIES[name], key, Held(id=text), {"id": text})
    return found.slot, found.digests


def test_a_call_is_filed_under_action_caller_and_key() -> None:
    slots = {
        filed(owner, name, key)[0]
        for owner in ("ann", "bob", 'ann","held')
        for name in ("free", "held")
        for key in ("k", "K", "k ", '","')
    }
    assert len(slots) == 3 * 2 * 4


def test_the_digest_needs_the_secret_and_the_slot_does_not() -> None:
    """After a change of the secret the record is found, and by the earlier secret its input is known."""
    old, new = Seal(b"o" * 32), Seal(b"n" * 32, (b"o" * 32,))
    one, two, strange = (
        filed("a", "held", "k", old),
        filed("a", "held", "k", new),
        filed("a", "held", "k", SEAL),
    )
    assert one[0] == two[0] == strange[0]
    assert one[1][0] in two[1]
    assert one[1][0] != two[1][0]
    assert one[1][0] not in strange[1]


def test_the_same_input_in_two_slots_has_two_digests() -> None:
    assert filed("a", "held", "k")[1] != filed("a", "held", "l")[1]
    assert filed("a", "held", "k")[1] != filed("b", "held", "k")[1]


# what a record gives back


@pytest.mark.parametrize("json", [b"null", b'{"a":"\xc3\xa9"}', b"", b"-", b"+1"])
def test_an_answer_comes_back_byte_for_byte(json: bytes) -> None:
    assert thawed(frozen(Ok(json))) == Ok(json, replayed=True)


def test_a_failure_comes_back_word_for_word() -> None:
    failed = Failed("X_GONE", "it is\u2028gone", "bring it back", "wait")
    assert thawed(frozen(failed)) == Failed(
        "X_GONE", "it is\u2028gone", "bring it back", "wait", replayed=True
    )


@pytest.mark.parametrize("kept", [b"", b"x", b"-", b"-{}", b'-["a","b","c"]', b'-["a","b","c",1]', b"-\xff"])
def test_a_record_that_is_none_of_ours_answers_nothing(kept: bytes) -> None:
    assert thawed(kept) is None


@pytest.mark.parametrize("judged", [Judged("p1", '{"uid":1}'), Judged("", None), Judged("\u2028", "")])
def test_what_was_judged_comes_back(judged: Judged) -> None:
    assert unpacked(packed(judged)) == judged


@pytest.mark.parametrize("kept", [b"", b"{}", b"[]", b'["a"]', b'["a",1]', b"[1,null]", b"\xff"])
def test_what_was_not_judged_does_not_come_back(kept: bytes) -> None:
    assert unpacked(kept) is None


def test_no_input_is_in_a_record() -> None:
    found = attempt_of(SEAL, "o", ENTRIES["held"], "key-of-mine", Held(id="s3ntinel"), {"id": "s3ntinel"})
    assert "s3ntinel" not in json.dumps([found.slot, *found.digests])
    assert "key-of-mine" not in json.dumps([found.slot, *found.digests])
