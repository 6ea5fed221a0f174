"""SQL text -> statements as plain trees, by PostgreSQL's own parser. Judges none.

The parser takes the stack that a text's nesting asks for and has no limit of its own on every platform:
call ``parse`` where the stack is large (``adapters/edge/sql_parse.py``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, cast

from pglast.parser import ParseError, Token, parse_sql_json, scan

from .sql_facts import Offence, shown

Parts = Mapping[str, Any]
MAX_DEPTH: Final = 300  # nodes: what Python reads at its usual recursion limit
TOO_DEEP: Final = f"it nests deeper than {MAX_DEPTH} levels"
_ESCAPED: Final = re.compile(r'u&"', re.IGNORECASE)
_LOCKS: Final = frozenset({"UPDATE", "SHARE", "NO", "KEY"})


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: the class of its node, the parts of it, and where it begins, in bytes."""

    kind: str
    parts: Parts
    at: int


def parse(text: str) -> tuple[Statement, ...] | Offence:
    """Return the statements of a text that ``sql_text`` passed, or why there are none."""
    try:
        escaped = _escaped(text)
        return escaped if escaped is not None else _statements(json.loads(parse_sql_json(text)))
    except ParseError as fault:
        return _unparsed(fault)
    except RecursionError:
        return Offence("oversize", "", None, TOO_DEEP)
    except ValueError:
        return Offence("malformed", "", None, "the parser's answer cannot be read")


def _escaped(text: str) -> Offence | None:
    """An identifier in escapes is refused and never decoded: readers of the text would not see its name."""
    if _ESCAPED.search(text) is None:
        return None
    found = next((each for each in scan(text) if each.name == "UIDENT"), None)
    if found is None:
        return None
    return Offence("escaped-name", shown(text[found.start : found.end + 1]), found.start)


def _unparsed(fault: ParseError) -> Offence:
    message, at = (*fault.args, None)[:2]
    told = shown(str(message))
    if "stack depth" in told:
        return Offence("oversize", "", None, TOO_DEEP)
    return Offence("malformed", "", at if isinstance(at, int) else None, told)


def _statements(tree: Any) -> tuple[Statement, ...]:
    return tuple(
        Statement(*node(each["stmt"]), at=int(each.get("stmt_location", 0)))
        for each in cast("list[dict[str, Any]]", tree["stmts"])
    )


def node(value: Any) -> tuple[str, Parts]:
    """Return the class and the parts of a node that says its class.

    Raises: ValueError, for anything else.
    """
    if not isinstance(value, dict) or len(cast("dict[str, Any]", value)) != 1:
        raise ValueError("no node")
    ((kind, parts),) = cast("dict[str, Any]", value).items()
    if not isinstance(parts, dict):
        raise ValueError("no node")
    return kind, cast("Parts", parts)


def nodes(value: Any) -> Iterator[tuple[str, Parts]]:
    """Yield the nodes of a part that holds one or a list of them; ``{}`` stands for none."""
    for each in cast("list[Any]", value) if isinstance(value, list) else (value,):
        if each != {}:
            yield node(each)


def names(value: Any) -> tuple[str, ...]:
    """Return the parts of a name; ``*`` stands for a star and for anything that is no part of a name."""
    listed = cast("list[Any]", value if isinstance(value, list) else [])
    return tuple(_name(each) for each in listed)


def _name(value: Any) -> str:
    held = cast("dict[str, Any]", value).get("String") if isinstance(value, dict) else None
    text = cast("dict[str, Any]", held).get("sval", "") if isinstance(held, dict) else None
    return text if isinstance(text, str) else "*"


def begins(text: str, at: int = 0) -> int:
    """Return where the first token of a text that parses is, from an offset on, in characters."""
    return next((each.start for each in _words(text) if each.start >= at), at)


def locks(text: str) -> int | None:
    """Return where a text that parses says ``FOR UPDATE`` or the like, in characters."""
    pairs = pairwise(_words(text))
    return next((one.start for one, after in pairs if one.name == "FOR" and after.name in _LOCKS), None)


def behind_dot(text: str, name: str) -> int | None:
    """Return where a text that parses has this name behind a dot, in characters."""
    pairs = pairwise(_words(text))
    dots = (after for one, after in pairs if one.name == "ASCII_46")
    return next((each.start for each in dots if _folded(text[each.start : each.end + 1]) == name), None)


def _folded(word: str) -> str:
    return word[1:-1].replace('""', '"') if word.startswith('"') else word.lower()


def _words(text: str) -> list[Token]:
    return [each for each in scan(text) if not each.name.endswith("COMMENT")]
