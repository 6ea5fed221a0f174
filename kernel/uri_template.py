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
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:")
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
        if not _ABSOLUTE.fullmatch(rest) or "{" in rest or "}" in rest or not _SCHEME.match(self.text):
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
    """Return the pattern of a template. A variable ends where what stands behind it first begins.

    There is one way to read a URI and no way back, so a hostile one costs what its length costs.
    """
    parts: list[str] = []
    at = 0
    found = list(_EXPRESSION.finditer(text))
    for each, after in zip(found, [*found[1:], None], strict=True):
        reserved, name = each.groups()
        any_of = r"[\x21-\x7e]" if reserved else r"[^/?#\x00-\x20\x7f-\U0010ffff]"
        behind = "" if after is None else f"(?!{re.escape(text[each.end() : after.start()])})"
        parts += [re.escape(text[at : each.start()]), f"(?P<{name}>{_all_of(behind, any_of, after)})"]
        at = each.end()
    return "".join([*parts, re.escape(text[at:])])


def _all_of(behind: str, any_of: str, after: object) -> str:
    return f"{any_of}+" if after is None else f"(?>(?:{behind}{any_of})+)"
