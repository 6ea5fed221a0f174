"""Every mount does everything under every server that can run it, and README's table says so."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from ..conformance.environment import ROOT
from .plan import CHECKS, OVER_ASGI, OVER_WSGI, PAIRS, Framework, planned
from .running import program
from .table import MOUNTS, README, SECTION, section

LINES: Final = 40


@pytest.fixture(scope="session")
def told() -> Any:
    """What came of every check: the program runs once, where the frameworks are installed."""
    return json.loads(program("tests.frameworks.drive"))


@pytest.mark.parametrize(
    ("framework", "server"), PAIRS, ids=[f"{each.mount}-{server}" for each, server in PAIRS]
)
def test_a_mount_does_everything_under_a_server(told: Any, framework: Framework, server: str) -> None:
    assert told[framework.mount][server] == dict.fromkeys(planned(server))


def test_the_table_is_what_the_tests_run() -> None:
    """A stale one fails: run ``python -m tests.frameworks.table``."""
    assert SECTION.findall(README.read_text()) == [section()]


def test_every_mount_is_in_the_table_and_short() -> None:
    files = {path.stem: path for path in (ROOT / MOUNTS).glob("*.py")}
    assert files.keys() == {each.mount for each in (*OVER_ASGI, *OVER_WSGI)}
    assert {name for name, path in files.items() if len(path.read_text().splitlines()) > LINES} == set()
    assert len(CHECKS) == 11
