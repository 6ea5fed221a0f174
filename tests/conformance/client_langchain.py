"""Walks a plan with LangChain's MCP adapters; `call` names any tool, `run` takes one from the listing."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import client_walk
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool
from mcp.types import Tool

SERVER = "drafts"


@asynccontextmanager
async def connect(url: str, token: str, era: str) -> AsyncGenerator[MultiServerMCPClient]:
    """Describe one server; every step opens a session of its own."""
    headers = {"Authorization": f"Bearer {token}"}
    yield MultiServerMCPClient({SERVER: {"transport": "streamable_http", "url": url, "headers": headers}})


async def take(client: MultiServerMCPClient, step: client_walk.Step) -> client_walk.Met:
    """Take one step."""
    what, name, arguments = step
    match what:
        case "tools":
            return {"tools": [each.name for each in await client.get_tools()]}
        case "call":
            named = Tool(name=name, inputSchema={"type": "object"})
            connection = client.connections[SERVER]
            tool = convert_mcp_tool_to_langchain_tool(None, named, connection=connection)
            return called(await invoked(tool, arguments))
        case "run":
            tools = {each.name: each for each in await client.get_tools()}
            return {"ran": (await invoked(tools[name], arguments)).text}
        case "prompt":
            messages = await client.get_prompt(SERVER, name, arguments=arguments)
            return {"messages": [[{"human": "user"}[each.type], each.text] for each in messages]}
        case "resources":
            return {"resources": [str(each.metadata["uri"]) for each in await client.get_resources(SERVER)]}
        case "read":
            return {"read": (await client.get_resources(SERVER, uris=[name]))[0].as_string()}
        case _:
            raise NotImplementedError(what)


async def invoked(tool: Any, arguments: dict[str, Any]) -> Any:
    """Return the message that a model reads."""
    return await tool.ainvoke({"type": "tool_call", "id": "1", "name": tool.name, "args": arguments})


def called(message: Any) -> client_walk.Met:
    """Return a tool's result."""
    structured = (message.artifact or {}).get("structured_content")
    return {"isError": message.status == "error", "text": message.text, "structured": structured}


client_walk.run(connect, take)
