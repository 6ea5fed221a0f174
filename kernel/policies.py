"""The policies of an app by gate, and an index that finds the ones a request's head can satisfy.

Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from .catalog import ANY, Entry
from .cedar_text import ANYONE, Key, Policy

Gate = Literal["visibility", "scope", "policy"]


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

    def of(self, principals: Iterable[Key]) -> tuple[Policy, ...]:
        """Return the policies whose principal head these keys satisfy, over whatever resource."""
        theirs = {ANYONE, *principals}
        return tuple(policy for policy in self.policies if policy.principal in theirs)

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
