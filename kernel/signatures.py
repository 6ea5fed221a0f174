"""How application code is called: what a handler takes and returns, read from its annotations.

Runs nothing.
"""

from __future__ import annotations

import inspect
import types
import typing
from dataclasses import dataclass
from typing import Any, Final, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel

from .declare import AnyHandler, Context
from .schema import NoInput

Argument = Literal["input", "context"]


@dataclass(frozen=True, slots=True, eq=False)
class Handler:
    """Application code, and which of input and context it takes, in its order."""

    function: AnyHandler
    takes: tuple[Argument, ...]
    is_async: bool


_BY_POSITION: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def read_signature(function: AnyHandler) -> tuple[Handler, type[BaseModel] | str, Any]:
    """Return how to call a handler, its input model (or what is wrong with it) and its return annotation."""
    unknown = Handler(function, (), inspect.iscoroutinefunction(function))
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
    except Exception as refusal:  # noqa: BLE001  (evaluating an annotation runs whatever it says)
        return unknown, f"its annotations cannot be read: {refusal}", None
    takes: list[Argument] = []
    model: type[BaseModel] = NoInput
    for name, parameter in parameters.items():
        kind = _argument(hints.get(name)) if parameter.kind in _BY_POSITION else None
        if kind is None or kind in takes:
            return (
                unknown,
                f"parameter `{name}` is neither a pydantic model nor a `Context`, or comes twice",
                None,
            )
        takes.append(kind)
        model = cast("type[BaseModel]", hints[name]) if kind == "input" else model
    if "return" not in hints:
        return unknown, "it has no return annotation", None
    return Handler(function, tuple(takes), unknown.is_async), model, hints["return"]


def _argument(annotation: Any) -> Argument | None:
    if get_origin(annotation) is Context or annotation is Context:
        return "context"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "input"
    return None


def without_none(annotation: Any) -> Any:
    """Return ``T`` of ``T | None``."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation
    rest = [each for each in get_args(annotation) if each is not types.NoneType]
    return rest[0] if len(rest) == 1 else annotation
