"""``x-mcp-header``: arguments that a client repeats in ``Mcp-Param-*`` headers, and whether the two agree.

Asked only about a tool that the caller sees and may use, so that no header tells what is hidden
(MCP 2026-07-28, streamable-http, custom headers from tool parameters).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast

from ...kernel.catalog import Entry
from ...kernel.schema import JsonSchema
from ...kernel.strict_json import Json
from .envelope import decoded

KEYWORD: Final = "x-mcp-header"
PREFIX: Final = "mcp-param-"
# Narrower than an HTTP token: under WSGI `a_b` and `a-b` are one header.
TOKEN: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_PRIMITIVE: Final = frozenset({"string", "integer", "boolean"})
_MEMO: Final = 4_096


@dataclass(frozen=True, slots=True)
class Mirrored:
    """One argument, by its path, and the header that repeats it."""

    path: tuple[str, ...]
    header: str


@lru_cache(_MEMO)
def mirrored(entry: Entry) -> tuple[Mirrored, ...]:
    """Return the arguments of an entry that headers repeat."""
    return tuple(_found(entry.input.document, ()))


def _found(schema: JsonSchema, path: tuple[str, ...]) -> Iterator[Mirrored]:
    for name, held in cast("dict[str, JsonSchema]", schema.get("properties", {})).items():
        if isinstance(held.get(KEYWORD), str):
            yield Mirrored((*path, name), held[KEYWORD])
        if held.get("type") == "object":
            yield from _found(held, (*path, name))


def misdeclared(entry: Entry) -> Iterator[str]:
    """Yield what is wrong with the headers that an input declares; clients drop a tool for it."""
    seen: set[str] = set()
    for path, held in _annotated(entry.input.document, ()):
        name, label = held[KEYWORD], ".".join(path)
        if not isinstance(name, str) or not TOKEN.fullmatch(name):
            yield f"`{label}` of `{entry.shown}` has an `{KEYWORD}` outside of A-Z a-z 0-9 -"
        elif name.lower() in seen:
            yield f"`{entry.shown}` gives two arguments the header `{name}`"
        elif held.get("type") not in _PRIMITIVE:
            yield f"`{label}` of `{entry.shown}` has an `{KEYWORD}` and is no string, integer or boolean"
        seen.add(str(name).lower())


def _annotated(schema: JsonSchema, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], JsonSchema]]:
    for name, held in cast("dict[str, JsonSchema]", schema.get("properties", {})).items():
        if KEYWORD in held:
            yield (*path, name), held
        yield from _annotated(held, (*path, name))


def mismatch(entry: Entry, arguments: Mapping[str, Json], headers: Mapping[str, str]) -> str | None:
    """Return why the headers of a call contradict its arguments."""
    for each in mirrored(entry):
        value, sent = _value(arguments, each.path), headers.get(PREFIX + each.header.lower())
        if value is None and sent is None:
            continue
        if value is None or sent is None or not _same(value, decoded(sent)):
            return f"the `Mcp-Param-{each.header}` header and the argument `{'.'.join(each.path)}` disagree"
    return None


def _value(arguments: Mapping[str, Json], path: tuple[str, ...]) -> Json:
    value: Json = dict(arguments)
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _same(value: Json, sent: str | None) -> bool:
    match value:
        case bool():
            return sent == ("true" if value else "false")
        case int():
            return sent is not None and _number(sent) == value
        case str():
            return sent == value
        case _:
            return False


def _number(text: str) -> float | int | None:
    if re.fullmatch(r"-?[0-9]{1,20}", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?[0-9]{1,20}\.[0-9]{1,20}", text) else None
