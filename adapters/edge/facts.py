"""The generated facts of an app as MCP resources, each read from a provider when it is asked for.

Knows no fact itself: whoever runs the app brings the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic import BaseModel

from ...kernel.codes import CODES
from ...kernel.declare import Resource, VisibleTo, resource
from ...kernel.errors import ActionError

Provider = Callable[[], Any]
_FACTS: Final = {
    "manifest": "Everything the app declares: routes, entities, actions, queries, policies",
    "openapi.json": "The HTTP surface as OpenAPI 3.1",
    "routes": "The route table",
    "schema": "The entities with their columns, types and invariants",
}


class Coded(BaseModel):
    """Which error code to explain."""

    code: str


class Explained(BaseModel):
    """An error code: what it means, and what to do."""

    code: str
    cause: str
    fix: str


def fact_resources(
    *,
    manifest: Provider | None = None,
    openapi: Provider | None = None,
    routes: Provider | None = None,
    schema: Provider | None = None,
    visible_to: VisibleTo = None,
) -> list[Resource]:
    """Return ``nonsuch://manifest``, ``openapi.json``, ``routes`` and ``schema``, as far as provided.

    A provider takes nothing and returns what JSON can hold. ``nonsuch://errors/{code}``, which error
    answers name as their ``docs``, comes with them. They tell what the whole app declares, hidden
    tools included: give them to developers.
    """
    given = {"manifest": manifest, "openapi.json": openapi, "routes": routes, "schema": schema}
    facts = [
        resource(f"nonsuch://{name}", name, _FACTS[name], _typed(provider), visible_to=visible_to)
        for name, provider in given.items()
        if provider is not None
    ]
    told = "What an error code means, and what to do about it"
    return [*facts, resource("nonsuch://errors/{code}", "errors", told, explain, visible_to=visible_to)]


def explain(given: Coded) -> Explained:
    """Return what is registered under a code.

    Raises: ActionError.
    """
    found = CODES.get(given.code)
    if found is None:
        raise ActionError("X_NOT_FOUND", "no error has that code", "send the code as the error spelled it")
    return Explained(code=found.code, cause=found.cause, fix=found.fix)


def _typed(provider: Provider) -> Provider:
    """Return the provider with the return annotation that every reader needs, whatever it says itself."""

    def read() -> Any:
        return provider()

    return read
