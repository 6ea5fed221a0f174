"""A small app whose policies change with every example, asked at its judge, at its kernel, and as one whole.

The whole set is put to the engine without the kernel: by its own schema, entities and context.
"""

# pyright: reportUnknownMemberType=false
# cedarpy declares `dict` without its parameters

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import cedarpy
from pydantic import BaseModel

from nonsuch import App, Principal, Registry, can, define_app_mcp, expose
from nonsuch.adapters.edge.app import judge_from
from nonsuch.kernel.audit import tool_call
from nonsuch.kernel.catalog import Catalog, Entry
from nonsuch.kernel.compile import PolicySource
from nonsuch.kernel.gates import Kernel
from nonsuch.kernel.judge import Judge
from nonsuch.kernel.loader import Sources
from nonsuch.kernel.model import Call, Outcome, PolicyDenied, PolicyError
from nonsuch.kernel.steps import Answer, Load, Permit, Returned, Step, Steps

from ..rules import Caller, parties
from ..world import principal
from .plain_policies import ROLES, SERVER, TOOLS, Asked, Came, Given, Line, Row, Said, Set, Tool


class Args(BaseModel):
    """The arguments of every tool of the shelf."""

    id: str
    note: str | None = None
    size: int = 0
    tags: list[str] = []
    pairs: dict[str, str] = {}


class Doc(BaseModel):
    """What all but one of them act on."""

    id: str
    owner: str
    level: int
    labels: list[str]
    extra: dict[str, str]
    note: str | None = None


STORED: Final = {"d1": Row("d1"), "d2": Row("d2", "keep", 1)}


async def _find(input: Args) -> Doc | None:
    await asyncio.sleep(0)
    row = STORED.get(input.id)
    return None if row is None else doc(row)


def _named(name: str) -> Callable[..., Any]:
    async def handle(input: Args) -> str:
        await asyncio.sleep(0)
        return f"{name} is done"

    handle.__name__ = name
    return handle


def shelf(asks: Callable[[Principal], object] | None = None, **given: Any) -> App:
    """Boot it. ``asks`` is who sees `use`; what is ``given`` goes to ``define_app_mcp``."""
    registry = Registry()
    for tool in TOOLS:
        roles = None if tool.role is None else [tool.role]
        face = expose("Does", visible_to=asks if tool.name == "use" else roles)
        policy = can(tool.permission, _find) if tool.acts_on == "Doc" else can(tool.permission)
        registry.action(policy=policy, mcp=face)(_named(tool.name))
    scopes: dict[str, list[str]] = {}
    for tool in TOOLS:
        scopes.setdefault(tool.scope, []).append(tool.name)
    given.setdefault("rate_limits", None)
    return define_app_mcp(registry, name=SERVER, include="exposed", scopes=scopes, roles=ROLES, **given)


@cache
def catalog() -> Catalog:
    """The catalog of the shelf, which no policy changes."""
    return shelf().kernel.catalog


@cache
def entries() -> Mapping[str, Entry]:
    """Its entries by name."""
    return {entry.name: entry for entry in catalog().entries}


def forget() -> None:
    """Boot again when next asked."""
    catalog.cache_clear()
    entries.cache_clear()


def sources(text: str) -> Sources:
    """One file of policies."""
    return Sources(policies=(PolicySource("own.cedar", text),))


def judge(held: Set) -> Judge:
    """The kernel's judge under a set of policies. Raises: BootError, for a set that no loader takes."""
    return judge_from(catalog(), sources(held.text))[0]


def kernel(held: Set) -> Kernel:
    """A kernel under a set of policies."""
    return Kernel(catalog(), judge(held))


# plain values -> the app's


def args(given: Given) -> Args:
    """Typed arguments as the handler gets them."""
    return Args(id=given.id, note=given.note, size=given.size, tags=list(given.tags), pairs=dict(given.pairs))


def doc(row: Row) -> Doc:
    """A row as a loader returns it."""
    return Doc(
        id=row.id,
        owner=row.owner,
        level=row.level,
        labels=list(row.labels),
        extra=dict(row.extra),
        note=row.note,
    )


def sent(given: Given) -> dict[str, Any]:
    """Typed arguments as a caller sends them."""
    return args(given).model_dump()


# the judge


def judged(asked: Judge, caller: Caller, tool: Tool, row: Row | None, given: Given) -> Said:
    """What the judge says of a call, errors in the order of their names."""
    entry, who = entries()[tool.name], asked.caller(principal(caller))
    on_server = entry.resource is None
    facts = None if on_server or row is None else doc(row)
    ident = asked.server if on_server else "" if row is None else row.id
    told = asked.permits(who, entry, facts, ident, asked.context(entry, args(given)))
    return Said(told.allow, told.determining, tuple(sorted(told.errors)))


# the kernel


def drive(steps: Steps[Outcome], answer: Callable[[Step], Answer]) -> Outcome:
    """Answer steps until there is an outcome."""
    try:
        step = next(steps)
        while True:
            step = steps.send(answer(step))
    except StopIteration as done:
        outcome: Outcome = done.value
        return outcome


