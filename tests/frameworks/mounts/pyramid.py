"""Pyramid: MCP at /agents/mcp. WSGI has no lifespan: the first request enters ours."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

from pyramid.config import Configurator
from pyramid.wsgi import wsgiapp2

from nonsuch import wsgi

from ..app import mcp

with Configurator() as config:
    config.add_route("agents", "/agents/*subpath")
    config.add_view(wsgiapp2(wsgi(mcp)), route_name="agents")
    application = config.make_wsgi_app()
