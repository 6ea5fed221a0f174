"""Django over ASGI: MCP at /agents/mcp. Django takes part in no lifespan, so the server's is ours."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

from django.conf import settings
from django.core.asgi import get_asgi_application

from nonsuch import asgi

from ..app import mcp

settings.configure(ALLOWED_HOSTS=["localhost"], ROOT_URLCONF=__name__)  # a project has DJANGO_SETTINGS_MODULE
urlpatterns = []
django, agents = get_asgi_application(), asgi(mcp)


async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        await agents(scope, receive, send)
    elif scope["path"].startswith("/agents/"):
        await agents({**scope, "root_path": "/agents"}, receive, send)
    else:
        await django(scope, receive, send)
