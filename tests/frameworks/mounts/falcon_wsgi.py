"""Falcon over WSGI: MCP at /agents/mcp. WSGI has no lifespan: the first request enters ours."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

from wsgiref.util import shift_path_info

import falcon

from nonsuch import wsgi

from ..app import mcp

agents, rest = wsgi(mcp), falcon.App()


def application(environ, start_response):
    if environ["PATH_INFO"].startswith("/agents/"):
        shift_path_info(environ)
        return agents(environ, start_response)
    return rest(environ, start_response)
