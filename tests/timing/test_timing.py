"""The bar on latency, as far as it needs no clock: its arithmetic, and that hidden and absent run alike."""

from __future__ import annotations

import gc
import random
import sys
from types import FrameType
from typing import Final

import pytest

from ..mutants.rewrite import applied
from ..mutants.table import MUTANTS
from .doors import DOORS, SHAPES, Asked, Desk, Door, Names, names
from .judging import auc, dudect, interval, judged

Trace = list[tuple[str, str]]
FEW: Final = 12
DRAWN: Final = Names(*(each[:FEW] for each in (names(1).hidden, names(1).absent, names(1).others)))
CASES: Final = [(door, shape) for door in DOORS for shape in door.shapes]
MILD: Final = ("second-look", "asks-for-known")


def trace(desk: Desk, asked: Asked) -> Trace:
    """Every call that one request makes, Python's and C's."""
    seen: Trace = []

    def note(frame: FrameType, event: str, what: object) -> None:
        if event == "call":
            seen.append((frame.f_code.co_filename, frame.f_code.co_qualname))
        elif event == "c_call":
            seen.append((frame.f_code.co_filename, str(getattr(what, "__qualname__", what))))

    for _ in range(3):
        desk.ask(asked)
    before = sys.getprofile()
    gc.disable()
    sys.setprofile(note)
    try:
        desk.ask(asked)
    finally:
        sys.setprofile(before)
        gc.enable()
    return seen


def differing(door: Door, shape: str) -> list[str]:
    """The hidden names whose request makes other calls than that of an absent name."""
    desk = Desk(door.app(DRAWN.hidden))

    def asked(name: str) -> Trace:
        return trace(desk, door.ask(name, SHAPES[shape]))

    pairs = zip(DRAWN.hidden, DRAWN.absent, strict=True)
    return [name for name, none in pairs if asked(name) != asked(none)]


@pytest.mark.parametrize(("door", "shape"), CASES, ids=[f"{door.name}: {shape}" for door, shape in CASES])
def test_a_hidden_and_an_absent_name_make_the_same_calls(door: Door, shape: str) -> None:
    assert differing(door, shape) == []


@pytest.mark.parametrize("leak", MILD)
@pytest.mark.parametrize("door", DOORS, ids=[door.name for door in DOORS])
def test_a_leak_makes_other_calls(door: Door, leak: str) -> None:
    with applied(next(each.edits for each in MUTANTS if each.name == leak)):
        assert differing(door, door.shapes[0]) == list(DRAWN.hidden)


@pytest.mark.parametrize(("door", "shape"), CASES, ids=[f"{door.name}: {shape}" for door, shape in CASES])
def test_what_is_timed_is_a_miss_and_both_are_told_the_same(door: Door, shape: str) -> None:
    desk = Desk(door.app(DRAWN.hidden))
    for name, none in zip(DRAWN.hidden, DRAWN.absent, strict=True):
        hidden, absent = (desk.answer(door.ask(each, SHAPES[shape])) for each in (name, none))
        assert hidden == (absent[0], absent[1].replace(none.encode(), name.encode()))
        assert b"not found" in hidden[1] or hidden[0] == 404
        assert len(door.ask(name, SHAPES[shape]).body) == len(door.ask(none, SHAPES[shape]).body)


def test_what_is_visible_is_found_at_every_door() -> None:
    """Or every name would be a miss, and nothing would be measured."""
    for door in DOORS:
        desk = Desk(door.app(DRAWN.hidden))
        status, body = desk.answer(door.ask("shown0", SHAPES["valid"]))
        assert b"not found" not in body
        assert (status, b"shown0" in body) == ((405, False) if door.name == "GET" else (200, True)), door.name


# the arithmetic


def drawn(seed: int, count: int, shift: int = 0) -> list[int]:
    """Times as requests have them: most near each other, some much later."""
    source = random.Random(seed)  # noqa: S311  (times, not secrets)
    return [round(60_000 + shift + source.expovariate(1 / 1_500)) for _ in range(count)]


def test_how_often_one_is_longer_is_counted_over_all_pairs() -> None:
    source = random.Random(7)  # noqa: S311  (numbers to sort)
    for size in (1, 2, 17, 60):
        first, second = ([source.randrange(20) for _ in range(size)] for _ in range(2))
        counted = sum((b > a) + (b == a) / 2 for a in first for b in second) / size**2
        assert auc(first, second) == pytest.approx(counted)


def test_an_interval_holds_what_was_added_and_hardly_moves_for_what_is_rare() -> None:
    noise = [b - a for a, b in zip(drawn(1, 20_000), drawn(2, 20_000), strict=True)]
    estimate, half = interval([each + 300 for each in noise])
    assert abs(estimate - 300) < half < 100
    rare = [each + (500_000 if at % 20 == 0 else 0) for at, each in enumerate(noise)]
    assert abs(interval(rare)[0] - interval(noise)[0]) < 300


@pytest.mark.parametrize(
    ("shift", "equivalent"), [(0, True), (40, True), (700, False), (-700, False), (2_000, False)]
)
def test_what_is_within_the_margin_passes_and_what_is_beyond_does_not(
    shift: int, *, equivalent: bool
) -> None:
    verdict = judged(drawn(1, 20_000), drawn(2, 20_000, shift))
    assert 595 < verdict.margin < 635
    assert verdict.equivalent is equivalent


def test_a_leak_of_a_few_requests_is_seen_by_chance_alone() -> None:
    """One in three takes longer: the trimmed mean stays within the margin, a guess does not stay a coin."""
    leaking = [each + (900 if at % 3 == 0 else 0) for at, each in enumerate(drawn(2, 20_000))]
    verdict = judged(drawn(1, 20_000), leaking)
    assert abs(verdict.estimate) < verdict.margin
    assert not verdict.equivalent


def test_no_request_is_so_slow_that_more_than_two_microseconds_pass() -> None:
    verdict = judged([each + 10**6 for each in drawn(1, 4_000)], [each + 10**6 for each in drawn(2, 4_000)])
    assert verdict.margin == 2_000


def test_the_t_of_others_is_there_and_decides_nothing() -> None:
    alike, apart = (dudect(drawn(1, 5_000), drawn(2, 5_000, shift)) for shift in (0, 2_000))
    assert abs(alike) < 10 < apart
