"""Requests made up from an app's declared types: literals of the policies and their neighbours.

The same seed gives the same requests. Decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError

from ....kernel import cedar_parts
from ....kernel.catalog import Catalog, Entry
from ....kernel.cedar_text import Policy
from ....kernel.model import NO_SCOPE, Call, Human, Principal
from ....kernel.schema import InputBroken, Invalid
from ....kernel.strict_json import Json
from ...analysis.schema_json import unquoted
from ..caller import SURFACE

Schema = Mapping[str, Any]
_LITERAL: Final = re.compile(r'(?:(\w+)::)?"((?:[^"\\]|\\.)*)"|(?<![\w.])(\d+)(?!\w)')
_DECLARED: Final = frozenset({"Action", "Audience", "Role", "Scope"})  # whose ids no row or argument spells
_PERSON: Final = "person"
_FRESH: Final = ("a", "b")
_FEW: Final = 3
_DEEP: Final = 8


@dataclass(frozen=True, slots=True)
class Pool:
    """The strings and integers that policies compare with, smallest first."""

    strings: tuple[str, ...]
    integers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A caller, a call and the facts of what it acts on; ``acts`` is whether it acts on any."""

    principal: Principal
    call: Call
    facts: BaseModel | None
    held: Json
    acts: bool

    @property
    def size(self) -> tuple[int, int]:
        """How much there is to read: fewer roles and shorter values are smaller."""
        return len(self.principal.roles), len(str((self.call.arguments, self.held, self.principal.org)))


def pool(policies: Iterable[Policy]) -> Pool:
    """Return the literals of conditions and heads, each integer with its neighbours."""
    strings, integers = {_PERSON}, {0, 1}
    for policy in policies:
        strings |= {
            key[1] for key in (policy.principal, policy.resource) if len(key) == 2 and key[0] not in _DECLARED
        }
        for text, _ in cedar_parts.conditions(policy):
            for kind, string, number in _LITERAL.findall(text):
                if number:
                    integers |= {int(number) - 1, int(number), int(number) + 1, -int(number)}
                elif kind not in _DECLARED:
                    strings.add(unquoted(f'"{string}"'))
    return Pool(
        (*_FRESH, *sorted(strings - {*_FRESH})), tuple(sorted(integers, key=lambda each: (abs(each), each)))
    )


