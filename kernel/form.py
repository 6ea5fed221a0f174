"""A form for a person: one flat object of plain fields, which is all that clients can draw.

MCP 2025-11-25, client/elicitation, ``requestedSchema``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

from pydantic import BaseModel

from .schema import JsonSchema, SchemaRefused, checker

FORMS: Final = 256
_JOINING: Final = ("anyOf", "$ref")
_PLAIN: Final = frozenset({"string", "number", "integer", "boolean", "array"})


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """The document of a form, and what tells whether an answer fills it."""

    document: JsonSchema
    filled: Callable[[object], bool]


def form_of(schema: type[BaseModel] | Mapping[str, Any]) -> Form:
    """Return the form of a model, or of a JSON Schema as it is.

    Raises: SchemaRefused, when a field is not plain.
    """
    if isinstance(schema, Mapping):
        document = dict(schema)
        return Form(document, checker(document))
    return _modelled(schema)


@lru_cache(FORMS)
def _modelled(model: type[BaseModel]) -> Form:
    whole = model.model_json_schema()
    if "properties" not in whole:
        raise SchemaRefused("a form has fields of its own")
    defs = cast("dict[str, JsonSchema]", whole.get("$defs", {}))
    document: JsonSchema = {
        "type": "object",
        "properties": {name: _plain(name, each, defs) for name, each in whole["properties"].items()},
    }
    if "required" in whole:
        document["required"] = whole["required"]
    return Form(document, checker(document))


def _plain(name: str, held: JsonSchema, defs: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return a field without references and without null: an optional field is one that may be left out."""
    options = [each for each in cast("list[JsonSchema]", held.get("anyOf", [])) if each.get("type") != "null"]
    inner = options[0] if len(options) == 1 else held
    own = {key: value for key, value in held.items() if key not in _JOINING}
    field = {**_resolved(inner, defs), **own}
    if field.get("default", "") is None:
        del field["default"]
    if field.get("type") == "array":
        field["items"] = _resolved(cast(JsonSchema, field.get("items", {})), defs)
    if field.get("type") not in _PLAIN or (field["type"] == "array" and not _choices(field["items"])):
        raise SchemaRefused(f"`{name}` is no plain field: a form has text, numbers, yes or no, and choices")
    return field


def _resolved(held: JsonSchema, defs: Mapping[str, JsonSchema]) -> JsonSchema:
    target = str(held.get("$ref", "")).removeprefix("#/$defs/")
    return {**defs.get(target, {}), **{key: value for key, value in held.items() if key not in _JOINING}}


def _choices(items: JsonSchema) -> bool:
    """Whether the items of an array are words to choose from."""
    return items.get("type") == "string" and "enum" in items
