"""Why a policy cannot read a field: what its type lacks in Cedar, and what to declare instead."""

from __future__ import annotations

import enum
import types
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, Union, get_origin

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a type has no counterpart in Cedar, and what to declare so that a policy can read it."""

    why: str
    fix: str


OF_A_CALLER: Final = Unreadable(
    "what a caller sends names no entity",
    "declare a plain `str`, and let the resource loader return a model that holds the `Ref`",
)
NOT_A_NAME: Final = Unreadable(
    "a `Ref` stands at a `str`", 'write `Annotated[str, Ref("Team")]`, for several `list[Annotated[...]]`'
)
_UNION: Final = Unreadable("Cedar has no unions", "declare one type; `| None` makes it optional")
_MIXED: Final = Unreadable(
    "Cedar's sets hold one type", "let all literals be strings, or all of them integers"
)
_OTHER: Final = Unreadable(
    "Cedar has no such type", "declare a model, `str`, `int`, `bool`, or a list of one"
)
_TYPES: Final = (
    ((float, Decimal), "Cedar has whole numbers only", "declare `Money`, or an `int` of the smallest unit"),
    ((date, time, timedelta), "Cedar is sent no dates", "declare an `int`, such as seconds since 1970"),
    ((bytes, bytearray), "Cedar has no bytes", "declare a `str`"),
    ((enum.Enum,), "its members are of no one type", "make it a `StrEnum` or an `IntEnum`"),
    ((BaseModel,), "it holds itself, or nests too deep", "declare what policies read in a field beside it"),
)


def unreadable(annotation: Any) -> Unreadable:
    """Return why a type without a shape has none."""
    if get_origin(annotation) in (Union, types.UnionType):
        return _UNION
    if get_origin(annotation) is Literal:
        return _MIXED
    for bases, why, fix in _TYPES:
        if isinstance(annotation, type) and issubclass(annotation, bases):
            return Unreadable(why, fix)
    return _OTHER
