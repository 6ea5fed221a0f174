"""Released clients against a served app: each walks one plan, meets every outcome, and goes on afterwards."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, MutableMapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import fastmcp
import httpx2
import mcp
import pytest
import uvicorn
from fastmcp.client.transports import StreamableHttpTransport
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent
from pydantic import BaseModel

from nonsuch import Agent, App, Context, Registry, asgi, can, define_app_mcp, expose, grant
from nonsuch.kernel.audit import Event, ToolCall

from .environment import HERE, node, npm_modules, python_with_mcp1

PATIENCE: Final = 60

# The app


class Draft(BaseModel):
    id: str
    published: bool


class PublishDraft(BaseModel):
    draftId: str


class Listed(BaseModel):
    id: str
    title: str | None = None


Drafts = dict[str, bool]
registry: Final = Registry()


async def draft_facts(input: PublishDraft, ctx: Context[Drafts]) -> Draft | None:
    published = ctx.resources.get(input.draftId)
    return None if published is None else Draft(id=input.draftId, published=published)


@registry.action(
    policy=can("draft:publish", resource=draft_facts),
    mcp=expose("Publish a draft", visible_to=["editor"], title="Publish"),
)
async def publishDraft(input: PublishDraft, ctx: Context[Drafts]) -> Draft:
    ctx.resources[input.draftId] = True
    return Draft(id=input.draftId, published=True)


@registry.query(policy=can("draft:read"), mcp=expose("Every draft"))
def listDrafts(ctx: Context[Drafts]) -> list[Listed]:
    return [Listed(id=each) for each in ctx.resources]


@registry.query(policy=can("draft:read"), mcp=expose("How many drafts there are"), single=True)
def countDrafts(ctx: Context[Drafts]) -> int | None:
    return len(ctx.resources)


POLICY = """
@id("publish.once")
@reason("the draft is published already")
@fix("choose another draft")
forbid (principal, action == Action::"publishDraft", resource is Draft) when { resource.published };
"""
CALLERS: Final = {
    "viewer": Agent("viewer", roles=frozenset({"viewer"}), scopes=frozenset({"read", "write"})),
    "reader": Agent("reader", roles=frozenset({"editor"}), scopes=frozenset({"read"})),
    "editor": Agent("editor", roles=frozenset({"editor"}), scopes=frozenset({"read", "write"})),
}


@asynccontextmanager
async def drafts() -> AsyncGenerator[Drafts]:
    yield {"d1": False, "d2": True}


def app(policies: Path, on_audit: Callable[[Event], object]) -> App:
    (policies / "drafts.cedar").write_text(POLICY)
    return define_app_mcp(
        registry,
        name="drafts",
        include="exposed",
        scopes={"read": ["listDrafts", "countDrafts"], "write": ["publishDraft"]},
        roles=["viewer", "editor"],
        grants=[
            grant("viewer", "draft:read"),
            grant("editor", "draft:read"),
            grant("editor", "draft:publish"),
        ],
        policies_dir=policies,
        resolve_token=CALLERS.get,
        on_audit=on_audit,
        lifespan=drafts,
    )


# The server


@dataclass
class Service:
    """A running server, and what it saw of its clients."""

    url: str
    versions: set[str] = field(default_factory=set[str])
    statuses: list[int] = field(default_factory=list[int])
    audited: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    def audit(self, event: Event) -> None:
        if isinstance(event, ToolCall):
            self.audited.append((event.caller, event.tool, event.outcome))

    def watched(self, application: Any) -> Any:
        """Return the application, noting versions and statuses."""

        async def watching(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
            async def sending(message: MutableMapping[str, Any]) -> None:
                if message["type"] == "http.response.start":
                    self.statuses.append(message["status"])
                await send(message)

            version = dict(scope.get("headers", ())).get(b"mcp-protocol-version")
            if version is not None:
                self.versions.add(version.decode())
            await application(scope, receive, sending)

        return watching


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = Service(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp")
        application = running.watched(asgi(app(tmp_path, running.audit)))
        with served(application, listening):
            yield running


@contextmanager
def served(application: Any, listening: socket.socket) -> Generator[None]:
    config = uvicorn.Config(application, log_config=None, lifespan="on", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        assert server.started
        yield
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


def until(done: Callable[[], bool]) -> None:
    """Wait a little for another thread; whoever asks says afterwards whether it came true."""
    end = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < end:
        time.sleep(0.01)


# The plan: per caller one session, and its steps in order

Step = tuple[str, str, dict[str, Any]]
Met = dict[str, Any]

LIST: Final[Step] = ("list", "", {})
READ: Final[Step] = ("call", "listDrafts", {})


def publish(**arguments: Any) -> Step:
    return ("call", "publishDraft", arguments)


PLAN: Final[dict[str, Sequence[Step]]] = {
    "viewer": [LIST, publish(draftId="d1"), READ, ("call", "noSuchTool", {"draftId": "d1"}), READ, LIST],
    "reader": [LIST, publish(draftId="d1"), READ, publish(draftId="d2"), LIST],
    "editor": [
        LIST,
        publish(draftId="d1"),
        publish(draftId="d1"),
        READ,
        publish(draftId=7, extra=True),
        publish(draftId="none"),
        ("call", "countDrafts", {}),
        LIST,
    ],
}


def refused(code: str, cause: str, fix: str) -> Met:
    return {"isError": True, "text": f"{code}: {cause}\nfix: {fix}", "structured": None}


def answered(value: object, *, structured: bool = True) -> Met:
    text = json.dumps(value, separators=(",", ":"))
    return {"isError": False, "text": text, "structured": value if structured else None}


SCOPE_FIX: Final = "ask for a token with the scope `write`"
SCOPE_CAUSE: Final = "`publishDraft` needs the scope `write`, which this connection's token does not carry"
SCOPE_DATA: Final = {
    "code": "X_MCP_SCOPE_DENIED",
    "fix": SCOPE_FIX,
    "scope": "write",
}
SCOPE_ERROR: Final[Met] = {"code": -32600, "message": SCOPE_CAUSE, "data": SCOPE_DATA}
# The TypeScript client reads the challenge of a 403 and not its body.
SCOPE_CHALLENGE: Final[Met] = {
    "failure": "InsufficientScopeError",
    "message": 'Insufficient scope: required "write"',
    "description": SCOPE_FIX,
}


def unknown(code: int, name: str) -> Met:
    message = f"tool not found: {name} - call tools/list to read the catalog this caller may use"
    return {"code": code, "message": message, "data": None}


def expected(code: int, scope: Met) -> list[list[Met]]:
    """Return what every client meets; `code` is the revision's for an unknown tool."""
    rows = answered({"rows": [{"id": "d1", "title": None}, {"id": "d2", "title": None}]})
    few = {"tools": ["countDrafts", "listDrafts"]}
    all_tools = {"tools": ["countDrafts", "listDrafts", "publishDraft"]}
    issues = "draftId: must be of type string; extra: not an argument"
    invalid = f"input for tool `publishDraft` failed validation: {issues}"
    absent = "ask the account owner for the permission `draft:publish`, or name one that you may act on"
    return [
        [few, unknown(code, "publishDraft"), rows, unknown(code, "noSuchTool"), rows, few],
        [all_tools, scope, rows, scope, all_tools],
        [
            all_tools,
            answered({"id": "d1", "published": True}),
            refused("X_FORBIDDEN", "the draft is published already", "choose another draft"),
            rows,
            refused("X_INPUT_INVALID", invalid, "correct the named fields and send the call again"),
            refused("X_FORBIDDEN", "no policy permits `draft:publish` here", absent),
            answered(2, structured=False),
            all_tools,
        ],
    ]


