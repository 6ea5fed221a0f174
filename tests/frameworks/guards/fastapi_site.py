"""FastAPI: a guard is a dependency, and its value what was allowed."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException

from nonsuch import Allowed, fastapi_guard

from .stage import CALLERS, found, mcp, priced, published

site = FastAPI()
guard = fastapi_guard(mcp, site)


def post_of(post: str):
    if post == "gone":
        raise HTTPException(410, "gone for good")
    return found(post)


async def price_of(amount: str):
    return {"amount": int(amount) if amount.lstrip("-").isdecimal() else amount}


Publishing = Annotated[Allowed, guard("post:publish", resource=post_of)]


def work(allowed):
    if allowed.resource.id == "refused-by-host":
        raise HTTPException(418, "the host says no")
    return published(allowed.resource, allowed.principal)


@site.post("/plain/{post}")
def plain(allowed: Publishing) -> str:
    return work(allowed)


@site.post("/later/{post}")
async def later(allowed: Publishing) -> str:
    return work(allowed)


@site.post("/price/{amount}", dependencies=[guard("post:price", arguments=price_of)])
async def price(amount: str) -> str:
    return priced(int(amount))


def signed_in(x_user: Annotated[str, Header()] = ""):
    return CALLERS.get(x_user)


own = fastapi_guard(mcp, principal=signed_in)


@site.post("/session/{post}")
async def by_session(allowed: Annotated[Allowed, own("post:publish", resource=post_of)]) -> str:
    return work(allowed)


@site.get("/open")
def unguarded(_: Annotated[None, Depends(lambda: None)]) -> str:
    return "open"
