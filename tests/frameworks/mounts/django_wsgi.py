"""Django over WSGI: MCP at /agents/mcp. WSGI has no lifespan: the first request enters ours."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

from wsgiref.util import shift_path_info

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from nonsuch import wsgi

from ..app import mcp

settings.configure(ALLOWED_HOSTS=["localhost"], ROOT_URLCONF=__name__)  # a project has DJANGO_SETTINGS_MODULE
urlpatterns = []
django, agents = get_wsgi_application(), wsgi(mcp)


def application(environ, start_response):
    if environ["PATH_INFO"].startswith("/agents/"):
        shift_path_info(environ)
        return agents(environ, start_response)
    return django(environ, start_response)
