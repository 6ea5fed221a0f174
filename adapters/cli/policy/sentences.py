"""What a policy and a part of its condition did, in words. Decides nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from ...analysis.condition_text import negated
from ...analysis.parts import Condition, Truth
from ...analysis.witness import Considered
from ..render import words

_STATES: Final[dict[Truth, str]] = {
    "true": "holds",
    "false": "does not hold",
    "error": "has no answer",
    "unknown": "is open",
}
_OPPOSITE: Final[dict[Truth, Truth]] = {"true": "false", "false": "true"}


def named(each: Considered) -> str:
    """Return a policy with its place and what it says of itself."""
    reason = each.policy.annotations.get("reason")
    return f"`{each.policy.id}` ({each.policy.where}{f'; it says: {reason}' if reason else ''})"


def sentence(part: Condition) -> str:
    """Return what the engine says of the part that decided, with the values it read."""
    found = part.decided
    return f"{_state(found)}{values(found, ' (', ')')}"


def _state(part: Condition) -> str:
    inner = negated(part.text)
    if inner is not None and part.holds in _OPPOSITE:
        return f"`{inner}` {_STATES[_OPPOSITE[part.holds]]}"
    texts = [each.text for each in part.parts]
    match part.join, part.holds:
        case "or", "false":
            return f"none of {words(texts)} holds"
        case "and", "true":
            return f"{words(texts)} hold"
        case _:
            return f"`{part.text}` {_STATES[part.holds]}"


def values(part: Condition, before: str, after: str) -> str:
    """Return the values that a part read, between two texts; nothing if it read none."""
    told = [f"{name} = {_value(value)}" for name, value in part.values]
    return f"{before}{', '.join(told)}{after}" if told else ""


def _value(value: object) -> str:
    return "absent" if value is None else json.dumps(value, ensure_ascii=False)


def because(parts: Iterable[Condition]) -> str:
    """Return that parts decided, as the end of a sentence."""
    told = " and ".join(sentence(part) for part in parts)
    return f", because {told}" if told else ", whatever is asked"


def wanted(parts: Iterable[Condition]) -> str:
    """Return which parts must hold for all of them to hold; of those not reached, the ones that do not."""
    failing = [part for part in parts if part.holds != "true"]
    now = [_wanted(part) for part in failing if part.reached]
    then = [f"`{part.text}`" for part in failing if not part.reached]
    return " and ".join(now) + (f", and then {' and '.join(then)} too" if then else "")


def _wanted(part: Condition) -> str:
    if part.join == "or":
        return f"{words((each.text for each in part.parts), 'or')} must hold"
    return f"`{part.text}` must hold"


def unwanted(parts: Iterable[Condition]) -> str:
    """Return the ways in which not all of these parts would hold."""
    return " or ".join(_opposite(part) for part in parts)


def _opposite(part: Condition) -> str:
    inner = negated(part.text)
    return f"`{inner}` must hold" if inner is not None else f"`{part.text}` must not hold"


def lines(parts: Iterable[Condition], indent: str = "") -> Iterator[tuple[str, str]]:
    """Yield the mark of every part and a line for it: alternatives and what belongs together stand below."""
    for part in parts:
        mark = MARKS[part.holds] if part.reached else UNREACHED
        lead = f"{indent}{mark:<4} "
        if part.join is None:
            yield mark, f"{lead}{part.text}{values(part, '   [', ']') if part.reached else ''}"
            continue
        yield mark, f"{lead}{'any of these:' if part.join == 'or' else 'all of these:'}"
        yield from lines(part.parts, indent + " " * 5)


MARKS: Final[dict[Truth, str]] = {"true": "yes", "false": "NO", "error": "ERR", "unknown": "?"}
UNREACHED: Final = "-"
LEGEND: Final = {
    "yes": "holds",
    "NO": "does not hold",
    "ERR": "has no answer, which denies",
    "?": "depends on the facts",
    "-": "not evaluated: what stands before it decides",
}
