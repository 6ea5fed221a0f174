"""Who comes to a server besides its normal callers: a process of its own, until it is ended. Judges nothing.

Connections that are kept alive and say something now and then, senders of a few bytes a second, and callers
that come from ever new addresses, fail and go. Every second it tells how it goes, a line each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from typing import IO, Final

import uvloop

HOST: Final = "127.0.0.1"
KEPT_SECONDS: Final = 3.0  # between two requests of a kept connection: uvicorn lets go of one after five
LIFE_SECONDS: Final = 30.0


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


async def crowd(port: int, kept: int, slow: int) -> None:
    """Be the crowd until the process is ended."""
    told = Counter[str]()
    some = [_kept(port, number, told) for number in range(kept)]
    some += [_slow(port, number) for number in range(slow)]
    work = [*(_again(told, each) for each in some), _passing(port, told)]
    tasks = [asyncio.create_task(each) for each in work]
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
def crowded(port: int, kept: int, slow: int, said: IO[str]) -> Generator[subprocess.Popen[str]]:
    """The crowd in a process of its own; what it tells goes into a file."""
    command = [sys.executable, "-m", __name__, str(port), str(kept), str(slow)]
    process = subprocess.Popen(command, stdout=said, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def more_files() -> None:
    """Allow as many open files as may be: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> None:
    """Be the crowd."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("port", "kept", "slow"):
        parser.add_argument(name, type=int)
    given = parser.parse_args()
    more_files()
    uvloop.run(crowd(given.port, given.kept, given.slow))


if __name__ == "__main__":
    main()