AUDITED: Final = [
    ("viewer", "publishDraft", "hidden"),
    ("viewer", "listDrafts", "ok"),
    ("viewer", "noSuchTool", "hidden"),
    ("viewer", "listDrafts", "ok"),
    ("reader", "publishDraft", "scope-denied"),
    ("reader", "listDrafts", "ok"),
    ("reader", "publishDraft", "scope-denied"),
    ("editor", "publishDraft", "ok"),
    ("editor", "publishDraft", "policy-denied"),
    ("editor", "listDrafts", "ok"),
    ("editor", "publishDraft", "invalid-args"),
    ("editor", "publishDraft", "policy-denied"),
    ("editor", "countDrafts", "ok"),
]

# The clients


def told(content: Sequence[object], *, failed: bool, structured: object) -> Met:
    text = content[0]
    assert isinstance(text, TextContent)
    return {"isError": failed, "text": text.text, "structured": structured}


async def walked(connect: Callable[[str], Any], step: Callable[[Any, Step], Any]) -> list[list[Met]]:
    sessions: list[list[Met]] = []
    for token, steps in PLAN.items():
        async with connect(token) as client:
            sessions.append([await met(partial(step, client), each) for each in steps])
    return sessions


async def met(take: Callable[[Step], Any], step: Step) -> Met:
    try:
        seen: Met = await take(step)
    except mcp.MCPError as error:
        return {"code": error.code, "message": error.message, "data": error.data}
    return seen


