"""Walks a plan with Pydantic AI's toolset; `run` gives a tool to an agent with its TestModel."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import client_walk
from pydantic_ai import Agent
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel


@asynccontextmanager
async def connect(url: str, token: str, era: str) -> AsyncGenerator[MCPToolset]:
    """Open one toolset."""
    async with MCPToolset(url, headers={"Authorization": f"Bearer {token}"}) as toolset:
        yield toolset


async def take(toolset: MCPToolset, step: client_walk.Step) -> client_walk.Met:
    """Take one step."""
    what, name, arguments = step
    match what:
        case "call":
            return {"told": await toolset.direct_call_tool(name, arguments)}
        case "run":
            return {"ran": await ran(toolset, name)}
        case "prompt":
            messages = (await toolset.get_prompt(name, arguments)).messages
            return {"messages": [[each.role, each.content.content] for each in messages]}
        case "read":
            return {"read": await toolset.read_resource(name)}
        case _:
            return await client_walk.take(toolset, step)


async def ran(toolset: MCPToolset, name: str) -> str:
    """Return what a run comes to, or why its model was asked to try again until it gave up."""
    agent = Agent(TestModel(call_tools=[name]), toolsets=[toolset])
    try:
        return (await agent.run("go")).output
    except UnexpectedModelBehavior as gave_up:
        return str(gave_up.__cause__)


client_walk.run(connect, take)
