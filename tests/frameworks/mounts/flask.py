"""Flask: MCP at /agents/mcp. WSGI has no lifespan: the first request enters ours."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from nonsuch import wsgi

from ..app import mcp

application = Flask(__name__)
application.wsgi_app = DispatcherMiddleware(application.wsgi_app, {"/agents": wsgi(mcp)})
