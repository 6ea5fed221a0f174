"""A keyed call through the gates, step by step: what is asked of the world, when, and by whom never."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from nonsuch import ActionError, Agent, App, Human, Principal, Registry, can, expose, grant
from nonsuch.adapters.edge.app import judge_from
from nonsuch.kernel.asks import Incapable, RoundEnded
from nonsuch.kernel.audit import ToolCall
from nonsuch.kernel.gates import Kernel
from nonsuch.kernel.idempotency import Kept
from nonsuch.kernel.model import (
    Call,
    Failed,
    Hidden,
    InputRequired,
    InvalidArguments,
    Issue,
    Ok,
    Outcome,
    PolicyDenied,
    ScopeDenied,
    Surface,
    Unfit,
)
from nonsuch.kernel.steps import (
    Answer,
    Audit,
    Load,
    Permit,
    Raised,
    Recall,
    Remember,
    Reserve,
    Reserved,
    Returned,
    Step,
    UnknownStep,
)
from nonsuch.kernel.strict_json import Json

from .trial import boot, folder

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)
EDITOR = Agent("ed", roles={"editor"}, org="acme", scopes={"posts"})


class Draft(BaseModel):
    postId: str
    size: int = 0


class Post(BaseModel):
    id: str
    org: str
    published: bool = False


class Published(BaseModel):
    id: str


def find(input: Draft) -> Post | None:
    raise AssertionError("the world answers, not this function")


def publish(input: Draft) -> Published:
    raise AssertionError("the world answers, not this function")


def must(input: Draft) -> Published:
    raise AssertionError("the world answers, not this function")


def write(input: Draft) -> Published:
    raise AssertionError("the world answers, not this function")


def press(at: Path) -> App:
    """Publishing is for editors, on drafts of their own organisation."""
    registry = Registry()
    rule = can("post:publish", resource=find)
    shown = expose("x", visible_to=["editor", "reader"])
    registry.action(policy=rule, mcp=shown, path="publish", idempotent=True)(publish)
    registry.action(policy=can("post:must"), mcp=shown, path="must", idempotent=True, requires_key=True)(must)
    registry.action(policy=can("post:write"), mcp=shown, path="write")(write)
    text = f"""
    permit (principal in Role::"editor", action in Action::"post:publish", resource)
    when {{ !resource.published && {ORG} }};
    """
    return boot(
        registry,
        policies_dir=folder(at, app=text),
        scopes={"posts": ["publish", "must", "write"]},
        grants=[grant("editor", "post:must"), grant("editor", "post:write")],
        roles=["editor", "reader"],
    )


ORG = "principal has org && resource.org == principal.org"


@dataclass
class Desk:
    """One store, one post and one handler, with a transcript."""

    app: App
    post: Post | None = field(default_factory=lambda: Post(id="p1", org="acme"))
    handled: Callable[[Permit], Answer] = lambda _: Returned(Published(id="p1"))
    failing: type[Step] | None = None
    kept: dict[str, Kept] = field(default_factory=dict[str, Kept])
    steps: list[Step] = field(default_factory=list[Step])
    audit: list[ToolCall] = field(default_factory=list[ToolCall])

    def call(
        self,
        who: Principal = EDITOR,
        key: str | None = "k",
        name: str = "publish",
        surface: Surface = "http",
        **arguments: Json,
    ) -> Outcome:
        """Make one call; its transcript alone is kept."""
        self.steps.clear()
        given: dict[str, Json] = {"postId": "p1", **arguments}
        if surface != "http" and key is not None:
            given["idempotencyKey"] = key
        call = Call(name, given, surface, key=key if surface == "http" else None)
        kernel = self.app.kernel
        steps = kernel.invoke(kernel.view_for(who), call)
        try:
            step = next(steps)
            while True:
                step = steps.send(self.answer(step))
        except StopIteration as done:
            outcome: Outcome = done.value
            return outcome

    def answer(self, step: Step) -> Answer:
        """Answer one step, as an edge does."""
        self.steps.append(step)
        if self.failing is not None and isinstance(step, self.failing):
            return Raised(ConnectionError())
        match step:
            case Recall(slot):
                return Returned(self.kept.get(slot))
            case Reserve(slot, digest, judged):
                held = self.kept.setdefault(slot, Kept(slot, digest, judged, NOON, NOON))
                return Returned(Reserved(held, held.outcome is None and held.judged is judged))
            case Remember(kept, None):
                del self.kept[kept.slot]
                return Returned(None)
            case Remember(kept, outcome):
                self.kept[kept.slot] = replace(kept, outcome=outcome)
                return Returned(None)
            case Load():
                return Returned(self.post)
            case Permit():
                return self.handled(step)
            case Audit(ToolCall() as event):
                self.audit.append(event)
                return Returned(None)
            case _:
                raise AssertionError(f"nobody expected {step}")

    @property
    def kinds(self) -> list[str]:
        """The steps of the last call, by name."""
        return [type(step).__name__ for step in self.steps]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(press(tmp_path))


RUN = ["Recall", "Load", "Reserve", "Permit", "Remember", "Audit"]
SURFACES: list[Surface] = ["http", "mcp", "agent"]

# once


@pytest.mark.parametrize("surface", SURFACES)
def test_a_keyed_call_is_recorded_before_it_runs_and_when_it_ended(desk: Desk, surface: Surface) -> None:
    assert desk.call(surface=surface) == Ok(b'{"id":"p1"}')
    assert desk.kinds == RUN
    permit = next(step for step in desk.steps if isinstance(step, Permit))
    assert permit.input == Draft(postId="p1")


@pytest.mark.parametrize("first", SURFACES)
@pytest.mark.parametrize("second", SURFACES)
def test_a_retry_is_answered_as_the_first_was_on_every_surface(
    desk: Desk, first: Surface, second: Surface
) -> None:
    desk.call(surface=first)
    desk.handled = lambda _: Returned(Published(id="other"))
    assert desk.call(surface=second) == Ok(b'{"id":"p1"}', replayed=True)
    assert desk.kinds == ["Recall", "Audit"]
    assert [each.replayed for each in desk.audit] == [None, True]
    assert {each.outcome for each in desk.audit} == {"ok"}


def test_a_call_without_a_key_is_not_recorded(desk: Desk) -> None:
    for _ in range(2):
        desk.call(key=None)
        assert desk.kinds == ["Load", "Permit", "Audit"]


@pytest.mark.parametrize(
    "error",
    [ActionError("X_GONE", "it is gone", "bring it back", "wait"), RuntimeError("the password is hunter2")],
)
def test_a_failure_is_an_answer_too(desk: Desk, error: Exception) -> None:
    desk.handled = lambda _: Raised(error)
    first = desk.call()
    assert isinstance(first, Failed)
    desk.handled = lambda _: Returned(Published(id="p1"))
    assert desk.call() == replace(first, replayed=True)
    assert desk.kinds == ["Recall", "Audit"]


def test_an_answer_that_its_declaration_does_not_know_is_a_failure_that_is_kept(desk: Desk) -> None:
    desk.handled = lambda _: Returned({"id": 7})
    assert isinstance(first := desk.call(), Failed)
    assert desk.call() == replace(first, replayed=True)


# other input, other callers


def test_other_input_under_the_key_is_a_conflict(desk: Desk) -> None:
    desk.call()
    others: list[dict[str, Any]] = [{"size": 1}, {"postId": "p2"}, {"size": 0}]
    for sent in others:
        told = desk.call(**sent)
        assert isinstance(told, Failed)
        assert told.code == "X_IDEMPOTENCY_CONFLICT"
        assert desk.kinds == ["Recall", "Audit"]
    assert desk.call(size=1, key="l") == Ok(b'{"id":"p1"}')


@pytest.mark.parametrize(
    "who",
    [
        Agent("ed2", roles={"editor"}, org="acme", scopes={"posts"}),
        Human("ed", roles={"editor"}, org="acme"),
        Human("ed", roles={"editor"}, org="acme").delegate("ed", scopes={"posts"}),
    ],
)
def test_a_key_is_its_callers_alone(desk: Desk, who: Principal) -> None:
    desk.call()
    desk.call(who)
    assert desk.kinds == RUN


def test_a_fresh_token_of_the_same_caller_is_the_same_caller(desk: Desk) -> None:
    desk.call()
    other = Agent("ed", roles={"editor", "reader"}, org="acme", scopes={"posts", "more"})
    assert desk.call(other) == Ok(b'{"id":"p1"}', replayed=True)


def test_a_key_is_its_actions_alone(desk: Desk) -> None:
    desk.call()
    desk.call(name="must")
    assert desk.kinds == ["Recall", "Reserve", "Permit", "Remember", "Audit"]


# who is refused leaves no trace and finds none


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("who", "kind"),
    [
        (Agent("ed", roles=set(), org="acme", scopes={"posts"}), Hidden),
        (Agent("ed", roles={"editor"}, org="acme"), ScopeDenied),
    ],
)
def test_what_is_hidden_or_out_of_scope_neither_reads_nor_writes_a_record(
    desk: Desk, surface: Surface, who: Agent, kind: type[Outcome]
) -> None:
    for _ in range(2):
        assert isinstance(desk.call(who, surface=surface), kind)
        assert desk.kinds == ["Audit"]
    desk.call()
    assert isinstance(desk.call(who, surface=surface), kind)
    assert desk.kinds == ["Audit"]


def test_wrong_arguments_neither_read_nor_write_a_record(desk: Desk) -> None:
    for _ in range(2):
        assert desk.call(size="x") == InvalidArguments((Issue("size", "must be of type integer"),))
        assert desk.kinds == ["Audit"]


@pytest.mark.parametrize("post", [None, Post(id="p1", org="hq"), Post(id="p1", org="acme", published=True)])
def test_a_denial_leaves_no_record(desk: Desk, post: Post | None) -> None:
    desk.post = post
    assert isinstance(desk.call(), PolicyDenied)
    assert desk.kinds == ["Recall", "Load", "Audit"]
    desk.post = Post(id="p1", org="acme")
    assert desk.call() == Ok(b'{"id":"p1"}')


# a replay is judged by today's policies, on the facts of then


def test_what_the_call_changed_does_not_refuse_its_retry(desk: Desk) -> None:
    desk.call()
    for post in (Post(id="p1", org="acme", published=True), Post(id="p1", org="hq"), None):
        desk.post = post
        assert desk.call() == Ok(b'{"id":"p1"}', replayed=True)
        assert isinstance(desk.call(key="other"), PolicyDenied)


def test_nobody_is_answered_whose_permission_is_gone(desk: Desk) -> None:
    desk.call()
    reader = Agent("ed", roles={"reader"}, org="acme", scopes={"posts"})
    denied = desk.call(reader, key=None)
    assert isinstance(denied, PolicyDenied)
    assert desk.call(reader) == denied
    assert desk.call(replace_org(EDITOR, "hq")) != Ok(b'{"id":"p1"}', replayed=True)
    assert desk.call() == Ok(b'{"id":"p1"}', replayed=True)


def replace_org(who: Agent, org: str) -> Agent:
    """The owner's organisation is a part of who it is: this is another caller."""
    return Agent(who.id, roles=who.roles, org=org, scopes=who.scopes)


