"""The gates in their one order, between neighbours that permit, forbid or err; then the handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel, field_validator

from nonsuch import ActionError, Agent, App, Context, Human, Principal, Registry, audience, can, expose, grant
from nonsuch.kernel.audit import ToolCall, tool_call
from nonsuch.kernel.cedar import Decision
from nonsuch.kernel.errors import refusal
from nonsuch.kernel.judge import Judge
from nonsuch.kernel.model import (
    Call,
    Failed,
    Hidden,
    InvalidArguments,
    Issue,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    ScopeDenied,
)
from nonsuch.kernel.schema import InputSchema, OutputSchema
from nonsuch.kernel.steps import Answer, Audit, Load, Permit, Raised, Returned, Step, UnknownStep
from nonsuch.kernel.strict_json import Json

from .trial import EDITOR, NOBODY, Spy, boot, called, drive, everyone, folder, unchecked

SENTINEL = "s3ntinel"


class Ask(BaseModel):
    postId: str
    size: int = 0

    @field_validator("postId")
    @classmethod
    def _judge(cls, ident: str) -> str:
        if ident == "broken":
            raise KeyError(SENTINEL)
        return ident


class Post(BaseModel):
    id: str
    org: str


class PinnedPost(Post):
    password: str = SENTINEL


class Published(BaseModel):
    id: str


def find(input: Ask, ctx: Context[None]) -> Post | None:
    raise AssertionError("the world answers, not this function")


def publish(input: Ask, ctx: Context[None]) -> Published:
    raise AssertionError("the world answers, not this function")


def one_post(input: Ask) -> Published | None:
    raise AssertionError("the world answers, not this function")


def report() -> str:
    raise AssertionError("the world answers, not this function")


POST = Post(id="1", org="acme")
ARGUMENTS: Mapping[str, Json] = {"postId": "1"}
EVERYTHING = [grant("editor", "any")]
FORBIDDEN = PolicyDenied(
    "X_FORBIDDEN",
    "no policy permits `post:publish` here",
    "grant the permission to one of the principal's roles, or change the policy that refused",
    "ask the account owner for the permission `post:publish`, or name one that you may act on",
)


def press(at: Path | None = None, policies: str = "", visible_to: Any = None, **given: Any) -> App:
    registry = Registry()
    face = expose("Publish", visible_to=visible_to)
    registry.action(policy=can("post:publish", resource=find), mcp=face)(publish)
    registry.query(policy=can("post:read"), mcp=expose("Read"), single=True)(one_post)
    registry.action(policy=can("org:administer"), mcp=expose("Report"))(report)
    if at is not None:
        given["policies_dir"] = folder(at, own=policies)
    return boot(registry, **{"grants": EVERYTHING, "scopes": None, **given})


def world(post: object = POST, answer: object = None) -> Spy:
    made = Published(id="1") if answer is None else answer
    return Spy(lambda _: Returned(post), lambda _: Returned(made))


def raising(error: BaseException) -> Callable[[Any], Answer]:
    return lambda _: Raised(error)


def failed(code: str) -> Failed:
    causes = {
        "X_INTERNAL": (
            "the action did not succeed",
            "read the server's log at the time of the call",
            "try again later, or tell the app's developer",
        ),
        "X_NOT_FOUND": (
            "nothing answers to that input",
            "check the id that was sent",
            "check the id that was sent",
        ),
        "X_INTERRUPTED": (
            "the call was interrupted, and what it began may still take effect",
            "read the state before calling again",
            "read the state before calling again",
        ),
        "X_OUTPUT_INVALID": (
            "the handler's answer does not satisfy its declared output",
            "return a value of the declared output type",
            "tell the app's developer",
        ),
    }
    return Failed(code, *causes[code])


def audited(spy: Spy) -> ToolCall:
    """The one event of a call, which is its last step."""
    events = [step.event for step in spy.transcript if isinstance(step, Audit)]
    assert len(events) == 1
    assert isinstance(spy.transcript[-1], Audit)
    (event,) = events
    assert isinstance(event, ToolCall)
    return event


# composition: each gate between neighbours that permit, forbid or err


VERDICTS = {
    "permit": Decision(True, ("p",)),
    "forbid": Decision(False, ("q",)),
    "silence": Decision(False),
    "error": Decision(False, (), ("e",)),
}


def saying(verdict: str) -> Callable[..., Decision]:
    """A neighbour that is always of one mind."""

    def decide(*_: object) -> Decision:
        return VERDICTS[verdict]

    return decide


GATE_OF_SCOPE = {
    "permit": None,
    "forbid": ScopeDenied("s"),
    "silence": ScopeDenied("s"),
    "error": PolicyError(("e",)),
}
GATE_OF_ARGUMENTS = {"valid": None, "invalid": InvalidArguments((Issue("postId", "required"),))}
NOTED = PolicyDenied("X_OWN", "because", "do that", "do that", ("q",))
GATE_OF_POLICY = {"permit": None, "forbid": NOTED, "silence": FORBIDDEN, "error": PolicyError(("e",))}


@pytest.mark.parametrize(
    ("seen", "scope", "arguments", "policy"),
    list(product(("shown", "hidden"), GATE_OF_SCOPE, GATE_OF_ARGUMENTS, GATE_OF_POLICY)),
)
def test_the_first_gate_that_refuses_is_the_outcome(
    seen: str, scope: str, arguments: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = press(visible_to=[] if seen == "hidden" else None, scopes={"s": ["publish", "one_post", "report"]})
    judge = app.kernel.judge
    monkeypatch.setattr(judge, "presents", saying(scope))
    monkeypatch.setattr(judge, "permits", saying(policy))
    monkeypatch.setattr(judge, "annotations", {"q": {"code": "X_OWN", "reason": "because", "fix": "do that"}})
    spy = world()
    outcome = called(app, EDITOR, "publish", ARGUMENTS if arguments == "valid" else {}, spy)
    refusals = (
        Hidden("publish") if seen == "hidden" else None,
        GATE_OF_SCOPE[scope],
        GATE_OF_ARGUMENTS[arguments],
        GATE_OF_POLICY[policy],
    )
    assert outcome == next((each for each in refusals if each is not None), Ok(b'{"id":"1"}'))
    assert ("Permit" in spy.kinds) is (refusals == (None,) * 4)
    assert ("Load" in spy.kinds) is (refusals[:3] == (None,) * 3)
    audited(spy)


def test_the_gates_come_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    app = press(scopes={"s": ["publish", "one_post", "report"]})
    order: list[str] = []

    def spied(holder: object, name: str) -> None:
        inner = getattr(holder, name)

        def outer(*arguments: Any) -> Any:
            order.append(name)
            return inner(*arguments)

        monkeypatch.setattr(holder, name, outer)

    def step(kind: str, value: object) -> Callable[[Any], Answer]:
        def answer(_step: object) -> Answer:
            order.append(kind)
            return Returned(value)

        return answer

    for holder, name in (
        (app.kernel.judge, "visible"),
        (app.kernel.judge, "presents"),
        (app.kernel.judge, "context"),
        (app.kernel.judge, "permits"),
        (InputSchema, "parse"),
        (OutputSchema, "serialise"),
    ):
        spied(holder, name)
    inner_call = tool_call

    def audit(*arguments: Any) -> ToolCall:
        order.append("audit")
        return inner_call(*arguments)

    monkeypatch.setattr("nonsuch.kernel.gates.tool_call", audit)
    who = Agent("ed", roles={"editor"}, scopes={"s"})
    outcome = called(
        app, who, "publish", ARGUMENTS, Spy(step("Load", POST), step("Permit", Published(id="1")))
    )
    assert outcome == Ok(b'{"id":"1"}')
    assert order == [
        "visible",
        "presents",
        "parse",
        "context",
        "Load",
        "permits",
        "Permit",
        "serialise",
        "audit",
    ]


def test_an_allowed_call_asks_the_world_for_just_this() -> None:
    spy = world()
    assert called(press(), EDITOR, "publish", ARGUMENTS, spy) == Ok(b'{"id":"1"}')
    entry = next(each for each in press().kernel.catalog.entries if each.name == "publish")
    load, permit, audit = spy.transcript
    assert isinstance(load, Load)
    assert isinstance(permit, Permit)
    assert isinstance(audit, Audit)
    assert (load.loader.function, load.input, load.principal) == (find, Ask(postId="1"), EDITOR)
    assert (permit.entry.name, permit.input, permit.principal, permit.resource) == (
        entry.name,
        Ask(postId="1"),
        EDITOR,
        POST,
    )
    assert audit.event == ToolCall("publish", "ok", "agent", "ed", "agent")


def test_a_call_without_a_resource_loads_nothing() -> None:
    spy = world(answer="12 seats")
    assert called(press(), EDITOR, "report", {}, spy) == Ok(b'"12 seats"')
    assert spy.kinds == ["Permit", "Audit"]


def test_the_handler_gets_the_very_objects_that_were_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """An equal copy could be changed between the judgement and the handler."""
    app = press()
    judged: list[tuple[object, object]] = []
    context, permits = app.kernel.judge.context, app.kernel.judge.permits
    inputs: list[object] = []

    def seeing(entry: Any, given: Any) -> str:
        inputs.append(given)
        return context(entry, given)

    def asked(caller: Any, entry: Any, resource: Any, ident: str, text: str) -> Decision:
        judged.append((inputs[-1], resource))
        return permits(caller, entry, resource, ident, text)

    monkeypatch.setattr(app.kernel.judge, "context", seeing)
    monkeypatch.setattr(app.kernel.judge, "permits", asked)
    loaded = Post(id="1", org="acme")
    spy = world(loaded)
    called(app, EDITOR, "publish", ARGUMENTS, spy)
    load, permit = spy.transcript[:2]
    assert isinstance(load, Load)
    assert isinstance(permit, Permit)
    assert judged == [(permit.input, permit.resource)]
    assert permit.input is judged[0][0]
    assert permit.resource is judged[0][1]
    # what application code still holds, it can change: it holds copies
    assert load.input == permit.input
    assert load.input is not permit.input
    assert loaded == permit.resource
    assert loaded is not permit.resource


# visibility


def test_hidden_and_absent_are_one_value_and_one_trace() -> None:
    app = press(visible_to=["admin"])
    told: list[tuple[Outcome, list[str]]] = []
    for name in ("publish", "nothing"):
        for arguments in (ARGUMENTS, {}, {"postId": "broken"}):
            spy = Spy()
            outcome = called(app, NOBODY, name, arguments, spy)
            assert outcome == Hidden(name)
            assert audited(spy) == ToolCall(
                name, "hidden", "agent", "nobody", "agent", code="X_MCP_TOOL_UNKNOWN"
            )
            told.append((Hidden(""), spy.kinds))
    assert told == [(Hidden(""), ["Audit"])] * 6


def test_a_tool_whose_visibility_errs_is_hidden() -> None:
    app = press(visible_to=audience("9223372036854775807 + 1 > 0 || true"))
    assert called(app, EDITOR, "publish", ARGUMENTS) == Hidden("publish")


def test_the_audit_names_the_entry_and_not_the_path() -> None:
    spy = world()
    outcome = called(press(), EDITOR, "publish", ARGUMENTS, spy, "http")
    assert (outcome, audited(spy)) == (Ok(b'{"id":"1"}'), ToolCall("publish", "ok", "http", "ed", "agent"))


# arguments


def test_wrong_arguments_load_nothing() -> None:
    spy = Spy()
    outcome = called(press(), EDITOR, "publish", {"postId": 5, SENTINEL: 1}, spy)
    assert outcome == InvalidArguments(
        (Issue("postId", "must be of type string"), Issue(SENTINEL, "not an argument"))
    )
    assert spy.kinds == ["Audit"]
    assert SENTINEL not in repr(audited(spy))


def test_a_validator_that_breaks_is_an_outcome() -> None:
    spy = Spy()
    assert called(press(), EDITOR, "publish", {"postId": "broken"}, spy) == failed("X_INTERNAL")
    assert (spy.kinds, audited(spy).code) == (["Audit"], "X_INTERNAL")


def test_an_argument_that_a_policy_reads_and_cedar_cannot_hold(tmp_path: Path) -> None:
    policy = (
        '@id("p") forbid(principal, action == Action::"publish", resource) when { context.args.size > 1 };'
    )
    spy = world()
    outcome = called(press(tmp_path, policy), EDITOR, "publish", {"postId": "1", "size": 2**63}, spy)
    problem = "must be an integer of 64 bits, because a policy reads it"
    assert outcome == InvalidArguments((Issue("size", problem),))
    assert spy.kinds == ["Audit"]
    assert called(press(), EDITOR, "publish", {"postId": "1", "size": 2**63}, world()) == Ok(b'{"id":"1"}')


# the resource


OWN = """
@id("own") permit(principal, action in Action::"post:publish", resource)
when { principal has org && principal.org == resource.org };
"""


def test_a_missing_resource_and_a_foreign_one_are_one_answer(tmp_path: Path) -> None:
    app = press(tmp_path, OWN, grants=[])
    who = Agent("a", org="other")
    told = [called(app, who, "publish", ARGUMENTS, world(post)) for post in (None, POST)]
    assert told == [FORBIDDEN, FORBIDDEN]


def test_a_reason_that_only_a_foreign_resource_causes_tells_the_two_apart(tmp_path: Path) -> None:
    """A known limit, stated in decision 0007: such a policy must not carry a reason of its own."""
    policy = """
