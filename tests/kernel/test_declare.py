"""Declarations are values: nothing runs, nothing is checked, and what was said is what is held."""

from pathlib import Path

import pytest

from nonsuch import Agent, Registry, audience, can, expose, grant, prompt, resource, tool
from nonsuch.kernel.declare import Action, Audience, Can, Context, Expose, Grant, Prompt, Resource


def work() -> str:
    """Stand for a handler."""
    return "done"


def read() -> str:
    """Stand for a resource reader or a loader."""
    return "read"


def test_an_action_is_what_was_said_of_it() -> None:
    registry, face = Registry(), expose("Do it")
    declared = registry.action(
        policy=can("a:b", resource=read), mcp=face, path="do/it", idempotent=True, destructive=False
    )(work)
    expected = Action("work", "action", work, Can("a:b", read), face, "do/it", True, False, False)
    assert declared == expected
    assert registry.actions == (expected,)


def test_an_action_is_destructive_and_unexposed_unless_said_otherwise() -> None:
    declared = Registry().action(policy=can("a:b"))(work)
    assert declared == Action("work", "action", work, Can("a:b", None), None, "work", False, True, False)


@pytest.mark.parametrize(("said", "held"), [(None, True), (True, True), (False, False)])
def test_destructive_is_true_unless_it_is_denied(said: bool | None, held: bool) -> None:
    assert Registry().action(policy=can("a:b"), destructive=said)(work).destructive is held


@pytest.mark.parametrize("single", [False, True])
def test_a_query_is_idempotent_and_not_destructive(single: bool) -> None:
    declared = Registry().query(policy=can("a:b"), single=single)(work)
    assert declared == Action("work", "query", work, Can("a:b"), None, "work", True, False, single)


def test_a_declared_action_cannot_be_called() -> None:
    assert not callable(Registry().action(policy=can("a:b"))(work))


def test_a_registry_keeps_the_order_and_hands_out_no_handle_on_itself() -> None:
    registry = Registry()
    first = registry.action(policy=can("a:b"))(work)
    before = registry.actions
    second = registry.query(policy=can("a:b"))(read)
    assert (before, registry.actions) == ((first,), (first, second))


def test_a_handler_without_a_name_is_declared_and_left_to_boot() -> None:
    class Callable_:
        def __call__(self) -> str:
            return "done"

    declared = Registry().action(policy=can("a:b"))(Callable_())
    assert (declared.name, declared.path) == ("", "")


@pytest.mark.parametrize("policy", ["a:b", can("a:b")])
def test_a_tool_takes_a_permission_or_a_policy(policy: str | Can) -> None:
    face = expose("Seats", visible_to=["admin"], title="Seats used", annotations={"openWorldHint": False})
    made = tool(
        "Seats",
        work,
        policy=policy,
        destructive=False,
        visible_to=["admin"],
        title="Seats used",
        annotations={"openWorldHint": False},
    )
    assert made == Action("", "tool", work, Can("a:b"), face, "", False, False, False)


def test_a_tool_without_a_policy_is_destructive_and_has_none() -> None:
    assert tool("Seats", work) == Action("", "tool", work, None, expose("Seats"), "", False, True, False)


def test_annotations_are_copied() -> None:
    given: dict[str, bool | str] = {"title": "x"}
    face = expose("Do it", annotations=given)
    given["title"] = "y"
    assert face == Expose("Do it", None, None, {"title": "x"})


def test_the_small_declarations_are_what_was_said(tmp_path: Path) -> None:
    assert audience("principal has org") == Audience("principal has org")
    assert grant("editor", "post:publish") == Grant("editor", "post:publish")
    expected = Resource("app://x", "x", "An x", read, "text/plain", ["editor"])
    assert resource("app://x", "x", "An x", read, mime_type="text/plain", visible_to=["editor"]) == expected
    assert resource("app://x", "x", "An x", read).mime_type == "application/json"
    file = tmp_path / "welcome@v1.md"
    expected_prompt = Prompt(file, "Hi", "welcome@v1")
    assert prompt(str(file), description="Hi") == prompt(file, description="Hi") == expected_prompt


def test_declarations_are_frozen() -> None:
    declared = Registry().action(policy=can("a:b"))(work)
    for value, name in ((declared, "policy"), (can("a:b"), "permission"), (grant("a", "b:c"), "role")):
        with pytest.raises(AttributeError):
            setattr(value, name, None)


def test_a_context_is_frozen() -> None:
    held = Context(Agent("a"), None, None, now=None)  # type: ignore[arg-type]  # the time is not looked at
    with pytest.raises(AttributeError):
        setattr(held, "principal", Agent("root"))  # noqa: B010  (an assignment would not type-check)
