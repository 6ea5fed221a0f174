"""The JSON door: pinned verdicts, an oracle that walks characters, and mutants that must not live."""

import copy
import gc
import importlib.util
import json
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nonsuch.kernel import strict_json
from nonsuch.kernel.strict_json import DEFAULT, Json, JsonRefused, Limits, Reason, loads

VECTORS = Path(__file__).parents[1] / "vectors"


@dataclass(frozen=True)
class Case:
    """One vector: bytes, limits, and the value's `repr` (types and -0.0 count) or the reason why not."""

    name: str
    raw: bytes
    limits: dict[str, int]
    want: str
    at: int | None
    knows_at: bool


def cases_of(file: str) -> list[Case]:
    return [case_of(entry) for entry in json.loads((VECTORS / file).read_text())["cases"]]


def case_of(entry: dict[str, Any]) -> Case:
    raw = b64decode(entry["input"]) * entry.get("times", 1) + b64decode(entry.get("tail", ""))
    want = entry["why"] if entry["expect"] == "refuse" else repr(entry.get("value", json.loads(raw)))
    return Case(entry["name"], raw, entry.get("limits", {}), want, entry.get("at"), "at" in entry)


DOOR = cases_of("json_door.json")
SUITE = cases_of("json_test_suite.json")


def verdict(case: Case, module: ModuleType = strict_json) -> tuple[str, int | None]:
    try:
        return repr(module.loads(case.raw, module.Limits(**case.limits))), None
    except module.JsonRefused as refused:
        return refused.why.value, refused.at if case.knows_at else None


def wrong(module: ModuleType) -> list[str]:
    return [case.name for case in DOOR + SUITE if verdict(case, module) != (case.want, case.at)]


# Pinned verdicts


@pytest.mark.parametrize("case", DOOR, ids=lambda case: case.name)
def test_the_door_gives_the_pinned_verdict(case: Case) -> None:
    assert verdict(case) == (case.want, case.at)


@pytest.mark.parametrize("case", SUITE, ids=lambda case: case.name)
def test_json_test_suite_gets_the_pinned_verdict(case: Case) -> None:
    assert verdict(case) == (case.want, case.at)


# Valid JSON by the grammar, and refused here: a reader who takes the first and one who takes the last value
# of a key do not see the same call.
VALID_YET_REFUSED = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}


def test_json_test_suite_is_whole_and_its_y_are_taken_and_its_n_are_not() -> None:
    refused = {case.name for case in SUITE if case.want in set(Reason)}
    by_kind = {
        kind: {case.name for case in SUITE if case.name.startswith(kind)} for kind in ("y_", "n_", "i_")
    }
    assert {kind: len(names) for kind, names in by_kind.items()} == {"y_": 95, "n_": 188, "i_": 35}
    assert by_kind["y_"] & refused == VALID_YET_REFUSED
    assert by_kind["n_"] - refused == set()


def test_every_reason_is_pinned_by_a_vector() -> None:
    assert {case.want for case in DOOR} >= {reason.value for reason in Reason}


# Values survive

VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_what_json_writes_is_read_back(value: Json, ascii_only: bool, indent: int | str | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert repr(loads(text.encode(), Limits(max_depth=200))) == repr(value)


@given(st.binary(max_size=200))
def test_what_is_accepted_is_read_as_the_standard_library_reads_it(raw: bytes) -> None:
    try:
        value = loads(raw)
    except JsonRefused:
        return
    assert repr(value) == repr(json.loads(raw))


# The oracle: one character after the other, all faults it meets, nothing of the module under test


class Malformed(Exception):
    """The walk cannot go on."""


@dataclass
class Walk:
    """A naive reader of RFC 8259 that notes faults instead of building a value."""

    text: str
    limits: Limits
    at: int = 0
    faults: set[str] = field(default_factory=set[str])

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, wanted: str) -> None:
        if not self.text.startswith(wanted, self.at):
            raise Malformed
        self.at += len(wanted)

    def space(self) -> None:
        while self.peek() in {" ", "\t", "\n", "\r"}:
            self.at += 1

    def value(self, depth: int) -> None:
        self.space()
        first = self.peek()
        if first in {"{", "["}:
            if depth == self.limits.max_depth:
                self.faults.add("depth")
            self.members(depth + 1) if first == "{" else self.elements(depth + 1)
        elif first == '"':
            self.string()
        elif first in set("-0123456789") and not self.text.startswith("-Infinity", self.at):
            self.number()
        else:
            self.word()
        self.space()

    def elements(self, depth: int) -> None:
        self.take("[")
        self.space()
        if self.peek() != "]":
            self.value(depth)
            while self.peek() == ",":
                self.take(",")
                self.value(depth)
        self.take("]")

    def members(self, depth: int) -> None:
        self.take("{")
        self.space()
        keys: list[list[int]] = []
        if self.peek() != "}":
            keys.append(self.member(depth))
            while self.peek() == ",":
                self.take(",")
                keys.append(self.member(depth))
        self.take("}")
        if any(key in keys[:i] for i, key in enumerate(keys)):
            self.faults.add("duplicate-key")

    def member(self, depth: int) -> list[int]:
        self.space()
        key = self.string()
        self.space()
        self.take(":")
        self.value(depth)
        return key

    def string(self) -> list[int]:
        """UTF-16 code units: there a pair and its character are one spelling."""
        self.take('"')
        units: list[int] = []
        while self.peek() != '"':
            if self.peek() < " ":  # also the end of the text
                raise Malformed
            units += self.escape() if self.peek() == "\\" else self.plain()
        self.take('"')
        if self.unpaired(units):
            self.faults.add("surrogate")
        return units

    def plain(self) -> list[int]:
        wide = self.peek().encode("utf-16-be")
        self.at += 1
        return [wide[i] * 256 + wide[i + 1] for i in range(0, len(wide), 2)]

    def escape(self) -> list[int]:
        self.take("\\")
        kind = self.peek()
        self.at += 1
        if kind == "u":
            digits = self.text[self.at : self.at + 4]
            if len(digits) < 4 or set(digits) - set("0123456789abcdefABCDEF"):
                raise Malformed
            self.at += 4
            return [int(digits, 16)]
        named = {'"': 34, "\\": 92, "/": 47, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9}
        if kind not in named:
            raise Malformed
        return [named[kind]]

    def unpaired(self, units: list[int]) -> bool:
        open_pair = False
        for unit in units:
            second = 0xDC00 <= unit <= 0xDFFF
            if open_pair != second:
                return True
            open_pair = 0xD800 <= unit <= 0xDBFF
        return open_pair

    def digits(self) -> str:
        start = self.at
        while self.peek() in set("0123456789"):
            self.at += 1
        if start == self.at:
            raise Malformed
        return self.text[start : self.at]

    def number(self) -> None:
        start = self.at
        if self.peek() == "-":
            self.take("-")
        whole = self.digits()
        if whole[0] == "0":  # the number ends here; digits that follow are not JSON
            self.at += 1 - len(whole)
            whole = "0"
        if self.fraction():
            bad = abs(float(self.text[start : self.at])) == float("inf")
        else:
            bad = len(whole) > self.limits.max_digits
        if bad:
            self.faults.add("number")

    def fraction(self) -> bool:
        """Skip a fraction and an exponent, each only if it is whole."""
        start = self.at
        for mark, signs in ((".", ""), ("eE", "+-")):
            back = self.at
            if self.peek() and self.peek() in mark:
                self.at += 1
                self.at += bool(self.peek() and self.peek() in signs)
                try:
                    self.digits()
                except Malformed:
                    self.at = back
        return self.at > start

    def word(self) -> None:
        for word in ("null", "true", "false"):
            if self.text.startswith(word, self.at):
                return self.take(word)
        for word in ("NaN", "Infinity", "-Infinity"):
            if self.text.startswith(word, self.at):
                self.faults.add("number")
                return self.take(word)
        raise Malformed


def faults(raw: bytes, limits: Limits) -> set[str]:
    if len(raw) > limits.max_bytes:
        return {"size"}
    if raw[:3] == b"\xef\xbb\xbf" or 0 in raw[:2]:
        return {"encoding"}
    try:
        walk = Walk(raw.decode("utf-8"), limits)
    except UnicodeDecodeError:
        return {"encoding"}
    try:
        walk.value(0)
        if walk.at < len(walk.text):
            walk.faults.add("trailing")
    except Malformed:
        walk.faults.add("syntax")
    return walk.faults


