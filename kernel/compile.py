"""Catalog -> Cedar text: enumerations, entity types, an action per entry, a policy per audience and grant.

Decides nothing and never parses: the texts are judged by ``cedar.py``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from .catalog import ANY, GET_PROMPT, READ_RESOURCE, Catalog, Entry
from .confirmation import Deciding
from .declare import Grant
from .policy_text import Lines, quoted
from .shapes import Field, record_text, referred

_NOBODY: Final = "-"
Reads = Callable[[Entry], Iterable[Field]]
DECIDE: Final = "decideConfirmation"  # the name, in our policies, of the action that decides confirmations


@dataclass(frozen=True)  # without slots: the lines are found when a place is first asked for, and kept
class PolicySource:
    """Cedar text and where it came from: a file name, or a name of ours in angle brackets."""

    origin: str
    text: str

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.text)

    def where(self, at: int) -> str:
        """Return ``file:line:column`` of an offset, or the name of a text that no file holds."""
        return self.origin if self.origin.startswith("<") else f"{self.origin}:{self._lines.place(at)}"


@dataclass(frozen=True, slots=True)
class Base:
    """The texts of ``policies/`` that every app has, and those of one in which people confirm calls."""

    entities: str
    gates: str
    policies: tuple[PolicySource, ...]
    confirmation: tuple[PolicySource, ...] = ()
    tools: tuple[tuple[str, PolicySource], ...] = ()  # each for the apps that serve the tool it is about


def principal_schema(catalog: Catalog, base: Base) -> str:
    """Return the entity types of every gate: enumerations, principals, the server."""
    return "\n".join(
        (
            _enumeration("Role", catalog.roles),
            _enumeration("Scope", catalog.scopes),
            _enumeration("Audience", catalog.audiences),
            base.entities,
        )
    )


def gate_schema(catalog: Catalog, base: Base) -> str:
    """Return the schema of the visibility and scope gates."""
    return principal_schema(catalog, base) + "\n" + base.gates


def models(catalog: Catalog) -> frozenset[str]:
    """Return the entity types that models of resources are."""
    return frozenset(
        each.resource.name for each in catalog.entries if each.resource and not each.resource.told
    )


def entry_schema(
    principals: str,
    entries: Iterable[Entry],
    reads: Reads | None = None,
    others: frozenset[str] = frozenset(),
) -> str:
    """Return the policy gate's schema for some entries.

    ``reads`` narrows the arguments of each to those that policies read; nothing means all declared ones.
    Of ``others``, the models of all resources, those that these entries only refer to have no attributes.
    """
    chosen = tuple(entries)
    groups = sorted({entry.permission for entry in chosen})
    resources = (entry.resource for entry in chosen)
    types = {each.name: each for each in resources if each is not None and not each.told}
    contexts = [_context(each, each.arguments if reads is None else reads(each)) for each in chosen]
    named = _shared(contexts, "\n".join((principals, *types, *others)))
    lines = [principals, f"action {quoted(ANY)};"]
    lines += [f"type {name} = {text};" for text, name in named.items()]
    lines += [f"entity {kind.name} = {record_text(kind.fields)};" for kind in types.values()]
    known_by_name = referred(field for kind in types.values() for field in kind.fields) & others
    lines += [f"entity {name};" for name in sorted(known_by_name - types.keys())]
    lines += [f"action {quoted(group)} in [{quoted(ANY)}];" for group in groups]
    lines += [_action(each, named.get(text, text)) for each, text in zip(chosen, contexts, strict=True)]
    return "\n".join(lines)


def _shared(contexts: Iterable[str], taken: str) -> dict[str, str]:
    """Return names for the contexts of more than one entry: the engine keeps a named type once.

    No name stands in ``taken``, where the entity types are named.
    """
    prefix = "Context"
    while prefix in taken:
        prefix += "_"
    shared = (text for text, count in Counter(contexts).items() if count > 1)
    return {text: f"{prefix}{number}" for number, text in enumerate(shared)}


def _context(entry: Entry, fields: Iterable[Field]) -> str:
    args = f"{{ args: {record_text(fields)} }}"
    if entry.resource is None or not entry.resource.told:
        return args
    return record_text(entry.resource.context).replace("{", f"{{ args: {record_text(fields)},", 1)


def _action(entry: Entry, context: str) -> str:
    told = entry.resource is None or entry.resource.told
    resource = "Server" if told or entry.resource is None else entry.resource.name
    # INVARIANT: no agent decides a confirmation. Whatever permits it, the engine takes no such request.
    people = "Human" if isinstance(entry.confirming, Deciding) else "Agent, Human"
    return (
        f"action {quoted(entry.name)} in [{quoted(entry.permission)}] appliesTo {{ "
        f"principal: [{people}], resource: [{resource}], context: {context} }};"
    )


def _enumeration(kind: str, names: Iterable[str]) -> str:
    listed = sorted(names) or [_NOBODY]
    return f"entity {kind} enum [{', '.join(quoted(name) for name in listed)}];"


def audience_policies(catalog: Catalog) -> list[PolicySource]:
    """Return one policy per distinct audience; an empty role list has none, which is nobody."""
    lists = [
        PolicySource(f"<audience {key}>", _audience_policy(key, f"principal in [{_roles(roles)}]"))
        for key, roles in sorted(catalog.role_audiences.items())
        if roles
    ]
    conditions = [
        PolicySource(f"<audience {key}>", _audience_policy(key, condition))
        for key, condition in sorted(catalog.conditions.items())
    ]
    return lists + conditions


def _roles(roles: Iterable[str]) -> str:
    return ", ".join(f"Role::{quoted(role)}" for role in roles)


def _audience_policy(key: str, condition: str) -> str:
    return (
        f"@id({quoted('audience ' + key)})\n"
        f'permit (principal, action == Action::"see", resource == Audience::{quoted(key)})\n'
        f"when {{ {condition}\n}};"
    )


def content_policies(catalog: Catalog) -> list[PolicySource]:
    """Return what permits resources and prompts without a policy to whoever sees them."""
    undeclared = sorted(catalog.permissions & {READ_RESOURCE, GET_PROMPT})
    return [PolicySource(f"<default {each}>", _default_policy(each)) for each in undeclared]


def _default_policy(permission: str) -> str:
    return f"@id({quoted(permission)})\npermit (principal, action in Action::{quoted(permission)}, resource);"


def confirmation_policies(catalog: Catalog, base: Base) -> list[PolicySource]:
    """Return what confines the deciding of confirmations: our policy, or the condition an app gives."""
    entries = [(each.name, each.confirming) for each in catalog.entries]
    checks = {name: told.check for name, told in entries if isinstance(told, Deciding)}
    own = [_check(name, check) for name, check in checks.items() if check is not None]
    unchecked = (name for name, check in checks.items() if check is None)
    return [*own, *(_renamed(each, name) for name in unchecked for each in base.confirmation)]


def _renamed(source: PolicySource, action: str) -> PolicySource:
    """Return our policies about the action that decides, by its name in this app."""
    if action == DECIDE:
        return source
    text = source.text.replace(f"Action::{quoted(DECIDE)}", f"Action::{quoted(action)}")
    return PolicySource(source.origin, re.sub(r'(@id\("[^"]*)', rf"\1 {action}", text))


def _check(action: str, condition: str) -> PolicySource:
    text = (
        f"@id({quoted('confirmation ' + action)})\n"
        f"forbid (principal, action == Action::{quoted(action)}, resource)\n"
        f"unless {{ {condition}\n}};"
    )
    return PolicySource(f"<confirmation {action}>", text)


def tool_policies(catalog: Catalog, base: Base) -> list[PolicySource]:
    """Return what we ship about tools of ours, of those that this app serves."""
    served = frozenset(entry.name for entry in catalog.entries)
    return [source for name, source in base.tools if name in served]


def grant_policies(catalog: Catalog, more: Iterable[Grant] = ()) -> list[PolicySource]:
    """Return one policy per distinct grant: those of the catalog, and more from elsewhere."""
    distinct = {(each.role, each.permission) for each in (*catalog.grants, *more)}
    return [
        PolicySource(f"<grant {role} {permission}>", _grant_policy(role, permission))
        for role, permission in sorted(distinct)
    ]


def _grant_policy(role: str, permission: str) -> str:
    return (
        f"@id({quoted(f'grant {role} {permission}')})\n"
        f"permit (principal in Role::{quoted(role)}, action in Action::{quoted(permission)}, resource);"
    )
