"""What the guard of queries costs: the parser alone, the facts, the verdict; one caller at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from pglast import parser

from nonsuch.adapters.edge.sql_guard import Guard, guard
from nonsuch.adapters.edge.sql_parse import facts_of

from .blocks import Lane, Plan, Sample, Series, interleave

TEXTS = {
    "a row by id": "SELECT id, name FROM customers WHERE id = 7",
    "a report": (
        "WITH paid AS (SELECT o.customer_id, date_trunc('month', o.placed_at) AS month, sum(o.total) AS total"
        " FROM orders o JOIN order_lines l ON l.order_id = o.id WHERE o.status = 'paid' AND l.qty > 0"
        " GROUP BY 1, 2) SELECT c.name, p.month, p.total, rank() OVER (PARTITION BY month ORDER BY total)"
        " FROM paid p JOIN customers c ON c.id = p.customer_id WHERE c.region IN ('north', 'south')"
        " ORDER BY p.month, p.total DESC LIMIT 50"
    ),
    "refused": "SELECT id, (0.2).pg_sleep FROM orders",
    "16 KiB": "SELECT id FROM orders WHERE id IN (" + "1234567, " * 1_800 + "1)",
}


def lanes() -> dict[str, Lane]:
    """One lane for each text and each part of the guard."""
    asked = guard()
    found: dict[str, Lane] = {}
    for name, text in TEXTS.items():
        found[f"parser alone, {name}"] = _lane(partial(parser.parse_sql_json, text))
        found[f"facts, {name}"] = _lane(partial(facts_of, text, asked.catalogue, asked.own))
        found[f"verdict, {name}"] = _lane(partial(_judged, asked, text))
        found[f"verdict again, {name}"] = _lane(partial(asked.judge, text))
    return found


def _judged(asked: Guard, text: str) -> object:
    """As the first time that a guard sees the text; what the policies say of its names is remembered."""
    return Guard(asked.catalogue, asked.policies, asked.own).judge(text)


def measure(plan: Plan) -> dict[str, Series]:
    """The lanes in turns."""
    return interleave(lanes(), plan)


def _lane(once: Callable[[], object]) -> Lane:
    def run(operations: int) -> Sample:
        taken: list[float] = []
        began, used = time.perf_counter(), time.process_time()
        for _ in range(operations):
            start = time.perf_counter()
            once()
            taken.append(time.perf_counter() - start)
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
        taken.sort()
        return Sample(operations, seconds, cpu, taken[len(taken) // 2], taken[len(taken) * 99 // 100])

    return run


def table(series: dict[str, Series]) -> str:
    """Latency and CPU of each lane."""
    lines = ["| lane | p50 us | p99 us | CPU us |", "|---|--:|--:|--:|"]
    lines += [
        f"| {lane} | {one.p50 * 1e6:.0f} | {one.p99 * 1e6:.0f} | {one.cpu * 1e6:.0f} |"
        for lane, one in series.items()
    ]
    return "\n".join(lines)
