"""Runs a program of the tests where the frameworks are installed. Knows none of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import Final

from ..conformance.environment import ROOT, python_of

HERE: Final = ROOT / "tests" / "frameworks"
ENVIRONMENT: Final[Mapping[str, str]] = {**os.environ, "PYTHONPATH": str(ROOT / ".editable")}
SECONDS: Final = 240


def command(module: str, *given: str) -> list[str]:
    """Return how a program is started."""
    return [str(python_of("frameworks", HERE)), "-m", module, *given]


def program(module: str, *given: str) -> str:
    """Run a program to its end, and return what it printed. Raises: AssertionError, when it failed."""
    done = subprocess.run(
        command(module, *given),
        cwd=ROOT,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
