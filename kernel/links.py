"""Template links as JSON, in the form of the Cedar command line: template, new id, a value for each slot.

Links nothing; ``loader.py`` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from .compile import PolicySource
from .errors import Fault, fault
from .policy_text import Lines, Place, place
from .shapes import uid
from .strict_json import Json, JsonRefused, loads

_ENTITY: Final = re.compile(r'([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)::"((?:[^"\\]|\\["\\])*)"')
_MARK: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]|[^\s\[\]{},"]+')
_OPENING: Final = frozenset("[{")
_CLOSING: Final = frozenset("]}")
_MEMBERS: Final = {"template_id", "link_id", "args"}
_SLOTS: Final = {"?principal", "?resource"}


@dataclass(frozen=True, slots=True)
class Link:
    """One policy made of a template; ``values`` has an entity uid for ``principal``, ``resource`` or both."""

    template: str
    id: str
    values: Mapping[str, Mapping[str, Json]]
    place: Place


def read_links(source: PolicySource) -> tuple[list[Link], list[Fault]]:
    """Return the links of a file, and what is wrong with it: a list of ``{template_id, link_id, args}``."""
    try:
        value = loads(source.text.encode())
    except JsonRefused as refusal:
        at = place(source.text, len(source.text.encode()[: refusal.at or 0].decode("utf-8", "ignore")))
        return [], [fault("X_POLICY_LINK_INVALID", str(refusal), where=f"{source.origin}:{at}")]
    if not isinstance(value, list):
        return [], [fault("X_POLICY_LINK_INVALID", "the file is not a list", where=f"{source.origin}:1:1")]
    links: list[Link] = []
    faults: list[Fault] = []
    for item, spot in zip(value, _places(source.text), strict=True):
        read = _link(item, spot)
        if isinstance(read, Link):
            links.append(read)
        else:
            faults.append(fault("X_POLICY_LINK_INVALID", read, where=f"{source.origin}:{spot}"))
    return links, faults


def _link(item: Json, spot: Place) -> Link | str:
    if not isinstance(item, dict) or item.keys() != _MEMBERS:
        return "a link has exactly `template_id`, `link_id` and `args`"
    template, ident, given = item["template_id"], item["link_id"], item["args"]
    if (
        not isinstance(template, str)
        or not isinstance(ident, str)
        or not ident
        or not isinstance(given, dict)
    ):
        return "`template_id` and `link_id` are strings and `args` is an object"
    if not given.keys() <= _SLOTS:
        return "`args` has `?principal`, `?resource` or both"
    values = {slot.removeprefix("?"): _entity(text) for slot, text in given.items()}
    broken = sorted(slot for slot, value in values.items() if value is None)
    if broken:
        return f'`?{broken[0]}` needs an entity such as `Role::"editor"`'
    return Link(template, ident, cast("dict[str, dict[str, Json]]", values), spot)


def _entity(text: Json) -> dict[str, Json] | None:
    match = _ENTITY.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else uid(match[1], re.sub(r"\\(.)", r"\1", match[2]))


def _places(text: str) -> Iterator[Place]:
    """Yield the place of each item of the outermost list."""
    depth, awaited, lines = 0, False, Lines(text)
    for match in _MARK.finditer(text):
        mark = match[0]
        if depth == 1 and awaited and mark not in "],":
            yield lines.place(match.start())
        awaited = mark == "," or (mark == "[" and depth == 0)
        depth += (mark in _OPENING) - (mark in _CLOSING)