@id("theirs") @code("X_FOREIGN") @reason("the post is of another organisation") @fix("ask its owner")
forbid(principal, action in Action::"post:publish", resource)
unless { principal has org && principal.org == resource.org };
"""
    app = press(tmp_path, policy)
    who = Agent("a", roles={"editor"}, org="other")
    missing, foreign = (called(app, who, "publish", ARGUMENTS, world(post)) for post in (None, POST))
    theirs = "the post is of another organisation", "ask its owner", "ask its owner", ("theirs",)
    assert (missing, foreign) == (FORBIDDEN, PolicyDenied("X_FOREIGN", *theirs))


def test_a_missing_resource_is_told_to_whom_every_resource_is_permitted() -> None:
    spy = world(None)
    assert called(press(), EDITOR, "publish", ARGUMENTS, spy) == failed("X_NOT_FOUND")
    assert (spy.kinds, audited(spy).outcome) == (["Load", "Audit"], "failed")


@pytest.mark.parametrize("other", [Published(id="1"), "1", {"id": "1", "org": "acme"}, 5, False, [POST]])
def test_a_loader_that_returns_another_type_runs_nothing(other: object) -> None:
    spy = world(other)
    assert called(press(), EDITOR, "publish", ARGUMENTS, spy) == failed("X_INTERNAL")
    assert spy.kinds == ["Load", "Audit"]


def test_a_loader_may_return_a_subclass_and_only_declared_facts_are_judged(tmp_path: Path) -> None:
    app = press(tmp_path, OWN, grants=[])
    spy = world(PinnedPost(id="1", org="acme"))
    assert called(app, Agent("a", org="acme"), "publish", ARGUMENTS, spy) == Ok(b'{"id":"1"}')


@pytest.mark.parametrize(
    "post",
    [
        unchecked(Post, org="acme"),
        unchecked(Post, id="1"),
        unchecked(Post, id="1", org=5),
        unchecked(Post, id=5, org="acme"),
    ],
)
def test_facts_that_were_never_validated_run_nothing(post: Post) -> None:
    spy = world(post)
    outcome = called(press(), EDITOR, "publish", ARGUMENTS, spy)
    assert outcome in (PolicyError(("<resource>",)), failed("X_INTERNAL"))
    assert spy.kinds == ["Load", "Audit"]


def test_the_resource_is_judged_by_its_own_id_and_not_by_the_argument(tmp_path: Path) -> None:
    policy = '@id("p") permit(principal, action in Action::"any", resource == Post::"1");'
    app = press(tmp_path, policy, grants=[])
    assert called(app, NOBODY, "publish", {"postId": "2"}, world(POST)) == Ok(b'{"id":"1"}')
    other = Post(id="2", org="acme")
    assert called(app, NOBODY, "publish", {"postId": "1"}, world(other)) == FORBIDDEN


# the policy's own words


def test_a_forbid_speaks_in_its_own_words(tmp_path: Path) -> None:
    words = '@code("X_OWN") @reason("not today") @fix("wait")'
    policy = f'@id("q") {words} forbid(principal, action in Action::"any", resource);'
    spy = world()
    outcome = called(press(tmp_path, policy), EDITOR, "publish", ARGUMENTS, spy)
    assert outcome == PolicyDenied("X_OWN", "not today", "wait", "wait", ("q",))
    expected = ToolCall("publish", "policy-denied", "agent", "ed", "agent", code="X_OWN", policies=("q",))
    assert audited(spy) == expected


def test_a_forbid_without_words_is_told_in_ours(tmp_path: Path) -> None:
    policy = '@id("q") forbid(principal, action in Action::"any", resource);'
    outcome = called(press(tmp_path, policy), EDITOR, "publish", ARGUMENTS, world())
    assert outcome == PolicyDenied(
        FORBIDDEN.code, FORBIDDEN.cause, FORBIDDEN.fix, FORBIDDEN.caller_fix, ("q",)
    )


def test_a_denial_without_a_resource_asks_for_the_permission_only() -> None:
    outcome = called(press(), NOBODY, "report", {})
    assert isinstance(outcome, PolicyDenied)
    assert (outcome.cause, outcome.caller_fix) == (
        "no policy permits `org:administer` here",
        "ask the account owner for the permission `org:administer`",
    )


def test_a_policy_that_errs_denies_and_only_the_audit_says_which(tmp_path: Path) -> None:
    """The words of a permit that the engine would have followed are not told either."""
    condition = "9223372036854775807 + context.args.size > 0"
    head = 'forbid(principal, action == Action::"publish", resource)'
    policy = f'@id("q") @reason("s3ntinel") {head} when {{ {condition} }};'
    spy = world()
    outcome = called(press(tmp_path, policy), EDITOR, "publish", {"postId": "1", "size": 1}, spy)
    assert outcome == PolicyError(("q",))
    expected = ToolCall(
        "publish", "policy-error", "agent", "ed", "agent", code="X_FORBIDDEN", policies=("q",)
    )
    assert audited(spy) == expected


def test_an_error_is_told_in_the_words_of_a_denial(tmp_path: Path) -> None:
    """Whether a policy forbids or errs is for the operator to know."""
    head = 'forbid(principal, action == Action::"publish", resource)'
    policy = f'@id("q") {head} when {{ 9223372036854775807 + context.args.size > 0 }};'
    told = [
        refusal(
            called(press(tmp_path, policy), who, "publish", {"postId": "1", "size": 1}, world()),
            "t",
            "caller",
        )
        for who in (EDITOR, NOBODY)
    ]
    expected = refusal(FORBIDDEN, "t", "caller")
    assert told == [expected, expected]


# the handler and its answer


def test_an_application_error_is_told_in_its_own_words() -> None:
    spy = world()
    spy.handled = raising(ActionError("X_LATE", "too late", "raise the limit", "come earlier"))
    assert called(press(), EDITOR, "publish", ARGUMENTS, spy) == Failed(
        "X_LATE", "too late", "raise the limit", "come earlier"
    )
    assert audited(spy) == ToolCall("publish", "failed", "agent", "ed", "agent", code="X_LATE")


class Cancelled(BaseException):
    """What a cancellation is: no Exception."""


ERRORS: list[BaseException] = [
    ValueError(SENTINEL),
    KeyError(SENTINEL),
    Cancelled(SENTINEL),
    PermissionError(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["loaded", "handled"])
def test_any_other_error_is_told_in_ours(where: str, error: BaseException) -> None:
    spy = world()
    setattr(spy, where, raising(error))
    began = where == "handled" and not isinstance(error, Exception)
    code = "X_INTERRUPTED" if began else "X_INTERNAL"
    assert called(press(), EDITOR, "publish", ARGUMENTS, spy) == failed(code)
    assert audited(spy) == ToolCall("publish", "failed", "agent", "ed", "agent", code=code)


def test_a_loaders_application_error_is_not_told_and_runs_nothing() -> None:
    """No policy was asked yet, so the caller may be anyone."""
    spy = world()
    spy.loaded = raising(ActionError("X_LATE", SENTINEL, "come earlier"))
    outcome = called(press(), EDITOR, "publish", ARGUMENTS, spy)
    assert (outcome, spy.kinds) == (failed("X_INTERNAL"), ["Load", "Audit"])


@pytest.mark.parametrize("where", ["loaded", "handled"])
def test_a_step_that_the_edge_does_not_know_denies(where: str) -> None:
    spy = world()
    setattr(spy, where, raising(UnknownStep("Load")))
    assert called(press(), EDITOR, "publish", ARGUMENTS, spy) == PolicyError(("<edge>",))
    assert audited(spy).outcome == "policy-error"
    assert ("Permit" in spy.kinds) is (where == "handled")


@dataclass(frozen=True)
class Shrug:
    """Neither Returned nor Raised."""

    value: object = None


@pytest.mark.parametrize("where", ["loaded", "handled"])
@pytest.mark.parametrize("answer", [None, Shrug(), POST])
def test_an_answer_that_is_no_answer_permits_nothing(where: str, answer: object) -> None:
    spy = world()

    def shrug(_step: Step) -> Answer:
        return cast("Answer", answer)

    setattr(spy, where, shrug)
    with pytest.raises((AssertionError, AttributeError)):
        called(press(), EDITOR, "publish", ARGUMENTS, spy)
    assert ("Permit" in spy.kinds) is (where == "handled")


def test_an_answer_of_another_type_is_not_sent() -> None:
    spy = world(answer={"password": SENTINEL})
    assert called(press(), EDITOR, "publish", ARGUMENTS, spy) == failed("X_OUTPUT_INVALID")
    assert audited(spy) == ToolCall("publish", "failed", "agent", "ed", "agent", code="X_OUTPUT_INVALID")


def test_an_answer_is_its_declared_fields() -> None:
    spy = world(answer={"id": "1", "password": SENTINEL})
    assert called(press(), EDITOR, "publish", ARGUMENTS, spy) == Ok(b'{"id":"1"}')


def test_a_single_query_that_finds_nothing() -> None:
    nothing = Spy(handled=lambda _: Returned(None))
    assert called(press(), EDITOR, "one_post", ARGUMENTS, nothing) == failed("X_NOT_FOUND")
    found = Spy(handled=lambda _: Returned(Published(id="1")))
    assert called(press(), EDITOR, "one_post", ARGUMENTS, found) == Ok(b'{"id":"1"}')


def test_an_action_that_answers_nothing_where_something_was_declared() -> None:
    spy = Spy(lambda _: Returned(POST), lambda _: Returned(None))
    assert called(press(), EDITOR, "publish", ARGUMENTS, spy) == failed("X_OUTPUT_INVALID")


# for every kind of caller


@pytest.mark.parametrize("who", everyone(), ids=lambda who: f"{type(who).__name__} {who.id}")
def test_nothing_granted_is_denied_to_everyone(who: Principal) -> None:
    spy = world()
    assert called(press(grants=[]), who, "publish", ARGUMENTS, spy) == FORBIDDEN
    assert "Permit" not in spy.kinds


BOTH: list[tuple[Principal, bool]] = [
    (Human("h", roles={"editor"}).delegate("a"), True),
    (Agent("a", roles={"editor"}, acts_for=Human("h")), False),
    (Agent("a", acts_for=Human("h", roles={"editor"})), False),
]


@pytest.mark.parametrize(("who", "allowed"), BOTH)
def test_an_agent_never_exceeds_its_human(who: Principal, allowed: bool) -> None:
    expected = Ok(b'{"id":"1"}') if allowed else FORBIDDEN
    assert called(press(), who, "publish", ARGUMENTS, world()) == expected
    hidden = called(press(visible_to=["editor"]), who, "publish", ARGUMENTS, world())
    assert hidden == (Ok(b'{"id":"1"}') if allowed else Hidden("publish"))


# no payload in any event


OUTCOMES: dict[str, tuple[Principal, str, Mapping[str, Json], Spy]] = {
    "ok": (
        EDITOR,
        "publish",
        {"postId": SENTINEL},
        world(Post(id=SENTINEL, org=SENTINEL), Published(id=SENTINEL)),
    ),
    "invalid": (EDITOR, "publish", {"postId": [SENTINEL], SENTINEL: SENTINEL}, world()),
    "denied": (NOBODY, "publish", {"postId": SENTINEL}, world(Post(id=SENTINEL, org=SENTINEL))),
    "facts": (
        EDITOR,
        "publish",
        {"postId": SENTINEL},
        world(unchecked(Post, id=SENTINEL, org=[SENTINEL])),
    ),
    "broken": (EDITOR, "publish", {"postId": SENTINEL}, Spy(raising(KeyError(SENTINEL)))),
    "output": (EDITOR, "publish", {"postId": SENTINEL}, world(answer={SENTINEL: SENTINEL})),
    "raised": (
        EDITOR,
        "publish",
        {"postId": SENTINEL},
        Spy(lambda _: Returned(POST), raising(ValueError(SENTINEL))),
    ),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_no_event_holds_a_payload(name: str) -> None:
    who, tool, arguments, spy = OUTCOMES[name]
    called(press(), who, tool, arguments, Spy(spy.loaded, spy.handled, kept := list[Step]()))
    events = [step.event for step in kept if isinstance(step, Audit)]
    assert len(events) == 1
    assert SENTINEL not in repr(events)


def test_the_same_kernel_answers_again_and_again() -> None:
    """Nothing of a call stays: refused, allowed and refused again."""
    app = press()
    told = [called(app, who, "publish", ARGUMENTS, world()) for who in (NOBODY, EDITOR, NOBODY, EDITOR)]
    assert told == [FORBIDDEN, Ok(b'{"id":"1"}'), FORBIDDEN, Ok(b'{"id":"1"}')]
    assert isinstance(app.kernel.judge, Judge)


def test_nothing_runs_before_the_first_step_is_asked_for() -> None:
    app = press()
    steps = app.kernel.invoke(app.kernel.view_for(Human("h")), Call("publish", ARGUMENTS, "agent"))
    steps.close()
    assert drive(app.kernel.invoke(app.kernel.view_for(EDITOR), Call("nothing", {}, "mcp")), Spy()) == Hidden(
        "nothing"
    )
