"""A query string as arguments: each text becomes what the input document declares, in one spelling only.

Judges nothing: a text that is no canonical spelling stays a text, and the document refuses it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import unquote_to_bytes

from ...kernel.schema import JsonSchema
from ...kernel.strict_json import Json

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,999}")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})
MAX_DEPTH: Final = 8
Definitions = Mapping[str, JsonSchema]


@dataclass(frozen=True, slots=True)
class Shape:
    """What one key holds: scalars of some types, lists of some types, or either.

    ``commas`` lets one occurrence hold several items (RFC 6570 3.2.8, without ``explode``).
    """

    one: frozenset[str]
    many: frozenset[str]
    commas: bool = False

    def read(self, said: list[bytes]) -> Json:
        """Return the value of a key from what each of its occurrences said."""
        if self.many and self.commas and len(said) == 1:
            said = said[0].split(b",")
        if self.many and (len(said) > 1 or not self.one):
            return [_scalar(_text(each), self.many) for each in said]
        values = [_scalar(_text(each), self.one) for each in said]
        return values[0] if len(values) == 1 else cast("Json", values)


_UNDECLARED: Final = Shape(frozenset({"string"}), frozenset())


def arguments(query: str, shapes: Mapping[str, Shape]) -> dict[str, Json]:
    """Return the arguments of a query string (WHATWG URL, application/x-www-form-urlencoded).

    A key that comes twice and is no list becomes a list all the same, which its document refuses; bytes
    that are no UTF-8 become halves of surrogate pairs, which no document reads.
    """
    said: dict[str, list[bytes]] = {}
    for part in query.encode("latin-1", "replace").split(b"&"):
        name, _, value = part.partition(b"=")
        if part:
            said.setdefault(_text(name), []).append(value)
    return {name: shapes.get(name, _UNDECLARED).read(values) for name, values in said.items()}


def _text(raw: bytes) -> str:
    return unquote_to_bytes(raw.replace(b"+", b" ")).decode("utf-8", "surrogateescape")


def _scalar(text: str, types: frozenset[str]) -> Json:
    """Return a text as one of some types. Where a text is among them, it stays one."""
    if "string" in types:
        return text
    if "boolean" in types and text in ("true", "false"):
        return text == "true"
    if not types.isdisjoint({"integer", "number"}) and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in types and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


# what a document makes of its keys


def shapes_of(document: JsonSchema) -> Mapping[str, Shape] | str:
    """Return the shape of each key of an input; or the first key that a query string cannot hold."""
    definitions = cast("dict[str, JsonSchema]", document.get("$defs", {}))
    found: dict[str, Shape] = {}
    for name, held in cast("dict[str, JsonSchema]", document.get("properties", {})).items():
        shape = _shape(held, definitions, commas=name.endswith("_in"))
        if shape is None:
            return name
        found[name] = shape
    return found


def _shape(held: JsonSchema, definitions: Definitions, *, commas: bool) -> Shape | None:
    one, many = frozenset[str](), frozenset[str]()
    for branch in _branches(held, definitions):
        types = _types(branch)
        if not types <= _SCALARS | {"array"} or not types:
            return None
        if "array" in types:
            items = _items(branch, definitions)
            if items is None:
                return None
            many |= items
        one |= types - {"array"}
    return Shape(one, many, commas) if one or many else None


def _items(branch: JsonSchema, definitions: Definitions) -> frozenset[str] | None:
    """Return the types of a list's items, if all of them are scalars."""
    items = branch.get("items")
    if not isinstance(items, dict) or "prefixItems" in branch:
        return None
    kinds = [_types(each) for each in _branches(cast("JsonSchema", items), definitions)]
    plain = kinds and all(kind and kind <= _SCALARS for kind in kinds)
    return frozenset[str]().union(*kinds) if plain else None


def _branches(held: JsonSchema, definitions: Definitions, depth: int = 0) -> list[JsonSchema]:
    """Return what a value may be, without null: a key that is absent says that."""
    target = held.get("$ref")
    if depth > MAX_DEPTH:
        return [{}]
    if isinstance(target, str):
        return _branches(definitions.get(target.removeprefix("#/$defs/"), {}), definitions, depth + 1)
    options = cast("list[JsonSchema] | None", held.get("anyOf") or held.get("oneOf"))
    if options:
        return [each for option in options for each in _branches(option, definitions, depth + 1)]
    return [] if held.get("type") == "null" else [held]


def _types(held: JsonSchema) -> frozenset[str]:
    """Return the types of one branch; what has no type that is known here has none."""
    told = held.get("type")
    if isinstance(told, list):
        return frozenset(cast("list[str]", told)) - {"null"}
    if isinstance(told, str):
        return frozenset({told})
    options: list[object] = [held["const"]] if "const" in held else list(held.get("enum", ()))
    return frozenset(_type_of(each) for each in options if each is not None)


def _type_of(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case _:
            return "object"
