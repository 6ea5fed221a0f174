"""What an application says about itself: actions, queries, tools, audiences, grants.

Values only. Nothing is checked here that needs a second declaration; ``boot.py`` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from .model import Principal

R = TypeVar("R")
Kind = Literal["action", "query", "tool"]

# A handler or loader takes its input model, a Context, both or neither, and may be async.
# What it takes is read from its annotations at boot, so no narrower static type fits all of them.
AnyHandler = Callable[..., Any]
Predicate = Callable[["Principal"], object]


@dataclass(frozen=True, slots=True)
class Context(Generic[R]):
    """What a handler gets besides its input: who calls, the facts judged, the app's resources, the time."""

    principal: Principal
    resource: Any
    resources: R
    now: datetime


@dataclass(frozen=True, slots=True)
class Can:
    """A policy: the permission asked for, and how the resource acted on is loaded."""

    permission: str
    resource: AnyHandler | None = None


def can(permission: str, resource: AnyHandler | None = None) -> Can:
    """Ask for ``permission`` (``group:verb``) on what ``resource`` loads.

    ``resource(input, ctx)`` returns a pydantic model with an ``id: str`` field, or ``None`` when
    there is no such resource; its return annotation names the model. Without it the resource is
    the application itself.
    """
    return Can(permission, resource)


@dataclass(frozen=True, slots=True)
class Audience:
    """Who may know that a tool exists, as a Cedar condition over ``principal``."""

    condition: str


def audience(condition: str) -> Audience:
    """Return an audience, for example ``audience('principal has org && principal.org == "acme"')``."""
    return Audience(condition)


VisibleTo = Sequence[str] | Audience | Predicate | None


@dataclass(frozen=True, slots=True)
class Expose:
    """An action's MCP face. Its absence exposes nothing."""

    description: str
    visible_to: VisibleTo = None
    title: str | None = None
    annotations: Mapping[str, bool | str] = field(default_factory=dict[str, bool | str])


def expose(
    description: str,
    *,
    visible_to: VisibleTo = None,
    title: str | None = None,
    annotations: Mapping[str, bool | str] | None = None,
) -> Expose:
    """Make an action or query a tool.

    ``visible_to`` is a list of roles, an ``audience(...)``, or a function of the principal of which
    only the literal ``True`` admits; nothing means everyone. It hides a tool, it permits nothing.
    ``annotations`` override the derived MCP hints key by key.
    """
    return Expose(description, visible_to, title, dict(annotations or {}))


@dataclass(frozen=True, slots=True)
class Action:
    """A declared action, query or hand-written tool. Not callable: running it needs a permit."""

    name: str
    kind: Kind
    handler: AnyHandler
    policy: Can | None
    mcp: Expose | None
    path: str
    idempotent: bool
    destructive: bool
    single: bool


class Registry:
    """The actions and queries of one application, in the order they were declared."""

    def __init__(self) -> None:
        self._actions: list[Action] = []

    @property
    def actions(self) -> tuple[Action, ...]:
        """Everything declared so far."""
        return tuple(self._actions)

    def action(
        self,
        *,
        policy: Can,
        mcp: Expose | None = None,
        path: str | None = None,
        idempotent: bool = False,
        destructive: bool | None = None,
    ) -> Callable[[AnyHandler], Action]:
        """Declare a handler that changes something.

        The tool's name is the function's name, verbatim; over HTTP it answers ``POST /api/<path>``.
        ``destructive`` is true unless said otherwise.
        """

        def declare(handler: AnyHandler) -> Action:
            harmful = destructive is None or destructive
            return self._add(handler, "action", policy, mcp, path, idempotent=idempotent, destructive=harmful)

        return declare

    def query(
        self,
        *,
        policy: Can,
        mcp: Expose | None = None,
        path: str | None = None,
        single: bool = False,
    ) -> Callable[[AnyHandler], Action]:
        """Declare a handler that only reads: a list of rows, or with ``single`` one row or ``None``."""

        def declare(handler: AnyHandler) -> Action:
            return self._add(handler, "query", policy, mcp, path, idempotent=True, single=single)

        return declare

    def _add(
        self,
        handler: AnyHandler,
        kind: Kind,
        policy: Can,
        mcp: Expose | None,
        path: str | None,
        *,
        idempotent: bool,
        destructive: bool = False,
        single: bool = False,
    ) -> Action:
        name = getattr(handler, "__name__", "")
        action = Action(name, kind, handler, policy, mcp, path or name, idempotent, destructive, single)
        self._actions.append(action)
        return action


def tool(
    description: str,
    handler: AnyHandler,
    *,
    policy: str | Can | None = None,
    destructive: bool = True,
    visible_to: VisibleTo = None,
    title: str | None = None,
    annotations: Mapping[str, bool | str] | None = None,
) -> Action:
    """Return a hand-written tool for ``define_app_mcp(tools={name: tool(...)})``; the key is its name.

    ``policy`` is an existing permission. A tool without one is refused at boot.
    """
    rule = can(policy) if isinstance(policy, str) else policy
    face = expose(description, visible_to=visible_to, title=title, annotations=annotations)
    return Action("", "tool", handler, rule, face, "", False, destructive, False)


@dataclass(frozen=True, slots=True)
class Grant:
    """A role holds a permission."""

    role: str
    permission: str


def grant(role: str, permission: str) -> Grant:
    """Permit ``permission`` to a role, on any resource. ``"any"`` is every permission."""
    return Grant(role, permission)


@dataclass(frozen=True, slots=True)
class Resource:
    """An MCP resource: a URI, and a function that reads it."""

    uri: str
    name: str
    description: str
    read: AnyHandler
    mime_type: str = "application/json"
    visible_to: VisibleTo = None


def resource(
    uri: str,
    name: str,
    description: str,
    read: AnyHandler,
    *,
    mime_type: str = "application/json",
    visible_to: VisibleTo = None,
) -> Resource:
    """Return an MCP resource declaration."""
    return Resource(uri, name, description, read, mime_type, visible_to)


@dataclass(frozen=True, slots=True)
class Prompt:
    """An MCP prompt: a versioned file."""

    path: Path
    description: str
    visible_to: VisibleTo = None


def prompt(path: Path | str, *, description: str, visible_to: VisibleTo = None) -> Prompt:
    """Return an MCP prompt declaration."""
    return Prompt(Path(path), description, visible_to)


EVERYONE: Final = "everyone"
