"""Resources, templates and prompts of a plain world, and who may know of them, in nonsuch's own terms."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from nonsuch import ActionError, Completing, Context, Elicit, Principal, prompt, resource
from nonsuch import audience as condition
from nonsuch.kernel.declare import Prompt, Resource

from . import rules

if TYPE_CHECKING:
    from .world import World

QUESTION: Final = Elicit("Who?", {"type": "object", "properties": {}})


async def speak(ctx: Context[Any]) -> None:
    """Say something in every way that a handler has."""
    for done in (1, 2):
        await ctx.client.progress(done, total=2, message="working")
    await ctx.client.log("info", {"working": True}, "world")


def resource_of(world: World, each: rules.Content) -> Resource:
    """A resource or template that notes that it was read."""

    async def read(ctx: Any, input: Any = None) -> str:
        return await content(world, each, ctx, input)

    completes: dict[str, Any] = {"id": completer(world, each)} if each.kind == "template" else {}
    takes: dict[str, Any] = {"ctx": Context[Any], "input": Ident, "return": str}
    read.__annotations__ = takes
    return resource(
        each.uri,
        each.name,
        f"Reads {each.name}",
        read if each.kind == "template" else without_input(read),
        visible_to=visible_to(each.audience),
        scope=each.scope,
        policy=each.permission,
        complete=completes,
    )


def prompt_of(world: World, each: rules.Content) -> Prompt:
    """A prompt that notes that it was rendered."""

    async def render(ctx: Any, input: Any) -> str:
        return await content(world, each, ctx, input)

    render.__annotations__ = {"ctx": Context[Any], "input": Ident, "return": str}
    return prompt(
        render,
        description=f"Says {each.name}",
        name=each.name,
        visible_to=visible_to(each.audience),
        scope=each.scope,
        policy=each.permission,
        complete={"id": completer(world, each)},
    )


class Ident(BaseModel):
    """The variable of every template, and the argument of every prompt."""

    id: str


def without_input(read: Callable[..., Coroutine[Any, Any, str]]) -> Callable[..., Any]:
    """The same function, which takes no variables."""

    async def alone(ctx: Any) -> str:
        return await read(ctx)

    alone.__annotations__ = {"ctx": Context[Any], "return": str}
    return alone


async def content(world: World, each: rules.Content, ctx: Any, input: Any) -> str:
    """Note that content was used, and behave as declared."""
    given = "" if input is None else input.id
    world.ran.append((each.action, given))
    match each.behaves:
        case "speaks":
            await speak(ctx)
        case "asks":
            await ctx.client.ask({"who": QUESTION}, state={"content": each.name})
        case "refuses":
            raise ActionError("X_DEMO", "the demo refuses", "ask again later")
        case "raises":
            raise LookupError("secret words")
        case _:
            pass
    return f"{each.name} {given} for {ctx.principal.id}"


def completer(world: World, each: rules.Content) -> Any:
    """A list for names of an even length, a function for the others: both ways to complete."""
    if len(each.name) % 2 == 0:
        return list(each.completes)

    async def suggest(given: Any) -> list[str]:
        world.ran.append((f"{each.action} completes", given.value))
        return [value for value in each.completes if value.startswith(given.value)]

    suggest.__annotations__ = {"given": Completing, "return": list[str]}
    return suggest


def visible_to(audience: rules.Audience) -> Any:
    """An audience as `visible_to` takes it."""
    match audience:
        case rules.Everyone():
            return None
        case rules.Roles(names):
            return list(names)
        case rules.OfOrg(name):
            return condition(f"principal has org && principal.org == {json.dumps(name)}")
        case rules.Asked():
            return predicate(audience)


def predicate(asked: rules.Asked) -> Callable[[Principal], object]:
    """A function of the principal, with every answer that such a function can give."""

    def ask(who: Principal) -> object:
        if who.id in asked.raises:
            raise LookupError(who.id)
        return True if who.id in asked.true else 1 if who.id in asked.truthy else None

    return ask
