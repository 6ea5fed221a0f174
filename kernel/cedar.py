"""The Cedar engine: schemas, entities, policy sets, validation, decisions.

Knows nothing of tools, views or steps. Allow means that the engine said Allow and reported no error.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# cedarpy declares `dict` without its parameters; what this module returns is typed in full.

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

import cedarpy
from cedarpy import pst

from .cedar_text import Policy, PolicyRefused, Uid

PolicySet = cedarpy.PolicySet
Schema = cedarpy.Schema
Entities = cedarpy.Entities

TOGETHER: Final = 256  # policies validated at once: the time for one message grows with the text around it
_PLACE: Final = re.compile(r"policy `(p[0-9]+)`")


@dataclass(frozen=True, slots=True)
class Decision:
    """What the engine said, with our own policy ids.

    INVARIANT: ``allow`` is true only when the engine allowed and ``errors`` is empty.
    """

    allow: bool
    determining: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PolicySlice:
    """An engine handle, and our ids by the engine's: an id of ours in a message would come back escaped."""

    handle: PolicySet
    ids: Mapping[str, str]

    def __str__(self) -> str:
        return str(self.handle)


def policy_set(policies: Iterable[Policy]) -> PolicySlice:
    """Return some policies as the engine takes them."""
    chosen = {f"p{position}": policy for position, policy in enumerate(policies)}
    handle = _handle(replace(policy.node, id=key) for key, policy in chosen.items())
    return PolicySlice(handle, {key: policy.id for key, policy in chosen.items()})


def _handle(nodes: Iterable[pst.Template]) -> PolicySet:
    named = {node.id: node for node in nodes}
    return PolicySet.from_pst(pst.PolicySet(templates={}, static_policies=named, template_links=()))


def schema(text: str) -> Schema:
    """Return a schema handle. Raises: PolicyRefused."""
    try:
        return Schema.from_str(text)
    except ValueError as refusal:
        raise PolicyRefused(str(refusal)) from None


def entities(document: str, of: Schema) -> Entities:
    """Return an entities handle, checked against a schema. Raises: ValueError."""
    return Entities.from_json_str(document, of)


def with_entity(held: Entities, one: str, of: Schema) -> Entities:
    """Return ``held`` and one more entity. Raises: ValueError."""
    return held.with_added_json_str(f"[{one}]", of)


def invalid(policies: Iterable[Policy], against: Schema) -> list[tuple[Policy, str]]:
    """Return policy and message for everything the strict validator refuses."""
    chosen = tuple(policies)
    parts = (chosen[at : at + TOGETHER] for at in range(0, len(chosen), TOGETHER))
    return [told for part in parts for told in _invalid(part, against)]


def _invalid(chosen: tuple[Policy, ...], against: Schema) -> list[tuple[Policy, str]]:
    # the validator reads text, where an id is a policy's place: ours are told by an annotation
    nodes = (replace(each.node, id=f"p{at}", annotations={"id": str(at)}) for at, each in enumerate(chosen))
    # takes seconds where policies are broad and actions many: whatever is served goes on meanwhile
    result = cedarpy.validate_policies(str(_handle(nodes)), against, release_gil=True)
    places = cast("dict[str, str]", result.id_annotations_by_policy_id)
    return [(chosen[int(places[each.policy_id])], each.error) for each in result.errors]


def decide(
    principal: Uid,
    action: str,
    resource: Uid,
    context: str,
    policies: PolicySlice,
    held: Entities,
    of: Schema,
) -> Decision:
    """Ask the engine. Whatever it cannot answer is a denial with an error."""
    request = {
        "principal": principal,
        "action": {"type": "Action", "id": action},
        "resource": resource,
        "context": context,
    }
    try:
        answer = cedarpy.is_authorized(request, policies.handle, held, of)
        return _decision(answer, policies.ids)
    except BaseException as fault:  # a Rust panic is a BaseException; anything unanswered denies
        if isinstance(fault, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        return Decision(False, errors=("<engine>",))


def _decision(answer: cedarpy.AuthzResult, ids: Mapping[str, str]) -> Decision:
    diagnostics, decision = answer.diagnostics, answer.decision
    errors, reasons = diagnostics.errors, diagnostics.reasons
    if errors:  # the engine may have allowed: what it names then determined nothing
        return Decision(False, errors=tuple(_erring(each, ids) for each in errors))
    if decision is cedarpy.Decision.NoDecision:
        return Decision(False, errors=("<request>",))
    named = [ids[each] for each in reasons]
    return Decision(decision is cedarpy.Decision.Allow, tuple(named if len(named) < 2 else sorted(named)))


def _erring(message: str, ids: Mapping[str, str]) -> str:
    """The policy in an engine message. The message itself can quote values and is dropped."""
    place = _PLACE.search(message)
    return ids.get(place[1], "<request>") if place else "<request>"
