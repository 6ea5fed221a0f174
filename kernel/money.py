"""Money: whole minor units of one currency, never a float. Knows no rates and rounds nothing."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, Field

EXACT: Final = 2**53 - 1  # what every reader of JSON holds exactly: RFC 8259 6

Minor = Annotated[
    int,
    Field(strict=True, ge=-EXACT, le=EXACT, description="whole minor units of the currency, such as cents"),
]
Currency = Annotated[
    str, Field(strict=True, pattern=r"^[A-Z]{3}$", description="the currency's ISO 4217 code, such as EUR")
]


class Money(BaseModel, frozen=True, extra="forbid"):  # the docstring is published with the schema
    """An amount of money: a whole number of minor units, and the code of their currency."""

    minor: Minor
    currency: Currency

    def __add__(self, other: Money) -> Money:
        return Money(minor=self.minor + self._minor_of(other), currency=self.currency)

    def __sub__(self, other: Money) -> Money:
        return Money(minor=self.minor - self._minor_of(other), currency=self.currency)

    def __lt__(self, other: Money) -> bool:
        return self.minor < self._minor_of(other)

    def __le__(self, other: Money) -> bool:
        return self.minor <= self._minor_of(other)

    def __gt__(self, other: Money) -> bool:
        return self.minor > self._minor_of(other)

    def __ge__(self, other: Money) -> bool:
        return self.minor >= self._minor_of(other)

    def _minor_of(self, other: object) -> int:
        """Return the minor units of an amount in the same currency. Raises: ValueError, TypeError."""
        if not isinstance(other, Money):
            raise TypeError(f"money goes with money only, not with `{type(other).__name__}`")
        if other.currency != self.currency:
            raise ValueError(f"`{self.currency}` and `{other.currency}` are two currencies")
        return other.minor
