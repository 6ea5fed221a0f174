"""Declarations -> catalog, and every reason why an app cannot boot: all of them, not the first.

Reads no policy text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeVar, get_args

from pydantic import BaseModel

from . import boot_confirmation
from .boot_content import ContentFault, overlaps, placed, prompt_action, prompted, resource_action
from .catalog import ANY, Catalog, Entry, ResourceType
from .confirmation import Deciding
from .declare import (
    EVERYONE,
    Action,
    Audience,
    Can,
    Grant,
    Group,
    Predicate,
    Prompt,
    Registry,
    Resource,
    Surfaced,
    VisibleTo,
)
from .effects import effect_of
from .errors import Fault, fault
from .idempotency import KEY_ARGUMENT
from .listing import narrowed
from .model import NO_SCOPE
from .refs import reference_in
from .schema import InputSchema, NoInput, OutputSchema, SchemaRefused, publish_input, publish_output
from .shapes import LOADED, fields_of
from .signatures import Handler, read_signature, without_none
from .tasks import Support
from .unreadable import OF_A_CALLER

C = TypeVar("C", Resource, Prompt)

META_TOOLS: Final = ("list_resources", "describe_resource", "manage_resource")
TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,64}")
NAME: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
PATH: Final = re.compile(r"(?=.{1,128}\Z)[A-Za-z0-9_.~-]+(?:/[A-Za-z0-9_.~-]+)*")
HINTS: Final = frozenset({"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})
METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "action": ("POST", "PUT", "PATCH", "DELETE"),  # a GET that changes something could be made by any page
    "query": ("GET", "POST"),
}
PERMISSION: Final = re.compile(r"[A-Za-z0-9_./-]{1,64}:[A-Za-z0-9_.:/-]{1,63}")
RESERVED_ACTIONS: Final = frozenset({"see", "present", ANY})
RESERVED_TYPES: Final = frozenset(
    {"Agent", "Human", "Role", "Scope", "Audience", "Server", "Action"}
    | {"Bool", "Boolean", "Entity", "Extension", "Long", "Record", "Set", "String"}  # Cedar's own
    | {"datetime", "decimal", "duration", "ipaddr"}
)
_PATH_FIX: Final = (
    "give it segments of A-Z a-z 0-9 _ . ~ - with one slash between them, as in `posts/publish`"
)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Declarations:
    """What ``define_app_mcp`` was given, before anything is checked."""

    server: str
    registry: Registry
    include: Literal["exposed"] | None = None
    actions: Sequence[Action] = ()
    queries: Sequence[Action] = ()
    tools: Mapping[str, Action] = field(default_factory=dict[str, Action])
    scopes: Mapping[str, Sequence[str]] | None = None
    roles: Sequence[str] | None = None
    grants: Sequence[Grant] = ()
    resources: Sequence[Resource] = ()
    prompts: Sequence[Prompt] = ()
    groups: Mapping[str, Group] = field(default_factory=dict[str, Group])
    surface: Surfaced = "flat"
    hides_paths: bool = True
    confirmations: Action | None = None


class Builder:
    """Collects entries and faults; nothing is raised before everything was looked at."""

    def __init__(self, declarations: Declarations) -> None:
        self.given = declarations
        self._tried: dict[int, Action] = {}
        self.complete = True
        self._registered = {id(each) for each in declarations.registry.actions}
        self.faults: list[Fault] = []
        self.roles: set[str] = set()
        self.role_audiences: dict[str, tuple[str, ...]] = {}
        self.conditions: dict[str, str] = {}
        self.predicates: dict[str, Predicate] = {}
        self._predicate_names: dict[int, str] = {}

    def build(self) -> Catalog:
        """Return the catalog; read ``faults`` before using it."""
        exposed = self._exposed()
        tools = {id(action) for action in exposed}
        everything = [*exposed, *self._unexposed(exposed)]
        scope_of = self._scopes([each.name for each in exposed], [each.name for each in everything])
        made = [self._entry(each, id(each) in tools, scope_of.get(each.name)) for each in everything]
        made += [*self._resources(), *self._prompts()]
        group_of, meta = self._groups({each.name for each in exposed}), self._surface()
        gating = self._gating([each.name for each in exposed], [each.name for each in everything])
        entries = tuple(self._in_group(each, group_of) for each in made if each is not None)
        entries = entries if gating is None else tuple(gating.gated(each) for each in entries)
        self.complete = len(entries) == len(self._tried) + len(self.given.resources) + len(self.given.prompts)
        self._paths(entries)
        self._named_once(entries)
        self._resource_types(entries)
        grants = self._grants()
        return Catalog(
            server=self.given.server,
            entries=entries,
            roles=frozenset(self.roles | set(self.given.roles or ())),
            scopes=frozenset(
                {*(self.given.scopes or ()), *(entry.scope for entry in entries if entry.scope)}
            ),
            role_audiences=self.role_audiences,
            conditions=self.conditions,
            predicates=self.predicates,
            grants=grants,
            tools=frozenset(entry.name for entry in entries if entry.exposed),
            paths=frozenset(entry.path for entry in entries if entry.path),
            groups={name: held.description for name, held in self.given.groups.items()},
            meta=meta,
            hides_paths=self.given.hides_paths,
        )

    def refuse(self, code: str, cause: str, fix: str | None = None) -> None:
        """Add a fault."""
        self.faults.append(fault(code, cause, fix))

    # which declarations are tools

    def _exposed(self) -> list[Action]:
        chosen: dict[str, Action] = {}
        for action in self._listed():
            self._take(chosen, action)
        for name, action in self.given.tools.items():
            self._take(chosen, replace(action, name=name))
        return list(chosen.values())

    def _listed(self) -> list[Action]:
        listed = [each for each in (*self.given.actions, *self.given.queries) if self._is_tool(each)]
        if self.given.include == "exposed":
            listed.extend(each for each in self.given.registry.actions if each.mcp is not None)
        return list({id(each): each for each in listed}.values())

    def _is_tool(self, action: object) -> bool:
        if not isinstance(action, Action) or id(action) not in self._registered:
            name = getattr(action, "name", None) or getattr(action, "__name__", None) or repr(type(action))
            self.refuse("X_ACTION_UNREGISTERED", f"`{name}` is listed and belongs to no registry of this app")
            return False
        if action.mcp is None:
            self.refuse(
                "X_MCP_TOOL_UNDECLARED", f"`{action.name}` is listed and never declared `mcp=expose(...)`"
            )
            return False
        return True

    def _unexposed(self, exposed: Sequence[Action]) -> list[Action]:
        """The registry's other actions: no tools, but HTTP paths and Cedar actions all the same."""
        chosen = {action.name: action for action in exposed}
        before = len(chosen)
        for action in self.given.registry.actions:
            if id(action) not in self._tried:
                self._take(chosen, action)
        return list(chosen.values())[before:]

    def _take(self, chosen: dict[str, Action], action: Action) -> None:
        self._tried[id(action)] = action
        if not TOOL_NAME.fullmatch(action.name) or action.name in RESERVED_ACTIONS:
            self.refuse("X_MCP_TOOL_NAME_INVALID", f"`{_safe(action.name)}` is no tool name")
        elif action.name in chosen:
            self.refuse("X_MCP_TOOL_DUPLICATE", f"two entries reach the tool name `{action.name}`")
        else:
            chosen[action.name] = action

    # resources and prompts

    def _resources(self) -> list[Entry | None]:
        given = self.given.resources
        self._distinct("X_MCP_RESOURCE_DUPLICATE", "resources claim", [each.uri for each in given])
        self._distinct("X_MCP_RESOURCE_DUPLICATE", "resources are named", [each.name for each in given])
        made = [self._content(each.name, resource_action, placed, each) for each in given]
        for cause in overlaps(each for each in made if each is not None):
            fix = "let one audience see both, or take the URI out of the template"
            self.refuse("X_DECLARATION_INVALID", cause, fix)
        return made

    def _prompts(self) -> list[Entry | None]:
        given = self.given.prompts
        self._distinct("X_MCP_TOOL_DUPLICATE", "prompts are named", [each.name for each in given])
        return [self._content(each.name, prompt_action, prompted, each) for each in given]

    def _content(
        self,
        name: str,
        acting: Callable[[C], Action],
        finished: Callable[[Entry, C], Entry],
        declared: C,
    ) -> Entry | None:
        """Return the entry of a resource or prompt, read as an action and then given its own members."""
        if not TOOL_NAME.fullmatch(name):
            self.refuse("X_MCP_TOOL_NAME_INVALID", f"`{_safe(name)}` is no name of a resource or prompt")
            return None
        if declared.scope is not None and (declared.scope == NO_SCOPE or not NAME.fullmatch(declared.scope)):
            self.refuse("X_NAME_INVALID", f"`{_safe(declared.scope)}` is no scope name")
        try:
            entry = self._entry(acting(declared), False, declared.scope)
            return None if entry is None else finished(entry, declared)
        except ContentFault as refusal:
            self.refuse("X_DECLARATION_INVALID", refusal.cause, refusal.fix)
            return None

    def _distinct(self, code: str, what: str, names: Sequence[str]) -> None:
        for name in sorted({each for each in names if names.count(each) > 1}):
            self.refuse(code, f"two {what} `{_safe(name)}`")

    # the constant surface

    def _groups(self, tools: set[str]) -> dict[str, str]:
        """Return the group of each grouped tool."""
        group_of: dict[str, str] = {}
        for group, held in self.given.groups.items():
            self._name("group", group)
            for name in held.tools:
                if name not in tools:
                    cause = f"the group `{_safe(group)}` names `{_safe(name)}`, which is not served"
                    self.refuse("X_MCP_GROUP_UNKNOWN", cause)
                elif group_of.setdefault(name, group) != group or list(held.tools).count(name) > 1:
                    self.refuse("X_MCP_GROUP_CONFLICT", f"`{name}` is listed twice in `groups`")
        return group_of

    def _surface(self) -> str | None:
        """Return the audience of the constant surface."""
        surface = self.given.surface
        if surface == "flat":
            if self.given.groups:
                self.refuse("X_MCP_SURFACE_INVALID", "`groups` are given, and the flat surface serves none")
            return None
        if not self.given.groups:
            self.refuse("X_MCP_SURFACE_INVALID", "the constant surface is asked for without `groups`")
        for name in META_TOOLS:
            if name in (each.name for each in self._tried.values()):
                self.refuse("X_MCP_TOOL_DUPLICATE", f"`{name}` is a tool of the constant surface")
        return EVERYONE if surface == "meta" else self._audience("surface", surface)

    def _in_group(self, entry: Entry, group_of: Mapping[str, str]) -> Entry:
        group = group_of.get(entry.name)
        return entry if group is None else replace(entry, group=group)

    # what waits for a person

    def _gating(self, tools: Sequence[str], served: Sequence[str]) -> boot_confirmation.Gating | None:
        given, registered = self.given.confirmations, self.given.registry.actions
        self.faults.extend(boot_confirmation.faults(given, registered, tools, served))
        return boot_confirmation.gating(given)

    # scopes

    def _scopes(self, tools: Sequence[str], everything: Sequence[str]) -> dict[str, str]:
        """Return the scope of each action. Once scopes are given, a token opens nothing that none covers."""
        if self.given.scopes is None:
            return {}
        scope_of: dict[str, str] = {}
        for scope, names in self.given.scopes.items():
            if scope == NO_SCOPE or not NAME.fullmatch(scope):
                self.refuse("X_NAME_INVALID", f"`{_safe(scope)}` is no scope name")
            for name in names:
                self._cover(scope_of, scope, name, everything)
        for name in tools:
            if name not in scope_of:
                self.refuse("X_MCP_SCOPE_UNCOVERED", f"`{name}` is under no scope")
        return {**dict.fromkeys(everything, NO_SCOPE), **scope_of}

    def _cover(self, scope_of: dict[str, str], scope: str, name: str, tools: Sequence[str]) -> None:
        if name not in tools:
            self.refuse("X_MCP_SCOPE_UNKNOWN", f"scope `{scope}` names `{_safe(name)}`, which is not served")
        elif scope_of.setdefault(name, scope) != scope:
            self.refuse("X_MCP_SCOPE_CONFLICT", f"`{name}` is claimed by `{scope_of[name]}` and by `{scope}`")

    def _name(self, kind: str, name: str) -> bool:
        if NAME.fullmatch(name):
            return True
        self.refuse("X_NAME_INVALID", f"`{_safe(name)}` is no {kind} name")
        return False

    # entries

    def _entry(self, action: Action, exposed: bool, scope: str | None) -> Entry | None:
        before = len(self.faults)
        rule = self._rule(action)
        face = action.mcp
        audience = self._audience(action.name, face.visible_to if face else None)
        self._annotations(action)
        takes, model, output = self._signature(action)
        self._task(action, takes)
        self._reached(action)
        resource = self._resource(action.name, rule)
        published = self._published(action, model, output)
        if published is None or len(self.faults) > before:
            return None
        schema, answer = published
        annotations: Mapping[str, bool | str] = face.annotations if face else {}
        effect = effect_of(action.kind, annotations, destructive=action.destructive)
        return Entry(
            name=action.name,
            kind=action.kind,
            path=action.path.strip("/"),
            exposed=exposed,
            description=face.description if face else "",
            title=face.title if face else None,
            annotations=annotations,
            audience=audience,
            scope=scope,
            permission=rule.permission,
            resource=resource,
            handler=takes,
            input=schema,
            arguments=fields_of(schema.model),
            output=answer,
            idempotent=action.idempotent,
            destructive=effect.destructive,
            single=action.single,
            icons=face.icons if face else (),
            needs=face.needs if face else (),
            confirms=face.confirms if face else False,
            task=face.task if face else "never",
            asks_first=face.asks_first if face else False,
            list_params=face.list_params if face else None,
            methods=action.methods,
            requires_key=action.requires_key,
            atomic=action.atomic,
            reads_only=effect.reads_only,
            confirming=None if action.confirming is None else Deciding(action.confirming.check),
        )

    def _rule(self, action: Action) -> Can:
        if action.policy is None:
            self.refuse("X_MCP_TOOL_UNSAFE", f"`{action.name}` declares no policy")
            return Can("none:none")
        if not PERMISSION.fullmatch(action.policy.permission):
            self.refuse(
                "X_NAME_INVALID",
                f"`{action.name}` asks for `{_safe(action.policy.permission)}`, which is no permission name",
                "name a permission `group:verb`, for example `post:publish`",
            )
        if action.policy.permission.startswith("nonsuch:") and action.kind not in ("resource", "prompt"):
            cause = f"`{action.name}` asks for `{action.policy.permission}`, a permission of ours"
            self.refuse("X_NAME_INVALID", cause, "name a permission of your own, outside of `nonsuch:`")
        return action.policy

    def _annotations(self, action: Action) -> None:
        if action.mcp is None:
            return
        for name, value in action.mcp.annotations.items():
            wanted: type = bool if name in HINTS else str
            if not isinstance(value, wanted):
                cause = f"`{action.name}` gives the annotation `{_safe(name)}` a {type(value).__name__}"
                self.refuse("X_DECLARATION_INVALID", cause, "hints are true or false, `title` is a string")

    def _task(self, action: Action, takes: Handler) -> None:
        face = action.mcp
        if face is None or (face.task in ("optional", "required") and not face.asks_first):
            return
        if face.task not in get_args(Support):
            cause = f"`{action.name}` gives `task` something else than a word for it"
            self.refuse("X_DECLARATION_INVALID", cause, "give it `never`, `optional` or `required`")
        elif face.asks_first and (face.task == "never" or "context" not in takes.takes):
            cause = f"`{action.name}` asks first and can never become a task"
            fix = (
                "give it `task=` too, and let its handler take a `Context` to call `ctx.client.background()`"
            )
            self.refuse("X_DECLARATION_INVALID", cause, fix)

    def _reached(self, action: Action) -> None:
        """How it is called: by methods that fit what it does, and under a key only where there is one."""
        known = METHODS.get(action.kind, ())
        if len(set(action.methods)) < len(action.methods) or not set(action.methods) <= set(known):
            cause = f"`{action.name}` answers methods that its kind does not, or one twice"
            self.refuse("X_DECLARATION_INVALID", cause, f"give `methods` some of {', '.join(known)}")
        if action.requires_key and not action.idempotent:
            cause = f"`{action.name}` requires a key and is not idempotent"
            self.refuse("X_DECLARATION_INVALID", cause, "declare it with `idempotent=True`")

    def _audience(self, tool: str, visible_to: VisibleTo) -> str:
        if visible_to is None:
            return EVERYONE
        if isinstance(visible_to, Audience):
            key = "when:" + hashlib.sha256(visible_to.condition.encode()).hexdigest()[:16]
            self.conditions[key] = visible_to.condition
            return key
        if callable(visible_to):
            return self._predicate(visible_to)
        return self._role_list(tool, visible_to)

    def _predicate(self, predicate: Predicate) -> str:
        key = self._predicate_names.setdefault(id(predicate), f"predicate:{len(self._predicate_names)}")
        self.predicates[key] = predicate
        return key

    def _role_list(self, tool: str, roles: Sequence[str]) -> str:
        if isinstance(roles, str):
            self.refuse(
                "X_DECLARATION_INVALID", f"`{tool}` gives `visible_to` one string, not a list of roles"
            )
            return EVERYONE
        named = tuple(sorted(set(roles)))
        for role in named:
            self._role(f"`visible_to` of `{tool}`", role)
        key = "roles:" + "|".join(named)
        self.role_audiences[key] = named
        return key

    def _role(self, where: str, role: str) -> None:
        if not self._name("role", role):
            return
        if self.given.roles is not None and role not in self.given.roles:
            self.refuse("X_ROLE_UNKNOWN", f"{where} names the role `{role}`, which `roles=` does not list")
        self.roles.add(role)

    def _grants(self) -> tuple[Grant, ...]:
        """Return the grants that have no fault."""
        for role in self.given.roles or ():
            self._name("role", role)
        return tuple(each for each in self.given.grants if self._grant(each))

    def _grant(self, given: Grant) -> bool:
        before = len(self.faults)
        self._role("a grant", given.role)
        if given.permission != ANY and not PERMISSION.fullmatch(given.permission):
            cause = f"a grant names `{_safe(given.permission)}`, which is no permission"
            self.refuse("X_NAME_INVALID", cause)
        return len(self.faults) == before

    def _signature(self, action: Action) -> tuple[Handler, type[BaseModel], Any]:
        handler, model, output = read_signature(action.handler)
        if isinstance(model, str):
            self.refuse("X_DECLARATION_INVALID", f"`{action.name}`: {model}")
            return handler, NoInput, None
        return handler, model, output

    def _published(
        self, action: Action, model: type[BaseModel], output: Any
    ) -> tuple[InputSchema, OutputSchema] | None:
        if held := reference_in(model):
            cause = f"`{action.name}` takes a `Ref` at `{held}`, and {OF_A_CALLER.why}"
            self.refuse("X_DECLARATION_INVALID", cause, OF_A_CALLER.fix)
            return None
        rows = action.kind == "query" and not action.single
        answer = without_none(output) if action.single else output
        try:
            takes = narrowed(action, publish_input(model))
            told = publish_output(answer, rows=rows)
        except SchemaRefused as refusal:
            self.refuse("X_DECLARATION_INVALID", f"`{action.name}` has a type without a schema: {refusal}")
            return None
        if isinstance(takes, InputSchema):
            self._shadowed(action, takes)
            return takes, told
        for cause in takes:
            self.refuse("X_MCP_LIST_PARAMS_INVALID", cause)
        return None

    def _shadowed(self, action: Action, takes: InputSchema) -> None:
        named = takes.document.get("properties", {})
        if action.kind == "action" and action.idempotent and KEY_ARGUMENT in named:
            cause = f"`{action.name}` takes a `{KEY_ARGUMENT}` of its own"
            self.refuse("X_MCP_IDEMPOTENCY_KEY_SHADOWED", cause)

    def _resource(self, tool: str, rule: Can) -> ResourceType | None:
        if rule.resource is None:
            return None
        loader, given, output = read_signature(rule.resource)
        facts = without_none(output)
        problem = f"cannot be called: {given}" if isinstance(given, str) else _not_a_resource(facts)
        if problem:
            self.refuse("X_DECLARATION_INVALID", f"`{tool}`: the resource loader {problem}")
            return None
        return ResourceType(facts.__name__, fields_of(facts, LOADED), facts, loader)

    # what must be unique over all entries

    def _paths(self, entries: Iterable[Entry]) -> None:
        seen: dict[str, str] = {}
        for entry in entries:
            if entry.path and not (
                PATH.fullmatch(entry.path) and {".", ".."}.isdisjoint(entry.path.split("/"))
            ):
                self.refuse(
                    "X_DECLARATION_INVALID", f"`{entry.name}` has the path `{_safe(entry.path)}`", _PATH_FIX
                )
            if entry.path and seen.setdefault(entry.path, entry.name) != entry.name:
                self.refuse(
                    "X_ROUTE_DUPLICATE", f"`{seen[entry.path]}` and `{entry.name}` claim `{entry.path}`"
                )

    def _named_once(self, entries: Iterable[Entry]) -> None:
        """Refuse one name in policies of two kinds, as of a tool `prompts/x` and a prompt `x`."""
        kinds: dict[str, str] = {}
        for entry in entries:
            kind = kinds.setdefault(entry.name, entry.kind)
            if kind != entry.kind:
                cause = f"`{entry.name}` is the name of a {kind} and of a {entry.kind}"
                self.refuse("X_MCP_TOOL_DUPLICATE", cause)

    def _resource_types(self, entries: Iterable[Entry]) -> None:
        seen: dict[str, type[BaseModel]] = {}
        for kind in (entry.resource for entry in entries):
            if kind is not None and seen.setdefault(kind.name, kind.model) is not kind.model:
                self.refuse(
                    "X_DECLARATION_INVALID", f"two models are named `{kind.name}` and policies read both"
                )


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """The catalog of the declarations and all their faults; ``complete`` when no fault cost an entry."""

    catalog: Catalog
    faults: tuple[Fault, ...]
    complete: bool


def build(declarations: Declarations) -> Built:
    """Return what the declarations make. Serve the catalog only if there are no faults."""
    builder = Builder(declarations)
    catalog = builder.build()
    return Built(catalog, tuple(builder.faults), builder.complete)


def _safe(name: str) -> str:
    return name.encode("ascii", "backslashreplace").decode()[:80]


def _not_a_resource(model: Any) -> str:
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return "needs a return annotation that names a pydantic model (`Post` or `Post | None`)"
    if model.model_fields.get("id") is None or model.model_fields["id"].annotation is not str:
        return f"returns `{model.__name__}`, which has no field `id: str`"
    if model.__name__ in RESERVED_TYPES or not _IDENTIFIER.fullmatch(model.__name__):
        return f"returns `{_safe(model.__name__)}`, a name that policies reserve"
    return ""
