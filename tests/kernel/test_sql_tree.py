"""The parser's trees: the table of nodes is PostgreSQL's, and no part of a tree is passed over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, cast

import pytest
from pglast import ast, parser

from nonsuch.kernel import sql_walk
from nonsuch.kernel.sql import analyse
from nonsuch.kernel.sql_catalog import NOTHING, read
from nonsuch.kernel.sql_facts import Offence
from nonsuch.kernel.sql_found import Found
from nonsuch.kernel.sql_grammar import GRAMMAR, NODES, PLAIN
from nonsuch.kernel.sql_tree import MAX_DEPTH, TOO_DEEP, Parts, Statement, Words, parse

from .queries import corpus, lines, refusal, shipped

# Parts of those nodes that the table leaves out: no read has them, or the parser does not fill them.
LEFT_OUT: Final = {
    "SelectStmt": {"intoClause", "lockingClause"},
    "ResTarget": {"indirection"},
    "CommonTableExpr": {
        "cterecursive",
        "cterefcount",
        "ctecolnames",
        "ctecoltypes",
        "ctecoltypmods",
        "ctecolcollations",
    },
    "CTECycleClause": {"cycle_mark_typmod"},
    "JoinExpr": {"rtindex"},
    "ColumnDef": {
        "compression",
        "inhcount",
        "is_not_null",
        "is_from_type",
        "storage",
        "storage_name",
        "raw_default",
        "cooked_default",
        "identity",
        "identitySequence",
        "generated",
        "constraints",
        "fdwoptions",
    },
    "RowExpr": {"colnames"},
    "SubLink": {"subLinkId"},
    "NullTest": {"argisrow"},
    "TypeName": {"setof", "pct_type"},
    "GroupingFunc": {"refs", "agglevelsup"},
    "XmlExpr": {"arg_names", "typmod"},
    "JsonValueExpr": {"formatted_expr"},
    "JsonBehavior": {"coerce"},
    "DefElem": {"defnamespace"},
}
UNREADABLE: Final = Offence("malformed", "", None, "the parser's answer cannot be read")
NODE_TYPES: Final = {"List*", "Node*", "Expr*"}
READS: Final = [
    *(each.text for each in corpus() if each.verdict == "accept"),
    *(each["sql"] for each in lines("system_views.jsonl")),
]


def test_the_table_has_the_parts_that_postgresql_gives_its_nodes() -> None:
    slots = {
        name: {part: info.c_type for part, info in getattr(ast, name).__slots__.items()}
        for name in GRAMMAR.keys() - {"List", "A_Const"}  # written in their own way
    }
    left = {name: parts.keys() - GRAMMAR[name].keys() for name, parts in slots.items()}
    assert {name: parts for name, parts in left.items() if parts} == LEFT_OUT
    assert {name for name, parts in slots.items() if GRAMMAR[name].keys() - parts.keys()} == set()


@pytest.mark.parametrize("name", sorted(GRAMMAR.keys() - {"List", "A_Const"}))
def test_what_holds_nodes_is_not_taken_for_a_plain_value(name: str) -> None:
    for part, kind in GRAMMAR[name].items():
        held = str(getattr(ast, name).__slots__[part].c_type)
        if held in NODE_TYPES:
            assert kind == NODES, part
        elif held.endswith("*") and held != "char*":
            assert kind == held[:-1], part
        else:
            assert kind == PLAIN, part


def _classes(value: object) -> Iterator[str]:
    """Every node of the parser's own tree of objects, by class."""
    stack = [value]
    while stack:
        held = stack.pop()
        if isinstance(held, ast.Node):
            yield type(held).__name__
            stack += [getattr(held, each) for each in held if not isinstance(getattr(held, each), Enum)]
        elif isinstance(held, tuple):
            stack += list(cast("tuple[object, ...]", held))


def _walked(text: str, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Every node that the walk sees, by class."""
    seen: Counter[str] = Counter()
    inside = sql_walk._inside  # pyright: ignore[reportPrivateUsage]  (the one place that sees every node)

    def counting(kind: str, parts: Parts, scope: frozenset[str], found: Found) -> Any:
        seen[kind] += 1
        return inside(kind, parts, scope, found)

    monkeypatch.setattr(sql_walk, "_inside", counting)
    statements = parse(text)
    assert not isinstance(statements, Offence)
    sql_walk.walked(statements[0])
    monkeypatch.undo()
    return seen


PLAIN_NODES: Final = {
    "A_Const",
    "Integer",
    "Float",
    "Boolean",
    "String",
    "BitString",
    "List",
    "RawStmt",
    "ValUnion",
}


@pytest.mark.parametrize("text", READS)
def test_the_walk_sees_every_node_that_the_parser_made(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the parser's other answer, a tree of objects, which writes constants and lists differently."""
    made = Counter(_classes(parser.parse_sql(text)))
    seen = _walked(text, monkeypatch)
    for each in PLAIN_NODES:
        del made[each], seen[each]
    assert seen == made


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("SELECT frm frm f", 'syntax error at or near "f"', "1:16"),
        ("SELECT\n\né é é", 'syntax error at or near "é"', "3:5"),
        ("SELECT 'x", 'unterminated quoted string at or near "\'x"', "1:8"),
        ("SELECT", None, None),
        ("SELECT 1 UNION", "syntax error at end of input", None),
        ("SELECT E'\\xff'", 'invalid byte sequence for encoding "UTF8": 0xff', None),
        ("", "there is no statement", None),
    ],
)
def test_what_does_not_parse_says_where(text: str, message: str | None, place: str | None) -> None:
    if message is None:
        assert isinstance(parse(text), tuple)
        return
    cause = f"the query cannot be read: {message}{f' at {place}' if place else ''}"
    assert refusal(text) == ("malformed", cause, place)