def test_a_policy_that_is_new_judges_replays_too(desk: Desk, tmp_path: Path) -> None:
    desk.call()
    desk.call(name="must")
    stop = 'forbid (principal, action in Action::"post:publish", resource) when { resource.org == "acme" };'
    (tmp_path / "stop.cedar").write_text(stop)
    desk.app.kernel.swap(judge_from(desk.app.kernel.catalog, desk.app.sources())[0])
    assert isinstance(desk.call(), PolicyDenied)
    assert desk.call(name="must") == Ok(b'{"id":"p1"}', replayed=True)
    (tmp_path / "stop.cedar").unlink()
    desk.app.kernel.swap(judge_from(desk.app.kernel.catalog, desk.app.sources())[0])
    assert desk.call() == Ok(b'{"id":"p1"}', replayed=True)


def test_a_policy_reads_the_arguments_of_a_replay(desk: Desk, tmp_path: Path) -> None:
    desk.call(size=5)
    stop = 'forbid (principal, action == Action::"publish", resource) when { context.args.size > 4 };'
    (tmp_path / "stop.cedar").write_text(stop)
    desk.app.kernel.swap(judge_from(desk.app.kernel.catalog, desk.app.sources())[0])
    assert isinstance(desk.call(size=5), PolicyDenied)


