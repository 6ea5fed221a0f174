"""An audit chain is whole exactly if it is what was written; nobody makes it so without its key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.kernel.chain import (
    ChainKeys,
    Head,
    KeyMissing,
    Record,
    Tail,
    extended,
    head_of,
    joining,
    line_of,
    note,
    note_in,
    record_of,
)
from nonsuch.kernel.chain_walk import Flaw, Place, Walk
from nonsuch.kernel.errors import fault

from .links import KEYS, OTHER, chain, code, events, heads, mac_of, pieces, walked

VECTOR: Final = json.loads((Path(__file__).parents[1] / "vectors" / "audit_chain.json").read_text())
NOW: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HANDED_OVER: Final = ("k1", '{"next":"k2","kind":"chain-key"}')


def made(count: int, head: Head = Head()) -> list[Record]:  # noqa: B008  (frozen)
    return extended(ChainKeys(KEYS), head, [("k2", each) for each in events(count)])


# A record is what the description says


def test_a_chain_made_by_another_program_is_whole_and_told_in_full() -> None:
    keys = {name: bytes.fromhex(held) for name, held in VECTOR["keys"].items()}
    walk, flaw = walked([line.encode() + b"\n" for line in VECTOR["lines"]], keys, closed=True)
    assert flaw is None
    assert str(walk.head) == VECTOR["head"]
    assert (walk.keys, walk.gaps, walk.lost, walk.torn) == ({"first": 1, "second.2027": 5}, 1, 3, 0)
    assert not walk.unended
    assert not walk.unfinished


def test_the_same_events_make_the_same_lines_as_there() -> None:
    keys = ChainKeys({name: bytes.fromhex(held) for name, held in VECTOR["keys"].items()})
    records = [record_of(line.encode()) for line in VECTOR["lines"]]
    again = extended(keys, Head(), [(each.key, each.event) for each in records if each])
    assert again == records
    assert [line_of(each) for each in again] == [line.encode() + b"\n" for line in VECTOR["lines"]]


SPELLINGS: Final = {
    "a space": ('{"seq":1', '{"seq": 1'),
    "a zero before the number": ('"seq":1', '"seq":01'),
    "a sign": ('"seq":1', '"seq":+1'),
    "a number that is none": ('"seq":1', '"seq":0'),
    "20 digits": ('"seq":1', '"seq":1' + "0" * 19),
    "another order": ('"seq":1,"key":"k2"', '"key":"k2","seq":1'),
    "an empty key": ('"key":"k2"', '"key":""'),
    "a key of 65 characters": ('"key":"k2"', f'"key":"{"k" * 65}"'),
    "a letter of another alphabet": ('"tool":"t0"', '"tool":"\u0442"'),
    "a control character": ('"tool":"t0"', '"tool":"\x1b"'),
    "upper case in the MAC": ('"mac":"', '"mac":"A'),
    "more behind it": ("}\n", "} \n"),
    "a carriage return": ("}\n", "}\r\n"),
}


@pytest.mark.parametrize("case", SPELLINGS)
def test_a_record_has_one_spelling(case: str) -> None:
    (record,) = made(1)
    line = line_of(record).decode()
    old, new = SPELLINGS[case]
    assert record_of(line.encode().removesuffix(b"\n")) == record
    assert line.count(old) == 1
    assert record_of(line.replace(old, new).encode().removesuffix(b"\n")) is None


def test_an_event_that_looks_like_the_end_of_a_record_is_the_event() -> None:
    event = '{"tool":"\\",\\"mac\\":\\"' + "0" * 64 + '\\"}"}'
    (record,) = extended(ChainKeys(KEYS), Head(), [("k2", event)])
    assert record_of(line_of(record)[:-1]) == record


def test_a_head_reads_as_it_was_printed() -> None:
    for each in (Head(), Head(7, b"\xff" * 32), Head(10**18, bytes(range(32)))):
        assert head_of(str(each)) == each
    for text in (
        "",
        "7",
        "7:",
        f"07:{'0' * 64}",
        f"7:{'0' * 63}",
        f"7:{'A' * 64}",
        f" 7:{'0' * 64}",
        f"-1:{'0' * 64}",
    ):
        assert head_of(text) is None


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({}, "a chain needs a key"),
        ({"a b": b"0" * 32}, "`a b` is no id of a key: use 1 to 64 of A-Z a-z 0-9 _ . -"),
        ({"": b"0" * 32}, "`` is no id of a key: use 1 to 64 of A-Z a-z 0-9 _ . -"),
        ({"a": b"0" * 31}, "the key `a` has fewer than 32 bytes"),
    ],
)
def test_what_is_no_key_is_refused(held: dict[str, bytes], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        ChainKeys(held)


def test_the_keys_of_a_chain_are_not_shown_and_are_kept_as_they_were_given() -> None:
    given = {"old": b"s3cretS3cret" * 3, "new": b"0" * 32}
    keys = ChainKeys(given)
    given.clear()
    assert "s3cret" not in repr(keys)
    assert keys.newest == "new"
    assert list(keys.held) == ["old", "new"]


# Whoever has no key changes nothing unseen

WHOLE: Final = chain([*events(3), HANDED_OVER, ("k2", events(9)[7]), ("k2", events(9)[8])])
DATA: Final = b"".join(WHOLE)


def _forged(lines: list[bytes], place: int) -> list[bytes]:
    """From a place on, written again under keys that are none of the chain's."""
    return [*lines[:place], *chain(events(3), OTHER, before=mac_of(lines[place - 1]), first=place + 1)]


