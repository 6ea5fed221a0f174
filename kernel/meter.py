"""How often: classes, keys and the arithmetic of one bucket, as pure functions of a state and a time.

Knows no clock and no store; a store applies ``take`` to one key at a time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final, Literal

from .model import Principal, owner_key

RateClass = Literal["read", "write", "unauthenticated"]
NS: Final = 1_000_000_000
KEYS: Final = 1_024
_HOST_BITS: Final = 64  # of IPv6: one household or machine has all addresses of a /64 (RFC 6177 2)
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")  # RFC 6052 2.1: all of IPv4, behind a translator


@dataclass(frozen=True, slots=True)
class Rate:
    """``limit`` requests in each ``seconds``, as many of them at once as have gathered.

    Raises: ValueError, for a rate that lets nothing or everything through.
    """

    limit: int
    seconds: int = 60
    interval: int = field(init=False, repr=False, compare=False)
    """Nanoseconds in which one request gathers."""
    window: int = field(init=False, repr=False, compare=False)
    """Nanoseconds in which a whole bucket gathers."""

    def __post_init__(self) -> None:
        if self.limit < 1 or self.seconds < 1:
            raise ValueError("a rate lets at least one request through, in at least one second")
        if self.limit > self.seconds * NS:
            raise ValueError("a rate counts at most one request in each nanosecond")
        object.__setattr__(self, "interval", self.seconds * NS // self.limit)
        object.__setattr__(self, "window", self.interval * self.limit)


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
    return begin, refusing(after - at - rate.window)


def refusing(wait: int) -> Verdict:
    """Return the refusal of who may come again after so many nanoseconds: in whole seconds, at least one."""
    return Verdict(False, max(1, -(-wait // NS)))


@lru_cache(KEYS)
def key_of(server: str, kind: RateClass, who: Principal) -> str:
    """Return the bucket of a caller of one server: a text that names nobody.

    An agent that acts for two people is two callers, so that what it does for one costs the other nothing.
    """
    return f"{kind}|{owner_key(server, who)}"


@lru_cache(KEYS)
def address_key(server: str, address: str) -> str:
    """Return the bucket of an address that fails to become a caller: a text that tells no address."""
    network = json.dumps([server, _network(address)])
    return f"unauthenticated|{sha256(network.encode()).hexdigest()}"


def _inside(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that one of IPv6 stands for: it has more of these than one network."""
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def _network(address: str) -> str:
    """Return what one host can call itself by: an IPv4 address, an IPv6 network, any other text."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    inside = _inside(parsed)
    if inside is not None:
        return str(inside)
    return str(IPv6Network((int(parsed) >> _HOST_BITS << _HOST_BITS, _HOST_BITS)))
