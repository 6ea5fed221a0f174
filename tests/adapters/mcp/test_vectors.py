"""Every vector of the ladder and of the results, asked of the generators, of ASGI, and in single bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from mcp_types.methods import validate_server_result

from .press import DESCRIBED, press
from .vectors import Case, cases_of
from .wire import in_process, sans_io

APP = press()
LADDER = cases_of("mcp_ladder.json")
RESULTS = cases_of("mcp_results.json")


def named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", LADDER, ids=named)
def test_a_request_is_answered_as_its_row_of_the_ladder_says(case: Case) -> None:
    assert case.settled(sans_io(APP, case.request)) == case.expected()


@pytest.mark.parametrize("case", RESULTS, ids=named)
def test_a_method_is_answered_as_its_revision_says(case: Case) -> None:
    assert case.settled(sans_io(APP, case.request)) == case.expected()


@pytest.mark.parametrize("case", [*LADDER, *RESULTS], ids=named)
def test_asgi_adds_and_loses_nothing(case: Case) -> None:
    alone = sans_io(APP, case.request)
    assert in_process(APP, case.request) == alone
    if len(case.request.body) <= DESCRIBED["bodyLimitBytes"] + 1:
        assert in_process(APP, case.request, chunk=1) == alone


VALIDATED = [case for case in [*LADDER, *RESULTS] if case.method is not None]


@pytest.mark.parametrize("case", VALIDATED, ids=named)
def test_a_golden_result_satisfies_the_schema_of_its_revision(case: Case) -> None:
    assert case.method is not None
    assert case.revision is not None
    validate_server_result(case.method, case.revision, result_of(case))


def result_of(case: Case) -> Mapping[str, Any]:
    assert case.body is not None
    return cast("Mapping[str, Any]", json.loads(case.body)["result"])


def test_the_vectors_hold_a_result_of_every_method_in_every_revision() -> None:
    methods = {"tools/list", "tools/call", "ping", "server/discover", "initialize"}
    legacy = {(method, revision) for revision in ("2025-06-18", "2025-11-25") for method in methods}
    modern = {(method, "2026-07-28") for method in ("tools/list", "tools/call", "server/discover")}
    served = legacy - {("server/discover", "2025-06-18"), ("server/discover", "2025-11-25")} | modern
    assert {(case.method, case.revision) for case in VALIDATED} == served


def test_the_app_is_the_described_one() -> None:
    entries = {entry.name: entry for entry in APP.kernel.catalog.entries}
    assert {name for name, entry in entries.items() if entry.exposed} == set(DESCRIBED["tools"])
    assert {name for name, entry in entries.items() if not entry.exposed} == set(DESCRIBED["notTools"])
    for name, described in {**DESCRIBED["tools"], **DESCRIBED["notTools"]}.items():
        assert entries[name].path == described.get("path", "")
        assert described["permission"].startswith(entries[name].permission)
        assert entries[name].title == described.get("title")
