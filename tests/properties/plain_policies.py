"""Policies as plain values: their Cedar text, and what they mean, naively.

The oracle of the policy gate. Imports nothing of nonsuch and asks no engine.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ..rules import LONG, Caller, parties

Uid = tuple[str, str]
Form = Literal["any", "is", "==", "in", "is in"]
Held = Literal["holds", "fails", "errs"]


# what is asked


@dataclass(frozen=True, slots=True)
class Tool:
    """What an action head can name: the tool, its permission; ``acts_on`` is its resource type."""

    name: str
    permission: str
    acts_on: str
    scope: str
    role: str | None = None


TOOLS: Final = (
    Tool("look", "doc:look", "Doc", "docs"),
    Tool("peek", "doc:look", "Doc", "docs"),
    Tool("edit", "doc:edit", "Doc", "docs", "r1"),
    Tool("use", "app:use", "Server", "app"),
)
BY_NAME: Final = {tool.name: tool for tool in TOOLS}
ROLES: Final = ("r1", "r2", "r3")
SERVER: Final = "shelf"


@dataclass(frozen=True, slots=True)
class Row:
    """The facts of one document."""

    id: str
    owner: str = "a"
    level: int = 0
    labels: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """Typed arguments."""

    id: str = "d1"
    note: str | None = None
    size: int = 0
    tags: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """One party's question: ``row`` is nothing for a tool that acts on the server, and for a missing one."""

    party: Caller
    tool: Tool
    row: Row | None
    given: Given

    @property
    def resource(self) -> Uid | None:
        """What is acted on; nothing where it is not there."""
        if self.tool.acts_on == "Server":
            return ("Server", SERVER)
        return None if self.row is None else ("Doc", self.row.id)


# what a policy says


@dataclass(frozen=True, slots=True)
class Head:
    """What one variable is confined to, in any of the five forms."""

    form: Form = "any"
    kind: str = ""
    entity: Uid = ("", "")

    def text(self, variable: str) -> str:
        """The head as Cedar text."""
        uid = f"{self.entity[0]}::{json.dumps(self.entity[1])}"
        match self.form:
            case "any":
                return variable
            case "is":
                return f"{variable} is {self.kind}"
            case "==" | "in":
                return f"{variable} {self.form} {uid}"
            case "is in":
                return f"{variable} is {self.kind} in {uid}"

    def takes(self, kind: str, own: Uid | None, ancestors: Iterable[Uid]) -> bool:
        """Whether it holds of an entity with these ancestors. One that is not there is of a kind only."""
        above = {*ancestors, own}
        match self.form:
            case "any":
                return True
            case "is":
                return kind == self.kind
            case "==":
                return own == self.entity
            case "in":
                return self.entity in above
            case "is in":
                return kind == self.kind and self.entity in above


@dataclass(frozen=True, slots=True)
class Condition:
    """A Cedar expression, what it reads, and what it comes to."""

    text: str
    holds: Callable[[Asked], Held]

    @property
    def reads_resource(self) -> bool:
        """Whether it cannot be asked without the resource."""
        return "resource" in self.text

    def reads(self, argument: str) -> bool:
        """Whether it reads an argument."""
        return f"context.args.{argument}" in self.text


@dataclass(frozen=True, slots=True)
class Line:
    """One policy of the policy gate."""

    id: str
    effect: Literal["permit", "forbid"]
    principal: Head
    actions: tuple[str, ...]
    exact: bool
    resource: Head
    condition: str = "always"
    unless: bool = False

    @property
    def text(self) -> str:
        """The policy as Cedar text."""
        named = [f'Action::"{name}"' for name in self.actions]
        action = f"action == {named[0]}" if self.exact else f"action in [{', '.join(named)}]"
        clause = f" {'unless' if self.unless else 'when'} {{ {CONDITIONS[self.condition].text} }}"
        return (
            f'@id("{self.id}") {self.effect} ({self.principal.text("principal")}, {action}, '
            f"{self.resource.text('resource')}){'' if self.condition == 'always' else clause};"
        )

    def covers(self, tool: Tool) -> bool:
        """Whether its action head covers a tool."""
        names = {tool.name} if self.exact else {tool.name, tool.permission, "any"}
        return not names.isdisjoint(self.actions)

    def applies(self, asked: Asked) -> bool:
        """Whether its head is satisfied."""
        kind = asked.party.kind.title()
        roles = [("Role", role) for role in asked.party.roles if role in ROLES]
        return (
            self.covers(asked.tool)
            and self.principal.takes(kind, (kind, asked.party.id), roles)
            and self.resource.takes(asked.tool.acts_on, asked.resource, ())
        )

    def is_found(self, asked: Asked) -> bool:
        """Whether a look-up by key finds it: the key of `is T in E` is E, for any type."""
        head = self.principal
        wide = dataclasses.replace(head, form="in") if head.form == "is in" else head
        return dataclasses.replace(self, principal=wide).applies(asked)

    def comes_to(self, asked: Asked) -> Held:
        """What its condition comes to."""
        told = CONDITIONS[self.condition].holds(asked)
        if not self.unless or told == "errs" or self.condition == "always":
            return told
        return "fails" if told == "holds" else "holds"


