"""Starlette: MCP at /agents/mcp. Starlette runs no lifespan of what it mounts, so its own is ours."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

from starlette.applications import Starlette
from starlette.routing import Mount

from nonsuch import asgi

from ..app import mcp

agents = asgi(mcp)
application = Starlette(routes=[Mount("/agents", agents)], lifespan=agents.lifespan)
