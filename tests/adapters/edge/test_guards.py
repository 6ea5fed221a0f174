"""A guard before a view that the app does not route: the same judge, the same problem, the same audit."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from nonsuch import (
    Agent,
    Allowed,
    App,
    BootError,
    Human,
    Principal,
    Refused,
    Registry,
    asgi,
    can,
    expose,
    grant,
    guard,
    tool,
)
from nonsuch.adapters.wire import Reply
from nonsuch.kernel.audit import AuthRefused, Event, ToolCall

from ...kernel.trial import boot, folder, unchecked

POLICIES = """
permit (principal in Role::"editor", action in Action::"post:publish", resource)
when { principal has org && resource.org == principal.org };
@code("X_POST_PRINTED") @reason("the post is being printed") @fix("wait a minute")
forbid (principal, action in Action::"post:publish", resource) when { resource.printed };
forbid (principal, action == Action::"price", resource) when { context.args.amount > 100 };
"""


class Post(BaseModel):
    id: str
    org: str
    printed: bool = False


class Other(BaseModel):
    id: str


class PostId(BaseModel):
    id: str


class Price(BaseModel):
    amount: int = Field(ge=0)

    @field_validator("amount")
    @classmethod
    def _judge(cls, amount: int) -> int:
        if amount == 13:
            raise KeyError
        return amount


POSTS = {
    "mine": Post(id="mine", org="acme"),
    "theirs": Post(id="theirs", org="hq"),
    "printed": Post(id="printed", org="acme", printed=True),
}
CALLERS: dict[str, Principal] = {
    "ed": Agent("ed", roles={"editor"}, org="acme", scopes={"posts"}),
    "scopeless": Agent("sc", roles={"editor"}, org="acme"),
    "reader": Agent("re", roles={"reader"}, org="acme", scopes={"posts"}),
    "nobody": Agent("no", org="acme", scopes={"posts"}),
    "human": Human("hu", roles={"editor"}, org="acme"),
}


def load(input: PostId) -> Post | None:
    return POSTS.get(input.id)


@dataclass
class Desk:
    """The app, and what its audit heard."""

    at: Path
    events: list[Event] = field(default_factory=list[Event])
    app: App = field(init=False)

    def __post_init__(self) -> None:
        registry = Registry()
        shown = expose("x", visible_to=["editor", "reader"])

        @registry.action(policy=can("post:publish", resource=load), mcp=shown, path="publish")
        def publish(input: PostId) -> None: ...  # pyright: ignore[reportUnusedFunction]

        @registry.action(policy=can("post:price"), mcp=shown, path="price")
        def price(input: Price) -> None: ...  # pyright: ignore[reportUnusedFunction]

        @registry.action(policy=can("post:tidy"), path="tidy")
        def tidy() -> None: ...  # pyright: ignore[reportUnusedFunction]

        @registry.query(policy=can("post:tidy"), path="tidied")
        def tidied() -> None: ...  # pyright: ignore[reportUnusedFunction]

        self.app = boot(
            registry,
            policies_dir=folder(self.at, app=POLICIES),
            grants=[grant("editor", "post:price"), grant("editor", "post:tidy")],
            scopes={"posts": ["publish", "price", "tidy", "tidied"]},
            roles=["editor", "reader"],
            resolve_token=CALLERS.get,
            on_audit=self.events.append,
        )
        self.client = TestClient(asgi(self.app), "http://localhost")

    def over_http(self, who: str, path: str, body: object) -> Reply | None:
        """What the app's own path answers, as a reply; nothing for a success."""
        answer = self.client.post(f"/api/{path}", json=body, headers={"authorization": f"Bearer {who}"})
        if answer.status_code == 200:
            return None
        challenge = answer.headers.get("www-authenticate")
        headers = () if challenge is None else (("www-authenticate", challenge),)
        return Reply(answer.status_code, answer.content, headers, "application/problem+json")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# one decision


@pytest.mark.parametrize("post", ["mine", "theirs", "printed", "missing"])
@pytest.mark.parametrize("who", CALLERS)
@pytest.mark.parametrize("name", ["post:publish", "publish"])
def test_a_guard_refuses_as_the_apps_own_path_does(desk: Desk, name: str, who: str, post: str) -> None:
    """And lets through what that lets through: its handler does nothing."""
    theirs = desk.over_http(who, "publish", {"id": post})
    heard = [each for each in desk.events if isinstance(each, ToolCall)]
    desk.events.clear()
    assert guard(desk.app, name).check(CALLERS[who], POSTS.get(post)) == theirs
    assert desk.events == heard
    assert len(desk.events) == 1


