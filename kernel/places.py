"""What an engine message speaks of -> the token of a policy or a schema that it means. Knows no engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from .policy_text import Statement, Token, quoted, tokens

_QUOTED: Final = re.compile(r"`([^`]*)`|'([^']*)'")
_ATTRIBUTE: Final = re.compile(r"attribute `([^`]*)` on entity type `([^`]*)`")
_ARGUMENT: Final = re.compile(r"attribute `([^`]*)` in context")
_LAST: Final = re.compile(r"[^\s:]+\Z")
_PRINCIPALS: Final = frozenset({"Agent", "Human"})
_CLOSED_BY: Final = {"(": ")", "[": "]", "{": "}"}


def meant(statement: Statement, message: str) -> int | None:
    """Return the offset of what a message is about, ``None`` when the statement does not spell it."""
    if message.startswith("this policy is missing"):
        return None
    for words in _sought(message):
        found = _run(statement.tokens, words, last=message.startswith("duplicate"))
        if found:
            return (found[0] if "member access" in message else found[-1]).at
    escape = next((part for part in _parts(message) if part.startswith("\\")), None)
    return next((each.at for each in statement.tokens if escape and escape in each.text), None)


def _sought(message: str) -> Iterable[list[str]]:
    """Yield what to look for, the most telling first."""
    attribute, argument, last = (found.search(message) for found in (_ATTRIBUTE, _ARGUMENT, _LAST))
    if attribute:
        variable = "principal" if attribute[2] in _PRINCIPALS else "resource"
        yield _words(f"{variable}.{attribute[1]}")
    if argument:
        yield _words(f"context.{argument[1]}")
    for part in _parts(message):
        yield _words(part)
    if last:
        yield _words(last[0])


def _parts(message: str) -> list[str]:
    return [one or other for one, other in _QUOTED.findall(message)]


def _words(text: str) -> list[str]:
    return [each.text for each in tokens(text)]


def _run(held: Sequence[Token], words: list[str], *, last: bool = False) -> Sequence[Token]:
    """Return the tokens that spell ``words`` in a row."""
    length = len(words)
    starts = [at for at in range(len(held) - length + 1) if [t.text for t in held[at : at + length]] == words]
    return held[starts[-1 if last else 0] :][:length] if length and starts else ()


def attribute(statement: Statement, names: Sequence[str]) -> int:
    """Return the offset of an attribute: ``resource.a.b``, ``resource.a has b``, or its last name alone."""
    *over, last = names
    for words in (_words(".".join(names)), [*_words(".".join(over)), "has", last]):
        if found := _run(statement.tokens, words):
            return found[-1].at
    return statement.find(last, quoted(last))


def id_literal(statement: Statement) -> int:
    """Return the offset of the text of ``@id(...)``, else of the statement."""
    head = _run(statement.tokens, ["@", "id", "("])
    after = (each for each in statement.tokens if head and each.at > head[-1].at)
    return next((each.at for each in after), statement.start)


def clause(statement: Statement, number: int) -> int:
    """Return the offset of the ``when`` or ``unless`` that opens a clause, else of the statement."""
    depth, found = 0, list[int]()
    for token in statement.tokens:
        depth += (token.text in _CLOSED_BY) - (token.text in _CLOSED_BY.values())
        if depth == 0 and token.text in ("when", "unless"):
            found.append(token.at)
    return found[number] if number < len(found) else statement.start


def mismatched(statement: Statement) -> int | None:
    """Return the offset of the first bracket that closes another one than was opened."""
    held: list[str] = []
    for token in statement.tokens:
        if token.text in _CLOSED_BY:
            held.append(_CLOSED_BY[token.text])
        elif token.text in _CLOSED_BY.values() and (not held or held.pop() != token.text):
            return token.at
    return None


def declared(statement: Statement) -> list[Token]:
    """Return the names that a statement of a schema declares as types."""
    found: list[Token] = []
    naming = False
    for token in statement.tokens:
        if token.text in ("entity", "type"):
            naming = True
        elif naming and token.text.isidentifier() and token.text not in ("in", "enum", "tags"):
            found.append(token)
        elif token.text != ",":
            naming = False
    return found