@pytest.mark.parametrize("nested", ["SELECT {}1", "SELECT {}a FROM b", "SELECT 1 WHERE {}a"])
def test_a_statement_nests_up_to_a_depth(nested: str) -> None:
    fine, deep = nested.format("NOT " * (MAX_DEPTH - 8)), nested.format("NOT " * (MAX_DEPTH + 1))
    assert isinstance(parse(fine), tuple)
    assert refusal(deep)[0] == "oversize"
    found = parse(deep)
    assert isinstance(found, tuple)
    assert [each.family for each in sql_walk.walked(found[0]).refused] == ["oversize"]


@pytest.mark.parametrize("levels", [1_000, 4_000])
def test_a_tree_that_python_cannot_read_is_too_deep(levels: int) -> None:
    assert refusal("SELECT " + "NOT " * levels + "a")[0] == "oversize"


NEW_TREES: Final[list[tuple[Parts, list[Offence]]]] = [
    ({"targetList": [{"NewNode": {}}]}, [Offence("unknown-syntax", "NewNode", None)]),
    ({"newPart": {"RangeVar": {"relname": "t"}}}, [Offence("unknown-syntax", "SelectStmt", None)]),
    ({"op": {"FuncCall": {"args": []}}}, [Offence("unknown-syntax", "SelectStmt", None)]),
    ({"targetList": [["nested"]]}, [Offence("unknown-syntax", "SelectStmt", None)]),
    (
        {"targetList": [{"ResTarget": {"val": {"A": {}, "B": {}}}}]},
        [Offence("unknown-syntax", "ResTarget", None)],
    ),
    ({"withClause": {"newPart": 1}}, [Offence("unknown-syntax", "WithClause", None)]),
    ({"withClause": [{"CommonTableExpr": {}}]}, [Offence("unknown-syntax", "SelectStmt", None)]),
    ({"whereClause": {"A_Expr": {"kind": "AEXPR_NEW"}}}, [Offence("unknown-syntax", "A_Expr NEW", None)]),
    ({"larg": {"fromClause": [{"InsertStmt": {}}]}}, [Offence("write", "INSERT", None)]),
    ({"targetList": [{}]}, []),
    ({"targetList": [{"String": {"sval": "a"}}]}, []),
    (
        {"targetList": [{"String": {"sval": "a", "new": {"FuncCall": {}}}}]},
        [Offence("unknown-syntax", "String", None)],
    ),
    (
        {"targetList": [{"String": {"sval": {"FuncCall": {"args": []}}}}]},
        [Offence("unknown-syntax", "String", None)],
    ),
]


@pytest.mark.parametrize(("parts", "offences"), NEW_TREES)
def test_a_tree_that_nobody_has_looked_at_is_refused(parts: Parts, offences: list[Offence]) -> None:
    """A newer grammar may have nodes and parts that this table has no line for."""
    assert sql_walk.walked(Statement("SelectStmt", parts, 0)).refused == offences


@pytest.mark.parametrize(
    ("answer", "offence"),
    [
        ("no JSON", UNREADABLE),
        ('{"stmts": [{"stmt": {}}]}', UNREADABLE),
        ('{"stmts": [{"stmt": {"A": {}, "B": {}}}]}', UNREADABLE),
        ('{"stmts": [{"stmt": {"A": []}}]}', UNREADABLE),
        (parser.ParseError("stack depth limit exceeded"), Offence("oversize", "", None, TOO_DEEP)),
        (parser.ParseError("odd", 3), Offence("malformed", "", 3, "odd")),
        (RecursionError(), Offence("oversize", "", None, TOO_DEEP)),
    ],
)
def test_an_answer_of_the_parser_that_is_none_refuses(
    answer: str | Exception, offence: Offence, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answering(text: str) -> str:
        if isinstance(answer, str):
            return answer
        raise answer

    monkeypatch.setattr(parser, "parse_sql_json", answering)
    assert parse("SELECT 1") == offence


def test_a_text_that_no_parser_may_see_is_kept_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "parse_sql_json", None)
    told = analyse("x" * 20_000, shipped().catalogue, NOTHING)
    assert told.families == {"oversize"}


def test_words_are_found_without_comments() -> None:
    words = Words('/* for update */ SELECT é, (x) -- .é\n ."a""B".PG FOR /**/ SHARE')
    assert (words.begins(), words.word(17), words.word(18)) == (17, "SELECT", "")
    assert (words.behind_dot('a"B'), words.behind_dot("pg"), words.behind_dot("é")) == (39, 46, None)
    assert words.locks() == 49
    assert Words("'").begins() == 0


def test_a_catalogue_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="another format"):
        read('{"format": 2}')
