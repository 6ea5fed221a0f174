"""A condition as a tree of parts in the order in which the engine evaluates them. Asks; decides nothing.

The engine stops at the first part that settles the rest. What stands behind it is not reached, and
nothing is claimed of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from ...kernel.cedar_text import PolicyRefused
from ...kernel.strict_json import Json
from .condition_text import Join, may_err, split, tidy

Truth = Literal["true", "false", "error", "unknown"]
Values = tuple[tuple[str, Json], ...]
_SETTLES: Final[dict[Join, Truth]] = {"and": "false", "or": "true"}
_OTHERWISE: Final[dict[Join, Truth]] = {"and": "true", "or": "false"}


@dataclass(frozen=True, slots=True)
class Condition:
    """One part of a condition, what the engine says of it alone, and the values it reads.

    ``parts`` are joined by ``join``; what is not ``reached`` the engine does not evaluate.
    """

    text: str
    holds: Truth
    values: Values = ()
    join: Join | None = None
    parts: tuple[Condition, ...] = ()
    reached: bool = True

    @property
    def decided(self) -> Condition:
        """The part that settled this one or erred; itself, where all its parts did it together."""
        if self.join is None or self.holds not in ("error", _SETTLES[self.join]):
            return self
        return next((each.decided for each in self.parts if each.holds == self.holds), self)


@dataclass(frozen=True, slots=True)
class Oracle:
    """Who answers: what the engine says of a text of its own, and the values that a text reads.

    ``holds`` raises ``PolicyRefused`` for a text that cannot be asked alone.
    """

    holds: Callable[[str], Truth]
    values: Callable[[str], Values]


def in_order(
    join: Join, texts: Iterable[str], oracle: Oracle, *, reached: bool = True
) -> tuple[Condition, ...]:
    """Return the parts that these texts of the engine are, each with what it says of it.

    Raises: PolicyRefused, for a text that cannot be asked alone.
    """
    found: list[Condition] = []
    open_before = False
    for text in texts:
        each = _condition(text, oracle, reached=reached)
        if open_before and each.holds == "error":  # what is open may keep it from being evaluated
            each = replace(each, holds="unknown", join=None, parts=())
        found.append(each)
        open_before = open_before or each.holds == "unknown"
        reached = reached and each.holds not in ("error", _SETTLES[join])
    return tuple(found)


def _condition(raw: str, oracle: Oracle, *, reached: bool) -> Condition:
    text, holds = tidy(raw), oracle.holds(raw)
    whole = Condition(text, holds, oracle.values(text), reached=reached)
    found = split(raw)
    if found is None:
        return whole
    join, texts = found
    try:
        parts = in_order(join, texts, oracle, reached=reached)
    except PolicyRefused:
        return whole
    together = combined(join, parts)
    if holds not in ("unknown", together):  # the engine knows better than the parts
        return whole
    return replace(whole, holds=together, join=join, parts=parts)


def combined(join: Join, parts: Iterable[Condition]) -> Truth:
    """Return what parts say together: the first that settles it or errs decides, as in the engine."""
    is_open = may_fail = False
    for each in parts:
        if each.holds == _SETTLES[join]:
            return "unknown" if may_fail else each.holds
        if each.holds == "error":
            return "error"
        is_open = is_open or each.holds == "unknown"
        may_fail = may_fail or (each.holds == "unknown" and may_err(each.text))
    return "unknown" if is_open else _OTHERWISE[join]
