"""The one judge: visibility, scope and policy decisions for a principal, memoised where nothing can change.

Knows Cedar through ``cedar.py`` only, and no step, wire or store. A principal is a value: another
role is another key, so no memo outlives a revoked right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pydantic import BaseModel
from pydantic_core import to_json

from . import cedar, cedar_parts
from .catalog import Catalog, Entry, ResourceType
from .cedar import Decision, Entities, Schema
from .cedar_text import Key, Policy
from .compile import Base, entry_schema, gate_schema, models, principal_schema
from .model import Agent, Principal, parties
from .policies import Index, Policies
from .shapes import Field, Unencodable, encode_fields, entity, uid
from .strict_json import Json

MAX_CONTEXT_BYTES: Final = 65_536
MAX_FACTS_BYTES: Final = 262_144
CALLERS: Final = 4_096
PACK: Final = 32
PAIRS: Final = 16_384
HANDLES: Final = 2_048  # of the engine: tens of kilobytes each, held by these memos alone
NO_ARGUMENTS: Final = '{"args":{}}'

Facts = frozenset[str]
_NO_FACTS: Final[Facts] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """A principal, and per party the predicate audiences whose function answered the literal ``True``.

    INVARIANT: a judge makes one Caller for equal members, so that memos compare callers by identity.
    """

    principal: Principal
    facts: tuple[Facts, ...]


@dataclass(frozen=True, slots=True, eq=False)
class EntryGate:
    """What the policy gate needs for one entry, built when the entry is first called."""

    schema: Schema
    index: Index
    fields: tuple[Field, ...]
    kind: str


Pairs = tuple[tuple[Mapping[str, Json], tuple[Policy, ...]], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What is known of a decision before resource and arguments: the parties, and their policies.

    Holds no handle of the engine: there are more of these than of those.
    """

    parties: Pairs
    blind: Pairs
    reads_resource: bool


