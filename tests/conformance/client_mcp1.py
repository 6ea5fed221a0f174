"""Walks a plan with MCP SDK 1: reads it from stdin, writes what each step met to stdout.

Knows no expectation. Runs in an environment of its own, where nonsuch is not installed.
"""
# The checkers see the names of SDK 2, which is installed where they run.
# mypy: ignore-errors
# pyright: basic, reportAttributeAccessIssue=false

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client


async def met(client: ClientSession, step: list[Any]) -> dict[str, Any]:
    """Return what one step came to."""
    try:
        if step[0] == "list":
            return {"tools": [tool.name for tool in (await client.list_tools()).tools]}
        result = await client.call_tool(step[1], step[2])
    except McpError as error:
        return {"code": error.error.code, "message": error.error.message, "data": error.error.data}
    text = result.content[0].text
    return {"isError": result.isError, "text": text, "structured": result.structuredContent}


async def session(url: str, token: str, steps: list[list[Any]]) -> list[dict[str, Any]]:
    """Return what the steps of one session came to."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        streamablehttp_client(url, headers=headers) as (read, write, _),
        ClientSession(read, write) as client,
    ):
        await client.initialize()
        return [await met(client, step) for step in steps]


async def main() -> None:
    """Walk the plan."""
    plan = json.load(sys.stdin)
    seen = [await session(plan["url"], each["token"], each["steps"]) for each in plan["sessions"]]
    sys.stdout.write(json.dumps(seen))


asyncio.run(main())
