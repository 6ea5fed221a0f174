"""The fixture's long work: what the suite's scenarios of the tasks extension call, by their names."""

import asyncio
from typing import Final

from pydantic import BaseModel, Field

from nonsuch import ActionError, Elicit, Elicited, ListRoots, Text

from .fixture_parts import Here, Tools

TOOLS: Final = Tools()


class Named(BaseModel):
    name: str


class Slow(BaseModel):
    seconds: float = Field(ge=0, le=60)
    label: str


class File(BaseModel):
    filename: str


class Sure(BaseModel):
    confirm: bool


@TOOLS.add("Greets at once")
async def greet(input: Named) -> Text:
    return Text(f"Hello, {input.name}!")


@TOOLS.add("Computes for some seconds", task="optional")
async def slow_compute(input: Slow) -> Text:
    await asyncio.sleep(input.seconds)
    return Text(f"computed {input.label}")


@TOOLS.add("Fails after a second", task="required")
async def failing_job() -> Text:
    await asyncio.sleep(1)
    raise ActionError("X_JOB_FAILED", "the job failed, as it always does", "call another one")


@TOOLS.add("Ends in a protocol error", task="required")
async def protocol_error_job(ctx: Here) -> Text:
    """End in a JSON-RPC error: the suite's client can be asked for no directories."""
    await ctx.client.ask({"roots": ListRoots()})
    return Text("asked in vain")


@TOOLS.add("Asks before it deletes", task="optional")
async def confirm_delete(input: File, ctx: Here) -> Text:
    given = await ctx.client.ask({"confirm": Elicit(f"Delete {input.filename}?", Sure)})
    return Text(f"{input.filename}: {given['confirm']}")


@TOOLS.add("Asks two things at once", task="optional")
async def multi_input(ctx: Here) -> Text:
    given = await ctx.client.ask({"name": Elicit("Whose?", Named), "confirm": Elicit("Sure?", Sure)})
    return Text(str(sorted(given)))


@TOOLS.add("Asks, then works on", task="required", asks_first=True)
async def test_tool_with_task(ctx: Here) -> Text:
    given = await ctx.client.ask({"user_name": Elicit("What is your name?", Named)})
    await ctx.client.background()
    await asyncio.sleep(0.2)
    answer = given["user_name"]
    return Text(f"Hello, {answer.content.get('name') if isinstance(answer, Elicited) else 'nobody'}!")
