"""Walks a plan with MCP SDK 1."""
# The checkers see the names of SDK 2, which is installed where they run.
# mypy: ignore-errors
# pyright: basic, reportAttributeAccessIssue=false

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from client_walk import run, take
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


@asynccontextmanager
async def connect(url: str, token: str, era: str) -> AsyncGenerator[ClientSession]:
    """Open one session."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        streamablehttp_client(url, headers=headers) as (read, write, _),
        ClientSession(read, write) as client,
    ):
        await client.initialize()
        yield client


run(connect, take)
