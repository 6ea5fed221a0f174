"""A plain world of `rules.py` in nonsuch's own terms: handlers that note that they ran, policies as Cedar.

Decides nothing, and serves nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import BaseModel, Field, create_model

from nonsuch import (
    ActionError,
    App,
    Context,
    Registry,
    SealKey,
    SealKeys,
    can,
    define_app_mcp,
    expose,
    group,
    mcp_confirmations,
    memory_confirmation_store,
)
from nonsuch import grant as granted
from nonsuch import tool as hand_written
from nonsuch.adapters.edge.confirming import desk_of
from nonsuch.kernel.confirmation import Asking
from nonsuch.kernel.declare import Action
from nonsuch.kernel.view import View

from . import rules
from .rules import Argument, Rule, Tool
from .world_content import QUESTION, prompt_of, resource_of, speak, visible_to

if TYPE_CHECKING:
    from .world import World

SECRET: Final = b"the same in every world".ljust(32)
_make: Final = cast("Callable[..., type[BaseModel]]", create_model)


class Done(BaseModel):
    """What every handler of these worlds answers."""

    tool: str
    by: str


_FACTS: dict[str, type[BaseModel]] = {}


def facts_of(kind: str) -> type[BaseModel]:
    """The one model of a resource type: policies of two worlds read the same type."""
    made = _make(kind, id=(str, ...), org=(str, ...), published=(bool, ...), level=(int, ...))
    return _FACTS.setdefault(kind, made)


def build(world: World) -> App:
    """Declare everything and boot."""
    registry, tools = Registry(), dict[str, Action]()
    for each in world.declared.tools:
        if each.kind == "tool":
            tools[each.name] = hand_written(
                f"Does {each.name}",
                handler(world, each),
                policy=can(each.permission, loader(world, each)),
                visible_to=visible_to(each.audience),
                needs=cast("Any", each.needs),
            )
        else:
            declare(registry, world, each)
    decide = confirming(registry, [each.name for each in world.declared.tools if each.confirms])
    with TemporaryDirectory() as directory:
        text = "\n".join(map(cedar, dict.fromkeys(world.declared.rules)))
        (Path(directory) / "app.cedar").write_text(text)
        return define_app_mcp(
            registry,
            name="world",
            include="exposed",
            tools=tools,
            resources=[resource_of(world, each) for each in world.declared.content if each.kind != "prompt"],
            prompts=[prompt_of(world, each) for each in world.declared.content if each.kind == "prompt"],
            page_size=world.page_size,
            secret=SECRET,
            idempotency_store=world.keys,
            confirmations=decide,
            scopes=world.declared.scopes,
            instructions=instructions,
            resolve_token=lambda token: world.tokens.get(token),
            rate_limits=None,
            roles=sorted(rules.roles_of(world.declared)),
            grants=[granted(role, permission) for role, permission in world.declared.grants],
            policies_dir=directory,
            on_audit=world.audit.append,
            surface="flat" if world.grouped is None else "meta",
            groups={
                name: group(f"What {name} holds", tools) for name, tools in (world.grouped or {}).items()
            },
        )


def confirming(registry: Registry, names: list[str]) -> Action | None:
    """Let some tools wait for a person. An id is made of its call alone: two worlds make the same ones."""
    if not names:
        return None
    keys = SealKeys((SealKey("k", SECRET),))
    store = memory_confirmation_store()
    action = mcp_confirmations(tools=names, store=store, permission=rules.DECIDE, keys=keys, name="decide")
    made = Counter[str]()

    def ident(asking: Asking) -> str:
        made[asking.fingerprint] += 1
        return sha256(f"{asking.fingerprint} {made[asking.fingerprint]}".encode()).hexdigest()[:32]

    desk = desk_of(action)
    assert desk is not None
    desk.ident = ident
    return registry.add(action)


def instructions(view: View) -> str:
    """What the server tells a caller first: how much there is of everything, and what."""
    table = view.table
    templates = [each.place.uri for each in table.templates if each.place is not None]
    lists = (list(table.tools), list(table.resources), templates, list(table.prompts))
    return "; ".join(f"{len(names)}: {', '.join(sorted(names))}" for names in lists)


def declare(registry: Registry, world: World, each: Tool) -> None:
    """Add an action or a query to the registry."""
    needs, audience = cast("Any", each.needs), visible_to(each.audience)
    face = expose(f"Does {each.name}", visible_to=audience, needs=needs) if each.exposed else None
    policy = can(each.permission, loader(world, each))
    if each.kind == "action":
        registry.action(policy=policy, mcp=face, path=each.path, idempotent=each.keyed)(handler(world, each))
    else:
        registry.query(policy=policy, mcp=face, path=each.path, single=each.kind == "single")(
            handler(world, each)
        )


def handler(world: World, each: Tool) -> Callable[..., Any]:
    """A handler that notes that it ran, and behaves as declared."""
    rows = each.kind == "query"

    async def handle(input: Any, ctx: Any) -> object:
        world.ran.append((each.name, input.model_dump_json()))
        runs = [name for name, _ in world.ran].count(each.name)
        run = f" {runs}" if each.keyed else ""  # two runs of what runs once are told apart
        done = Done(tool=each.name, by=f"{ctx.principal.id}{run}")
        match each.behaves:
            case "ok":
                return [done] if rows else done
            case "speaks":
                await speak(ctx)
                return [done] if rows else done
            case "asks":
                await ctx.client.ask({"who": QUESTION}, state={"tool": each.name})
                return [done] if rows else done
            case "refuses":
                raise ActionError("X_DEMO", "the demo refuses", "ask again later")
            case "raises":
                raise LookupError("secret words")
            case "none":
                return None
            case "bad":
                return {"tool": 7}

    handle.__name__ = each.name
    answer: object = list[Done] if rows else Done | None if each.kind == "single" else Done
    handle.__annotations__ = {"input": input_of(each), "ctx": Context[Any], "return": answer}
    return handle


def loader(world: World, each: Tool) -> Callable[..., Any] | None:
    """Load the facts of a row by its id."""
    if each.acts_on is None:
        return None
    rows, model = world.declared.rows.get(each.acts_on, {}), facts_of(each.acts_on)

    async def load(input: Any) -> object:
        row = rows.get(input.id)
        if row is None:
            return None
        return model(id=input.id, org=row.org, published=row.published, level=row.level)

    load.__annotations__ = {"input": input_of(each), "return": model | None}
    return load


@cache
def input_of(each: Tool) -> type[BaseModel]:
    """The input model of a tool, the same one for its handler and its loader."""
    return _make(f"{each.name}Input", **{field.name: field_of(field) for field in each.fields})


def field_of(argument: Argument) -> tuple[object, object]:
    """A field's type and default, as pydantic takes them."""
    kind: type[str] | type[int] = str if argument.kind == "str" else int
    extra: Any = {} if argument.header is None else {"x-mcp-header": argument.header}
    demanded = argument.default is None and not argument.optional
    default = Field(... if demanded else argument.default, json_schema_extra=extra)
    return (kind | None if argument.optional else kind, default)


