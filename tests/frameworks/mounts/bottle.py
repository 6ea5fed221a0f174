"""Bottle: MCP at /agents/mcp. WSGI has no lifespan: the first request enters ours."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

from bottle import Bottle

from nonsuch import wsgi

from ..app import mcp

application = Bottle()
application.mount("/agents/", wsgi(mcp))
