"""The ten examples of policies/README.md do what they say, each alone against one small app."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from nonsuch import Agent, App, Human, OpenSync, Principal, Registry, can, define_app_mcp, expose, grant
from nonsuch.kernel.model import Hidden, Ok, Outcome, PolicyDenied, ScopeDenied

from .policies_readme import GUIDE, PAGE

ROLES: Final = ["viewer", "editor", "admin", "acme-support"]
FILES: Final = {"cedar": "own.cedar", "cedarschema": "own.cedarschema", "json": "own.links.json"}


@dataclass(frozen=True, slots=True)
class Told:
    """One line of an example: what is expected, who calls what."""

    outcome: str
    who: Principal
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """A title, the blocks of code by language, the calls."""

    title: str
    blocks: dict[str, str]
    calls: tuple[Told, ...]


def examples() -> list[Example]:
    sections = re.split(r"^### (\d+\. .*)\n", GUIDE.read_text(), flags=re.MULTILINE)[1:]
    return [_example(title, text) for title, text in zip(sections[::2], sections[1::2], strict=True)]


def _example(title: str, text: str) -> Example:
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    lines = re.findall(r"^- (.+?): `(.*)` calls `(.*)`$", text, re.MULTILINE)
    calls = tuple(Told(outcome.replace("`", ""), _who(who), *_call(call)) for outcome, who, call in lines)
    assert len(lines) == len(re.findall(r"^- ", text, re.MULTILINE))
    return Example(title, blocks, calls)


def _who(text: str) -> Principal:
    """Read ``Human("ann", roles=[...]).delegate("bot")`` without running it."""
    node = _parsed(text)
    if isinstance(node.func, ast.Attribute):
        person = _who(ast.unparse(node.func.value))
        assert isinstance(person, Human)
        assert node.func.attr == "delegate"
        return person.delegate(*_positional(node), **_named(node))
    assert isinstance(node.func, ast.Name)
    kind: type[Principal] = {"Human": Human, "Agent": Agent}[node.func.id]
    return kind(*_positional(node), **_named(node))


def _call(text: str) -> tuple[str, dict[str, Any]]:
    node = _parsed(text)
    assert isinstance(node.func, ast.Name)
    return node.func.id, _named(node)


def _parsed(text: str) -> ast.Call:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    return node


def _positional(node: ast.Call) -> list[Any]:
    return [ast.literal_eval(each) for each in node.args]


def _named(node: ast.Call) -> dict[str, Any]:
    return {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}


# the app of the examples


class Post(BaseModel):
    id: str
    org: str
    author: str
    frozen: bool = False


class Order(BaseModel):
    id: str
    org: str
    totalMinor: int


class Customer(BaseModel):
    id: str
    tier: str


class Which(BaseModel):
    id: str


class Refund(BaseModel):
    id: str
    amountMinor: int


POSTS: Final = {
    "post-1": Post(id="post-1", org="acme", author="ann"),
    "post-2": Post(id="post-2", org="acme", author="ann", frozen=True),
}
ORDERS: Final = {"order-1": Order(id="order-1", org="acme", totalMinor=50_000)}
CUSTOMERS: Final = {name: Customer(id=name, tier="gold") for name in ("acme", "globex")}


def post(input: Which) -> Post | None:
    return POSTS.get(input.id)


def order(input: Refund) -> Order | None:
    return ORDERS.get(input.id)


def customer(input: Which) -> Customer | None:
    return CUSTOMERS.get(input.id)


def refund(input: Refund) -> str:
    return input.id


def report() -> str:
    return "report"


def registry() -> Registry:
    made = Registry()
    for name in ("read", "publish", "erase", "approve"):
        _declare(made, name, f"post:{name}", post)
    _declare(made, "export", "customer:export", customer)
    made.action(policy=can("order:refund", resource=order), mcp=expose("Refund"))(refund)
    made.action(policy=can("org:administer"), mcp=expose("Report", visible_to=["admin"]))(report)
    return made


def _declare(made: Registry, name: str, permission: str, loader: Any) -> None:
    def handler(input: Which) -> str:
        return input.id

    handler.__name__ = name
    made.action(policy=can(permission, resource=loader), mcp=expose(name))(handler)


def booted(example: Example, at: Path) -> App:
    """Boot the app with the files of an example; a Python block names its grants."""
    for language, text in example.blocks.items():
        if language != "python":
            (at / FILES[language]).write_text(text)
    return define_app_mcp(
        registry(),
        name="shop",
        include="exposed",
        roles=ROLES,
        scopes={"write": ["publish", "refund"], "read": ["read", "erase", "approve", "export", "report"]},
        grants=[grant(*each) for each in _grants(example.blocks.get("python", ""))],
        policies_dir=at,
    )


def _grants(text: str) -> list[tuple[str, str]]:
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return [(role, permission) for role, permission in map(_positional, nodes)]


def _said(outcome: Outcome) -> str:
    match outcome:
        case Ok():
            return "ok"
        case Hidden():
            return "hidden"
        case ScopeDenied():
            return "scope denied"
        case PolicyDenied(code):
            return "denied" if code == "X_FORBIDDEN" else f"denied, {code}"
        case _:
            return repr(outcome)


EXAMPLES: Final = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.title)
def test_an_example_does_what_it_says(example: Example, tmp_path: Path) -> None:
    app = booted(example, tmp_path)
    assert app.kernel.warnings == ()
    with OpenSync(app) as running:
        told = [_said(running.invoke(each.who, each.tool, each.arguments)) for each in example.calls]
    assert told == [each.outcome for each in example.calls]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.title)
def test_no_call_is_allowed_without_the_example(example: Example, tmp_path: Path) -> None:
    with OpenSync(booted(Example(example.title, {}, ()), tmp_path)) as running:
        told = {_said(running.invoke(each.who, each.tool, each.arguments)) for each in example.calls}
    assert "ok" not in told


def test_there_are_ten_examples_each_with_an_allowed_and_a_refused_call() -> None:
    assert [each.title.partition(".")[0] for each in EXAMPLES] == [str(number) for number in range(1, 11)]
    for each in EXAMPLES:
        outcomes = [call.outcome for call in each.calls]
        assert "ok" in outcomes
        assert [outcome for outcome in outcomes if outcome != "ok"]
        assert each.title in PAGE.read_text()


def test_the_table_of_tools_is_the_app_of_the_examples(tmp_path: Path) -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| `([\w:]+)` \| `(\w+)`(?: \((.*?)\))? \|(.*)\|$", GUIDE.read_text(), re.MULTILINE
    )
    entries = booted(Example("", {}, ()), tmp_path).kernel.catalog.entries
    expected = {
        entry.name: (
            entry.permission,
            entry.resource.name if entry.resource else "Server",
            [each.name for each in entry.arguments],
        )
        for entry in entries
    }
    found = {name: (rule, kind, re.findall(r"\w+", arguments)) for name, rule, kind, _, arguments in rows}
    assert found == expected
    fields = {kind: re.findall(r"\w+", named) for _, _, kind, named, _ in rows if named}
    models = {model.__name__: list(model.model_fields)[1:] for model in (Post, Order, Customer)}
    assert fields == models
