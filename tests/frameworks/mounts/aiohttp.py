"""aiohttp: MCP at /agents/mcp, by aiohttp-asgi, which also carries the lifespan."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

from aiohttp import web
from aiohttp_asgi import ASGIResource

from nonsuch import asgi

from ..app import mcp

application = web.Application()
agents = ASGIResource(asgi(mcp), root_path="/agents")
application.router.register_resource(agents)
agents.lifespan_mount(application)
