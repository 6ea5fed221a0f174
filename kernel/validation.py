"""Policies against the schema of what they are about, and a warning for those that never apply.

The engine's validator judges; this finds the smallest schema to ask it with, and the place of its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from . import cedar, cedar_parts
from .advice import advice, plain
from .attributes import Lacks
from .catalog import ANY, Catalog, Entry
from .cedar_parts import Path
from .cedar_text import Policy, PolicyRefused
from .compile import Base, entry_schema, gate_schema, models, principal_schema
from .errors import fault
from .places import attribute, clause, meant
from .policies import Policies
from .reading import Reading, nearest, one_line

_OPENING: Final = re.compile(r"^for policy `policy[0-9]+`[,:] ")
_FOLLOWS: Final = "unable to find an applicable action given the policy scope constraints"
_UNDECLARED: Final = re.compile(r'entity `(Role|Scope|Audience)::"(.*)"` is of an enumerated entity type')
_NOT_FOUND: Final = re.compile(r"attribute `(.*)` (?:in context|on entity type) .* not found")
_ADD: Final = {
    "Role": "add the role to `roles=`",
    "Scope": "add the scope to `scopes=`",
    "Audience": "give a tool that audience with `visible_to=`",
}


def validate(catalog: Catalog, base: Base, gates: Policies, reading: Reading) -> None:
    """Validate each policy against the smallest schema that holds every action of its head."""
    known = {"Role": catalog.roles, "Scope": catalog.scopes, "Audience": catalog.audiences}
    principals, others = principal_schema(catalog, base), models(catalog)
    _Check(gate_schema(catalog, base), Lacks(()), known, reading).run([*gates.visibility, *gates.scope])
    kinds = {each.resource.name: each for each in catalog.entries if each.resource and not each.resource.told}
    for entry in kinds.values():
        _Check(entry_schema(principals, [entry], None, others), Lacks(()), known, reading).run([])
    for entries, policies in _by_what_they_are_about(catalog, gates.policy):
        text = entry_schema(principals, entries, None, others)
        _Check(text, Lacks(entries), known, reading).run(policies)


def _by_what_they_are_about(
    catalog: Catalog, policies: Iterable[Policy]
) -> Iterable[tuple[list[Entry], list[Policy]]]:
    by_name = _grouped((entry.name, entry) for entry in catalog.entries)
    by_group = _grouped((entry.permission, entry) for entry in catalog.entries)
    by_group[ANY] = list(catalog.entries)
    groups: dict[tuple[str, ...], tuple[list[Entry], list[Policy]]] = {}
    for policy in policies:
        covered = _covered(policy, by_name, by_group)
        groups.setdefault(tuple(entry.name for entry in covered), (covered, []))[1].append(policy)
    return groups.values()


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


@dataclass(frozen=True, slots=True)
class _Check:
    """What some policies are validated against, and where their faults go."""

    text: str
    lacks: Lacks
    known: Mapping[str, frozenset[str]]
    reading: Reading

    def run(self, policies: list[Policy]) -> None:
        """Check 1. the schema  2. what no request tells  3. what the engine says  4. what is always false."""
        try:
            against = cedar.schema(self.text)
        except PolicyRefused as refusal:
            fresh = fault("X_POLICY_SCHEMA_INVALID", one_line(refusal), where="<schema>")
            if fresh not in self.reading.faults:
                self.reading.faults.append(fresh)
            return
        told = {policy.id: self._lacking(policy) for policy in policies}
        failed = {ident for ident, paths in told.items() if paths}
        for policy, message in sorted(cedar.invalid(policies, against), key=_last_what_follows):
            words, again = _OPENING.sub("", one_line(message)), policy.id in failed
            if not (again and words.endswith(_FOLLOWS)) and not _is_of(words, told[policy.id]):
                self._invalid(policy, words, against)
            failed.add(policy.id)
        sound = [policy for policy in policies if policy.node.clauses and policy.id not in failed]
        self._of_nothing(sound, against)
        if not self.reading.faults:
            self._never(sound, against)

    def _lacking(self, policy: Policy) -> set[Path]:
        found = list(self.lacks.of(policy))
        for each in found:
            self._refuse_at(policy, each.path, f"`{policy.id}` asks for {each.cause}", each.fix)
        return {each.path for each in found}

    def _refuse_at(self, policy: Policy, path: Path, cause: str, fix: str | None = None) -> None:
        found = self.reading.found[policy.id]
        at = attribute(found.statement, path)
        self.reading.refuse("X_POLICY_INVALID", found.where(at), cause, fix)

    def _invalid(self, policy: Policy, message: str, against: cedar.Schema) -> None:
        spot = self._meant(policy, message, against)
        undeclared = _UNDECLARED.search(message)
        if undeclared is None:
            cause = f"`{policy.id}`: {plain(message)}"
            self.reading.refuse("X_POLICY_INVALID", spot, cause, advice(message))
            return
        kind, name = undeclared.groups()
        code = "X_ROLE_UNKNOWN" if kind == "Role" else "X_POLICY_INVALID"
        cause = f"`{policy.id}` names the {kind.lower()} `{name}`, which the app does not declare"
        self.reading.refuse(code, spot, cause, nearest(name, self.known[kind], _ADD[kind]))

    def _meant(self, policy: Policy, message: str, against: cedar.Schema) -> str:
        """Return the place of a message: its words, the clause at fault, the policy or its link."""
        found = self.reading.found[policy.id]
        at = meant(found.statement, message)
        if at is not None:
            return found.where(at)
        for number, part in enumerate(cedar_parts.clauses(policy)):
            if cedar.invalid([part], against):
                return found.where(clause(found.statement, number))
        return policy.where

    def _of_nothing(self, policies: Iterable[Policy], against: cedar.Schema) -> None:
        """Refuse a ``has`` that is false for whatever a policy is about: what it guards never happens."""
        asked = [each for policy in policies for each in cedar_parts.tests(policy)]
        false = _false((alone for _, alone in asked), against)
        for path, alone in asked:
            if id(alone) in false:
                cause = (
                    f"`{alone.id}` asks for `{'.'.join(path)}`, which nothing that its actions are about has"
                )
                self._refuse_at(alone, path, cause)

    def _never(self, policies: Iterable[Policy], against: cedar.Schema) -> None:
        """Warn of a policy that is false for whatever it is about."""
        false = _false(policies, against)
        for policy in policies:
            if id(policy) in false:
                parts = cedar_parts.clauses(policy)
                alone = _false(parts, against)
                found = self.reading.found[policy.id]
                first = next((at for at, part in enumerate(parts) if id(part) in alone), 0)
                cause = f"the condition of `{policy.id}` is false whatever is asked"
                self.reading.warn(found.where(clause(found.statement, first)), cause)


def _last_what_follows(told: tuple[Policy, str]) -> tuple[bool, str, str]:
    """Order messages, which the engine gives in any order."""
    policy, message = told
    return message.endswith(_FOLLOWS), policy.id, message


def _false(policies: Iterable[Policy], against: cedar.Schema) -> set[int]:
    """Return which policies (by identity) have conditions that are false whatever is asked."""
    held = list(policies)
    probes = [cedar_parts.unless_false(each) for each in held]
    taken = {id(probe) for probe in probes} - {id(probe) for probe, _ in cedar.invalid(probes, against)}
    return {id(each) for each, probe in zip(held, probes, strict=True) if id(probe) in taken}


def _is_of(message: str, paths: Iterable[Path]) -> bool:
    """Whether a message only says that one of some attributes is not found."""
    found = _NOT_FOUND.search(message)
    names = tuple(found[1].split(".")) if found else ()
    return any(names == path[-len(names) :] for path in paths if names)
