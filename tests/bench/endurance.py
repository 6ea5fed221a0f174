"""`make load`: `nonsuch serve` under a crowd. Do normal callers notice it, and does memory stay where it is?

Normal callers send at a fixed pace before the crowd is there and while it is. Bars: their p99 grows less than
threefold, no answer of theirs is missing, every kept connection is answered, and memory is flat once the
first fifth of the time is over.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO, Final

import uvloop

from .crowd import HOST, crowded, more_files, request, status_of

PAGE: Final = 2**20
GROWTH: Final = 3.0
FLAT: Final = 1.05
LOST: Final = ("IncompleteReadError", "ConnectionResetError", "BrokenPipeError", "kept, and let go")
APP: Final = """
from pydantic import BaseModel
from nonsuch import Agent, Limits, Rate, Registry, can, define_app_mcp, expose, grant

class Said(BaseModel):
    text: str

registry = Registry()

@registry.query(policy=can("text:read"), mcp=expose("Say it again"))
async def echo(input: Said) -> str:
    return input.text

many = Rate(1_000_000_000)
mcp = define_app_mcp(
    registry,
    name="crowded",
    include="exposed",
    grants=[grant("member", "any")],
    resolve_token={f"t{number}": Agent(f"a{number}", roles={"member"}) for number in range(100)}.get,
    rate_limits=Limits(many, many, Rate(20)),
    secret=b"x" * 32,
)
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """How many of each, and for how long."""

    seconds: float
    workers: int
    kept: int
    slow: int
    callers: int
    pace: float


# the server


@dataclass(frozen=True, slots=True)
class Served:
    """The server's processes."""

    port: int
    process: subprocess.Popen[str]

    def memory(self) -> int:
        """The bytes that all its processes hold of their own."""
        return sum(_resident(pid) for pid in [self.process.pid, *_children(self.process.pid)])


