"""`make load`: `nonsuch serve` under a crowd. Do normal callers notice it, and does memory stay where it is?

The crowd is a process of its own: connections that are kept alive and say something now and then, senders
that take a second for a few bytes, and callers that come, fail and go. Normal callers send at a fixed pace
before and while it is there. Bars: their p99 grows less than threefold, no answer of theirs is missing, every
kept connection is answered, and memory is flat once the first fifth of the time is over.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO, Final

import uvloop

HOST: Final = "127.0.0.1"
PAGE: Final = 2**20
GROWTH: Final = 3.0
FLAT: Final = 1.05
KEPT_SECONDS: Final = 3.0  # between two requests of a kept connection: uvicorn lets go of one after five
LIFE_SECONDS: Final = 30.0
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


def request(token: str, text: str, *, address: str = "", close: bool = False) -> bytes:
    """A call, as bytes."""
    params = {"name": "echo", "arguments": {"text": text}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        "Accept: application/json",
        "MCP-Protocol-Version: 2025-11-25",
        f"Content-Length: {len(body)}",
        *([f"X-Forwarded-For: {address}"] if address else []),
        *(["Connection: close"] if close else []),
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


async def status_of(reader: asyncio.StreamReader) -> int:
    """Read one whole answer. Raises: ConnectionError, EOFError."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    await reader.readexactly(length)
    return int(head.split(b" ", 2)[1])


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


# the crowd


async def crowd(port: int, plan: Plan) -> None:
    """Be the crowd until the process is ended; tell every second how it goes, a line each."""
    told = Counter[str]()
    kept = (_again(told, _kept(port, number, told)) for number in range(plan.kept))
    slow = (_again(told, _slow(port, number)) for number in range(plan.slow))
    tasks = [asyncio.create_task(each) for each in (*kept, *slow, _passing(port, told))]
    while True:
        await asyncio.sleep(1)
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
        assert not any(each.done() for each in tasks)


async def _again(told: Counter[str], once: Callable[[], Awaitable[str]]) -> None:
    await asyncio.sleep(random.random() * KEPT_SECONDS)  # noqa: S311  (when to come)
    while True:
        try:
            told[await once()] += 1
        except (OSError, EOFError) as fault:
            told[type(fault).__name__] += 1
        await asyncio.sleep(0.1)


def _kept(port: int, number: int, told: Counter[str]) -> Callable[[], Awaitable[str]]:
    """A connection that is kept, says something now and then, and is made anew after half a minute."""

    sent = request(f"t{number % 100}", "still here")

    async def once() -> str:
        reader, writer = await asyncio.open_connection(HOST, port)
        told["open"] += 1
        try:
            end = time.monotonic() + LIFE_SECONDS * (0.5 + random.random())  # noqa: S311  (how long to stay)
            while time.monotonic() < end:
                if writer.is_closing():
                    return "kept, and let go"
                writer.write(sent)
                if await status_of(reader) != 200:
                    return "kept, and refused"
                await asyncio.sleep(KEPT_SECONDS)
            return "kept"
        finally:
            told["open"] -= 1
            writer.close()

    return once


def _slow(port: int, number: int) -> Callable[[], Awaitable[str]]:
    """A sender of a few bytes a second: of a head, or of a body; the server ends it, or answers."""

    async def once() -> str:
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            sent = request(f"t{number % 100}", "slowly " * 40)
            fast = 0 if number % 2 else sent.index(b"\r\n\r\n") + 4
            writer.write(sent[:fast])
            for at in range(fast, len(sent), 4):
                if writer.is_closing() or reader.at_eof():
                    return "slow, and let go"
                writer.write(sent[at : at + 4])
                await asyncio.sleep(1)
            return "slow, and answered" if await status_of(reader) == 200 else "slow, and refused"
        except ConnectionError:
            return "slow, and let go"
        finally:
            writer.close()

    return once


async def _passing(port: int, told: Counter[str]) -> None:
    """Callers that come from ever new addresses, guess a token and go."""
    while True:
        await asyncio.sleep(0.05)
        address = f"2001:db8:{random.randrange(65_536):x}:{random.randrange(65_536):x}::1"  # noqa: S311  (anybody)
        with suppress(OSError, EOFError):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(request("guess", "x", address=address, close=True))
            told[f"guessed: {await status_of(reader)}"] += 1
            writer.close()


@contextmanager
def crowded(port: int, plan: Plan, said: IO[str]) -> Generator[subprocess.Popen[str]]:
    """The crowd in a process of its own."""
    options = ["--crowd", str(port), "--kept", str(plan.kept), "--slow", str(plan.slow)]
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, *options]
    process = subprocess.Popen(command, stdout=said, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


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
        with tempfile.TemporaryFile("w+") as said, crowded(served.port, plan, said) as process:
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
    parser.add_argument("--crowd", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    plan = Plan(given.seconds, given.workers, given.kept, given.slow, given.callers, given.pace)
    if given.crowd is not None:
        uvloop.run(crowd(given.crowd, plan))
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
