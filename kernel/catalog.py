"""The catalog: every entry a kernel can serve, and the names its policies may use. Values only.

``boot.py`` makes one from declarations; ``compile.py`` turns it into Cedar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel

from .asks import Capability
from .confirmation import Deciding, Gated
from .declare import EVERYONE, Grant, Icon, Kind, ListParams, Predicate
from .model import Surface
from .schema import InputSchema, OutputSchema
from .shapes import Field
from .signatures import Handler
from .tasks import Support
from .told import Told
from .uri_template import UriTemplate

ANY: Final = "any"
READ_RESOURCE: Final = "nonsuch:read-resource"
GET_PROMPT: Final = "nonsuch:get-prompt"


@dataclass(frozen=True, slots=True, eq=False)
class ResourceType:
    """What an action acts on: the Cedar entity type, its attributes, how its facts are loaded."""

    name: str
    fields: tuple[Field, ...]
    model: type[BaseModel]
    loader: Handler

    @property
    def told(self) -> bool:
        """Whether it is none: its fields stand in the context of the decision (``told.py``)."""
        return issubclass(self.model, Told)

    @property
    def context(self) -> tuple[Field, ...]:
        """The fields that stand in the context, if it is none."""
        return tuple(each for each in self.fields if each.name != "id") if self.told else ()


@dataclass(frozen=True, slots=True, eq=False)
class Completer:
    """How one argument of a prompt or template is completed: by a function, or from a list."""

    handler: Handler | None
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a resource is: its URI, or the template of its URIs, and what is there."""

    uri: str
    template: UriTemplate | None
    mime_type: str
    annotations: Mapping[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """Everything the gates need to know of one action, query, tool, resource or prompt.

    Compared by identity. ``name`` is its Cedar action: ``resources/...`` and ``prompts/...`` for content.
    ``destructive`` and ``reads_only`` are its effect (``effects.py``). ``methods`` are the HTTP methods that
    were declared; none are those of its kind. ``confirming`` says that its calls wait for a person, or that
    it is where people decide them.
    """

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
    icons: tuple[Icon, ...] = ()
    needs: tuple[Capability, ...] = ()
    confirms: bool = False
    task: Support = "never"
    asks_first: bool = False
    list_params: ListParams | None = None
    methods: tuple[str, ...] = ()
    requires_key: bool = False
    atomic: bool = False
    reads_only: bool = False
    group: str | None = None
    confirming: Gated | Deciding | None = None
    place: Place | None = None
    completers: Mapping[str, Completer] = field(default_factory=dict[str, Completer])

    @property
    def shown(self) -> str:
        """The name that callers know it by."""
        return self.name.partition("/")[2] if self.kind in ("resource", "prompt") else self.name


@dataclass(frozen=True, slots=True, eq=False)
class Catalog:
    """All entries of an app and the names its policies may use.

    ``groups`` describes the groups of the constant surface, and ``meta`` is the audience it is served to.
    ``hides_paths``: over HTTP too, a caller outside of an action's audience finds nothing at its path.
    """

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
    groups: Mapping[str, str] = field(default_factory=dict[str, str])
    meta: str | None = None
    hides_paths: bool = True

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
