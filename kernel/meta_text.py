"""The catalog of the constant surface, as data and as compact text: short by rule, never by a cut.

Knows no view and no caller: what it is given is what it tells.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from .declare import ListParams
from .schema import JsonSchema

Kind = Literal["query", "action"]
KINDS: Final[tuple[Kind, ...]] = ("query", "action")
MAX_FIELDS: Final = 4
MAX_CHARS: Final = 100
MAX_LITERALS: Final = 8
MAX_DEPTH: Final = 3
NOTHING: Final = "no resources"
_LINE_ENDS: Final = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}  # JSON leaves these as they are
_PLAIN: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


@dataclass(frozen=True, slots=True)
class MetaAction:
    """One action of a resource. A ``query`` only reads; ``confirms`` marks what a person finishes."""

    name: str
    description: str
    kind: Kind
    confirms: bool
    scope: str | None
    input_schema: JsonSchema
    list_params: ListParams | None = None


@dataclass(frozen=True, slots=True)
class MetaResource:
    """One resource of the constant surface, with the actions on it that its caller sees."""

    name: str
    description: str
    actions: tuple[MetaAction, ...]


def render_catalog(resources: Iterable[MetaResource]) -> str:
    """Return one line per resource and, under it, one line per action.

    ``name (action; confirms; scope posts:write) {id: string, note?: string} — description``. A scope that
    all actions of a resource share, or all of one kind, stands on the resource's line alone.
    """
    return "\n".join(line for each in resources for line in _lines(each)) or NOTHING


def _lines(resource: MetaResource) -> Iterator[str]:
    shared = _shared(resource.actions)
    everything = shared.keys() == {each.kind for each in resource.actions}
    yield _line(resource.name, _scopes(shared, everything=everything), "", resource.description)
    for each in resource.actions:
        notes = _notes(each, scoped=each.kind not in shared)
        yield "  " + _line(each.name, notes, one_line_params(each.input_schema), each.description)


def _line(name: str, notes: Sequence[str], params: str, description: str) -> str:
    told = " ".join(description.split())  # a line of its own, whatever was written
    parts = (name, f"({'; '.join(notes)})" if notes else "", params, f"— {told}" if told else "")
    return " ".join(part for part in parts if part)


def _notes(action: MetaAction, *, scoped: bool) -> list[str]:
    told = ["action"] if action.kind == "action" else []
    if action.confirms:
        told.append("confirms")
    if scoped and action.scope is not None:
        told.append(f"scope {action.scope}")
    return told


def _shared(actions: Sequence[MetaAction]) -> dict[Kind, str | None]:
    """Return the scope of each kind whose actions all have the same one (or all have none)."""
    shared: dict[Kind, str | None] = {}
    for kind in KINDS:
        scopes = {each.scope for each in actions if each.kind == kind}
        if len(scopes) == 1:
            shared[kind] = scopes.pop()
    return shared


def _scopes(shared: Mapping[Kind, str | None], *, everything: bool) -> list[str]:
    scopes = set(shared.values())
    if everything and len(scopes) == 1:
        return [f"scope {scope}" for scope in scopes if scope is not None]
    return [f"{kind} scope {scope}" for kind, scope in shared.items() if scope is not None]


# the parameters of an action in one line


def one_line_params(document: JsonSchema) -> str:
    """Return every required field, then optional ones up to 4 fields or 100 characters, then ``…``."""
    properties = cast("dict[str, Any]", document.get("properties", {}))
    required = frozenset(cast("list[str]", document.get("required", ())))
    spell = _Spelling(document.get("$defs", {}))
    told = [f"{_key(name)}: {spell.type(held)}" for name, held in properties.items() if name in required]
    optional = [(name, held) for name, held in properties.items() if name not in required]
    for name, held in optional:
        more = f"{_key(name)}?: {spell.type(held, optional=True)}"
        if len(told) >= MAX_FIELDS or len(", ".join([*told, more])) > MAX_CHARS:
            told.append("…")
            break
        told.append(more)
    return "{" + ", ".join(told) + "}"


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _literal(name)


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).translate(_LINE_ENDS)


class _Spelling:
    """Spells the type of a field in a few words."""

    def __init__(self, definitions: Mapping[str, JsonSchema]) -> None:
        self._defs = definitions

    def type(self, held: object, *, optional: bool = False, depth: int = 0) -> str:
        """Return a type; what an optional field may be besides ``null``."""
        words = dict.fromkeys(self._words(held, depth))
        if optional and len(words) > 1:
            words.pop("null", None)
        return "|".join(words)

    def _words(self, held: object, depth: int) -> Iterator[str]:
        if not isinstance(held, dict) or depth > MAX_DEPTH:
            yield "any"
            return
        node = self._resolved(cast("JsonSchema", held))
        union = node.get("anyOf", node.get("oneOf"))
        if "const" in node:
            yield _literal(node["const"])
        elif isinstance(node.get("enum"), list):
            yield from self._literals(node["enum"])
        elif isinstance(union, list):
            for each in cast("list[object]", union):
                yield from self._words(each, depth + 1)
        else:
            yield from self._plain(node, depth)

    def _literals(self, values: Sequence[object]) -> Iterator[str]:
        yield from (_literal(each) for each in values[:MAX_LITERALS])
        if len(values) > MAX_LITERALS:
            yield "…"

    def _plain(self, node: JsonSchema, depth: int) -> Iterator[str]:
        kinds = node.get("type", "any")
        for kind in cast("list[str]", kinds if isinstance(kinds, list) else [kinds]):
            if kind == "array" and "items" in node:
                item = self.type(node["items"], depth=depth + 1)
                yield f"({item})[]" if "|" in item else f"{item}[]"
            else:
                yield kind

    def _resolved(self, node: JsonSchema) -> JsonSchema:
        target = str(node.get("$ref", ""))
        return self._defs.get(target.removeprefix("#/$defs/"), {}) if target else node
