"""The released clients: how each is started, which revision it speaks, and how it shows what it met.

Knows no expectation but that of `plan.py`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Final

import fastmcp
import httpx2
import mcp
from fastmcp.client.transports import StreamableHttpTransport
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from .client_walk import Connect, Met, take, walk
from .environment import HERE, node, npm_modules, python_of
from .plan import LEGACY, MODERN, PUBLISHED, ROWS, SCOPE, SCOPE_CAUSE, SCOPE_FIX, Row, Step

PATIENCE: Final = 60
Plan = Mapping[str, Any]
Walked = list[list[Met]]

# Clients of this process


def of_this_process(connect: Connect, plan: Plan, **options: Any) -> Walked:
    return asyncio.run(walk(plan, connect, partial(take, **options)))


@asynccontextmanager
async def python_sdk(url: str, token: str, era: str) -> AsyncGenerator[mcp.Client]:
    """The client of MCP SDK 2."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as http,
        mcp.Client(streamable_http_client(url, http_client=http), mode=era) as client,
    ):
        yield client


@asynccontextmanager
async def fast_mcp(url: str, token: str, era: str) -> AsyncGenerator[Any]:
    """The client of FastMCP."""
    transport = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
    async with fastmcp.Client(transport) as client:
        yield client


@asynccontextmanager
async def bridged(url: str, token: str, era: str) -> AsyncGenerator[mcp.Client]:
    """The client of MCP SDK 2 behind mcp-remote, which speaks stdio to it."""
    program = npm_modules() / "mcp-remote" / "dist" / "proxy.js"
    with TemporaryDirectory() as home:
        bridge = StdioServerParameters(
            command=str(node()),
            args=[
                str(program),
                url,
                *("--transport", "http-only", "--protocol", era, "--silent"),
                *("--header", f"Authorization:Bearer {token}"),
            ],
            env={"HOME": home, "MCP_REMOTE_CONFIG_DIR": home},
        )
        async with mcp.Client(stdio_client(bridge), mode="legacy") as client:
            yield client


# Clients that are programs


