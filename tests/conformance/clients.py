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
from .plan import ABSENT, LEGACY, MODERN, PUBLISHED, ROWS, SCOPE, Row, Step, answered, refused
from .showing import (
    Shown,
    challenged,
    exited_of_body,
    exited_of_challenge,
    for_a_model,
    prefixed,
    renumbered,
    unchanged,
    unread,
    unregistered,
)

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
    main = (
        npm_modules() / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
    )
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
    printed = [json.loads(each) for each in (done.stdout, done.stderr) if each]
    return {"exit": done.returncode, **_printed(what, {key: each[key] for each in printed for key in each})}


def _printed(what: str, told: Mapping[str, Any]) -> Met:
    """A result goes to stdout, what went wrong to stderr; an answered refusal is both."""
    if "result" not in told:
        return {"failure": told["error"]["code"], "message": told["error"]["message"]}
    result = told["result"]
    match what:
        case "tools":
            return {"tools": [each["name"] for each in result["tools"]]}
        case "call":
            failed, structured = result.get("isError", False), result.get("structuredContent")
            return {"isError": failed, "text": result["content"][0]["text"], "structured": structured}
        case "prompt":
            return {"messages": [[each["role"], each["content"]["text"]] for each in result["messages"]]}
        case _:
            return {"read": result["contents"][0]["text"]}


# The table


@dataclass(frozen=True, slots=True)
class Client:
    """A client, and what is its own."""

    walk: Callable[[Plan], Walked]
    era: str
    revision: str
    shown: Shown = unchanged
    lacks: frozenset[str] = frozenset()
    brief: bool = False
    runs: Sequence[Met] = ()

    def rows(self, whole: Sequence[Row]) -> list[Row]:
        """Return the rows of a plan that this client walks."""
        return [row for row in whole if row.step[0] not in self.lacks and (row.brief or not self.brief)]

    def sends(self, row: Row) -> bool:
        """Whether this client sends a step at all: one that is brief looks its tools up first."""
        return not (self.brief and row.step[0] == "call" and row.outcome == "hidden")

    def expects(self, rows: Sequence[Row]) -> list[Met]:
        """Return what this client shows of what these rows meet."""
        return [self.shown(row.step, row.met(self.revision)) for row in rows]


# What the model of a framework's agent reads when it runs the tools of `RUNS`
READ_ROWS: Final[Met] = {"ran": answered(ROWS)(LEGACY)["text"]}
READ_REFUSAL: Final[Met] = {"ran": refused(*PUBLISHED)(LEGACY)["text"]}
RUNS_PLAIN: Final[Sequence[Met]] = [READ_ROWS, READ_REFUSAL, SCOPE, READ_ROWS]
RUNS_OPENAI: Final[Sequence[Met]] = [
    {"ran": [{"type": "input_text", "text": READ_ROWS["ran"]}]},
    {"ran": [{"type": "input_text", "text": READ_REFUSAL["ran"]}]},
    {"ran": "An error occurred while running the tool. Please try again."},  # for any error of the protocol
    {"ran": [{"type": "input_text", "text": READ_ROWS["ran"]}]},
]
RUNS_PYDANTIC_AI: Final[Sequence[Met]] = [
    {"ran": f'{{"listDrafts":{READ_ROWS["ran"]}}}'},
    {"ran": refused(*ABSENT)(LEGACY)["text"]},  # its model makes up the draft
    {"ran": SCOPE["message"]},
    {"ran": f'{{"listDrafts":{READ_ROWS["ran"]}}}'},
]
LISTLESS: Final = frozenset({"prompts", "resources"})  # its adapters list tools only
HERE_SDK, BRIDGE = partial(of_this_process, python_sdk), partial(of_this_process, bridged)
TS, AI = partial(javascript, "client_ts.mjs"), partial(javascript, "client_ai_sdk.mjs")
TS_SDK = partial(javascript, "client_ts_sdk.mjs")
MCP1 = partial(python, "mcp1", "client_mcp1.py")
OPENAI1, OPENAI2 = (partial(python, lock, "client_openai.py") for lock in ("mcp1", "mcp2"))
LANGCHAIN = partial(python, "mcp1", "client_langchain.py")
PYDANTIC_AI = partial(python, "mcp2", "client_pydantic_ai.py")
CLIENTS: Final[Mapping[str, Client]] = {
    "mcp 2, legacy": Client(HERE_SDK, "legacy", LEGACY),
    "mcp 2, modern": Client(HERE_SDK, MODERN, MODERN),
    "mcp 2, auto": Client(HERE_SDK, "auto", MODERN),
    "mcp 1": Client(partial(program, MCP1), "", LEGACY),
    "FastMCP": Client(partial(of_this_process, fast_mcp, raise_on_error=False), "", MODERN),
    "TypeScript client, legacy": Client(partial(program, TS), "legacy", LEGACY, renumbered),
    "TypeScript client, modern": Client(partial(program, TS), "modern", MODERN, challenged),
    "TypeScript client, auto": Client(partial(program, TS), "auto", MODERN, challenged),
    "TypeScript sdk": Client(partial(program, TS_SDK), "", LEGACY, prefixed),
    "OpenAI Agents, mcp 1": Client(partial(program, OPENAI1), "", LEGACY, runs=RUNS_OPENAI),
    "OpenAI Agents, mcp 2": Client(partial(program, OPENAI2), "", MODERN, runs=RUNS_OPENAI),
    "LangChain": Client(partial(program, LANGCHAIN), "", LEGACY, unread, LISTLESS, runs=RUNS_PLAIN),
    "Pydantic AI": Client(partial(program, PYDANTIC_AI), "", MODERN, for_a_model, runs=RUNS_PYDANTIC_AI),
    "AI SDK, legacy": Client(partial(program, AI), "legacy", LEGACY, runs=RUNS_PLAIN),
    "AI SDK, auto": Client(partial(program, AI), "auto", MODERN, runs=RUNS_PLAIN),
    "inspector, legacy": Client(inspector, "legacy", LEGACY, exited_of_body, brief=True),
    "inspector, modern": Client(inspector, "modern", MODERN, exited_of_challenge, brief=True),
    "inspector, auto": Client(inspector, "auto", MODERN, exited_of_challenge, brief=True),
    "mcp-remote, legacy": Client(BRIDGE, "legacy", LEGACY),
    "mcp-remote, auto": Client(BRIDGE, "auto", MODERN, unregistered),
}
