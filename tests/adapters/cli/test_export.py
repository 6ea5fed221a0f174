"""`export`: two files, or one document, that the engine reads as the app's own schema and policies."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from cedarpy import policies_to_pst

from nonsuch import App

from ..analysis.engine import faults, policies_of, schema_of
from ..analysis.parcels import parcels
from .desk import Desk

LONG = " && ".join(f"context.args.weight != {number}" for number in range(96))
SHIP = 'permit (principal, action == Action::"ship", resource)'


@pytest.fixture
def own(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Policies of an app that the desk speaks of as `--app post_app`."""
    directory = desk.at / "policies"
    directory.mkdir()
    (directory / "ship.cedar").write_text(f'@id("ship") {SHIP} when {{ context.args.weight < 9 }};')
    return served(directory, monkeypatch)


def served(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    module = ModuleType("post_app")
    app: App = parcels(directory)
    module.__dict__["mcp"] = app
    monkeypatch.setitem(sys.modules, "post_app", module)
    return directory


def test_the_document_of_text_is_read_by_the_engine(desk: Desk) -> None:
    found = desk.json("export")
    assert (found["format"], found["written"]) == ("cedar", [])
    assert found["count"] == len(desk.json("show")["policies"])
    assert faults(found["policies"], found["schema"]) == []
    assert len(policies_to_pst(found["policies"]).static_policies) == found["count"]


def test_the_document_of_json_is_read_by_the_engine_and_says_the_same(desk: Desk) -> None:
    text, found = desk.json("export"), desk.json("export", "--format", "json")
    schema = schema_of(found["schema"])
    assert str(schema) == text["schema"]
    assert faults(policies_of(found["policies"]), schema) == []
    assert sorted(found["policies"]["staticPolicies"]) == sorted(
        each["id"] for each in desk.json("show")["policies"]
    )


def test_files_hold_what_the_document_says(desk: Desk) -> None:
    for form, names in (
        ("cedar", ["schema.cedarschema", "policies.cedar"]),
        ("json", ["schema.cedarschema.json", "policies.cedar.json"]),
    ):
        found = desk.json("export", "--format", form, "--out", f"out/{form}")
        assert found["written"] == [f"out/{form}/{name}" for name in names]
        texts = [Path(each).read_text() for each in found["written"]]
        held = texts if form == "cedar" else [json.loads(each) for each in texts]
        assert held == [found["schema"], found["policies"]]
    assert sorted(each.name for each in (desk.at / "out").rglob("*") if each.is_file()) == [
        *("policies.cedar", "policies.cedar.json", "schema.cedarschema", "schema.cedarschema.json")
    ]


def test_what_is_printed_is_the_same(desk: Desk) -> None:
    found = desk.json("export", "--format", "json")
    assert json.loads(desk.run("export", "--format", "json").out) == {
        "schema": found["schema"],
        "policies": found["policies"],
    }
    text = desk.json("export")
    printed = desk.run("export").out
    assert printed == f"// schema.cedarschema\n\n{text['schema']}\n// policies.cedar\n\n{text['policies']}"
    assert (
        desk.run("export", "--out", "out").out == "wrote out/schema.cedarschema\nwrote out/policies.cedar\n"
    )


def test_it_is_never_written_where_the_app_would_read_it(desk: Desk, own: Path) -> None:
    for place in ("policies", "policies/deeper", "other/../policies"):
        found = desk.run("export", "--app", "post_app", "--out", place)
        assert (found.status, found.out) == (2, "")
        assert found.err.startswith(f"X_CLI_USAGE: `{place}` is in the directory that the app reads")
    assert [each.name for each in own.iterdir()] == ["ship.cedar"]
    assert desk.json("export", "--app", "post_app", "--out", "policies-out")["count"] > 0


def test_a_place_that_cannot_be_written_is_refused(desk: Desk) -> None:
    (desk.at / "file").write_text("")
    for place in ("file", "file/deeper"):
        found = desk.run("export", "--out", place)
        assert (found.status, found.err.split(":")[0]) == (2, "X_CLI_USAGE")


def test_a_policy_without_a_json_form_is_refused_and_the_text_is_not(
    desk: Desk, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own / "long.cedar").write_text(f'@id("long") {SHIP} when {{ {LONG} }};')
    served(own, monkeypatch)
    found = desk.run("export", "--app", "post_app", "--format", "json", "--out", "out")
    assert found.status == 2
    assert found.err.startswith(
        "X_POLICY_INVALID: a policy has no JSON form: `long`: the engine does not read"
    )
    assert found.err.endswith("fix: export it with `--format cedar`\n")
    assert not (desk.at / "out").exists()
    text = desk.json("export", "--app", "post_app")
    assert faults(text["policies"], text["schema"]) == []
