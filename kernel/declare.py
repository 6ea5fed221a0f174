"""What an application says about itself: actions, queries, tools, audiences, grants.

Values only. Nothing is checked here that needs a second declaration; ``boot.py`` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel

from .asks import Capability
from .client import NOBODY, Client
from .confirmation import Confirming
from .tasks import Support

if TYPE_CHECKING:
    from .model import Principal

R = TypeVar("R")
Kind = Literal["action", "query", "tool", "resource", "prompt"]

# A handler or loader takes its input model, a Context, both or neither, and may be async.
# What it takes is read from its annotations at boot, so no narrower static type fits all of them.
AnyHandler = Callable[..., Any]
Predicate = Callable[["Principal"], object]


@dataclass(frozen=True, slots=True)
class Context(Generic[R]):
    """What a handler gets besides its input: who calls, the facts judged, the app's resources, the time.

    ``client`` is the line to the client of this request: progress, log messages, questions.
    """

    principal: Principal
    resource: Any
    resources: R
    now: datetime
    client: Client = NOBODY


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
class Icon:
    """A picture that clients may show: an https or data address, its media type, sizes such as ``48x48``."""

    src: str
    mime_type: str | None = None
    sizes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ListParams:
    """What callers may send to a list query beside the keys its input requires.

    ``filters`` maps a field to its operators: ``{"status": ["_eq", "_in"]}`` admits the input fields
    ``status_eq`` and ``status_in``. ``sort`` and ``fields`` name what the input fields ``sort`` (``-name``
    descends) and ``fields`` accept; ``max_limit`` bounds ``limit``, and with it ``cursor`` is admitted.
    """

    filters: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    sort: Sequence[str] = ()
    fields: Sequence[str] = ()
    max_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Expose:
    """An action's MCP face. Its absence exposes nothing."""

    description: str
    visible_to: VisibleTo = None
    title: str | None = None
    annotations: Mapping[str, bool | str] = field(default_factory=dict[str, bool | str])
    icons: tuple[Icon, ...] = ()
    needs: tuple[Capability, ...] = ()
    list_params: ListParams | None = None
    confirms: bool = False
    task: Support = "never"
    asks_first: bool = False


def expose(
    description: str,
    *,
    visible_to: VisibleTo = None,
    title: str | None = None,
    annotations: Mapping[str, bool | str] | None = None,
    icons: Sequence[Icon] = (),
    needs: Sequence[Capability] = (),
    list_params: ListParams | None = None,
    confirms: bool = False,
    task: Support = "never",
    asks_first: bool = False,
) -> Expose:
    """Make an action or query a tool.

    ``visible_to`` is a list of roles, an ``audience(...)``, or a function of the principal of which
    only the literal ``True`` admits; nothing means everyone. It hides a tool, it permits nothing.
    ``annotations`` override the derived MCP hints key by key. ``needs`` are client capabilities without
    which the tool is not run. ``list_params`` is the whitelist of a list query. ``confirms`` marks a
    write that a person finishes.
    ``task="optional"`` lets a call go on as a task behind its answer, for an MCP client that keeps tasks;
    others wait for the result. ``"required"`` refuses such a client of revision 2026-07-28 that does not;
    the older revisions and the other surfaces know no tasks, and wait. The handler runs as a task from
    its start; with ``asks_first`` once it calls ``ctx.client.background()``, and it can ask before.
    """
    hints = dict(annotations or {})
    shown = (description, visible_to, title, hints, tuple(icons))
    return Expose(*shown, tuple(needs), list_params, confirms, task, asks_first)


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
    methods: tuple[str, ...] = ()
    requires_key: bool = False
    confirming: Confirming | None = None
    atomic: bool = False


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
        policy: str | Can,
        mcp: Expose | None = None,
        path: str | None = None,
        methods: Sequence[str] | None = None,
        idempotent: bool = False,
        requires_key: bool = False,
        atomic: bool = False,
        destructive: bool | None = None,
    ) -> Callable[[AnyHandler], Action]:
        """Declare a handler that changes something; ``policy`` is the permission it needs, or ``can(...)``.

        The tool's name is the function's name, verbatim; over HTTP it answers ``POST /api/<path>``, or
        other ``methods`` (PUT, PATCH, DELETE). ``destructive`` is true unless said otherwise; one that is not
        adds something, and is metered as a read.
        ``idempotent`` lets callers name a call by a key and send it again: it then runs once, and the
        others get the answer of the first. ``requires_key`` refuses a call without one. What an ``atomic``
        one does in ``store.transaction()`` is committed together with the record of its key, or not at all.
        """

        def declare(handler: AnyHandler) -> Action:
            harmful = destructive is None or destructive
            return self._add(
                handler,
                "action",
                _rule(policy),
                mcp,
                path,
                methods,
                idempotent=idempotent,
                requires_key=requires_key,
                destructive=harmful,
                atomic=atomic,
            )

        return declare

    def query(
        self,
        *,
        policy: str | Can,
        mcp: Expose | None = None,
        path: str | None = None,
        methods: Sequence[str] | None = None,
        single: bool = False,
    ) -> Callable[[AnyHandler], Action]:
        """Declare a handler that only reads: a list of rows, or with ``single`` one row or ``None``.

        Over HTTP it answers ``GET /api/<path>?key=value`` and ``POST``, or one of the two ``methods``; an
        input that a query string cannot hold is read by ``POST`` alone.
        """

        def declare(handler: AnyHandler) -> Action:
            rule = _rule(policy)
            return self._add(handler, "query", rule, mcp, path, methods, idempotent=True, single=single)

        return declare

    def add(self, action: Action) -> Action:
        """Register an action that was made elsewhere, such as by ``mcp_confirmations``, and return it."""
        self._actions.append(action)
        return action

    def _add(
        self,
        handler: AnyHandler,
        kind: Kind,
        policy: Can | None,
        mcp: Expose | None,
        path: str | None,
        methods: Sequence[str] | None,
        *,
        idempotent: bool,
        requires_key: bool = False,
        destructive: bool = False,
        single: bool = False,
        atomic: bool = False,
    ) -> Action:
        name = getattr(handler, "__name__", "")
        action = Action(
            name,
            kind,
            handler,
            policy,
            mcp,
            path or name,
            idempotent,
            destructive,
            single,
            () if methods is None else tuple(methods) or ("",),
            requires_key,
            atomic=atomic,
        )
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
    icons: Sequence[Icon] = (),
    needs: Sequence[Capability] = (),
    confirms: bool = False,
    task: Support = "never",
    asks_first: bool = False,
) -> Action:
    """Return a hand-written tool for ``define_app_mcp(tools={name: tool(...)})``; the key is its name.

    A model that it returns is sent as ``structuredContent`` too; a list is text alone, so return a model
    that holds it.

    ``policy`` is an existing permission. A tool without one is refused at boot. With ``destructive=False``
    it only reads; one that adds something says ``annotations={"readOnlyHint": False}`` too.
    """
    rule = _rule(policy)
    face = expose(
        description,
        visible_to=visible_to,
        title=title,
        annotations=annotations,
        icons=icons,
        needs=needs,
        confirms=confirms,
        task=task,
        asks_first=asks_first,
    )
    return Action("", "tool", handler, rule, face, "", False, destructive, False)