class Maker:
    """Makes requests for one tool."""

    def __init__(self, catalog: Catalog, entry: Entry, literals: Pool, draw: Random) -> None:
        self._entry, self._pool, self._draw = entry, literals, draw
        self._roles, self._scopes = sorted(catalog.roles), sorted(catalog.scopes - {NO_SCOPE})
        self._orgs = [each for each in literals.strings if each and each.isprintable()]
        self._input = entry.input.document
        self._facts = entry.resource.model.model_json_schema() if entry.resource else None

    def requests(self, count: int) -> Iterator[Request]:
        """Yield at most ``count`` requests that the declared types accept."""
        for _ in range(count):
            arguments = self._value(self._input, self._input)
            made = self.made(self._somebody(), arguments, self._resource())
            if made is not None:
                yield made

    def made(self, principal: Principal, arguments: Json, held: Json) -> Request | None:
        """Return a request if its input and facts fit their types."""
        if not isinstance(arguments, dict):
            return None
        try:
            if isinstance(self._entry.input.parse(arguments), Invalid):
                return None
            model = self._entry.resource.model if self._entry.resource else None
            facts = model.model_validate(held) if model is not None and held is not None else None
        except (InputBroken, ValidationError):
            return None
        call = Call(self._entry.name, arguments, SURFACE)
        return Request(principal, call, facts, held, model is not None)

    def smaller(self, request: Request) -> Iterator[Request]:
        """Yield requests that differ from one in a single, smaller part."""
        who, held = request.principal, request.held
        for role in sorted(who.roles):
            yield from self._kept(
                _person(who.roles - {role}, who.org, who, self._scopes), request.call.arguments, held
            )
        if who.org is not None:
            yield from self._kept(_person(who.roles, None, who, self._scopes), request.call.arguments, held)
        for arguments in self._simpler(dict(request.call.arguments)):
            yield from self._kept(who, arguments, held)
        for facts in self._simpler(held) if isinstance(held, dict) else ():
            yield from self._kept(who, request.call.arguments, facts)

    def _kept(self, who: Principal, arguments: Mapping[str, Json], held: Json) -> Iterator[Request]:
        made = self.made(who, dict(arguments), held)
        if made is not None:
            yield made

    def _simpler(self, record: dict[str, Json]) -> Iterator[dict[str, Json]]:
        for name, value in record.items():
            yield {key: each for key, each in record.items() if key != name}
            for each in _below(value, self._pool):
                yield {**record, name: each}

    def _somebody(self) -> Principal:
        roles = self._draw.sample(self._roles, k=min(len(self._roles), self._draw.choice((0, 1, 1, 2, 2))))
        org = self._draw.choice((None, *self._orgs[:_FEW], self._draw.choice(self._orgs)))
        person = Human(_PERSON, roles=roles, org=org)
        return person if self._draw.random() < 0.2 else person.delegate("agent", scopes=self._scopes)

    def _resource(self) -> Json:
        if self._facts is None or self._draw.random() < 0.05:
            return None
        return self._value(self._facts, self._facts)

    def _value(self, schema: Schema, root: Schema, depth: int = 0) -> Json:
        """Return a value of a JSON Schema; what it cannot say, the declared type refuses afterwards."""
        if depth > _DEEP:
            return None
        if "$ref" in schema:
            return self._value(_referenced(schema["$ref"], root), root, depth + 1)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self._value(self._draw.choice(cast("Sequence[Schema]", schema[key])), root, depth + 1)
        if "const" in schema:
            return cast("Json", schema["const"])
        if "enum" in schema:
            return self._draw.choice(cast("Sequence[Json]", schema["enum"]))
        return self._typed(schema, root, depth)

    def _typed(self, schema: Schema, root: Schema, depth: int) -> Json:
        match schema.get("type"):
            case "object":
                return self._object(schema, root, depth)
            case "array":
                count = self._draw.choice((schema.get("minItems", 0), 1, 2))
                return [self._value(schema.get("items", {}), root, depth + 1) for _ in range(count)]
            case "boolean":
                return self._draw.choice((False, True))
            case "integer" | "number":
                return self._draw.choice((*self._pool.integers, *_bounds(schema)))
            case "null":
                return None
            case _:
                return self._string(schema)

    def _object(self, schema: Schema, root: Schema, depth: int) -> Json:
        needed = cast("Sequence[str]", schema.get("required", ()))
        members = cast("Mapping[str, Schema]", schema.get("properties", {}))
        return {
            name: self._value(told, root, depth + 1)
            for name, told in members.items()
            if name in needed or self._draw.random() < 0.5
        }

    def _string(self, schema: Schema) -> str:
        formats = {
            "uuid": "00000000-0000-4000-8000-000000000000",
            "date": "2026-01-01",
            "email": "a@example.com",
        }
        formats |= {"date-time": "2026-01-01T00:00:00Z", "uri": "https://example.com/a"}
        known = formats.get(str(schema.get("format")))
        chosen = self._draw.choice(self._pool.strings)
        return known or chosen.ljust(int(schema.get("minLength", 0)), "a")


def _person(roles: Iterable[str], org: str | None, like: Principal, scopes: Iterable[str]) -> Principal:
    person = Human(_PERSON, roles=roles, org=org)
    return person if isinstance(like, Human) else person.delegate("agent", scopes=scopes)


def _referenced(pointer: str, root: Schema) -> Schema:
    found: Any = root
    for step in pointer.removeprefix("#/").split("/"):
        found = found[step]
    return cast("Schema", found)


def _bounds(schema: Schema) -> tuple[int, ...]:
    """Return the limits of a number and the first one inside an open limit."""
    told = [(key, schema[key]) for key in ("minimum", "maximum") if isinstance(schema.get(key), int)]
    opened = [("exclusiveMinimum", 1), ("exclusiveMaximum", -1)]
    inside = [schema[key] + step for key, step in opened if isinstance(schema.get(key), int)]
    return (*(limit for _, limit in told), *inside)


def _below(value: Json, literals: Pool) -> Iterator[Json]:
    """Yield smaller values of the same kind, the smallest first."""
    if value is True:
        yield False
    elif isinstance(value, str):
        yield from (
            literals.strings[: literals.strings.index(value)]
            if value in literals.strings
            else literals.strings
        )
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (each for each in literals.integers if abs(each) < abs(value))
    elif isinstance(value, list) and value:
        yield list[Json]()
