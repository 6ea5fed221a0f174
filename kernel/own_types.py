"""The app's own entity types: what its schema files declare, and what its models refer to.

Finds every fault of them; decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Final

from . import cedar, cedar_text
from .attributes import attributes, is_model
from .catalog import Catalog
from .cedar_text import PolicyRefused
from .compile import Base, PolicySource, models, principal_schema
from .expansion import Expansion
from .places import declared, meant
from .policy_text import first_unexpected, schema_too_deep, statements, tokens
from .reading import Reading, nearest, one_line
from .shapes import LOADED, Shape
from .unreadable import NOT_A_NAME

_CEDARS_OWN: Final = frozenset(
    {"Bool", "Boolean", "Entity", "Extension", "Long", "Record", "Set", "String", "datetime", "decimal"}
    | {"duration", "ipaddr"}
)
_TYPE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)*")
_PROBE: Final = "Nonsuch_probe_of_a_reference"
_FLATTER: Final = "declare the inner records as types of their own: `type Name = {...};`"
_FEWER: Final = "name fewer types within types"


def extended(catalog: Catalog, base: Base, schemas: Iterable[PolicySource], reading: Reading) -> Base:
    """Return the base with the schema files appended: all of them, or those that are sound.

    Types of one file may name those of another, so a file is blamed alone only where all fail together.
    """
    sound = _bounded([source for source in schemas if _sound(catalog, source, reading)], reading)
    whole = _with(base, sound)
    if _refused(catalog, whole) is None:
        return whole
    taken: list[PolicySource] = []
    for source in sound:
        refusal = _refused(catalog, _with(base, [*taken, source]))
        if refusal is None:
            taken.append(source)
        else:
            at = _stumble(source.text, refusal)
            reading.refuse("X_POLICY_SCHEMA_INVALID", source.where(at), one_line(refusal))
    return _with(base, taken)


def _bounded(schemas: list[PolicySource], reading: Reading) -> list[PolicySource]:
    """Return the schemas that the engine can take in, before it sees any."""
    expansion, kept = Expansion(source.text for source in schemas), list[PolicySource]()
    for source in schemas:
        strain = expansion.strain(source.text)
        if strain is None:
            kept.append(source)
        else:
            reading.refuse("X_POLICY_TOO_DEEP", source.where(strain.at), strain.why, _FEWER)
    return kept


def referable(catalog: Catalog, base: Base, reading: Reading) -> bool:
    """Whether every ``Ref`` of a resource's model stands at a string and names a declared entity type."""
    before = len(reading.faults)
    kinds = {
        entry.resource.name: entry.resource.model for entry in catalog.entries if entry.resource is not None
    }
    for name, model in kinds.items():
        for path, held, shape in attributes(model, LOADED):
            spot = f"<{'.'.join((name, *path))}>"
            if shape is NOT_A_NAME:
                reading.refuse("X_DECLARATION_INVALID", spot, NOT_A_NAME.why, NOT_A_NAME.fix)
            elif isinstance(shape, Shape) and not is_model(held):
                for kind in shape.refers:
                    _resolve(catalog, base, kind, spot, reading)
    return len(reading.faults) == before


def _resolve(catalog: Catalog, base: Base, kind: str, spot: str, reading: Reading) -> None:
    """Ask the engine for a type that has ``kind`` as a parent: only an entity type can be one."""
    kinds = "".join(f"\nentity {name};" for name in models(catalog))
    probe = f"{base.entities}{kinds}\nentity {_PROBE} in [{kind}];"
    if _TYPE.fullmatch(kind) and _refused(catalog, replace(base, entities=probe)) is None:
        return
    known = {name.text for each in statements(base.entities) for name in declared(each)} | models(catalog)
    cause = f"a `Ref` names `{kind}`, which no schema declares as an entity type"
    fix = nearest(
        kind, known - {kind}, f"declare `entity {kind};` in a `.cedarschema` file of `policies_dir`"
    )
    reading.refuse("X_POLICY_SCHEMA_INVALID", spot, cause, fix)


def _with(base: Base, schemas: Iterable[PolicySource]) -> Base:
    return replace(base, entities="\n".join([base.entities, *(each.text for each in schemas)]))


def _refused(catalog: Catalog, tried: Base) -> str | None:
    """Return why the entity types make no schema."""
    try:
        cedar.schema(principal_schema(catalog, tried))
    except PolicyRefused as refusal:
        return str(refusal)
    return None


def _sound(catalog: Catalog, source: PolicySource, reading: Reading) -> bool:
    """Whether a file declares entity types only, and none that is taken."""
    before = len(reading.faults)
    strain = schema_too_deep(source.text)
    if strain is not None:
        reading.refuse("X_POLICY_TOO_DEEP", source.where(strain.at), strain.why, _FLATTER)
        return False
    taken = models(catalog)
    for name in (name for statement in statements(source.text) for name in declared(statement)):
        if name.text in _CEDARS_OWN or name.text in taken:
            whose = "a type of Cedar's own" if name.text in _CEDARS_OWN else "the model of a resource"
            cause = f"`{name.text}` is declared twice: it is {whose}"
            reading.refuse("X_POLICY_SCHEMA_INVALID", source.where(name.at), cause)
    for token, following in pairwise(tokens(source.text)):
        if token.text == "action" and following.text not in (":", "?"):
            cause = "actions are declared in code, with the gate that asks about them"
            reading.refuse("X_POLICY_SCHEMA_INVALID", source.where(token.at), cause)
    return len(reading.faults) == before


def _stumble(text: str, message: str) -> int:
    """Return where the schema parser stumbles, else where its words are."""
    found = list(statements(text))
    if "end of input" in message:
        return found[-1].tokens[-1].at if found else 0
    for statement in found:
        if not cedar_text.schema_ends_early(text[statement.start : statement.end]):
            at = first_unexpected(text, statement, cedar_text.schema_ends_early)
            if at != statement.tokens[-1].at or "unexpected" in message:
                return at
    spots = (meant(statement, message) for statement in found)
    return max((at for at in spots if at is not None), default=0)
