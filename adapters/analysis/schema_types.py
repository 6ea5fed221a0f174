"""What the names of a schema in Cedar's JSON format stand for, so that two schemas can be compared.

Decides nothing. Takes what ``schema_json`` made, which the engine has accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from .schema_json import Document

_CEDARS: Final = "__cedar::"
Uid = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type that Cedar itself declares: ``String``, ``Long``, ``ipaddr``, ..."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity type, by its whole name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class SetOf:
    """A set of one type."""

    element: Type

    def __str__(self) -> str:
        return f"Set<{self.element}>"


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a record or an entity."""

    type: Type
    required: bool


@dataclass(frozen=True, slots=True)
class Record:
    """A record, or the attributes of an entity."""

    attributes: Mapping[str, Attribute]

    def __str__(self) -> str:
        told = (f"{n}{'' if each.required else '?'}: {each.type}" for n, each in self.attributes.items())
        return f"{{{', '.join(told)}}}"


Type: TypeAlias = Scalar | Entity | SetOf | Record
_NOTHING: Final = Record({})


@dataclass(frozen=True, slots=True)
class Action:
    """An action with what it applies to; ``within`` are the groups it is in, directly or not."""

    uid: Uid
    within: frozenset[Uid]
    principals: tuple[str, ...]
    resources: tuple[str, ...]
    context: Record


class Types:
    """The types and actions of a schema."""

    def __init__(self, document: Document) -> None:
        self._commons: dict[str, tuple[str, Any]] = {}
        self._entities: dict[str, tuple[str, Any]] = {}
        self._declared: dict[Uid, tuple[str, Any]] = {}
        for namespace, held in cast("Mapping[str, Any]", document).items():
            for name, told in held.get("commonTypes", {}).items():
                self._commons[_within(namespace, name)] = namespace, told
            for name, told in held["entityTypes"].items():
                self._entities[_within(namespace, name)] = namespace, told
            for name, told in held["actions"].items():
                self._declared[_within(namespace, "Action"), name] = namespace, told
        self.actions: Final = {uid: self._action(uid) for uid in self._declared}

    @property
    def entities(self) -> frozenset[str]:
        """The names of all entity types."""
        return frozenset(self._entities)

    def attributes(self, of: Type) -> Record | None:
        """Return the attributes of an entity type or a record; an enumeration and a scalar have none."""
        if isinstance(of, Record):
            return of
        if not isinstance(of, Entity) or of.name not in self._entities or self.choices(of) is not None:
            return None
        namespace, told = self._entities[of.name]
        found = self._type(told["shape"], namespace) if "shape" in told else _NOTHING
        return found if isinstance(found, Record) else None

    def choices(self, of: Type) -> tuple[str, ...] | None:
        """Return the ids of an enumeration."""
        told = self._told(of)
        return tuple(told["enum"]) if "enum" in told else None

    def tagged(self, of: Type) -> bool:
        """Whether entities of a type have tags."""
        return "tags" in self._told(of)

    def _told(self, of: Type) -> Any:
        return self._entities[of.name][1] if isinstance(of, Entity) and of.name in self._entities else {}

    def ancestors(self, kind: str) -> frozenset[str]:
        """Return the entity types that entities of a type can be in, directly or not."""
        found, stack = set[str](), [kind]
        while stack:
            fresh = self._parents(stack.pop()) - found
            found |= fresh
            stack += fresh
        return frozenset(found)

    def _parents(self, kind: str) -> frozenset[str]:
        if kind not in self._entities:
            return frozenset()
        namespace, told = self._entities[kind]
        return frozenset(self._kind(each, namespace) for each in told.get("memberOfTypes", ()))

    def _action(self, uid: Uid) -> Action:
        namespace, told = self._declared[uid]
        applies = told["appliesTo"]
        context = self._type(applies["context"], namespace) if "context" in applies else _NOTHING
        return Action(
            uid=uid,
            within=self._groups(uid),
            principals=tuple(self._kind(each, namespace) for each in applies["principalTypes"]),
            resources=tuple(self._kind(each, namespace) for each in applies["resourceTypes"]),
            context=context if isinstance(context, Record) else _NOTHING,
        )

    def _groups(self, uid: Uid) -> frozenset[Uid]:
        found, stack = set[Uid](), [uid]
        while stack:
            fresh = frozenset(self._direct(stack.pop())) - found
            found |= fresh
            stack += fresh
        return frozenset(found)

    def _direct(self, uid: Uid) -> Iterator[Uid]:
        namespace, told = self._declared[uid]
        for each in told.get("memberOf", ()):
            kinds = _candidates(each["type"], namespace)
            yield from [(kind, each["id"]) for kind in kinds if (kind, each["id"]) in self._declared][:1]

    def _kind(self, name: str, namespace: str) -> str:
        return next((each for each in _candidates(name, namespace) if each in self._entities), name)

    def _type(self, told: Any, namespace: str) -> Type:
        if told["type"] == "Set":
            return SetOf(self._type(told["element"], namespace))
        if told["type"] == "Record":
            return Record(
                {name: self._attribute(each, namespace) for name, each in told["attributes"].items()}
            )
        return self._named(told["name"], namespace)

    def _attribute(self, told: Any, namespace: str) -> Attribute:
        return Attribute(self._type(told, namespace), told.get("required", True))

    def _named(self, name: str, namespace: str) -> Type:
        for each in _candidates(name, namespace):
            if each in self._commons:
                of, told = self._commons[each]
                return self._type(told, of)
            if each in self._entities:
                return Entity(each)
        return Scalar(name.removeprefix(_CEDARS))


def _within(namespace: str, name: str) -> str:
    return f"{namespace}::{name}" if namespace else name


def _candidates(name: str, namespace: str) -> tuple[str, ...]:
    """Return what a name can mean, the nearest first: one with ``::`` is whole already."""
    return (name,) if "::" in name or not namespace else (_within(namespace, name), name)
