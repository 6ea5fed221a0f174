"""The app behind the guards, and what its sites note: who ran, what was loaded, what was audited.

Knows no framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from nonsuch import (
    Agent,
    Human,
    Limits,
    Principal,
    Rate,
    Registry,
    SessionFacts,
    can,
    define_app_mcp,
    expose,
    grant,
)
from nonsuch.kernel.audit import Event


class Post(BaseModel):
    """What policies read of a post."""

    id: str
    org: str
    printed: bool = False


class PostId(BaseModel):
    """Which post."""

    id: str


class Price(BaseModel):
    """What it shall cost."""

    amount: int


HOSTS_OWN: Final = ("refused-by-host", "crash")  # posts whose views raise
POSTS: Final = {
    "mine": Post(id="mine", org="acme"),
    "theirs": Post(id="theirs", org="hq"),
    "printed": Post(id="printed", org="acme", printed=True),
    **{name: Post(id=name, org="acme") for name in HOSTS_OWN},
}
CALLERS: Final[Mapping[str, Principal]] = {
    "ed": Agent("ed", roles={"editor"}, org="acme", scopes={"posts"}),
    "scopeless": Agent("sc", roles={"editor"}, org="acme"),
    "reader": Agent("re", roles={"reader"}, org="acme", scopes={"posts"}),
    "nobody": Agent("no", org="acme", scopes={"posts"}),
    "human": Human("hu", roles={"editor"}, org="acme"),
    "hasty": Agent("ha", roles={"editor"}, org="acme", scopes={"posts"}),
}
RAN: Final[list[str]] = []
LOADED: Final[list[str]] = []
EVENTS: Final[list[Event]] = []

registry: Final = Registry()
_SHOWN: Final = expose("x", visible_to=["editor", "reader"])


def load(input: PostId) -> Post | None:
    """Load for the app's own path."""
    return POSTS.get(input.id)


@registry.action(policy=can("post:publish", resource=load), mcp=_SHOWN, path="publish")
def publish(input: PostId) -> None:
    """Do nothing: the views do the work."""


@registry.action(policy=can("post:price"), mcp=_SHOWN, path="price")
def price(input: Price) -> None:
    """Do nothing."""


def session(facts: SessionFacts) -> Principal | None:
    """A cookie is the name of its caller."""
    return CALLERS.get(facts.cookies.get("session", ""))


mcp: Final = define_app_mcp(
    registry,
    name="guarded",
    include="exposed",
    policies_dir=Path(__file__).parent / "policies",
    grants=[grant("editor", "post:price")],
    scopes={"posts": ["publish", "price"]},
    roles=["editor", "reader"],
    resolve_token=CALLERS.get,
    resolve_principal=session,
    on_audit=EVENTS.append,
    rate_limits=Limits(write=Rate(120), unauthenticated=Rate(1_000)),
)


def found(post: str) -> Post | None:
    """Load for a view."""
    LOADED.append(post)
    return POSTS.get(post)


def published(post: Post, who: Principal) -> str:
    """Do the work of a view."""
    RAN.append(f"{who.id} {post.id}")
    if post.id == "crash":
        raise ZeroDivisionError
    return f"{who.id} published {post.id}"


def priced(amount: int) -> str:
    """Do the work of another view."""
    RAN.append(f"price {amount}")
    return f"priced {amount}"
