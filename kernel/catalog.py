"""The catalog: every entry a kernel can serve, and the names its policies may use. Values only.

``boot.py`` makes one from declarations; ``compile.py`` turns it into Cedar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from .declare import EVERYONE, Grant, Kind, Predicate
from .model import Surface
from .schema import InputSchema, OutputSchema
from .shapes import Field
from .signatures import Handler

ANY: Final = "any"


@dataclass(frozen=True, slots=True, eq=False)
class ResourceType:
    """What an action acts on: the Cedar entity type, its attributes, how its facts are loaded."""

    name: str
    fields: tuple[Field, ...]
    model: type[BaseModel]
    loader: Handler


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """Everything the gates need to know of one action, query or tool. Compared by identity."""

    name: str
    kind: Kind
    path: str
    exposed: bool
    description: str
    title: str | None
    annotations: Mapping[str, bool | str]
    audience: str
    scope: str | None
    permission: str
    resource: ResourceType | None
    handler: Handler
    input: InputSchema
    arguments: tuple[Field, ...]
    output: OutputSchema
    idempotent: bool
    destructive: bool
    single: bool


@dataclass(frozen=True, slots=True, eq=False)
class Catalog:
    """All entries of an app and the names its policies may use."""

    server: str
    entries: tuple[Entry, ...]
    roles: frozenset[str]
    scopes: frozenset[str]
    role_audiences: Mapping[str, tuple[str, ...]]
    conditions: Mapping[str, str]
    predicates: Mapping[str, Predicate]
    grants: tuple[Grant, ...]
    tools: frozenset[str]
    paths: frozenset[str]

    @property
    def audiences(self) -> frozenset[str]:
        """Every distinct audience."""
        return frozenset({EVERYONE, *self.role_audiences, *self.conditions, *self.predicates})

    def declares(self, name: str, surface: Surface) -> bool:
        """Whether anybody at all could see this name. For the operator's audit only, after the answer."""
        return name in (self.paths if surface == "http" else self.tools)

    @property
    def permissions(self) -> frozenset[str]:
        """Every permission that an entry asks for."""
        return frozenset(entry.permission for entry in self.entries)
