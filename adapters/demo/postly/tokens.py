"""The demo's callers: agents of seven people, and those people who confirm what agents ask for.

Each has a token that lives as long as this process.

Holds digests only, next to the one copy of the tokens that is printed at start. Knows no wire.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ....kernel.model import Agent, Human, Principal

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
    def human(self) -> Human:
        """This person."""
        return Human(self.person, roles=frozenset({self.role}), org=self.org)

    @property
    def agent(self) -> Agent:
        """The agent that acts for this person."""
        return self.human.delegate(f"{self.person}-agent", scopes=self.scopes)


CALLERS: Final = (
    Caller("vera", "viewer", "acme", ("posts:read",)),
    Caller("eli", "editor", "acme", _READ),
    Caller("edda", "editor", "acme", _EDIT),
    Caller("stan", "staff", "acme", (*_READ, "orders:write", *_PAY)),
    Caller("ada", "admin", "acme", (*_EDIT, *_PAY, "admin:seats")),
    Caller("gil", "editor", "globex", _EDIT),
    Caller("greta", "admin", "globex", (*_EDIT, *_PAY, "admin:seats")),
)


CONFIRMERS: Final = ("ada", "greta")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens, and what each one resolves to. Neither shows in a log.

    ``by_person`` are those of people's agents, ``of_people`` those of the people themselves.
    """

    by_person: Mapping[str, str] = field(repr=False)
    of_people: Mapping[str, str] = field(repr=False)
    _digests: tuple[tuple[bytes, Principal], ...] = field(repr=False)

    def resolve(self, token: str) -> Principal | None:
        """Return whose token this is. Every digest is compared, whichever one fits."""
        digest = _digest(token)
        found: Principal | None = None
        for known, principal in self._digests:
            if hmac.compare_digest(known, digest):
                found = principal
        return found


def issue() -> Tokens:
    """Make a fresh token for every caller."""
    by_person = {each.person: _PREFIX + secrets.token_urlsafe(24) for each in CALLERS}
    of_people = {person: _PREFIX + secrets.token_urlsafe(24) for person in CONFIRMERS}
    agents = ((_digest(by_person[each.person]), each.agent) for each in CALLERS)
    people = ((_digest(of_people[each.person]), each.human) for each in CALLERS if each.person in of_people)
    return Tokens(by_person, of_people, (*agents, *people))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
