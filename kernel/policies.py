"""Policy texts -> three gates of policies: parsed, confined to one gate each, validated, indexed.

Reports every fault at once. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from . import cedar
from .catalog import ANY, Catalog, Entry
from .cedar import ANYONE, Key, Policy
from .compile import (
    Base,
    PolicySource,
    audience_policies,
    entry_schema,
    gate_schema,
    grant_policies,
    principal_schema,
)
from .errors import Fault, fault

Gate = Literal["visibility", "scope", "policy"]
_GATE_ACTIONS: Final[Mapping[str, Gate]] = {"see": "visibility", "present": "scope"}
_CONDITION_HEAD: Final = "<audience "


class Index:
    """The policies about one action, found by scope head.

    INVARIANT: a slice holds every policy whose head the request can satisfy, so that the engine
    answers from the slice exactly what it would answer from the whole set.
    """

    def __init__(self, policies: Iterable[Policy]) -> None:
        self.policies = tuple(policies)
        self._by_head: dict[tuple[Key, Key], list[Policy]] = {}
        for policy in self.policies:
            self._by_head.setdefault((policy.principal, policy.resource), []).append(policy)
        self._named = frozenset(key for head in self._by_head for key in head if len(key) == 2)

    def named(self, key: Key) -> Key | None:
        """Return ``key`` if some head names that very entity, so that a memo need not hold every id."""
        return key if key in self._named else None

    def slice(self, principals: Iterable[Key], resources: Iterable[Key]) -> tuple[Policy, ...]:
        """Return the policies whose heads these keys (self, ancestors, type) satisfy."""
        theirs, over = {ANYONE, *principals}, {ANYONE, *resources}
        heads = ((principal, resource) for principal in theirs for resource in over)
        return tuple(policy for head in heads for policy in self._by_head.get(head, ()))

    def reads(self) -> frozenset[str] | None:
        """Return the arguments that these policies read, ``None`` when that cannot be told."""
        found: set[str] = set()
        for policy in self.policies:
            if policy.reads is None:
                return None
            found |= policy.reads
        return frozenset(found)


class Policies:
    """Every policy of an app, by gate."""

    def __init__(
        self, visibility: Iterable[Policy], scope: Iterable[Policy], policy: Iterable[Policy]
    ) -> None:
        self.visibility, self.scope, self.policy = tuple(visibility), tuple(scope), tuple(policy)
        self._by_action: dict[str, list[Policy]] = {}
        for each in self.policy:
            for action in each.actions or ():
                self._by_action.setdefault(action, []).append(each)

    def about(self, entry: Entry) -> Index:
        """Return the policy gate's policies whose action head covers an entry."""
        groups = (self._by_action.get(name, ()) for name in (entry.permission, ANY))
        found = [*self._by_action.get(entry.name, ()), *(p for group in groups for p in group if not p.exact)]
        return Index({id(each): each for each in found}.values())


def _covered(
    policy: Policy, by_name: Mapping[str, list[Entry]], by_group: Mapping[str, list[Entry]]
) -> list[Entry]:
    """Return the entries that a policy's action head covers."""
    found: dict[str, Entry] = {}
    for action in sorted(policy.actions or ()):
        groups = () if policy.exact else by_group.get(action, ())
        found.update((entry.name, entry) for entry in (*by_name.get(action, ()), *groups))
    return list(found.values())


def load(
    catalog: Catalog, base: Base, sources: Iterable[PolicySource], *, complete: bool = True
) -> tuple[Policies, tuple[Fault, ...]]:
    """Return the policies of an app and all their faults: ours, generated, granted, the operator's.

    With ``complete=False`` the catalog lacks entries that had faults of their own, so names and types
    are not checked: their faults would only repeat those.
    """
    loader = _Loader(catalog, base, complete=complete)
    for source in (*base.policies, *audience_policies(catalog), *grant_policies(catalog), *sources):
        loader.read(source)
    if complete:
        loader.validate()
    return loader.policies(), tuple(loader.faults)


