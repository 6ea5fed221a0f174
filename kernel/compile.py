"""Catalog -> Cedar text: enumerations, entity types, an action per entry, a policy per audience and grant.

Decides nothing and never parses: the texts are judged by ``cedar.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from .catalog import ANY, GET_PROMPT, READ_RESOURCE, Catalog, Entry
from .declare import Grant
from .policy_text import Lines, quoted
from .shapes import Field, record_text, referred

_NOBODY: Final = "-"


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
    """The texts of ``policies/`` that every app has."""

    entities: str
    gates: str
    policies: tuple[PolicySource, ...]


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
    return frozenset(entry.resource.name for entry in catalog.entries if entry.resource is not None)


def entry_schema(
    principals: str,
    entries: Iterable[Entry],
    fields: Iterable[Field] | None = None,
    others: frozenset[str] = frozenset(),
) -> str:
    """Return the policy gate's schema for some entries.

    ``fields`` narrows the arguments to those that policies read; nothing means all declared ones.
    Of ``others``, the models of all resources, those that these entries only refer to have no attributes.
    """
    chosen = tuple(entries)
    groups = sorted({entry.permission for entry in chosen})
    types = {entry.resource.name: entry.resource for entry in chosen if entry.resource is not None}
    lines = [principals, f"action {quoted(ANY)};"]
    lines += [f"entity {kind.name} = {record_text(kind.fields)};" for kind in types.values()]
    known_by_name = referred(field for kind in types.values() for field in kind.fields) & others
    lines += [f"entity {name};" for name in sorted(known_by_name - types.keys())]
    lines += [f"action {quoted(group)} in [{quoted(ANY)}];" for group in groups]
    lines += [_action(entry, entry.arguments if fields is None else tuple(fields)) for entry in chosen]
    return "\n".join(lines)


def _action(entry: Entry, fields: Iterable[Field]) -> str:
    resource = entry.resource.name if entry.resource is not None else "Server"
    return (
        f"action {quoted(entry.name)} in [{quoted(entry.permission)}] appliesTo {{ "
        f"principal: [Agent, Human], resource: [{resource}], context: {{ args: {record_text(fields)} }} }};"
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