def test_the_operator_reads_that_a_hidden_action_without_a_path_was_declared() -> None:
    def tidy() -> None: ...

    heard: list[Event] = []
    hidden = tool("x", tidy, policy="post:tidy", visible_to=["editor"])
    app = boot(
        Registry(), tools={"tidy": hidden}, grants=[grant("editor", "post:tidy")], on_audit=heard.append
    )
    guard(app, "post:tidy").check(Agent("re"))
    (event,) = heard
    assert isinstance(event, ToolCall)
    assert (event.tool, event.outcome, event.declared) == ("tidy", "hidden", True)


@pytest.mark.parametrize("who", CALLERS)
@pytest.mark.parametrize("amount", [5, 500, -1, "x"])
def test_a_policy_reads_the_arguments_that_are_given(desk: Desk, who: str, amount: object) -> None:
    theirs = desk.over_http(who, "price", {"amount": amount})
    mine = guard(desk.app, "price").check(CALLERS[who], arguments={"amount": amount})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    assert mine == theirs


def test_a_policy_that_reads_arguments_denies_without_any(desk: Desk) -> None:
    reply = guard(desk.app, "price").check(CALLERS["ed"])
    assert reply is not None
    assert reply.status == 403
    (event,) = desk.events
    assert isinstance(event, ToolCall)
    assert (event.outcome, event.policies) == ("policy-error", ("<arguments>",))


def test_arguments_that_no_policy_reads_need_not_be_given(desk: Desk) -> None:
    assert guard(desk.app, "publish").check(CALLERS["ed"], POSTS["mine"]) is None


def test_arguments_that_a_validator_breaks_on_are_our_trouble(desk: Desk) -> None:
    reply = guard(desk.app, "price").check(CALLERS["ed"], arguments={"amount": 13})
    assert reply is not None
    assert reply.status == 500


@pytest.mark.parametrize(
    "facts", [Other(id="mine"), "mine", {"id": "mine"}, unchecked(Post, id=7, org="acme")]
)
def test_what_is_no_such_resource_is_never_judged_as_one(desk: Desk, facts: object) -> None:
    reply = guard(desk.app, "publish").check(CALLERS["ed"], facts)
    assert reply is not None
    assert reply.status == 500


@pytest.mark.parametrize("who", [None, "ed", 7, object()])
def test_who_is_nobody_is_asked_to_say_who_they_are(desk: Desk, who: Any) -> None:
    reply = guard(desk.app, "publish").check(who, POSTS["mine"])
    assert reply is not None
    assert (reply.status, json.loads(reply.body)["code"]) == (401, "X_UNAUTHENTICATED")
    assert dict(reply.headers)["www-authenticate"].startswith("Bearer ")
    assert desk.events == [AuthRefused("no-token", 401, None, "")]


def test_require_raises_what_check_returns(desk: Desk) -> None:
    guarded = guard(desk.app, "publish")
    assert guarded.require(CALLERS["ed"], POSTS["mine"]) == Allowed(CALLERS["ed"], POSTS["mine"])
    with pytest.raises(Refused) as refused:
        guarded.require(CALLERS["ed"], POSTS["theirs"])
    assert refused.value.reply == guarded.check(CALLERS["ed"], POSTS["theirs"])


@pytest.mark.parametrize("name", ["post:none", "nothing", "post:tidy", "", "any"])
def test_a_guard_names_one_action(desk: Desk, name: str) -> None:
    with pytest.raises(BootError) as refused:
        guard(desk.app, name)
    assert [each.code for each in refused.value.faults] == ["X_DECLARATION_INVALID"]


# views


def views(desk: Desk, answer: Any = None) -> tuple[Any, Any]:
    """A plain view and an async one, and what both were called with."""

    def who(name: str, post: str) -> Principal:
        return CALLERS[name]

    def post_now(name: str, post: str) -> Post | None:
        return POSTS.get(post)

    async def post_later(name: str, post: str) -> Post | None:
        await asyncio.sleep(0)
        return POSTS.get(post)

    @guard(desk.app, "post:publish", principal=who, resource=post_now, answer=answer)
    def plain(name: str, post: str) -> str:
        return f"{name} published {post}"

    @guard(desk.app, "post:publish", principal=who, resource=post_later, answer=answer)
    async def later(name: str, post: str) -> str:
        return f"{name} published {post}"

    return plain, later


def test_a_view_runs_for_whom_the_judge_permits(desk: Desk) -> None:
    plain, later = views(desk)
    assert plain("ed", post="mine") == asyncio.run(later("ed", post="mine")) == "ed published mine"
    assert (plain.__name__, later.__name__) == ("plain", "later")
    assert inspect.iscoroutinefunction(later)


def test_a_view_does_not_run_for_anybody_else(desk: Desk) -> None:
    plain, later = views(desk)
    for name, post in (("ed", "theirs"), ("reader", "mine"), ("nobody", "mine")):
        with pytest.raises(Refused):
            plain(name, post)
        with pytest.raises(Refused):
            asyncio.run(later(name, post))