def test_a_call_in_progress_is_not_told_to_whom_it_is_forbidden(desk: Desk) -> None:
    desk.handled = lambda _: Raised(KeyboardInterrupt())
    desk.call()
    reader = Agent("ed", roles={"reader"}, org="acme", scopes={"posts"})
    assert isinstance(desk.call(reader), PolicyDenied)
    assert code(desk.call()) == "X_IDEMPOTENCY_IN_PROGRESS"


# what has not ended


def code(outcome: Outcome) -> str | None:
    return outcome.code if isinstance(outcome, Failed) else None


def test_an_interrupted_call_is_never_run_again(desk: Desk) -> None:
    desk.handled = lambda _: Raised(KeyboardInterrupt())
    assert code(desk.call()) == "X_INTERRUPTED"
    assert desk.kinds == ["Recall", "Load", "Reserve", "Permit", "Audit"]
    for _ in range(2):
        assert code(desk.call()) == "X_IDEMPOTENCY_IN_PROGRESS"
        assert desk.kinds == ["Recall", "Audit"]


def test_two_that_pass_policy_at_once_run_once(desk: Desk) -> None:
    """The second one read no record, and finds one when it would begin its own."""
    inner: list[Outcome] = []

    def meanwhile(permit: Permit) -> Answer:
        other = Desk(desk.app, kept=desk.kept)
        inner.append(other.call())
        other.kept = {}
        return Returned(Published(id="p1"))

    desk.handled = meanwhile
    assert desk.call() == Ok(b'{"id":"p1"}')
    assert [code(each) for each in inner] == ["X_IDEMPOTENCY_IN_PROGRESS"]


