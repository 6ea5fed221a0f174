"""The mutants of the guard of queries: texts, walk, names, columns, verdict, policies. Runs nothing."""

from __future__ import annotations

from typing import Final

from .mutant import mutant

_WALKED: Final = "kernel.sql_walk:walked"
_INSIDE: Final = "kernel.sql_walk:_inside"
_NAMED: Final = "kernel.sql_walk:_named_queries"
_IN_FROM: Final = "kernel.sql_found:_range_function"
_UNLISTED: Final = "kernel.sql_rules:_unlisted"
_CALL: Final = "kernel.sql_names:Resolver.call"
_COLUMNS: Final = "kernel.sql_columns:columns"
_ODD: Final = "kernel.sql_text:_odd"
_SHIPPED: Final = "adapters.edge.sql_guard:shipped"
_READ: Final = '.read_text("utf-8")'


def _policy(old: str, new: str) -> tuple[str, str, str]:
    """An edit of the shipped policies, as they are read."""
    return (_SHIPPED, _READ, f"{_READ}.replace({old!r}, {new!r})")


_OF_TEXTS: Final = (
    mutant(
        "sql-characters",
        "the size of a text is counted in characters",
        ("kernel.sql_text:refused", "size > MAX_BYTES", "len(text) > MAX_BYTES"),
        first="queries: texts unread",
    ),
    mutant(
        "sql-nul",
        "a NUL is let through",
        (_ODD, 'if "\\0" in text:', "if False:"),
        first="queries: texts unread",
    ),
    mutant(
        "sql-comments",
        "one more comment is let through",
        (_ODD, "> MAX_COMMENTS", "> MAX_COMMENTS + 1"),
        first="queries: texts unread",
    ),
    mutant(
        "sql-runs",
        "a run of operators is let through",
        (_ODD, "if run is not None:", "if False:"),
        first="queries: texts unread",
    ),
    mutant(
        "sql-escapes",
        "a name in escapes is decoded",
        ("kernel.sql_tree:_escaped", "if looks is None", "if True"),
        first="queries: first piece",
    ),
    mutant(
        "sql-escapes-beyond-ascii",
        "beyond ASCII a name in escapes is decoded",
        ("kernel.sql_tree:_escaped", "(text.isascii() and all", "(not text.isascii() or all"),
        first="queries: first piece",
    ),
    mutant(
        "sql-several",
        "of several statements the first one counts",
        ("kernel.sql:analyse", "if len(statements) != 1:", "if not statements:"),
        first="queries: attacks are refused",
    ),
    mutant(
        "sql-bytes",
        "places are counted in bytes",
        ("kernel.sql_text:Offsets.characters", "return at if self._bytes is None else", "return at or"),
        first="queries: first piece",
    ),
)