@dataclass(frozen=True, slots=True)
class Grant:
    """A role holds a permission."""

    role: str
    permission: str


def grant(role: str, permission: str) -> Grant:
    """Permit ``permission`` to a role, on any resource. ``"any"`` is every permission."""
    return Grant(role, permission)


class Completing(BaseModel):
    """What a completion is asked for: the text so far, and the arguments already given."""

    value: str
    arguments: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Group:
    """One resource of the constant surface: what it is, and the tools that act on it."""

    description: str
    tools: tuple[str, ...]


def group(description: str, tools: Sequence[str]) -> Group:
    """Return a group of tools for ``define_app_mcp(groups={name: group(...)})``."""
    return Group(description, tuple(tools))


Surfaced = Literal["flat", "meta"] | Audience | Predicate | Sequence[str]
Complete = Mapping[str, Sequence[str] | AnyHandler]


@dataclass(frozen=True, slots=True)
class Resource:
    """An MCP resource: a URI or URI template, and a function that reads it."""

    uri: str
    name: str
    description: str
    read: AnyHandler
    mime_type: str = "application/json"
    visible_to: VisibleTo = None
    title: str | None = None
    scope: str | None = None
    policy: Can | None = None
    complete: Complete = field(default_factory=dict[str, "Sequence[str] | AnyHandler"])
    icons: tuple[Icon, ...] = ()
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])


def resource(
    uri: str,
    name: str,
    description: str,
    read: AnyHandler,
    *,
    mime_type: str = "application/json",
    visible_to: VisibleTo = None,
    title: str | None = None,
    scope: str | None = None,
    policy: str | Can | None = None,
    complete: Complete | None = None,
    icons: Sequence[Icon] = (),
    annotations: Mapping[str, Any] | None = None,
) -> Resource:
    """Return an MCP resource declaration.

    ``uri`` may be a template (RFC 6570 level 1, and ``{+path}``): ``read`` then takes a model with a
    field for each variable. What ``read`` returns is sent as it is (``str``, ``bytes``) or as JSON.
    Who sees it may read it, unless ``scope`` or ``policy`` (a permission) ask for more or a forbid of
    the operator's says otherwise. ``complete`` maps a variable to its values, or to a function of a
    ``Completing``.
    """
    return Resource(
        uri,
        name,
        description,
        read,
        mime_type,
        visible_to,
        title,
        scope,
        _rule(policy),
        dict(complete or {}),
        tuple(icons),
        dict(annotations or {}),
    )


@dataclass(frozen=True, slots=True)
class Prompt:
    """An MCP prompt: a versioned file with slots, or a function."""

    source: Path | AnyHandler
    description: str
    name: str = ""
    visible_to: VisibleTo = None
    title: str | None = None
    scope: str | None = None
    policy: Can | None = None
    complete: Complete = field(default_factory=dict[str, "Sequence[str] | AnyHandler"])
    input: type[BaseModel] | None = None
    icons: tuple[Icon, ...] = ()


def prompt(
    source: Path | str | AnyHandler,
    *,
    description: str = "",
    name: str | None = None,
    visible_to: VisibleTo = None,
    title: str | None = None,
    scope: str | None = None,
    policy: str | Can | None = None,
    complete: Complete | None = None,
    input: type[BaseModel] | None = None,
    icons: Sequence[Icon] = (),
) -> Prompt:
    """Return an MCP prompt declaration.

    ``source`` is a file, read when the prompt is asked for, or a function that returns a string, a
    ``Message`` or a list of them. ``{{slot}}`` in a file is an argument: a required string, or what the
    field of ``input`` says; a file may describe its arguments and itself in YAML before its text. The
    name is the file's up to its first dot, or the function's. Who sees it may use it, as with
    ``resource``.
    """
    read = Path(source) if isinstance(source, str) else source
    named = read.name.partition(".")[0] if isinstance(read, Path) else getattr(read, "__name__", "")
    return Prompt(
        read,
        description,
        name if name is not None else named,
        visible_to,
        title,
        scope,
        _rule(policy),
        dict(complete or {}),
        input,
        tuple(icons),
    )


def _rule(policy: str | Can | None) -> Can | None:
    return can(policy) if isinstance(policy, str) else policy


EVERYONE: Final = "everyone"
