"""Any world, any caller, any arguments: the strategies of the properties. Knows the plain rules only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hypothesis import strategies as st

from .. import rules
from ..rules import (
    Always,
    Argument,
    Asked,
    Caller,
    Everyone,
    OfOrg,
    Over,
    Published,
    Raised,
    Roles,
    Row,
    Rule,
    SameOrg,
    Says,
    Tool,
    Twice,
    World,
)

ROLES: Final = ("viewer", "editor", "staff")
ORGS: Final = ("acme", "hq")
SCOPES: Final = ("docs", "docs:read", "docs:write")  # one is a prefix of the others
IDS: Final = ("ann", "bob", "cy")
TYPES: Final[Mapping[str, str | None]] = {
    "doc:read": "Doc",
    "doc:write": "Doc",
    "box:open": "Box",
    "app:use": None,
}
_KINDS: Final[tuple[rules.Kind, ...]] = ("action", "action", "query", "single", "tool")
_EFFECTS: Final[tuple[rules.Effect, ...]] = ("permit", "permit", "forbid")
_BEHAVES: Final[tuple[rules.Behaviour, ...]] = ("ok", "ok", "ok", "ok", "refuses", "raises", "none", "bad")
NAMES: Final = ("readDoc", "readDocs", "READDOC", "write", "open_box", "a.b", "a")
ARGUMENTS: Final = (Argument("amount", "int", default=3), Argument("note", optional=True))


def _sets(values: tuple[str, ...]) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(values))


def humans() -> st.SearchStrategy[Caller]:
    """Any person, by a session or by a token."""
    orgs = st.none() | st.sampled_from(ORGS)
    scopes = st.none() | _sets(SCOPES)
    return st.builds(Caller, st.sampled_from(IDS), st.just("human"), _sets(ROLES), orgs, scopes)


def agents(behind: st.SearchStrategy[Caller | None] | None = None) -> st.SearchStrategy[Caller]:
    """Any agent, its own or acting for any person."""
    orgs = st.none() | st.sampled_from(ORGS)
    persons = st.none() | humans() if behind is None else behind
    return st.builds(
        Caller, st.sampled_from(IDS), st.just("agent"), _sets(ROLES), orgs, _sets(SCOPES), persons
    )


def _audiences() -> st.SearchStrategy[rules.Audience]:
    return st.one_of(
        st.just(Everyone()),
        st.builds(Roles, st.lists(st.sampled_from(ROLES), max_size=2, unique=True).map(tuple)),
        st.builds(OfOrg, st.sampled_from(ORGS)),
        st.builds(Asked, _sets(IDS), _sets(IDS), _sets(IDS)),
    )


@st.composite
def _tools(draw: st.DrawFn, name: str) -> Tool:
    kind = draw(st.sampled_from(_KINDS))
    permission = draw(st.sampled_from(tuple(TYPES)))
    exposed = kind == "tool" or draw(st.integers(0, 7)) > 0
    return Tool(
        name,
        "" if kind == "tool" else f"do/{name}",
        kind,
        exposed,
        draw(_audiences()) if exposed else Everyone(),
        permission,
        TYPES[permission],
        ARGUMENTS,
        draw(st.sampled_from(_BEHAVES)),
    )


def _tests(kind: str | None) -> st.SearchStrategy[rules.Test]:
    of_arguments = [Over("amount", 5), Twice("amount", 5), Says("note", "go"), Always()]
    of_facts = [SameOrg(), Published(), Raised()] if kind else []
    return st.sampled_from([*of_facts, *of_arguments, Always()])


@st.composite
def _rule(draw: st.DrawFn, tools: tuple[Tool, ...]) -> Rule:
    tool = draw(st.sampled_from(tools))
    effect = draw(st.sampled_from(_EFFECTS))
    return Rule(
        effect,
        draw(st.sampled_from((tool.name, tool.permission))),
        draw(_tests(tool.acts_on)),
        draw(st.none() | st.sampled_from(ROLES)),
        "X_STOP" if effect == "forbid" else None,
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Any world of up to four tools: audiences, scopes, grants and policies of every kind."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    tools = tuple(draw(_tools(name)) for name in names)
    grants = st.tuples(st.sampled_from(ROLES), st.sampled_from(sorted({tool.permission for tool in tools})))
    facts = st.builds(Row, st.sampled_from(ORGS), st.booleans(), st.sampled_from((0, 0, 1)))
    types = sorted({tool.acts_on for tool in tools if tool.acts_on})
    return World(
        tools=tools,
        scopes=draw(_scopes(tools)),
        grants=tuple(draw(st.lists(grants, max_size=4))),
        rules=tuple(draw(st.lists(_rule(tools), max_size=4))),
        rows={kind: {f"r{at}": draw(facts) for at in range(2)} for kind in types},
    )


@st.composite
def _scopes(draw: st.DrawFn, tools: tuple[Tool, ...]) -> dict[str, tuple[str, ...]] | None:
    if draw(st.booleans()):
        return None
    held: dict[str, tuple[str, ...]] = {}
    for tool in (each for each in tools if each.exposed):
        scope = draw(st.sampled_from(SCOPES))
        held[scope] = (*held.get(scope, ()), tool.name)
    return held


_NONE: Final[dict[str, st.SearchStrategy[object]]] = {}


def arguments() -> st.SearchStrategy[dict[str, object]]:
    """Arguments that satisfy the declaration more often than not."""
    ids = st.sampled_from(("r0", "r0", "r1", "gone", "", 7, None))
    amounts = st.sampled_from((0, 6, 6.0, -1, 2**62, 2**63 - 1, 2**63, 2**64, True, "6", None, 6.5))
    notes = st.sampled_from(("go", "stop", "", None, 1, {"__entity": {"type": "Human", "id": "ann"}}))
    fields: dict[str, st.SearchStrategy[object]] = {"amount": amounts, "note": notes, "idempotencyKey": notes}

    def one(**held: object) -> dict[str, object]:
        return held

    some = st.fixed_dictionaries(_NONE, optional={**fields, "id": ids})
    rows = st.sampled_from(("r0", "r1", "gone"))
    bare, go = rows.map(lambda row: one(id=row)), rows.map(lambda row: one(id=row, amount=6, note="go"))
    return st.one_of(bare, go, some)


names: Final = st.sampled_from((*NAMES, "readdoc", "absent", "\uff52eadDoc"))
traces: Final = st.lists(st.tuples(st.integers(0, 2), names, arguments()), min_size=1, max_size=12)
callers: Final = st.tuples(agents(), agents(), humans())
