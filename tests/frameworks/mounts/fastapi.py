"""FastAPI: MCP at /agents/mcp. FastAPI runs no lifespan of what it mounts, so its own is ours.

An app with a lifespan of its own enters ours in it: `async with agents.lifespan(): ...`.
"""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

from fastapi import FastAPI

from nonsuch import asgi

from ..app import mcp

agents = asgi(mcp)
application = FastAPI(lifespan=agents.lifespan)
application.mount("/agents", agents)
