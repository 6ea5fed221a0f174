"""The demo's callers: agents of seven people, each with a token that lives as long as this process.

Holds digests only, next to the one copy of the tokens that is printed at start. Knows no wire.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ....kernel.model import Agent, Human

_PREFIX: Final = "postly_"
_READ: Final = ("posts:read", "orders:read")
_EDIT: Final = (*_READ, "posts:write", "orders:write")
_PAY: Final = ("payouts:read", "payouts:write")


@dataclass(frozen=True, slots=True)
class Caller:
    """A person and what the token of their agent may present."""

    person: str
    role: str
    org: str
    scopes: tuple[str, ...]

    @property
    def agent(self) -> Agent:
        """The agent that acts for this person."""
        human = Human(self.person, roles=frozenset({self.role}), org=self.org)
        return human.delegate(f"{self.person}-agent", scopes=self.scopes)


CALLERS: Final = (
    Caller("vera", "viewer", "acme", ("posts:read",)),
    Caller("eli", "editor", "acme", _READ),
    Caller("edda", "editor", "acme", _EDIT),
    Caller("stan", "staff", "acme", (*_READ, "orders:write", *_PAY)),
    Caller("ada", "admin", "acme", (*_EDIT, *_PAY, "admin:seats")),
    Caller("gil", "editor", "globex", _EDIT),
    Caller("greta", "admin", "globex", (*_EDIT, *_PAY, "admin:seats")),
)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens by person, and what each one resolves to. Neither shows in a log."""

    by_person: Mapping[str, str] = field(repr=False)
    _digests: tuple[tuple[bytes, Agent], ...] = field(repr=False)

    def resolve(self, token: str) -> Agent | None:
        """Return whose token this is. Every digest is compared, whichever one fits."""
        digest = _digest(token)
        found: Agent | None = None
        for known, agent in self._digests:
            if hmac.compare_digest(known, digest):
                found = agent
        return found


def issue() -> Tokens:
    """Make a fresh token for every caller."""
    by_person = {each.person: _PREFIX + secrets.token_urlsafe(24) for each in CALLERS}
    return Tokens(by_person, tuple((_digest(by_person[each.person]), each.agent) for each in CALLERS))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