def _renumbered(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[3].replace(b'"seq":4', b'"seq":3'), *lines[4:]]


def _renamed(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"key":"k1"', b'"key":"k2"'), *lines[2:]]


def _other_end(line: bytes) -> bytes:
    last = line[-4:-3]
    return line[:-4] + (b"0" if last != b"0" else b"1") + line[-3:]


ATTACKS: Final[dict[str, tuple[Callable[[list[bytes]], list[bytes]], str, int]]] = {
    "a changed event": (lambda w: [w[0], w[1].replace(b"t1", b"t9"), *w[2:]], "X_AUDIT_CHANGED", 2),
    "a changed number": (lambda w: [w[0], w[1].replace(b'"seq":2', b'"seq":3'), *w[2:]], "X_AUDIT_ORDER", 2),
    "a changed MAC": (
        lambda w: [w[0], w[1].replace(b'"mac":"', b'"mac":"0')[:-4] + b'"}\n', *w[2:]],
        "X_AUDIT_CHANGED",
        2,
    ),
    "the end of a MAC changed": (lambda w: [*w[:-1], _other_end(w[-1])], "X_AUDIT_CHANGED", 6),
    "the key's name changed to another": (_renamed, "X_AUDIT_CHANGED", 2),
    "the key's name changed to none": (lambda w: [w[0].replace(b'"k1"', b'"k9"'), *w[1:]], "X_AUDIT_KEY", 1),
    "the first deleted": (lambda w: w[1:], "X_AUDIT_ORDER", 1),
    "one deleted": (lambda w: [*w[:2], *w[3:]], "X_AUDIT_ORDER", 3),
    "one deleted and the next renumbered": (_renumbered, "X_AUDIT_CHANGED", 3),
    "one twice": (lambda w: [*w[:2], w[1], *w[2:]], "X_AUDIT_ORDER", 3),
    "two exchanged": (lambda w: [w[0], w[2], w[1], *w[3:]], "X_AUDIT_ORDER", 2),
    "rewritten from the first": (lambda _: chain(events(6), OTHER), "X_AUDIT_CHANGED", 1),
    "rewritten from the third": (lambda w: _forged(w, 2), "X_AUDIT_CHANGED", 3),
    "one more at the end": (lambda w: _forged(w, 6), "X_AUDIT_CHANGED", 7),
    "a line that is no record": (lambda w: [*w[:2], b"junk\n", *w[2:]], "X_AUDIT_LINE", 3),
    "an empty line": (lambda w: [*w[:2], b"\n", *w[2:]], "X_AUDIT_LINE", 3),
    "the last line overwritten": (lambda w: [*w[:5], b"junk\n"], "X_AUDIT_LINE", 6),
    "the last line cut, and ended": (lambda w: [*w[:5], w[5][:40] + b"\n"], "X_AUDIT_LINE", 6),
    "a line joined with the next": (lambda w: [w[0][:-1] + w[1], *w[2:]], "X_AUDIT_CHANGED", 1),
    "a piece of another chain of the key": (
        lambda w: [*w[:2], *chain(["{}", "{}", "{}"])[2:], *w[3:]],
        "X_AUDIT_CHANGED",
        3,
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_seen_at_its_record_and_its_line(attack: str) -> None:
    change, expected, record = ATTACKS[attack]
    data = b"".join(change(list(WHOLE)))
    walk, flaw = walked(data)
    assert flaw is not None
    assert (flaw.fault.code, flaw.record) == (expected, record)
    offset = sum(map(len, pieces(data)[: record - 1]))
    assert flaw.place == Place(record, offset)
    assert walk.head == ([Head(), *heads(WHOLE)])[record - 1]


def test_the_whole_chain_is_whole() -> None:
    walk, flaw = walked(DATA, kept=heads(WHOLE))
    assert flaw is None
    assert (walk.head, walk.keys) == (heads(WHOLE)[-1], {"k1": 1, "k2": 5})


def _sound(data: bytes) -> bool:
    """What an attacker without a key can leave: the first lines, and behind them what has no line's end.

    That is told as torn, and may be a part of the next line or anything else that is no record.
    """
    ended = data[: data.rfind(b"\n") + 1]
    rest = data[len(ended) :]
    return DATA.startswith(data) or (DATA.startswith(ended) and record_of(rest) is None)


@dataclass(frozen=True)
class Change:
    """One change of a file: of bytes from `here` to `there`, or of lines of these numbers."""

    kind: Literal["cut", "set", "add", "move", "copy"]
    here: int
    there: int
    new: bytes

    def of(self, data: bytes) -> bytes:
        """Make it."""
        here, there, lines = self.here % (len(data) + 1), self.there % (len(data) + 1), pieces(data) or [b""]
        line = lines[self.here % len(lines)]
        match self.kind:
            case "cut":
                return data[: min(here, there)] + data[max(here, there) :]
            case "set":
                return data[:here] + self.new + data[here + len(self.new) :]
            case "add":
                return data[:here] + self.new + data[here:]
            case "move":
                lines.remove(line)
            case "copy":
                pass
        lines.insert(self.there % (len(lines) + 1), line)
        return b"".join(lines)


places = st.integers(0, 2 * len(DATA))
changes = st.builds(
    Change,
    st.sampled_from(["cut", "set", "add", "move", "copy"]),
    places,
    places,
    st.binary(min_size=1, max_size=3),
)


@given(st.lists(changes, min_size=1, max_size=4))
def test_without_a_key_nothing_is_changed_unseen_but_by_cutting_the_end(asked: list[Change]) -> None:
    data = DATA
    for each in asked:
        data = each.of(data)
    walk, flaw = walked(data)
    assert (flaw is None) is _sound(data)
    if flaw is None:
        rest = data[data.rfind(b"\n") + 1 :]
        assert walk.unfinished is (rest != b"" and record_of(rest) is None)
    if not data.startswith(DATA.removesuffix(b"\n")):
        assert code(data, heads(WHOLE)[-1:]) != ""


@given(st.data())
def test_a_file_is_walked_alike_whole_and_in_pieces(drawn: st.DataObject) -> None:
    data = drawn.draw(changes).of(DATA)
    whole = walked(data)[1]
    cuts = sorted(drawn.draw(st.sets(st.integers(0, len(data)), max_size=3)))
    parts: list[bytes] = []
    for line in pieces(data):
        if len(line) > 100 and record_of(line.removesuffix(b"\n")) is None:  # as a reader with a limit has it
            place = cuts[0] % len(line) if cuts else 50
            parts += [part for part in (line[:place], line[place:]) if part]
        else:
            parts.append(line)
    split = walked(parts)[1]
    assert (whole is None) is (split is None)
    assert whole is None or split is None or whole.fault.code == split.fault.code


def test_the_records_of_a_table_are_walked_as_lines_are() -> None:
    walk = Walk(ChainKeys(KEYS))
    for line in WHOLE:
        record = record_of(line[:-1])
        assert record is not None
        assert walk.take(record) is None
    assert walk.end() is None
    strange = Record(7, "k1\n`", "{}", b"")
    assert walk.take(strange) == Flaw(fault("X_AUDIT_KEY", "the key `k1\\n`` is not given"), 7)
    surrogate = Record(7, "k1", "\ud800", b"")
    flaw = walk.take(surrogate)
    assert flaw is not None
    assert flaw.fault.code == "X_AUDIT_CHANGED"


# Heads


@pytest.mark.parametrize("length", range(6))
def test_an_end_that_was_cut_off_shows_by_a_head_and_by_nothing_else(length: int) -> None:
    data = b"".join(WHOLE[:length])
    assert code(data) == ""
    assert code(data, heads(WHOLE)[:length]) == ""
    for head in heads(WHOLE)[length:]:
        flaw = walked(data, kept=[head])[1]
        assert flaw == Flaw(
            fault("X_AUDIT_CUT", f"the chain ends at record {length}, and record {head.seq} was kept"),
            length + 1,
        )


def test_a_head_shows_what_was_rewritten_with_the_key() -> None:
    again = chain([*events(2), "{}", *events(5)])
    assert code(b"".join(again)) == ""
    assert code(b"".join(again), heads(WHOLE)[:2]) == ""
    assert code(b"".join(again), heads(WHOLE)[2:3]) == "X_AUDIT_REWRITTEN"
    both = [heads(again)[2], heads(WHOLE)[2]]
    for kept in (both, both[::-1]):
        assert code(b"".join(again), kept) == "X_AUDIT_REWRITTEN"


# Keys


def test_a_key_comes_in_by_the_key_before_it() -> None:
    assert code(b"".join(chain([*events(2), ("k2", "{}")]))) == "X_AUDIT_KEY"
    assert code(b"".join(chain([*events(2), HANDED_OVER, ("k2", "{}"), "{}", ("k2", "{}")]))) == ""
    assert code(b"".join(chain([("k2", HANDED_OVER[1].replace("k2", "k3")), "{}"]))) == "X_AUDIT_KEY"


def test_who_stole_a_key_rewrites_nothing_of_the_key_before_it() -> None:
    """With ``k2`` alone: whatever is put in the place of records of ``k1`` shows, and cutting is by heads."""
    stolen = {"k1": OTHER["k1"], "k2": KEYS["k2"]}
    for place in range(1, 4):
        before = mac_of(WHOLE[place - 1])
        under_new = chain([("k2", "{}"), ("k2", "{}")], stolen, before=before, first=place + 1)
        under_old = chain([HANDED_OVER, ("k2", "{}")], stolen, before=before, first=place + 1)
        assert code(b"".join([*WHOLE[:place], *under_new])) == "X_AUDIT_KEY"
        assert code(b"".join([*WHOLE[:place], *under_old])) == "X_AUDIT_CHANGED"


def test_a_key_that_is_not_given_is_named() -> None:
    flaw = walked(DATA, {"k1": KEYS["k1"]})[1]
    assert flaw is not None
    assert (flaw.fault.code, flaw.fault.cause, flaw.record) == ("X_AUDIT_KEY", "the key `k2` is not given", 5)


# What a writer says when it goes on


def join(tail: Tail, *, known: bool = False, keys: Any = KEYS) -> list[tuple[str, str]]:
    return joining(ChainKeys(keys), tail, NOW, known=known)


def test_a_writer_that_finds_its_own_key_says_nothing() -> None:
    assert join(Tail()) == []
    assert join(Tail(Head(3, b"m" * 32), "k2")) == []


def test_a_writer_with_a_newer_key_lets_it_in_with_the_one_before() -> None:
    said = join(Tail(Head(3, b"m" * 32), "k1"))
    assert said == [("k1", '{"at":"2026-01-02T03:04:05+00:00","next":"k2","kind":"chain-key"}')]


def test_a_writer_goes_on_beside_one_with_a_newer_key() -> None:
    tail = Tail(Head(3, b"m" * 32), "k2")
    assert join(tail, known=True, keys={"k1": KEYS["k1"]}) == []
    with pytest.raises(
        KeyMissing, match="the chain goes on under the key `k2`, which this process was not given"
    ):
        join(tail, keys={"k1": KEYS["k1"]})


def test_a_torn_line_is_told_and_the_chain_goes_on() -> None:
    for torn in (b'{"seq":4,"key":"k1","ev', b"\x00\xff", b""):
        tail = Tail(heads(WHOLE)[2], "k1", torn)
        records = extended(ChainKeys(KEYS), tail.head, [*join(tail), ("k2", "{}")])
        data = b"".join([*WHOLE[:3], torn, b"\n", *map(line_of, records)])
        walk, flaw = walked(data)
        assert flaw is None
        assert (walk.torn, walk.head.seq, walk.unfinished) == (1, 6, False)


@pytest.mark.parametrize(
    "torn", [b"", b"x", b'{"seq":4,"key":"k1","eW', b'{"seq":4,"key":"k1","ev\n\n', b"a\nb"]
)
def test_a_torn_line_that_was_changed_later_shows(torn: bytes) -> None:
    tail = Tail(heads(WHOLE)[2], "k1", b'{"seq":4,"key":"k1","ev')
    records = extended(ChainKeys(KEYS), tail.head, [*join(tail), ("k2", "{}")])
    flaw = walked(b"".join([*WHOLE[:3], torn, b"\n", *map(line_of, records)]))[1]
    assert flaw is not None
    assert (flaw.fault.code, flaw.record, flaw.place) == (
        "X_AUDIT_LINE",
        4,
        Place(4, sum(map(len, WHOLE[:3]))),
    )
    assert code([*WHOLE[:3], *map(line_of, records)]) == "X_AUDIT_LINE"


def test_two_crashes_in_one_place_are_told_as_one() -> None:
    torn = b'{"seq":4\n{"seq":4,"ke'
    records = extended(ChainKeys(KEYS), heads(WHOLE)[2], join(Tail(heads(WHOLE)[2], "k1", torn)))
    assert code(b"".join([*WHOLE[:3], torn])) == "X_AUDIT_LINE"
    assert code(b"".join([*WHOLE[:3], torn, b"\n", *map(line_of, records)])) == ""


def test_a_writer_that_misses_what_it_wrote_says_so_for_good() -> None:
    had = heads(WHOLE)[4]
    tail = Tail(heads(WHOLE)[1], "k1", had=had)
    records = extended(ChainKeys(KEYS), tail.head, [*join(tail), ("k2", "{}")])
    flaw = walked(b"".join([*WHOLE[:2], *map(line_of, records)]))[1]
    assert flaw is not None
    assert flaw.fault.code == "X_AUDIT_CUT"
    assert flaw.fault.cause == f"records are missing before this one: its writer had written {had}"
    assert flaw.record == 4
    assert flaw.place is not None
    assert flaw.place.line == 4


# Writers


def note_of(kind: Any, **members: Any) -> str:
    return note(kind, NOW, **members)


def test_a_chain_says_who_did_not_end() -> None:
    one, two = (note_of("chain-opened", writer=each) for each in "ab")
    end = note_of("chain-closed", writer="a")
    walk, flaw = walked(b"".join(chain([one, two, *events(2), end])))
    assert (flaw, walk.unended) == (None, {"b"})
    flaw = walked(b"".join(chain([one, two, end])), closed=True)[1]
    assert flaw is not None
    assert (flaw.fault.code, flaw.record) == ("X_AUDIT_UNCLOSED", 4)
    assert walked(b"".join(chain([one, end])), closed=True)[1] is None
    empty = walked(b"", closed=True)[1]
    assert empty is not None
    assert empty.fault.code == "X_AUDIT_UNCLOSED"


def test_what_was_lost_is_counted() -> None:
    walk, flaw = walked(b"".join(chain([note_of("chain-gap", lost=3), "{}", note_of("chain-gap", lost=4)])))
    assert (flaw, walk.gaps, walk.lost) == (None, 2, 7)


def test_no_text_of_a_caller_is_a_note_of_the_chain() -> None:
    for text in ('"kind":"chain-key","next":"k2"', "chain-cut", '","kind":"chain-cut","had":"'):
        event = json.dumps({"tool": text, "kind": "tool-call"}, separators=(",", ":"))
        assert note_in(event) is None or note_in(event) == {"tool": text, "kind": "tool-call"}
        walk, flaw = walked(b"".join(chain([event, ("k2", "{}")])))
        assert flaw is not None
        assert (flaw.fault.code, walk.gaps) == ("X_AUDIT_KEY", 0)


def test_the_digest_of_a_torn_line_is_of_what_was_there() -> None:
    (said,) = join(Tail(rest=b"abc"))
    assert note_in(said[1]) == {
        "at": NOW.isoformat(),
        "bytes": 3,
        "sha256": sha256(b"abc").hexdigest(),
        "kind": "chain-torn",
    }


def test_a_note_of_a_kind_that_nobody_knows_is_an_event() -> None:
    for event in ('{"kind":"chain-later"}', '{"lost":"many","kind":"chain-gap"}'):
        walk, flaw = walked(b"".join(chain([event])))
        assert (flaw, walk.head.seq, walk.gaps) == (None, 1, 0)
