"""The replay rule: where a keyed call is filed, when another call is the same one, and what is kept of it.

Pure: knows no store, no clock and no wire. ``replay.py`` asks the world by it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from typing import Final, cast
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from .catalog import Entry
from .model import Call, Failed, Issue, Ok
from .schema import JsonSchema
from .seal import Seal
from .strict_json import Json
from .values import value

KEY_ARGUMENT: Final = "idempotencyKey"
MAX_KEY_CHARS: Final = 255
PURPOSE: Final = "nonsuch.idempotency"
KEY_SCHEMA: Final[JsonSchema] = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_KEY_CHARS,
    "description": "Choose a fresh one for each call; a retry that repeats it does not run twice",
}


def is_keyed(entry: Entry) -> bool:
    """Whether calls of an entry may carry an idempotency key. A query changes nothing and takes none."""
    return entry.kind == "action" and entry.idempotent


def advertised(entry: Entry) -> JsonSchema:
    """Return the input document as callers read it who send the key as an argument."""
    document = entry.input.document
    if not is_keyed(entry):
        return document
    told = {**document, "properties": {**document.get("properties", {}), KEY_ARGUMENT: KEY_SCHEMA}}
    return {**told, "required": [*document.get("required", ()), KEY_ARGUMENT]} if entry.requires_key else told


# a call and its key


@value
class Asked:
    """The arguments of a call without its key, the key, and what is wrong with that."""

    arguments: Mapping[str, Json]
    key: str | None = None
    issues: tuple[Issue, ...] = ()


def asked(entry: Entry, call: Call) -> Asked:
    """Take the key out of a call: over HTTP it comes beside the arguments, elsewhere among them."""
    among = KEY_ARGUMENT in call.arguments and not _declares_it(entry)
    if call.surface == "http":
        issues = _NO_ARGUMENT if among else _issues(entry, call.key) if call.key is not None else ()
        return Asked(call.arguments, None if issues else call.key, issues)
    if not among:
        return Asked(call.arguments)
    rest = {name: value for name, value in call.arguments.items() if name != KEY_ARGUMENT}
    key, issues = call.arguments[KEY_ARGUMENT], _issues(entry, call.arguments[KEY_ARGUMENT])
    return Asked(rest, key if isinstance(key, str) and not issues else None, issues)


_NO_ARGUMENT: Final = (Issue(KEY_ARGUMENT, "not an argument"),)


def _issues(entry: Entry, key: Json) -> tuple[Issue, ...]:
    if not is_keyed(entry):
        return _NO_ARGUMENT
    if not isinstance(key, str):
        return (Issue(KEY_ARGUMENT, "must be of type string"),)
    if not 1 <= len(key) <= MAX_KEY_CHARS:
        return (Issue(KEY_ARGUMENT, f"must have 1 to {MAX_KEY_CHARS} characters"),)
    return ()


def _declares_it(entry: Entry) -> bool:
    return KEY_ARGUMENT in entry.input.document.get("properties", {})


@value
class Parsed:
    """The typed input of a call, and what policies read of it."""

    input: BaseModel
    context: str


# where it is filed, and which call it is


@dataclass(frozen=True, slots=True)
class Attempt:
    """One keyed call: its slot, and the digests of its input by every key there is, today's first."""

    slot: str
    digests: tuple[str, ...]


def attempt_of(seal: Seal, owner: str, entry: Entry, key: str, given: BaseModel, sent: Json) -> Attempt:
    """Return where a call is filed: under its action, its caller and its key, whatever surface it came by.

    The slot needs no secret, so that it is found again after a change of the secret; the digest of the
    input does, because a reader of the store could guess at short inputs otherwise.
    """
    slot = sha256(json.dumps([owner, entry.name, key]).encode()).hexdigest()
    return Attempt(slot, seal.digests(PURPOSE, slot.encode(), canonical(given, sent)))


def canonical(given: BaseModel, sent: Json) -> bytes:
    """Return bytes that are equal for two inputs only if no handler could tell these apart.

    The typed values count, so that ``1`` and ``1.0`` are one integer; and whether a field was sent, because
    a handler can see that. Where a value is of a type that is not known here, what was sent counts too.
    """
    strange = list[type]()
    told: list[Json] = [_plain(given, strange.append)]
    if strange:
        told.append(sent)
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode()


