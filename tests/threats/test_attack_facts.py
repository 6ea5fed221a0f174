"""Facts that change after the decision, and answers that tell a missing resource from a foreign one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from nonsuch import ActionError, Agent, App, Context, OpenSync, Principal, Registry, can, expose, grant
from nonsuch.kernel.audit import Event, ToolCall
from nonsuch.kernel.model import Ok, Outcome, PolicyDenied

from ..adapters.mcp.wire import Answer, Request, in_process
from ..kernel.trial import boot, folder

ACTION: Final = 'action in Action::"post:edit"'
OWN: Final = (
    f'@id("own") permit (principal, {ACTION}, resource) '
    "when { resource has owner && resource.owner == principal.id };\n"
)
VERA: Final = Agent("vera", roles={"editor"})
SECRET: Final = "s3ntinel"
HEADERS: Final = (
    ("Host", "localhost"),
    ("Authorization", "Bearer vera"),
    ("Content-Type", "application/json"),
    ("MCP-Protocol-Version", "2025-11-25"),
)


def vera(_token: str) -> Principal:
    return VERA


class Ask(BaseModel):
    post: str
    words: list[str] = []


class Post(BaseModel):
    id: str
    owner: str | None = None
    readers: list[str] = []


class Seen(BaseModel):
    post: str
    words: list[str]
    owner: str | None
    readers: list[str]


@dataclass
class Shelf:
    """Rows that everybody shares, and two hooks where an application may misbehave."""

    rows: dict[str, Post]
    on_load: Callable[[Ask], object] = id
    on_handle: Callable[[dict[str, Post]], object] = id
    events: list[Event] = field(default_factory=list[Event])

    def app(self, policies: Path, **given: Any) -> App:
        registry = Registry()

        def find(input: Ask) -> Post | None:
            row = self.rows.get(input.post)
            self.on_load(input)
            return row

        def edit(input: Ask, ctx: Context[None]) -> Seen:
            self.on_handle(self.rows)
            post = ctx.resource
            return Seen(post=input.post, words=input.words, owner=post.owner, readers=post.readers)

        registry.action(policy=can("post:edit", resource=find), mcp=expose("Edit"))(edit)
        settings: dict[str, Any] = {"roles": ["editor"], "resolve_token": vera, **given}
        return boot(registry, policies_dir=policies, on_audit=self.events.append, **settings)


def shelf() -> Shelf:
    return Shelf({"hers": Post(id="hers", owner="vera", readers=["vera"]), "his": Post(id="his", owner="bo")})


def edited(app: App, post: str = "hers", *words: str) -> Outcome:
    with OpenSync(app) as running:
        return running.invoke(VERA, "edit", {"post": post, "words": list(words)})


def saw(outcome: Outcome) -> Any:
    assert isinstance(outcome, Ok), outcome
    return outcome.value


# what is judged is what is handled


def test_a_loader_that_changes_its_input_changes_nothing_for_the_handler(tmp_path: Path) -> None:
    def change(input: Ask) -> None:
        input.post = "his"
        input.words.append(SECRET)

    shared = shelf()
    shared.on_load = change
    told = saw(edited(shared.app(folder(tmp_path, own=OWN)), "hers", "a"))
    assert told == {"post": "hers", "words": ["a"], "owner": "vera", "readers": ["vera"]}


def test_a_loader_that_changes_its_input_changes_nothing_for_the_policy(tmp_path: Path) -> None:
    """The policy decides on the post that was sent, and the handler edits that one and no other."""
    forbid = f'@id("no") forbid (principal, {ACTION}, resource) when {{ context.args.post == "his" }};\n'
    permit = f'@id("all") permit (principal, {ACTION}, resource);\n'

    def change(input: Ask) -> None:
        input.post = {"hers": "his", "his": "hers"}[input.post]

    shared = shelf()
    shared.on_load = change
    app = shared.app(folder(tmp_path, own=forbid + permit))
    assert saw(edited(app, "hers"))["post"] == "hers"
    outcome = edited(app, "his")
    assert isinstance(outcome, PolicyDenied)
    assert outcome.policies == ("no",)


def test_a_row_that_changes_after_the_decision_is_not_what_the_handler_gets(tmp_path: Path) -> None:
    def change(rows: dict[str, Post]) -> None:
        rows["hers"].owner = "bo"
        rows["hers"].readers.append("bo")

    shared = shelf()
    shared.on_handle = change
    told = saw(edited(shared.app(folder(tmp_path, own=OWN))))
    assert (told["owner"], told["readers"]) == ("vera", ["vera"])
    assert shared.rows["hers"].owner == "bo"


class Held(BaseModel):
    """A row with what cannot be copied, as rows of some mappers have."""

    id: str
    lock: Any = None


def test_a_row_that_cannot_be_copied_is_answered_and_audited() -> None:
    events: list[Event] = []
    registry = Registry()

    def find(input: Ask) -> Held | None:
        return Held(id=input.post, lock=threading.Lock())

    def edit(input: Ask) -> None:
        return None

    registry.action(policy=can("post:edit", resource=find), mcp=expose("Edit"))(edit)
    grants = [grant("editor", "post:edit")]
    app = boot(registry, grants=grants, resolve_token=vera, on_audit=events.append)
    answer = asked(app, "/api/edit", "hers")
    assert answer.status in (200, 500)
    assert [type(each) for each in events] == [ToolCall]


# missing and foreign


def asked(app: App, path: str, post: str) -> Answer:
    arguments = {"post": post}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    body = arguments if path != "/mcp" else {**call, "params": {"name": "edit", "arguments": arguments}}
    return in_process(app, Request("POST", path, HEADERS, json.dumps(body).encode()))


REASON: Final = '@reason("the press is closed") @code("X_CLOSED") '
ORACLES: Final = {
    "a reasoned forbid that reads no resource": (
        OWN + f'@id("closed") {REASON} forbid (principal in Role::"editor", {ACTION}, resource);\n'
    ),
    "a reasoned forbid that reads an argument": (
        OWN + f'@id("closed") {REASON} forbid (principal, {ACTION}, resource) '
        'when { context.args.post like "*i*" };\n'
    ),
    "a permit of what has no owner": (
        f'@id("free") permit (principal, {ACTION}, resource) when {{ !(resource has owner) }};\n'
    ),
    "a permit unless it has an owner": (
        f'@id("free") permit (principal, {ACTION}, resource) unless {{ resource has owner }};\n'
    ),
    "a permit beside a forbid of what has no owner": (
        OWN + f'@id("no") forbid (principal, {ACTION}, resource) unless {{ resource has owner }};\n'
    ),
    "no policy": "",
}


@pytest.mark.parametrize("path", ["/api/edit", "/mcp"])
@pytest.mark.parametrize("name", ORACLES)
def test_a_missing_resource_answers_with_the_bytes_of_a_foreign_one(
    name: str, path: str, tmp_path: Path
) -> None:
    app = shelf().app(folder(tmp_path, own=ORACLES[name]))
    foreign, missing = asked(app, path, "his"), asked(app, path, "hiss")
    assert foreign == missing
    assert foreign.status == (403 if path != "/mcp" else 200)
    assert (b"the press is closed" in foreign.body) == ("reasoned" in name)


@pytest.mark.parametrize("path", ["/api/edit", "/mcp"])
def test_a_loaders_application_error_is_not_told(path: str, tmp_path: Path) -> None:
    """No policy was asked yet: its words would tell anybody what is in a row."""

    def refuse(input: Ask) -> None:
        raise ActionError("X_LOCKED", f"locked by {SECRET}", f"ask {SECRET}", f"ask {SECRET}")

    shared = shelf()
    shared.on_load = refuse
    answer = asked(shared.app(folder(tmp_path, own=OWN)), path, "his")
    assert b"X_INTERNAL" in answer.body
    for word in (b"X_LOCKED", SECRET.encode()):
        assert word not in answer.body
    surface: Any = "mcp" if path == "/mcp" else "http"
    assert shared.events == [ToolCall("edit", "failed", surface, "vera", "agent", code="X_INTERNAL")]
