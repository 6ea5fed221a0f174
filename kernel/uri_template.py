"""URI templates: which URI is one of a template's, and what its variables then are.

RFC 6570 level 1 (``{id}``: no slash) and reserved expansion (``{+path}``: slashes too), read backwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote_to_bytes

MAX_URI_CHARS: Final = 2_048
MAX_VARIABLES: Final = 8
_EXPRESSION: Final = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}")
_ABSOLUTE: Final = re.compile(r"[a-z][a-z0-9+.-]*:[\x21-\x7e]*")


class TemplateRefused(ValueError):
    """A template that could not be read backwards."""


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """A template with at least one variable.

    Raises: TemplateRefused.
    """

    text: str
    names: tuple[str, ...] = field(init=False)
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = tuple(name for _, name in _EXPRESSION.findall(self.text))
        rest = _EXPRESSION.sub("x", self.text)
        if not _ABSOLUTE.fullmatch(rest) or "{" in rest or "}" in rest:
            raise TemplateRefused("takes `{name}` and `{+name}` in an absolute URI, and nothing else")
        if len(set(names)) != len(names) or len(names) > MAX_VARIABLES:
            raise TemplateRefused(f"names a variable twice, or more than {MAX_VARIABLES}")
        if re.search(r"\}\{", self.text):
            raise TemplateRefused("has two variables with nothing between them")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_pattern", re.compile(_pattern(self.text)))

    def match(self, uri: str) -> Mapping[str, str] | None:
        """Return the variables of a URI of this template, percent-decoded; ``None`` if it is none."""
        found = self._pattern.fullmatch(uri) if len(uri) <= MAX_URI_CHARS else None
        if found is None:
            return None
        try:
            return {name: unquote_to_bytes(text).decode() for name, text in found.groupdict().items()}
        except UnicodeDecodeError:
            return None


def is_template(uri: str) -> bool:
    """Whether a declared URI has variables, or means to."""
    return "{" in uri or "}" in uri


def is_uri(text: str) -> bool:
    """Whether a text is an absolute URI, as far as a resource needs to be."""
    return len(text) <= MAX_URI_CHARS and _ABSOLUTE.fullmatch(text) is not None


def _pattern(text: str) -> str:
    parts: list[str] = []
    at = 0
    for each in _EXPRESSION.finditer(text):
        reserved, name = each.groups()
        any_of = r"[\x21-\x7e]" if reserved else r"[^/?#\x00-\x20\x7f-\U0010ffff]"
        parts += [re.escape(text[at : each.start()]), f"(?P<{name}>{any_of}+)"]
        at = each.end()
    return "".join([*parts, re.escape(text[at:])])
