"""nonsuch alone, over WSGI: MCP at /mcp. The first request enters the lifespan."""

from nonsuch import wsgi

from ..app import mcp

application = wsgi(mcp)
