"""The bench's service on FastMCP with per-tool auth: a static token verifier, a scope check on every tool."""

import logging

from fastmcp import FastMCP
from fastmcp.server.auth import StaticTokenVerifier, require_scopes
from fastmcp.tools import Tool
from pydantic import BaseModel

from . import service
from .wire import Asgi


class Touched(BaseModel):
    id: str
    amount: int
    state: str


async def touch(itemId: str, amount: int, note: str = "") -> Touched:
    return Touched.model_validate(service.touch(itemId, amount))


def build(tools: int) -> Asgi:
    logging.getLogger("fastmcp").setLevel(logging.ERROR)  # its default writes rich text per refusal
    server = FastMCP(service.NAME, version="1", auth=StaticTokenVerifier(_tokens()))
    needed = require_scopes(service.SCOPE)
    for index in range(tools):
        name = service.tool_name(index)
        server.add_tool(Tool.from_function(touch, name=name, description=service.DESCRIPTION, auth=needed))
    return server.http_app(path="/mcp", json_response=True, stateless_http=True)


def build_recorded(tools: int) -> Asgi:
    from . import recording

    recording.switch_on()
    return build(tools)


def _tokens() -> dict[str, dict[str, object]]:
    return {
        token: {"client_id": token, "scopes": list(service.scopes(token)), "roles": sorted(roles)}
        for token, roles in service.callers().items()
    }
