"""What `define_app_mcp` refuses: names that no app has, names of tools that are ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from nonsuch import BootError, Registry, can, define_app_mcp, tool
from nonsuch.adapters.edge import policies

FIX: Final = 'give `name=` words of one line, for example `define_app_mcp(..., name="notes")`'


def faults(name: str, **more: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(BootError) as refused:
        define_app_mcp(Registry(), name=name, **more)
    return [(each.code, each.cause, each.fix) for each in refused.value.faults]


@pytest.mark.parametrize("name", ["", " ", "\t", "\n\n", "\u00a0\u3000"])
def test_an_app_has_a_name(name: str) -> None:
    assert faults(name) == [("X_DECLARATION_INVALID", "the app has an empty name", FIX)]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb", "a\\u{a}b"),
        ("no\x00tes", "no\\u{0}tes"),
        ("\x1b[31mred", "\\u{1b}[31mred"),
        ("a\x7f", "a\\u{7f}"),
        ("a\x85b", "a\\u{85}b"),
        ("a\u2028b", "a\\u{2028}b"),
        ("a\u2029b", "a\\u{2029}b"),
        ("half \ud800", "half \\u{d800}"),
    ],
)
def test_a_name_is_words_of_one_line(name: str, shown: str) -> None:
    cause = f"the app's name `{shown}` has a character that is none of a name"
    assert faults(name) == [("X_DECLARATION_INVALID", cause, FIX)]


def test_a_name_that_is_none_is_told_together_with_other_faults() -> None:
    told = [cause for _, cause, _ in faults("", path="/api/x")]
    assert told == ["the app has an empty name", "the MCP path `/api/x` is among the paths of actions"]


@pytest.mark.parametrize(
    "name", ["x", "Acme admin", "Zürich", "می\u200cخواهم", "\U0001f469\u200d\U0001f4bb", 'q"\\']
)
def test_a_name_of_any_language_is_one(name: str) -> None:
    app = define_app_mcp(Registry(), name=name)
    assert (app.name, app.kernel.catalog.server) == (name, name)


# Names of tools that are ours


class Post(BaseModel):
    """A resource of an app's own."""

    id: str


def post() -> Post:
    return Post(id="1")


def words() -> str:
    return ""


OURS: Final = sorted({name for name, _ in policies.base().tools})


def clash(name: str, maker: str) -> tuple[str, str, str]:
    cause = f"`{name}` is the name of a tool of ours, whose policies find nothing to judge in this one"
    return "X_DECLARATION_INVALID", cause, f"give it another name, or serve ours: `{maker}(...)`"


CLASHES: Final = [clash("db.migrate", "db_migrate"), clash("db.query", "db_query")]


def test_every_tool_that_comes_with_policies_is_looked_at() -> None:
    assert OURS == ["db.migrate", "db.query"]


@pytest.mark.parametrize("rule", [can("a:b"), can("a:b", post)], ids=["plain", "of a resource"])
def test_a_tool_that_has_the_name_of_one_of_ours_is_told_so_once(rule: Any) -> None:
    for name, told in zip(OURS, CLASHES, strict=True):
        assert faults("x", tools={name: tool("d", words, policy=rule)}) == [told]


def test_two_that_have_our_names_are_two_faults_and_hide_no_other(tmp_path: Path) -> None:
    (tmp_path / "nonsuch").mkdir()
    (tmp_path / "nonsuch" / "never.cedar").write_text(
        '@id("w") forbid (principal, action == Action::"other", resource) when { context.nothing };'
    )
    named = {name: tool("d", words, policy=can("a:b")) for name in (*OURS, "other")}
    told = faults("x", tools=named, policies_dir=tmp_path)
    assert [each for each in told if each[0] == "X_DECLARATION_INVALID"] == CLASHES
    (wrong,) = [each for each in told if each not in CLASHES]
    assert wrong[0] == "X_POLICY_INVALID"
    assert "`nothing`" in wrong[1]
