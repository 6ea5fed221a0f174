"""One statement's tree -> what stands in it: relations, columns, calls, operators, types, what is refused.

Looks at every part of every node, without recursion. Knows no catalogue: whether a name is harmless is
decided in ``sql_rules.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from .sql_grammar import GRAMMAR, NODES, PLAIN
from .sql_tree import MAX_DEPTH, TOO_DEEP, Parts, Statement, names, node

Scope = frozenset[str]  # the names of WITH that a place can see
Names = tuple[str, ...]

_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WRITES: Final = frozenset({"InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt", "TruncateStmt", "CopyStmt"})
_REFUSED: Final = {("SelectStmt", "intoClause"): "write", ("SelectStmt", "lockingClause"): "row-lock"}
_PLANS: Final = frozenset(
    "verbose costs settings generic_plan buffers timing summary memory format".split()
)  # options of EXPLAIN under which nothing runs
_OPERATORS: Final = frozenset(
    "OP OP_ANY OP_ALL DISTINCT NOT_DISTINCT NULLIF IN LIKE ILIKE SIMILAR".split()
)  # of the kinds of A_Expr: the others are named in words and mean built-in comparisons
_BETWEENS: Final = frozenset({"BETWEEN", "NOT_BETWEEN", "BETWEEN_SYM", "NOT_BETWEEN_SYM"})


@dataclass(frozen=True, slots=True)
class Spot:
    """A name and where it stands, in bytes; ``None`` where the tree does not tell."""

    names: Names
    at: int | None
    arguments: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A relation in FROM: its name, how the statement calls it, and whether it renames columns."""

    spot: Spot
    alias: str
    renamed: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """What no read may hold, of a family."""

    family: str
    text: str
    at: int | None
    why: str = ""


@dataclass(slots=True)
class Found:
    """What a statement holds, gathered while it is walked.

    ``callers`` are the names of functions in FROM: behind one of them ``.f`` is a call. ``joins`` are
    names of whole joins. ``whole`` says that columns are compared which the text does not name.
    """

    kinds: list[str] = field(default_factory=list[str])
    tables: list[Table] = field(default_factory=list[Table])
    columns: list[Spot] = field(default_factory=list[Spot])
    calls: list[Spot] = field(default_factory=list[Spot])
    attributes: list[Spot] = field(default_factory=list[Spot])
    operators: list[Spot] = field(default_factory=list[Spot])
    types: list[Spot] = field(default_factory=list[Spot])
    samplings: list[Spot] = field(default_factory=list[Spot])
    callers: set[str] = field(default_factory=set[str])
    anonymous: bool = False
    joins: set[str] = field(default_factory=set[str])
    whole: bool = False
    explain: list[str] = field(default_factory=list[str])
    settings: list[str] = field(default_factory=list[str])
    refused: list[Refusal] = field(default_factory=list[Refusal])


def walked(statement: Statement) -> Found:
    """Return what a statement holds."""
    found = Found()
    stack: list[tuple[str, Parts, Scope, int]] = [(statement.kind, statement.parts, frozenset(), 0)]
    while stack:
        kind, parts, scope, depth = stack.pop()
        if depth > MAX_DEPTH:
            found.refused.append(Refusal("oversize", "", None, TOO_DEEP))
            break
        if kind not in GRAMMAR:
            _unknown(kind, parts, found)
            continue
        note = _NOTES.get(kind)
        if note is not None:
            note(parts, scope, found)
        try:
            stack += [(*each, depth + 1) for each in _inside(kind, parts, scope, found)]
        except ValueError:
            found.refused.append(_unread(kind, parts))
    return found


def _unknown(kind: str, parts: Parts, found: Found) -> None:
    if not kind.endswith("Stmt"):
        found.refused.append(_unread(kind, parts))
        return
    words = _HUMP.sub("-", kind.removesuffix("Stmt")).lower()
    found.kinds.append(words)
    family = "write" if kind in _WRITES else "statement"
    found.refused.append(Refusal(family, words.replace("-", " ").upper(), _any_place(parts)))


def _unread(kind: str, parts: Parts) -> Refusal:
    return Refusal("unknown-syntax", kind, _at(parts))


def _any_place(parts: Parts) -> int | None:
    """Return a place in a statement that is not walked."""
    relation = parts.get("relation")
    return _at(cast("Parts", relation)) if isinstance(relation, dict) else _at(parts)


def _at(parts: Parts) -> int | None:
    held = parts.get("location", 0 if "location" in GRAMMAR else None)
    return held if isinstance(held, int) and held >= 0 else None


def _inside(kind: str, parts: Parts, scope: Scope, found: Found) -> Iterator[tuple[str, Parts, Scope]]:
    """Yield the nodes of a node. Raises: ValueError, for a part that the grammar does not have."""
    if kind == "WithClause":
        yield from _named_queries(parts, scope)
        return
    inner = scope | _named(parts.get("withClause"))
    for name, value in parts.items():
        held = GRAMMAR[kind].get(name)
        if (kind, name) in _REFUSED:
            found.refused.append(Refusal(_REFUSED[kind, name], "", _into(value)))
        elif held == PLAIN:
            _check_plain(value)
        elif held == NODES:
            yield from ((*each, inner) for each in _nodes(value))
        elif held is not None and isinstance(value, dict):
            yield held, cast("Parts", value), scope if held == "WithClause" else inner
        else:
            raise ValueError(name)


