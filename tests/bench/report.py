"""Figures beside the bars they are held to, as markdown tables; it measures nothing."""

from dataclasses import dataclass
from typing import Literal

from .blocks import Series


@dataclass(frozen=True, slots=True)
class Bound:
    """A figure to stay on one side of."""

    side: Literal["<=", ">="]
    value: float

    def holds(self, measured: float) -> bool:
        return measured <= self.value if self.side == "<=" else measured >= self.value

    def __str__(self) -> str:
        return f"{self.side} {self.value:g}"


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure with the bar of this release and the figure where it has to arrive."""

    what: str
    measured: float
    bar: Bound | None = None
    aim: Bound | None = None
    unit: str = "x"

    @property
    def missed(self) -> bool:
        return self.bar is not None and not self.bar.holds(self.measured)


def at_most(value: float) -> Bound:
    return Bound("<=", value)


def at_least(value: float) -> Bound:
    return Bound(">=", value)


def bars(rows: list[Row]) -> str:
    """The rows as a markdown table."""
    lines = ["| ratio | measured | bar | | aim | |", "|---|--:|--:|---|--:|---|"]
    for row in rows:
        cells = [row.what, f"{row.measured:.3g} {row.unit}", *_against(row.bar, row), *_against(row.aim, row)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def loopback(series: dict[str, Series]) -> str:
    """Throughput, latency and CPU of each lane over loopback."""
    lines = ["| lane | req/s | p50 ms | p99 ms | CPU us/req | driver core |", "|---|--:|--:|--:|--:|--:|"]
    lines += [
        f"| {lane} | {one.rate:.0f} | {one.p50 * 1e3:.2f} | {one.p99 * 1e3:.2f} "
        f"| {one.cpu * 1e6:.0f} | {one.driver:.2f} |"
        for lane, one in series.items()
    ]
    return "\n".join(lines)


def costs(series: dict[str, Series]) -> str:
    """CPU of each lane in process, with the spread of its blocks."""
    lines = ["| lane | CPU us | slowest block / fastest |", "|---|--:|--:|"]
    lines += [f"| {lane} | {one.cpu * 1e6:.1f} | {one.spread:.2f} |" for lane, one in series.items()]
    return "\n".join(lines)


def _against(bound: Bound | None, row: Row) -> tuple[str, str]:
    if bound is None:
        return "", ""
    return str(bound), "ok" if bound.holds(row.measured) else "MISSED"
