"""Interleaved blocks and what their medians say; it knows nothing of servers or services."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

_WARM_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Sample:
    """One block: how many operations, how long, at what CPU cost; latencies where they were taken."""

    operations: int
    seconds: float
    cpu: float
    p50: float | None = None
    p99: float | None = None
    driver: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """The blocks of one lane."""

    samples: tuple[Sample, ...]

    @property
    def rate(self) -> float:
        """Operations per second, median of blocks."""
        return median(sample.operations / sample.seconds for sample in self.samples)

    @property
    def cpu(self) -> float:
        """CPU seconds per operation, median of blocks."""
        return median(sample.cpu / sample.operations for sample in self.samples)

    @property
    def driver(self) -> float:
        """The share of a core that the driver used, at most; near 1 the driver is what was measured."""
        return max(sample.driver or 0.0 for sample in self.samples)

    @property
    def p50(self) -> float:
        return median(sample.p50 or 0.0 for sample in self.samples)

    @property
    def p99(self) -> float:
        return median(sample.p99 or 0.0 for sample in self.samples)

    @property
    def spread(self) -> float:
        """Slowest block's CPU over the fastest's: how far this run can be trusted."""
        costs = [sample.cpu / sample.operations for sample in self.samples]
        return max(costs) / max(min(costs), 1e-12)


Lane = Callable[[int], Sample]


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to measure: rounds of blocks of so many seconds, none with more than `cap` operations."""

    rounds: int
    seconds: float
    cap: int = 200_000
    warm_up: int = 8


def interleave(lanes: Mapping[str, Lane], plan: Plan) -> dict[str, Series]:
    """Run every lane once per round, in order, so that a noisy minute falls on all of them alike."""
    sizes = {name: _size(lane, plan) for name, lane in lanes.items()}
    taken: dict[str, list[Sample]] = {name: [] for name in lanes}
    for _ in range(plan.rounds):
        for name, lane in lanes.items():
            taken[name].append(lane(sizes[name]))
    return {name: Series(tuple(samples)) for name, samples in taken.items()}


def _size(lane: Lane, plan: Plan) -> int:
    """Warm the lane up and fix how many operations a block of the planned length holds."""
    operations = min(plan.warm_up, plan.cap)
    lane(operations)  # imports and caches that only the first requests fill
    sample = lane(operations)
    while sample.seconds < min(_WARM_SECONDS, plan.seconds) and operations < plan.cap:
        operations = min(operations * 4, plan.cap)
        sample = lane(operations)
    return max(1, min(plan.cap, int(plan.seconds * sample.operations / sample.seconds)))
