"""What a command answers: one JSON document or text for people on stdout, and an exit status."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...kernel.codes import CODES

FINE: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
_PIPE_WIDTH: Final = 160


class Refused(Exception):
    """The command cannot be carried out as it was given."""

    def __init__(self, code: str, cause: str, fix: str | None = None) -> None:
        self.code, self.cause, self.fix = code, cause, fix or CODES[code].fix
        super().__init__(code, cause, self.fix)

    def __str__(self) -> str:
        return f"{self.code}: {self.cause}\nfix: {self.fix}"


@dataclass(frozen=True, slots=True)
class Lines:
    """Several documents instead of one: a JSON object a line."""

    rows: Iterable[Any]


@dataclass(frozen=True, slots=True)
class Result:
    """The answer of a command, in both forms."""

    document: Any
    show: Callable[[Console], None]
    status: int = FINE


class _Console(Console):
    """A console that says when nobody reads any more, and does not end the program for it."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Return the console of stdout: as wide as the terminal, or wide enough for a pipe."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return _Console(markup=False, emoji=False, highlight=False, width=width)


def answer(result: Result, *, as_json: bool) -> int:
    """Print a result and return its exit status."""
    if not as_json:
        result.show(console())
    elif isinstance(result.document, Lines):
        for row in result.document.rows:
            print(json.dumps(row))
    else:
        print(json.dumps(result.document, indent=2))
    return result.status


def refuse(refusal: Refused, *, as_json: bool) -> int:
    """Print why a command was not carried out and return the exit status."""
    if as_json:
        error = {"code": refusal.code, "cause": refusal.cause, "fix": refusal.fix}
        print(json.dumps({"error": error}, indent=2))
    print(refusal, file=sys.stderr)
    return USAGE


def table(heads: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """Return a table of plain cells."""
    made = Table(*heads, show_edge=False, pad_edge=False, header_style="bold")
    for row in rows:
        made.add_row(*(each if isinstance(each, Text) else Text(each) for each in row))
    return made


def counted(number: int, one: str, several: str | None = None) -> str:
    """Return how many of something there are: "1 row", "2 rows"."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"


class _Effect(Protocol):
    @property
    def permit(self) -> bool: ...


def effect(policy: _Effect) -> str:
    """Return the word a policy, or what is left of one, begins with."""
    return "permit" if policy.permit else "forbid"


def words(names: Iterable[str], last: str = "and") -> str:
    """Return names in backticks as a list in words."""
    quoted = [f"`{each}`" for each in names]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
