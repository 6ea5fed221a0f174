"""Python types -> Cedar types, and values -> Cedar JSON by the declared type only.

A value is never passed to the engine as it came: a string stays a string even when it spells
``{"__entity": ...}``, because each position is encoded by its declared type. Knows no engine.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from .policy_text import quoted
from .refs import Ref
from .strict_json import Json
from .unreadable import NOT_A_NAME, OF_A_CALLER, Unreadable, unreadable

LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1
MAX_DEPTH: Final = 16

M = TypeVar("M", bound=BaseModel)
Encode = Callable[[Any], Json]


class Unencodable(Exception):
    """A value does not fit its declared Cedar type; ``path`` says which, never what it was."""

    def __init__(self, problem: str, path: str = "") -> None:
        self.problem, self.path = problem, path
        super().__init__(problem, path)

    def under(self, name: str) -> Unencodable:
        """Return the same fault one level further out."""
        return Unencodable(self.problem, f"{name}.{self.path}" if self.path else name)


@dataclass(frozen=True, slots=True)
class Shape:
    """One Cedar type: its text in a schema, how a value of it is encoded, the entity types it refers to."""

    text: str
    encode: Encode
    refers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute of a record: its wire name, where the value is, its shape."""

    name: str
    attribute: str
    shape: Shape
    required: bool

    @property
    def text(self) -> str:
        """The attribute as Cedar schema text."""
        return f"{quoted(self.name)}{'' if self.required else '?'}: {self.shape.text}"


def _string(value: Any) -> Json:
    if not isinstance(value, str):
        raise Unencodable("must be a string")
    return str(value.value) if isinstance(value, enum.Enum) else str(value)


def _long(value: Any) -> Json:
    number = value.value if isinstance(value, enum.Enum) else value
    if isinstance(number, bool) or not isinstance(number, int):
        raise Unencodable("must be an integer")
    if not LONG_MIN <= number <= LONG_MAX:
        raise Unencodable("must be an integer of 64 bits, because a policy reads it")
    return int(number)


def _bool(value: Any) -> Json:
    if not isinstance(value, bool):
        raise Unencodable("must be true or false")
    return value


STRING: Final = Shape("String", _string)
LONG: Final = Shape("Long", _long)
BOOL: Final = Shape("Bool", _bool)
UUID_STRING: Final = Shape("String", lambda value: str(value) if isinstance(value, UUID) else _string(value))
_BASES: Final = ((bool, BOOL), (str, STRING), (int, LONG), (UUID, UUID_STRING))  # bool first: it is an int


@dataclass(frozen=True, slots=True)
class Around:
    """Where a type stands: the models around it, and whether a ``Ref`` there names an entity."""

    models: tuple[type, ...] = ()
    refers: bool = False


CALLERS: Final = Around()
LOADED: Final = Around(refers=True)


def shape_of(annotation: Any, around: Around = CALLERS) -> Shape | Unreadable:
    """Return the Cedar shape of a Python type, or why Cedar has no such type.

    Floats, decimals, dates, ``Any``, unions and models that hold themselves have none: a policy
    cannot read such a field.
    """
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _first(lambda base: all(isinstance(each, base) for each in args)) or unreadable(annotation)
    if not args:
        return _plain(annotation, around) if isinstance(annotation, type) else unreadable(annotation)
    if origin in (list, set, frozenset, Iterable) or (origin is tuple and args[1:] == (Ellipsis,)):
        return _set_of(shape_of(args[0], around))
    if origin in (dict, Mapping) and args[0] is str:
        return _map_of(shape_of(args[1], around))
    if hasattr(annotation, "__metadata__"):
        return _annotated(args[0], annotation.__metadata__, around)
    return unreadable(annotation)


def _plain(annotation: type, around: Around) -> Shape | Unreadable:
    if issubclass(annotation, BaseModel):
        deep = annotation in around.models or len(around.models) >= MAX_DEPTH
        return unreadable(annotation) if deep else _record(fields_of(annotation, around))
    return _first(lambda base: issubclass(annotation, base)) or unreadable(annotation)


def _first(fits: Callable[[type], bool]) -> Shape | None:
    return next((shape for base, shape in _BASES if fits(base)), None)


def _annotated(annotation: Any, metadata: Iterable[object], around: Around) -> Shape | Unreadable:
    shape = shape_of(annotation, around)
    ref = next((each for each in metadata if isinstance(each, Ref)), None)
    if ref is None:
        return shape
    if not around.refers:  # INVARIANT: nothing that a caller sends becomes an entity
        return OF_A_CALLER
    return _reference(ref.type, shape) if isinstance(shape, Shape) and shape.text == "String" else NOT_A_NAME


def _reference(kind: str, name: Shape) -> Shape:
    return Shape(kind, lambda value: {"__entity": uid(kind, str(name.encode(value)))}, frozenset({kind}))