class Judge:
    """Answers the three questions; everything else asks it."""

    def __init__(self, catalog: Catalog, base: Base, policies: Policies) -> None:
        self._catalog, self._policies = catalog, policies
        self.server = catalog.server
        self._principals, self._models = principal_schema(catalog, base), models(catalog)
        self._gates = cedar.schema(gate_schema(catalog, base))
        self._see, self._present = Index(policies.visibility), Index(policies.scope)
        self._audiences = sorted(catalog.audiences)
        self.annotations: Mapping[str, Mapping[str, str]] = {p.id: p.annotations for p in policies.policy}
        self.by_id: Mapping[str, Policy] = {p.id: p for p in policies.policy}
        self._packs = _packed(catalog.entries)
        self._plain = lru_cache(CALLERS)(self._without_facts)
        self._known = lru_cache(CALLERS)(Caller)
        self.visible = lru_cache(CALLERS)(self._visible)
        self.presents = lru_cache(CALLERS)(self._presents)
        self.gate = lru_cache(None)(self._gate)
        self._reads = lru_cache(None)(self._fields)
        self._schema = lru_cache(None)(self._schema_of)
        self._held = lru_cache(HANDLES)(self._entities)
        self._asked = lru_cache(PAIRS)(self._ask)
        self._settled = lru_cache(PAIRS)(self._settle)
        self._slice = lru_cache(HANDLES)(cedar.policy_set)
        self.admits = lru_cache(PAIRS)(self._admits)

    def forget(self) -> None:
        """Let go of what is remembered, for a judge that others follow; what still asks it is answered."""
        for memo in (self._plain, self._known, self.visible, self.presents, self._held, self._asked):
            memo.cache_clear()
        for other in (self._settled, self._slice, self.admits):
            other.cache_clear()

    def caller(self, principal: Principal) -> Caller:
        """Return the principal with the facts that application predicates know of it."""
        predicates = self._catalog.predicates
        if not predicates:
            return self._plain(principal)
        asked = (frozenset(n for n, ask in predicates.items() if _admits(ask, p)) for p in parties(principal))
        return self._known(principal, tuple(asked))

    def _without_facts(self, principal: Principal) -> Caller:
        return Caller(principal, tuple(_NO_FACTS for _ in parties(principal)))

    # gates 1 and 2: the caller only

    def _visible(self, caller: Caller) -> frozenset[str]:
        """Return the audiences that every party belongs to. An error hides."""
        return frozenset(
            name for name in self._audiences if self._all(caller, "see", "Audience", name, self._see).allow
        )

    def _presents(self, caller: Caller, scope: str) -> Decision:
        """Decide whether every party presents a scope."""
        return self._all(caller, "present", "Scope", scope, self._present)

    def _all(self, caller: Caller, action: str, kind: str, name: str, index: Index) -> Decision:
        held = self._held(caller, self._gates)
        decision = Decision(False)
        for party in parties(caller.principal):
            policies = self._slice(index.slice(_keys(party), ((kind,), (kind, name))))
            decision = cedar.decide(_uid(party), action, uid(kind, name), "{}", policies, held, self._gates)
            if not decision.allow:
                return decision
        return decision

    # gate 3: the caller, the resource, the arguments that policies read

    def context(self, entry: Entry, input: BaseModel) -> str:
        """Return the Cedar context of a call: the arguments that some policy of the entry reads.

        Raises: Unencodable, with the argument's path.
        """
        fields = self.gate(entry).fields
        if not fields:
            return NO_ARGUMENTS
        return _encode({"args": encode_fields(fields, input)}, MAX_CONTEXT_BYTES)

    def permits(
        self, caller: Caller, entry: Entry, resource: BaseModel | None, ident: str, context: str
    ) -> Decision:
        """Decide a call for every party.

        ``resource=None`` where one is acted on says that there is no such resource: policies that read
        it cannot be asked, which denies; if none does, the answer is theirs.
        """
        if entry.resource is None:  # nothing but the caller and the arguments can change the answer
            if context is NO_ARGUMENTS:
                return self._settled(caller, entry, ident)
            return self._decide(caller, entry, ident, context, None)
        if resource is None:
            return self._of_missing(caller, entry, ident, context)
        self.gate(entry)  # outside: what is wrong with it is no fault of the resource
        try:
            if entry.resource.told:
                return self._decide(
                    caller, entry, self.server, _told(entry.resource, context, resource), None
                )
            facts = _facts(entry.resource, ident, resource)
            return self._decide(caller, entry, ident, context, facts)
        except (Unencodable, ValueError):
            return Decision(False, errors=("<resource>",))

    def _admits(self, caller: Caller, entry: Entry) -> Decision:
        """Decide whether anything could permit a call to its caller, before resource and arguments are read.

        Never denies what ``permits`` would allow; what it allows ``permits`` may deny. What cannot be
        decided by the caller alone, as a condition that needs the rest first, is left to ``permits``.
        """
        gate, schema = self.gate(entry), self._schema(self._packs[entry], bare=True)
        decision, held, context = Decision(False), self._held(caller, schema), _untold(entry)
        for party in parties(caller.principal):
            said = (cedar_parts.of_caller(each) for each in gate.index.of(_keys(party)))
            policies = cedar.policy_set(each for each in said if each is not None)
            over = uid(gate.kind, self.server)
            decision = cedar.decide(_uid(party), entry.name, over, context, policies, held, schema)
            if not (decision.allow or decision.errors):
                return decision
        return decision if decision.allow else Decision(True)

    def facts(self, entry: Entry, resource: BaseModel | None, ident: str) -> str | None:
        """Return what ``permits`` judged of a resource, for ``permits_as_then``.

        Raises: Unencodable or ValueError, for what ``permits`` denied.
        """
        kind = entry.resource
        return None if kind is None or resource is None or kind.told else _facts(kind, ident, resource)

    def permits_as_then(
        self, caller: Caller, entry: Entry, ident: str, facts: str | None, context: str
    ) -> Decision:
        """Decide a call again by the policies of today, on the facts that it was judged on before."""
        try:
            return self._decide(caller, entry, ident, context, facts)
        except ValueError:  # facts of a model that has other members by now
            return Decision(False, errors=("<resource>",))

    def _of_missing(self, caller: Caller, entry: Entry, ident: str, context: str) -> Decision:
        """Ask what can be asked of a resource that is not there: forbids still speak, permits do not."""
        decision = self._decide(caller, entry, ident, context, None, blind=True)
        if decision.determining and not decision.allow:
            return decision
        readers = self._asked(caller, entry, None).reads_resource
        return Decision(False, errors=("<missing>",)) if readers else decision

    def _settle(self, caller: Caller, entry: Entry, ident: str) -> Decision:
        return self._decide(caller, entry, ident, NO_ARGUMENTS, None)

    def _decide(
        self,
        caller: Caller,
        entry: Entry,
        ident: str,
        context: str,
        facts: str | None,
        *,
        blind: bool = False,
    ) -> Decision:
        gate = self.gate(entry)
        asked = self._asked(caller, entry, gate.index.named((gate.kind, ident)))
        held = self._held(caller, gate.schema)
        if facts is not None:
            held = cedar.with_entity(held, facts, gate.schema)
        over = uid(gate.kind, ident)
        decision = Decision(False)
        for party, policies in asked.blind if blind else asked.parties:
            chosen = self._slice(policies)
            decision = cedar.decide(party, entry.name, over, context, chosen, held, gate.schema)
            if not decision.allow:
                return decision
        return decision

    def _ask(self, caller: Caller, entry: Entry, over: Key | None) -> Asked:
        gate = self.gate(entry)
        resources = [(gate.kind,), *([over] if over else [])]
        everyone = parties(caller.principal)
        slices = [gate.index.slice(_keys(party), resources) for party in everyone]
        blind = [tuple(policy for policy in each if not policy.reads_resource) for each in slices]
        return Asked(_paired(everyone, slices), _paired(everyone, blind), blind != slices)

    def _gate(self, entry: Entry) -> EntryGate:
        index, schema = self._policies.about(entry), self._schema(self._packs[entry])
        return EntryGate(schema, index, self._reads(entry), resource_kind(entry))

    def _fields(self, entry: Entry) -> tuple[Field, ...]:
        """Return the arguments of an entry that some policy about it reads."""
        reads = self._policies.about(entry).reads()
        return tuple(each for each in entry.arguments if reads is None or each.name in reads)

    def _schema_of(self, pack: tuple[Entry, ...], *, bare: bool = False) -> Schema:
        """Return one schema for a pack, ``bare`` of arguments: most of its time goes to its base."""
        reads = _nothing if bare else self._reads
        return cedar.schema(entry_schema(self._principals, pack, reads, self._models))

    # entities

    def _entities(self, caller: Caller, of: Schema) -> Entities:
        known = zip(parties(caller.principal), caller.facts, strict=True)
        return cedar.entities(_encode([self._entity(party, facts) for party, facts in known]), of)

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


