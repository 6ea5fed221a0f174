"""Flask: a guard is a decorator below the route, plain views and async ones."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from flask import Flask, abort, request

from nonsuch import flask_guard

from .stage import CALLERS, found, mcp, priced, published

site = Flask(__name__)
guard = flask_guard(mcp)


def post_of(post):
    if post == "gone":
        abort(410, "gone for good")
    return found(post)


def price_of(amount):
    return {"amount": int(amount) if amount.lstrip("-").isdecimal() else amount}


def work(allowed):
    if allowed.resource.id == "refused-by-host":
        abort(418, "the host says no")
    return published(allowed.resource, allowed.principal)


@site.post("/plain/<post>")
@guard("post:publish", resource=post_of)
def plain(post, allowed):
    return work(allowed)


@site.post("/later/<post>")
@guard("post:publish", resource=post_of)
async def later(post, allowed):
    return work(allowed)


@site.post("/price/<amount>")
@guard("post:price", arguments=price_of)
def price(amount):
    return priced(int(amount))


own = flask_guard(mcp, principal=lambda post: CALLERS.get(request.headers.get("x-user", "")))


@site.post("/session/<post>")
@own("post:publish", resource=post_of)
def by_session(post, allowed):
    return work(allowed)


@site.get("/open")
def unguarded():
    return "open"
