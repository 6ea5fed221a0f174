"""One mutant as a value, and how it is said: edits by function. Runs nothing."""

from __future__ import annotations

from dataclasses import dataclass

from .rewrite import Edit, PolicyEdit


@dataclass(frozen=True, slots=True)
class Mutant:
    """One broken program. ``first`` is the property that is made for it, if there is one."""

    name: str
    breaks: str
    edits: tuple[Edit | PolicyEdit, ...]
    first: str = ""


def mutant(name: str, breaks: str, *edits: tuple[str, str, str], first: str = "") -> Mutant:
    """Return a mutant: each edit is a function, a text that stands in it once, and another."""
    places = dict.fromkeys(where for where, _, _ in edits)
    changes = {place: tuple((old, new) for where, old, new in edits if where == place) for place in places}
    return Mutant(name, breaks, tuple(Edit(where, each) for where, each in changes.items()), first)
