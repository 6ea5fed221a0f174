"""The Cedar engine asked directly, as any official tool would ask it: the oracle of export and import."""

# pyright: reportUnknownMemberType=false
# cedarpy declares `dict` without its parameters; what this module returns is typed in full.

from __future__ import annotations

import json
from typing import Any

import cedarpy
from cedarpy import PolicySet, Schema

Policies = str | PolicySet
Told = tuple[str, list[str], int]


def uid(kind: str, ident: str) -> dict[str, str]:
    """Return a uid in its structured form."""
    return {"type": kind, "id": ident}


def schema_of(document: Any) -> Schema:
    """Read a schema in Cedar's JSON format."""
    return Schema.from_json_str(json.dumps(document))


def policies_of(document: Any) -> PolicySet:
    """Read a policy set in Cedar's JSON format."""
    return PolicySet.from_json_str(json.dumps(document))


def faults(policies: Policies, schema: str | Schema) -> list[tuple[str, str]]:
    """Return what strict validation finds, by policy."""
    result = cedarpy.validate_policies(str(policies), schema)
    assert result.validation_passed == (not result.errors)
    return sorted((each.policy_id, each.error) for each in result.errors)


def decided(request: dict[str, Any], policies: Policies, entities: list[dict[str, Any]], of: Schema) -> Told:
    """Return the decision, what determined it, and how many policies could not be evaluated."""
    answer = cedarpy.is_authorized(request, policies, entities, of)
    assert answer.decision.name != "NoDecision", answer.diagnostics.errors
    return answer.decision.name, sorted(answer.diagnostics.reasons), len(answer.diagnostics.errors)


def asked(principal: Any, action: Any, resource: Any, context: Any) -> dict[str, Any]:
    """Return a request."""
    return {"principal": principal, "action": action, "resource": resource, "context": context}
