"""A server process whose tools go on as tasks in PostgreSQL: `python -m ...edge.task_server DSN TABLE`.

Says its address and what its handlers do, a line each. Knows no test.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import uvicorn
from pydantic import BaseModel

from nonsuch import Agent, App, Context, Elicit, Registry, Text, asgi, define_app_mcp, grant, tool
from nonsuch.adapters.edge.postgres.tasks import PostgresTaskStore
from nonsuch.kernel.tasks import TaskLimits

ROOT: Final = Path(__file__).parents[3]
MODULE: Final = "tests.adapters.edge.task_server"
LEASE_SECONDS: Final = 1.5
MODERN: Final = "2026-07-28"
TASKS: Final = "io.modelcontextprotocol/tasks"


class Sure(BaseModel):
    sure: bool


async def hold() -> Text:
    """Work until somebody stops it."""
    say("holding")
    try:
        await asyncio.sleep(3_600)
    except asyncio.CancelledError:
        say("stopped")
        raise
    return Text("never")


async def confirm(ctx: Context[None]) -> Text:
    """Ask, and say what was answered."""
    answers = await ctx.client.ask({"sure": Elicit("Sure?", Sure)})
    return Text(str(answers["sure"]))


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def app_of(dsn: str, table: str) -> App:
    """Return the app."""
    handlers: dict[str, Callable[..., Any]] = {"hold": hold, "confirm": confirm}
    return define_app_mcp(
        Registry(),
        name="fleet",
        tools={name: tool("d", each, policy="a:b", task="required") for name, each in handlers.items()},
        resolve_token=lambda token: Agent(token, roles=["r"]),
        grants=[grant("r", "a:b")],
        tasks=TaskLimits(lease_seconds=LEASE_SECONDS),
        task_store=PostgresTaskStore(dsn, table),
        rate_limits=None,
    )


def main(dsn: str, table: str) -> None:
    """Serve until stopped."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        say(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp")
        config = uvicorn.Config(asgi(app_of(dsn, table)), log_level="warning", lifespan="on", ws="none")
        uvicorn.Server(config).run(sockets=[listening])


# Its client


@dataclass
class Server:
    """One such process."""

    process: subprocess.Popen[str]
    dsn: str
    table: str
    url: str = ""

    def says(self) -> str:
        """Return the next line it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, method: str, params: Mapping[str, Any], who: str = "ann") -> dict[str, Any]:
        """Send one request, and return its result or error."""
        able: dict[str, Any] = {"elicitation": {}, "extensions": {TASKS: {}}}
        meta: dict[str, Any] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": able,
        }
        headers = {
            "authorization": f"Bearer {who}",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": method,
            "mcp-name": str(params.get("name", params.get("taskId"))),
        }
        message: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": method,
            "params": {**params, "_meta": meta},
        }
        held = httpx.post(self.url, json=message, headers=headers, timeout=20).json()
        return dict(held.get("result", held.get("error")))

    def begin(self, name: str) -> str:
        """Call a tool, and return its task's id."""
        return str(self.ask("tools/call", {"name": name, "arguments": {}})["taskId"])

    def get(self, ident: str) -> dict[str, Any]:
        """Look at a task."""
        return self.ask("tasks/get", {"taskId": ident})

    def update(self, ident: str, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Answer its questions."""
        return self.ask("tasks/update", {"taskId": ident, "inputResponses": dict(answers)})

    def cancel(self, ident: str) -> dict[str, Any]:
        """Give it up."""
        return self.ask("tasks/cancel", {"taskId": ident})


@contextmanager
def running(dsn: str, table: str) -> Generator[Server]:
    """Run one such process."""
    command = [sys.executable, "-W", "error", "-m", MODULE, dsn, table]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    server = Server(process, dsn, table)
    try:
        server.url = server.says()
        yield server
    finally:
        process.kill()
        process.communicate(timeout=20)


if __name__ == "__main__":
    main(*sys.argv[1:])
