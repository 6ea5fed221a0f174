"""A working directory with an app, and the command line run in it: in this process, or as a user would."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from nonsuch.adapters.cli.main import main

POSTLY: Final = "nonsuch.adapters.demo.postly.served"
POLICIES: Final = Path(__file__).parents[3] / "adapters" / "demo" / "postly" / "policies"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said."""

    status: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


def command(*arguments: str, at: Path) -> Answer:
    """Run `nonsuch` as a program of its own."""
    program = [sys.executable, "-m", "nonsuch.adapters.cli", *arguments]
    done = subprocess.run(
        program, cwd=at, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return Answer(done.returncode, done.stdout, done.stderr)


class Desk:
    """Runs commands in this process, in a directory whose project is the demo."""

    def __init__(self, at: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.at, self._capture = at, capture
        (at / "pyproject.toml").write_text(f'[tool.nonsuch]\napp = "{POSTLY}"\n')

    def run(self, *arguments: str) -> Answer:
        """Run a command of `nonsuch policy`."""
        self._capture.readouterr()
        status = main(["policy", *arguments])
        told = self._capture.readouterr()
        return Answer(status, told.out, told.err)

    def json(self, *arguments: str, status: int = 0) -> Any:
        """Run a command and return its document; stderr is silent and the status as expected."""
        found = self.run(*arguments, "--json")
        assert (found.status, found.err) == (status, ""), found
        return found.value
