"""The protocol's own conformance suite against the fixture: every leg, over ASGI and over WSGI threads.

The suite is the oracle. What it remarks on is written down here, whole; anything else fails.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from .serving import DOORS, served
from .suite import LEGS, passed, remarks, run, told

Remark = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Expected:
    """What one leg comes to: how many scenarios, how many checks succeed, and everything it remarks on."""

    scenarios: int
    passed: int
    remarks: Sequence[Remark]


# No session is ever issued: the suite skips what it would do with one, with a warning.
SESSIONLESS: Final[Sequence[Remark]] = (
    ("server-sse-multiple-streams", "server-sse-multiple-streams-session", "WARNING"),
    ("server-sse-polling", "server-sse-polling-session", "WARNING"),
)
# The suite has this scenario and always skips it.
TASKS: Final[Sequence[Remark]] = (("tasks-status-notifications", "tasks-status-notifications", "SKIPPED"),)
EXPECTED: Final[Mapping[str, Expected]] = {
    "required 2025-11-25": Expected(33, 75, SESSIONLESS),
    "required 2026-07-28": Expected(50, 196, TASKS),
    "all 2025-06-18": Expected(27, 52, ()),
    "all 2025-11-25": Expected(33, 75, SESSIONLESS),
    "all 2026-07-28": Expected(40, 152, ()),
}


@pytest.fixture(params=DOORS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with served(request.param) as address:
        yield address


@pytest.mark.parametrize("leg", LEGS)
def test_a_leg_of_the_suite_meets_what_is_written_down(leg: str, url: str) -> None:
    results = run(url, leg)
    expected = EXPECTED[leg]
    assert remarks(results) == sorted(expected.remarks), told(results)
    assert (len(results.checks), passed(results)) == (expected.scenarios, expected.passed)
    assert results.conforms


def test_a_server_that_is_not_there_fails_every_scenario() -> None:
    results = run("http://localhost:9/mcp", "all 2025-06-18")
    failed = {scenario for scenario, _, status in remarks(results) if status == "FAILURE"}
    assert failed == set(results.checks)
    assert not results.conforms