def _paired(everyone: Iterable[Principal], slices: Iterable[tuple[Policy, ...]]) -> Pairs:
    return tuple((_uid(party), each) for party, each in zip(everyone, slices, strict=True))


def _packed(entries: Iterable[Entry]) -> dict[Entry, tuple[Entry, ...]]:
    """Return the entries that share a schema: those that act on one type, in packs."""
    by_kind: dict[str, list[Entry]] = {}
    for entry in entries:
        by_kind.setdefault(resource_kind(entry), []).append(entry)
    packs = (tuple(group[at : at + PACK]) for group in by_kind.values() for at in range(0, len(group), PACK))
    return {entry: pack for pack in packs for entry in pack}


def _nothing(_: Entry) -> tuple[Field, ...]:
    return ()


def resource_kind(entry: Entry) -> str:
    """Return the Cedar entity type that an entry acts on."""
    return entry.resource.name if entry.resource is not None and not entry.resource.told else "Server"


def _admits(ask: object, party: Principal) -> bool:
    try:
        return callable(ask) and ask(party) is True
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  (application code: any fault of it hides)
        return False


def _encode(value: object, limit: int | None = None) -> str:
    try:
        text = to_json(value)
    except ValueError:  # half a surrogate pair, from a row or an in-process call
        raise Unencodable("holds text that JSON cannot hold") from None
    if limit is not None and len(text) > limit:
        raise Unencodable(f"what policies read of it exceeds {limit} bytes")
    return text.decode()


def _facts(kind: ResourceType, ident: str, resource: BaseModel) -> str:
    return _encode(entity(kind.name, ident, encode_fields(kind.fields, resource)), MAX_FACTS_BYTES)


def _untold(entry: Entry) -> str:
    """Return a context that fits the schema before anything is told; what stands in it, nobody reads."""
    kind = entry.resource
    return _told(kind, NO_ARGUMENTS, kind.model()) if kind is not None and kind.told else NO_ARGUMENTS


def _told(kind: ResourceType, context: str, told: BaseModel) -> str:
    """Return a context with what was made of the arguments."""
    facts = _encode(encode_fields(kind.context, told), MAX_FACTS_BYTES)
    return context if facts == "{}" else f"{context[:-1]},{facts[1:]}"


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
