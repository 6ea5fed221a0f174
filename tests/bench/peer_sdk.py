"""The bench's service on the `mcp` SDK's low-level server in its leanest form: stateless JSON, no auth."""

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
    names = {service.tool_name(index) for index in range(tools)}
    listing = ListToolsResult(tools=[_tool(name) for name in sorted(names)])

    async def list_tools(
        ctx: ServerRequestContext[dict[str, object]], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return listing

    async def call_tool(
        ctx: ServerRequestContext[dict[str, object]], params: CallToolRequestParams
    ) -> CallToolResult:
        arguments = params.arguments or {}
        if params.name not in names:
            return CallToolResult(content=[TextContent(type="text", text="unknown tool")], is_error=True)
        row = service.touch(str(arguments["itemId"]), int(arguments["amount"]))
        text = TextContent(type="text", text=to_json(row).decode())
        return CallToolResult(content=[text], structured_content=row)

    server = Server(
        service.NAME,
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        # Without this look-up the SDK runs the whole listing before each modern call.
        get_tool_input_schema=lambda name: service.INPUT_SCHEMA if name in names else None,
    )
    return server.streamable_http_app(json_response=True, stateless_http=True)


def _tool(name: str) -> Tool:
    return Tool(
        name=name,
        description=service.DESCRIPTION,
        input_schema=service.INPUT_SCHEMA,
        output_schema=service.OUTPUT_SCHEMA,
    )
