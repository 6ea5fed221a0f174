"""A small app for released clients, as a server process: `python -m tests.conformance.drafts`.

It has something to hide, a scope that its callers lack, a policy that forbids, and a tool that talks.
The process writes its URL, then one JSON line for everything it saw. Knows no client.
"""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import uvicorn
from pydantic import BaseModel

from nonsuch import (
    Agent,
    App,
    Context,
    Elicit,
    Elicited,
    Registry,
    Text,
    asgi,
    can,
    define_app_mcp,
    expose,
    grant,
    prompt,
    resource,
    tool,
)
from nonsuch.kernel.audit import Event, PromptGet, ResourceRead, ToolCall

MODULE: Final = "tests.conformance.drafts"
POLICIES: Final = Path(__file__).parent / "policies"
Drafts = dict[str, bool]
registry: Final = Registry()

# What it does


class Draft(BaseModel):
    id: str
    published: bool


class Named(BaseModel):
    draftId: str


class Listed(BaseModel):
    id: str
    title: str | None = None


class Located(BaseModel):
    id: str


async def draft_facts(input: Named, ctx: Context[Drafts]) -> Draft | None:
    published = ctx.resources.get(input.draftId)
    return None if published is None else Draft(id=input.draftId, published=published)


@registry.query(policy=can("draft:read"), mcp=expose("Every draft"))
def listDrafts(ctx: Context[Drafts]) -> list[Listed]:
    return [Listed(id=each) for each in ctx.resources]


@registry.query(policy=can("draft:read"), mcp=expose("How many drafts there are"), single=True)
def countDrafts(ctx: Context[Drafts]) -> int | None:
    return len(ctx.resources)


@registry.action(
    policy=can("draft:publish", resource=draft_facts),
    mcp=expose("Publish a draft", visible_to=["editor", "owner"], title="Publish"),
)
async def publishDraft(input: Named, ctx: Context[Drafts]) -> Draft:
    ctx.resources[input.draftId] = True
    return Draft(id=input.draftId, published=True)


@registry.action(
    policy=can("draft:delete", resource=draft_facts),
    mcp=expose("Delete a draft", visible_to=["editor", "owner"]),
)
async def deleteDraft(input: Named, ctx: Context[Drafts]) -> Draft:
    return Draft(id=input.draftId, published=ctx.resources.pop(input.draftId))


@registry.action(policy=can("draft:delete"), mcp=expose("Delete every draft", visible_to=["owner"]))
async def purgeDrafts(ctx: Context[Drafts]) -> None:
    ctx.resources.clear()


class Rating(BaseModel):
    stars: int


async def reviewDrafts(ctx: Context[Drafts]) -> Text:
    """Tell the client how it goes, and ask it once."""
    await ctx.client.log("info", "reading")
    await ctx.client.progress(1, total=2)
    given = (await ctx.client.ask({"rating": Elicit("How many stars?", Rating)}))["rating"]
    await ctx.client.log("warning", {"read": len(ctx.resources)}, logger="review")
    await ctx.client.progress(2, total=2, message="read")
    assert isinstance(given, Elicited)
    return Text(f"{given.action}: {given.content.get('stars')}")


async def watchDrafts(ctx: Context[Drafts]) -> Text:
    """Tell the client how it goes, step by step."""
    for step in (1, 2, 3):
        await ctx.client.progress(step, total=3)
        await ctx.client.log("info", f"step {step}")
        await asyncio.sleep(0.02)
    return Text("watched")


# What can be read


def summarizeDraft(input: Named) -> str:
    return f"Summarize the draft {input.draftId}."


def ownersBrief() -> str:
    return "Tell the owner everything."


def read_all(ctx: Context[Drafts]) -> list[str]:
    return list(ctx.resources)


def read_one(input: Located, ctx: Context[Drafts]) -> dict[str, object]:
    return {"id": input.id, "published": ctx.resources.get(input.id)}


def read_ledger() -> str:
    return "1000000"


# Who may

POLICY: Final = """
@id("publish.once")
@reason("the draft is published already")
@fix("choose another draft")
forbid (principal, action == Action::"publishDraft", resource is Draft) when { resource.published };
"""
CALLERS: Final = {
    "viewer": Agent("viewer", roles=frozenset({"viewer"}), scopes=frozenset({"read", "write"})),
    "editor": Agent("editor", roles=frozenset({"editor"}), scopes=frozenset({"read", "write"})),
}


@asynccontextmanager
async def drafts() -> AsyncGenerator[Drafts]:
    yield {"d1": False, "d2": True}


def app(policies: Path, **more: Any) -> App:
    """Return the app; what is given beside the policies' directory says who its callers are."""
    (policies / "drafts.cedar").write_text(POLICY)
    return define_app_mcp(
        registry,
        name="drafts",
        include="exposed",
        tools={
            "reviewDrafts": tool("Read every draft and ask", reviewDrafts, policy="draft:read"),
            "watchDrafts": tool("Read every draft", watchDrafts, policy="draft:read"),
        },
        scopes={
            "read": ["listDrafts", "countDrafts", "reviewDrafts", "watchDrafts"],
            "write": ["publishDraft"],
            "delete": ["deleteDraft", "purgeDrafts"],
        },
        prompts=[
            prompt(summarizeDraft, description="Summarize a draft"),
            prompt(ownersBrief, description="For the owner", visible_to=["owner"]),
        ],
        resources=[
            resource("drafts://all", "all", "The ids of every draft", read_all),
            resource("drafts://one/{id}", "one", "One draft", read_one),
            resource("drafts://ledger", "ledger", "The books", read_ledger, visible_to=["owner"]),
        ],
        roles=["viewer", "editor", "owner"],
        grants=[
            grant("viewer", "draft:read"),
            *(grant("editor", f"draft:{verb}") for verb in ("read", "publish", "delete")),
        ],
        policies_dir=policies,
        lifespan=drafts,
        **more,
    )


# The program


def say(kind: str, value: object) -> None:
    sys.stdout.write(json.dumps({kind: value}) + "\n")
    sys.stdout.flush()


def audit(event: Event) -> None:
    if isinstance(event, ToolCall):
        say("call", [event.caller, event.tool, event.outcome])
    elif isinstance(event, PromptGet):
        say("prompt", [event.caller, event.prompt, event.outcome])
    elif isinstance(event, ResourceRead):
        say("read", [event.caller, event.uri, event.outcome])


def watched(application: Any) -> Any:
    """Return the application, saying versions and statuses."""

    async def watching(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                say("answered", [scope["method"], scope["path"], message["status"]])
            await send(message)

        version = dict(scope.get("headers", ())).get(b"mcp-protocol-version")
        if version is not None:
            say("version", version.decode())
        await application(scope, receive, sending)

    return watching


def main() -> None:
    """Listen on a free port, say where, and serve."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
        sys.stdout.flush()
        served = app(Path(sys.argv[1]), resolve_token=CALLERS.get, on_audit=audit)
        config = uvicorn.Config(watched(asgi(served)), log_config=None, lifespan="on", ws="none")
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
