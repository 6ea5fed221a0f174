"""Prompts that are files: read when the app starts to learn their slots, and again at every request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, create_model

from ...kernel.codes import CODES
from ...kernel.declare import Prompt
from ...kernel.errors import ActionError, Fault, fault

MAX_BYTES: Final = 262_144
_SLOT: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_make: Final = cast("Callable[..., type[BaseModel]]", create_model)


def read_prompts(prompts: Iterable[Prompt]) -> tuple[tuple[Prompt, ...], tuple[Fault, ...]]:
    """Return the prompts with a function each, and what is wrong with the files of the others."""
    read: list[Prompt] = []
    faults: list[Fault] = []
    for each in prompts:
        if not isinstance(each.source, Path):
            read.append(each)
            continue
        try:
            read.append(replace(each, source=_function(each, each.source)))
        except (OSError, UnicodeDecodeError, ValueError) as refusal:
            cause = f"the prompt `{each.source}` cannot be used: {_reason(refusal)}"
            faults.append(fault("X_DECLARATION_INVALID", cause, "give the path of a text file in UTF-8"))
    return tuple(read), tuple(faults)


def _function(declared: Prompt, path: Path) -> Callable[..., str]:
    """Return the function that renders a file with its arguments."""
    slots = _slots(_text(path))
    model = declared.input or _model(declared.name, slots)
    unknown = sorted(set(slots) - set(model.model_fields))
    if unknown:
        raise ValueError(f"its slot `{unknown[0]}` is no field of `input`")

    def render(input: Any) -> str:
        return _filled(path, {name: _word(getattr(input, name)) for name in model.model_fields})

    render.__annotations__ = {"input": model, "return": str}
    return render


def _model(name: str, slots: Iterable[str]) -> type[BaseModel]:
    return _make(f"{name}_slots", __config__=ConfigDict(extra="forbid"), **dict.fromkeys(slots, (str, ...)))


def _filled(path: Path, words: Mapping[str, str]) -> str:
    """Fill the slots in one pass: a slot that an argument spells is a word, not a slot.

    Raises: ActionError, when the file is gone or has other slots than at the start.
    """
    try:
        text = _text(path)
    except (OSError, UnicodeDecodeError, ValueError):
        raise _changed() from None
    if not set(_slots(text)) <= words.keys():
        raise _changed()
    return _SLOT.sub(lambda slot: words[slot.group(1)], text)


def _changed() -> ActionError:
    told = CODES["X_PROMPT_CHANGED"]
    return ActionError(told.code, told.cause, told.fix, told.caller_fix)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")
    return raw.decode()


def _slots(text: str) -> list[str]:
    return list(dict.fromkeys(_SLOT.findall(text)))


def _word(value: object) -> str:
    return "" if value is None else str(getattr(value, "value", value))


def _reason(refusal: Exception) -> str:
    if isinstance(refusal, OSError):
        return refusal.strerror or type(refusal).__name__
    return "it is not UTF-8" if isinstance(refusal, UnicodeDecodeError) else str(refusal)
