"""How often: classes, keys and the arithmetic of one bucket, as pure functions of a state and a time.

Knows no clock and no store; a store applies ``take`` to one key at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from .model import Principal

RateClass = Literal["read", "write", "unauthenticated"]
NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Rate:
    """``limit`` requests in each ``seconds``, as many of them at once as have gathered.

    Raises: ValueError, when one of the two is not positive.
    """

    limit: int
    seconds: int = 60

    def __post_init__(self) -> None:
        if self.limit < 1 or self.seconds < 1:
            raise ValueError("a rate lets at least one request through, in at least one second")

    @property
    def interval(self) -> int:
        """Nanoseconds in which one request gathers."""
        return self.seconds * NS // self.limit

    @property
    def window(self) -> int:
        """Nanoseconds in which a whole bucket gathers."""
        return self.interval * self.limit


@dataclass(frozen=True, slots=True)
class Limits:
    """What one caller may do in a minute, and how often an address may fail to become one."""

    read: Rate = Rate(120)
    write: Rate = Rate(20)
    unauthenticated: Rate = Rate(20)

    def of(self, kind: RateClass) -> Rate:
        """Return the rate of a class."""
        match kind:
            case "read":
                return self.read
            case "write":
                return self.write
            case "unauthenticated":
                return self.unauthenticated


DEFAULT: Final = Limits()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a request passes; if not, after how many whole seconds one would."""

    passes: bool
    retry_after: int = 0


PASSES: Final = Verdict(True)


def take(full_at: int | None, at: int, rate: Rate, *, count: int = 1) -> tuple[int, Verdict]:
    """Return the bucket's next state and whether ``count`` requests pass (generic cell rate algorithm).

    The state is when the bucket is full again, in nanoseconds of the store's clock; ``None`` is full. A
    refusal changes nothing. ``count=0`` asks whether one would pass. A clock that was set back lets nobody
    wait longer than a window, and lets nothing through that was used up.
    """
    begin = at if full_at is None else min(max(full_at, at), at + rate.window)
    after = begin + max(count, 1) * rate.interval
    if after - at <= rate.window:
        return (after if count else begin), PASSES
    wait = after - at - rate.window
    return begin, Verdict(False, -(-wait // NS))


def key_of(kind: RateClass, who: Principal) -> str:
    """Return the bucket of a caller: never shown, because it names an actor."""
    return f"mcp:{kind}|{type(who).__name__.lower()}:{who.id}"


def address_key(address: str) -> str:
    """Return the bucket of an address that fails to become a caller."""
    return f"mcp:unauthenticated|address:{address}"
