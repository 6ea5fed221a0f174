"""A schema made for MCP tools by ``cedar-policy-mcp-schema-generator`` -> what each of its names is here.

Such a schema has one action for each tool, with the arguments under ``context.input``. An argument has
an exact counterpart when a policy reads the same of it in both places. Knows no policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from ...kernel.catalog import Catalog, Entry
from ...kernel.compile import Base
from .export import whole_schema
from .schema_json import schema_json
from .schema_types import Action, Attribute, Entity, Record, Scalar, SetOf, Type, Types, Uid

INPUT: Final = "input"
VALUE: Final = "typeChoice0"
_NULL: Final = "typeChoice1"
_SHARED: Final = ("Agent", "Human", "Role", "Server")
_STRING: Final = Scalar("String")
How = Literal["same", "record", "choice"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool in both places.

    ``how`` is ``None`` without an exact counterpart, and ``cause`` says why. ``record``: an entity there,
    a record with these attributes here. ``choice``: an enumeration there, a string here. ``nullable``:
    there the value stands under ``typeChoice0``, here a null argument is an absent one.
    """

    name: str
    theirs: Type | None
    ours: Type | None
    how: How | None = None
    nullable: bool = False
    required: bool = True
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """An action of the schema, and the entry of the same name if it is a tool here."""

    action: Action
    entry: Entry | None
    resource: str
    arguments: Mapping[str, Argument]

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.action.uid[1]


@dataclass(frozen=True, slots=True)
class Counterparts:
    """Everything that a schema names, and what it is here. ``kinds`` maps entity types."""

    theirs: Types
    ours: Types
    server: str
    kinds: Mapping[str, str]
    tools: Mapping[Uid, Tool]

    def same(self, theirs: Type, ours: Type) -> bool:
        """Whether two types hold the same values, entity types by their counterparts."""
        match theirs, ours:
            case (SetOf(element), SetOf(other)):
                return self.same(element, other)
            case (Record(held), Record(others)):
                return held.keys() == others.keys() and all(
                    held[name].required == others[name].required
                    and self.same(held[name].type, others[name].type)
                    for name in held
                )
            case (Entity(name), Entity(other)):
                return self.kinds.get(name) == other
            case _:
                return theirs == ours


def counterparts(
    theirs: Types, catalog: Catalog, base: Base, kinds: Mapping[str, str] | None = None
) -> Counterparts:
    """Return what the names of a schema are in an app.

    ``kinds`` says which entity type here is meant by one of the schema's; a name that both have is the same.
    """
    ours = Types(schema_json(whole_schema(catalog, base)))
    known = Counterparts(theirs, ours, catalog.server, {**_alike(theirs), **(kinds or {})}, {})
    entries = {entry.name: entry for entry in catalog.entries if entry.name in catalog.tools}
    applying = (action for action in theirs.actions.values() if action.principals and action.resources)
    tools = {action.uid: _tool(known, action, entries.get(action.uid[1])) for action in applying}
    return Counterparts(theirs, ours, catalog.server, known.kinds, tools)


def _alike(theirs: Types) -> dict[str, str]:
    """Types of the schema's own namespace that are named as ours are."""
    spaces = {uid[0].rpartition("::")[0] for uid in theirs.actions}
    names = {f"{space}::{name}" if space else name: name for space in spaces for name in _SHARED}
    return {name: ours for name, ours in names.items() if name in theirs.entities}


def _tool(known: Counterparts, action: Action, entry: Entry | None) -> Tool:
    given = known.theirs.attributes(action.context.attributes[INPUT].type) if _has_input(action) else None
    theirs = given.attributes if given is not None else dict[str, Attribute]()
    ours, resource = dict[str, Attribute](), ""
    if entry is not None:
        here = known.ours.actions["Action", entry.name]
        args = cast("Record", here.context.attributes["args"].type)
        ours, resource = dict(args.attributes), here.resources[0]
    names = sorted({*theirs, *ours})
    found = {name: _argument(known, name, theirs.get(name), ours.get(name), entry) for name in names}
    return Tool(action, entry, resource, found)


