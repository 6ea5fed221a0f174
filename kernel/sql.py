"""The text of a query -> what it is and does: facts, and what in it is no read. Never raises for a text.

Call ``analyse`` where the stack is large (``adapters/edge/sql_parse.py``): a parser sees the text.
"""

from __future__ import annotations

from dataclasses import replace

from .sql_catalog import Catalogue, Own
from .sql_facts import Offence, SqlFacts, shown
from .sql_names import Resolver
from .sql_rules import facts
from .sql_text import Offsets, refused
from .sql_tree import Statement, Words, parse
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
    if len(statements) != 1:
        return SqlFacts(offences=(_not_one(statements, text),))
    told = facts(walked(statements[0]), Resolver(catalogue, own), Offsets(text))  # 3, 4
    offences = _placed(told.offences, text) if told.offences else ()  # 5
    return replace(told, statement=statements[0].text(text), offences=offences)


def _not_one(statements: tuple[Statement, ...], text: str) -> Offence:
    if not statements:
        return Offence("malformed", "", None, "there is no statement")
    words = Words(text)
    second = words.begins(Offsets(text).characters(statements[1].at))
    return Offence("several-statements", shown(words.word(second)), second)


def _placed(offences: tuple[Offence, ...], text: str) -> tuple[Offence, ...]:
    """Return offences in the order of the text."""
    words = Words(text)
    found = (each if each.why else _with_place(each, words) for each in offences)
    return tuple(sorted(found, key=lambda each: -1 if each.at is None else each.at))


def _with_place(offence: Offence, words: Words) -> Offence:
    at = offence.at
    if at is None and offence.family == "row-lock":
        at = words.locks()
    elif at is None and offence.text:
        at = words.behind_dot(offence.text)
    if at is None:
        at = words.begins()
    return replace(offence, at=at, text=offence.text or shown(words.word(at)))
