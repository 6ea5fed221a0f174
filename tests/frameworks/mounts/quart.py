"""Quart: MCP at /agents/mcp. The dispatcher that Quart brings along hands the lifespan to both."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

from hypercorn.middleware import DispatcherMiddleware
from quart import Quart

from nonsuch import asgi

from ..app import mcp

application = DispatcherMiddleware({"/agents": asgi(mcp), "": Quart(__name__)})
