"""What a request costs its caller, and why it is refused when that is more than is left: one rule for all.

Counts nothing itself and knows no wire but HTTP's statuses.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..kernel.catalog import Entry
from ..kernel.meter import RateClass, Verdict, key_of
from ..kernel.model import Principal
from ..kernel.steps import Returned, Steps, TakeToken
from .door import Door


@dataclass(frozen=True, slots=True)
class Spent:
    """Why a request is not taken up, and when it may come again; never whose bucket it was."""

    code: str
    retry_after: int

    @property
    def status(self) -> int:
        """429 (RFC 6585 4) where the allowance is spent; 503 where nobody could count."""
        return 429 if self.code == "X_MCP_RATE_LIMITED" else 503

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """When to come again (RFC 9110 10.2.3)."""
        return (("retry-after", str(self.retry_after)),)


def class_of(entry: Entry | None) -> RateClass:
    """Return what a call costs: a write if it is destructive, or if its caller sees nothing of that name.

    Comes of the caller's view alone, so that hidden and absent names cost the same.
    """
    return "read" if entry is not None and not entry.destructive else "write"


def metered(door: Door, kind: RateClass, who: Principal) -> Steps[Spent | None]:
    """Count one request of a caller; ``None`` lets it pass. What nobody can count does not pass."""
    if door.rates is None:
        return None
    answer = yield TakeToken(key_of(door.server, kind, who), door.rates.of(kind))
    verdict = answer.value if isinstance(answer, Returned) else None
    if not isinstance(verdict, Verdict):
        return Spent("X_RATE_STORE_FAILED", 1)
    return None if verdict.passes else Spent("X_MCP_RATE_LIMITED", verdict.retry_after)
