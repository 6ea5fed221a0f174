"""One statement's tree -> what stands in it. Looks at every part of every node, without recursion.

Knows no catalogue: whether a name is harmless is decided in ``sql_rules.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from .sql_facts import Offence
from .sql_found import NOTES, Found, at, unread
from .sql_grammar import GRAMMAR, NODES, PLAIN
from .sql_tree import MAX_DEPTH, TOO_DEEP, Parts, Statement, node, nodes

Scope = frozenset[str]  # the names of WITH that a place can see

_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WRITES: Final = frozenset({"insert", "update", "delete", "merge", "truncate", "copy"})
_REFUSED: Final = {("SelectStmt", "intoClause"): "write", ("SelectStmt", "lockingClause"): "row-lock"}


def walked(statement: Statement) -> Found:
    """Return what a statement holds."""
    found = Found()
    stack: list[tuple[str, Parts, Scope, int]] = [(statement.kind, statement.parts, frozenset(), 0)]
    while stack:
        kind, parts, scope, depth = stack.pop()
        if depth > MAX_DEPTH:
            found.refused.append(Offence("oversize", "", None, TOO_DEEP))
            break
        if kind not in GRAMMAR:
            _unknown(kind, parts, found)
            continue
        try:
            _note(kind, parts, scope, found)
            stack += [(*each, depth + 1) for each in _inside(kind, parts, scope, found)]
        except ValueError:
            found.refused.append(unread(kind, parts))
    return found


def _note(kind: str, parts: Parts, scope: Scope, found: Found) -> None:
    note = NOTES.get(kind)
    named_query = kind == "RangeVar" and "schemaname" not in parts and parts.get("relname") in scope
    if note is not None and not named_query:
        note(parts, found)


def _unknown(kind: str, parts: Parts, found: Found) -> None:
    if not kind.endswith("Stmt"):
        found.refused.append(unread(kind, parts))
        return
    words = _HUMP.sub("-", kind.removesuffix("Stmt")).lower()
    found.kinds.append(words)
    family = "write" if words in _WRITES else "statement"
    found.refused.append(Offence(family, words.replace("-", " ").upper(), _any_place(parts)))


def _any_place(parts: Parts) -> int | None:
    """Return a place in a statement that is not walked."""
    relation = parts.get("relation")
    return at(cast("Parts", relation)) if isinstance(relation, dict) else at(parts)


def _inside(kind: str, parts: Parts, scope: Scope, found: Found) -> Iterator[tuple[str, Parts, Scope]]:
    """Yield the nodes of a node. Raises: ValueError, for a part that the grammar does not have."""
    if kind == "WithClause":
        yield from _named_queries(parts, scope)
        return
    inner = scope | _named(parts.get("withClause"))
    for name, value in parts.items():
        held = GRAMMAR[kind].get(name)
        if (kind, name) in _REFUSED:
            found.refused.append(Offence(_REFUSED[kind, name], "", _into(value)))
        elif held == PLAIN:
            _check_plain(value)
        elif held == NODES:
            yield from ((*each, inner) for each in nodes(value))
        elif held is not None and isinstance(value, dict):
            yield held, cast("Parts", value), scope if held == "WithClause" else inner
        else:
            raise ValueError(name)


def _into(value: Any) -> int | None:
    """Return where the target of INTO stands."""
    rel = cast("dict[str, Any]", value).get("rel") if isinstance(value, dict) else None
    return at(cast("Parts", rel)) if isinstance(rel, dict) else None


def _check_plain(value: Any) -> None:
    """A constant is ``{"ival": {"ival": 1}}``: one level, and nothing in it that could be a node."""
    held = list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else [value]
    if not all(isinstance(each, (str, int, float)) for each in held):
        raise ValueError("a plain value holds more")


def _named(clause: Any) -> Scope:
    """Return the names that a WITH defines."""
    listed = cast("Mapping[str, Any]", clause).get("ctes", []) if isinstance(clause, dict) else []
    return frozenset(str(node(each)[1].get("ctename", "")) for each in cast("list[Any]", listed))


def _named_queries(parts: Parts, scope: Scope) -> Iterator[tuple[str, Parts, Scope]]:
    """Yield the queries of a WITH, each with the names it sees: those before it, or all if RECURSIVE."""
    if parts.keys() - GRAMMAR["WithClause"].keys():
        raise ValueError("with")
    seen = scope | _named(parts) if parts.get("recursive") else scope
    for each in cast("list[Any]", parts.get("ctes", [])):
        kind, inner = node(each)
        yield kind, inner, seen
        seen |= {str(inner.get("ctename", ""))}