def cedar(rule: Rule) -> str:
    """A rule as Cedar text. Its id says what it is, not where it stands: two worlds name one rule alike."""
    head = "principal" if rule.role is None else f"principal in Role::{json.dumps(rule.role)}"
    notes = {
        "id": f"{rule.effect} {rule.on} {rule.test} {rule.role}",
        "code": rule.code,
        "reason": rule.reason,
    }
    annotations = " ".join(f"@{key}({json.dumps(value)})" for key, value in notes.items() if value)
    return (
        f"{annotations}\n{rule.effect} ({head}, action in Action::{json.dumps(rule.on)}, resource)"
        f"{when(rule.test)};"
    )


def when(test: rules.Test) -> str:
    """A condition as Cedar text."""
    match test:
        case rules.Always():
            return ""
        case rules.SameOrg():
            return " when { principal has org && resource.org == principal.org }"
        case rules.Published():
            return " when { resource.published }"
        case rules.Raised():
            return f" when {{ resource.level + {2**63 - 1} > 0 }}"
        case rules.Over(argument, limit):
            return f" when {{ context.args.{argument} > {limit} }}"
        case rules.Twice(argument, limit):
            return f" when {{ context.args.{argument} + context.args.{argument} > {limit} }}"
        case rules.Says(argument, text):
            held = f"context.args.{argument}"
            return f" when {{ context.args has {argument} && {held} == {json.dumps(text)} }}"
