"""Falcon over ASGI: MCP at /agents/mcp. Falcon mounts nothing, so a function stands before both."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

import falcon.asgi

from nonsuch import asgi

from ..app import mcp

agents = asgi(mcp)


class Lifespan:
    """Enters ours in Falcon's."""

    async def process_startup(self, scope, event):
        self.held = agents.lifespan()
        await self.held.__aenter__()

    async def process_shutdown(self, scope, event):
        await self.held.__aexit__(None, None, None)


rest = falcon.asgi.App(middleware=[Lifespan()])


async def application(scope, receive, send):
    if scope["type"] == "http" and scope["path"].startswith("/agents/"):
        await agents({**scope, "root_path": "/agents"}, receive, send)
    else:
        await rest(scope, receive, send)
