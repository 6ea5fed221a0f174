"""Which gate a policy is about: exactly one, by its action head, and only names that some call has.

Reads no condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .catalog import ANY, Catalog
from .cedar_text import Policy
from .policies import Gate, Policies
from .reading import Reading, nearest

_GATE_ACTIONS: Final[Mapping[str, Gate]] = {"see": "visibility", "present": "scope"}
_UNNAMED: Final[Mapping[Gate, tuple[str, str]]] = {
    "visibility": ("audience: it shows every tool", 'name one: `permit (.., resource == Audience::"..")`'),
    "scope": ("scope: it grants them all", 'name one: `permit (.., resource == Scope::"..")`'),
}


def confined(catalog: Catalog, reading: Reading, *, complete: bool) -> Policies:
    """Return the policies by gate, without those that are about none or about nothing declared."""
    gates: dict[Gate, list[Policy]] = {"visibility": [], "scope": [], "policy": []}
    tools, groups = frozenset(entry.name for entry in catalog.entries), catalog.permissions | {ANY}
    for policy in reading.policies:
        gate = _gate(policy, reading)
        if gate == "policy" and complete and not _known(policy, tools, groups, reading):
            continue
        if gate is not None:
            gates[gate].append(policy)
    return Policies(gates["visibility"], gates["scope"], gates["policy"])


def _gate(policy: Policy, reading: Reading) -> Gate | None:
    """Return the one gate of a policy, by its action head."""
    if policy.actions is None:
        cause = f"`{policy.id}` names no action: it would answer every gate, and show what is hidden"
        reading.refuse("X_POLICY_HEAD_UNCONFINED", reading.spot(policy, "action"), cause)
        return None
    gates: set[Gate] = {_GATE_ACTIONS.get(name, "policy") for name in policy.actions}
    if len(gates) != 1:
        cause = f"`{policy.id}` names actions of {len(gates)} gates"
        reading.refuse("X_POLICY_HEAD_UNCONFINED", reading.spot(policy, "action"), cause)
        return None
    gate = gates.pop()
    if gate != "policy" and policy.permit and len(policy.resource) < 2 and not _ours(policy, reading):
        what, fix = _UNNAMED[gate]
        cause = f"`{policy.id}` permits `{min(policy.actions)}` on no named {what}"
        reading.refuse("X_POLICY_HEAD_UNCONFINED", reading.spot(policy, "resource"), cause, fix)
        return None
    return gate


def _known(policy: Policy, tools: frozenset[str], groups: frozenset[str], reading: Reading) -> bool:
    """Refuse names that no call has: misspelt ones, and a permission under ``==``."""
    unknown = sorted((policy.actions or frozenset()) - (tools if policy.exact else tools | groups))
    for name in unknown:
        cause = f"`{policy.id}` names `{name}`, which is no tool and no permission"
        fix = nearest(name, tools | groups, "declare the action")
        if name in groups:
            cause = f"`{policy.id}` compares the action with the permission `{name}`"
            fix = f'write `action in Action::"{name}"`'
        reading.refuse("X_POLICY_ACTION_UNKNOWN", reading.spot(policy, f'"{name}"'), cause, fix)
    return not unknown


def _ours(policy: Policy, reading: Reading) -> bool:
    return reading.found[policy.id].source in reading.shipped