def world_of(row: object) -> Callable[[Step], Answer]:
    """A world in which every loader finds ``row`` and every handler is done."""

    def answer(step: Step) -> Answer:
        match step:
            case Load():
                return Returned(row)
            case Permit():
                return Returned("done")
            case _:
                return Returned(None)

    return answer


def came(caller: Caller, name: str, outcome: Outcome) -> Came:
    """An outcome as a plain value."""
    event = tool_call(principal(caller), name, "agent", outcome)
    policies = outcome.policies if isinstance(outcome, (PolicyDenied, PolicyError)) else ()
    return Came(event.outcome, event.code, tuple(sorted(policies)))


def called(asked: Kernel, caller: Caller, name: str, arguments: Mapping[str, Any], row: object) -> Came:
    """What comes of a call through every gate."""
    steps = asked.invoke(asked.view_for(principal(caller)), Call(name, arguments, "agent"))
    return came(caller, name, drive(steps, world_of(row)))


# the whole set, without the kernel

_RECORD: Final = (
    "{id: String, note?: String, size: Long, tags: Set<String>, pairs: Set<{k: String, v: String}>}"
)
_BOTH: Final = "id: String, org?: String"
SCHEMA: Final = "\n".join(
    [
        f"entity Role enum [{', '.join(json.dumps(role) for role in ROLES)}];",
        f"entity Human in [Role] = {{ {_BOTH} }};",
        f"entity Agent in [Role] = {{ {_BOTH}, actsFor?: Human }};",
        "entity Server;",
        "entity Doc = { id: String, owner: String, level: Long, labels: Set<String>,"
        " extra: Set<{k: String, v: String}>, note?: String };",
        'action "any";',
        *(f'action "{group}" in ["any"];' for group in sorted({tool.permission for tool in TOOLS})),
        *(
            f'action "{tool.name}" in ["{tool.permission}"] appliesTo {{ principal: [Agent, Human], '
            f"resource: [{tool.acts_on}], context: {{ args: {_RECORD} }} }};"
            for tool in TOOLS
        ),
    ]
)
_ERRED: Final = re.compile(r"policy `policy([0-9]+)`")
Uid = dict[str, str]


@cache
def _schema() -> cedarpy.Schema:
    return cedarpy.Schema.from_str(SCHEMA)


def _uid(party: Caller) -> Uid:
    return {"type": party.kind.title(), "id": party.id}


def _party(party: Caller) -> dict[str, Any]:
    attributes: dict[str, Any] = {"id": party.id}
    if party.org is not None:
        attributes["org"] = party.org
    if party.behind is not None:
        attributes["actsFor"] = {"__entity": _uid(party.behind)}
    parents = [{"type": "Role", "id": role} for role in party.roles if role in ROLES]
    return {"uid": _uid(party), "attrs": attributes, "parents": parents}


def _pairs(held: tuple[tuple[str, str], ...]) -> list[Uid]:
    return [{"k": key, "v": value} for key, value in held]


def _row(row: Row) -> dict[str, Any]:
    attributes: dict[str, Any] = {"id": row.id, "owner": row.owner, "level": row.level}
    attributes |= {"labels": list(row.labels), "extra": _pairs(row.extra)}
    if row.note is not None:
        attributes["note"] = row.note
    return {"uid": {"type": "Doc", "id": row.id}, "attrs": attributes, "parents": []}


def _context(given: Given) -> dict[str, Any]:
    held: dict[str, Any] = {"id": given.id, "size": given.size, "tags": list(given.tags)}
    held["pairs"] = _pairs(given.pairs)
    if given.note is not None:
        held["note"] = given.note
    return {"args": held}


def whole(lines: tuple[Line, ...], caller: Caller, tool: Tool, row: Row | None, given: Given) -> Said:
    """What the engine says of the whole set, for every party."""
    policies = cedarpy.PolicySet.from_str("\n".join(line.text for line in lines))
    known = [_party(party) for party in parties(caller)] + ([] if row is None else [_row(row)])
    said = Said(False)
    for party in parties(caller):
        asked = Asked(party, tool, row, given)
        said = _answered(policies, json.dumps(known), asked, tuple(line.id for line in lines))
        if not said.allow:
            return said
    return said


def _answered(policies: cedarpy.PolicySet, known: str, asked: Asked, ids: tuple[str, ...]) -> Said:
    kind, ident = asked.resource or ("Doc", "")
    request = {
        "principal": _uid(asked.party),
        "action": {"type": "Action", "id": asked.tool.name},
        "resource": {"type": kind, "id": ident},
        "context": json.dumps(_context(asked.given)),
    }
    told = cedarpy.is_authorized(request, policies, known, _schema())
    erred = [_ERRED.search(each) for each in told.diagnostics.errors]
    if erred:
        return Said(False, errors=tuple(sorted(ids[int(each[1])] if each else "?" for each in erred)))
    reasons = tuple(sorted(ids[int(each.removeprefix("policy"))] for each in told.diagnostics.reasons))
    return Said(told.decision is cedarpy.Decision.Allow, reasons)
