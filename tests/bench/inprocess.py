"""In-process costs: decisions, listings and calls without a socket, interleaved over worker processes."""

import json
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import IO

from .blocks import Lane, Plan, Sample, Series, interleave
from .server import ROOT, environment
from .wire import WIRES

SIZES = (10, 100, 1_000, 10_000)
FRESH_CAP = 120
"""Fresh callers per block: a caller is fresh once, and a worker has 1,023 of them."""


class Worker:
    """The parent's end of one worker process."""

    def __init__(self, name: str, tools: int, orders: IO[str], answers: IO[str]) -> None:
        self.name, self.tools, self._orders, self._answers = name, tools, orders, answers

    def order(self, **order: object) -> dict[str, float]:
        self._orders.write(json.dumps(order) + "\n")
        self._orders.flush()
        return self.answer()

    def answer(self) -> dict[str, float]:
        line = self._answers.readline()
        if not line:
            raise RuntimeError(
                f"the worker of `{self.name}` with {self.tools} tools ended early; its words are above"
            )
        answer: dict[str, float] = json.loads(line)
        return answer

    def lane(self, **order: object) -> Lane:
        def run(operations: int) -> Sample:
            cost = self.order(n=operations, **order)
            return Sample(int(cost["n"]), cost["seconds"], cost["cpu"])

        return run


@contextmanager
def worker(name: str, tools: int) -> Generator[Worker]:
    """A worker that has built its subject; ended on leaving."""
    command = [sys.executable, "-m", f"{__package__}.worker", name, str(tools)]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(tools), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        made = Worker(name, tools, process.stdin, process.stdout)
        made.answer()
        yield made
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def calls(names: list[str], plan: Plan) -> tuple[dict[str, Series], dict[str, float]]:
    """`tools/call` at 100 tools on both wires for every subject, and the calls counted for one of them."""
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(name, 100)) for name in names]
        lanes = {f"{one.name} {wire}": one.lane(op="call", wire=wire) for wire in WIRES for one in workers}
        series = interleave(lanes, plan)
        counts = {one.name: one.order(op="count", wire="legacy")["calls"] for one in workers}
    return series, counts


def growth(sizes: tuple[int, ...], plan: Plan) -> tuple[dict[str, Series], dict[str, float]]:
    """nonsuch alone: gates and calls at growing catalogs; and the resident bytes of each process."""
    with ExitStack() as stack:
        workers = [stack.enter_context(worker("nonsuch", size)) for size in sizes]
        lanes: dict[str, Lane] = {}
        for one in workers:
            for pattern in ("hot", "uniform", "callers"):
                lanes[f"gates {pattern} {one.tools}"] = one.lane(op="gates", pattern=pattern)
            for wire in WIRES:
                lanes[f"call {wire} {one.tools}"] = one.lane(op="call", wire=wire)
        memory = {str(one.tools): one.order(op="memory")["bytes"] for one in workers}
        series = interleave(lanes, plan)
    return series, memory


def lists(names: list[str], size: int, plan: Plan) -> dict[str, Series]:
    """`tools/list` of one size: repeat callers for everybody, new callers where there are callers at all.

    A subject's variants (`nonsuch-plain`) differ in calls only and are left out.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(name, size)) for name in names if "-" not in name]
        warm = {f"{one.name} warm": one.lane(op="list", wire="legacy", caller="warm") for one in workers}
        warm |= _extra(workers, size)
        fresh = {
            f"{one.name} {caller}": one.lane(op="list", wire="legacy", caller=caller)
            for one in workers
            if one.name in ("nonsuch", "fastmcp")
            for caller in ("fresh", "mixed")
        }
        series = interleave(warm, plan)
        capped = Plan(plan.rounds, plan.seconds, cap=min(FRESH_CAP, plan.cap), warm_up=8)
        return series | interleave(fresh, capped)


def _extra(workers: list[Worker], size: int) -> Mapping[str, Lane]:
    """At 1,000 tools: the encoding of nonsuch's own list, and the list on the modern wire."""
    mine = [one for one in workers if one.name == "nonsuch" and size == 1_000]
    codecs = {
        f"encode {codec}": one.lane(op="encode", wire="legacy", codec=codec)
        for one in mine
        for codec in CODECS
    }
    modern = {f"{one.name} modern": one.lane(op="list", wire="modern", caller="warm") for one in mine}
    return codecs | modern


CODECS = ("json", "pydantic")
