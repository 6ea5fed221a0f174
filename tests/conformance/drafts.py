"""A small app for released clients: it hides, lacks scopes, forbids, and has a tool that talks to its client.

Every caller has drafts of its own, so that one server serves many tests. Knows no client and no wire.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from nonsuch import (
    App,
    Context,
    Elicit,
    Elicited,
    Registry,
    Text,
    can,
    define_app_mcp,
    expose,
    grant,
    prompt,
    resource,
    tool,
)

registry: Final = Registry()


class Desks(defaultdict[str, dict[str, bool]]):
    """Whether each draft is published, by caller and id."""

    def __init__(self) -> None:
        super().__init__(lambda: {"d1": False, "d2": True})


Here = Context[Desks]


def mine(ctx: Here) -> dict[str, bool]:
    return ctx.resources[ctx.principal.id]


# Tools


class Draft(BaseModel):
    id: str
    published: bool


class Named(BaseModel):
    draftId: str


class Listed(BaseModel):
    id: str
    title: str | None = None


async def draft_facts(input: Named, ctx: Here) -> Draft | None:
    published = mine(ctx).get(input.draftId)
    return None if published is None else Draft(id=input.draftId, published=published)


@registry.query(policy=can("draft:read"), mcp=expose("Every draft"))
def listDrafts(ctx: Here) -> list[Listed]:
    return [Listed(id=each) for each in mine(ctx)]


@registry.query(policy=can("draft:read"), mcp=expose("How many drafts there are"), single=True)
def countDrafts(ctx: Here) -> int | None:
    return len(mine(ctx))


@registry.action(
    policy=can("draft:publish", resource=draft_facts),
    mcp=expose("Publish a draft", visible_to=["editor", "owner"], title="Publish"),
)
async def publishDraft(input: Named, ctx: Here) -> Draft:
    mine(ctx)[input.draftId] = True
    return Draft(id=input.draftId, published=True)


@registry.action(
    policy=can("draft:delete", resource=draft_facts),
    mcp=expose("Delete a draft", visible_to=["editor", "owner"]),
)
async def deleteDraft(input: Named, ctx: Here) -> Draft:
    return Draft(id=input.draftId, published=mine(ctx).pop(input.draftId))


@registry.action(policy=can("draft:delete"), mcp=expose("Delete every draft", visible_to=["owner"]))
async def purgeDrafts(ctx: Here) -> None:
    mine(ctx).clear()


async def watchDrafts(ctx: Here) -> Text:
    """Say how it goes, step by step."""
    for step in (1, 2, 3):
        await ctx.client.progress(step, total=3, message=f"step {step}")
        await ctx.client.log("info", {"step": step}, logger="drafts")
        await asyncio.sleep(0.01)
    return Text("watched")


class Rating(BaseModel):
    stars: int


async def rateDrafts(ctx: Here) -> Text:
    """Ask once, and say how it goes before and after."""
    await ctx.client.progress(1, total=2)
    given = (await ctx.client.ask({"rating": Elicit("How many stars?", Rating)}))["rating"]
    await ctx.client.progress(2, total=2)
    assert isinstance(given, Elicited)
    return Text(f"{given.action} {given.content.get('stars')}")


# What is read


class Located(BaseModel):
    id: str


def summarizeDraft(input: Named) -> str:
    return f"Summarize the draft {input.draftId}."


def briefOwner() -> str:
    return "Tell the owner everything."


def read_all(ctx: Here) -> list[str]:
    return list(mine(ctx))


def read_one(input: Located, ctx: Here) -> dict[str, object]:
    return {"id": input.id, "published": mine(ctx).get(input.id)}


def read_ledger() -> str:
    return "1000000"


# The whole

POLICY: Final = """
@id("publish.once")
@reason("the draft is published already")
@fix("choose another draft")
forbid (principal, action == Action::"publishDraft", resource is Draft) when { resource.published };
"""


@asynccontextmanager
async def desks() -> AsyncGenerator[Desks]:
    yield Desks()


def app(policies: Path, **more: Any) -> App:
    """Return the app, its policies written to a directory; what is given besides says who may call."""
    (policies / "drafts.cedar").write_text(POLICY)
    return define_app_mcp(
        registry,
        name="drafts",
        include="exposed",
        tools={
            "watchDrafts": tool("Watch the drafts", watchDrafts, policy="draft:read"),
            "rateDrafts": tool("Rate the drafts", rateDrafts, policy="draft:read"),
        },
        prompts=[
            prompt(summarizeDraft, description="Summarize a draft"),
            prompt(briefOwner, description="For the owner", visible_to=["owner"]),
        ],
        resources=[
            resource("drafts://all", "all", "The ids of every draft", read_all),
            resource("drafts://one/{id}", "one", "One draft", read_one),
            resource("drafts://ledger", "ledger", "The books", read_ledger, visible_to=["owner"]),
        ],
        scopes={
            "read": ["listDrafts", "countDrafts", "watchDrafts", "rateDrafts"],
            "write": ["publishDraft"],
            "delete": ["deleteDraft", "purgeDrafts"],
        },
        roles=["viewer", "editor", "owner"],
        grants=[
            grant("viewer", "draft:read"),
            *(grant("editor", f"draft:{verb}") for verb in ("read", "publish", "delete")),
        ],
        policies_dir=policies,
        lifespan=desks,
        rate_limits=None,
        **more,
    )
