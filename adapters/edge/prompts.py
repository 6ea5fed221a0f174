"""Prompts that are files: read when the app starts to learn their slots, and again at every request.

A file may open with YAML between two lines of ``---``: ``title``, ``description``, and ``arguments`` with
``name``, ``description`` and ``required``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from ...kernel.codes import CODES
from ...kernel.declare import Prompt
from ...kernel.errors import ActionError, Fault, fault
from .extras import require

MAX_BYTES: Final = 262_144
_SLOT: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_FRONT: Final = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
_make: Final = cast("Callable[..., type[BaseModel]]", create_model)


class Argument(BaseModel):
    """One argument as a file describes it."""

    model_config = ConfigDict(extra="forbid")

    name: str
    description: str | None = None
    required: bool = True


class Front(BaseModel):
    """What a file says before its text; other members are the author's own."""

    title: str | None = None
    description: str | None = None
    arguments: list[Argument] = []


@dataclass(frozen=True, slots=True)
class Words:
    """A file's text, and what stands before it."""

    front: Front
    text: str

    @property
    def slots(self) -> list[str]:
        """The names of its slots, each once."""
        return list(dict.fromkeys(_SLOT.findall(self.text)))


def read_prompts(prompts: Iterable[Prompt]) -> tuple[tuple[Prompt, ...], tuple[Fault, ...]]:
    """Return the prompts with a function each, and what is wrong with the files of the others."""
    read: list[Prompt] = []
    faults: list[Fault] = []
    for each in prompts:
        if not isinstance(each.source, Path):
            read.append(each)
            continue
        try:
            read.append(_described(each, each.source))
        except (OSError, ValueError) as refusal:
            cause = f"the prompt `{each.source}` cannot be used: {_reason(refusal)}"
            faults.append(fault("X_DECLARATION_INVALID", cause, "give the path of a prompt in UTF-8"))
    return tuple(read), tuple(faults)


def _described(declared: Prompt, path: Path) -> Prompt:
    """Return the prompt with what its file says of it, unless the declaration says otherwise."""
    words = _words(path)
    model = declared.input or _model(declared.name, words)
    unknown = sorted(set(words.slots) - set(model.model_fields))
    if unknown:
        raise ValueError(f"its slot `{unknown[0]}` is no declared argument")

    def render(input: Any) -> str:
        return _filled(path, {name: _word(getattr(input, name)) for name in model.model_fields})

    render.__annotations__ = {"input": model, "return": str}
    front = words.front
    return replace(
        declared,
        source=render,
        description=declared.description or front.description or "",
        title=declared.title or front.title,
    )


def _model(name: str, words: Words) -> type[BaseModel]:
    """Return the arguments of a file: those it describes, and every other slot as a required one."""
    told = {each.name: each for each in words.front.arguments}
    arguments = [told.get(each, Argument(name=each)) for each in dict.fromkeys([*told, *words.slots])]
    for each in arguments:
        if each.name.startswith("_"):
            raise ValueError(f"its argument `{each.name}` begins with an underscore")
    fields = {each.name: (str, _field(each)) for each in arguments}
    return _make(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _field(argument: Argument) -> Any:
    return Field(... if argument.required else "", description=argument.description)


def _filled(path: Path, words: Mapping[str, str]) -> str:
    """Fill the slots in one pass: a slot that an argument spells is a word, not a slot.

    Raises: ActionError, when the file is gone or has other slots than at the start.
    """
    try:
        found = _words(path)
    except (OSError, ValueError):
        raise _changed() from None
    if not set(found.slots) <= words.keys():
        raise _changed()
    return _SLOT.sub(lambda slot: words[slot.group(1)], found.text)


def _changed() -> ActionError:
    told = CODES["X_PROMPT_CHANGED"]
    return ActionError(told.code, told.cause, told.fix, told.caller_fix)


def _words(path: Path) -> Words:
    with path.open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")
    text = raw.decode()
    front = _FRONT.match(text)
    return Words(Front(), text) if front is None else Words(_front(front.group(1)), text[front.end() :])


def _front(text: str) -> Front:
    require("yaml", "nonsuch[prompts]")
    import yaml

    try:
        held: object = yaml.safe_load(text)
        return Front() if held is None else Front.model_validate(held)
    except yaml.YAMLError as refusal:
        raise ValueError(f"what stands before its text is no YAML: {str(refusal).splitlines()[0]}") from None
    except ValidationError as refusal:
        first = refusal.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"what stands before its text: `{path}`: {first['msg']}") from None


def _word(value: object) -> str:
    return "" if value is None else str(getattr(value, "value", value))


def _reason(refusal: Exception) -> str:
    if isinstance(refusal, OSError):
        return refusal.strerror or type(refusal).__name__
    return "it is not UTF-8" if isinstance(refusal, UnicodeDecodeError) else str(refusal)