def _set_of(item: Shape | Unreadable) -> Shape | Unreadable:
    if isinstance(item, Unreadable):
        return item

    def encode(values: Any) -> Json:
        if not isinstance(values, (list, tuple, set, frozenset)):
            raise Unencodable("must be a list")
        held = cast("Iterable[object]", values)
        return [_at(str(index), item.encode, value) for index, value in enumerate(held)]

    return Shape(f"Set<{item.text}>", encode, item.refers)


def _map_of(item: Shape | Unreadable) -> Shape | Unreadable:
    """A user-keyed map becomes a set of pairs, so that user keys are never record keys."""
    if isinstance(item, Unreadable):
        return item

    def encode(values: Any) -> Json:
        if not isinstance(values, Mapping):
            raise Unencodable("must be an object")
        held = cast("Mapping[object, object]", values)
        return [{"k": _string(key), "v": _at("value", item.encode, value)} for key, value in held.items()]

    return Shape(f"Set<{{k: String, v: {item.text}}}>", encode, item.refers)


def _record(fields: tuple[Field, ...]) -> Shape:
    return Shape(record_text(fields), lambda value: encode_fields(fields, value), referred(fields))


def referred(fields: Iterable[Field]) -> frozenset[str]:
    """Return the entity types that these attributes refer to."""
    return frozenset(name for each in fields for name in each.shape.refers)


def record_text(fields: Iterable[Field]) -> str:
    """Return a Cedar record type with these attributes."""
    return "{" + ", ".join(each.text for each in fields) + "}"


def fields_of(model: type[BaseModel], around: Around = CALLERS) -> tuple[Field, ...]:
    """Return the attributes of a model that Cedar can hold, under their wire names.

    ``LOADED`` is for the model of a resource: there a ``Ref`` names an entity.
    """
    inside = Around((*around.models, model), around.refers)
    read = ((name, info, field_shape(info, inside)) for name, info in model.model_fields.items())
    return tuple(
        Field(wire_name(name, info), name, shape, not without_none(info.annotation)[1])
        for name, info, shape in read
        if isinstance(shape, Shape)
    )


def field_shape(info: FieldInfo, around: Around) -> Shape | Unreadable:
    """Return the shape of a field, or why it has none."""
    return _annotated(without_none(info.annotation)[0], info.metadata, around)


_SCALARS: Final = (
    str,
    int,
    float,
    bool,
    bytes,
    UUID,
    Decimal,
    date,
    time,
    timedelta,
    enum.Enum,
    types.NoneType,
)


def copied(value: M) -> M:
    """Return a copy that shares nothing that can be changed."""
    return value.model_copy(deep=not _flat(type(value)))


@lru_cache(1024)
def _flat(model: type[BaseModel]) -> bool:
    """Whether every field holds a value that cannot be changed, so that a shallow copy shares nothing."""
    extra = model.model_config.get("extra") == "allow" or bool(model.__private_attributes__)
    return not extra and all(_scalar(info.annotation) for info in model.model_fields.values())


def _scalar(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType):
        return all(_scalar(each) for each in get_args(annotation))
    if get_origin(annotation) is Literal:
        return True
    return isinstance(annotation, type) and issubclass(annotation, _SCALARS)


def wire_name(name: str, info: FieldInfo) -> str:
    """Return the key of a field in the published schema."""
    alias = info.validation_alias if isinstance(info.validation_alias, str) else info.alias
    return alias or name


def without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation, False
    rest = [each for each in get_args(annotation) if each is not types.NoneType]
    if len(rest) == len(get_args(annotation)):
        return annotation, False
    return (rest[0] if len(rest) == 1 else Union[tuple(rest)]), True  # noqa: UP007  (built at run time)


def encode_fields(fields: Iterable[Field], value: object) -> dict[str, Json]:
    """Return a record of these attributes of ``value``; ``None`` is left out.

    Raises: Unencodable, when a value does not fit its declared type.
    """
    record: dict[str, Json] = {}
    for each in fields:
        held = getattr(value, each.attribute, None)
        if held is not None:
            record[each.name] = _at(each.name, each.shape.encode, held)
        elif each.required:
            raise Unencodable("is missing", each.name)
    return record


def _at(name: str, encode: Encode, value: Any) -> Json:
    try:
        return encode(value)
    except Unencodable as fault:
        raise fault.under(name) from None


def entity(kind: str, ident: str, attributes: Mapping[str, Json], parents: Iterable[Json] = ()) -> Json:
    """Return one entity in Cedar's JSON form."""
    return {"uid": uid(kind, ident), "attrs": dict(attributes), "parents": list(parents)}


def uid(kind: str, ident: str) -> dict[str, Json]:
    """Return an entity uid in the structured form, which needs no escaping."""
    return cast("dict[str, Json]", {"type": kind, "id": ident})