def _into(value: Any) -> int | None:
    """Return where the target of INTO stands."""
    rel = cast("dict[str, Any]", value).get("rel") if isinstance(value, dict) else None
    return _at(cast("Parts", rel)) if isinstance(rel, dict) else None


def _check_plain(value: Any) -> None:
    """A constant is ``{"ival": {"ival": 1}}``: one level, and nothing in it that could be a node."""
    held = list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else [value]
    if not all(isinstance(each, (str, int, float)) for each in held):
        raise ValueError("a plain value holds more")


def _nodes(value: Any) -> Iterator[tuple[str, Parts]]:
    """Yield the nodes of a part that holds one or a list of them; ``{}`` stands for none."""
    for each in cast("list[Any]", value) if isinstance(value, list) else (value,):
        if each != {}:
            yield node(each)


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


# What each class of node tells.


def _select(parts: Parts, scope: Scope, found: Found) -> None:
    del parts, scope
    if "select" not in found.kinds:
        found.kinds.append("select")


def _show(parts: Parts, scope: Scope, found: Found) -> None:
    del scope
    found.kinds.append("show")
    found.settings.append(str(parts.get("name", "")))


def _explain(parts: Parts, scope: Scope, found: Found) -> None:
    del scope
    found.kinds.append("explain")
    for each in cast("list[Any]", parts.get("options", [])):
        option = node(each)[1]
        name = str(option.get("defname", ""))
        found.explain.append(name)
        if name not in _PLANS:
            found.refused.append(Refusal("explain", name, _at(option)))


def _table(parts: Parts, scope: Scope, found: Found) -> None:
    schema, name = parts.get("schemaname"), str(parts.get("relname", ""))
    if schema is None and name in scope:
        return
    alias = cast("Parts", parts.get("alias") or {})
    full = (str(schema), name) if schema is not None else (name,)
    found.tables.append(
        Table(Spot(full, _at(parts)), str(alias.get("aliasname", name)), "colnames" in alias)
    )


def _range_function(parts: Parts, scope: Scope, found: Found) -> None:
    """Behind the name of a function in FROM a dot may be a call of another one."""
    del scope
    alias = cast("Parts | None", parts.get("alias"))
    if alias is not None:
        found.callers.add(str(alias.get("aliasname", "")))
        return
    for each in cast("list[Any]", parts.get("functions", [])):
        items = list(_nodes(node(each)[1].get("items", [])))
        kind, inner = items[0] if items else ("", {})
        if kind == "FuncCall":
            found.callers.update(names(inner.get("funcname"))[-1:])
        else:
            found.anonymous = True  # `FROM CAST(...)` is called by a name that the text does not show


def _join(parts: Parts, scope: Scope, found: Found) -> None:
    del scope
    found.whole = found.whole or bool(parts.get("isNatural"))
    found.columns += [Spot((name,), None) for name in names(parts.get("usingClause"))]
    aliases = (parts.get("alias"), parts.get("join_using_alias"))
    found.joins.update(str(cast("Parts", each).get("aliasname", "")) for each in aliases if each)


def _column(parts: Parts, scope: Scope, found: Found) -> None:
    del scope
    found.columns.append(Spot(names(parts.get("fields")), _at(parts)))


def _attributes(parts: Parts, scope: Scope, found: Found) -> None:
    del scope
    at = next((_at(inner) for _, inner in _nodes(parts.get("arg", {}))), None)
    found.attributes += [
        Spot((name,), at, 1) for name in names(parts.get("indirection")) if name != "*"
    ]


def _call(parts: Parts, scope: Scope, found: Found) -> None:
    del scope
    given = len(cast("list[Any]", parts.get("args", [])))
    ordered = len(cast("list[Any]", parts.get("agg_order", []))) if parts.get("agg_within_group") else 0
    arguments = None if parts.get("func_variadic") else given + ordered
    found.calls.append(Spot(names(parts.get("funcname")), _at(parts), arguments))


def _expression(parts: Parts, scope: Scope, found: Found) -> None:
    del scope
    kind = str(parts.get("kind", "")).removeprefix("AEXPR_")
    if kind in _OPERATORS:
        found.operators.append(Spot(names(parts.get("name")), _at(parts)))
    elif kind not in _BETWEENS:
        found.refused.append(_unread(f"A_Expr {kind}", parts))


def _sublink(parts: Parts, scope: Scope, found: Found) -> None:
    del scope
    if "operName" in parts:
        found.operators.append(Spot(names(parts["operName"]), _at(parts)))


def _sorting(parts: Parts, scope: Scope, found: Found) -> None:
    del scope
    if "useOp" in parts:
        found.operators.append(Spot(names(parts["useOp"]), _at(parts)))


def _type(parts: Parts, scope: Scope, found: Found) -> None:
    del scope
    found.types.append(Spot(names(parts.get("names")), _at(parts)))


def _sample(parts: Parts, scope: Scope, found: Found) -> None:
    del scope
    found.samplings.append(Spot(names(parts.get("method")), _at(parts)))


_NOTES: Final = {
    "SelectStmt": _select,
    "ExplainStmt": _explain,
    "VariableShowStmt": _show,
    "RangeVar": _table,
    "RangeFunction": _range_function,
    "RangeTableSample": _sample,
    "JoinExpr": _join,
    "ColumnRef": _column,
    "A_Indirection": _attributes,
    "FuncCall": _call,
    "A_Expr": _expression,
    "SubLink": _sublink,
    "SortBy": _sorting,
    "TypeName": _type,
}
