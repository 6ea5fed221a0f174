"""An input that satisfies a document: what its author gave as an example, or the plainest one there is.

Guesses, and gives nothing where the guess would be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from ...kernel.schema import JsonSchema, checker
from ...kernel.strict_json import Json

MAX_DEPTH: Final = 16
_FORMATS: Final[Mapping[str, str]] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "duration": "PT1H",
    "email": "ann@example.com",
    "time": "12:00:00Z",
    "uri": "https://example.com/",
    "uuid": "018d5f32-0000-7000-8000-000000000000",
}


def example(document: JsonSchema) -> dict[str, Json] | None:
    """Return arguments that the document takes; nothing if none were found."""
    definitions = cast("dict[str, JsonSchema]", document.get("$defs", {}))
    guess = _Guess(definitions).of(document, 0)
    return guess if isinstance(guess, dict) and checker(document)(guess) else None


class _Guess:
    """Guesses values of one document."""

    def __init__(self, definitions: Mapping[str, JsonSchema]) -> None:
        self._definitions = definitions

    def of(self, held: JsonSchema, depth: int) -> Json:
        """Return the example of a schema: declared, fixed, or of its type."""
        if depth > MAX_DEPTH:
            return None
        for key in ("examples", "enum"):
            given = held.get(key)
            if isinstance(given, list) and given:
                return cast("list[Json]", given)[0]
        for key in ("const", "default"):
            if key in held:
                return cast("Json", held[key])
        return self._typed(held, depth)

    def _typed(self, held: JsonSchema, depth: int) -> Json:
        target = held.get("$ref")
        if isinstance(target, str):
            return self.of(self._definitions.get(target.removeprefix("#/$defs/"), {}), depth + 1)
        options = cast("list[JsonSchema]", held.get("anyOf") or held.get("oneOf") or [])
        if options:
            return self.of(options[0], depth + 1)
        kind = held.get("type")
        if kind == "object":
            return self._object(held, depth)
        if kind == "array":
            item = cast("JsonSchema", held.get("items", {}))
            return [self.of(item, depth + 1) for _ in range(min(int(held.get("minItems", 0)), 8))]
        scalar = _SCALARS.get(str(kind))
        return None if scalar is None else scalar(held)

    def _object(self, held: JsonSchema, depth: int) -> Json:
        required = cast("list[str]", held.get("required", []))
        members = cast("dict[str, JsonSchema]", held.get("properties", {}))
        told = [name for name, each in members.items() if name in required or "examples" in each]
        return {name: self.of(members[name], depth + 1) for name in told}


def _text(held: JsonSchema) -> Json:
    text = _FORMATS.get(str(held.get("format")), "text")
    return text.ljust(int(held.get("minLength", 0)), "x")[: int(held.get("maxLength", len(text)))] or text


def _number(held: JsonSchema) -> Json:
    if "exclusiveMinimum" in held:
        return cast("Json", held["exclusiveMinimum"] + 1)
    return cast("Json", max(held.get("minimum", 0), min(held.get("maximum", 1), 1)))


_SCALARS: Final[Mapping[str, Callable[[JsonSchema], Json]]] = {
    "string": _text,
    "integer": _number,
    "number": _number,
    "boolean": lambda _: True,
}