def _said(answer: Callable[[Asked], bool]) -> Callable[[Asked], Held]:
    return lambda asked: "holds" if answer(asked) else "fails"


def _of_row(answer: Callable[[Row], bool]) -> Callable[[Asked], Held]:
    def holds(asked: Asked) -> Held:
        if asked.row is None:
            return "errs"
        return "holds" if answer(asked.row) else "fails"

    return holds


def _doubled(asked: Asked) -> Held:
    double = asked.given.size * 2
    return "errs" if double not in LONG else "holds" if double > 10 else "fails"


def _raised(asked: Asked) -> Held:
    if asked.row is None or asked.row.level + 1 not in LONG:
        return "errs"
    return "holds" if asked.row.level + 1 > 0 else "fails"


def _for_r1(asked: Asked) -> bool:
    behind = asked.party.behind
    return asked.party.kind == "agent" and behind is not None and "r1" in behind.roles


def _is_owner(asked: Asked) -> Held:
    return _of_row(lambda row: row.owner == asked.party.id)(asked)


CONDITIONS: Final[Mapping[str, Condition]] = {
    "always": Condition("true", _said(lambda _: True)),
    "org": Condition("principal has org", _said(lambda asked: asked.party.org is not None)),
    "acme": Condition(
        'principal has org && principal.org == "acme"', _said(lambda asked: asked.party.org == "acme")
    ),
    "self": Condition('principal.id == "a"', _said(lambda asked: asked.party.id == "a")),
    "role": Condition('principal in Role::"r2"', _said(lambda asked: "r2" in asked.party.roles)),
    "for r1": Condition(
        'principal is Agent && principal has actsFor && principal.actsFor in Role::"r1"', _said(_for_r1)
    ),
    "size": Condition("context.args.size > 5", _said(lambda asked: asked.given.size > 5)),
    "twice": Condition("context.args.size + context.args.size > 10", _doubled),
    "note": Condition(
        'context.args has note && context.args.note == "stop"',
        _said(lambda asked: asked.given.note == "stop"),
    ),
    "no note": Condition("!(context.args has note)", _said(lambda asked: asked.given.note is None)),
    "not go": Condition(
        'context.args has note && context.args.note != "go"',
        _said(lambda asked: asked.given.note is not None and asked.given.note != "go"),
    ),
    "like": Condition(
        'context.args has note && context.args.note like "*__e*"',
        _said(lambda asked: "__e" in (asked.given.note or "")),
    ),
    "tag": Condition('context.args.tags.contains("stop")', _said(lambda asked: "stop" in asked.given.tags)),
    "no tags": Condition("context.args.tags.isEmpty()", _said(lambda asked: not asked.given.tags)),
    "pair": Condition(
        'context.args.pairs.contains({k: "__extn", v: "stop"})',
        _said(lambda asked: ("__extn", "stop") in asked.given.pairs),
    ),
    "no pairs": Condition("context.args.pairs.isEmpty()", _said(lambda asked: not asked.given.pairs)),
    "level": Condition("resource.level > 0", _of_row(lambda row: row.level > 0)),
    "raised": Condition("resource.level + 1 > 0", _raised),
    "label": Condition('resource.labels.contains("stop")', _of_row(lambda row: "stop" in row.labels)),
    "extra": Condition(
        'resource.extra.contains({k: "__entity", v: "stop"})',
        _of_row(lambda row: ("__entity", "stop") in row.extra),
    ),
    "noted": Condition(
        'resource has note && resource.note == "stop"', _of_row(lambda row: row.note == "stop")
    ),
    "not noted": Condition("!(resource has note)", _of_row(lambda row: row.note is None)),
    "owner": Condition("resource.owner == principal.id", _is_owner),
    "not kept": Condition('resource.owner != "keep"', _of_row(lambda row: row.owner != "keep")),
}


# what policies answer


@dataclass(frozen=True, slots=True)
class Said:
    """A decision, the policies that determined it, the policies that erred."""

    allow: bool
    determining: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def answered(lines: Iterable[Line], asked: Asked) -> Said:
    """What a whole set answers one party: an error denies, then a forbid, then silence."""
    told = [(line, line.comes_to(asked)) for line in lines if line.applies(asked)]
    errors = tuple(sorted(line.id for line, held in told if held == "errs"))
    if errors:
        return Said(False, errors=errors)
    forbids = tuple(sorted(line.id for line, held in told if held == "holds" and line.effect == "forbid"))
    permits = tuple(sorted(line.id for line, held in told if held == "holds" and line.effect == "permit"))
    return Said(False, forbids) if forbids else Said(bool(permits), permits)


MISSING: Final = Said(False, errors=("<missing>",))


