"""Every vector of the ladder and of the results, asked of the generators, of ASGI, and in single bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from mcp_types.methods import validate_server_result

from nonsuch.kernel.catalog import Entry

from .asking import LEGACY, MODERN, REVISIONS
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
    lists = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
    always = [*lists, "tools/call", "resources/read", "prompts/get", "completion/complete"]
    older = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
    served = {(method, revision) for revision in REVISIONS for method in always}
    served |= {(method, revision) for revision in LEGACY for method in older}
    served |= {("server/discover", MODERN)}
    assert {(case.method, case.revision) for case in VALIDATED} == served


def test_the_app_is_the_described_one() -> None:
    entries = {entry.name: entry for entry in APP.kernel.catalog.entries}
    assert {name for name, entry in entries.items() if entry.exposed} == set(DESCRIBED["tools"])
    content = {
        f"{kind}/{name}": each for kind in ("resources", "prompts") for name, each in DESCRIBED[kind].items()
    }
    assert {name for name, entry in entries.items() if not entry.exposed} == {
        *DESCRIBED["notTools"],
        *content,
    }
    for name, described in {**DESCRIBED["tools"], **DESCRIBED["notTools"]}.items():
        assert entries[name].path == described.get("path", "")
        assert described["permission"].startswith(entries[name].permission)
        assert entries[name].title == described.get("title")
    for name, described in content.items():
        as_described(entries[name], described)


def as_described(entry: Entry, described: Mapping[str, Any]) -> None:
    """Assert that a resource or a prompt is the one that the vectors describe."""
    assert described.get("permission", entry.permission).startswith(entry.permission)
    assert ("permission" in described) is not entry.permission.startswith("nonsuch:")
    assert (entry.title, entry.scope) == (described.get("title"), described.get("scope"))
    assert (entry.audience == "everyone") is ("visibleTo" not in described)
    assert len(entry.icons) == described.get("icons", 0)
    assert described.get("completes", {}).keys() <= entry.completers.keys()
    if entry.place is not None:
        assert (entry.place.uri, entry.place.mime_type) == (described["uri"], described["mimeType"])