def _resident(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1_024
    return 0


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@contextmanager
def serving(plan: Plan) -> Generator[Served]:
    """`nonsuch serve`, as an operator starts it behind a proxy of this machine."""
    with tempfile.TemporaryDirectory(prefix="ns-crowd-") as home:
        (Path(home) / "crowded.py").write_text(APP)
        options = ["--port", "0", "--json", "--app", "crowded", "--workers", str(plan.workers)]
        command = [sys.executable, "-m", "nonsuch.adapters.cli", "serve", *options]
        command += ["--forwarded-allow-ips", HOST]
        process = subprocess.Popen(
            command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            yield Served(_port(process), process)
        finally:
            process.terminate()
            process.wait(60)


def _port(process: subprocess.Popen[str]) -> int:
    text = ""
    for line in process.stdout or ():
        text += line
        if line == "}\n":
            return int(json.loads(text)["url"].rpartition(":")[2])
    raise RuntimeError("the server did not start")


# normal callers


@dataclass(slots=True)
class Heard:
    """What normal callers were answered, and after how long."""

    taken: list[float]
    wrong: Counter[str]

    def at(self, share: float) -> float:
        """Return the time within which a share of them was answered."""
        return sorted(self.taken)[min(len(self.taken) - 1, int(len(self.taken) * share))]


async def called(port: int, plan: Plan, seconds: float) -> Heard:
    """Call at a fixed pace; who is late waits no longer for the next turn, and it counts from its turn on."""
    heard = Heard([], Counter())
    end = time.perf_counter() + seconds
    await asyncio.gather(*(_caller(port, plan, number, end, heard) for number in range(plan.callers)))
    return heard


async def _caller(port: int, plan: Plan, number: int, end: float, heard: Heard) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    sent = request(f"t{number}", "hello")
    turn = time.perf_counter() + random.random() * plan.pace  # noqa: S311  (when to send)
    while turn < end:
        await asyncio.sleep(max(0.0, turn - time.perf_counter()))
        try:
            writer.write(sent)
            status = await status_of(reader)
            heard.taken.append(time.perf_counter() - turn)
            heard.wrong.update([str(status)] if status != 200 else [])
        except (OSError, EOFError) as fault:
            heard.wrong[type(fault).__name__] += 1
            reader, writer = await asyncio.open_connection(HOST, port)
        turn += plan.pace
    writer.close()


# measuring


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a run."""

    alone: Heard
    among: Heard
    memory: list[tuple[float, int]]
    crowd: dict[str, int]

    def bars(self, plan: Plan) -> Iterable[tuple[str, str, bool]]:
        """Every bar: what it is, what was found, whether it holds."""
        alone, among = self.alone.at(0.99), self.among.at(0.99)
        growth = among / alone
        yield (
            f"p99 of normal callers, {alone * 1e3:.2f} ms alone, {among * 1e3:.2f} ms among the crowd",
            f"x{growth:.2f} of x{GROWTH:g}",
            growth < GROWTH,
        )
        wrong = {**self.alone.wrong, **self.among.wrong}
        yield "answers of normal callers that are missing or wrong", str(wrong or 0), not wrong
        refused = self.crowd.get("kept, and refused", 0)
        lost = sum(self.crowd.get(name, 0) for name in LOST)
        told = f"{self.crowd.get('open', 0)} open, {lost} lost, {refused} refused"
        held = self.crowd.get("open", 0) >= 0.98 * plan.kept and not lost and not refused
        yield f"connections kept alive, of {plan.kept}, each made anew after half a minute", told, held
        first, last = self._flat()
        yield (
            f"memory, {first / PAGE:.1f} MiB in the second fifth, {last / PAGE:.1f} MiB in the last",
            f"x{last / first:.3f} of x{FLAT:g}",
            last / first < FLAT,
        )

    def _flat(self) -> tuple[float, float]:
        fifth = max(1, len(self.memory) // 5)
        held = [held for _, held in self.memory]
        return median(held[fifth : 2 * fifth]), median(held[-fifth:])


async def measured(plan: Plan) -> Found:
    """Start everything, and watch."""
    with serving(plan) as served:
        await called(served.port, plan, 2)  # imports and caches that only the first requests fill
        alone = await called(served.port, plan, max(10.0, plan.seconds / 10))
        with (
            tempfile.TemporaryFile("w+") as said,
            crowded(served.port, plan.kept, plan.slow, said) as process,
        ):
            await asyncio.sleep(max(5.0, plan.seconds / 20))
            watch = asyncio.create_task(_watched(served))
            among = await called(served.port, plan, plan.seconds)
            watch.cancel()
            memory = await watch
            if process.poll() is not None:
                raise RuntimeError("the crowd has left")
            told = _last(said)
    return Found(alone, among, memory, told)


async def _watched(served: Served) -> list[tuple[float, int]]:
    """Look at the memory every second, until it is enough."""
    seen, began = list[tuple[float, int]](), time.monotonic()
    with suppress(asyncio.CancelledError):
        while True:
            await asyncio.sleep(1)
            seen.append((time.monotonic() - began, await asyncio.to_thread(served.memory)))
    return seen


def _last(said: IO[str]) -> dict[str, int]:
    """Return what the crowd said last."""
    said.seek(0)
    lines = [line for line in said if line.endswith("}\n")]
    found: dict[str, int] = json.loads(lines[-1]) if lines else {}
    return found


def main() -> int:
    """Print what was found; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description="measure `nonsuch serve` under a crowd")
    parser.add_argument("--seconds", type=float, default=600, help="among the crowd")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kept", type=int, default=1_000, help="connections that are kept alive")
    parser.add_argument("--slow", type=int, default=200, help="senders of a few bytes a second")
    parser.add_argument("--callers", type=int, default=8, help="normal callers")
    parser.add_argument("--pace", type=float, default=0.05, help="seconds between requests of one")
    given = parser.parse_args()
    more_files()
    plan = Plan(given.seconds, given.workers, given.kept, given.slow, given.callers, given.pace)
    load = os.getloadavg()[0]
    found = uvloop.run(measured(plan))
    _show(plan, found, load)
    return int(not all(holds for _, _, holds in found.bars(plan)))


def _show(plan: Plan, found: Found, load: float) -> None:
    print(f"{plan.seconds:g} s, {plan.workers} workers, {os.cpu_count()} cores, load {load:.1f} before")
    for name, heard in (("alone", found.alone), ("among the crowd", found.among)):
        times = ", ".join(f"p{share * 100:g} {heard.at(share) * 1e3:.2f} ms" for share in (0.5, 0.9, 0.99))
        print(f"normal callers {name}: {len(heard.taken)} answers, {times}")
    print("the crowd: " + ", ".join(f"{name} {count}" for name, count in sorted(found.crowd.items())))
    step = max(1, len(found.memory) // 10)
    print("MiB: " + ", ".join(f"{at:.0f} s {held / PAGE:.1f}" for at, held in found.memory[::step]))
    for what, told, holds in found.bars(plan):
        print(f"{'ok    ' if holds else 'MISSED'} {what}: {told}")


if __name__ == "__main__":
    sys.exit(main())
