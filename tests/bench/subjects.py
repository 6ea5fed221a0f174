"""The subjects: one service on nonsuch, on its peers and on its floors, each an ASGI factory for uvicorn.

The number of tools comes from the environment (`BENCH_TOOLS`): uvicorn calls a factory without arguments.
Peers are imported when asked for, so that no process pays for another's imports.
"""

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from . import service
from .wire import Asgi, Message, Receive, Send

TOOLS = "BENCH_TOOLS"


@dataclass(frozen=True, slots=True)
class Subject:
    """A service under measurement and what it does beyond answering."""

    name: str
    factory: str
    does: str
    gates: frozenset[str] = frozenset()
    """Of token, scope, argument: what it must be seen to refuse before its speed counts."""


_PEER = frozenset({"token", "scope"})
_ALL = _PEER | {"argument"}

SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("nonsuch", "nonsuch_app", "token, view, scope, arguments, Cedar on an argument, audit", _ALL),
        Subject("nonsuch-plain", "nonsuch_plain_app", "the same; the policy reads no argument", _PEER),
        Subject("fastmcp", "fastmcp_app", "token, arguments, scope check per tool", _PEER),
        Subject(
            "nonsuch-otel", "nonsuch_recorded_app", "the same as nonsuch, and OpenTelemetry records", _ALL
        ),
        Subject("fastmcp-otel", "fastmcp_recorded_app", "the same as fastmcp, and it records", _PEER),
        Subject("sdk", "sdk_app", "no authentication, no validation of arguments"),
        Subject("sdk-default", "sdk_default_app", "the same, without the look-up that spares a listing"),
        Subject("starlette", "starlette_app", "a JSON handler"),
        Subject("raw", "raw_app", "a JSON handler without a framework, orjson"),
    )
}


def nonsuch_app() -> Asgi:
    return _peer("peer_nonsuch", "build")


def nonsuch_plain_app() -> Asgi:
    return _peer("peer_nonsuch", "build_plain")


def fastmcp_app() -> Asgi:
    return _peer("peer_fastmcp", "build")


def nonsuch_recorded_app() -> Asgi:
    return _peer("peer_nonsuch", "build_recorded")


def fastmcp_recorded_app() -> Asgi:
    return _peer("peer_fastmcp", "build_recorded")


def sdk_app() -> Asgi:
    return _peer("peer_sdk", "build")


def sdk_default_app() -> Asgi:
    return _peer("peer_sdk", "build_default")


def starlette_app() -> Asgi:
    answer = _plain_service(_tools())

    async def endpoint(request: Request) -> Response:
        return JSONResponse(answer(await request.json()))

    return Starlette(routes=[Route("/mcp", endpoint, methods=["POST"])])


def raw_app() -> Asgi:
    answer = _plain_service(_tools())

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        body = orjson.dumps(answer(orjson.loads(await _body(receive))))
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def build(name: str, tools: int) -> Asgi:
    """The subject in this process."""
    os.environ[TOOLS] = str(tools)
    return cast(Callable[[], Asgi], globals()[SUBJECTS[name].factory])()


def _tools() -> int:
    return int(os.environ.get(TOOLS, "100"))


def _peer(module: str, function: str) -> Asgi:
    found = importlib.import_module(f".{module}", __package__)
    return cast(Callable[[int], Asgi], getattr(found, function))(_tools())


def _plain_service(tools: int) -> Callable[[dict[str, object]], dict[str, object]]:
    """JSON-RPC with a look-up and no gate: what a floor has to do to give the same answer."""
    names = [service.tool_name(index) for index in range(tools)]
    known = frozenset(names)
    entries = [_entry(name) for name in names]

    def answer(message: dict[str, object]) -> dict[str, object]:
        if message["method"] == "tools/list":
            return {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": entries}}
        params = cast(dict[str, object], message["params"])
        if params["name"] not in known:
            return {
                "jsonrpc": "2.0",
                "id": message["id"],
                "error": {"code": -32602, "message": "unknown tool"},
            }
        arguments = cast(dict[str, object], params["arguments"])
        row = service.touch(cast(str, arguments["itemId"]), cast(int, arguments["amount"]))
        content = [{"type": "text", "text": orjson.dumps(row).decode()}]
        result = {"content": content, "structuredContent": row, "isError": False}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    return answer


def _entry(name: str) -> dict[str, object]:
    return {
        "name": name,
        "description": service.DESCRIPTION,
        "inputSchema": service.INPUT_SCHEMA,
        "outputSchema": service.OUTPUT_SCHEMA,
    }


async def _body(receive: Receive) -> bytes:
    message = await receive()
    body = cast(bytes, message.get("body", b""))
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    return body


async def _lifespan(receive: Receive, send: Send) -> None:
    for _ in range(2):
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