def _has_input(action: Action) -> bool:
    return INPUT in action.context.attributes


def _argument(
    known: Counterparts, name: str, theirs: Attribute | None, ours: Attribute | None, entry: Entry | None
) -> Argument:
    if entry is None:
        return Argument(name, theirs.type if theirs else None, None, cause="there is no such tool here")
    if theirs is None:
        return Argument(name, None, ours.type if ours else None, cause="the schema has no such argument")
    if ours is None:
        why = (
            "no argument here" if name not in _properties(entry) else "of a type here that no policy can read"
        )
        return Argument(name, theirs.type, None, cause=f"it is {why}")
    value, nullable = _value(theirs.type)
    how = _how(known, value, ours.type, _choices(entry, name))
    cause = "" if how else f"it is `{value}` there and `{ours.type}` here"
    differs = _presence(entry, name, theirs, ours, nullable=nullable) if how else ""
    return Argument(
        name, theirs.type, ours.type, None if differs else how, nullable, theirs.required, cause or differs
    )


def _presence(entry: Entry, name: str, theirs: Attribute, ours: Attribute, *, nullable: bool) -> str:
    """Say how an argument is absent in one place and not in the other."""
    if not theirs.required and _has_default(entry, name):
        return "it can be absent there; here it has a default, which policies see"
    if nullable and ours.required:
        return "it can be null there, and here it never is"
    if not nullable and theirs.required != ours.required:
        return "it is never absent there and can be here" if theirs.required else "it is never absent here"
    return ""


def _has_default(entry: Entry, name: str) -> bool:
    attribute = next(each.attribute for each in entry.arguments if each.name == name)
    told = entry.input.model.model_fields[attribute]
    return not told.is_required() and (told.default is not None or told.default_factory is not None)


def _value(theirs: Type) -> tuple[Type, bool]:
    """Return the type of a value and whether it can be null: a record with ``typeChoice1`` of ``Null``."""
    if isinstance(theirs, Record) and set(theirs.attributes) == {VALUE, _NULL}:
        null = theirs.attributes[_NULL].type
        if isinstance(null, Entity) and null.name.rpartition("::")[2] == "Null":
            return theirs.attributes[VALUE].type, True
    return theirs, False


def _how(known: Counterparts, theirs: Type, ours: Type, choices: frozenset[object]) -> How | None:
    if known.same(theirs, ours):
        return "same"
    enumerated = known.theirs.choices(theirs)
    if enumerated is not None:
        return "choice" if ours == _STRING and frozenset(enumerated) == choices else None
    return "record" if isinstance(ours, Record) and _unfolds(known, theirs, ours) else None


def _unfolds(known: Counterparts, theirs: Type, ours: Type) -> bool:
    """Whether an entity type stands for a record: the same attributes, at every depth."""
    if known.same(theirs, ours):
        return True
    held = None if known.theirs.tagged(theirs) else known.theirs.attributes(theirs)
    if held is None or not isinstance(ours, Record) or held.attributes.keys() != ours.attributes.keys():
        return False
    pairs = [(each, ours.attributes[name]) for name, each in held.attributes.items()]
    return all(
        one.required == other.required and _unfolds(known, one.type, other.type) for one, other in pairs
    )


def _properties(entry: Entry) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", entry.input.document.get("properties", {}))


def _choices(entry: Entry, name: str) -> frozenset[object]:
    """Return the values that an argument's published schema lists; none when it lists none."""
    told: Any = _properties(entry).get(name, {})
    branches = cast("Iterable[Any]", told.get("anyOf", [told]))
    valued = [_referenced(entry, each) for each in branches if each.get("type") != "null"]
    listed = [each.get("enum", [each["const"]] if "const" in each else []) for each in valued]
    return frozenset(value for each in listed for value in each) if all(listed) else frozenset()


def _referenced(entry: Entry, told: Any) -> Any:
    reference = told.get("$ref")
    return entry.input.document["$defs"][reference.rpartition("/")[2]] if reference else told
