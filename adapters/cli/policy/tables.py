"""Decision tables: YAML or JSON beside the policies, checked row by row. Judges nothing.

A file is a list of rows, or `principals` by name and `tests`, a list of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from ....kernel.catalog import Catalog
from ....kernel.model import NO_SCOPE, Agent, Call, Human, Principal, PrincipalInvalid
from ....kernel.strict_json import Json
from ...analysis.attempts import UNLOADED, Facts
from ..caller import SURFACE, entry_of, facts_from, known, misfits
from ..render import Refused
from .files import Unreadable, load

CODE: Final = "X_POLICY_TEST_INVALID"
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
Expected = Literal["ok", "hidden", "scope-denied", "invalid-args", "policy-denied", "policy-error", "failed"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Person(_Strict):
    """Whom an agent acts for."""

    id: str = "person"
    roles: list[str] = Field(default_factory=list[str])
    org: str | None = None


class Party(_Strict):
    """A caller: an agent, if `kind` does not say otherwise; `acts_for: same` is a person like it."""

    kind: Literal["agent", "human"] = "agent"
    id: str = "somebody"
    roles: list[str] = Field(default_factory=list[str])
    scopes: list[str] | None = None
    org: str | None = None
    acts_for: Annotated[
        Annotated[Literal["same"] | None, Tag("name")] | Annotated[Person, Tag("person")],
        Discriminator(lambda given: "person" if isinstance(given, (dict, Person)) else "name"),
    ] = None

    @model_validator(mode="after")
    def _only_agents_act(self) -> Party:
        if self.acts_for is not None and self.kind == "human":
            raise ValueError("`acts_for` is for agents: a human acts for nobody else")
        return self

    @property
    def principal(self) -> Principal:
        """The caller as the kernel knows it. Raises: PrincipalInvalid."""
        if self.kind == "human":
            return Human(self.id, roles=self.roles, org=self.org, scopes=self.scopes)
        return Agent(
            self.id, roles=self.roles, org=self.org, scopes=self.scopes or (), acts_for=self._person()
        )

    def _person(self) -> Human | None:
        match self.acts_for:
            case None:
                return None
            case "same":
                return Human("person", roles=self.roles, org=self.org)
            case person:
                return Human(person.id, roles=person.roles, org=person.org)


def _kind(given: object) -> str:
    return "name" if isinstance(given, str) else "caller"


Caller = Annotated[Annotated[str, Tag("name")] | Annotated[Party, Tag("caller")], Discriminator(_kind)]


class Row(_Strict):
    """One request and the decision that is expected of it."""

    name: str | None = None
    principal: Caller
    tool: str
    input: dict[str, Any] = Field(default_factory=dict[str, Any])
    facts: dict[str, Any] | None = None
    missing: bool = False
    expect: Expected
    policy: str | None = None
    code: str | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Row:
        if self.missing and self.facts is not None:
            raise ValueError("`missing: true` and `facts` exclude each other")
        return self


@dataclass(frozen=True, slots=True)
class Case:
    """A row that can be put before the kernel, and the place it comes from."""

    where: str
    name: str
    principal: Principal
    call: Call
    facts: Facts
    row: Row


@dataclass(frozen=True, slots=True)
class Broken:
    """A row or file that cannot be read."""

    where: str
    cause: str


def read(directory: Path, catalog: Catalog) -> tuple[list[Case], list[Broken]]:
    """Return every row of a directory's tables, or of one table, and what is wrong with the others."""
    files = [directory] if directory.is_file() else sorted(p for p in directory.rglob("*") if p.is_file())
    cases: list[Case] = []
    broken: list[Broken] = []
    for path in files:
        if path.suffix in _SUFFIXES:
            for each in _read_file(path, catalog):
                if isinstance(each, Case):
                    cases.append(each)
                else:
                    broken.append(each)
    return cases, broken


def _read_file(path: Path, catalog: Catalog) -> Iterator[Case | Broken]:
    try:
        document, lines = load(path)
    except Unreadable as refusal:
        yield Broken(f"{path}:{refusal.line}", refusal.cause)
        return
    rows = isinstance(document, list)
    table = cast("dict[str, Any]", {"tests": document} if rows else document)
    if not isinstance(document, (list, dict)) or not isinstance(table.get("tests"), list):
        yield Broken(f"{path}:1", "it is no list of rows, and has no `tests` that is one")
        return
    for name in sorted(table.keys() - {"tests", "principals"}):
        yield Broken(f"{path}:1", f"`{name}` is neither `tests` nor `principals`")
    principals, faults = _principals(table.get("principals"))
    yield from (Broken(f"{path}:1", each) for each in faults)
    for index, item in enumerate(cast("list[Any]", table["tests"])):
        where = f"{path}:{lines[index]}" if index < len(lines) else f"{path}: row {index + 1}"
        yield _case(where, index, item, principals, catalog)


def _principals(held: object) -> tuple[dict[str, Party], list[str]]:
    try:
        return TypeAdapter(dict[str, Party]).validate_python(held or {}, strict=True), []
    except ValidationError as refusal:
        return {}, [f"principals: {each}" for each in misfits(refusal)]


def _case(
    where: str, index: int, item: object, principals: Mapping[str, Party], catalog: Catalog
) -> Case | Broken:
    try:
        row = Row.model_validate(item)
    except ValidationError as refusal:
        return Broken(where, "; ".join(misfits(refusal)))
    try:
        party = row.principal if isinstance(row.principal, Party) else principals.get(row.principal)
        if party is None:
            return Broken(where, f"no principal of this file is named `{row.principal}`")
        principal = _declared(party, catalog).principal
        entry = entry_of(catalog, row.tool)
        if entry is None and row.expect != "hidden":
            return Broken(where, f"`{row.tool}` is no tool of this app")
        given = row.missing or row.facts is not None
        facts: Facts = facts_from(entry, cast("Json", row.facts)) if given else UNLOADED
    except (Refused, PrincipalInvalid) as refusal:
        return Broken(where, refusal.cause if isinstance(refusal, Refused) else str(refusal))
    sent = cast("dict[str, Json]", row.input)
    call = Call(row.tool, sent, SURFACE)
    if entry is not None and not entry.exposed and entry.path:  # no tool: it is called at its path
        call = Call(entry.path, sent, "http")
    return Case(where, row.name or f"row {index + 1}", principal, call, facts, row)


def _declared(party: Party, catalog: Catalog) -> Party:
    """Return a party whose names are declared: a misspelt role would only ever be denied."""
    person = party.acts_for if isinstance(party.acts_for, Person) else None
    known("role", [*party.roles, *(person.roles if person else ())], catalog.roles)
    known("scope", party.scopes or (), catalog.scopes - {NO_SCOPE})
    return party
