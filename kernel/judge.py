"""The one judge: visibility, scope and policy decisions for a principal, memoised where nothing can change.

Knows Cedar through ``cedar.py`` only, and no step, wire or store. A principal is a value: another
role is another key, so no memo outlives a revoked right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pydantic import BaseModel

from . import cedar
from .catalog import Catalog, Entry
from .cedar import Decision, Entities, Key, PolicySet, Schema
from .compile import Base, entry_schema, gate_schema, principal_schema
from .model import Agent, Principal, parties
from .policies import Index, Policies
from .shapes import Field, Unencodable, encode_fields, entity, uid
from .strict_json import Json

MAX_CONTEXT_BYTES: Final = 65_536
CALLERS: Final = 4_096
SHAPES: Final = 1_024
_EMPTY: Final = "{}"

Facts = frozenset[str]
_NO_FACTS: Final[Facts] = frozenset()


@dataclass(frozen=True, slots=True)
class Caller:
    """A principal, and per party the predicate audiences whose function answered the literal ``True``."""

    principal: Principal
    facts: tuple[Facts, ...]


@dataclass(frozen=True, slots=True, eq=False)
class EntryGate:
    """What the policy gate needs for one entry, built when the entry is first called."""

    schema: Schema
    index: Index
    fields: tuple[Field, ...]


class Judge:
    """Answers the three questions; everything else asks it."""

    def __init__(self, catalog: Catalog, base: Base, policies: Policies) -> None:
        self._catalog, self._policies = catalog, policies
        self.server = catalog.server
        self._principals = principal_schema(catalog, base)
        self._gates = cedar.schema(gate_schema(catalog, base))
        self._see, self._present = Index(policies.visibility), Index(policies.scope)
        self._audiences = sorted(catalog.audiences)
        self.annotations: Mapping[str, Mapping[str, str]] = {p.id: p.annotations for p in policies.policy}
        self.visible = lru_cache(CALLERS)(self._visible)
        self.presents = lru_cache(CALLERS)(self._presents)
        self.gate = lru_cache(SHAPES)(self._gate)
        self._held = lru_cache(CALLERS)(self._caller_entities)
        self._slice = lru_cache(CALLERS)(self._slice_handle)
        self._handle = lru_cache(CALLERS)(cedar.policy_set)

    def caller(self, principal: Principal) -> Caller:
        """Return the principal with the facts that application predicates know of it."""
        predicates = self._catalog.predicates
        if not predicates:
            return Caller(principal, tuple(_NO_FACTS for _ in parties(principal)))
        asked = (frozenset(n for n, ask in predicates.items() if _admits(ask, p)) for p in parties(principal))
        return Caller(principal, tuple(asked))

    # gates 1 and 2: the caller only

    def _visible(self, caller: Caller) -> frozenset[str]:
        """Return the audiences that every party belongs to. An error hides."""
        held = self._entities(caller, self._gates)
        seen = (
            name
            for name in self._audiences
            if self._all(caller, "see", "Audience", name, held, self._see).allow
        )
        return frozenset(seen)

    def _presents(self, caller: Caller, scope: str) -> Decision:
        """Decide whether every party presents a scope."""
        return self._all(
            caller, "present", "Scope", scope, self._entities(caller, self._gates), self._present
        )

    def _all(
        self, caller: Caller, action: str, kind: str, name: str, held: Entities, index: Index
    ) -> Decision:
        decision = Decision(False)
        for party in parties(caller.principal):
            policies = self._handle(index.slice(_keys(party), ((kind,), (kind, name))))
            decision = cedar.decide(_uid(party), action, uid(kind, name), _EMPTY, policies, held, self._gates)
            if not decision.allow:
                return decision
        return decision

    # gate 3: the caller, the resource, the arguments that policies read

    def context(self, entry: Entry, input: BaseModel) -> str:
        """Return the Cedar context of a call: the arguments that some policy of the entry reads.

        Raises: Unencodable, with the argument's path.
        """
        text = json.dumps({"args": encode_fields(self.gate(entry).fields, input)})
        if len(text) > MAX_CONTEXT_BYTES:
            raise Unencodable(f"the arguments that policies read exceed {MAX_CONTEXT_BYTES} bytes")
        return text

    def permits(
        self, caller: Caller, entry: Entry, resource: BaseModel | None, ident: str, context: str
    ) -> Decision:
        """Decide a call for every party. ``resource=None`` asks about a resource without facts."""
        kind = resource_kind(entry)
        gate = self.gate(entry)
        try:
            held = self._with_resource(caller, entry, resource, ident)
        except (Unencodable, ValueError):
            return Decision(False, errors=("<resource>",))
        over = gate.index.named((kind, ident))
        decision = Decision(False)
        for party in parties(caller.principal):
            policies = self._slice(
                entry, type(party).__name__, party.roles, gate.index.named(_self(party)), over
            )
            decision = cedar.decide(
                _uid(party), entry.name, uid(kind, ident), context, policies, held, gate.schema
            )
            if not decision.allow:
                return decision
        return decision

    def _with_resource(
        self, caller: Caller, entry: Entry, resource: BaseModel | None, ident: str
    ) -> Entities:
        held = self._held(caller, entry)
        if entry.resource is None or resource is None:
            return held
        facts = entity(entry.resource.name, ident, encode_fields(entry.resource.fields, resource))
        return cedar.with_entity(held, json.dumps(facts), self.gate(entry).schema)

    def _gate(self, entry: Entry) -> EntryGate:
        index = self._policies.about(entry)
        reads = index.reads()
        fields = tuple(each for each in entry.arguments if reads is None or each.name in reads)
        return EntryGate(cedar.schema(entry_schema(self._principals, [entry], fields)), index, fields)

    def _slice_handle(
        self, entry: Entry, kind: str, roles: frozenset[str], own: Key | None, over: Key | None
    ) -> PolicySet:
        principals = [(kind,), *(("Role", role) for role in roles), *([own] if own else [])]
        resources = [(resource_kind(entry),), *([over] if over else [])]
        return self._handle(self.gate(entry).index.slice(principals, resources))

    # entities

    def _caller_entities(self, caller: Caller, entry: Entry) -> Entities:
        return self._entities(caller, self.gate(entry).schema)

    def _entities(self, caller: Caller, of: Schema) -> Entities:
        known = zip(parties(caller.principal), caller.facts, strict=True)
        return cedar.entities(json.dumps([self._entity(party, facts) for party, facts in known]), of)

    def _entity(self, party: Principal, audiences: Facts) -> Json:
        """Encode one party. Roles and scopes that no declaration names match no policy and are left out."""
        attributes: dict[str, Json] = {"id": party.id, "audiences": _uids("Audience", audiences)}
        if party.org is not None:
            attributes["org"] = party.org
        if party.scopes is not None:
            attributes["scopes"] = _uids("Scope", party.scopes & self._catalog.scopes)
        person = party.acts_for if isinstance(party, Agent) else party
        if person is not None:
            attributes["user"] = person.id
        if isinstance(party, Agent) and person is not None:
            attributes["actsFor"] = {"__entity": uid("Human", person.id)}
        return entity(type(party).__name__, party.id, attributes, _parents(party.roles & self._catalog.roles))


def resource_kind(entry: Entry) -> str:
    """Return the Cedar entity type that an entry acts on."""
    return entry.resource.name if entry.resource is not None else "Server"


def _admits(ask: object, party: Principal) -> bool:
    try:
        return callable(ask) and ask(party) is True
    except Exception:  # noqa: BLE001  (application code: any fault of it hides)
        return False


def _uid(party: Principal) -> dict[str, Json]:
    return uid(type(party).__name__, party.id)


def _self(party: Principal) -> Key:
    return (type(party).__name__, party.id)


def _keys(party: Principal) -> list[Key]:
    return [(type(party).__name__,), _self(party), *(("Role", role) for role in party.roles)]


def _uids(kind: str, names: Iterable[str]) -> Json:
    return [{"__entity": uid(kind, name)} for name in sorted(names)]


def _parents(roles: Iterable[str]) -> list[Json]:
    return [uid("Role", role) for role in sorted(roles)]
