"""Policy texts -> the policies of an app: parsed, linked, confined to one gate each, validated.

Every fault is found in one run and says where it is. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .catalog import Catalog
from .compile import (
    Base,
    PolicySource,
    audience_policies,
    confirmation_policies,
    content_policies,
    grant_policies,
    tool_policies,
)
from .confinement import confined
from .declare import Grant
from .errors import Fault, fault
from .own_types import extended, referable
from .policies import Policies
from .reading import Reading, link, read
from .told import Told
from .validation import validate


@dataclass(frozen=True, slots=True)
class Sources:
    """What an operator brings: policies, schemas of the app's own entity types, template links, grants."""

    policies: tuple[PolicySource, ...] = ()
    schemas: tuple[PolicySource, ...] = ()
    links: tuple[PolicySource, ...] = ()
    grants: tuple[Grant, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The policies of an app. Use them only when ``faults`` is empty; then there may be ``warnings``."""

    policies: Policies
    base: Base
    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...]


def load(catalog: Catalog, base: Base, sources: Sources, *, complete: bool = True) -> Loaded:
    """Return the policies of an app and everything wrong with them.

    1. read ours, the generated ones, the grants and the operator's  2. link templates  3. confine each
    policy to one gate  4. validate it against the schema of that gate.
    With ``complete=False`` the catalog lacks entries that had faults of their own; 4 is left out,
    because its faults would only repeat those. So it is where a ``Ref`` names an unknown type.
    """
    reading = Reading(base.policies, list(sources.faults))
    whole = extended(catalog, base, sources.schemas, reading)
    known = referable(catalog, whole, Reading() if reading.faults else reading)
    _named(catalog, reading)
    confirming = confirmation_policies(catalog, whole)
    ours = tool_policies(catalog, whole)
    generated = (*audience_policies(catalog), *content_policies(catalog), *confirming, *ours)
    for source in (*base.policies, *generated, *grant_policies(catalog, sources.grants), *sources.policies):
        read(source, reading)  # 1
    link(sources.links, reading)  # 2
    gates = confined(catalog, reading, complete=complete)  # 3
    if complete and known:
        validate(catalog, whole, gates, reading)  # 4
    warnings = () if reading.faults else tuple(reading.warnings)
    return Loaded(gates, whole, tuple(_told_once(reading, whole)), warnings)


def _named(catalog: Catalog, reading: Reading) -> None:
    """Refuse facts under another name than that of the policies that have to judge them."""
    for entry in catalog.entries:
        only = (
            entry.resource.model.only if entry.resource and issubclass(entry.resource.model, Told) else None
        )
        if only not in (None, entry.name):
            cause = f"`{entry.name}` is judged on facts that only the policies about `{only}` know"
            fix = f"name it `{only}`"
            reading.refuse("X_DECLARATION_INVALID", f"<{entry.name}>", cause, fix)


def _told_once(reading: Reading, base: Base) -> Iterable[Fault]:
    """Yield the faults; those of our policies about a tool of ours as one, of the tool that has its name.

    These policies fit the tool that they come with: if they do not fit, it is another one.
    """
    tools = {id(source): name for name, source in base.tools}  # not by origin: a file may be called the same
    found = {ident: tools.get(id(held.source)) for ident, held in reading.found.items()}
    seen = set[str]()
    for each in reading.faults:
        about = each.cause.removeprefix("`").partition("`")[0]
        name = found.get(about) if each.code == "X_POLICY_INVALID" else None
        if name is None:
            yield each
        elif name not in seen:
            seen.add(name)
            yield _taken(name)


def _taken(name: str) -> Fault:
    cause = f"`{name}` is the name of a tool of ours, whose policies find nothing to judge in this one"
    fix = f"give it another name, or serve ours: `{name.replace('.', '_')}(...)`"
    return fault("X_DECLARATION_INVALID", cause, fix, where=f"<{name}>")
