"""The OpenAPI document of an app as a value: whole for its developer, or as one caller is served it."""

from __future__ import annotations

from typing import Any

from ...kernel.model import Principal
from .app import App


def openapi(app: App, caller: Principal | None = None) -> dict[str, Any]:
    """Return the document of the paths that ``caller`` sees, or of all paths without one.

    The whole document tells what the app hides: give it to developers.
    ``fact_resources(openapi=lambda: openapi(app))`` serves it to those over MCP.
    """
    if caller is None:
        catalog = app.kernel.catalog
        return app.http.documents.document(catalog.entries, catalog.tools)
    table = app.kernel.view_for(caller).table
    return app.http.documents.document(table.paths.values(), table.tools)
