"""OpenAPI 3.1 of the paths that a caller sees, from the declarations that answer there.

A function of a view's entries alone: what a caller does not see leaves no trace in it, not even in the
names of schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, Final, cast

from pydantic_core import to_json

from ...kernel.catalog import Entry
from ...kernel.idempotency import MAX_KEY_CHARS, is_keyed
from ...kernel.model import NO_SCOPE
from ...kernel.schema import JsonSchema, without_unused
from ...kernel.view import Table
from ..wire import JSON_TYPE, PROBLEM_TYPE
from .examples import example
from .routes import WITH_BODY, Route
from .status import APPLICATION, FORBIDDEN, OK, STATUS

DOCUMENTS: Final = 64
VERSION: Final = "3.1.1"
Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Described:
    """What the document says of the whole app, the same to every caller.

    ``session_cookie`` is there where a request may be made by a session.
    """

    title: str = ""
    version: str = "0"
    session_cookie: str | None = None


class Documents:
    """The encoded document of each set of visible entries, kept while they are asked for."""

    def __init__(self, described: Described, prefix: str, routes: Mapping[Entry, Route]) -> None:
        self._described, self._prefix, self._routes = described, prefix, routes
        self.of = lru_cache(DOCUMENTS)(self._encoded)

    def _encoded(self, table: Table) -> bytes:
        return to_json(self.document(table.paths.values(), table.tools))

    def document(self, entries: Iterable[Entry], tools: Iterable[str]) -> Node:
        """Return the document of some entries, of which ``tools`` are tools over MCP too."""
        components, named = _Components(), frozenset(tools)
        paths = {
            self._prefix + entry.path: _path(entry, self._routes[entry], components, tool=entry.name in named)
            for entry in sorted(entries, key=lambda each: each.path)
            if entry.path
        }
        return {
            "openapi": VERSION,
            "info": {"title": self._described.title, "version": self._described.version},
            "paths": paths,
            "components": {
                "schemas": {**components.schemas, "Problem": _PROBLEM},
                "responses": {"Problem": _REFUSED},
                "securitySchemes": _schemes(self._described),
            },
            "security": _security(self._described),
        }


def _schemes(described: Described) -> Node:
    session = {"type": "apiKey", "in": "cookie", "name": described.session_cookie}
    bearer = {"type": "http", "scheme": "bearer"}
    return {"bearer": bearer} if described.session_cookie is None else {"bearer": bearer, "session": session}


def _security(described: Described) -> list[Node]:
    return [{name: []} for name in _schemes(described)]


def _path(entry: Entry, route: Route, components: _Components, *, tool: bool) -> Node:
    """Return the operations of a path. The first method has the entry's name, the others add their own."""
    return {
        method.lower(): _operation(entry, method, components, tool=tool)
        | {"operationId": entry.name if at == 0 else f"{entry.name}:{method.lower()}"}
        for at, method in enumerate(route.methods)
    }


def _operation(entry: Entry, method: str, components: _Components, *, tool: bool) -> Node:
    told: Node = {"summary": entry.title or entry.name}
    if entry.description:
        told["description"] = entry.description
    document = components.inline(entry.input.document)
    parameters = [] if method in WITH_BODY else list(_parameters(entry, document))
    if is_keyed(entry):
        parameters.append({**_KEY, "required": entry.requires_key})
    if parameters:
        told["parameters"] = parameters
    if method in WITH_BODY:
        told["requestBody"] = {"required": True, "content": {JSON_TYPE: _body(entry, document)}}
    told["responses"] = _responses(entry, method, components)
    if entry.scope is not None and entry.scope != NO_SCOPE:
        told["x-nonsuch"] = {"scope": entry.scope}
    if tool:
        told["x-nonsuch"] = {**told.get("x-nonsuch", {}), "mcpTool": entry.name}
    return told


def _body(entry: Entry, document: JsonSchema) -> Node:
    given = example(entry.input.document)
    return {"schema": document} if given is None else {"schema": document, "example": given}


def _parameters(entry: Entry, document: JsonSchema) -> Iterable[Node]:
    required, given = document.get("required", ()), example(entry.input.document) or {}
    for name, held in cast("dict[str, JsonSchema]", document.get("properties", {})).items():
        told: Node = {"name": name, "in": "query", "required": name in required}
        if "description" in held:
            told["description"] = held["description"]
        told["schema"] = _sayable(held)
        yield told if name not in given else {**told, "example": given[name]}


