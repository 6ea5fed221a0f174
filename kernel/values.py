"""``value``: a dataclass for what one request makes and drops. Knows nothing of what it holds.

Both type checkers hold such a value to be frozen. At run time it is not, because that costs more than all
else of making it: five times as much for seven members, a fifth of a request. What outlives a request or
reaches an application (a principal, a decision, a context) is frozen in both senses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Make a class a dataclass with slots, equal and hashed by its members."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
