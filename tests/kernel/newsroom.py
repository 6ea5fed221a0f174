"""The one app that every directory of ``tests/vectors/policies`` is booted with, and what boot says of it.

``python -m tests.kernel.newsroom DIRECTORY`` prints that as JSON, in a process that may die of it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel

from nonsuch import App, BootError, Ref, Registry, can, define_app_mcp, expose
from nonsuch.kernel.errors import Fault


class Line(BaseModel):
    words: int = 0
    rate: Decimal = Decimal(0)


class Ask(BaseModel):
    postId: str
    size: int = 0
    note: str | None = None
    price: float = 0.0
    due: date | None = None
    line: Line = Line()


class Post(BaseModel):
    id: str
    org: str
    author: str
    published: bool = False
    rating: float = 0.0
    editor: Annotated[str, Ref("Human")] = "ed"


def find(input: Ask) -> Post | None:
    return Post(id=input.postId, org="acme", author="ann") if input.postId else None


def publish(input: Ask) -> str:
    return "published"


def erase(input: Ask) -> str:
    return "erased"


def report() -> str:
    return "reported"


def newsroom(policies: Path, **given: Any) -> App:
    """Boot the app with the policies of a directory."""
    registry = Registry()
    registry.action(policy=can("post:publish", resource=find), mcp=expose("Publish"))(publish)
    registry.action(policy=can("post:erase", resource=find), mcp=expose("Erase"))(erase)
    registry.action(policy=can("org:administer"), mcp=expose("Report", visible_to=["admin"]))(report)
    settings: dict[str, Any] = {
        "roles": ["admin", "editor"],
        "scopes": {"posts:write": ["publish", "erase"], "org:admin": ["report"]},
        **given,
    }
    return define_app_mcp(registry, name="newsroom", include="exposed", policies_dir=policies, **settings)


def told(policies: Path) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
    """Return the faults of the app with these policies, and the warnings if there are none."""
    try:
        return (), newsroom(policies).kernel.warnings
    except BootError as refusal:
        return refusal.faults, ()


if __name__ == "__main__":
    print(json.dumps([[asdict(each) for each in part] for part in told(Path(sys.argv[1]))]))  # noqa: T201  (its answer)
