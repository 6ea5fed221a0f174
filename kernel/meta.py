"""The constant surface: three tools, whatever number of actions stands behind them, and what they tell.

Reads a view and nothing else, so that a group in which a caller sees nothing is a group that is not there.
Runs no action: ``gates.py`` decides a call of one as it decides any call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, cast

from pydantic import BaseModel, Field

from .boot import META_TOOLS
from .catalog import Entry
from .declare import ListParams
from .idempotency import advertised
from .meta_text import MetaAction, MetaResource
from .model import Call
from .schema import InputSchema, Invalid, NoInput, publish_input
from .strict_json import Json
from .view import Table, View

LIST, DESCRIBE, MANAGE = META_TOOLS


def catalog_of(view: View) -> tuple[MetaResource, ...] | None:
    """Return what the constant surface serves to a caller; ``None`` for a caller of the flat one."""
    return resources_of(view.table) if view.table.meta else None


def resources_of(table: Table) -> tuple[MetaResource, ...]:
    """Return the resources of which a caller sees an action, in the order of their names."""
    return tuple(_resource(table, name) for name in table.groups)


def _resource(table: Table, name: str) -> MetaResource:
    actions = tuple(_action(entry) for entry in table.groups[name].values())
    return MetaResource(name, table.about[name], actions)


def _action(entry: Entry) -> MetaAction:
    return MetaAction(
        entry.name,
        entry.description,
        "query" if entry.reads_only else "action",
        entry.confirms,
        entry.scope,
        advertised(entry),
        entry.list_params,
    )


# what is told of resources in full


def described(view: View, names: Iterable[str]) -> dict[str, Json]:
    """Return resources with their actions' whole input schemas; ``unknown`` are names that are none here."""
    known, unknown = list[Json](), list[Json]()
    for name in dict.fromkeys(names):
        if name in view.table.groups:
            known.append(_told(_resource(view.table, name)))
        else:
            unknown.append(name)
    return {"resources": known, "unknown": unknown} if unknown else {"resources": known}


def _told(resource: MetaResource) -> Json:
    actions: list[Json] = [_told_action(each) for each in resource.actions]
    return {"resource": resource.name, "description": resource.description, "actions": actions}


def _told_action(action: MetaAction) -> Json:
    told: dict[str, Json] = {"action": action.name, "kind": action.kind, "description": action.description}
    if action.confirms:
        told["confirms"] = True
    if action.scope is not None:
        told["scope"] = action.scope
    told["inputSchema"] = action.input_schema
    if action.list_params is not None:
        told["listParams"] = _whitelist(action.list_params)
    return told


def _whitelist(params: ListParams) -> Json:
    told: dict[str, Json] = {}
    if params.filters:
        told["filters"] = {name: list(operators) for name, operators in params.filters.items()}
    if params.sort:
        told["sort"] = list(params.sort)
    if params.fields:
        told["fields"] = list(params.fields)
    if params.max_limit is not None:
        told["maxLimit"] = params.max_limit
    return told


# the three tools


class _Resources(BaseModel):  # no docstrings here: pydantic would publish them
    resources: Annotated[list[str], Field(min_length=1, description="Names that list_resources tells")]


class _Managed(BaseModel):
    resource: Annotated[str, Field(description="A resource that list_resources tells")]
    action: Annotated[str, Field(description="One of its actions")]
    params: Annotated[
        dict[str, Any], Field(default_factory=dict[str, Any], description="The arguments of the action")
    ]


@dataclass(frozen=True, slots=True, eq=False)
class MetaTool:
    """One tool of the constant surface; the same for every app and every caller."""

    name: str
    description: str
    input: InputSchema
    hints: Mapping[str, bool]


_READS: Final = {"readOnlyHint": True}
_WRITES: Final = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}
TOOLS: Final[Mapping[str, MetaTool]] = {
    each.name: each
    for each in (
        MetaTool(
            LIST,
            "The resources there are and what can be done with each: one line per action, with parameters."
            " In parentheses: `action` changes something (the others only read), a person finishes what"
            " `confirms`, a token must carry the `scope`. `…` is what describe_resource tells.",
            publish_input(NoInput),
            _READS,
        ),
        MetaTool(
            DESCRIBE,
            "The full input schema of every action of the named resources.",
            publish_input(_Resources),
            _READS,
        ),
        MetaTool(
            MANAGE,
            "Run an action of a resource; `params` are its arguments, as its input schema wants them.",
            publish_input(_Managed),
            _WRITES,
        ),
    )
}


# what a call of one of them comes to


def asked_for(name: str, arguments: Mapping[str, Json]) -> Call | tuple[str, ...] | Invalid:
    """Return the call that ``manage_resource`` stands for, or the resources that a reading tool names."""
    return _managed(arguments) if name == MANAGE else _named(name, arguments)


def _managed(arguments: Mapping[str, Json]) -> Call | Invalid:
    """Here ``params`` is an object, whatever it holds: the action judges that, and large ones only once."""
    params = arguments.get("params", {})
    shape = {**arguments, "params": {}} if isinstance(params, dict) else arguments
    given = TOOLS[MANAGE].input.parse(shape)
    if isinstance(given, Invalid):
        return given
    action, resource = cast(str, arguments["action"]), cast(str, arguments["resource"])
    return Call(action, cast("dict[str, Json]", params), "mcp", resource)


def _named(name: str, arguments: Mapping[str, Json]) -> tuple[str, ...] | Invalid:
    given = TOOLS[name].input.parse(arguments)
    if isinstance(given, Invalid):
        return given
    return tuple(given.resources) if isinstance(given, _Resources) else ()
