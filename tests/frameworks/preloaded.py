"""Imports what the mounts and servers import, once for all processes that are forked from this one."""

from importlib import import_module
from typing import Final
from warnings import catch_warnings, simplefilter

MODULES: Final = (
    "aiohttp.web",
    "aiohttp_asgi",
    "bottle",
    "django.core.asgi",
    "django.core.wsgi",
    "falcon.asgi",
    "fastapi",
    "flask",
    "granian",
    "gunicorn.app.base",
    "hypercorn.asyncio",
    "hypercorn.middleware",
    "litestar",
    "nonsuch",
    "pyramid.config",
    "quart",
    "starlette.applications",
    "uvicorn",
    "uvicorn_worker",
    "waitress",
)

with catch_warnings():
    simplefilter("ignore")  # what these packages deprecate among themselves
    for module in MODULES:
        import_module(module)
