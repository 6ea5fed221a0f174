"""A field that names an entity. Knows no schema: whether the type is declared is found at boot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Ref:
    """A field of a resource's model that names an entity: ``team: Annotated[str, Ref("Team")]``.

    Policies compare it: ``resource.team == Team::"ops"``, or ``contains`` for a list of such. ``type`` is
    the app's own (``entity Team;`` in a ``.cedarschema`` file), ``Human``, ``Agent``, ``Role``, or the model
    of another resource. A Ref is a name and nothing more: no request holds the attributes or parents of
    that entity, so ``resource.team in Team::"ops"`` says the same as ``==``, and boot refuses a policy
    that asks for more. In an input a Ref is refused: what a caller sends names no entity.
    """

    type: str


def reference_in(model: type[BaseModel]) -> str | None:
    """Return the first field of a model that holds a ``Ref``, however deep."""
    fields = model.model_fields.items()
    return next((name for name, info in fields if _holds(info.annotation, *info.metadata)), None)


def _holds(*parts: Any) -> bool:
    stack, seen = list(parts), set[type[BaseModel]]()
    while stack:
        part = stack.pop()
        if isinstance(part, Ref):
            return True
        stack.extend(get_args(part))
        if isinstance(part, type) and issubclass(part, BaseModel) and part not in seen:
            seen.add(part)
            for info in part.model_fields.values():
                stack += [info.annotation, *info.metadata]
    return False