class _Loader:
    def __init__(self, catalog: Catalog, base: Base, *, complete: bool) -> None:
        self.catalog, self.base, self.complete = catalog, base, complete
        self.faults: list[Fault] = []
        self._ids: set[str] = set()
        self._gates: dict[Gate, list[Policy]] = {"visibility": [], "scope": [], "policy": []}
        self._actions = {entry.name for entry in catalog.entries} | catalog.permissions | {ANY}

    def policies(self) -> Policies:
        return Policies(*(tuple(self._gates[gate]) for gate in ("visibility", "scope", "policy")))

    def read(self, source: PolicySource) -> None:
        try:
            found = cedar.parse(source.text, source.origin)
        except cedar.PolicyTooDeep as refusal:
            return self._refuse("X_POLICY_TOO_DEEP", source.origin, str(refusal))
        except cedar.PolicyRefused as refusal:
            return self._refuse("X_POLICY_SYNTAX", source.origin, _one_line(str(refusal)))
        if source.origin.startswith(_CONDITION_HEAD) and len(found) != 1:
            return self._refuse("X_POLICY_SYNTAX", source.origin, "the condition closes its own policy")
        for policy in found:
            self._place(policy)
        return None

    def _place(self, policy: Policy) -> None:
        if policy.id in self._ids:
            return self._refuse("X_POLICY_ID_DUPLICATE", policy.origin, f"`{policy.id}` is used twice")
        self._ids.add(policy.id)
        gate = self._gate(policy)
        if gate is not None:
            self._gates[gate].append(policy)
        return None

    def _gate(self, policy: Policy) -> Gate | None:
        """Return the one gate of a policy, by its action head."""
        if policy.actions is None:
            self._refuse(
                "X_POLICY_HEAD_UNCONFINED",
                policy.origin,
                f"`{policy.id}` names no action: it would answer every gate",
            )
            return None
        gates: set[Gate] = {_GATE_ACTIONS.get(name, "policy") for name in policy.actions}
        if len(gates) != 1:
            self._refuse(
                "X_POLICY_HEAD_UNCONFINED",
                policy.origin,
                f"`{policy.id}` names actions of {len(gates)} gates",
            )
            return None
        gate = gates.pop()
        judged = gate == "policy" and self.complete
        unknown = sorted(policy.actions - self._actions) if judged else []
        for name in unknown:
            self._refuse("X_POLICY_ACTION_UNKNOWN", policy.origin, f"`{policy.id}` names `{name}`")
        return None if unknown else gate

    def validate(self) -> None:
        """Validate each policy against the smallest schema that holds every action of its head."""
        principals = principal_schema(self.catalog, self.base)
        gates = gate_schema(self.catalog, self.base)
        self._check([*self._gates["visibility"], *self._gates["scope"]], gates)
        by_name = _grouped((entry.name, entry) for entry in self.catalog.entries)
        by_group = _grouped((entry.permission, entry) for entry in self.catalog.entries)
        by_group[ANY] = list(self.catalog.entries)
        groups: dict[tuple[str, ...], tuple[list[Entry], list[Policy]]] = {}
        for policy in self._gates["policy"]:
            covered = _covered(policy, by_name, by_group)
            groups.setdefault(tuple(entry.name for entry in covered), (covered, []))[1].append(policy)
        for entries, policies in groups.values():
            self._check(policies, entry_schema(principals, entries))

    def _check(self, policies: list[Policy], text: str) -> None:
        origins = {policy.id: policy.origin for policy in policies}
        try:
            against = cedar.schema(text)
        except cedar.PolicyRefused as refusal:
            return self._refuse("X_POLICY_INVALID", "<schema>", _one_line(str(refusal)))
        for ident, message in cedar.invalid(policies, against):
            self._refuse("X_POLICY_INVALID", origins.get(ident, "<schema>"), _one_line(message))
        return None

    def _refuse(self, code: str, origin: str, cause: str) -> None:
        self.faults.append(fault(code, f"{origin}: {cause}"))


def _grouped(pairs: Iterable[tuple[str, Entry]]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for name, entry in pairs:
        found.setdefault(name, []).append(entry)
    return found


def _one_line(message: str) -> str:
    return " ".join(message.split())
