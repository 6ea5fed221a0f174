"""Resources, prompts and completions pass the gates that a call passes, in their one order; a spy answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from nonsuch import (
    ActionError,
    Agent,
    App,
    Completing,
    Elicit,
    Human,
    Principal,
    Registry,
    can,
    prompt,
    resource,
)
from nonsuch.kernel.asks import RoundEnded
from nonsuch.kernel.audit import PromptGet, ResourceRead
from nonsuch.kernel.gates import Suggesting
from nonsuch.kernel.model import (
    Failed,
    Hidden,
    InputRequired,
    InvalidArguments,
    Issue,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    ScopeDenied,
)
from nonsuch.kernel.steps import Audit, Load, Permit, Raised, Returned, Step
from nonsuch.kernel.strict_json import Json

from .trial import EDITOR, NOBODY, Spy, boot, drive, folder

STRANGER = Agent("stranger", scopes={"s"})
HOLDER = Agent("ed", roles={"editor"}, scopes={"s"})


class Id(BaseModel):
    id: str = Field(max_length=3)


class Row(BaseModel):
    id: str
    org: str


def static() -> str:
    raise AssertionError("the world answers, not this function")


def one(input: Id) -> dict[str, str]:
    raise AssertionError("the world answers, not this function")


def find(input: Id) -> Row | None:
    raise AssertionError("the world answers, not this function")


def say(input: Id) -> str:
    raise AssertionError("the world answers, not this function")


def suggest(given: Completing) -> list[str]:
    raise AssertionError("the world answers, not this function")


def library(at: Path | None = None, policies: str = "", **given: Any) -> App:
    """Everything twice: open, and for editors under a scope; one resource acts on a row."""
    for_editors: dict[str, Any] = {"visible_to": ["editor"], "scope": "s"}
    completions: dict[str, Any] = {"complete": {"id": suggest}}
    if at is not None:
        given["policies_dir"] = folder(at, own=policies)
    return boot(
        Registry(),
        resources=[
            resource("a:open", "open", "d", static, mime_type="text/plain"),
            resource("a:rows/{id}", "row", "d", one, **completions),
            resource("a:secret", "secret", "d", static, **for_editors),
            resource("a:owned/{id}", "owned", "d", one, policy=can("row:read", resource=find), **completions),
            resource("a:asked/{id}", "asked", "d", one, policy="row:read"),
        ],
        prompts=[
            prompt(say, description="d", complete={"id": ["ab", "ac", "b"]}),
            prompt(say, description="d", name="hush", **for_editors, **completions),
            prompt(say, description="d", name="asked", policy="row:read", **completions),
        ],
        **given,
    )


def read(app: App, who: Principal, uri: str, spy: Spy | None = None) -> Outcome:
    return drive(app.kernel.read(app.kernel.view_for(who), uri), spy or world())


def render(
    app: App, who: Principal, name: str, arguments: Mapping[str, Json] | None = None, spy: Spy | None = None
) -> Outcome:
    return drive(app.kernel.render(app.kernel.view_for(who), name, arguments or {}), spy or world())


def complete(app: App, who: Principal, name: str, value: str = "a", spy: Spy | None = None) -> Outcome:
    view = app.kernel.view_for(who)
    entry = view.template(name) if ":" in name else view.prompt(name)
    return drive(app.kernel.complete(view, entry, name, Suggesting("id", value, {"x": "y"})), spy or world())


def world(answer: object = "words", row: object = None) -> Spy:
    return Spy(lambda _: Returned(row), lambda _: Returned(answer))


def permits(spy: Spy) -> list[Permit]:
    return [each for each in spy.transcript if isinstance(each, Permit)]


def event(spy: Spy) -> ResourceRead | PromptGet:
    """The one event, which is the last step."""
    (told,) = [each.event for each in spy.transcript if isinstance(each, Audit)]
    assert isinstance(spy.transcript[-1], Audit)
    assert isinstance(told, (ResourceRead, PromptGet))
    return told


# what goes well


def test_a_resource_is_read_with_the_variables_of_its_template() -> None:
    app, spy = library(), world({"id": "x"})
    assert read(app, NOBODY, "a:rows/%41b", spy) == Ok(b'{"id":"x"}')
    (permit,) = permits(spy)
    assert (permit.input, permit.principal, permit.resource, permit.completes) == (
        Id(id="Ab"),
        NOBODY,
        None,
        None,
    )
    assert permit.handler.function is one
    assert event(spy) == ResourceRead("a:rows/%41b", "ok", "nobody", "agent")


def test_a_resource_without_variables_is_read_with_nothing() -> None:
    spy = world()
    assert read(library(), NOBODY, "a:open", spy) == Ok(b'"words"')
    assert spy.kinds == ["Permit", "Audit"]


def test_a_prompt_is_rendered_with_its_arguments() -> None:
    spy = world()
    assert render(library(), NOBODY, "say", {"id": "x"}, spy) == Ok(b'"words"')
    assert [each.input for each in permits(spy)] == [Id(id="x")]
    assert event(spy) == PromptGet("say", "ok", "nobody", "agent")


def test_a_list_completes_by_prefix_and_runs_nothing() -> None:
    for value, told in (("", b'["ab","ac","b"]'), ("a", b'["ab","ac"]'), ("A", b"[]"), ("abc", b"[]")):
        spy = world()
        assert complete(library(), NOBODY, "say", value, spy) == Ok(told)
        assert spy.kinds == ["Audit"]


def test_a_function_completes_with_what_was_given() -> None:
    spy = world(["ab"])
    assert complete(library(), NOBODY, "a:rows/{id}", "a", spy) == Ok(b'["ab"]')
    (permit,) = permits(spy)
    assert permit.handler.function is suggest
    assert permit.input == Completing(value="a", arguments={"x": "y"})
    assert event(spy) == PromptGet("a:rows/{id}", "ok", "nobody", "agent", completes="id", kind="completion")


def test_an_argument_that_nothing_completes_has_no_values() -> None:
    app, spy = library(), world()
    view = app.kernel.view_for(NOBODY)
    asked = Suggesting("other", "a", {})
    assert drive(app.kernel.complete(view, view.prompt("say"), "say", asked), spy) == Ok(b"[]")
    assert spy.kinds == ["Audit"]


# 1. hidden and absent

Asked = Callable[[App, Principal, Spy], Outcome]
UNSEEN: dict[str, tuple[Asked, Asked]] = {
    "a resource": (lambda a, w, s: read(a, w, "a:secret", s), lambda a, w, s: read(a, w, "a:nothin", s)),
    "a prompt": (lambda a, w, s: render(a, w, "hush", {}, s), lambda a, w, s: render(a, w, "none", {}, s)),
    "a prompt with arguments": (
        lambda a, w, s: render(a, w, "hush", {"id": "x"}, s),
        lambda a, w, s: render(a, w, "none", {"id": "x"}, s),
    ),
    "a completion": (
        lambda a, w, s: complete(a, w, "hush", "a", s),
        lambda a, w, s: complete(a, w, "none", "a", s),
    ),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_hidden_and_absent_are_one_outcome_and_one_trace(name: str) -> None:
    app = library()
    outcomes, kinds = list[str](), list[list[str]]()
    for ask in UNSEEN[name]:
        spy = world()
        told = ask(app, STRANGER, spy)
        outcomes.append(type(told).__name__)
        kinds.append(spy.kinds)
        code = "X_MCP_RESOURCE_UNKNOWN" if name == "a resource" else "X_MCP_PROMPT_UNKNOWN"
        assert (event(spy).outcome, event(spy).code) == ("hidden", code)
    assert outcomes == ["Hidden", "Hidden"]
    assert kinds == [["Audit"], ["Audit"]]


# 2. scope, 3. arguments, 4. policy, 5. the handler


def test_the_scope_is_asked_for_before_anything_of_the_request_is_judged() -> None:
    app = library()
    spies = [world(), world(), world()]
    assert read(app, EDITOR, "a:secret", spies[0]) == ScopeDenied("s")
    assert render(app, EDITOR, "hush", {"id": 7}, spies[1]) == ScopeDenied("s")
    assert complete(app, EDITOR, "hush", "a", spies[2]) == ScopeDenied("s")
    for spy in spies:
        assert spy.kinds == ["Audit"]
        assert (event(spy).outcome, event(spy).scope) == ("scope-denied", "s")
    assert isinstance(read(app, HOLDER, "a:secret"), Ok)
    assert isinstance(render(app, HOLDER, "hush", {"id": "x"}), Ok)
    assert complete(app, HOLDER, "hush", "a", world(["a"])) == Ok(b'["a"]')


def test_arguments_are_judged_before_policy() -> None:
    app = library()
    wrong = InvalidArguments((Issue("id", "breaks `maxLength` 3"),))
    assert read(app, NOBODY, "a:asked/long") == wrong
    assert render(app, NOBODY, "asked", {"id": "long"}) == wrong
    assert render(app, NOBODY, "say", {}) == InvalidArguments((Issue("id", "required"),))


def test_a_policy_of_the_apps_is_asked() -> None:
    app = library()
    for outcome in (
        read(app, NOBODY, "a:asked/x"),
        render(app, NOBODY, "asked", {"id": "x"}),
        complete(app, NOBODY, "asked"),
    ):
        assert isinstance(outcome, PolicyDenied)
        assert outcome.cause == "no policy permits `row:read` here"


FORBIDS = """
@id("no.reading") @reason("reading is off") @fix("wait")
forbid (principal, action == Action::"resources/row", resource);
@id("no.saying") forbid (principal, action == Action::"prompts/say", resource)
  when { context.args.id == "x" };
