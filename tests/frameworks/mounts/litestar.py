"""Litestar: MCP at /agents/mcp. Litestar runs no lifespan of what it mounts, so ours is in its list."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

from litestar import Litestar, asgi
from litestar.types import Receive, Scope, Send

import nonsuch

from ..app import mcp

agents = nonsuch.asgi(mcp)


@asgi("/agents", is_mount=True, copy_scope=True)
async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
    await agents({**scope, "root_path": "/agents"}, receive, send)


application = Litestar([mounted], lifespan=[agents.lifespan])
