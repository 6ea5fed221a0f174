"""The app that every framework mounts: two endpoints, a tool for each outcome, and a lifespan that tells.

Knows no framework and no server.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from pydantic import BaseModel

from nonsuch import Agent, Context, Limits, Rate, Registry, can, define_app_mcp, expose, grant
from nonsuch.kernel.audit import Event, ToolCall

BODY_LIMIT: Final = 20_000
TIGHT: Final = 2
AGENT: Final = Agent("agent", roles={"member"}, scopes={"use"})
STEP_SECONDS: Final = 0.02
HELD_STEPS: Final = 1_000


class Name(BaseModel):
    """Whom to greet."""

    name: str


registry = Registry()
events: Final[list[Event]] = []
released = asyncio.Event()


@registry.query(policy=can("door:use"), mcp=expose("Greet"))
def hello(input: Name, ctx: Context[str]) -> str:
    """Greet by what the lifespan yielded."""
    return f"hello {input.name}, we are {ctx.resources}"


@registry.query(policy=can("door:use"), mcp=expose("Nobody sees it", visible_to=["admin"]))
def secret() -> str:
    """Be hidden."""
    return "secret"


@registry.query(policy=can("door:use"), mcp=expose("Needs another scope"))
def scoped() -> str:
    """Be behind a scope."""
    return "scoped"


@registry.query(policy=can("door:never"), mcp=expose("No policy permits it"))
def forbidden() -> str:
    """Be forbidden."""
    return "forbidden"


@registry.query(policy=can("door:use"), mcp=expose("Say something until it is released"))
async def hold(ctx: Context[str]) -> str:
    """Stream; the end comes from another request, so that a stream that is held back is found out."""
    released.clear()
    for step in range(HELD_STEPS):
        await ctx.client.progress(step)
        await asyncio.sleep(STEP_SECONDS)
        if released.is_set():
            return "released"
    return "nobody released it"


@registry.query(policy=can("door:use"), mcp=expose("Release what is held"))
async def release() -> str:
    """End the stream."""
    released.set()
    return "done"


@registry.query(policy=can("door:use"), mcp=expose("How many calls were interrupted"))
def interrupted() -> int:
    """Count the calls whose client left."""
    return sum(isinstance(each, ToolCall) and each.code == "X_INTERRUPTED" for each in events)


@asynccontextmanager
async def lifespan() -> AsyncGenerator[str]:
    """Say when it is entered and left."""
    sys.stdout.write("lifespan entered\n")
    sys.stdout.flush()
    yield "open"
    sys.stdout.write("lifespan left\n")
    sys.stdout.flush()


def resolve_token(token: str) -> Agent | None:
    """Know one agent."""
    return AGENT if token == "agent-token" else None


doors = define_app_mcp(
    registry,
    name="doors",
    include="exposed",
    scopes={
        "use": ["hello", "secret", "forbidden", "hold", "release", "interrupted"],
        "more": ["scoped"],
    },
    grants=[grant("member", "door:use")],
    resolve_token=resolve_token,
    lifespan=lifespan,
    body_limit_bytes=BODY_LIMIT,
    on_audit=events.append,
    rate_limits=None,
)
tight = define_app_mcp(
    Registry(),
    name="tight",
    path="/tight",
    resolve_token=resolve_token,
    rate_limits=Limits(read=Rate(TIGHT)),
)
mcp = [doors, tight]