_OF_WALKS: Final = (
    mutant(
        "sql-new-nodes",
        "a node that nobody has looked at is passed over",
        (_WALKED, "_unknown(kind, parts, found, is_root=len(stack) == 1)", "pass"),
        first="queries: new trees",
    ),
    mutant(
        "sql-new-parts",
        "a part that nobody has looked at is passed over",
        (_INSIDE, "raise ValueError(name)", "continue"),
        first="queries: new trees",
    ),
    mutant(
        "sql-plain-nodes",
        "a plain value may hold a node",
        (_INSIDE, "_check_plain(value)", "pass"),
        first="queries: new trees",
    ),
    mutant(
        "sql-text-nodes",
        "a node of a text may hold more",
        ("kernel.sql_walk:_is_text", "len(parts) == 1 and ", ""),
        first="queries: new trees",
    ),
    mutant(
        "sql-text-of-nodes",
        "a node of a text may hold no text",
        ("kernel.sql_walk:_is_text", 'type(parts.get("sval")) is str', '"sval" in parts'),
        first="queries: new trees",
    ),
    mutant(
        "sql-first-of-list",
        "of a list the first node is walked",
        ("kernel.sql_tree:nodes", "for each in listed(value) if", "for each in listed(value)[:1] if"),
        first="queries: every place",
    ),
    mutant(
        "sql-deep",
        "a tree may be of any depth",
        (_WALKED, "if len(stack) > MAX_DEPTH + 1:", "if False:"),
        first="queries: depth",
    ),
    mutant(
        "sql-all-named",
        "every name of WITH is seen by all its queries",
        (_NAMED, 'if parts.get("recursive") else scope', "if True else scope"),
        first="queries: named queries",
    ),
    mutant(
        "sql-named-by-itself",
        "a query of WITH sees its own name",
        (_INSIDE, 'scope if held == "WithClause" else inner', "inner"),
        first="queries: named queries",
    ),
    mutant(
        "sql-named-with-schema",
        "a name of WITH hides a relation with a schema",
        ("kernel.sql_walk:_note", '"schemaname" not in parts and ', ""),
        first="queries: named queries",
    ),
    mutant(
        "sql-explain",
        "of EXPLAIN only ANALYZE is refused",
        ("kernel.sql_found:_explain", "if name not in _PLANS:", 'if name == "analyze":'),
        first="queries: first piece",
    ),
    mutant(
        "sql-into",
        "INTO is told as syntax that nobody knows",
        (_INSIDE, "if name in refused:", 'if name in refused and name != "intoClause":'),
        first="queries: first piece",
    ),
)

_OF_CALLS: Final = (
    mutant(
        "sql-attributes",
        "attribute notation is no call",
        ("kernel.sql_found:_attributes", 'if name != "*"', "if False"),
        first="queries: every notation",
    ),
    mutant(
        "sql-alias",
        "behind the alias of a function there is no call",
        (_IN_FROM, 'found.callers.add(text_of(part(parts["alias"], "aliasname")))', "pass"),
        first="queries: every notation",
    ),
    mutant(
        "sql-no-alias",
        "behind the name of a function there is no call",
        (_IN_FROM, 'found.callers.update(names(inner.get("funcname"))[-1:])', "pass"),
        first="queries: every notation",
    ),
    mutant(
        "sql-cast-in-from",
        "behind a cast in FROM there is no call",
        (_IN_FROM, 'found.anonymous = found.anonymous or kind != "FuncCall"', "pass"),
        first="queries: every notation",
    ),
    mutant(
        "sql-schema-as-name",
        "a family is told by the first part of a name",
        (_CALL, "family_of(names[-1])", "family_of(names[0])"),
        first="queries: attacks are refused",
    ),
    mutant(
        "sql-attribute-of-extension",
        "a field may be a function of any extension",
        ("kernel.sql_names:Resolver.behind_dot", "name in self.catalogue.untrusted or ", ""),
        first="queries: every notation",
    ),
    mutant(
        "sql-no-families",
        "the catalogue alone decides over calls",
        (
            "kernel.sql_families:family_of",
            "if match is not None and match.lastgroup else None",
            "if False else None",
        ),
        first="queries: every notation",
    ),
    mutant(
        "sql-prefix-of-names",
        "a family is told by names that only begin so, and by no whole name",
        (
            "kernel.sql_families:family_of",
            "_NAMES.fullmatch(name.lower())",
            "_NAMES.fullmatch(name.lower()[:-1])",
        ),
        first="queries: attacks are refused",
    ),
    mutant(
        "sql-one-overload",
        "one overload that reads is enough",
        ("kernel.sql_catalog:Names.call", "not any(each.volatile", "not all(each.volatile"),
        first="queries: first piece",
    ),
    mutant(
        "sql-any-number",
        "a call with any number of arguments is the built-in one",
        ("kernel.sql_catalog:Names.call", "if each.takes(arguments)", "if True"),
        first="queries: first piece",
    ),
    mutant(
        "sql-any-schema",
        "a function of an extension is found in any schema",
        ("kernel.sql_catalog:Own.finds", 'not names[:-1] or ".".join(names[:-1]) in self.path', "True"),
        first="queries: first piece",
    ),
    mutant(
        "sql-catalogue-volatile",
        "a volatile function of the catalogue reads",
        ("kernel.sql_catalog:_overload", 'code[0] == "v"', 'code[0] == "w"'),
        first="queries: every notation",
    ),
    mutant(
        "sql-operators",
        "an operator of any name is a read",
        (_UNLISTED, 'if not names.lists("operators", each.names)', "if False"),
        first="queries: first piece",
    ),
    mutant(
        "sql-types",
        "a type of any name is a read",
        (_UNLISTED, 'if not names.lists("types", each.names)', "if False"),
        first="queries: first piece",
    ),
    mutant(
        "sql-sampling",
        "a method of any schema samples",
        (_UNLISTED, " or len(each.names) > 1", ""),
        first="queries: first piece",
    ),
)

