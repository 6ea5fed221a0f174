"""The values every gate speaks of: who calls, what is called, what came of it.

Knows no policy text, no wire format and no store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, NoReturn, cast

from .strict_json import Json
from .values import value

if TYPE_CHECKING:
    from .asks import Ask
    from .tasks import Task

Surface = Literal["mcp", "http", "agent"]

MAX_ID_CHARS: Final = 512
NO_SCOPE: Final = "-"  # the scope of an action that `scopes` does not name: no token can carry it
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class PrincipalInvalid(ValueError):
    """A resolver built a principal that no policy could be asked about safely."""


def _checked_id(kind: str, value: object) -> str:
    if not isinstance(value, str) or not value or len(value) > MAX_ID_CHARS or _UNPRINTABLE.search(value):
        raise PrincipalInvalid(f"{kind} needs an id of 1 to {MAX_ID_CHARS} printable characters")
    return value


def _names(kind: str, values: Iterable[str]) -> frozenset[str]:
    """A set of names; a bare string is refused because it would iterate as characters."""
    if isinstance(values, str):
        raise PrincipalInvalid(f"{kind} is a set of names, not one string")
    names: frozenset[object] = frozenset(values)
    if not all(isinstance(each, str) for each in names):
        raise PrincipalInvalid(f"{kind} is a set of names, and a name is a string")
    if NO_SCOPE in names:
        raise PrincipalInvalid(f"`{NO_SCOPE}` is no name in {kind}")
    return cast("frozenset[str]", names)


@dataclass(frozen=True, slots=True, init=False)
class Human:
    """A person.

    ``scopes=None`` means the person came in by a session that no token limits; a set means
    a token that carries exactly these scopes.
    """

    id: str
    roles: frozenset[str]
    org: str | None
    scopes: frozenset[str] | None

    def __init__(
        self,
        id: str,
        *,
        roles: Iterable[str] = (),
        org: str | None = None,
        scopes: Iterable[str] | None = None,
    ) -> None:
        """Raises: PrincipalInvalid."""
        held = None if scopes is None else _names("scopes", scopes)
        _freeze(self, id=_checked_id("a human", id), roles=_names("roles", roles), scopes=held)
        _freeze(self, org=None if org is None else _checked_id("an organisation", org))

    def __init_subclass__(cls) -> None:
        _no_kinds("Human")

    def delegate(self, agent_id: str, *, scopes: Iterable[str] = ()) -> Agent:
        """Return an agent that acts for this person, with the person's roles and organisation."""
        return Agent(agent_id, roles=self.roles, org=self.org, scopes=scopes, acts_for=self)


@dataclass(frozen=True, slots=True, init=False)
class Agent:
    """A program that calls by a token; with ``acts_for`` it never exceeds that person.

    ``scopes`` are what the token carries; none by default.
    """

    id: str
    roles: frozenset[str]
    org: str | None
    scopes: frozenset[str]
    acts_for: Human | None

    def __init__(
        self,
        id: str,
        *,
        roles: Iterable[str] = (),
        org: str | None = None,
        scopes: Iterable[str] = (),
        acts_for: Human | None = None,
    ) -> None:
        """Raises: PrincipalInvalid."""
        if acts_for is not None and type(acts_for) is not Human:
            raise PrincipalInvalid("an agent acts for a human, and for nobody else")
        held = _names("scopes", scopes)
        _freeze(self, id=_checked_id("an agent", id), roles=_names("roles", roles), scopes=held)
        _freeze(self, org=None if org is None else _checked_id("an organisation", org), acts_for=acts_for)

    def __init_subclass__(cls) -> None:
        _no_kinds("Agent")


def _no_kinds(kind: str) -> NoReturn:
    raise TypeError(f"{kind} has no kinds of its own: policies know exactly two principals")


def _freeze(principal: Human | Agent, **members: object) -> None:
    for name, member in members.items():
        object.__setattr__(principal, name, member)


Principal = Agent | Human


def parties(principal: Principal) -> tuple[Principal, ...]:
    """Return everyone who must be allowed for ``principal`` to be allowed."""
    if isinstance(principal, Agent) and principal.acts_for is not None:
        return (principal, principal.acts_for)
    return (principal,)


def owner_key(server: str, principal: Principal) -> str:
    """Return what tells the owner of a kept thing from everybody else, and tells a reader of it no name.

    An agent that acts for two people is two owners. Roles and scopes change, and are no part of it.
    """
    each = [[type(party).__name__, party.id, party.org] for party in parties(principal)]
    return sha256(json.dumps([server, *each]).encode()).hexdigest()


@value
class Call:
    """One request to run something: a tool name (MCP, agent) or a path (HTTP), and its arguments.

    ``group`` names a tool of the constant surface by the group it is in. ``key`` is the idempotency key
    that came beside the arguments, as it does over HTTP.
    """

    name: str
    arguments: Mapping[str, Json]
    surface: Surface
    group: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing wrong with the arguments: where (``items.0.id``; empty is the whole) and what."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self.path else self.problem


@value
class Ok:
    """The handler ran; ``json`` is its answer, serialised by the declared output.

    ``replayed``: it ran for an earlier call of the same idempotency key.
    """

    json: bytes
    replayed: bool = False

    @property
    def value(self) -> Json:
        """The answer as plain JSON values."""
        return cast(Json, json.loads(self.json))


@value
class Hidden:
    """No entry of that name in the caller's view: absent and hidden are this one value."""

    name: str


@value
class ScopeDenied:
    """The caller sees the entry but presents no token with its scope."""

    scope: str


@value
class Unfit:
    """The request itself is not one for this entry: a header contradicts the arguments, a capability lacks.

    ``needs`` are the client capabilities that the entry cannot do without.
    """

    cause: str
    needs: tuple[str, ...] = ()


@value
class InvalidArguments:
    """The arguments do not satisfy the published schema."""

    issues: tuple[Issue, ...]


@value
class PolicyDenied:
    """Cedar denied; ``policies`` are the determining ids, empty when nothing permitted."""

    code: str
    cause: str
    fix: str
    caller_fix: str
    policies: tuple[str, ...] = ()


@value
class PolicyError:
    """A policy could not be evaluated, which denies; ``policies`` are the ids that erred.

    The words are those of a denial that no policy explains, so that an error tells a caller nothing.
    """

    policies: tuple[str, ...]
    cause: str = field(default="", compare=False)
    fix: str = field(default="", compare=False)
    caller_fix: str = field(default="", compare=False)


@value
class Failed:
    """The action was permitted and did not succeed; or its idempotency key does not let it run."""

    code: str
    cause: str
    fix: str
    caller_fix: str
    replayed: bool = False


@value
class Unconfirmed:
    """The call waits for a person, or a person rejected it, or its confirmation came to nothing.

    ``ident`` is the confirmation's. The words are those for the caller's code.
    """

    code: str
    ident: str
    cause: str
    fix: str
    caller_fix: str


@value
class InputRequired:
    """The handler asks its client first; the client's next round runs it again with the answers."""

    asks: Mapping[str, Ask]
    state: Json


@value
class Begun:
    """Every gate was passed and the work goes on as a task; what comes of it is another outcome."""

    task: Task


Outcome = (
    Ok
    | Hidden
    | ScopeDenied
    | Unfit
    | InvalidArguments
    | Unconfirmed
    | PolicyDenied
    | PolicyError
    | InputRequired
    | Begun
    | Failed
)
