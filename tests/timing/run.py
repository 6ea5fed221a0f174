"""`make timing`: whether the time of an answer tells a hidden name from one that nobody declared.

Each door is measured beside two controls. Absent names against other absent names must be equivalent, and
a planted leak must be found: else nothing was learned, and the door is measured again, three times at most.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Final, Literal

from ..mutants.rewrite import applied
from ..mutants.table import MUTANTS
from .doors import DOORS, SHAPES, Asked, Desk, Door, names
from .judging import MOST_NS, Verdict, judged

PAIRS: Final = 20_000
BLOCK: Final = 500
WARM: Final = 300
ATTEMPTS: Final = 3
PLANT_NS: Final = 2_000
LEAK: Final = "asks-for-known"  # a mutant of the kernel: policy is asked about the names that it knows
Outcome = Literal["equivalent", "differs", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Line:
    """One comparison of a door, and what it had to say."""

    door: str
    what: str
    verdict: Verdict
    expected: bool

    @property
    def right(self) -> bool:
        """Whether it came out as it had to."""
        return self.verdict.equivalent is self.expected

    def __str__(self) -> str:
        told = self.verdict
        said = "equivalent" if told.equivalent else "differs"
        return (
            f"{self.door:25} {self.what:26} {told.median / 1e3:6.1f} us "
            f"{told.estimate:+7.0f} +-{told.half:4.0f} ns of {told.margin:4.0f}  "
            f"AUC {told.auc:.3f}  t {told.t:+6.1f}  {said}{'' if self.right else '  WRONG'}"
        )


class Lane:
    """Two classes of requests to one served app, asked in pairs of random order."""

    def __init__(self, desk: Desk, first: Sequence[Asked], second: Sequence[Asked], seed: int) -> None:
        self._desk, self._first, self._second = desk, first, second
        self._chance = random.Random(seed)  # noqa: S311  (which comes first is no secret)

    def taken(self, pairs: int, burn: int = 0) -> tuple[list[int], list[int]]:
        """Return the times of both classes; ``burn`` loop turns are a leak of the second one's."""
        first, second = list[int](), list[int]()
        self._block(WARM, burn)
        for at in range(0, pairs, BLOCK):
            gc.collect()
            gc.disable()  # a collection falls on whoever asks then
            try:
                some = self._block(min(BLOCK, pairs - at), burn)
            finally:
                gc.enable()
            first += some[0]
            second += some[1]
        return first, second

    def _block(self, pairs: int, burn: int) -> tuple[list[int], list[int]]:
        ask, chance = self._desk.ask, self._chance
        first, second = list[int](), list[int]()
        for _ in range(pairs):
            one, other = chance.choice(self._first), chance.choice(self._second)
            if chance.random() < 0.5:
                first.append(ask(one, 0)[0])
                second.append(ask(other, burn)[0])
            else:
                second.append(ask(other, burn)[0])
                first.append(ask(one, 0)[0])
        return first, second


def turns_of(nanoseconds: int) -> int:
    """Return how many turns of an empty loop take so long, here and now."""
    turns = 200  # about as many as are to be burnt: a long loop runs at another pace

    def once() -> int:
        began = perf_counter_ns()
        for _ in range(turns):
            pass
        return perf_counter_ns() - began

    return max(1, round(nanoseconds * turns / median(once() for _ in range(2_000))))


def measured(door: Door, pairs: int, seed: int) -> Iterator[Line]:
    """Yield every comparison of a door: its controls first."""
    drawn = names(seed)
    desk = Desk(door.app(drawn.hidden))

    def lane(first: Iterable[str], second: Iterable[str], shape: str) -> Lane:
        made = [[door.ask(name, SHAPES[shape]) for name in pair] for pair in zip(first, second, strict=True)]
        return Lane(desk, [one for one, _ in made], [other for _, other in made], seed)

    shape = door.shapes[len(door.shapes) // 2]
    control = lane(drawn.absent, drawn.others, shape)
    null = judged(*control.taken(pairs))
    yield Line(door.name, "absent and absent", null, True)
    plant = round(max(PLANT_NS, 2 * min(null.margin, MOST_NS)))
    planted = judged(*control.taken(pairs, turns_of(plant)))
    yield Line(door.name, f"absent, {plant / 1e3:.1f} us planted", planted, False)
    with applied(next(each.edits for each in MUTANTS if each.name == LEAK)):
        leaking = judged(*lane(drawn.absent, drawn.hidden, shape).taken(max(pairs // 10, 2_000)))
    yield Line(door.name, f"leak: {LEAK}", leaking, False)
    for each in door.shapes:
        verdict = judged(*lane(drawn.absent, drawn.hidden, each).taken(pairs))
        yield Line(door.name, f"hidden, {each} arguments", verdict, True)


def settled(door: Door, pairs: int, seed: int, say: Callable[[str], object]) -> Outcome:
    """Measure a door until its controls come out right."""
    for attempt in range(ATTEMPTS):
        lines = list[Line]()
        for line in measured(door, pairs, seed + attempt):
            lines.append(line)
            say(str(line))
        controls, shown = lines[:3], lines[3:]
        if all(line.right for line in controls):
            return "equivalent" if all(line.right for line in shown) else "differs"
        say(f"{door.name:26} a control came out wrong: nothing was learned")
    return "inconclusive"


def main() -> int:
    """0 if every door is equivalent, 1 if one differs or nothing could be learned of it."""
    parser = argparse.ArgumentParser(description="measure whether latency tells hidden from absent")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--only", choices=[door.name for door in DOORS], help="one door")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    options = parser.parse_args()
    _say(f"{options.pairs} pairs, seed {options.seed}, load {os.getloadavg()[0]:.1f}")
    chosen = [door for door in DOORS if options.only in (None, door.name)]
    outcomes = [settled(door, options.pairs, options.seed, _say) for door in chosen]
    for door, outcome in zip(chosen, outcomes, strict=True):
        _say(f"{door.name}: {outcome}")
    return int(any(outcome != "equivalent" for outcome in outcomes))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
