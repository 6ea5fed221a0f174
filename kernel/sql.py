"""The text of a query -> what it is and does: facts, and what in it is no read. Never raises for a text.

Call ``analyse`` where the stack is large (``adapters/edge/sql_parse.py``): a parser sees the text.
"""

from __future__ import annotations

from dataclasses import replace

from .sql_catalog import Catalogue, Own
from .sql_facts import Offence, SqlFacts
from .sql_names import Resolver
from .sql_rules import facts
from .sql_text import Offsets, refused
from .sql_tree import begins, behind_dot, locks, parse
from .sql_walk import walked


def unread(text: object) -> SqlFacts | None:
    """Return the facts of a text that no parser may see, or nothing. Costs no more than reading it."""
    told = refused(text)
    return None if told is None else SqlFacts(offences=(told,))


def analyse(text: str, catalogue: Catalogue, own: Own) -> SqlFacts:
    """Return the facts of a text.

    1. what a parser may see  2. one statement  3. every part of it  4. what its names mean
    5. where the offences stand that the tree has no place for.
    """
    early = unread(text)  # 1
    if early is not None:
        return early
    statements = parse(text)  # 2
    if isinstance(statements, Offence):
        return SqlFacts(offences=(statements,))
    offsets = Offsets(text)
    if len(statements) != 1:
        second = begins(text, offsets.characters(statements[1].at)) if statements else None
        return SqlFacts(offences=(_not_one(len(statements), second),))
    told = facts(walked(statements[0]), Resolver(catalogue, own), offsets)  # 3, 4
    return replace(told, offences=_in_order(told.offences, text))  # 5


def _not_one(count: int, at: int | None) -> Offence:
    if count == 0:
        return Offence("malformed", "", None, "there is no statement")
    return Offence("several-statements", "", at, f"there are {count} statements")


def _in_order(offences: tuple[Offence, ...], text: str) -> tuple[Offence, ...]:
    placed = (each if each.at is not None else replace(each, at=_place(each, text)) for each in offences)
    return tuple(sorted(placed, key=lambda each: -1 if each.at is None else each.at))


def _place(offence: Offence, text: str) -> int | None:
    if offence.family == "row-lock":
        return locks(text)
    found = behind_dot(text, offence.text) if offence.text else None
    return begins(text) if found is None else found
