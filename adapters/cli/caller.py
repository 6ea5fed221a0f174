"""Principals, inputs and facts as they are written on a command line. Refuses what it cannot read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from ...kernel.catalog import Catalog, Entry
from ...kernel.model import Human, Principal, PrincipalInvalid, Surface
from ...kernel.strict_json import Json, JsonRefused, loads
from ..analysis.attempts import UNLOADED, Facts
from .render import Refused, words

USAGE: Final = "X_CLI_USAGE"
SURFACE: Final[Surface] = "agent"  # every tool by its name, also one that MCP clients reach through a group
_SHOWN: Final = 12
_SAMPLES: Final[dict[object, object]] = {
    "string": "...",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


def names(text: str | None) -> tuple[str, ...]:
    """Return the names of a list with commas."""
    return tuple(each.strip() for each in (text or "").split(",") if each.strip())


def principal(
    roles: Iterable[str], scopes: Iterable[str] | None, org: str | None, *, human: bool
) -> Principal:
    """Return a person, or an agent that acts for a person with the same roles and organisation."""
    try:
        person = Human("person", roles=roles, org=org, scopes=scopes if human else None)
        return person if human else person.delegate("agent", scopes=scopes or ())
    except PrincipalInvalid as refusal:
        raise Refused(USAGE, str(refusal)) from None


def known(kind: str, given: Iterable[str], declared: Iterable[str]) -> tuple[str, ...]:
    """Return names that are declared. Raises: Refused, which lists the declared ones."""
    chosen, all_of_them = tuple(given), sorted(declared)
    for each in chosen:
        if each not in all_of_them:
            some = words(all_of_them[:_SHOWN]) or "none"
            more = "" if len(all_of_them) <= _SHOWN else f", and {len(all_of_them) - _SHOWN} more"
            raise Refused(USAGE, f"the app declares no {kind} `{each}`", f"choose among {some}{more}")
    return chosen


def entry_of(catalog: Catalog, tool: str) -> Entry | None:
    """Return the entry of a tool name."""
    return next((each for each in catalog.entries if each.name == tool), None)


def value(option: str, text: str) -> Json:
    """Return JSON from an option: itself, `@file`, or `-` for stdin. Raises: Refused."""
    try:
        raw = sys.stdin.buffer.read() if text == "-" else _bytes(text)
        return loads(raw)
    except OSError as refusal:
        raise Refused(
            USAGE, f"`{option}`: {refusal.strerror}: `{text[1:]}`", "name a file that is there"
        ) from None
    except JsonRefused as refusal:
        raise Refused(
            USAGE, f"`{option}` is no JSON: {refusal}", f'write it as in {option} \'{{"id": "a"}}\''
        ) from None


def _bytes(text: str) -> bytes:
    return Path(text[1:]).read_bytes() if text.startswith("@") else text.encode("utf-8", "surrogateescape")


def record(option: str, text: str) -> dict[str, Json]:
    """Return a JSON object from an option. Raises: Refused."""
    found = value(option, text)
    if not isinstance(found, dict):
        raise Refused(USAGE, f"`{option}` is no JSON object", f'write it as in {option} \'{{"id": "a"}}\'')
    return found


def facts(entry: Entry | None, given: str | None) -> Facts:
    """Return the facts of `--facts`: none given, `null` for no such resource, or the resource's fields."""
    if given is None:
        return UNLOADED
    return facts_from(entry, value("--facts", given))


def facts_from(entry: Entry | None, held: Json) -> BaseModel | None:
    """Return facts as the model that the entry's loader would have returned. Raises: Refused."""
    if entry is None or entry.resource is None:
        raise Refused(
            USAGE, "facts are given for a tool that acts on the application itself", "leave them out"
        )
    if held is None:
        return None
    try:
        return entry.resource.model.model_validate(held)
    except ValidationError as refusal:
        cause = f"the facts are no `{entry.resource.name}`: {'; '.join(misfits(refusal))}"
        raise Refused(USAGE, cause, f"give {skeleton(entry)}") from None


def misfits(refusal: ValidationError) -> list[str]:
    """Return what is wrong with a value, a line for each place, without repeating the value."""
    found = refusal.errors(include_url=False, include_context=False, include_input=False)
    return [
        f"{'.'.join(str(step) for step in each['loc'])}: {each['msg']}".removeprefix(": ") for each in found
    ]


def skeleton(entry: Entry) -> str:
    """Return the facts of an entry's resource as JSON to fill in."""
    document: dict[str, Any] = entry.resource.model.model_json_schema() if entry.resource else {}
    fields: dict[str, dict[str, object]] = document.get("properties", {})
    return json.dumps({name: _SAMPLES.get(told.get("type")) for name, told in fields.items()})