def test_nothing_is_loaded_for_who_may_not_act_at_all(desk: Desk) -> None:
    """Hidden, out of scope, nobody: nothing else is asked for, and one line is said."""
    asked: list[str] = []

    def who(name: str) -> Principal | None:
        return CALLERS.get(name)

    def noted(name: str) -> Post:
        asked.append(name)
        return POSTS["mine"]

    @guard(desk.app, "post:publish", principal=who, resource=noted, arguments=noted)
    def publish(name: str) -> None: ...

    for name, status in (("scopeless", 403), ("nobody", 404), ("stranger", 401)):
        desk.events.clear()
        with pytest.raises(Refused) as refused:
            publish(name)
        assert (refused.value.reply.status, asked, len(desk.events)) == (status, [], 1)


def test_a_view_that_asks_for_it_is_given_what_was_judged(desk: Desk) -> None:
    @guard(desk.app, "post:publish", principal=lambda: CALLERS["ed"], resource=lambda: POSTS["mine"])
    def plain(*, allowed: Allowed) -> Allowed:
        return allowed

    @guard(desk.app, "post:publish", principal=lambda: CALLERS["ed"], resource=lambda: POSTS["mine"])
    async def later(*, allowed: Allowed) -> Allowed:
        return allowed

    call: Any = plain
    wait: Any = later
    assert call() == asyncio.run(wait()) == Allowed(CALLERS["ed"], POSTS["mine"])
    spoofed = Allowed(CALLERS["ed"], POSTS["theirs"])
    with pytest.raises(TypeError):
        call(allowed=spoofed)
    waiting = wait(allowed=spoofed)
    with pytest.raises(TypeError):
        asyncio.run(waiting)


@pytest.mark.parametrize("asked", ["principal", "resource", "arguments"])
def test_a_plain_view_cannot_wait(desk: Desk, asked: str) -> None:
    """What it would be given is no resource but a coroutine: told when the view is declared."""

    async def waits() -> None: ...

    def view() -> None: ...

    late: dict[str, Any] = {asked: waits}
    with pytest.raises(BootError) as refused:
        guard(desk.app, "post:publish", **late)(view)
    assert [each.code for each in refused.value.faults] == ["X_DECLARATION_INVALID"]


def test_a_framework_that_wants_a_value_gets_one(desk: Desk) -> None:
    def status(reply: Reply) -> int:
        return reply.status

    plain, later = views(desk, answer=status)
    assert plain("ed", "theirs") == asyncio.run(later("ed", "theirs")) == 403


def test_what_a_view_is_asked_about_may_raise_its_own(desk: Desk) -> None:
    plain, _ = views(desk)
    with pytest.raises(KeyError):
        plain("stranger", "mine")


def test_inside_a_framework_the_answer_is_the_apps_own(desk: Desk) -> None:
    """Starlette: by a decorator, and in the middle of a view."""

    async def signed_in(request: Request) -> Principal | None:
        return CALLERS.get(request.headers.get("x-user", ""))

    async def asked_for(request: Request) -> Post | None:
        return POSTS.get(request.path_params["post"])

    @guard(desk.app, "post:publish", principal=signed_in, resource=asked_for)
    async def publish(request: Request) -> Response:
        return JSONResponse("published")

    def tidy(request: Request) -> Response:
        guard(desk.app, "tidy").require(CALLERS.get(request.headers.get("x-user", "")))
        return JSONResponse("tidied")

    def refused(_: Request, fault: Exception) -> Response:
        assert isinstance(fault, Refused)
        return Response(fault.reply.body, fault.reply.status, dict(fault.reply.all_headers()))

    site = TestClient(
        Starlette(
            routes=[Route("/posts/{post}", publish, methods=["POST"]), Route("/tidy", tidy)],
            exception_handlers={Refused: refused},
        )
    )
    assert site.post("/posts/mine", headers={"x-user": "ed"}).json() == "published"
    assert site.get("/tidy", headers={"x-user": "ed"}).json() == "tidied"
    assert site.get("/tidy", headers={"x-user": "reader"}).status_code == 403
    for who, post in (
        ("ed", "theirs"),
        ("ed", "printed"),
        ("scopeless", "mine"),
        ("nobody", "mine"),
        ("", "mine"),
    ):
        mine = site.post(f"/posts/{post}", headers={"x-user": who})
        own = desk.client.post("/api/publish", json={"id": post}, headers=bearer(who))
        assert (mine.status_code, mine.content, headers(mine)) == (own.status_code, own.content, headers(own))


def bearer(who: str) -> dict[str, str]:
    return {"authorization": f"Bearer {who}"} if who else {}


def headers(answer: Any) -> Mapping[str, str]:
    return {name: value for name, value in answer.headers.items() if name != "server"}