def decided(lines: Iterable[Line], caller: Caller, tool: Tool, row: Row | None, given: Given) -> Said:
    """What every party must be allowed. Of a resource that is not there only what does not read it is asked.

    A forbid among these speaks; else one policy that reads the resource denies, and it is one too many
    where a key finds it, though its head may not be satisfied.
    """
    held = tuple(lines)
    everyone = [Asked(party, tool, row, given) for party in parties(caller)]
    if tool.acts_on == "Server" or row is not None:
        return _of_all(held, everyone)
    reading = [line for line in held if CONDITIONS[line.condition].reads_resource]
    said = _of_all([line for line in held if line not in reading], everyone)
    if said.determining and not said.allow:
        return said
    return MISSING if any(line.is_found(asked) for line in reading for asked in everyone) else said


def _of_all(lines: Iterable[Line], everyone: Iterable[Asked]) -> Said:
    held, said = tuple(lines), Said(False)
    for asked in everyone:
        said = answered(held, asked)
        if not said.allow:
            return said
    return said


# the two gates before


@dataclass(frozen=True, slots=True)
class GateLine:
    """One policy of visibility (``see``) or scope (``present``); without a ``name`` about all of them."""

    id: str
    effect: Literal["permit", "forbid"]
    gate: Literal["see", "present"]
    principal: Head
    name: str | None

    @property
    def text(self) -> str:
        """The policy as Cedar text."""
        kind = "Audience" if self.gate == "see" else "Scope"
        over = "resource" if self.name is None else f"resource == {kind}::{json.dumps(self.name)}"
        head = self.principal.text("principal")
        return f'@id("{self.id}") {self.effect} ({head}, action == Action::"{self.gate}", {over});'

    def applies(self, party: Caller, name: str) -> bool:
        """Whether it speaks of a party and an audience or scope."""
        kind = party.kind.title()
        roles = [("Role", role) for role in party.roles if role in ROLES]
        return self.name in (None, name) and self.principal.takes(kind, (kind, party.id), roles)


def audience_of(tool: Tool) -> str:
    """The name of a tool's audience."""
    return "everyone" if tool.role is None else f"roles:{tool.role}"


def passes(lines: Iterable[GateLine], gate: str, name: str, party: Caller, *, already: bool) -> bool:
    """Whether one party passes a gate: forbid overrides; ``already`` is what holds without these policies."""
    about = [line for line in lines if line.gate == gate and line.applies(party, name)]
    permitted = already or any(line.effect == "permit" for line in about)
    return permitted and not any(line.effect == "forbid" for line in about)


def sees(lines: Iterable[GateLine], caller: Caller, tool: Tool) -> bool:
    """Whether a caller may know of a tool."""
    held = tuple(lines)
    return all(
        passes(held, "see", audience_of(tool), party, already=tool.role is None or tool.role in party.roles)
        for party in parties(caller)
    )


def presents(lines: Iterable[GateLine], caller: Caller, tool: Tool) -> bool:
    """Whether a caller presents a tool's scope."""
    held = tuple(lines)
    return all(
        passes(held, "present", tool.scope, party, already=party.scopes is None or tool.scope in party.scopes)
        for party in parties(caller)
    )


# what comes of a call


@dataclass(frozen=True, slots=True)
class Came:
    """An outcome, its code, and the policies that determined it or erred."""

    outcome: str
    code: str | None = None
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Set:
    """A whole set of policies."""

    lines: tuple[Line, ...] = ()
    gates: tuple[GateLine, ...] = ()

    @property
    def text(self) -> str:
        """All of it as Cedar text."""
        return "\n".join(self.texts)

    @property
    def texts(self) -> list[str]:
        """The policies one by one."""
        return [*(gate.text for gate in self.gates), *(line.text for line in self.lines)]


BROKEN: Final = "broken"


def comes_of(
    held: Set, caller: Caller, name: str, given: Given | None, row: Row | Literal["broken"] | None
) -> Came:
    """What must come of a call. ``given`` is nothing where the arguments do not fit; a row may be broken."""
    tool = BY_NAME.get(name)
    if tool is None or not sees(held.gates, caller, tool):
        return Came("hidden", "X_MCP_TOOL_UNKNOWN")
    if not presents(held.gates, caller, tool):
        return Came("scope-denied", "X_MCP_SCOPE_DENIED")
    if given is None or (given.size not in LONG and is_read(held.lines, tool, "size")):
        return Came("invalid-args", "X_INPUT_INVALID")
    if row == BROKEN and tool.acts_on != "Server":
        return Came("policy-error", "X_FORBIDDEN", ("<resource>",))
    found = None if tool.acts_on == "Server" or row == BROKEN else row
    missing = tool.acts_on != "Server" and found is None
    said = decided(held.lines, caller, tool, found, given)
    if said.allow:
        return Came("failed", "X_NOT_FOUND") if missing else Came("ok")
    if said.errors and not missing:
        return Came("policy-error", "X_FORBIDDEN", said.errors)
    return Came("policy-denied", "X_FORBIDDEN", said.determining)


def is_read(lines: Iterable[Line], tool: Tool, argument: str) -> bool:
    """Whether a policy about a tool reads an argument."""
    return any(line.covers(tool) and CONDITIONS[line.condition].reads(argument) for line in lines)