def _sayable(held: JsonSchema) -> JsonSchema:
    """Return what a query string can say of a key: never null, which is its absence, and no empty list."""
    options = cast("list[JsonSchema]", held.get("anyOf", []))
    kept = [each for each in options if each.get("type") != "null"]
    if len(kept) < len(options):
        rest = {key: each for key, each in held.items() if key not in ("anyOf", "default")}
        held = {**rest, **kept[0]} if len(kept) == 1 else {**rest, "anyOf": kept}
    if held.get("type") == "array":
        return {**held, "minItems": max(1, held.get("minItems", 1))}
    return held


_KEY: Final[Node] = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Choose a fresh one for each call; a retry that repeats it does not run twice",
    "schema": {"type": "string", "pattern": f"^[A-Za-z0-9_.:~-]{{1,{MAX_KEY_CHARS}}}$"},
}


def _responses(entry: Entry, method: str, components: _Components) -> Node:
    codes = {401, FORBIDDEN, STATUS["X_NOT_FOUND"], APPLICATION, STATUS["X_INPUT_INVALID"], 429, 500, 503}
    if method in WITH_BODY:
        codes |= {STATUS[each] for each in ("X_JSON_INVALID", "X_MEDIA_TYPE_UNSUPPORTED")}
        codes.add(STATUS["X_MCP_BODY_TOO_LARGE"])
    if entry.requires_key:
        codes.add(STATUS["X_IDEMPOTENCY_KEY_REQUIRED"])
    schema = components.inline(entry.output.whole)
    answer: Node = {"description": "The answer", "content": {JSON_TYPE: {"schema": schema}}}
    refused = {"$ref": "#/components/responses/Problem"}
    return {str(OK): answer} | {str(code): refused for code in sorted(codes)}


_TEXT: Final[Node] = {"type": "string"}
_MEMBERS: Final = ("code", "cause", "fix", "docs", "type", "title", "detail")
_PROBLEM: Final[Node] = {
    "type": "object",
    "description": "Why a request was refused, and what to do about it (RFC 9457)",
    "properties": {**dict.fromkeys(_MEMBERS, _TEXT), "status": {"type": "integer"}},
    "required": [*_MEMBERS, "status"],
}
_REFUSED: Final[Node] = {
    "description": "The request was refused",
    "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


class _Components:
    """The schemas that operations share, by a name that no two different ones have."""

    def __init__(self) -> None:
        self.schemas: dict[str, JsonSchema] = {}
        self._known: dict[tuple[str, str], str] = {}

    def inline(self, document: JsonSchema) -> JsonSchema:
        """Return a document whose definitions are components."""
        definitions = cast("dict[str, JsonSchema]", document.get("$defs", {}))
        names = {name: self._name(name, definitions) for name in definitions}
        for name, held in definitions.items():
            self.schemas[names[name]] = cast("JsonSchema", _referring(held, names))
        rest = {key: held for key, held in document.items() if key != "$defs"}
        return cast("JsonSchema", _referring(rest, names))

    def _name(self, name: str, definitions: Mapping[str, JsonSchema]) -> str:
        """Return the name of a definition: its own, or with a number where another one has that."""
        whole = without_unused({**definitions[name], "$defs": definitions})
        key = (name, json.dumps(whole, sort_keys=True))
        if key not in self._known:
            tried = (name if at == 1 else f"{name}{at}" for at in count(1))
            taken = {"Problem", *self._known.values()}
            self._known[key] = next(each for each in tried if each not in taken)
        return self._known[key]


def _referring(node: object, names: Mapping[str, str]) -> object:
    """Return a part of a document that refers to components instead of its own definitions."""
    if isinstance(node, list):
        return [_referring(each, names) for each in cast("list[object]", node)]
    if not isinstance(node, dict):
        return node
    held = cast("dict[str, object]", node)
    return {
        key: _pointed(each, names) if isinstance(each, str) else _referring(each, names)
        for key, each in held.items()
    }


def _pointed(text: str, names: Mapping[str, str]) -> str:
    name = text.removeprefix("#/$defs/")
    return f"#/components/schemas/{names[name]}" if name != text and name in names else text
