"""What two samples of times say: whether they are equivalent within a margin. Takes no time itself.

A test for a difference is no test here: it fires on a few nanoseconds of identical code, or misses two
microseconds among the rest. So the difference is estimated, and its interval must lie within the margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean, median, stdev, variance
from typing import Final

BATCHES: Final = 40
TRIM: Final = 0.25
T_99: Final = 2.708  # Student's t for 39 degrees of freedom, 99 % both sides
SHARE: Final = 0.01
MOST_NS: Final = 2_000.0
AUC: Final = (0.48, 0.52)
CROPS: Final = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """Figures of one comparison, in nanoseconds: the second sample less the first."""

    pairs: int
    median: float
    estimate: float
    half: float
    auc: float
    t: float

    @property
    def margin(self) -> float:
        """One hundredth of the median request, and never more than two microseconds."""
        return min(SHARE * self.median, MOST_NS)

    @property
    def equivalent(self) -> bool:
        """Whether the interval lies within the margin, and a guess from one time is a coin."""
        within = -self.margin <= self.estimate - self.half and self.estimate + self.half <= self.margin
        return within and AUC[0] <= self.auc <= AUC[1]


def judged(first: Sequence[int], second: Sequence[int]) -> Verdict:
    """Compare two samples that were taken in pairs."""
    estimate, half = interval([b - a for a, b in zip(first, second, strict=True)])
    middle = median([*first, *second])
    return Verdict(len(first), middle, estimate, half, auc(first, second), dudect(first, second))


def interval(differences: Sequence[int]) -> tuple[float, float]:
    """Return the mean of trimmed means of batches and the half width of its 99 % interval.

    Neighbours depend on each other, so the batches are what is independent.
    """
    size = len(differences) // BATCHES
    batches = [differences[at * size : (at + 1) * size] for at in range(BATCHES)]
    means = [_trimmed(batch) for batch in batches]
    return fmean(means), T_99 * stdev(means) / sqrt(BATCHES)


def _trimmed(batch: Sequence[int]) -> float:
    cut = int(len(batch) * TRIM)
    return fmean(sorted(batch)[cut : len(batch) - cut])


def auc(first: Sequence[int], second: Sequence[int]) -> float:
    """Return how often a time of the second sample is longer than one of the first; a tie is half."""
    marked = sorted([(each, 0) for each in first] + [(each, 1) for each in second])
    above, at, lower = 0.0, 0, 0
    while at < len(marked):
        end = at
        while end < len(marked) and marked[end][0] == marked[at][0]:
            end += 1
        ones = sum(mark for _, mark in marked[at:end])
        zeros = end - at - ones
        above += ones * (lower + zeros / 2)
        lower += zeros
        at = end
    return above / (len(first) * len(second))


def dudect(first: Sequence[int], second: Sequence[int]) -> float:
    """Return the largest t over samples cropped at percentiles, as dudect has it; for readers who expect it.

    It draws no conclusion here: dudect itself calls no t below 10 more than moderate.
    """
    both = sorted([*first, *second])
    limits = [both[int(len(both) * (1 - 0.5 ** (10 * (crop + 1) / CROPS)))] for crop in range(CROPS - 1)]
    cropped = [
        _welch([each for each in first if each < limit], [each for each in second if each < limit])
        for limit in [*limits, inf]
    ]
    return max(cropped, key=abs)


def _welch(first: Sequence[int], second: Sequence[int]) -> float:
    if min(len(first), len(second)) < 2:
        return 0.0
    spread = variance(first) / len(first) + variance(second) / len(second)
    return (fmean(second) - fmean(first)) / sqrt(spread) if spread else 0.0
