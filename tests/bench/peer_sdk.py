"""The bench's service on the `mcp` SDK's low-level server in its leanest form: stateless JSON, no auth."""

from collections.abc import Callable, Mapping
from functools import cache

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from pydantic_core import to_json

from . import service
from .wire import Asgi


def build(tools: int) -> Asgi:
    """With the look-up of schemas that spares it a listing before each modern call."""
    return _server(tools, lambda name: service.INPUT_SCHEMA if name in names(tools) else None)


def build_default(tools: int) -> Asgi:
    """As its constructor leaves it: MCP 2026-07-28's header check runs the whole listing before each call."""
    return _server(tools, None)


def _server(tools: int, look_up: Callable[[str], Mapping[str, object] | None] | None) -> Asgi:
    known = names(tools)
    listing = ListToolsResult(tools=[_tool(name) for name in sorted(known)])

    async def list_tools(
        ctx: ServerRequestContext[dict[str, object]], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return listing

    async def call_tool(
        ctx: ServerRequestContext[dict[str, object]], params: CallToolRequestParams
    ) -> CallToolResult:
        arguments = params.arguments or {}
        if params.name not in known:
            return CallToolResult(content=[TextContent(type="text", text="unknown tool")], is_error=True)
        row = service.touch(str(arguments["itemId"]), int(arguments["amount"]))
        text = TextContent(type="text", text=to_json(row).decode())
        return CallToolResult(content=[text], structured_content=row)

    server = Server(
        service.NAME,
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=look_up,
    )
    return server.streamable_http_app(json_response=True, stateless_http=True)


@cache
def names(tools: int) -> frozenset[str]:
    return frozenset(service.tool_name(index) for index in range(tools))


def _tool(name: str) -> Tool:
    return Tool(
        name=name,
        description=service.DESCRIPTION,
        input_schema=service.INPUT_SCHEMA,
        output_schema=service.OUTPUT_SCHEMA,
    )
