"""Any policies, callers, rows and arguments: the strategies over `plain_policies.py`. Imports no nonsuch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from itertools import combinations
from typing import Final, Literal

from hypothesis import strategies as st

from ..rules import Caller
from .plain_policies import BY_NAME, CONDITIONS, ROLES, SERVER, TOOLS, GateLine, Given, Head, Line, Row, Set

_EFFECTS: Final[tuple[Literal["permit", "forbid"], ...]] = ("permit", "permit", "forbid")
_GATES: Final[tuple[Literal["see", "present"], ...]] = ("see", "present")
IDS: Final = ("a", "b", "c")
ROWS: Final = ("d1", "d2", "d3")
MOST: Final = 2**63 - 1

# heads

_KINDS: Final = ("Agent", "Human")
_PRINCIPALS: Final = (
    *[Head()] * 8,
    *(Head("is", kind) for kind in _KINDS),
    *(Head("==", entity=(kind, ident)) for kind in _KINDS for ident in IDS[:2]),
    *(Head("in", entity=("Role", role)) for role in ROLES),
    *(Head("is in", kind, ("Role", role)) for kind in _KINDS for role in ROLES[:2]),
    Head("in", entity=("Agent", "a")),
    Head("is in", "Human", ("Human", "b")),
)
_DOCS: Final = (
    *[Head()] * 4,
    Head("is", "Doc"),
    *(Head("==", entity=("Doc", ident)) for ident in ROWS[:2]),
    Head("in", entity=("Doc", "d2")),
    Head("is in", "Doc", ("Doc", "d1")),
)
_SERVERS: Final = (Head(), Head("is", "Server"), Head("==", entity=("Server", SERVER)))
_OF_DOCS: Final = (*CONDITIONS, "twice", "raised", "raised", "always")
_OF_ALL: Final = (*(name for name, each in CONDITIONS.items() if not each.reads_resource), "twice")
_OF_CALLERS: Final = frozenset(name for name, each in CONDITIONS.items() if "context" not in each.text)
principals: Final = st.sampled_from(_PRINCIPALS)


def _kinds_of(actions: Iterable[str]) -> set[str]:
    named = set(actions)
    return {tool.acts_on for tool in TOOLS if not named.isdisjoint({tool.name, tool.permission, "any"})}


@st.composite
def lines(
    draw: st.DrawFn,
    effect: Literal["permit", "forbid"] | None = None,
    *,
    arguments: bool = True,
    facts: bool = True,
) -> Line:
    """Any policy that the strict validator takes, without its id; one that reads no arguments or no facts."""
    exact = draw(st.integers(0, 3)) == 0
    names = [tool.name for tool in TOOLS]
    groups = ["doc:look", "doc:edit", "app:use", "any", "any"]
    some = st.lists(st.sampled_from(names + groups), min_size=1, max_size=3).map(dict.fromkeys)
    actions = (draw(st.sampled_from(names)),) if exact else tuple(draw(some))
    kinds = _kinds_of(actions)
    over = draw(st.sampled_from(_SERVERS if kinds == {"Server"} else _DOCS))
    of_docs = kinds == {"Doc"} or (over.form != "any" and "Doc" in kinds)
    fitting = [
        name for name in (_OF_DOCS if of_docs and facts else _OF_ALL) if arguments or name in _OF_CALLERS
    ]
    condition = draw(st.sampled_from(fitting))
    unless = condition != "always" and draw(st.booleans())
    said = draw(st.sampled_from(_EFFECTS)) if effect is None else effect
    return Line("", said, draw(principals), actions, exact, over, condition, unless)


@st.composite
def gate_lines(draw: st.DrawFn) -> GateLine:
    """Any policy of an operator about visibility or scope: a permit names what it shows."""
    gate = draw(st.sampled_from(_GATES))
    effect = draw(st.sampled_from(_EFFECTS))
    names = ("everyone", "roles:r1") if gate == "see" else ("docs", "app")
    name = draw(st.sampled_from(names if effect == "permit" else (*names, None)))
    return GateLine("", effect, gate, draw(principals), name)


def numbered(held: Iterable[Line], gates: Iterable[GateLine] = (), sign: str = "p") -> Set:
    """A set of policies with an id each."""
    named = tuple(dataclasses.replace(line, id=f"{sign}{at}") for at, line in enumerate(held))
    doors = tuple(dataclasses.replace(line, id=f"{sign}g{at}") for at, line in enumerate(gates))
    return Set(named, doors)


def sets(
    most: int = 10, doors: int = 0, sign: str = "p", *, arguments: bool = True, facts: bool = True
) -> st.SearchStrategy[Set]:
    """Any set of policies, of the policy gate alone or with some of the gates before."""
    held = st.lists(lines(arguments=arguments, facts=facts), min_size=most // 2, max_size=most)
    gates = st.lists(gate_lines(), min_size=doors // 2, max_size=doors)
    return st.builds(numbered, held, gates, st.just(sign))


# who asks, for what

_roles: Final = st.sampled_from(
    [frozenset(some) for size in range(5) for some in combinations((*ROLES, "rx"), size)]
)
_orgs: Final = st.sampled_from((None, "acme", "hq"))
_ALL: Final = frozenset({"docs", "app"})
_scopes: Final = st.sampled_from((_ALL, _ALL, _ALL, frozenset({"docs"}), frozenset[str]()))
_ids: Final = st.sampled_from(IDS)
humans: Final = st.builds(Caller, _ids, st.just("human"), _roles, _orgs, st.none() | _scopes)
delegates: Final = st.builds(Caller, _ids, st.just("agent"), _roles, _orgs, _scopes, humans)
callers: Final = st.one_of(
    humans, delegates, st.builds(Caller, _ids, st.just("agent"), _roles, _orgs, _scopes)
)
tools: Final = st.sampled_from(tuple(BY_NAME.values()))

ESCAPES: Final = (
    '{"__entity":{"type":"Human","id":"a"}}',
    '{"__extn":{"fn":"unknown","arg":"x"}}',
    '{"__expr":"true"}',
    "__entity",
    "__extn",
    "__expr",
)
WORDS: Final = ("stop", "stop", "go", "stop ", "Stop", "", '"', "\\", "*", "\0", "keep", *ESCAPES)
words: Final = st.sampled_from(WORDS) | st.text(max_size=6)
numbers: Final = st.sampled_from((0, 1, 6, -1, 2**62, 2**62, MOST, MOST, -(2**63))) | st.integers(
    -(2**63), MOST
)
_pairs: Final = st.dictionaries(words, words, max_size=3).map(lambda held: tuple(held.items()))
_words: Final = st.lists(words, max_size=2).map(tuple)
_owners: Final = st.sampled_from((*IDS, "keep"))
rows: Final = st.builds(Row, st.sampled_from(ROWS), _owners, numbers, _words, _pairs, st.none() | words)
given_arguments: Final = st.builds(Given, st.sampled_from(ROWS), st.none() | words, numbers, _words, _pairs)
