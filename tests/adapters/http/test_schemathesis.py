"""The demo under a real server, as its own OpenAPI documents describe it: every check of schemathesis.

By three callers who see different actions. The tool is the oracle; it reads the document that each is served.
`make review` lets it make more cases, and others every time.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from ...conformance.environment import ROOT, python_of

LONG: Final = os.environ.get("NONSUCH_PROFILE") == "review"
SECONDS: Final = 1_800 if LONG else 120
EXAMPLES: Final = 400 if LONG else 12  # of each operation, in each phase
# What the tool warns of: an agent decides nothing that a person is asked; and ids drawn at random are
# nobody's, which is answered as somebody else's are.
OF_PEOPLE: Final = frozenset({"POST /api/decideConfirmation"})
OF_IDS: Final = frozenset({"POST /api/orders/refund", "POST /api/payouts/preview", "POST /api/posts/publish"})
SAME_EACH_TIME: Final = () if LONG else ("--generation-deterministic",)
# Who calls, how many operations they see, and how many cases the tool must at least have made of them.
CALLERS: Final = {"vera": (5, 150), "edda": (9, 300), "stan": (11, 350)}


@dataclass(frozen=True, slots=True)
class Served:
    """Where the demo listens, and a token of each person."""

    url: str
    tokens: Mapping[str, str]


@pytest.fixture(scope="module")
def served() -> Generator[Served]:
    command = [sys.executable, "-m", "tests.adapters.http.postly_server"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        told: dict[str, Any] = json.loads(process.stdout.readline())
        yield Served(told["url"], told["tokens"])
        process.communicate(timeout=30)


@pytest.mark.parametrize("who", CALLERS)
def test_every_answer_is_one_that_the_document_tells(served: Served, who: str, tmp_path: Path) -> None:
    operations, cases = CALLERS[who]
    done = run(served, who, tmp_path)
    assert done.returncode == 0, done.stdout
    assert f"Selected: {operations}/{operations}" in done.stdout
    generated = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert generated is not None, done.stdout
    assert generated[1] == generated[2]
    assert int(generated[1]) >= cases
    warned = re.findall(r"^  - ([A-Z]+ /api/\S+)$", done.stdout, re.MULTILINE)
    assert set(warned) <= (OF_PEOPLE | OF_IDS if LONG else OF_PEOPLE), done.stdout


def test_a_document_that_promises_something_else_is_found_out(served: Served, tmp_path: Path) -> None:
    """Or the runs above would prove nothing."""
    headers = {"authorization": bearer(served, "vera")}
    document = httpx.get(f"{served.url}/api/openapi.json", headers=headers).json()
    del document["paths"]["/api/listPosts"]["get"]["responses"]["422"]
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    done = run(served, "vera", tmp_path, "openapi.json", "--url", served.url)
    assert done.returncode == 1, done.stdout
    assert "422" in done.stdout


def bearer(served: Served, who: str) -> str:
    return f"Bearer {served.tokens[who]}"


def run(served: Served, who: str, folder: Path, at: str = "", *more: str) -> subprocess.CompletedProcess[str]:
    """Run the tool with every check as one caller."""
    tool = python_of("openapi").with_name("schemathesis")
    given = ["--header", f"Authorization: {bearer(served, who)}", "--max-examples", str(EXAMPLES)]
    fixed = ["--checks", "all", *SAME_EACH_TIME, "--continue-on-failure", "--no-color"]
    return subprocess.run(
        [str(tool), "run", at or f"{served.url}/api/openapi.json", *given, *fixed, *more],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