_OF_FACTS: Final = (
    mutant(
        "sql-bare-columns",
        "a bare column is of no relation",
        (_COLUMNS, "whole | bare | joined", "whole | joined"),
        first="queries: columns",
    ),
    mutant(
        "sql-whole-rows",
        "a row taken whole is no column",
        ("kernel.sql_columns:_of", "table.renamed or table.alias in bare", "table.renamed"),
        first="queries: columns",
    ),
    mutant(
        "sql-renamed",
        "columns under another name are no columns",
        ("kernel.sql_columns:_of", "table.renamed or table.alias in bare", "table.alias in bare"),
        first="queries: columns",
    ),
    mutant(
        "sql-natural",
        "a natural join reads what it names",
        ("kernel.sql_found:_join", 'or bool(parts.get("isNatural"))', ""),
        first="queries: columns",
    ),
    mutant(
        "sql-joins",
        "a column behind the name of a join is of no relation",
        (_COLUMNS, "bare | joined |", "bare |"),
        first="queries: columns",
    ),
    mutant(
        "sql-newer-relations",
        "an unknown name of the system's is an app's",
        ("kernel.sql_names:Resolver.relation", "(*newer, *found)", "found"),
        first="queries: relations",
    ),
)

_OF_VERDICTS: Final = (
    mutant(
        "sql-errors-allow",
        "a policy that cannot be evaluated is passed over",
        ("kernel.sql_verdict:judge", "if decision.allow else", "if decision.allow or decision.errors else"),
        first="queries: policies of an app",
    ),
    mutant(
        "sql-any-text",
        "what was told of one text is told of every one",
        ("adapters.edge.sql_guard:Guard._place", "self._seen(text)", 'self._seen("")'),
        first="queries: remembered",
    ),
    mutant(
        "sql-last-piece",
        "the last piece is told",
        ("kernel.sql_verdict:explained", "min(spoken", "max(spoken"),
        first="queries: policies of an app",
    ),
    mutant(
        "sql-no-columns",
        "policies see no columns",
        ("kernel.sql_verdict:_members", '"columns": facts.columns', '"columns": frozenset()'),
        first="queries: policies of an app",
    ),
    mutant(
        "sql-new-families",
        "a family without a policy is a read",
        _policy("].containsAll(context.families)", "].containsAll([])"),
        first="queries: families",
    ),
    mutant(
        "sql-new-kinds",
        "a kind that is no read is let pass by itself",
        _policy('"explain"].containsAll', '"explain", "insert"].containsAll'),
        first="queries: families",
    ),
    mutant(
        "sql-no-sleep",
        "one family lost its policy",
        _policy('families.contains("sleep")', 'families.contains("asleep")'),
        first="queries: families",
    ),
    mutant(
        "sql-passwords",
        "all columns of a table of passwords are a read",
        _policy("pg_catalog.pg_shadow.*", "pg_catalog.pg_shadow.all"),
        first="queries: attacks are refused",
    ),
)

SQL_MUTANTS: Final = (*_OF_TEXTS, *_OF_WALKS, *_OF_CALLS, *_OF_FACTS, *_OF_VERDICTS)
