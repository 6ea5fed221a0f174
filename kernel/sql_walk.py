"""One statement's tree -> what stands in it. Looks at every part of every node, without recursion.

Knows no catalogue: whether a name is harmless is decided in ``sql_rules.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from .sql_facts import Offence
from .sql_found import NOTES, Found, at, made, unread
from .sql_grammar import GRAMMAR, NODES, PLAIN
from .sql_tree import MAX_DEPTH, TOO_DEEP, Parts, Statement, nodes, part, text_of
from .strict_json import Json

Scope = frozenset[str]  # the names of WITH that a place can see
Node = tuple[str, Parts, Scope]

_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WRITES: Final = frozenset({"insert", "update", "delete", "merge", "truncate", "copy"})
_PLAIN_TYPES: Final = frozenset({str, int, float, bool})
_REFUSED: Final = {"SelectStmt": {"intoClause": "write", "lockingClause": "row-lock"}}
_NONE: Final[dict[str, str]] = {}


def walked(statement: Statement) -> Found:
    """Return what a statement holds."""
    found = Found()
    stack: list[list[Node]] = [[(statement.kind, statement.parts, frozenset())]]  # a list for each level
    while stack:
        if not stack[-1]:
            stack.pop()
            continue
        kind, parts, scope = stack[-1].pop()
        if len(stack) > MAX_DEPTH + 1:
            found.refused.append(Offence("oversize", "", None, TOO_DEEP))
            break
        if kind == "String" and _is_text(parts):
            continue  # half of all nodes, and nothing in them to look at
        if kind not in GRAMMAR:
            _unknown(kind, parts, found, is_root=len(stack) == 1)
            continue
        try:
            _note(kind, parts, scope, found)
            stack.append(_inside(kind, parts, scope, found))
        except ValueError:
            found.refused.append(unread(kind, parts))
    return found


def _is_text(parts: Parts) -> bool:
    return len(parts) == 1 and type(parts.get("sval")) is str


def _note(kind: str, parts: Parts, scope: Scope, found: Found) -> None:
    note = NOTES.get(kind)
    if note is not None:
        named_query = kind == "RangeVar" and "schemaname" not in parts and parts.get("relname") in scope
        (made if named_query else note)(parts, found)


def _unknown(kind: str, parts: Parts, found: Found, *, is_root: bool) -> None:
    if kind == "ParamRef":
        why = "a parameter such as `$1` has no value here"
        found.refused.append(Offence("malformed", "", at(parts), why))
    elif kind.endswith("Stmt"):
        name = _HUMP.sub("-", kind.removesuffix("Stmt")).lower()
        found.kinds.append(name)
        family = "write" if name in _WRITES else "statement"
        found.refused.append(Offence(family, "", None) if is_root else _inner(family, name, parts))
    else:
        found.refused.append(unread(kind, parts))


def _inner(family: str, name: str, parts: Parts) -> Offence:
    """Return the offence of a statement in another: it stands where its relation does."""
    relation = parts.get("relation")
    place = at(relation if isinstance(relation, dict) else parts)
    return Offence(family, name.replace("-", " ").upper(), place)


def _inside(kind: str, parts: Parts, scope: Scope, found: Found) -> list[Node]:
    """Return the nodes of a node. Raises: ValueError, for a part that the grammar does not have."""
    if kind == "WithClause":
        return list(_named_queries(parts, scope))
    inner = scope | _named(parts["withClause"]) if "withClause" in parts else scope
    inside: list[Node] = []
    grammar, refused = GRAMMAR[kind], _REFUSED.get(kind, _NONE)
    for name, value in parts.items():
        held = grammar.get(name)
        if name in refused:
            found.refused.append(Offence(refused[name], "", at(part(value, "rel"))))
        elif held == PLAIN:
            if type(value) not in _PLAIN_TYPES:
                _check_plain(value)
        elif held == NODES:
            inside += [(each, its, inner) for each, its in nodes(value)]
        elif held is not None and isinstance(value, dict):
            inside.append((held, value, scope if held == "WithClause" else inner))
        else:
            raise ValueError(name)
    return inside


def _check_plain(value: Json) -> None:
    """A constant is ``{"ival": {"ival": 1}}``: one level, and nothing in it that could be a node."""
    if not isinstance(value, dict) or not all(type(each) in _PLAIN_TYPES for each in value.values()):
        raise ValueError("a plain value holds more")


def _named(clause: Json) -> Scope:
    return _defined(nodes(part(clause, "ctes")))


def _defined(queries: Iterable[tuple[str, Parts]]) -> Scope:
    """Return the names of some queries of a WITH."""
    return frozenset(text_of(inner.get("ctename")) for _, inner in queries)


def _named_queries(parts: Parts, scope: Scope) -> Iterator[tuple[str, Parts, Scope]]:
    """Yield the queries of a WITH, each with the names it sees: those before it, or all if RECURSIVE."""
    if parts.keys() - GRAMMAR["WithClause"].keys():
        raise ValueError("with")
    listed = nodes(parts.get("ctes"))
    seen = scope | _defined(listed) if parts.get("recursive") else scope
    for kind, inner in listed:
        yield kind, inner, seen
        seen |= _defined([(kind, inner)])
