"""A small app in memory, as `tests/vectors/mcp_app.json` describes it; knows no test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from nonsuch import (
    ActionError,
    Agent,
    App,
    Completing,
    Context,
    Embedded,
    Human,
    Icon,
    Image,
    Link,
    Message,
    Registry,
    RequestFacts,
    can,
    define_app_mcp,
    expose,
    grant,
    prompt,
    resource,
    tool,
)

VECTORS: Final = Path(__file__).parents[2] / "vectors"
DESCRIBED: Final[Mapping[str, Any]] = json.loads((VECTORS / "mcp_app.json").read_text("utf-8"))
RAN: Final[list[str]] = []
"""The names of the handlers that ran, in order."""

registry: Final = Registry()


class Post(BaseModel):
    id: str
    org: str
    published: bool


class PostRow(BaseModel):
    id: str
    title: str
    subtitle: str | None = None


class PostId(BaseModel):
    postId: str


class PublishPost(BaseModel):
    postId: str = Field(description="The draft to publish")
    notify: bool = False


class Published(BaseModel):
    id: str
    published: bool


class Purged(BaseModel):
    purged: int


POSTS: Final = {each["id"]: Post.model_validate(each) for each in DESCRIBED["posts"]}
ROWS: Final = [PostRow(id="p1", title="Alpha"), PostRow(id="p2", title="Beta", subtitle="b")]


def post_facts(input: PublishPost) -> Post | None:
    return POSTS.get(input.postId)


@registry.action(
    policy=can("post:publish", resource=post_facts),
    mcp=expose("Publish a draft post", visible_to=["editor"], title="Publish a post"),
    idempotent=True,
    path="posts/publish",
)
def publishPost(input: PublishPost, ctx: Context[None]) -> Published:
    RAN.append("publishPost")
    return Published(id=ctx.resource.id, published=True)


@registry.query(policy=can("post:read"), mcp=expose("Posts of the press"))
def listPosts() -> list[PostRow]:
    RAN.append("listPosts")
    return ROWS


@registry.query(policy=can("post:read"), mcp=expose("One post"), single=True, path="posts/get")
def getPost(input: PostId) -> PostRow | None:
    RAN.append("getPost")
    return next((row for row in ROWS if row.id == input.postId), None)


@registry.query(policy=can("post:read"), mcp=expose("How many posts there are"), single=True)
def countPosts() -> int | None:
    RAN.append("countPosts")
    return len(ROWS)


@registry.action(
    policy=can("post:archive"),
    mcp=expose(
        "Archive a post",
        annotations={"idempotentHint": True, "openWorldHint": False, "title": "Archive"},
    ),
    destructive=False,
)
def archivePost(input: PostId) -> str:
    RAN.append("archivePost")
    match input.postId:
        case "locked":
            raise ActionError("X_POST_LOCKED", "`locked` is being printed", "unlock it", "wait a minute")
        case "broken":
            raise RuntimeError("the password is hunter2")
        case "strange":
            return 7  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  # the fault under test
        case _:
            return f"{input.postId} is archived"


def seat_report() -> Published:
    RAN.append("seatReport")
    return Published(id="seats", published=False)


@registry.action(policy=can("post:purge"), path="posts/purge")
def purgePosts() -> Purged:
    RAN.append("purgePosts")
    return Purged(purged=2)


# resources and prompts

STYLE: Final = "Write short sentences.\n"
LOGO: Final = b"\x89PNG\x00\xff"


class Masthead(BaseModel):
    editor: str
    founded: int | None = None


class PostUri(BaseModel):
    postId: str = Field(max_length=8)


class DraftUri(BaseModel):
    path: str


class Review(BaseModel):
    tone: Literal["kind", "harsh"] = Field(description="How to say it")
    postId: str | None = Field(default=None, title="Post")


def style() -> str:
    RAN.append("style")
    return STYLE


def logo() -> bytes:
    RAN.append("logo")
    return LOGO


def masthead(ctx: Context[None]) -> Masthead:
    RAN.append("masthead")
    return Masthead(editor=ctx.principal.id)


def ledger() -> list[int]:
    RAN.append("ledger")
    return [1, 2]


def safe() -> str:
    RAN.append("safe")
    return "never reached"


def post(input: PostUri) -> PostRow:
    RAN.append("post")
    if input.postId == "broken":
        raise RuntimeError("the password is hunter2")
    found = next((row for row in ROWS if row.id == input.postId), None)
    if found is None:
        raise ActionError("X_POST_GONE", "the post was taken down", "restore it", "read another one")
    return found


def draft(input: DraftUri) -> str:
    RAN.append("draft")
    return f"draft of {input.path}"


def drafts(given: Completing, ctx: Context[None]) -> list[str]:
    RAN.append("drafts")
    return [f"{given.value}{at}" for at in range(101)]


def topics(given: Completing) -> list[str]:
    RAN.append("topics")
    if given.value == "broken":
        raise RuntimeError("the password is hunter2")
    return [f"{given.value} in {given.arguments.get('language', 'any language')}"]


def review(input: Review) -> list[Message]:
    """Every kind of message."""
    RAN.append("review")
    return [
        Message("user", f"Review {input.postId or 'a post'} in a {input.tone} tone."),
        Message("assistant", Image(LOGO, "image/png")),
        Message("user", Embedded("press://style", STYLE, "text/plain")),
        Message("user", Embedded("press://logo", LOGO, "image/png")),
        Message("user", Link("press://style", "style", mime_type="text/plain")),
    ]


def motto(ctx: Context[None]) -> str:
    RAN.append("motto")
    return f"All the news, {ctx.principal.id}"


def payroll() -> Message:
    RAN.append("payroll")
    return Message("user", "Pay everybody.")


ICON: Final = Icon("https://desk.example/icon.png", "image/png", ["48x48"])
RESOURCES: Final = (
    resource(
        "press://style",
        "style",
        "House style",
        style,
        mime_type="text/plain",
        title="Style",
        icons=[ICON],
        annotations={"audience": ["assistant"], "priority": 0.5},
    ),
    resource("press://logo", "logo", "The logo", logo, mime_type="image/png"),
    resource("press://masthead", "masthead", "Who makes the press", masthead),
    resource("press://ledger", "ledger", "Money", ledger, visible_to=["editor"], scope="admin:seats"),
    resource("press://safe", "safe", "Nobody's", safe, visible_to=["editor"], policy="seats:read"),
    resource("press://posts/{postId}", "post", "One post", post, complete={"postId": ["p1", "p2", "q1"]}),
    resource(
        "press://drafts/{+path}",
        "draft",
        "One draft",
        draft,
        mime_type="text/plain",
        visible_to=["editor"],
        complete={"path": drafts},
    ),
)
PROMPTS: Final = (
    prompt(
        Path(__file__).parent / "prompts" / "headline.v2.md",
        description="A headline",
        title="Headline",
        icons=[Icon("data:image/png;base64,AA==")],
        complete={"topic": topics, "language": ["Dutch", "English", "German", "Greek"]},
    ),
    prompt(review, description="A review of a post", scope="posts:read"),
    prompt(motto, description="The motto"),
    prompt(payroll, description="The payroll", visible_to=["editor"], policy="seats:read"),
)


def principal(described: Mapping[str, Any]) -> Agent | Human:
    """Return the caller that a description stands for."""
    roles = frozenset(described["roles"])
    scopes = frozenset(described["scopes"]) if described["scopes"] is not None else None
    if described["kind"] == "human":
        return Human(described["id"], roles=roles, org=described["org"], scopes=scopes)
    return Agent(described["id"], roles=roles, org=described["org"], scopes=scopes or frozenset())


PRINCIPALS: Final = {name: principal(each) for name, each in DESCRIBED["principals"].items()}


def resolve(token: str, _facts: RequestFacts) -> Agent | Human | None:
    """A token is the name of its caller; `outage` stands for a store of tokens that is down."""
    if token == "outage":
        raise ConnectionError
    return PRINCIPALS.get(token)


def press() -> App:
    """Return the app."""
    return define_app_mcp(
        registry,
        name="press",
        version="7",
        include="exposed",
        tools={
            "seatReport": tool(
                "Seats in use", seat_report, policy="seats:read", destructive=False, visible_to=["editor"]
            )
        },
        resources=RESOURCES,
        prompts=PROMPTS,
        scopes=DESCRIBED["scopes"],
        roles=DESCRIBED["roles"],
        rate_limits=None,
        grants=[
            grant(role, permission)
            for role, permissions in DESCRIBED["grants"].items()
            for permission in permissions
        ],
        policies_dir=Path(__file__).with_name("policies"),
        instructions="Posts of a small press.",
        resolve_token=resolve,
        allowed_hosts=DESCRIBED["allowedHosts"],
        allowed_origins=DESCRIBED["allowedOrigins"],
        body_limit_bytes=DESCRIBED["bodyLimitBytes"],
    )