@pytest.mark.parametrize("ended", [True, False])
def test_one_that_is_late_to_begin_is_answered_by_the_one_that_was_faster(desk: Desk, ended: bool) -> None:
    first = Desk(desk.app)
    first.call()
    (kept,) = first.kept.values()
    desk.steps.clear()
    kernel = desk.app.kernel
    steps = kernel.invoke(kernel.view_for(EDITOR), Call("publish", {"postId": "p1"}, "http", key="k"))
    assert isinstance(next(steps), Recall)
    assert isinstance(steps.send(Returned(None)), Load)
    assert isinstance(steps.send(Returned(Post(id="p1", org="acme"))), Reserve)
    found = kept if ended else replace(kept, outcome=None)
    assert isinstance(steps.send(Returned(Reserved(found, False))), Audit)
    with pytest.raises(StopIteration) as done:
        steps.send(Returned(None))
    if ended:
        assert done.value.value == Ok(b'{"id":"p1"}', replayed=True)
    else:
        assert code(done.value.value) == "X_IDEMPOTENCY_IN_PROGRESS"


@pytest.mark.parametrize(
    ("error", "kind"), [(RoundEnded({}, {"step": 1}), InputRequired), (Incapable(("sampling",)), Unfit)]
)
def test_a_call_that_asks_its_client_first_goes_on_in_its_next_round(
    desk: Desk, error: Exception, kind: type[Outcome]
) -> None:
    desk.handled = lambda _: Raised(error)
    assert isinstance(desk.call(), kind)
    assert desk.kinds == RUN
    assert desk.kept == {}
    desk.handled = lambda _: Returned(Published(id="p1"))
    assert desk.call() == Ok(b'{"id":"p1"}')
    assert desk.kinds == RUN


