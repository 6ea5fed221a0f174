"""Policy texts -> the policies of an app: parsed, linked, confined to one gate each, validated.

Every fault is found in one run and says where it is. Decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from . import cedar
from .catalog import ANY, Catalog, Entry
from .cedar import Policy
from .compile import (
    Base,
    PolicySource,
    audience_policies,
    entry_schema,
    gate_schema,
    grant_policies,
    principal_schema,
)
from .declare import Grant
from .errors import Fault, fault
from .links import Link, read_links
from .places import clause, declared, id_literal, meant, mismatched
from .policies import Gate, Policies
from .policy_text import (
    Statement,
    first_unexpected,
    place,
    schema_too_deep,
    statements,
    tokens,
    too_deep,
)

_GATE_ACTIONS: Final[Mapping[str, Gate]] = {"see": "visibility", "present": "scope"}
_CONDITION: Final = "<audience "
_OPENING: Final = re.compile(r"^for policy `policy[0-9]+`[,:] ")
_FOLLOWS: Final = "unable to find an applicable action given the policy scope constraints"
_CEDARS_OWN: Final = frozenset(
    {"Bool", "Boolean", "Entity", "Extension", "Long", "Record", "Set", "String", "datetime", "decimal"}
    | {"duration", "ipaddr"}
)


@dataclass(frozen=True, slots=True)
class Sources:
    """What an operator brings: policies, schemas of the app's own entity types, template links, grants."""

    policies: tuple[PolicySource, ...] = ()
    schemas: tuple[PolicySource, ...] = ()
    links: tuple[PolicySource, ...] = ()
    grants: tuple[Grant, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The policies of an app. Use them only when ``faults`` is empty; ``warnings`` refuse nothing."""

    policies: Policies
    base: Base
    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...]


@dataclass(slots=True)
class _Found:
    source: PolicySource
    statement: Statement


@dataclass(slots=True)
class _Reading:
    """What was read so far. Faults are collected, never raised."""

    faults: list[Fault] = field(default_factory=list[Fault])
    warnings: list[Fault] = field(default_factory=list[Fault])
    policies: list[Policy] = field(default_factory=list[Policy])
    templates: dict[str, cedar.Template] = field(default_factory=dict[str, cedar.Template])
    found: dict[str, _Found] = field(default_factory=dict[str, _Found])
    shipped: tuple[PolicySource, ...] = ()

    def refuse(self, code: str, where: str, cause: str) -> None:
        self.faults.append(fault(code, cause, where=where))


def load(catalog: Catalog, base: Base, sources: Sources, *, complete: bool = True) -> Loaded:
    """Return the policies of an app and everything wrong with them.

    1. read ours, the generated ones, the grants and the operator's  2. link templates  3. confine each
    policy to one gate  4. validate it against the schema of that gate  5. warn of what never applies.
    With ``complete=False`` the catalog lacks entries that had faults of their own; 4 and 5 are left
    out, because their faults would only repeat those.
    """
    reading = _Reading(shipped=base.policies)
    reading.faults.extend(sources.faults)
    extended = _extended(catalog, base, sources.schemas, reading)
    for source in (*base.policies, *audience_policies(catalog), *grant_policies(catalog, sources.grants)):
        _read(source, reading)
    for source in sources.policies:
        _read(source, reading)
    _link(sources.links, reading)
    gates = _confined(catalog, reading, complete=complete)
    if complete:
        _validate(catalog, extended, gates, reading)
        _warn(reading)
    return Loaded(gates, extended, tuple(reading.faults), tuple(reading.warnings))


# 1. reading


def _read(source: PolicySource, reading: _Reading) -> None:
    strain = too_deep(source.text)
    if strain is not None:
        reading.refuse("X_POLICY_TOO_DEEP", where(source, strain.at), strain.why)
        return
    found = statements(source.text)
    if source.origin.startswith(_CONDITION) and len(found) != 1:
        reading.refuse("X_POLICY_SYNTAX", source.origin, "the condition closes its own policy")
        return
    for position, statement in enumerate(found):
        _read_one(source, statement, position, reading)


def _read_one(source: PolicySource, statement: Statement, position: int, reading: _Reading) -> None:
    text = source.text[statement.start : statement.end]
    spot = where(source, statement.start)
    try:
        read = cedar.parse_one(text, f"{source.origin}#{position}", spot)
    except cedar.PolicyRefused as refusal:
        at = _stumble(source.text, statement, str(refusal))
        reading.refuse("X_POLICY_SYNTAX", where(source, at), one_line(str(refusal)))
        return
    if read.id in reading.found:
        at = id_literal(statement)
        first = reading.found[read.id]
        cause = f"`{read.id}` is the id of the policy at {where(first.source, first.statement.start)} too"
        reading.refuse("X_POLICY_ID_DUPLICATE", where(source, at), cause)
        return
    reading.found[read.id] = _Found(source, statement)
    if isinstance(read, cedar.Template):
        reading.templates[read.id] = read
    else:
        reading.policies.append(read)


def _stumble(text: str, statement: Statement, message: str) -> int:
    """Return where a parser stumbles; a fault seen only at the end is where its words are."""
    unexpected = message.startswith("unexpected")
    bracket = mismatched(statement) if unexpected else None
    if bracket is not None:  # the parser guesses what was meant and stumbles much later
        return bracket
    at = first_unexpected(text, statement, cedar.ends_early)
    if at != statement.tokens[-1].at or unexpected:
        return at
    found = meant(statement, message)
    return statement.start if found is None else found


# 2. links


def _link(sources: Iterable[PolicySource], reading: _Reading) -> None:
    linked: set[str] = set()
    for source in sources:
        links, faults = read_links(source)
        reading.faults.extend(faults)
        for link in links:
            linked.add(link.template)
            _apply(source, link, reading)
    for name in sorted(reading.templates.keys() - linked):
        found = reading.found[name]
        cause = f"`{name}` is a template that nothing links, so it decides nothing"
        reading.warnings.append(
            fault("X_POLICY_NEVER_APPLIES", cause, where=where(found.source, found.statement.start))
        )


def _apply(source: PolicySource, link: Link, reading: _Reading) -> None:
    template = reading.templates.get(link.template)
    spot = f"{source.origin}:{link.place}"
    if template is None:
        reading.refuse("X_POLICY_LINK_INVALID", spot, f"no template has the id `{link.template}`")
    elif link.id in reading.found:
        reading.refuse("X_POLICY_ID_DUPLICATE", spot, f"`{link.id}` is the id of another policy")
    elif frozenset(link.values) != template.slots:
        wanted = ", ".join(sorted(f"?{slot}" for slot in template.slots))
        reading.refuse("X_POLICY_LINK_INVALID", spot, f"`{link.template}` takes exactly {wanted}")
    else:
        reading.found[link.id] = reading.found[link.template]
        try:
            reading.policies.append(cedar.linked(template, link.id, link.values, spot))
        except cedar.PolicyRefused as refusal:
            reading.refuse("X_POLICY_LINK_INVALID", spot, one_line(str(refusal)))


# 3. confinement


def _confined(catalog: Catalog, reading: _Reading, *, complete: bool) -> Policies:
    gates: dict[Gate, list[Policy]] = {"visibility": [], "scope": [], "policy": []}
    tools, groups = {entry.name for entry in catalog.entries}, catalog.permissions | {ANY}
    for policy in reading.policies:
        gate = _gate(policy, reading)
        if gate == "policy" and complete and not _known(policy, tools, groups, reading):
            continue
        if gate is not None:
            gates[gate].append(policy)
    return Policies(gates["visibility"], gates["scope"], gates["policy"])


def _gate(policy: Policy, reading: _Reading) -> Gate | None:
    """Return the one gate of a policy, by its action head."""
    if policy.actions is None:
        cause = f"`{policy.id}` names no action: it would answer every gate, and show what is hidden"
        reading.refuse("X_POLICY_HEAD_UNCONFINED", _spot(policy, reading, "action"), cause)
        return None
    gates: set[Gate] = {_GATE_ACTIONS.get(name, "policy") for name in policy.actions}
    if len(gates) != 1:
        cause = f"`{policy.id}` names actions of {len(gates)} gates"
        reading.refuse("X_POLICY_HEAD_UNCONFINED", _spot(policy, reading, "action"), cause)
        return None
    gate = gates.pop()
    if gate != "policy" and policy.permit and len(policy.resource) < 2 and not _ours(policy, reading):
        what = "audience: it shows every tool" if gate == "visibility" else "scope: it grants them all"
        cause = f"`{policy.id}` permits `{min(policy.actions)}` on no named {what}"
        reading.refuse("X_POLICY_HEAD_UNCONFINED", _spot(policy, reading, "resource"), cause)
        return None
    return gate


def _known(policy: Policy, tools: set[str], groups: frozenset[str], reading: _Reading) -> bool:
    """Refuse names that no call has: misspelt ones, and a permission under ``==``."""
    unknown = sorted((policy.actions or frozenset()) - (tools if policy.exact else tools | groups))
    for name in unknown:
        cause = f"`{policy.id}` names `{name}`, which is no tool and no permission"
        if name in groups:
            cause = f"`{policy.id}` compares the action with the permission `{name}`: write `action in`"
        reading.refuse("X_POLICY_ACTION_UNKNOWN", _spot(policy, reading, f'"{name}"'), cause)
    return not unknown


def _ours(policy: Policy, reading: _Reading) -> bool:
    return reading.found[policy.id].source in reading.shipped


def _spot(policy: Policy, reading: _Reading, *words: str) -> str:
    found = reading.found[policy.id]
    return where(found.source, found.statement.find(*words))


def _meant(policy: Policy, message: str, against: cedar.Schema, reading: _Reading) -> str:
    """Return the place of a validator's message: its words, the clause at fault, the policy or its link."""
    found = reading.found[policy.id]
    at = meant(found.statement, message)
    if at is not None:
        return where(found.source, at)
    for number, part in enumerate(cedar.clauses(policy)):
        if cedar.invalid([part], against):
            return where(found.source, clause(found.statement, number))
    return policy.where


# 4. validation


def _validate(catalog: Catalog, base: Base, gates: Policies, reading: _Reading) -> None:
    """Validate each policy against the smallest schema that holds every action of its head."""
    _check([*gates.visibility, *gates.scope], gate_schema(catalog, base), reading)
    principals = principal_schema(catalog, base)
    kinds = {entry.resource.name: entry for entry in catalog.entries if entry.resource is not None}
    for entry in kinds.values():
        _check([], entry_schema(principals, [entry]), reading)
    by_name = _grouped((entry.name, entry) for entry in catalog.entries)
    by_group = _grouped((entry.permission, entry) for entry in catalog.entries)
    by_group[ANY] = list(catalog.entries)
    groups: dict[tuple[str, ...], tuple[list[Entry], list[Policy]]] = {}
    for policy in gates.policy:
        covered = _covered(policy, by_name, by_group)
        groups.setdefault(tuple(entry.name for entry in covered), (covered, []))[1].append(policy)
    for entries, policies in groups.values():
        _check(policies, entry_schema(principals, entries), reading)


def _check(policies: list[Policy], text: str, reading: _Reading) -> None:
    try:
        against = cedar.schema(text)
    except cedar.PolicyRefused as refusal:
        fresh = fault("X_POLICY_SCHEMA_INVALID", one_line(str(refusal)), where="<schema>")
        if fresh not in reading.faults:
            reading.faults.append(fresh)
        return
    by_id = {policy.id: policy for policy in policies}
    told: set[str] = set()
    for ident, message in cedar.invalid(policies, against):
        if ident in told and message.endswith(_FOLLOWS):
            continue
        told.add(ident)
        plain = _OPENING.sub("", one_line(message))
        spot = _meant(by_id[ident], plain, against, reading) if ident in by_id else "<schema>"
        reading.refuse("X_POLICY_INVALID", spot, f"`{ident}`: {plain}")


def _covered(
    policy: Policy, by_name: Mapping[str, list[Entry]], by_group: Mapping[str, list[Entry]]
) -> list[Entry]:
    """Return the entries that a policy's action head covers."""
    found: dict[str, Entry] = {}
    for action in sorted(policy.actions or ()):
        groups = () if policy.exact else by_group.get(action, ())
        found.update((entry.name, entry) for entry in (*by_name.get(action, ()), *groups))
    return list(found.values())


def _grouped(pairs: Iterable[tuple[str, Entry]]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for name, entry in pairs:
        found.setdefault(name, []).append(entry)
    return found


# 5. warnings


def _warn(reading: _Reading) -> None:
    if reading.faults:
        return
    never = cedar.never_applying(reading.policies)
    for policy in reading.policies:
        if policy.id in never:
            cause = f"the condition of `{policy.id}` is false whatever is asked"
            alone = [bool(cedar.never_applying([part])) for part in cedar.clauses(policy)]
            found = reading.found[policy.id]
            spot = where(found.source, clause(found.statement, alone.index(True)))
            reading.warnings.append(fault("X_POLICY_NEVER_APPLIES", cause, where=spot))


# the app's own entity types


def _extended(catalog: Catalog, base: Base, schemas: Iterable[PolicySource], reading: _Reading) -> Base:
    """Return the base with the schema files appended: all of them, or those that are sound.

    Types of one file may name those of another, so a file is blamed alone only where all fail together.
    """
    sound = [source for source in schemas if _own_types(catalog, source, reading)]
    whole = _with(base, sound)
    if _refused(catalog, whole) is None:
        return whole
    taken: list[PolicySource] = []
    for source in sound:
        refusal = _refused(catalog, _with(base, [*taken, source]))
        if refusal is None:
            taken.append(source)
        else:
            at = _schema_stumble(source.text, refusal)
            reading.refuse("X_POLICY_SCHEMA_INVALID", where(source, at), one_line(refusal))
    return _with(base, taken)


def _with(base: Base, schemas: Iterable[PolicySource]) -> Base:
    return Base("\n".join([base.entities, *(each.text for each in schemas)]), base.gates, base.policies)


def _refused(catalog: Catalog, tried: Base) -> str | None:
    """Return why the entity types make no schema."""
    try:
        cedar.schema(principal_schema(catalog, tried))
    except cedar.PolicyRefused as refusal:
        return str(refusal)
    return None


def _own_types(catalog: Catalog, source: PolicySource, reading: _Reading) -> bool:
    before = len(reading.faults)
    strain = schema_too_deep(source.text)
    if strain is not None:
        reading.refuse("X_POLICY_TOO_DEEP", where(source, strain.at), strain.why)
        return False
    models = {entry.resource.name for entry in catalog.entries if entry.resource is not None}
    for name in (name for statement in statements(source.text) for name in declared(statement)):
        if name.text in _CEDARS_OWN or name.text in models:
            whose = "a type of Cedar's own" if name.text in _CEDARS_OWN else "the model of a resource"
            cause = f"`{name.text}` is declared twice: it is {whose}"
            reading.refuse("X_POLICY_SCHEMA_INVALID", where(source, name.at), cause)
    held = list(tokens(source.text))
    for token, following in pairwise(held):
        if token.text == "action" and following.text not in (":", "?"):
            cause = "actions are declared in code, with the gate that asks about them"
            reading.refuse("X_POLICY_SCHEMA_INVALID", where(source, token.at), cause)
    return len(reading.faults) == before


def _schema_stumble(text: str, message: str) -> int:
    found = statements(text)
    if "end of input" in message:
        return found[-1].tokens[-1].at if found else 0
    for statement in found:
        if not cedar.schema_ends_early(text[statement.start : statement.end]):
            at = first_unexpected(text, statement, cedar.schema_ends_early)
            if at != statement.tokens[-1].at or "unexpected" in message:
                return at
    spots = (meant(statement, message) for statement in found)
    return max((at for at in spots if at is not None), default=0)


def where(source: PolicySource, at: int) -> str:
    """Return ``file:line:column``, or the name of a text that no file holds."""
    return source.origin if source.origin.startswith("<") else f"{source.origin}:{place(source.text, at)}"


def one_line(message: str) -> str:
    """Return an engine message on one line."""
    return " ".join(message.split())
