"""Which statements a session keeps planned: those that came twice. Sends nothing.

The server reads each statement anew before it is run, so a plan stands for a text that has the same columns;
what else changes under it, the server notices itself.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from .readonly_caps import Column

_MOST: Final = 32
PREFIX: Final = "nonsuch_q"
Columns = tuple[Column, ...]
Asking = tuple[str, str, int]  # a text, what of it is shown, how many rows


@dataclass(frozen=True, slots=True)
class Plan:
    """What the session prepared under a name, and the columns that the query in it had then."""

    name: str
    columns: Columns


class Plans:
    """The plans of a session, by what is run; ``names`` is all that the session may have prepared.

    ``looks`` are statements of ours that it prepared, too.
    """

    def __init__(self) -> None:
        self._once: OrderedDict[tuple[str, Columns], None] = OrderedDict()
        self._plans: dict[tuple[str, Columns], Plan] = {}
        self._asked: dict[Asking, Plan] = {}
        self.looks: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The names that were given."""
        return (*self.looks, *(each.name for each in self._plans.values()))

    def of(self, text: str, columns: Columns) -> Plan | None:
        """Return a plan, if there is one."""
        return self._plans.get((text, columns))

    def made(self, text: str, columns: Columns) -> Plan | None:
        """Return the plan that is to be prepared, once a text has come before and there is room."""
        key = (text, columns)
        if key in self._once and len(self._plans) < _MOST:
            return self._plans.setdefault(key, Plan(f"{PREFIX}{len(self._plans)}", columns))
        self._once[key] = None
        if len(self._once) > _MOST:
            self._once.popitem(last=False)
        return None

    def answered(self, asking: Asking, plan: Plan) -> None:
        """Remember which plan answered a question."""
        if len(self._asked) >= _MOST:
            self._asked.clear()
        self._asked[asking] = plan

    def known(self, asking: Asking) -> Plan | None:
        """Return the plan that answered a question last."""
        return self._asked.get(asking)
