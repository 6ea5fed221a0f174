"""What an input costs a server, in memory and CPU time: its own parser and the app, without a socket.

`python -m tests.doors.measure` prints the ten that cost most; with a parser, all of its costs as JSON. Judges
nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import time
import tracemalloc
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final

from uvicorn.server import ServerState

from nonsuch import App

from .bulk import BULK, IN_LINE, counter
from .raw import CASES, PING, Case
from .raw_app import Marked, config

ROOT: Final = Path(__file__).resolve().parents[2]
PARSERS: Final = ("h11", "httptools", "serve")
SEGMENT: Final = 65_536
TURNS: Final = 40  # of the loop, in which a request of the corpus is answered or waits for more
PACKET: Final = 1_500  # the least that anybody sends


@dataclass(frozen=True, slots=True)
class Cost:
    """What one input cost: bytes at the peak, nanoseconds of CPU, and both for each byte that was sent."""

    name: str
    size: int
    memory: int
    cpu: int

    @property
    def memory_factor(self) -> float:
        """Bytes held for each byte sent; less than a packet is a packet."""
        return self.memory / max(self.size, PACKET)

    def cpu_factor(self, unit: float) -> float:
        """CPU for each byte sent, where the unit is what a JSON parser takes for a byte."""
        return self.cpu / max(self.size, PACKET) / unit


class Wire(asyncio.Transport):
    """The server's end of a connection: keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 80), "peername": ("127.0.0.1", 9)})
        self.written, self.closed = list[bytes](), False

    def write(self, data: Any) -> None:
        """Keep it."""
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        """Whether the server has had enough."""
        return self.closed

    def close(self) -> None:
        """End it."""
        self.closed = True

    def get_write_buffer_size(self) -> int:
        """Say that all of it was read."""
        return 0

    def pause_reading(self) -> None:
        """Go on: what the corpus sends is bounded."""

    def resume_reading(self) -> None:
        """Go on."""


def unit_of_cpu() -> float:
    """Return the nanoseconds that the standard library's JSON parser takes for a byte, here and now."""
    text = b"[" + b",".join([PING] * 1_000) + b"]"
    best = min(_timed(lambda: json.loads(text)) for _ in range(5))
    return best / len(text)


def _timed(call: Any) -> int:
    before = time.thread_time_ns()
    call()
    return time.thread_time_ns() - before


def costs(app: App, parser: str, cases: tuple[Case, ...]) -> list[Cost]:
    """Send each input to a connection of its own, three times."""
    with asyncio.Runner() as runner:
        settings = config(app, parser)
        settings.load()
        return [_cost(runner, settings, case) for case in cases]


def _cost(runner: asyncio.Runner, settings: Any, case: Case) -> Cost:
    def once() -> None:
        runner.run(_served(settings, case))

    once()
    cpu = min(_timed(once) for _ in range(2))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        once()
        memory = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return Cost(case.name, len(case.raw), memory, cpu)


def worst(found: list[Cost], unit: float) -> str:
    """Return the ten inputs that cost most for their size."""
    most = sorted(found, key=lambda each: -max(each.memory_factor, each.cpu_factor(unit)))[:10]
    told = "{0.name}: {0.size} bytes, memory x{0.memory_factor:.1f}, CPU x{1:.1f}"
    return "\n".join(told.format(each, each.cpu_factor(unit)) for each in most)


async def _served(settings: Any, case: Case) -> None:
    """Be one connection: its bytes in segments, as a socket has them, and then its end."""
    wire, state = Wire(), ServerState()
    protocol = settings.http_protocol_class(config=settings, server_state=state, app_state={})
    protocol.connection_made(wire)
    for at in range(0, len(case.raw), SEGMENT):
        if not wire.closed:
            protocol.data_received(case.raw[at : at + SEGMENT])
            await asyncio.sleep(0)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    await asyncio.gather(*state.tasks)


def every(parser: str) -> list[Cost]:
    """Return what each input of both corpora costs; one parser keeps all requests that are in line."""
    line = () if parser == "httptools" else IN_LINE  # uvicorn with it is no door of ours: `serve` bounds them
    return [*costs(Marked().app, parser, CASES), *costs(counter(), parser, (*BULK, *line))]


def measured(parser: str) -> tuple[list[Cost], float]:
    """Return what each input costs, and the unit, measured in a process of its own.

    Here a test run may trace every line of ours and none of the JSON parser's, which is written in C.
    """
    command = [sys.executable, "-m", "tests.doors.measure", parser]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=120).stdout
    held = json.loads(told)
    return [Cost(*each) for each in held["costs"]], held["unit"]


def main() -> None:
    """Print the worst ten of each parser, or all of one."""
    logging.disable(logging.CRITICAL)
    unit = unit_of_cpu()
    if len(sys.argv) == 2:
        found = [astuple(each) for each in every(sys.argv[1])]
        sys.stdout.write(json.dumps({"unit": unit, "costs": found}))
        return
    for parser in PARSERS:
        sys.stdout.write(f"{parser}\n{worst(every(parser), unit)}\n")


if __name__ == "__main__":
    main()
