"""What a text must be before a parser may see it: size, comments, operators. Parses nothing.

The parser and the server itself take time that grows with the square of some texts, and no statement
timeout ends that: a text that could do so is refused by its shape.
"""

from __future__ import annotations

import re
from typing import Final

from .sql_facts import Offence, shown

MAX_BYTES: Final = 16 * 1024
MAX_COMMENTS: Final = 32  # of `/*`: nested openers are lexed in quadratic time
MAX_OPERATOR: Final = 256  # characters in a row: a run of `+` is lexed in quadratic time
_OPERATORS: Final = re.compile(rf"[-+*/<>=~!@#%^&|`?]{{{MAX_OPERATOR + 1}}}")


def refused(text: object) -> Offence | None:
    """Return why a text is refused unread, or nothing."""
    if not isinstance(text, str):
        return Offence("malformed", "", None, "the statement is no text")
    if len(text) > MAX_BYTES:
        return _too_large()
    try:
        size = len(text.encode())
    except UnicodeEncodeError as fault:
        return Offence("malformed", "", fault.start, "it is no UTF-8")
    return _too_large() if size > MAX_BYTES else _odd(text)


def _too_large() -> Offence:
    return Offence("oversize", "", None, f"the text is longer than {MAX_BYTES} bytes")


def _odd(text: str) -> Offence | None:
    if "\0" in text:
        why = "a NUL would hide what stands behind it"
        return Offence("malformed", "", text.index("\0"), why)
    if text.count("/*") > MAX_COMMENTS:
        return Offence("oversize", "", None, f"`/*` stands there more than {MAX_COMMENTS} times")
    run = _OPERATORS.search(text)
    if run is not None:
        why = f"more than {MAX_OPERATOR} operator characters stand in a row"
        return Offence("oversize", shown(run[0]), run.start(), why)
    return None


class Offsets:
    """Offsets in characters from those in bytes, which the parser counts."""

    def __init__(self, text: str) -> None:
        self._bytes = None if text.isascii() else text.encode()

    def characters(self, at: int) -> int:
        """Return the offset in characters of an offset in bytes."""
        return at if self._bytes is None else len(self._bytes[:at].decode(errors="replace"))