def python_sdk(mode: str, url: str) -> list[list[Met]]:
    """The client of MCP SDK 2."""

    @asynccontextmanager
    async def connect(token: str) -> AsyncGenerator[mcp.Client]:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as http,
            mcp.Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            yield client

    async def step(client: mcp.Client, step: Step) -> Met:
        what, name, arguments = step
        if what == "list":
            return {"tools": [each.name for each in (await client.list_tools()).tools]}
        result = await client.call_tool(name, arguments)
        return told(result.content, failed=bool(result.is_error), structured=result.structured_content)

    return asyncio.run(walked(connect, step))


def fast_mcp(url: str) -> list[list[Met]]:
    """The client of FastMCP."""

    def connect(token: str) -> Any:
        transport = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
        return fastmcp.Client(transport)

    async def step(client: Any, step: Step) -> Met:
        what, name, arguments = step
        if what == "list":
            return {"tools": [each.name for each in await client.list_tools()]}
        result = await client.call_tool(name, arguments, raise_on_error=False)
        return told(result.content, failed=result.is_error, structured=result.structured_content)

    return asyncio.run(walked(connect, step))


def program(command: Callable[[], Sequence[str]], era: str, url: str) -> list[list[Met]]:
    """A client that is a program of its own: the plan goes in, what it met comes out."""
    sessions = [{"token": token, "steps": steps} for token, steps in PLAN.items()]
    done = subprocess.run(
        command(),
        input=json.dumps({"url": url, "era": era, "sessions": sessions}),
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    seen: list[list[Met]] = json.loads(done.stdout)
    return seen


def javascript(script: str) -> Sequence[str]:
    npm_modules()
    return [str(node()), str(HERE / script)]


def python_sdk_1() -> Sequence[str]:
    return [str(python_with_mcp1()), str(HERE / "client_mcp1.py")]


@dataclass(frozen=True)
class Client:
    """A client, the revision it must have spoken, and how it shows what it was told."""

    walk: Callable[[str], list[list[Met]]]
    revision: str
    scope: Met = field(default_factory=lambda: SCOPE_ERROR)
    prefixes: bool = False

    def expects(self) -> list[list[Met]]:
        sessions = expected(-32602 if self.revision == "2026-07-28" else -32601, self.scope)
        return [[self._shown(each) for each in session] for session in sessions]

    def _shown(self, each: Met) -> Met:
        if not self.prefixes or "code" not in each:
            return each
        return {**each, "message": f"MCP error {each['code']}: {each['message']}"}


LEGACY, MODERN = "2025-11-25", "2026-07-28"
TS, TS_SDK = partial(javascript, "client_ts.mjs"), partial(javascript, "client_ts_sdk.mjs")
CLIENTS: Final = {
    "mcp 2, legacy": Client(partial(python_sdk, "legacy"), LEGACY),
    "mcp 2, modern": Client(partial(python_sdk, MODERN), MODERN),
    "mcp 2, auto": Client(partial(python_sdk, "auto"), MODERN),
    "mcp 1": Client(partial(program, python_sdk_1, "legacy"), LEGACY),
    "FastMCP": Client(fast_mcp, MODERN),
    "TypeScript client, legacy": Client(partial(program, TS, "legacy"), LEGACY),
    "TypeScript client, modern": Client(partial(program, TS, "modern"), MODERN, SCOPE_CHALLENGE),
    "TypeScript client, auto": Client(partial(program, TS, "auto"), MODERN, SCOPE_CHALLENGE),
    "TypeScript sdk": Client(partial(program, TS_SDK, "legacy"), LEGACY, prefixes=True),
}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_released_client_meets_every_outcome_and_goes_on(name: str, service: Service) -> None:
    client = CLIENTS[name]
    assert client.walk(service.url) == client.expects()
    assert service.versions == {client.revision}
    until(lambda: len(service.audited) >= len(AUDITED))  # a call is audited after its answer has left
    assert service.audited == AUDITED
    refusing = {status for status in service.statuses if status >= 400} - {405}
    assert refusing == ({403} if client.revision == MODERN else set())
