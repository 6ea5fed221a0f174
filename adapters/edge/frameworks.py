"""``guard`` as FastAPI, Flask and Django write it: a dependency, or a decorator of views.

Says how each of them tells a request and sends an answer; what is decided is ``guards.py``'s. Imports none of
them before it is asked for one.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar, cast

from ...kernel.model import Principal
from ..wire import Head, Reply
from .app import App
from .asgi import head_of as asgi_head
from .environ import head_of as environ_head
from .guards import Allowed, Asking, Asks, Guard, Refused, guarding

Function = TypeVar("Function", bound=Callable[..., Any])
Guarding = Callable[..., Any]


# FastAPI


def fastapi_guard(app: App, site: Any = None, *, principal: Asking | None = None) -> Guarding:
    """Return ``guard`` for the views of a FastAPI site: a dependency, whose value is an ``Allowed``::

        guard = fastapi_guard(mcp, site)

        @site.post("/posts/{post_id}/publish")
        def publish(allowed: Annotated[Allowed, guard("post:publish", resource=post_of)]): ...

    ``resource`` and ``arguments`` are dependencies too, solved only for who may act at all. Who calls is read
    from the request as at ``/api``, or it is the value of ``principal``, another dependency. Without a
    ``site`` tell yours how a refusal is answered: ``site.add_exception_handler(Refused, refusal_handler)``.
    """
    fastapi = import_module("fastapi")
    if site is not None:
        site.add_exception_handler(Refused, refusal_handler)

    def guard(name: str, *, resource: Asking | None = None, arguments: Asking | None = None) -> Any:
        asks = Asks(principal=principal, resource=resource, arguments=arguments)
        return fastapi.Depends(_dependency(guarding(app, name, asks), fastapi))

    return guard


async def refusal_handler(_request: object, refusal: Any) -> Any:
    """Answer ``Refused`` in Starlette or FastAPI."""
    reply = cast("Reply", refusal.reply)
    response = import_module("starlette.responses").Response
    return response(reply.body, reply.status, dict(reply.all_headers()))


def _dependency(guard: Guard, fastapi: Any) -> Callable[..., Awaitable[Allowed]]:
    """Return two dependencies as one: FastAPI solves the first before what the second one takes."""

    async def caller(request: Any, known: Principal | None = None) -> Principal:
        who = await guard.admit(asgi_head(request.scope)) if guard.asks.principal is None else known
        refused = who if isinstance(who, Reply) else guard.closed(who)
        if refused is not None:
            raise Refused(refused)
        return cast("Principal", who)

    async def allowed(caller: Principal, resource: Any = None, arguments: Any = None) -> Allowed:
        return guard.require(caller, resource, arguments)

    request = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=fastapi.Request)
    asks, depends = guard.asks, fastapi.Depends
    _takes(caller, request, *_solved(depends, known=asks.principal))
    return _takes(allowed, *_solved(depends, caller=caller, resource=asks.resource, arguments=asks.arguments))


def _solved(depends: Any, **given: Asking | None) -> list[inspect.Parameter]:
    """Return parameters that are dependencies, in the order in which they are solved."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    asked = {name: each for name, each in given.items() if each is not None}
    return [inspect.Parameter(name, keyword, default=depends(each)) for name, each in asked.items()]


def _takes(function: Function, *parameters: inspect.Parameter) -> Function:
    """Say what a dependency takes, as FastAPI reads it."""
    cast("Any", function).__signature__ = inspect.Signature(parameters)
    return function


# Flask


def flask_guard(app: App, *, principal: Asking | None = None) -> Guarding:
    """Return ``guard`` for the views of Flask: a decorator, below the one that routes::

        guard = flask_guard(mcp)

        @site.post("/posts/<post_id>/publish")
        @guard("post:publish", resource=post_of)
        def publish(post_id, allowed): ...

    ``resource`` and ``arguments`` are called with what the view is called with, only for who may act at all.
    Who calls is read from the request as at ``/api``, or returned by ``principal``, called likewise.
    """
    flask = import_module("flask")

    def head(**_view_args: Any) -> Head:
        return environ_head(flask.request.environ)

    def answer(reply: Reply) -> Any:
        return flask.make_response(reply.body, reply.status, list(reply.all_headers()))

    return _decorator(app, principal, head, answer)


# Django


def django_guard(app: App, *, principal: Asking | None = None) -> Guarding:
    """Return ``guard`` for the views of Django, over WSGI or ASGI: a decorator::

        guard = django_guard(mcp)

        @guard("post:publish", resource=post_of)
        def publish(request, post_id, allowed): ...

    ``resource`` and ``arguments`` are called with what the view is called with, only for who may act at all.
    Who calls is read from the request as at ``/api``, or returned by ``principal``, called likewise.
    """
    http = import_module("django.http")

    def answer(reply: Reply) -> Any:
        return http.HttpResponse(reply.body, status=reply.status, headers=dict(reply.all_headers()))

    return _decorator(app, principal, _django_head, answer)


def _django_head(request: Any, *_args: object, **_kwargs: object) -> Head:
    """Return the head of a request, which Django tells over ASGI as over WSGI."""
    meta: Mapping[str, Any] = request.META
    return Head(
        method=request.method,
        path=request.path_info,
        headers={name.lower(): value for name, value in request.headers.items()},
        address=meta.get("REMOTE_ADDR") or None,
        scheme=request.scheme,
        query=meta.get("QUERY_STRING", ""),
    )


def _decorator(
    app: App, principal: Asking | None, head: Callable[..., Head], answer: Callable[[Reply], Any]
) -> Guarding:
    def guard(name: str, *, resource: Asking | None = None, arguments: Asking | None = None) -> Guard:
        return guarding(app, name, Asks(principal, head, resource, arguments, answer))

    return guard
