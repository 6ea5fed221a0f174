"""What one node tells of its statement, class by class. Walks no tree and judges no name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from .sql_facts import Offence
from .sql_tree import Parts, listed, names, nodes, part, text_of
from .strict_json import Json

Names = tuple[str, ...]

_PLANS: Final = frozenset(  # options of EXPLAIN under which nothing runs
    {"verbose", "costs", "settings", "generic_plan", "buffers", "timing", "summary", "memory", "format"}
)
_OPERATORS: Final = frozenset(  # kinds of A_Expr that name theirs
    {"OP", "OP_ANY", "OP_ALL", "DISTINCT", "NOT_DISTINCT", "NULLIF", "IN", "LIKE", "ILIKE", "SIMILAR"}
)
_BETWEENS: Final = {  # kinds that call operators which they do not name
    "BETWEEN": (">=", "<="),
    "BETWEEN_SYM": (">=", "<="),
    "NOT_BETWEEN": ("<", ">"),
    "NOT_BETWEEN_SYM": ("<", ">"),
}
_EQUALS: Final = "="


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


@dataclass(slots=True)
class Found:
    """What a statement holds, gathered while it is walked.

    ``callers`` are the names of functions in FROM: behind one of them ``.f`` is a call. ``rows`` are names
    of queries and of tables made in FROM, and ``joins`` those of whole joins: behind one of them ``.f`` may
    be a call of a function that takes any row. ``whole`` says that columns are read under another name, or
    under none.
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
    rows: set[str] = field(default_factory=set[str])
    joins: set[str] = field(default_factory=set[str])
    whole: bool = False
    explain: list[str] = field(default_factory=list[str])
    settings: list[str] = field(default_factory=list[str])
    refused: list[Offence] = field(default_factory=list[Offence])


def at(parts: Parts | Json) -> int | None:
    """Return where a node stands, in bytes; nothing for what is none."""
    held = parts.get("location") if isinstance(parts, dict) else None
    return held if isinstance(held, int) and held >= 0 else None


def unread(kind: str, parts: Parts) -> Offence:
    """Return the offence of a node that nobody has looked at."""
    return Offence("unknown-syntax", kind, at(parts))


def _select(parts: Parts, found: Found) -> None:
    if "select" not in found.kinds:
        found.kinds.append("select")


def _show(parts: Parts, found: Found) -> None:
    found.kinds.append("show")
    found.settings.append(text_of(parts.get("name")))


def _explain(parts: Parts, found: Found) -> None:
    found.kinds.append("explain")
    for _, option in nodes(parts.get("options")):
        name = text_of(option.get("defname"))
        found.explain.append(name)
        if name not in _PLANS:
            found.refused.append(Offence("explain", name, at(option)))


def _table(parts: Parts, found: Found) -> None:
    name, alias = text_of(parts.get("relname")), parts.get("alias")
    full = (text_of(parts["schemaname"]), name) if "schemaname" in parts else (name,)
    found.tables.append(Table(Spot(full, at(parts)), _called(parts), part(alias, "colnames") is not None))


def made(parts: Parts, found: Found) -> None:
    """Note what stands in FROM and is no relation: a query, also of WITH, or a table made of a document."""
    found.rows.add(_called(parts))


def _called(parts: Parts) -> str:
    return text_of(part(parts.get("alias"), "aliasname")) or text_of(parts.get("relname"))


def _range_function(parts: Parts, found: Found) -> None:
    """Behind the name of a function in FROM a dot may be a call of another one."""
    if "alias" in parts:
        found.callers.add(text_of(part(parts["alias"], "aliasname")))
        return
    for _, items in nodes(parts.get("functions")):
        for kind, inner in islice(nodes(items.get("items")), 1):
            found.callers.update(names(inner.get("funcname"))[-1:])
            # `FROM CAST(...)` is called by a name that the text does not show
            found.anonymous = found.anonymous or kind != "FuncCall"


def _join(parts: Parts, found: Found) -> None:
    aliases = [parts[key] for key in ("alias", "join_using_alias") if key in parts]
    renamed = any(part(each, "colnames") is not None for each in aliases)
    found.whole = found.whole or renamed or bool(parts.get("isNatural"))
    if "usingClause" in parts or parts.get("isNatural"):
        found.operators.append(Spot((_EQUALS,), None))
    found.columns += [Spot((each,), None) for each in names(parts.get("usingClause")) if each]
    found.joins.update(text_of(part(each, "aliasname")) for each in aliases)


def _column(parts: Parts, found: Found) -> None:
    found.columns.append(Spot(names(parts.get("fields")), at(parts)))


def _attributes(parts: Parts, found: Found) -> None:
    begin = next((at(inner) for _, inner in nodes(parts.get("arg"))), None)
    found.attributes += [Spot((name,), begin, 1) for name in names(parts.get("indirection")) if name != "*"]


def _call(parts: Parts, found: Found) -> None:
    ordered = listed(parts.get("agg_order")) if parts.get("agg_within_group") else []
    given = len(listed(parts.get("args"))) + len(ordered)
    arguments = None if parts.get("func_variadic") else given
    found.calls.append(Spot(names(parts.get("funcname")), at(parts), arguments))


def _expression(parts: Parts, found: Found) -> None:
    kind = text_of(parts.get("kind")).removeprefix("AEXPR_")
    if kind in _OPERATORS:
        found.operators.append(Spot(names(parts.get("name")), at(parts)))
    elif kind in _BETWEENS:
        found.operators += [Spot((name,), at(parts)) for name in _BETWEENS[kind]]
    else:
        found.refused.append(unread(f"A_Expr {kind}", parts))


def _sublink(parts: Parts, found: Found) -> None:
    if "operName" in parts:
        found.operators.append(Spot(names(parts["operName"]), at(parts)))
    elif parts.get("subLinkType") == "ANY_SUBLINK":  # IN
        found.operators.append(Spot((_EQUALS,), at(parts)))


def _case(parts: Parts, found: Found) -> None:
    if "arg" in parts:
        found.operators.append(Spot((_EQUALS,), at(parts)))


def _sorting(parts: Parts, found: Found) -> None:
    if "useOp" in parts:
        found.operators.append(Spot(names(parts["useOp"]), at(parts)))


def _type(parts: Parts, found: Found) -> None:
    found.types.append(Spot(names(parts.get("names")), at(parts)))


def _sample(parts: Parts, found: Found) -> None:
    found.samplings.append(Spot(names(parts.get("method")), at(parts)))


NOTES: Final[Mapping[str, Callable[[Parts, Found], None]]] = {
    "SelectStmt": _select,
    "ExplainStmt": _explain,
    "VariableShowStmt": _show,
    "RangeVar": _table,
    "RangeFunction": _range_function,
    "RangeSubselect": made,
    "RangeTableFunc": made,
    "JsonTable": made,
    "RangeTableSample": _sample,
    "JoinExpr": _join,
    "ColumnRef": _column,
    "A_Indirection": _attributes,
    "FuncCall": _call,
    "A_Expr": _expression,
    "CaseExpr": _case,
    "SubLink": _sublink,
    "SortBy": _sorting,
    "TypeName": _type,
}
