"""One subject in a process of its own, driven through its ASGI interface: orders on stdin, costs on stdout.

A process per subject and size keeps one subject's heap and garbage collections out of another's figures.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from types import FrameType
from typing import Any

import pydantic_core
import uvloop

from . import proof, service, subjects, wire
from .drive import Drive

Order = dict[str, Any]
Cost = dict[str, float]


class Worker:
    """Carries out orders against one subject."""

    def __init__(self, drive: Drive, name: str, tools: int) -> None:
        self._drive, self._name, self._tools = drive, name, tools
        self._unused: dict[str, Iterator[int]] = {
            kind: iter(range(service.FRESH)) for kind in ("fresh", "mixed")
        }
        self._hot: dict[wire.Wire, Iterator[wire.Request]] = {
            one: cycle(wire.calls(one, tools)) for one in wire.WIRES
        }
        self._gates: dict[str, Callable[[int], None]] = {}
        self._list: object = None

    async def carry_out(self, order: Order) -> Cost:
        match order["op"]:
            case "call":
                hot = self._hot[order["wire"]]
                return await self._timed([next(hot) for _ in range(order["n"])])
            case "list":
                return await self._timed(self._listings(order["wire"], order["caller"], order["n"]))
            case "encode":
                return await self._encode(order["wire"], order["codec"], order["n"])
            case "gates":
                return self._decide(order["pattern"], order["n"])
            case "count":
                return {"calls": await self._count(next(self._hot[order["wire"]]))}
            case "memory":
                return {"bytes": _resident()}
            case other:
                raise ValueError(f"unknown order `{other}`")

    async def _timed(self, requests: list[wire.Request]) -> Cost:
        ask = self._drive.ask
        wall, cpu = time.perf_counter(), time.process_time()
        for request in requests:
            await ask(request)
        return {"n": len(requests), "cpu": time.process_time() - cpu, "seconds": time.perf_counter() - wall}

    def _listings(self, one: wire.Wire, caller: str, count: int) -> list[wire.Request]:
        if caller == "warm":
            return [wire.listing(one, self._tools)] * count
        token = service.fresh_token if caller == "fresh" else service.mixed_token
        return [wire.listing(one, self._tools, token(next(self._unused[caller]))) for _ in range(count)]

    async def _encode(self, one: wire.Wire, codec: str, count: int) -> Cost:
        """The cost of encoding the very list that this subject serves."""
        if self._list is None:
            answer = json.loads(await self._drive.ask(wire.listing(one, self._tools)))
            self._list = answer["result"]["tools"]
        encode: Callable[[object], object] = json.dumps if codec == "json" else pydantic_core.to_json
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            encode(self._list)
        return {"n": count, "cpu": time.process_time() - cpu, "seconds": time.perf_counter() - wall}

    def _decide(self, pattern: str, count: int) -> Cost:
        from . import peer_nonsuch

        if pattern not in self._gates:
            self._gates[pattern] = peer_nonsuch.decisions(self._tools, pattern)
        decide = self._gates[pattern]
        wall, cpu = time.perf_counter(), time.process_time()
        decide(count)
        return {"n": count, "cpu": time.process_time() - cpu, "seconds": time.perf_counter() - wall}

    async def _count(self, request: wire.Request) -> float:
        """Python and C calls of one warm request, driver included: it does not vary with the machine."""
        counted = 0

        def note(frame: FrameType, event: str, arg: object) -> None:
            nonlocal counted
            counted += event in ("call", "c_call")

        await self._drive.ask(request)
        sys.setprofile(note)
        try:
            await self._drive.ask(request)
        finally:
            sys.setprofile(None)
        return float(counted)


def _resident() -> float:
    return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def serve(name: str, tools: int) -> None:
    """Answer orders until stdin ends. Whatever a subject prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    drive = Drive(subjects.build(name, tools))
    async with drive.lifespan():
        await proof.prove(name, drive.passes)
        worker = Worker(drive, name, tools)
        answers.write(json.dumps({"ready": 1}) + "\n")
        for line in sys.stdin:
            answers.write(json.dumps(await worker.carry_out(json.loads(line))) + "\n")


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], int(sys.argv[2])))
