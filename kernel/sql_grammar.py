"""The nodes of PostgreSQL's parse tree that a read may consist of, as a table. Knows no parser.

One line a node. ``name`` holds nodes that say their class, ``name=Class`` a node of that class, ``.name``
plain values that name nothing. Whatever has no line here, a node or a part of one, is refused: a newer
grammar cannot bring in what nobody has looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_READS: Final = """
SelectStmt: distinctClause targetList fromClause whereClause groupClause .groupDistinct havingClause
  windowClause valuesLists sortClause limitOffset limitCount .limitOption withClause=WithClause .op .all
  larg=SelectStmt rarg=SelectStmt
WithClause: ctes .recursive .location
CommonTableExpr: .ctename aliascolnames .ctematerialized ctequery search_clause=CTESearchClause
  cycle_clause=CTECycleClause .location
CTESearchClause: search_col_list .search_breadth_first .search_seq_column .location
CTECycleClause: cycle_col_list .cycle_mark_column cycle_mark_value cycle_mark_default .cycle_path_column
  .location
ResTarget: .name val .location
RangeVar: .catalogname .schemaname .relname .inh .relpersistence alias=Alias .location
RangeSubselect: .lateral subquery alias=Alias
RangeFunction: .lateral .ordinality .is_rowsfrom functions alias=Alias coldeflist
RangeTableSample: relation method args repeatable .location
RangeTableFunc: .lateral docexpr rowexpr namespaces columns alias=Alias .location
RangeTableFuncCol: .colname typeName=TypeName .for_ordinality .is_not_null colexpr coldefexpr .location
JoinExpr: .jointype .isNatural larg rarg usingClause join_using_alias=Alias quals alias=Alias
Alias: .aliasname colnames
ColumnDef: .colname typeName=TypeName .is_local collClause=CollateClause .location
SortBy: node .sortby_dir .sortby_nulls useOp .location
WindowDef: .name .refname partitionClause orderClause .frameOptions startOffset endOffset .location
GroupingSet: .kind content .location
ColumnRef: fields .location
A_Star:
A_Const: .isnull .ival .fval .boolval .sval .bsval .location
A_Expr: .kind name lexpr rexpr .rexpr_list_start .rexpr_list_end .location
A_Indices: .is_slice lidx uidx
A_Indirection: arg indirection
A_ArrayExpr: elements .list_start .list_end .location
BoolExpr: .boolop args .location
RowExpr: args .row_format .location
SubLink: .subLinkType testexpr operName subselect .location
CaseExpr: arg args defresult .location
CaseWhen: expr result .location
CoalesceExpr: args .location
MinMaxExpr: .op args .location
NullTest: arg .nulltesttype .location
BooleanTest: arg .booltesttype .location
TypeCast: arg typeName=TypeName .location
TypeName: names typmods .typemod arrayBounds .location
CollateClause: arg collname .location
FuncCall: funcname args agg_order agg_filter over=WindowDef .agg_within_group .agg_star .agg_distinct
  .func_variadic .funcformat .location
NamedArgExpr: arg .name .argnumber .location
GroupingFunc: args .location
SQLValueFunction: .op .typmod .location
XmlExpr: .op .name named_args args .xmloption .indent .location
XmlSerialize: .xmloption expr typeName=TypeName .indent .location
JsonFormat: .format_type .encoding .location
JsonReturning: format=JsonFormat .typmod
JsonValueExpr: raw_expr format=JsonFormat
JsonIsPredicate: expr format=JsonFormat .item_type .unique_keys .location
JsonBehavior: .btype expr .location
JsonFuncExpr: .op .column_name context_item=JsonValueExpr pathspec passing output=JsonOutput
  on_empty=JsonBehavior on_error=JsonBehavior .wrapper .quotes .location
JsonTable: context_item=JsonValueExpr pathspec=JsonTablePathSpec passing columns on_error=JsonBehavior
  alias=Alias .lateral .location
JsonTableColumn: .coltype .name typeName=TypeName pathspec=JsonTablePathSpec format=JsonFormat .wrapper
  .quotes columns on_empty=JsonBehavior on_error=JsonBehavior .location
JsonTablePathSpec: string .name .name_location .location
JsonOutput: typeName=TypeName returning=JsonReturning
JsonArgument: val=JsonValueExpr .name
JsonKeyValue: key value=JsonValueExpr
JsonParseExpr: expr=JsonValueExpr output=JsonOutput .unique_keys .location
JsonScalarExpr: expr output=JsonOutput .location
JsonSerializeExpr: expr=JsonValueExpr output=JsonOutput .location
JsonObjectConstructor: exprs output=JsonOutput .absent_on_null .unique .location
JsonArrayConstructor: exprs output=JsonOutput .absent_on_null .location
JsonArrayQueryConstructor: query output=JsonOutput format=JsonFormat .absent_on_null .location
JsonAggConstructor: output=JsonOutput agg_filter agg_order over=WindowDef .location
JsonObjectAgg: constructor=JsonAggConstructor arg=JsonKeyValue .absent_on_null .unique
JsonArrayAgg: constructor=JsonAggConstructor arg=JsonValueExpr .absent_on_null
List: items
String: .sval
Integer: .ival
Float: .fval
Boolean: .boolval
BitString: .bsval
ExplainStmt: query options
DefElem: .defname arg .defaction .location .arg_location
VariableShowStmt: .name
"""

PLAIN: Final = "."  # what stands there names nothing that a statement could do
NODES: Final = "*"  # a node that says its class, or a list of such


def _table(text: str) -> Mapping[str, Mapping[str, str]]:
    """Return for each class what each of its parts holds: ``PLAIN``, ``NODES``, or the class of a node."""
    lines = text.replace("\n  ", " ").strip().splitlines()
    return {
        name: dict(map(_part, parts.split())) for name, _, parts in (line.partition(":") for line in lines)
    }


def _part(word: str) -> tuple[str, str]:
    name, _, kind = word.partition("=")
    return (name[1:], PLAIN) if name.startswith(".") else (name, kind or NODES)


GRAMMAR: Final = _table(_READS)
