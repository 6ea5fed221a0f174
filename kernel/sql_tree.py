"""SQL text -> statements as plain trees, by PostgreSQL's own parser. Judges none.

The parser takes the stack that a text's nesting asks for and has no limit of its own on every platform:
call ``parse`` where the stack is large (``adapters/edge/sql_parse.py``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from .sql_facts import Offence, shown
from .strict_json import Json

Parts = Mapping[str, Json]
MAX_DEPTH: Final = 300  # nodes: what Python reads at its usual recursion limit
TOO_DEEP: Final = f"it nests deeper than {MAX_DEPTH} levels"
_ESCAPED: Final = re.compile(r'(?<![\w$])u&"', re.IGNORECASE)
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_LOCKS: Final = frozenset({"UPDATE", "SHARE", "NO", "KEY"})


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: the class of its node, the parts of it, where it begins and how long it is, in bytes.

    The last statement of a text has no length if nothing ends it.
    """

    kind: str
    parts: Parts
    at: int
    length: int = 0

    def text(self, whole: str) -> str:
        """Return the statement as it stands in the whole text."""
        held = whole.encode()[self.at :]
        return (held[: self.length] if self.length else held).decode(errors="replace")


def parse(text: str) -> tuple[Statement, ...] | Offence:
    """Return the statements of a text that ``sql_text`` passed, or why there are none.

    The parser is an extra (ADR 0019), so it is imported where it is used.
    """
    from pglast import parser

    try:
        escaped = _escaped(text)
        return escaped if escaped is not None else _statements(json.loads(parser.parse_sql_json(text)))
    except parser.ParseError as fault:
        return _unparsed(fault)
    except RecursionError:
        return Offence("oversize", "", None, TOO_DEEP)
    except ValueError:
        return Offence("malformed", "", None, "the parser's answer cannot be read")


def _escaped(text: str) -> Offence | None:
    """An identifier in escapes is refused and never decoded: readers of the text would not see its name.

    Tokens tell it from what only looks so in a literal. Beyond ASCII they cost the square of the text, so
    there it is refused wherever it stands.
    """
    from pglast import parser

    looks = _ESCAPED.search(text)
    if looks is None or (text.isascii() and all(each.name != "UIDENT" for each in parser.scan(text))):
        return None
    return Offence("escaped-name", shown(text[looks.start() : looks.end()]), looks.start())


def _unparsed(fault: Exception) -> Offence:
    message, at = (*fault.args, None)[:2]
    told = shown(str(message))
    if "stack depth" in told:
        return Offence("oversize", "", None, TOO_DEEP)
    return Offence("malformed", "", at if isinstance(at, int) else None, told)


def _statements(tree: Json) -> tuple[Statement, ...]:
    held = (each for each in listed(part(tree, "stmts")) if isinstance(each, dict))
    return tuple(
        Statement(*node(each.get("stmt")), _offset(each.get("stmt_location")), _offset(each.get("stmt_len")))
        for each in held
    )


def _offset(value: Json) -> int:
    return value if isinstance(value, int) else 0


def node(value: Json) -> tuple[str, Parts]:
    """Return the class and the parts of a node that says its class. Raises: ValueError, for anything else."""
    if isinstance(value, dict) and len(value) == 1:
        ((kind, parts),) = value.items()
        if isinstance(parts, dict):
            return kind, parts
    raise ValueError("no node")


def nodes(value: Json) -> list[tuple[str, Parts]]:
    """Return the nodes of a part that holds one or a list of them; ``{}`` stands for none.

    Raises: ValueError, for anything else.
    """
    return [node(each) for each in listed(value) if each != {}]


def part(value: Json, name: str) -> Json:
    """Return a part of a part, nothing where there is none."""
    return value.get(name) if isinstance(value, dict) else None


def listed(value: Json) -> list[Json]:
    """Return what a part holds as a list, an absent one as an empty one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(value: Json) -> str:
    """Return a plain text, an absent one as an empty one."""
    return value if isinstance(value, str) else ""


def names(value: Json) -> tuple[str, ...]:
    """Return the parts of a name, at least one; ``*`` stands for a star and for what is no part of a name."""
    return tuple([_name(each) for each in listed(value)]) or ("",)


def _name(value: Json) -> str:
    held = value.get("String") if isinstance(value, dict) else None
    return text_of(held.get("sval")) if isinstance(held, dict) else "*"


class Words:
    """The tokens of a text that parses, comments left out; places are in characters.

    They are for messages: every character beyond ASCII is read as a letter, which costs less.
    """

    def __init__(self, text: str) -> None:
        from pglast import parser

        try:
            found = parser.scan(_BEYOND_ASCII.sub("q", text))
        except parser.ParseError:
            found = []
        tokens = [each for each in found if not each.name.endswith("COMMENT")]
        pairs = list(pairwise(tokens))
        self._words = {each.start: text[each.start : each.end + 1] for each in tokens}
        self._locks = [one.start for one, after in pairs if one.name == "FOR" and after.name in _LOCKS]
        dots = [after.start for one, after in pairs if one.name == "ASCII_46"]
        self._behind_dots = {_folded(self._words[at]): at for at in reversed(dots)}

    def begins(self, at: int = 0) -> int:
        """Return where the first token is, from an offset on."""
        return next((start for start in self._words if start >= at), at)

    def word(self, at: int) -> str:
        """Return the token that begins at an offset."""
        return self._words.get(at, "")

    def locks(self) -> int | None:
        """Return where ``FOR UPDATE`` or the like is."""
        return next(iter(self._locks), None)

    def behind_dot(self, name: str) -> int | None:
        """Return where this name is first behind a dot."""
        return self._behind_dots.get(name)


def _folded(word: str) -> str:
    return word[1:-1].replace('""', '"') if word.startswith('"') else word.lower()