def test_a_handler_that_nobody_ran_is_not_recorded(desk: Desk) -> None:
    desk.handled = lambda _: Raised(UnknownStep("Permit"))
    desk.call()
    assert desk.kept == {}


# a store that fails, or is none of ours


@pytest.mark.parametrize("step", [Recall, Reserve])
def test_nothing_runs_unrecorded(desk: Desk, step: type[Step]) -> None:
    desk.failing = step
    assert code(desk.call()) == "X_IDEMPOTENCY_STORE_FAILED"
    assert "Permit" not in desk.kinds
    assert isinstance(desk.call(key=None), Ok)


def test_an_answer_that_could_not_be_kept_is_given_once(desk: Desk) -> None:
    desk.failing = Remember
    assert desk.call() == Ok(b'{"id":"p1"}')
    desk.failing = None
    assert code(desk.call()) == "X_IDEMPOTENCY_IN_PROGRESS"


@pytest.mark.parametrize(
    "changed",
    [
        {"judged": b""},
        {"judged": b'["p1",{}]'},
        {"outcome": b"?"},
        {"judged": b'["p1","no entity"]'},
        {"judged": b'["p1",null]'},
    ],
)
def test_a_record_that_cannot_be_read_answers_nobody_and_runs_nothing(
    desk: Desk, changed: Mapping[str, Any]
) -> None:
    desk.call()
    for slot, kept in desk.kept.items():
        desk.kept[slot] = replace(kept, **changed)
    told = desk.call()
    assert not isinstance(told, Ok)
    assert desk.kinds == ["Recall", "Audit"]


def test_without_a_secret_no_keyed_call_runs(desk: Desk) -> None:
    kernel = desk.app.kernel
    bare = Kernel(kernel.catalog, kernel.judge)
    steps = bare.invoke(bare.view_for(EDITOR), Call("publish", {"postId": "p1"}, "http", key="k"))
    assert isinstance(next(steps), Audit)
    with pytest.raises(StopIteration) as done:
        steps.send(Returned(None))
    assert code(done.value.value) == "X_IDEMPOTENCY_STORE_FAILED"


# a key that is required


@pytest.mark.parametrize("surface", SURFACES)
def test_an_action_that_requires_a_key_does_not_run_without_one(desk: Desk, surface: Surface) -> None:
    assert code(desk.call(key=None, name="must", surface=surface)) == "X_IDEMPOTENCY_KEY_REQUIRED"
    assert desk.kinds == ["Audit"]
    assert isinstance(desk.call(name="must", surface=surface), Ok)


@pytest.mark.parametrize("surface", SURFACES)
def test_an_action_that_is_not_idempotent_refuses_a_key(desk: Desk, surface: Surface) -> None:
    refused = InvalidArguments((Issue("idempotencyKey", "not an argument"),))
    assert desk.call(name="write", surface=surface) == refused
    assert isinstance(desk.call(name="write", surface=surface, key=None), Ok)


@pytest.mark.parametrize("surface", ["mcp", "agent"])
def test_a_key_is_told_among_everything_else_that_is_wrong(desk: Desk, surface: Surface) -> None:
    told = desk.call(key="", surface=surface, size="x")
    assert isinstance(told, InvalidArguments)
    assert {each.path for each in told.issues} == {"idempotencyKey", "size"}
