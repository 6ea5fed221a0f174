"""nonsuch alone, over ASGI: MCP at /mcp. The server enters the lifespan."""

from nonsuch import asgi

from ..app import mcp

application = asgi(mcp)
