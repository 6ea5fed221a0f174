"""`nonsuch policy who`: who can see, use and call what, as a table, JSON or one HTML file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from ...analysis.matrix import NOBODY, Cell, Matrix, Rule
from ...analysis.matrix import who as matrix_of
from ..caller import known, names
from ..options import ASKED, Asked
from ..render import Result, effect, table
from ..rules import rules_of

NO_ROLE: Final = "(no role)"
_STYLE: Final = {"hidden": "dim", "always": "green", "depends": "yellow", "never": "red"}


def who(
    *,
    tool: Annotated[str | None, Parameter(help="only these tools, with commas")] = None,
    role: Annotated[str | None, Parameter(help="only these roles, with commas")] = None,
    human: Annotated[
        bool, Parameter(negative="", help="people in a session, not agents that act for them")
    ] = False,
    html: Annotated[Path | None, Parameter(help="write one self-contained page")] = None,
    asked: Asked = ASKED,
) -> Result:
    """Show for every role and tool whether it is hidden, which scope it needs, and what permits a call."""
    chosen = asked.one()
    rules = rules_of(chosen)
    catalog = rules.catalog
    found = matrix_of(
        catalog,
        rules.base,
        rules.policies,
        human=human,
        tools=None if tool is None else known("tool", names(tool), catalog.tools),
        roles=None if role is None else known("role", names(role), catalog.roles),
    )
    if html is not None:
        from .page import page, write

        write(html, page(chosen.name, found, human=human))

    def show(console: Console) -> None:
        _show(console, found)
        if html is not None:
            console.print(f"\nwrote {html}", soft_wrap=True)

    return Result(document(found, human=human), show)


def _show(console: Console, found: Matrix) -> None:
    heads = ["tool", "scope", *(named(role) for role in found.roles)]
    rows = [
        [
            Text(entry.name),
            Text(entry.scope or "-"),
            *(_cell(found.cells[entry.name, role]) for role in found.roles),
        ]
        for entry in found.tools
    ]
    console.print(table(heads, rows))
    for entry in found.tools:
        _show_rules(console, entry.name, [found.cells[entry.name, role] for role in found.roles])


def _show_rules(console: Console, tool: str, cells: Iterable[Cell]) -> None:
    shared = by_rules(cells)
    if shared:
        console.print(f"\n{tool}", style="bold")
    for (rules, word), roles in shared.items():
        console.print(f"  {word} for {', '.join(roles)}:", soft_wrap=True)
        for rule in rules:
            console.print(f"    {effect(rule)} {rule.policy}: {rule}", soft_wrap=True)


def by_rules(cells: Iterable[Cell]) -> dict[tuple[tuple[Rule, ...], str], list[str]]:
    """Return the roles of a tool's cells by the policies that decide for them; hidden ones are left out."""
    found: dict[tuple[tuple[Rule, ...], str], list[str]] = {}
    for each in cells:
        if each.word != "hidden" and each.calls.rules:
            found.setdefault((each.calls.rules, each.word), []).append(named(each.role))
    return found


def _cell(cell: Cell) -> Text:
    shown = f"{cell.word}?" if cell.sees.answer == "depends" else cell.word
    return Text(shown, style=_STYLE[cell.word])


def named(role: str) -> str:
    """Return a role as a heading."""
    return NO_ROLE if role == NOBODY else role


def document(found: Matrix, *, human: bool) -> dict[str, Any]:
    """Return the matrix as JSON."""
    return {
        "callers": "people in a session" if human else "agents that act for a person of the same role",
        "roles": [role or None for role in found.roles],
        "tools": [
            {"name": entry.name, "kind": entry.kind, "permission": entry.permission, "scope": entry.scope}
            for entry in found.tools
        ],
        "cells": [described(each) for each in found.cells.values()],
    }


def described(cell: Cell) -> dict[str, Any]:
    """Return a cell as JSON."""
    return {
        "tool": cell.tool,
        "role": cell.role or None,
        "result": cell.word,
        "sees": {"always": "yes", "never": "no"}.get(cell.sees.answer, cell.sees.answer),
        "sees_rules": _rules(cell.sees.rules),
        "scope": cell.scope,
        "token": cell.token,
        "calls": cell.calls.answer,
        "calls_rules": _rules(cell.calls.rules),
    }


def _rules(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    return [
        {
            "policy": each.policy,
            "effect": effect(each),
            "conditions": list(each.conditions),
        }
        for each in rules
    ]
