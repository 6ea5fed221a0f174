"""`nonsuch token new`: a token that works with the lines it comes with; what could not be one is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nonsuch import Agent, Human, Principal, StaticTokens
from nonsuch.adapters.cli.main import main

from .desk import command

Capture = pytest.CaptureFixture[str]

MADE: dict[str, tuple[list[str], Principal]] = {
    "an agent": (["robot"], Agent("robot")),
    "with roles and scopes": (
        ["robot", "--roles", "editor, viewer", "--scopes", "posts:read,posts:write", "--org", "acme"],
        Agent("robot", roles={"editor", "viewer"}, scopes={"posts:read", "posts:write"}, org="acme"),
    ),
    "for somebody": (
        ["bot", "--roles", "editor", "--acts-for", "ann", "--their-roles", "editor,viewer", "--org", "acme"],
        Agent(
            "bot",
            roles={"editor"},
            org="acme",
            acts_for=Human("ann", roles={"editor", "viewer"}, org="acme"),
        ),
    ),
    "a person": (["ann", "--human", "--scopes", "s"], Human("ann", scopes={"s"})),
    "odd characters": (
        ['a"b\\c', "--roles", "\u00fc\U0001f600\x7f\t#", "--org", "a'b]"],
        Agent('a"b\\c', roles={"\u00fc\U0001f600\x7f\t#".strip()}, org="a'b]"),
    ),
}


def made(capsys: Capture, *arguments: str) -> Any:
    """Make a token; what was said of it."""
    assert main(["token", "new", *arguments, "--json"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return json.loads(told.out)


@pytest.mark.parametrize("case", MADE)
def test_a_token_is_whose_it_was_made_for(case: str, tmp_path: Path, capsys: Capture) -> None:
    arguments, expected = MADE[case]
    told = made(capsys, *arguments)
    path = tmp_path / "tokens.toml"
    path.write_text(told["toml"] + made(capsys, "another")["toml"], "utf-8")
    assert StaticTokens(path)(told["token"]) == expected
    assert told["token"] not in told["toml"]


def test_no_two_tokens_are_alike(capsys: Capture) -> None:
    assert made(capsys, "robot")["token"] != made(capsys, "robot")["token"]


def test_a_person_reads_the_token_once_and_the_lines(tmp_path: Path) -> None:
    said = command("token", "new", "robot", "--roles", "editor", at=tmp_path)
    first, token, blank, third, *lines = said.out.splitlines()
    assert (said.status, said.err) == (0, "")
    assert (first, blank, third) == ("the token, shown this once:", "", "for the file of `StaticTokens`:")
    assert lines[0] == "[[token]]"
    assert lines[2:] == ['id = "robot"', 'roles = ["editor"]']
    path = tmp_path / "tokens.toml"
    path.write_text("\n".join(lines))
    assert StaticTokens(path)(token) == Agent("robot", roles={"editor"})
    assert said.out.count(token) == 1


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["ann", "--human", "--acts-for", "bob"], "a human acts for nobody else"),
        ([""], "an agent needs an id of 1 to 512 printable characters"),
        (["a", "--their-roles", "editor"], "`--their-roles` without a person"),
        (["a", "--acts-for", ""], "a human needs an id of 1 to 512 printable characters"),
        (["a", "--roles", "x,-"], "`-` is no name in roles"),
    ],
)
def test_what_could_not_be_a_caller_gets_no_token(arguments: list[str], cause: str, capsys: Capture) -> None:
    assert main(["token", "new", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"X_CLI_USAGE: {cause}\nfix: ")
