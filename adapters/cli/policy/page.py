"""The matrix as one HTML page that needs nothing else: data, words and a template; no decisions."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, StrictUndefined

from ...analysis.matrix import Cell, Matrix, Rule
from ..render import Refused, effect
from .who import named

_PACKAGE: Final = __name__.rpartition(".")[0]
_TEMPLATE: Final = "who.html.j2"
_MEANINGS: Final = {
    "always": "visible, and every call is permitted",
    "depends": "visible, and more than the role decides whether a call is permitted",
    "never": "visible, and no call is permitted",
    "hidden": "the tool does not exist for this role",
}


def page(app: str, found: Matrix, *, human: bool) -> str:
    """Return the page of a matrix."""
    book = _Book()
    rows = [_row(found, entry.name, entry.permission, entry.scope, book) for entry in found.tools]
    words = [each.word for each in found.cells.values()]
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((files(_PACKAGE) / _TEMPLATE).read_text("utf-8"))
    return template.render(
        app=app,
        callers="people in a session" if human else "agents that act for a person of the same role",
        roles=[named(role) for role in found.roles],
        rows=rows,
        maybe=any(each.sees.answer == "depends" for each in found.cells.values()),
        legend={word: (words.count(word), meaning) for word, meaning in _MEANINGS.items()},
        book=book.rules,
    )


class _Book:
    """Every rule once, however many cells name it."""

    def __init__(self) -> None:
        self.rules: list[dict[str, Any]] = []
        self._at: dict[Rule, int] = {}

    def number(self, rule: Rule) -> int:
        if rule not in self._at:
            self._at[rule] = len(self.rules)
            self.rules.append({"policy": rule.policy, "effect": effect(rule), "text": str(rule)})
        return self._at[rule]


def _row(found: Matrix, tool: str, permission: str, scope: str | None, book: _Book) -> dict[str, Any]:
    cells = [_cell(found.cells[tool, role], book) for role in found.roles]
    return {"tool": tool, "permission": permission, "scope": scope or "", "cells": cells}


def _cell(cell: Cell, book: _Book) -> dict[str, Any]:
    return {
        "word": cell.word,
        "maybe": cell.sees.answer == "depends",
        "token": cell.token,
        "calls": " ".join(str(book.number(each)) for each in cell.calls.rules),
        "sees": " ".join(str(book.number(each)) for each in cell.sees.rules),
    }


def write(path: Path, text: str) -> None:
    """Write a page in one step. Raises: Refused."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(text, "utf-8")
        fresh.replace(path)
    except OSError as refusal:
        fresh.unlink(missing_ok=True)
        raise Refused(
            "X_CLI_USAGE", f"`{path}` cannot be written: {refusal.strerror}", "name another file"
        ) from None
