"""What the models of entries keep from policies: fields that Cedar cannot hold, entities known by name only.

Asks no engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from pydantic import BaseModel

from .catalog import Entry
from .cedar_parts import Path, named, placed_in
from .cedar_text import Policy
from .shapes import CALLERS, LOADED, Around, Shape, field_shape, wire_name, without_none
from .unreadable import Unreadable

_NAME_ONLY: Final = "and of the entity that a `Ref` names no request holds more than the name"


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that a policy names and no request tells it: what, why, and what to do."""

    path: Path
    cause: str
    fix: str


def attributes(model: type[BaseModel], around: Around) -> Iterator[tuple[Path, Any, Shape | Unreadable]]:
    """Yield each field of a model and of the models in it: path, type, and shape or why there is none."""
    inside = Around((*around.models, model), around.refers)
    for name, info in model.model_fields.items():
        held, shape = without_none(info.annotation)[0], field_shape(info, inside)
        yield (wire_name(name, info),), held, shape
        if isinstance(shape, Shape) and is_model(held):
            for path, part, of_part in attributes(held, inside):
                yield (wire_name(name, info), *path), part, of_part


def is_model(held: Any) -> TypeGuard[type[BaseModel]]:
    """Whether a type is a model, whose fields are attributes of their own."""
    return isinstance(held, type) and issubclass(held, BaseModel)


class Lacks:
    """What policies about some entries cannot be told."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._unreadable: dict[Path, Lack] = {}
        self._references: dict[Path, dict[str, str]] = {}  # by path, the owner of each type
        self._named: dict[Path, frozenset[str]] = {}  # by path, the types it refers to, also in a list
        for entry in entries:
            self._add(("context", "args"), entry.input.model, CALLERS, f"the input of `{entry.name}`")
            if entry.resource is not None:
                root = ("context",) if entry.resource.told else ("resource",)
                self._add(root, entry.resource.model, LOADED, f"`{entry.resource.name}`")

    def _add(self, root: Path, model: type[BaseModel], around: Around, owner: str) -> None:
        for path, held, shape in attributes(model, around):
            if isinstance(shape, Unreadable):
                cause = f"`{'.'.join(path)}`, a `{spelt(held)}` in {owner}, and {shape.why}"
                self._unreadable.setdefault((*root, *path), Lack((*root, *path), cause, shape.fix))
                continue
            at = (*root, *path)
            self._named[at] = self._named.get(at, frozenset()) | shape.refers
            if shape.text in shape.refers:
                self._references.setdefault(at, {}).setdefault(shape.text, owner)

    def of(self, policy: Policy) -> Iterator[Lack]:
        """Yield what a policy names and cannot be told."""
        if self._unreadable or self._references:
            paths = named(policy)
            prefixes = {path[:end] for path in paths for end in range(1, len(path) + 1)}
            yield from (self._unreadable[path] for path in sorted(prefixes & self._unreadable.keys()))
            yield from (self._of_entity(path) for path in sorted(prefixes) if path[:-1] in self._references)
            for path, kinds, others in placed_in(policy):
                over = kinds.union(*(self._named.get(each, ()) for each in others))
                for kind, owner in self._references.get(path, {}).items():
                    if not over <= {kind}:
                        yield self._of_parents(path, kind, owner)

    def _of_entity(self, path: Path) -> Lack:
        owner = next(iter(self._references[path[:-1]].values()))
        cause = f"`{path[-1]}` of `{'.'.join(path[:-1])}`, {_NAME_ONLY}"
        return Lack(path, cause, f"give {owner} a field with what the policy reads")

    def _of_parents(self, path: Path, kind: str, owner: str) -> Lack:
        cause = f"what `{'.'.join(path)}` is in, {_NAME_ONLY}"
        return Lack(path, cause, f"compare it with a `{kind}`, or give {owner} a field with what it is in")


def spelt(annotation: Any) -> str:
    """Return a type as a declaration spells it."""
    name = (
        annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else None
    )
    return name or str(annotation).replace("typing.", "")