def why_refused(raw: bytes, limits: Limits) -> Reason | None:
    try:
        loads(raw, limits)
    except JsonRefused as refused:
        return refused.why
    return None


def assert_agrees(raw: bytes, limits: Limits) -> None:
    found, why = faults(raw, limits), why_refused(raw, limits)
    if why is Reason.DEPTH and found & {"syntax", "trailing"}:
        return  # past the first fault the walk stops, and the look at the depth does not
    assert (why in found) if found else (why is None), (why, found)


SMALL = st.builds(
    Limits,
    max_bytes=st.sampled_from([60, 10_000]),
    max_depth=st.integers(0, 4),
    max_digits=st.sampled_from([0, 3, 17, 40]),
)
PIECES = r"""
[ ] { } [] {} , : " "" "a" "b" "\u0061" "a":1 \ \\ \" \u \ud83d \ude00 \uD83D\uDE00 \n "\ud83d" é 😀 "😀"
0 -0 7 12345 1.5 1e9 1e400 -1E999 NaN Infinity -Infinity null true false nul "[" "]" "{" "\"" "\\"
"""
RUNS = ["1" * 3, "1" * 4, "1" * 17, "1" * 18, "1" * 40, "1" * 41, "1" * 400 + ".5"]
TOKENS = st.sampled_from([*PIECES.split(), *RUNS, " ", "\n", "\0", "\ufeff"])
BYTES = st.sampled_from([b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\0"])


@given(st.lists(TOKENS, max_size=12).map("".join), SMALL)
@settings(max_examples=400, deadline=None)
@example('{"a":[{"\\u0061":"]","a":"["}]}', Limits(max_depth=3))
def test_the_oracle_agrees_on_soups_of_tokens(text: str, limits: Limits) -> None:
    assert_agrees(text.encode(), limits)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    text = json.dumps(draw(VALUES), ensure_ascii=draw(st.booleans()))
    raw = text.encode()
    for _ in range(draw(st.integers(0, 3))):
        at, cut = draw(st.integers(0, len(raw))), draw(st.integers(0, 2))
        patch = draw(TOKENS.map(str.encode) | BYTES | st.just(b""))
        raw = raw[:at] + patch + raw[at + cut :]
    return raw


@given(mutated(), SMALL | st.just(DEFAULT))
@settings(max_examples=400, deadline=None)
def test_the_oracle_agrees_on_mutated_documents(raw: bytes, limits: Limits) -> None:
    assert_agrees(raw, limits)


@st.composite
def crowded(draw: st.DrawFn) -> bytes:
    """Objects whose few keys come in several spellings, so that duplicates and bad halves are common."""
    spellings = [
        "a",
        "\\u0061",
        "b",
        "\\ud83d\\ude00",
        "😀",
        "\\ud83d",
        "\\\\ud83d",
        "[",
        "]}",
        '\\"[',
        "\\\\",
    ]
    keys = draw(st.lists(st.sampled_from(spellings), max_size=5))
    wrap = draw(st.lists(st.sampled_from([("[", "]"), ('{"a":', "}"), ('["[{",', "]")]), max_size=4))
    inner = "{" + ",".join(f'"{key}":"{key}"' for key in keys) + "}"
    return ("".join(o for o, _ in wrap) + inner + "".join(c for _, c in reversed(wrap))).encode()


@given(crowded(), SMALL | st.just(DEFAULT))
@settings(max_examples=400, deadline=None)
def test_the_oracle_agrees_on_keys_halves_and_depth(raw: bytes, limits: Limits) -> None:
    assert_agrees(raw, limits)


# Refusals


def test_a_refusal_compares_by_its_fields_and_survives_a_copy() -> None:
    refused = JsonRefused(Reason.SYNTAX, 3)
    assert refused == JsonRefused(Reason.SYNTAX, 3) == copy.copy(refused)
    assert refused != JsonRefused(Reason.SYNTAX, 4)
    assert refused != JsonRefused(Reason.TRAILING, 3)
    assert refused != "syntax"
    assert len({refused, JsonRefused(Reason.SYNTAX, 3)}) == 1


@pytest.mark.parametrize("reason", Reason)
def test_a_refusal_speaks_in_one_lower_case_line_with_cause_and_fix(reason: Reason) -> None:
    for sentence in (str(JsonRefused(reason)), str(JsonRefused(reason, 17))):
        assert sentence == sentence.lower()
        assert sentence.isprintable()
        assert "; " in sentence
        assert not sentence.endswith(".")
    assert str(JsonRefused(reason, 17)) == f"{JsonRefused(reason)} (byte 17)"


@pytest.mark.parametrize(
    "case", [case for case in DOOR if case.want in set(Reason)], ids=lambda case: case.name
)
def test_a_refusal_carries_none_of_the_text(case: Case) -> None:
    with pytest.raises(JsonRefused) as caught:
        loads(case.raw, Limits(**case.limits))
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)
    assert caught.value.args == (caught.value.why, caught.value.at)


@pytest.fixture
def interpreter_takes_640_digits() -> Iterator[None]:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    yield
    sys.set_int_max_str_digits(before)


@pytest.mark.usefixtures("interpreter_takes_640_digits")
def test_a_lower_limit_of_the_interpreter_is_a_refusal_too() -> None:
    with pytest.raises(JsonRefused) as caught:
        loads(b"9" * 700)
    assert caught.value == JsonRefused(Reason.NUMBER)


@pytest.mark.parametrize("opening", [b"[", b'{"":'])
def test_a_depth_beyond_the_interpreter_is_a_refusal_too(opening: bytes) -> None:
    with pytest.raises(JsonRefused) as caught:
        loads(opening * 150_000, Limits(max_depth=10**9))
    assert caught.value == JsonRefused(Reason.DEPTH)


# Cost

HOSTILE: dict[str, Callable[[int], bytes]] = {
    "open arrays": lambda n: b"[" * n,
    "pairs of brackets": lambda n: b"[" + b"[]," * (n // 3) + b"0]",
    "arrays just under the cap": lambda n: b"[" + (b"[" * 63 + b"]" * 63 + b",") * (n // 127) + b"0]",
    "brackets in strings": lambda n: b"[" + b'"[",' * (n // 4) + b"0]",
    "quotes": lambda n: b'"' * n,
    "keys": lambda n: b"{" + b"".join(b'"%08d":0,' % i for i in range(n // 13)) + b'"":0}',
    "escaped backslashes": lambda n: b'"' + b"\\\\" * (n // 2) + b'[{"',
    "escaped quotes": lambda n: b'"' + b'\\"' * (n // 2) + b"[" * 70 + b'"',
    "backslashes outside": lambda n: b"[" * 70 + b"\\" * n,
    "escapes": lambda n: b'"' + rb"\u0041" * (n // 6) + b'"',
    "pairs": lambda n: b'"' + rb"\ud83d\ude00" * (n // 12) + b'"',
    "halves behind backslashes": lambda n: b'"' + rb"\\ud83d" * (n // 7) + b'"',
    "one integer": lambda n: b"1" * n,
    "one fraction": lambda n: b"0." + b"1" * n,
    "one exponent": lambda n: b"1e" + b"1" * n,
    "integers of a thousand digits": lambda n: b"[" + (b"9" * 1000 + b",") * (n // 1001) + b"0]",
    "runs just too short to be too long": lambda n: b"[" + b'"' + (b"9" * 999 + b"x") * (n // 1000) + b'"]',
    "small integers": lambda n: b"[" + b"1," * (n // 2) + b"0]",
    "white space": lambda n: b" " * n,
    "white space before a letter": lambda n: b"1" + b" " * n + b"x",
}


def seconds(raw: bytes) -> float:
    start = time.perf_counter()
    why_refused(raw, Limits(max_bytes=len(raw)))
    return time.perf_counter() - start


@pytest.fixture
def no_collector() -> Iterator[None]:
    """The garbage collector's share grows with all that is alive in the process."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("shape", HOSTILE)
def test_the_cost_grows_no_faster_than_the_text(shape: str) -> None:
    small, large = HOSTILE[shape](1 << 16), HOSTILE[shape](1 << 20)
    times = [(seconds(small), seconds(large)) for _ in range(9)]
    least_small, least_large = (min(column) for column in zip(*times, strict=True))
    assert least_large < 0.001 + 16 * 4 * least_small  # 16 times the text; a square would be 256


# Mutants: what the vectors must notice


MUTANTS = {
    "no duplicate check": ("if len(members) != len(pairs):", "if False:"),
    "no duplicate check beside long integers": (
        "_strict(parse_int=partial(_integer, max_digits))",
        "JSONDecoder(parse_int=partial(_integer, max_digits), parse_float=_finite, parse_constant=_constant)",
    ),
    "duplicates with one value allowed": (
        "if len(members) != len(pairs):",
        "if len(members) != len(dict(pairs)):",
    ),
    "no byte order mark check": ("raw.startswith(BOM_UTF8) or ", ""),
    "no check for wide encodings": (' or b"\\0" in raw[:2]', ""),
    "encoded surrogates pass": ("return raw.decode()", 'return raw.decode("utf-8", "surrogatepass")'),
    "any encoding": ("return raw.decode()", 'return raw.decode("utf-8", "replace")'),
    "infinity by overflow allowed": ("if not isfinite(value):", "if False:"),
    "infinity by name allowed": (", parse_constant=_constant)", ")"),
    "one level too many": ("return cap + 1 in", "return cap + 2 in"),
    "one level too few": ("return cap + 1 in", "return cap in"),
    "one bracket too many unseen": ("if opening <= cap:", "if opening <= cap + 1:"),
    "objects do not nest": ('len(raw.split(b"{", cap + 1)) - 2', "1 - 2"),
    "strings count for the depth": ('b"".join(steps.split(b\'"\')[::2])', 'steps.replace(b\'"\', b"")'),
    "escaped quotes end strings": ('if b"\\\\" in raw:  #', "if False:  #"),
    "escaped backslashes escape": (
        'raw.replace(rb"\\\\", b"").replace(rb"\\"", b"")',
        'raw.replace(rb"\\"", b"")',
    ),
    "surrogates only in values": ('b"  ")):', "b\"  \").replace(b'{\"\\\\u', b'{\"    ')):"),
    "no surrogate check": ('if b"\\\\" not in raw or', "if True or"),
    "first halves only": ("(?<!\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD])[c-fC-F])", "(?!))"),
    "second halves only": ("(?:[89abAB]", "(?:(?!)[89abAB]"),
    "no pairs": ("(?!\\\\u[dD][c-fC-F])", ""),
    "escaped backslashes hide nothing": ('_LONE.search(raw.replace(rb"\\\\", b"  "))', "_LONE.search(raw)"),
    "digits cap dropped": ("> max_digits:", "> 10 * max_digits:"),
    "digits cap off by one": (
        'literal.startswith("-") > max_digits',
        'literal.startswith("-") >= max_digits',
    ),
    "the sign counts as a digit": ('len(literal) - literal.startswith("-")', "len(literal)"),
    "long integers unseen": ("(max_digits + 1) // _STRIDE", "(max_digits + 1) // _STRIDE + 2"),
    "long integers of other digits unseen": (
        'maketrans(b"123456789", b"000000000")',
        'maketrans(b"1", b"0")',
    ),
    "trailing data allowed": ("if end == len(body):", "if True:"),
    "any white space": ("body = text.strip(_SPACE)", "body = text.strip()"),
    "white space more": ('_SPACE: Final = " \\t\\n\\r"', '_SPACE: Final = " \\t\\n\\r\\f"'),
    "size cap dropped": ("len(raw) > limits.max_bytes", "False"),
    "size cap off by one": ("len(raw) > limits.max_bytes", "len(raw) >= limits.max_bytes"),
    "characters for bytes": ("at = len(text[:at].encode())", "at = len(text[:at])"),
    "raw control characters allowed": ("partial(JSONDecoder,", "partial(JSONDecoder, strict=False,"),
}


def module_from(source: str, folder: Path) -> ModuleType:
    path = folder / "mutant.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("mutant", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCE = Path(strict_json.__file__).read_text()


def test_the_module_itself_gives_no_wrong_verdict(tmp_path: Path) -> None:
    assert wrong(module_from(SOURCE, tmp_path)) == []


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_vectors_kill_the_mutant(mutant: str, tmp_path: Path) -> None:
    old, new = MUTANTS[mutant]
    assert SOURCE.count(old) >= 1
    assert wrong(module_from(SOURCE.replace(old, new), tmp_path)) != []