@id("own") permit (principal, action in Action::"row:read", resource is Row)
  when { principal has org && principal.org == resource.org };
@id("errs") forbid (principal, action in Action::"row:read", resource is Row)
  when { resource.org == "erring" && 9223372036854775807 + 1 > 0 };
"""


def test_an_operator_s_forbid_closes_what_we_open(tmp_path: Path) -> None:
    app = library(tmp_path, FORBIDS)
    told = read(app, NOBODY, "a:rows/x")
    assert isinstance(told, PolicyDenied)
    assert (told.cause, told.policies) == ("reading is off", ("no.reading",))
    assert isinstance(complete(app, NOBODY, "a:rows/{id}"), PolicyDenied)
    assert isinstance(render(app, NOBODY, "say", {"id": "x"}), PolicyDenied)
    assert isinstance(render(app, NOBODY, "say", {"id": "y"}), Ok)


def test_a_policy_that_reads_arguments_denies_a_completion(tmp_path: Path) -> None:
    """There are none yet, so it cannot be asked."""
    told = complete(library(tmp_path, FORBIDS), NOBODY, "say")
    assert isinstance(told, PolicyError)
    assert told.policies == ("<request>",)


def test_a_resource_that_acts_on_a_row_is_judged_by_it(tmp_path: Path) -> None:
    app = library(tmp_path, FORBIDS)
    acme, row = Human("h", org="acme"), Row(id="1", org="acme")
    spy = world({}, row)
    assert read(app, acme, "a:owned/1", spy) == Ok(b"{}")
    assert spy.kinds == ["Load", "Permit", "Audit"]
    assert [each.resource for each in permits(spy)] == [row]
    foreign, missing = read(app, NOBODY, "a:owned/1", world({}, row)), read(app, NOBODY, "a:owned/1")
    assert foreign == missing
    assert isinstance(foreign, PolicyDenied)
    assert isinstance(read(app, acme, "a:owned/1", world({}, Row(id="1", org="erring"))), PolicyError)


def test_a_completion_of_what_acts_on_a_row_has_no_values(tmp_path: Path) -> None:
    """What it acts on is known once its arguments are, so nothing of it is loaded or told."""
    spy = world(["x"])
    assert complete(library(tmp_path, FORBIDS), NOBODY, "a:owned/{id}", "a", spy) == Ok(b"[]")
    assert spy.kinds == ["Audit"]


LATE = ActionError("X_LATE", "too late", "open longer", "come earlier")
RAISED: dict[str, tuple[BaseException, Outcome]] = {
    "an error of the app's": (LATE, Failed("X_LATE", "too late", "open longer", "come earlier")),
    "another round": (
        RoundEnded({"k": Elicit("?", Id)}, {"n": 1}),
        InputRequired({"k": Elicit("?", Id)}, {"n": 1}),
    ),
}


@pytest.mark.parametrize("name", RAISED)
def test_how_a_handler_ends_is_the_outcome(name: str) -> None:
    error, outcome = RAISED[name]

    def world() -> Spy:
        return Spy(handled=lambda _: Raised(error))

    app = library()
    assert read(app, NOBODY, "a:open", world()) == outcome
    assert render(app, NOBODY, "say", {"id": "x"}, world()) == outcome
    assert complete(app, NOBODY, "a:rows/{id}", "a", world()) == outcome


@pytest.mark.parametrize("answer", ["words", None, [1], ["a", None], {"a": "b"}, ("a",), [b"a"]])
def test_a_completer_that_returns_no_list_of_strings_has_failed(answer: object) -> None:
    told = complete(library(), NOBODY, "a:rows/{id}", "a", world(answer))
    assert isinstance(told, Failed)
    assert told.code == "X_OUTPUT_INVALID"


def test_an_answer_that_was_not_declared_has_failed() -> None:
    for told in (
        read(library(), NOBODY, "a:open", world(7)),
        render(library(), NOBODY, "say", {"id": "x"}, world(7)),
    ):
        assert isinstance(told, Failed)
        assert told.code == "X_OUTPUT_INVALID"


def test_the_steps_of_a_reading_are_those_of_a_call(tmp_path: Path) -> None:
    spy = world({}, Row(id="1", org="acme"))
    read(library(tmp_path, FORBIDS), Human("h", org="acme"), "a:owned/1", spy)
    kinds: list[type[Step]] = [Load, Permit, Audit]
    assert [type(each) for each in spy.transcript] == kinds


def readable(app: App, who: Principal, uri: str, spy: Spy | None = None) -> bool:
    return drive(app.kernel.readable(app.kernel.view_for(who), uri), spy or world())


def test_whether_a_reading_would_be_permitted_is_decided_by_the_same_gates(tmp_path: Path) -> None:
    """Up to its handler, which does not run; and asking is no event."""
    app = library(tmp_path, FORBIDS)
    acme, row = Human("h", org="acme"), Row(id="1", org="acme")
    asked: list[tuple[Principal, str, object]] = [
        (NOBODY, "a:open", None),
        (NOBODY, "a:nothing", None),
        (NOBODY, "a:secret", None),
        (EDITOR, "a:secret", None),
        (HOLDER, "a:secret", None),
        (NOBODY, "a:rows/x", None),
        (NOBODY, "a:asked/long", None),
        (acme, "a:owned/1", row),
        (acme, "a:owned/1", None),
        (acme, "a:owned/1", "no row"),
        (NOBODY, "a:owned/1", row),
        (acme, "a:owned/1", Row(id="1", org="erring")),
    ]
    spies = [world({}, held) for _, _, held in asked]
    told = [readable(app, who, uri, spy) for (who, uri, _), spy in zip(asked, spies, strict=True)]
    expected = [True, False, False, False, True, False, False, True, False, False, False, False]
    assert told == expected
    assert {kind for spy in spies for kind in spy.kinds} == {"Load"}
    for (who, uri, held), permitted in zip(asked, expected, strict=True):
        spy = world({}, held)
        read(app, who, uri, spy)
        assert ("Permit" in spy.kinds) is permitted


def test_a_value_that_nobody_can_be_sent_is_no_completion() -> None:
    told = complete(library(), NOBODY, "a:rows/{id}", "a", world(["\ud800"]))
    assert isinstance(told, Failed)
    assert told.code == "X_OUTPUT_INVALID"


def test_nobody_is_told_what_a_hidden_name_is() -> None:
    assert read(library(), STRANGER, "a:secret") == Hidden("a:secret")
    assert render(library(), STRANGER, "hush", {}) == Hidden("hush")
    assert complete(library(), STRANGER, "hush") == Hidden("hush")
