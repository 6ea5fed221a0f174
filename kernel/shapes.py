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

from .strict_json import Json

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
    """One Cedar type: its text in a schema, and how a value of it is encoded."""

    text: str
    encode: Encode


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


def quoted(text: str) -> str:
    """Return ``text`` as a Cedar string literal."""
    escaped = "".join(_escape(each) for each in text)
    return f'"{escaped}"'


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else f"\\u{{{ord(char):x}}}"


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


def shape_of(annotation: Any, within: tuple[type, ...] = ()) -> Shape | None:
    """Return the Cedar shape of a Python type, or ``None`` when Cedar has no such type.

    Floats, decimals, dates, ``Any``, unions and models that hold themselves have none: a policy
    cannot read such a field. ``within`` are the models around it.
    """
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _literal(args)
    if not args:
        return _plain(annotation, within) if isinstance(annotation, type) else None
    if origin in (list, set, frozenset, Iterable) or (origin is tuple and args[1:] == (Ellipsis,)):
        return _set_of(shape_of(args[0], within))
    if origin in (dict, Mapping) and args[0] is str:
        return _map_of(shape_of(args[1], within))
    return shape_of(args[0], within) if hasattr(annotation, "__metadata__") else None


def _plain(annotation: type, within: tuple[type, ...]) -> Shape | None:
    if issubclass(annotation, BaseModel):
        deep = annotation in within or len(within) >= MAX_DEPTH
        return None if deep else _record(fields_of(annotation, within))
    for base, shape in ((bool, BOOL), (str, STRING), (int, LONG), (UUID, UUID_STRING)):
        if issubclass(annotation, base):
            return shape
    return None


def _literal(values: tuple[Any, ...]) -> Shape | None:
    for base, shape in ((str, STRING), (bool, BOOL), (int, LONG)):
        if all(isinstance(each, base) for each in values):
            return shape
    return None


def _set_of(item: Shape | None) -> Shape | None:
    if item is None:
        return None

    def encode(values: Any) -> Json:
        if not isinstance(values, (list, tuple, set, frozenset)):
            raise Unencodable("must be a list")
        held = cast("Iterable[object]", values)
        return [_at(str(index), item.encode, value) for index, value in enumerate(held)]

    return Shape(f"Set<{item.text}>", encode)


def _map_of(item: Shape | None) -> Shape | None:
    """A user-keyed map becomes a set of pairs, so that user keys are never record keys."""
    if item is None:
        return None

    def encode(values: Any) -> Json:
        if not isinstance(values, Mapping):
            raise Unencodable("must be an object")
        held = cast("Mapping[object, object]", values)
        return [{"k": _string(key), "v": _at("value", item.encode, value)} for key, value in held.items()]

    return Shape(f"Set<{{k: String, v: {item.text}}}>", encode)


def _record(fields: tuple[Field, ...]) -> Shape:
    return Shape(record_text(fields), lambda value: encode_fields(fields, value))


def record_text(fields: Iterable[Field]) -> str:
    """Return a Cedar record type with these attributes."""
    return "{" + ", ".join(each.text for each in fields) + "}"


def fields_of(model: type[BaseModel], within: tuple[type, ...] = ()) -> tuple[Field, ...]:
    """Return the attributes of a model that Cedar can hold, under their wire names."""
    found = (_field(name, info, (*within, model)) for name, info in model.model_fields.items())
    return tuple(each for each in found if each is not None)


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


def _field(name: str, info: FieldInfo, within: tuple[type, ...]) -> Field | None:
    inner, optional = _without_none(info.annotation)
    shape = shape_of(inner, within)
    return None if shape is None else Field(wire_name(name, info), name, shape, not optional)


def _without_none(annotation: Any) -> tuple[Any, bool]:
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