def program(command: Callable[[], Sequence[str]], plan: Plan) -> Walked:
    """The plan goes in, what the client met comes out."""
    done = subprocess.run(
        command(),
        input=json.dumps(plan),
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    walked: Walked = json.loads(done.stdout)
    return walked


def javascript(script: str) -> Sequence[str]:
    npm_modules()
    return [str(node()), str(HERE / script)]


def python(lock: str, script: str) -> Sequence[str]:
    return [str(python_of(lock)), str(HERE / script)]


def inspector(plan: Plan) -> Walked:
    """The inspector's command line: a process for every step, so none depends on another."""
    with TemporaryDirectory() as home, ThreadPoolExecutor(2) as pool:
        return [
            list(pool.map(partial(inspected, home, plan, each["token"]), each["steps"]))
            for each in plan["sessions"]
        ]


OPTIONS: Final[Mapping[str, Callable[[str], Sequence[str]]]] = {
    "tools": lambda name: ("tools/list", "--strict"),
    "call": lambda name: ("tools/call", "--tool-name", name),
    "prompt": lambda name: ("prompts/get", "--prompt-name", name),
    "read": lambda name: ("resources/read", "--uri", name),
}


def inspected(home: str, plan: Plan, token: str, step: Step) -> Met:
    what, name, arguments = step
    given = "--prompt-args" if what == "prompt" else "--tool-arg"
    main = npm_modules() / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
    done = subprocess.run(
        [
            *(str(node()), str(main), "--cli", plan["url"], "--transport", "http"),
            *("--protocol-era", plan["era"], "--header", f"Authorization: Bearer {token}"),
            *("--format", "json", "--quiet", "--method", *OPTIONS[what](name)),
            *(part for key, value in arguments.items() for part in (given, f"{key}={value}")),
        ],
        env={"HOME": home},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    printed = (json.loads(each) for each in (done.stdout, done.stderr) if each)
    told: dict[str, Any] = {key: value for each in printed for key, value in each.items()}
    return {"code": done.returncode, **_of_inspector(what, told)}


def _of_inspector(what: str, told: Mapping[str, Any]) -> Met:
    return {"what": what, **told}


# How they show what they met


def unchanged(step: Step, met: Met) -> Met:
    return met


@dataclass(frozen=True, slots=True)
class Client:
    """A client, and what is its own."""

    walk: Callable[[Plan], Walked]
    era: str
    revision: str
    shown: Callable[[Step, Met], Met] = unchanged
    lacks: frozenset[str] = frozenset()
    brief: bool = False
    runs: Sequence[Met] = ()

    def rows(self, whole: Sequence[Row]) -> list[Row]:
        """Return the rows of a plan that this client walks."""
        return [
            row for row in whole if row.step[0] not in self.lacks and (row.brief or not self.brief)
        ]

    def expects(self, rows: Sequence[Row]) -> list[Met]:
        """Return what this client shows of what these rows meet."""
        return [self.shown(row.step, row.met(self.revision)) for row in rows]


def prefixed(step: Step, met: Met) -> Met:
    return {**met, "message": f"MCP error {met['code']}: {met['message']}"} if "code" in met else met


def challenged(step: Step, met: Met) -> Met:
    """The TypeScript client reads the challenge of a 403 and not its body."""
    message = 'Insufficient scope: required "delete"'
    shown = {"failure": "InsufficientScopeError", "message": message, "description": SCOPE_FIX}
    return shown if met == SCOPE else met


TS, TS_SDK = partial(javascript, "client_ts.mjs"), partial(javascript, "client_ts_sdk.mjs")
CLIENTS: Final[Mapping[str, Client]] = {
    "mcp 2, legacy": Client(partial(of_this_process, python_sdk), "legacy", LEGACY),
    "mcp 2, modern": Client(partial(of_this_process, python_sdk), MODERN, MODERN),
    "mcp 2, auto": Client(partial(of_this_process, python_sdk), "auto", MODERN),
    "mcp 1": Client(partial(program, partial(python, "mcp1", "client_mcp1.py")), "", LEGACY),
    "FastMCP": Client(partial(of_this_process, fast_mcp, raise_on_error=False), "", MODERN),
    "TypeScript client, legacy": Client(partial(program, TS), "legacy", LEGACY),
    "TypeScript client, modern": Client(partial(program, TS), "modern", MODERN, challenged),
    "TypeScript client, auto": Client(partial(program, TS), "auto", MODERN, challenged),
    "TypeScript sdk": Client(partial(program, TS_SDK), "", LEGACY, prefixed),
    "OpenAI Agents on mcp 1": Client(partial(program, partial(python, "mcp1", "client_openai.py")), "", LEGACY, runs=[{}]),
    "OpenAI Agents on mcp 2": Client(partial(program, partial(python, "mcp2", "client_openai.py")), "", MODERN, runs=[{}]),
    "LangChain": Client(partial(program, partial(python, "mcp1", "client_langchain.py")), "", LEGACY, lacks=frozenset({"prompts"}), runs=[{}]),
    "Pydantic AI": Client(partial(program, partial(python, "mcp2", "client_pydantic_ai.py")), "", MODERN, runs=[{}]),
    "AI SDK, legacy": Client(partial(program, partial(javascript, "client_ai_sdk.mjs")), "legacy", LEGACY, runs=[{}]),
    "AI SDK, auto": Client(partial(program, partial(javascript, "client_ai_sdk.mjs")), "auto", MODERN, runs=[{}]),
    "inspector, legacy": Client(inspector, "legacy", LEGACY, brief=True),
    "inspector, modern": Client(inspector, "modern", MODERN, brief=True),
    "inspector, auto": Client(inspector, "auto", MODERN, brief=True),
    "mcp-remote, legacy": Client(partial(of_this_process, bridged), "legacy", LEGACY),
    "mcp-remote, auto": Client(partial(of_this_process, bridged), "auto", MODERN),
}
