"""Bytes to one JSON value, or a typed refusal. Knows no protocol, schema or caller.

`json.loads` takes duplicate keys, NaN, 1e400, lone surrogates, byte order marks and UTF-16; this takes none.
What it accepts, it reads as `json.loads` does.
"""

import re
from codecs import BOM_UTF8
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import accumulate
from json import JSONDecodeError, JSONDecoder
from math import isfinite
from typing import Final, NoReturn, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one text may hold: its bytes, how deep arrays and objects nest, the digits of one integer."""

    max_bytes: int = 1_048_576
    max_depth: int = 64
    max_digits: int = 1000


DEFAULT: Final = Limits()


class Reason(StrEnum):
    """Why a text was refused. Closed: every member has a sentence below."""

    ENCODING = "encoding"
    SIZE = "size"
    DEPTH = "depth"
    DUPLICATE_KEY = "duplicate-key"
    NUMBER = "number"
    SURROGATE = "surrogate"
    SYNTAX = "syntax"
    TRAILING = "trailing"


_SENTENCES: Final = {
    Reason.ENCODING: "the text is not plain utf-8; send utf-8 without a byte order mark",
    Reason.SIZE: "the text is longer than the limit; send less",
    Reason.DEPTH: "arrays and objects nest deeper than the limit; send a flatter value",
    Reason.DUPLICATE_KEY: "an object has the same key twice; send each key once",
    Reason.NUMBER: "a number is not finite or has too many digits; send it as a string",
    Reason.SURROGATE: "an escape is half of a surrogate pair; send both halves or the character itself",
    Reason.SYNTAX: "the text is not json; send one json value",
    Reason.TRAILING: "something follows the json value; send one value only",
}


class JsonRefused(Exception):
    """The text is not one strict JSON value. Compares by its fields; never carries any of the text."""

    def __init__(self, why: Reason, at: int | None = None) -> None:
        """`at` is the offset in bytes where the fault was seen, where that is known."""
        super().__init__(why, at)
        self.why: Final = why
        self.at: Final = at

    def __str__(self) -> str:
        return _SENTENCES[self.why] + ("" if self.at is None else f" (byte {self.at})")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonRefused) and (self.why, self.at) == (other.why, other.at)

    def __hash__(self) -> int:
        return hash((self.why, self.at))


def loads(raw: bytes, limits: Limits = DEFAULT) -> Json:
    """Read one JSON value (RFC 8259) in UTF-8, every key of an object once.

    Integers are exact, other numbers are the nearest float. Raises `JsonRefused` and nothing else.
    The time is linear in `len(raw)`, whatever it holds.
    """
    # 1 size, 2 encoding, 3 depth before anything recurses, 4 grammar, keys, numbers, 5 the end, 6 surrogates
    if len(raw) > limits.max_bytes:  # 1
        raise JsonRefused(Reason.SIZE)
    text = _decode(raw)  # 2
    if _too_deep(raw, limits.max_depth):  # 3
        raise JsonRefused(Reason.DEPTH)
    value = _parse(text, _decoder_for(raw, limits.max_digits))  # 4, 5
    _refuse_lone_surrogates(raw)  # 6
    return value


def _decode(raw: bytes) -> str:
    # RFC 8259 8.1. JSON starts with ASCII: a NUL in the first two bytes is UTF-16 or UTF-32 without a mark.
    if raw.startswith(BOM_UTF8) or b"\0" in raw[:2]:
        raise JsonRefused(Reason.ENCODING, 0)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        at = error.start
    raise JsonRefused(Reason.ENCODING, at)  # outside the handler: the foreign error holds the input


_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # +1 and, read as a signed byte, -1
_NO_STRUCTURE: Final = bytes(set(range(256)) - set(b'[{]}"'))


def _too_deep(raw: bytes, cap: int) -> bool:
    """Whether brackets outside strings nest deeper than `cap`. Exact up to a fault, where parsers stop."""
    # split, unlike count, stops at the first one too many
    opening = len(raw.split(b"[", cap + 1)) + len(raw.split(b"{", cap + 1)) - 2
    if opening <= cap:
        return False
    if b"\\" in raw:  # in this order, so that no quote which is left is an escaped one
        raw = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    steps = raw.translate(_STEPS, _NO_STRUCTURE)
    steps = steps.replace(b'""', b"")  # two quotes less leave the rest inside or outside as it was
    steps = b"".join(steps.split(b'"')[::2])
    return cap + 1 in accumulate(memoryview(steps).cast("b"))  # by steps of one: the first too deep is this


_SPACE: Final = " \t\n\r"  # RFC 8259 2: no other character is white space


def _parse(text: str, decoder: JSONDecoder) -> Json:
    body = text.strip(_SPACE)
    at: int | None
    value: Json
    try:
        value, end = decoder.raw_decode(body)
        if end == len(body):
            return value
        why, at = Reason.TRAILING, len(body) - len(body[end:].lstrip(_SPACE))
    except JSONDecodeError as error:
        why, at = Reason.SYNTAX, error.pos
    except ValueError:  # the interpreter's own limit on digits (sys.set_int_max_str_digits) is below ours
        why, at = Reason.NUMBER, None
    except RecursionError:  # the caller's stack is nearly used up, or max_depth is beyond the interpreter's
        why, at = Reason.DEPTH, None
    if at is not None:
        at += len(text) - len(text.lstrip(_SPACE))
        at = len(text[:at].encode())  # bytes, not characters
    raise JsonRefused(why, at)


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise JsonRefused(Reason.DUPLICATE_KEY)
    return members


def _finite(literal: str) -> float:
    value = float(literal)
    if not isfinite(value):
        raise JsonRefused(Reason.NUMBER)
    return value


def _integer(max_digits: int, literal: str) -> int:
    if len(literal) - literal.startswith("-") > max_digits:
        raise JsonRefused(Reason.NUMBER)
    return int(literal)


def _constant(_name: str) -> NoReturn:
    raise JsonRefused(Reason.NUMBER)  # NaN, Infinity, -Infinity: Python's words, not JSON's


_strict = partial(JSONDecoder, object_pairs_hook=_unique, parse_float=_finite, parse_constant=_constant)
_PLAIN: Final = _strict()
_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
_STRIDE: Final = 16


def _decoder_for(raw: bytes, max_digits: int) -> JSONDecoder:
    """A hook on every integer triples the time of an array of them, so it waits for one that may be too long.

    Such an integer shows as a run of digits among every 16th byte as well.
    """
    run = b"0" * ((max_digits + 1) // _STRIDE)
    if len(raw) <= max_digits or run not in raw[::_STRIDE].translate(_DIGITS):
        return _PLAIN
    return _strict(parse_int=partial(_integer, max_digits))


_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")  # looks like half of a pair
_LONE: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"  # a first half that no second half follows
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F])"  # a second half that follows no first half
)


def _refuse_lone_surrogates(raw: bytes) -> None:
    if b"\\" not in raw or not _HALF.search(raw):
        return
    if lone := _LONE.search(raw.replace(rb"\\", b"  ")):  # an escaped backslash escapes nothing; offsets stay
        raise JsonRefused(Reason.SURROGATE, lone.start())
