"""What one message carries and what a served process holds: bytes, not time. Every subject at 1,000 tools."""

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import uvloop

from . import load, wire
from .server import Server, serve

TOOLS = 1_000
WARM = 400


@dataclass(frozen=True, slots=True)
class Print:
    """One subject, served and warm: resident bytes, and the bytes of an answer's head and body."""

    resident: float
    sizes: dict[str, int]


def measure(names: list[str]) -> dict[str, Print]:
    """Serve each subject, call it and list its tools, and look at it then."""
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(name, TOOLS)) for name in names]
        return {server.name: uvloop.run(_print(server)) for server in servers}


async def _print(server: Server) -> Print:
    sizes: dict[str, int] = {}
    for one in wire.WIRES:
        shots = [load.Shot(each.http(), each.marker) for each in wire.calls(one, TOOLS)[:WARM]]
        await load.fire(server.port, shots, WARM, 16)
        sizes[f"call, {one}"] = await _size(server.port, wire.call(one, 0).http())
        sizes[f"list, {one}"] = await _size(server.port, wire.listing(one, TOOLS).http())
    return Print(_resident(server.pid), sizes)


async def _size(port: int, request: bytes) -> int:
    reader, writer = await asyncio.open_connection(load.HOST, port)
    try:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        return len(head) + len(await reader.readexactly(load.content_length(head)))
    finally:
        writer.close()


def _resident(pid: int) -> float:
    told = Path(f"/proc/{pid}/status").read_text()
    return float(told.partition("VmRSS:")[2].split()[0]) * 1024


def table(prints: dict[str, Print]) -> str:
    """The figures as a markdown table."""
    kinds = list(next(iter(prints.values())).sizes)
    lines = [f"| subject | resident MB | {' | '.join(f'{each}, bytes' for each in kinds)} |"]
    lines.append("|---|--:|" + "--:|" * len(kinds))
    for name, each in prints.items():
        sizes = " | ".join(f"{each.sizes[kind]:,}" for kind in kinds)
        lines.append(f"| {name} | {each.resident / 2**20:.1f} | {sizes} |")
    return "\n".join(lines)
