"""Walks a plan with a client, one client object a session, and returns what each step met.

Knows no expectation. Also run by Pythons where nonsuch is not installed: see `run`.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

Step = Sequence[Any]
Met = dict[str, Any]
Plan = Mapping[str, Any]
Connect = Callable[[str, str, str], AbstractAsyncContextManager[Any]]
Take = Callable[[Any, Step], Awaitable[Met]]


async def walk(plan: Plan, connect: Connect, take: Take) -> list[list[Met]]:
    """Return what the steps of every session met; `connect` takes a URL, a token and an era."""
    sessions: list[list[Met]] = []
    for each in plan["sessions"]:
        async with connect(plan["url"], each["token"], plan["era"]) as client:
            sessions.append([await met(take, client, step) for step in each["steps"]])
    return sessions


def run(connect: Connect, take: Take) -> None:
    """Walk the plan that stdin holds, and write what it met to stdout."""
    sys.stdout.write(json.dumps(asyncio.run(walk(json.load(sys.stdin), connect, take))))


async def met(take: Take, client: Any, step: Step) -> Met:
    """Return what a step met, an exception too."""
    try:
        return await take(client, step)
    except Exception as error:  # noqa: BLE001 - a client's exceptions are its own
        return refusal(error)


def refusal(error: BaseException) -> Met:
    """Return what an exception says: the protocol's error, or the client's own."""
    alone: Any = getattr(error, "exceptions", ())  # of a group
    if len(alone) == 1:
        return refusal(alone[0])
    if type(error).__name__ not in ("McpError", "MCPError"):
        return {"failure": type(error).__name__, "message": str(error)}
    told: Any = getattr(error, "error", error)
    return {"code": told.code, "message": told.message, "data": told.data}


async def take(client: Any, step: Step, **options: Any) -> Met:
    """Take a step with a client whose methods are named as in the Python SDK; options are for its calls."""
    what, name, arguments = step
    match what:
        case "tools":
            return {"tools": [each.name for each in _inside(await client.list_tools(), "tools")]}
        case "call":
            return called(await client.call_tool(name, arguments, **options))
        case "prompts":
            return {"prompts": [each.name for each in _inside(await client.list_prompts(), "prompts")]}
        case "prompt":
            messages = (await client.get_prompt(name, arguments)).messages
            return {"messages": [[each.role, each.content.text] for each in messages]}
        case "resources":
            return {
                "resources": [str(each.uri) for each in _inside(await client.list_resources(), "resources")]
            }
        case "read":
            return {"read": _inside(await client.read_resource(name), "contents")[0].text}
        case _:
            raise NotImplementedError(what)


def called(result: Any) -> Met:
    """Return a tool's result; the SDKs spell its members differently."""
    failed = result.is_error if hasattr(result, "is_error") else result.isError
    snake = hasattr(result, "structured_content")
    structured = result.structured_content if snake else result.structuredContent
    return {"isError": bool(failed), "text": result.content[0].text, "structured": structured}


def _inside(result: Any, name: str) -> Any:
    return getattr(result, name, result)
