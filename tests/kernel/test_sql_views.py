"""The definitions of the system's views, which nobody wrote for a guard: few are refused, each is listed."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from .queries import VECTORS, judged, lines

VIEWS: Final = lines("system_views.jsonl")
REVIEWED: Final = json.loads((VECTORS / "reviewed.json").read_text("utf-8"))["system views that are refused"]


def test_the_views_are_all_there() -> None:
    assert len(VIEWS) == len({each["view"] for each in VIEWS}) == 145
    assert REVIEWED.keys() <= {each["view"] for each in VIEWS}


@pytest.mark.parametrize("held", VIEWS, ids=lambda held: held["view"])
def test_a_definition_is_refused_only_where_it_is_listed(held: dict[str, Any]) -> None:
    verdict = judged(held["sql"]).verdict
    assert verdict.allow is (held["view"] not in REVIEWED), verdict


def test_selecting_from_a_view_is_another_question() -> None:
    """What a view of the system's reads is the system's own matter, but for those about secrets and files."""
    names = [each["view"] for each in VIEWS]
    refused = {name for name in names if not judged("TABLE " + name).verdict.allow}
    assert refused == {
        "information_schema._pg_user_mappings",
        "information_schema.user_mapping_options",
        "pg_catalog.pg_file_settings",
        "pg_catalog.pg_hba_file_rules",
        "pg_catalog.pg_ident_file_mappings",
        "pg_catalog.pg_prepared_statements",
        "pg_catalog.pg_shadow",
        "pg_catalog.pg_user_mappings",
    }
