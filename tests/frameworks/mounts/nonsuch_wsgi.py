"""nonsuch alone, over WSGI: MCP at /mcp. The first request enters the lifespan, the process's end leaves it."""

from nonsuch import wsgi

from ..app import mcp

application = wsgi(mcp)
