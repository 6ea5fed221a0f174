"""Which statements a session keeps planned: those that came twice. Sends nothing.

The server reads each statement anew before it is run, so a plan stands for a text that has the same columns;
what else changes under it, the server notices itself.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_MOST: Final = 32
PREFIX: Final = "nonsuch_q"


class Plans:
    """The names of a session's plans, by their text; ``names`` is all that the session may have prepared."""

    def __init__(self) -> None:
        self._once: OrderedDict[str, None] = OrderedDict()
        self._names: dict[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names that were given."""
        return tuple(self._names.values())

    def of(self, text: str) -> str | None:
        """Return the name of a plan, if there is one."""
        return self._names.get(text)

    def made(self, text: str) -> str | None:
        """Return the name that a text is to be prepared under, once it has come before and there is room."""
        if text in self._once and len(self._names) < _MOST:
            return self._names.setdefault(text, f"{PREFIX}{len(self._names)}")
        self._once[text] = None
        if len(self._once) > _MOST:
            self._once.popitem(last=False)
        return None
