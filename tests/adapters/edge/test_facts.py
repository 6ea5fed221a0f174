"""Facts of an app as resources, read from their providers when they are asked for; error codes explained."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nonsuch import Agent, App, Registry, define_app_mcp, fact_resources
from nonsuch.adapters.edge.run import Edge, Running, run
from nonsuch.kernel.codes import CODES
from nonsuch.kernel.model import Failed, Hidden, Ok, Outcome

DEVELOPER, CALLER = Agent("d", roles={"developer"}), Agent("c")


def app_of(**given: Any) -> App:
    return define_app_mcp(Registry(), name="x", resources=fact_resources(**given))


def read(app: App, uri: str, who: Agent = DEVELOPER) -> Outcome:
    kernel = app.kernel
    return asyncio.run(run(kernel.read(kernel.view_for(who), uri), Edge(Running(app))))


def value(app: App, uri: str) -> object:
    outcome = read(app, uri)
    assert isinstance(outcome, Ok), outcome
    return outcome.value


def test_a_fact_is_what_its_provider_returns_when_it_is_asked() -> None:
    held: list[Any] = [{"a": [1, None]}, "words", 7, {"openapi": "3.1.0"}]
    app = app_of(
        manifest=lambda: held[0], routes=lambda: held[1], schema=lambda: held[2], openapi=lambda: held[3]
    )
    places = [entry.place.uri for entry in app.kernel.catalog.entries if entry.place is not None]
    assert places == [
        "nonsuch://manifest",
        "nonsuch://openapi.json",
        "nonsuch://routes",
        "nonsuch://schema",
        "nonsuch://errors/{code}",
    ]
    assert [
        value(app, f"nonsuch://{each}") for each in ("manifest", "routes", "schema", "openapi.json")
    ] == held
    held[2] = 8
    assert value(app, "nonsuch://schema") == 8


def test_a_fact_that_nobody_provides_is_absent() -> None:
    app = app_of()
    assert len(app.kernel.catalog.entries) == 1
    assert read(app, "nonsuch://manifest") == Hidden("nonsuch://manifest")


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained_where_its_docs_say(code: str) -> None:
    assert value(APP, CODES[code].docs) == {"code": code, "cause": CODES[code].cause, "fix": CODES[code].fix}


APP = app_of()


@pytest.mark.parametrize("code", ["X_NOTHING", "x_internal", "X_INTERNAL ", "%58"])
def test_a_code_that_is_none_is_not_found(code: str) -> None:
    outcome = read(APP, "nonsuch://errors/" + code.replace(" ", "%20"))
    assert isinstance(outcome, Failed)
    assert outcome.code == "X_NOT_FOUND"


def test_facts_are_for_those_that_they_are_given_to() -> None:
    app = app_of(manifest=dict, visible_to=["developer"])
    for uri in ("nonsuch://manifest", "nonsuch://errors/X_INTERNAL"):
        assert isinstance(read(app, uri), Ok)
        assert read(app, uri, CALLER) == Hidden(uri)


def test_a_provider_that_fails_is_told_to_nobody() -> None:
    def fails() -> object:
        raise KeyError("secret")

    outcome = read(app_of(manifest=fails), "nonsuch://manifest")
    assert isinstance(outcome, Failed)
    assert outcome.code == "X_INTERNAL"
