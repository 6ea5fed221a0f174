# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
"""Imports what the mounts and servers import, once for all processes that are forked from this one."""

import aiohttp.web
import aiohttp_asgi
import bottle
import django.core.asgi
import django.core.wsgi
import falcon.asgi
import fastapi
import flask
import granian
import gunicorn.app.base
import hypercorn.asyncio
import hypercorn.middleware
import litestar
import pyramid.config
import quart
import starlette.applications
import uvicorn
import uvicorn_worker
import waitress

import nonsuch
