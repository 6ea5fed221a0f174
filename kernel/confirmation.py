"""A call that waits for a person: the states of its confirmation as a table, its changes as functions.

Knows no store, no clock and no wire: time arrives as a value, and a change returns a new row or nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from .confirm_seal import SealKeys
from .errors import Fault
from .values import value

Open = Literal["pending", "approved", "rejected", "running"]
Ended = Literal["ran", "refused", "expired", "interrupted"]
Status = Literal[Open, Ended]
When = Literal["live", "lapsed", "any"]
ActorKind = Literal["agent", "human"]

# What follows what, and whether it must happen before the row lapses or may only after. A running row
# lapses when its run has been silent for as long as a person had to decide; any other at `expires`.
# `refused`, `expired` and `interrupted` say that the caller was told, once.
TRANSITIONS: Final[Mapping[Status, Mapping[Status, When]]] = {
    "pending": {"approved": "live", "rejected": "live", "expired": "lapsed"},
    "approved": {"running": "live", "expired": "lapsed"},
    "rejected": {"refused": "any"},
    "running": {"ran": "any", "approved": "any", "interrupted": "lapsed"},
    "ran": {},
    "refused": {},
    "expired": {},
    "interrupted": {},
}
OPEN: Final = frozenset(status for status, following in TRANSITIONS.items() if following)

# What an id looks like; anything else is unknown without a look.
IDENT: Final = re.compile(r"[A-Za-z0-9_-]{16,64}")
ARGUMENTS_PURPOSE: Final = "nonsuch.confirmation.arguments"
FINGERPRINT_PURPOSE: Final = "nonsuch.confirmation.fingerprint"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """One call that waits for a person, or did. The arguments are in it sealed, and readable nowhere.

    INVARIANT: one row is open for each owner, tool and fingerprint. ``owner`` is a principal's key
    (``model.owner_key``); ``actor`` is who asked, ``person`` whom that agent acts for. ``version`` counts
    the changes.
    """

    ident: str
    server: str
    owner: str
    org: str | None
    actor: str
    actor_kind: ActorKind
    person: str | None
    tool: str
    fingerprint: str
    sealed: bytes = field(repr=False)
    created: datetime
    expires: datetime
    updated: datetime
    status: Status = "pending"
    version: int = 0
    decided_by: str | None = None
    decided_at: datetime | None = None

    @property
    def lapses(self) -> datetime:
        """From when on nothing but the end can come of it."""
        return self.updated + (self.expires - self.created) if self.status == "running" else self.expires

    def open_at(self, at: datetime) -> bool:
        """Whether a person can still decide it."""
        return self.status == "pending" and at < self.expires

    def status_at(self, at: datetime) -> Status:
        """Return what a person is shown: what has lapsed is over, even if nobody was told."""
        if at < self.lapses or self.status not in OPEN or self.status == "rejected":
            return self.status
        return "interrupted" if self.status == "running" else "expired"

    @property
    def bound(self) -> bytes:
        """What the sealed arguments are bound to: those of one row are not another's."""
        return json.dumps([self.ident, self.server, self.owner, self.tool, self.fingerprint]).encode()


def moved(row: Confirmation, to: Status, at: datetime, by: str | None = None) -> Confirmation | None:
    """Return the row in another state, if the table has it follow at this time. ``by`` is who decides."""
    when = TRANSITIONS[row.status].get(to)
    lapsed = at >= row.lapses
    if when is None or (when != "any" and (when == "lapsed") != lapsed):
        return None
    updated = max(at, row.updated)  # clocks of two processes may disagree
    decided: dict[str, Any] = {"decided_by": by, "decided_at": at} if by is not None else {}
    return replace(row, status=to, updated=updated, version=row.version + 1, **decided)


# what is declared


@dataclass(frozen=True, slots=True)
class Confirming:
    """What ``mcp_confirmations`` was told, before anything is checked. ``desk`` is the edge's own."""

    tools: tuple[str, ...]
    check: str | None
    keys: SealKeys | None
    ttl: timedelta
    where: str
    limit: int
    desk: Any
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Gated:
    """What an entry carries whose calls wait for a person.

    ``schema`` is the digest of its input schema: a confirmation is of that schema too. ``where`` is where
    people decide, ``limit`` how many undecided calls one caller may have.
    """

    keys: SealKeys
    ttl: timedelta
    where: str
    limit: int
    schema: str

    def place(self, ident: str) -> str:
        """Return where people decide one of them: ``where`` with the id in the place of ``{id}``."""
        return self.where.replace("{id}", ident)

    def fingerprint(self, owner: str, tool: str, canonical: bytes) -> str:
        """Return what one call is told from every other by: whose, of what, with which arguments.

        Keyed, because a row stores it: a plain digest of short arguments could be guessed at.
        """
        call = json.dumps([owner, tool, self.schema]).encode()
        return self.keys.fingerprint(FINGERPRINT_PURPOSE, len(call).to_bytes(4) + call + canonical)


@dataclass(frozen=True, slots=True, eq=False)
class Deciding:
    """What an entry carries that decides confirmations: it is for people alone.

    ``check`` is a Cedar condition on those that may be decided; without one there is a policy of ours.
    """

    check: str | None


# what is asked of the world


@value
class Asking:
    """A call that asks to be confirmed: whose it is, and its arguments as they were sent."""

    owner: str
    org: str | None
    actor: str
    actor_kind: ActorKind
    person: str | None
    server: str
    tool: str
    fingerprint: str
    arguments: bytes = field(repr=False)


@value
class Opened:
    """The open row of a call, and when it was looked at."""

    row: Confirmation
    at: datetime


@dataclass(slots=True)
class Slip:
    """What a call had to do with a confirmation, for its audit line: filled in on the way."""

    confirmation: str | None = None
    decision: str | None = None
