"""Runs the protocol's own conformance suite against a URL, one leg at a time, and reads what its checks met.

Knows no expectation and no server.
"""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from .environment import HERE, node, npm_modules

LEGS: Final[Mapping[str, Sequence[str]]] = {
    "required 2025-11-25": ("--requirements", "2025-11-25"),
    "required 2026-07-28": ("--requirements", "2026-07-28"),
    "all 2025-06-18": ("--suite", "all", "--spec-version", "2025-06-18"),
    "all 2025-11-25": ("--suite", "all", "--spec-version", "2025-11-25"),
    "all 2026-07-28": ("--suite", "all", "--spec-version", "2026-07-28"),
}
MINUTES_A_LEG: Final = 5
STARTED: Final = re.compile(r"^=== Running scenario: (\S+) ===$", re.MULTILINE)
UNREMARKABLE: Final = frozenset({"SUCCESS", "INFO"})


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a scenario, in the suite's words."""

    id: str
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class Results:
    """The checks by scenario, in the order they ran, and the suite's own verdict.

    The verdict leaves out what a requirement set runs without scoring it: extensions, say.
    """

    checks: Mapping[str, Sequence[Check]]
    conforms: bool


def run(url: str, leg: str) -> Results:
    """Return what every scenario of a leg met at a URL, whose host must be `localhost`.

    Raises:
        subprocess.TimeoutExpired: the leg did not end.
        RuntimeError: the suite ran no scenario.
    """
    with TemporaryDirectory() as written:
        program = npm_modules() / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
        options = ["--url", url, *LEGS[leg], "--output-dir", written]
        done = subprocess.run(
            [str(node()), str(program), "server", *options],
            cwd=HERE,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60 * MINUTES_A_LEG,
        )
        scenarios = STARTED.findall(done.stdout)
        if not scenarios:
            raise RuntimeError(f"no scenario ran: {(done.stdout + done.stderr)[-2000:]}")
        checks = {each: _checks(Path(written), each) for each in scenarios}
        return Results(checks, done.returncode == 0)


def passed(results: Results) -> int:
    """How many checks succeeded."""
    return sum(each.status == "SUCCESS" for checks in results.checks.values() for each in checks)


def remarks(results: Results) -> list[tuple[str, str, str]]:
    """Everything that is neither a success nor a mere note: scenario, check and status, in order."""
    return sorted(
        (scenario, each.id, each.status)
        for scenario, checks in results.checks.items()
        for each in checks
        if each.status not in UNREMARKABLE
    )


def told(results: Results) -> str:
    """Say every remark with the suite's reason, one a line."""
    return "\n".join(
        f"{each.status} {scenario} {each.id}: {each.message}"
        for scenario, checks in results.checks.items()
        for each in checks
        if each.status not in UNREMARKABLE
    )


def _checks(written: Path, scenario: str) -> Sequence[Check]:
    """Read one scenario's checks; a scenario that broke off wrote none, which is a failure."""
    files = list(written.glob(f"server-{scenario}-[0-9][0-9][0-9][0-9]-*/checks.json"))
    if len(files) != 1:
        return (Check("no-result", "FAILURE", "the scenario broke off"),)
    return tuple(
        Check(each["id"], each["status"], each.get("errorMessage") or each["description"])
        for each in json.loads(files[0].read_bytes())
    )
