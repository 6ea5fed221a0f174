"""What clients in the field trip over is told at boot, and served all the same."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from nonsuch import App, group, prompt, resource, tool

from .asking import MODERN, ask, result
from .stage import stage


class Either(BaseModel):
    @classmethod
    def model_json_schema(cls, *_: object, **__: object) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"a": {}, "b": {}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        }

    a: int = 0
    b: int = 0


def words() -> str:
    return "words"


def either(input: Either) -> str:
    return f"{input.a}{input.b}"


def told(app: App) -> list[tuple[str, str]]:
    return [(each.code, each.cause) for each in app.kernel.warnings]


TROUBLE = "X_MCP_CLIENT_TROUBLE"
DROPPED = "some clients drop every tool of a server for the name `{}`"
FIX = (
    "use A-Z a-z 0-9 _ - alone; a tool that keeps its name, as `db.query` and `db.migrate` do, goes into a"
    ' group of `surface="meta"`, or into an app of its own beside this one'
)


@pytest.mark.parametrize("name", ["notes.read", "a/b", "."])
def test_a_name_that_some_clients_do_not_take(name: str) -> None:
    app = stage(tools={name: tool("T", words, policy="a:b")})
    assert told(app) == [(TROUBLE, DROPPED.format(name))]
    assert app.kernel.catalog.tools == {name}
    assert [each.fix for each in app.kernel.warnings] == [FIX]


def test_a_name_that_is_in_no_list_of_tools_troubles_nobody() -> None:
    """What its fix says helps: the constant surface lists three tools of other names."""
    grouped: dict[str, Any] = {
        "tools": {name: tool("T", words, policy="a:b") for name in ("notes.read", "free")},
        "groups": {"notes": group("Notes", ["notes.read"])},
    }
    app = stage(surface="meta", **grouped)
    assert told(app) == []
    listed = {each["name"] for each in result(ask(MODERN, "tools/list", "t", app))["tools"]}
    assert listed == {"list_resources", "describe_resource", "manage_resource", "free"}
    some = stage(surface=["clerk"], **grouped)  # everybody else is served it flat
    assert told(some) == [(TROUBLE, DROPPED.format("notes.read"))]


def test_a_name_of_a_resource_or_prompt_troubles_nobody() -> None:
    content: dict[str, Any] = {
        "resources": [resource("a:b", "b.c", "B", words)],
        "prompts": [prompt(words, description="P", name="p/q")],
    }
    assert told(stage(words, **content)) == []


@pytest.mark.parametrize("description", ["", " ", "\n"])
def test_what_says_nothing_of_itself(description: str) -> None:
    app = stage(
        tools={"t": tool(description, words, policy="a:b")},
        resources=[resource("a:b", "b", description, words)],
        prompts=[prompt(words, description=description, name="p")],
    )
    assert told(app) == [
        (TROUBLE, f"`{name}` has no description, and a model chooses by it") for name in ("t", "b", "p")
    ]


def test_an_input_whose_root_is_one_of_several() -> None:
    app = stage(tools={"t": tool("T", either, policy="a:b")})
    assert told(app) == [(TROUBLE, "some clients drop `t` for the `anyOf` at the root of its input")]