_EXACT: Final = frozenset({bytes, date, datetime, Decimal, float, int, time, timedelta, UUID})


def _plain(value: object, strange: Callable[[type[object]], object]) -> Json:
    """Return a value as JSON that tells its type and everything in it."""
    kind = type(value)
    if value is None or isinstance(value, bool) or kind is str:
        return cast("Json", value)
    if kind in _EXACT:
        return [kind.__name__, repr(value)]
    if isinstance(value, BaseModel):
        return [_named(kind), *_members(value, strange)]
    if isinstance(value, Enum):
        return [_named(kind), value.name]
    if kind in (dict, list, tuple, set, frozenset):
        return [kind.__name__, *_parts(value, strange)]
    if is_dataclass(kind):
        names = [each.name for each in fields(kind)]
        if set(getattr(value, "__dict__", ())).difference(names):  # pydantic keeps what is undeclared there
            strange(kind)
        return [_named(kind), *(_plain(getattr(value, name), strange) for name in names)]
    strange(kind)
    return [_named(kind)]


def _members(value: BaseModel, strange: Callable[[type[object]], object]) -> Iterable[Json]:
    """Yield the declared fields that were sent, and apart from them what was sent beside them, if anything.

    Apart, and not by attribute: a caller names what is not declared, and may name it `__doc__`.
    """
    declared = type(value).model_fields.keys() & value.__pydantic_fields_set__
    yield {name: _plain(getattr(value, name), strange) for name in declared}
    extra = value.__pydantic_extra__
    if extra:
        yield {name: _plain(each, strange) for name, each in extra.items()}


def _parts(value: object, strange: Callable[[type[object]], object]) -> Iterable[Json]:
    """Yield what a container holds; where order says nothing, in one order."""
    if isinstance(value, dict):
        pairs = cast("dict[object, object]", value).items()
        return sorted(([_plain(key, strange), _plain(each, strange)] for key, each in pairs), key=_text)
    parts = [_plain(each, strange) for each in cast("Iterable[object]", value)]
    return sorted(parts, key=_text) if isinstance(value, (set, frozenset)) else parts


def _named(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _text(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


# what is kept


@dataclass(frozen=True, slots=True)
class Judged:
    """What a call acted on when it was permitted: the id and, where a resource was loaded, its facts."""

    ident: str
    facts: str | None


@dataclass(frozen=True, slots=True)
class Kept:
    """The record of a call that was permitted. INVARIANT: it has an ``outcome`` only once it has ended.

    ``judged`` and ``outcome`` can hold rows of the application's; the slot and the digest tell nothing.
    """

    slot: str
    digest: str
    judged: bytes
    begun: datetime
    expires: datetime
    outcome: bytes | None = None


def packed(judged: Judged) -> bytes:
    """Return what a call acted on as a record keeps it."""
    return to_json([judged.ident, judged.facts])


def unpacked(kept: bytes) -> Judged | None:
    """Return what a call acted on, or nothing if the record is not one of ours."""
    try:
        held = from_json(kept)
    except ValueError:
        return None
    match held:
        case [str(ident), str() | None as facts]:
            return Judged(ident, facts)
        case _:
            return None


def frozen(outcome: Ok | Failed) -> bytes:
    """Return how a call ended as a record keeps it: the bytes of an answer stay as they are."""
    if isinstance(outcome, Ok):
        return b"+" + outcome.json
    return b"-" + to_json([outcome.code, outcome.cause, outcome.fix, outcome.caller_fix])


def thawed(kept: bytes) -> Ok | Failed | None:
    """Return how a call ended, as a replay; nothing if the record is not one of ours."""
    if kept.startswith(b"+"):
        return Ok(kept[1:], replayed=True)
    try:
        words = from_json(kept.removeprefix(b"-"))
    except ValueError:
        return None
    match words:
        case [str(code), str(cause), str(fix), str(caller_fix)]:
            return Failed(code, cause, fix, caller_fix, replayed=True)
        case _:
            return None
