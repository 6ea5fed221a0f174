"""Released clients hear what a running tool says and answer what it asks, in both revisions.

A client that cannot be asked is told so, and goes on.
"""

import asyncio
import json
import subprocess
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitRequestParams, ElicitResult, LoggingMessageNotificationParams

from .client_walk import Met, called, refusal
from .clients import PATIENCE, javascript
from .environment import HERE
from .plan import LEGACY, MODERN
from .watched import Service, fresh

Heard = dict[str, list[Any]]
CALLS: Final = ("watchDrafts", "rateDrafts", "listDrafts")


def python(plan: Mapping[str, Any]) -> Heard:
    """The client of MCP SDK 2."""
    return asyncio.run(_python(plan))


async def _python(plan: Mapping[str, Any]) -> Heard:
    heard: Heard = {"progress": [], "logs": [], "asked": [], "answers": []}

    async def logged(params: LoggingMessageNotificationParams) -> None:
        heard["logs"].append([params.level, params.logger, params.data])

    async def asked(context: object, params: ElicitRequestParams) -> ElicitResult:
        heard["asked"].append(params.message)
        return ElicitResult(action="accept", content={"stars": 5})

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        heard["progress"].append([progress, total, message])

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {plan['token']}"}, trust_env=False) as http,
        mcp.Client(
            streamable_http_client(plan["url"], http_client=http),
            mode=MODERN if plan["era"] == "modern" else "legacy",
            log_level="info" if plan["era"] == "modern" else None,  # the older revisions send every level
            logging_callback=logged,
            elicitation_callback=asked if plan["asks"] else None,
        ) as client,
    ):
        for name in plan["calls"]:
            try:
                result = await client.call_tool(name, {}, progress_callback=progressed)
            except mcp.MCPError as error:
                heard["answers"].append(refusal(error))
            else:
                heard["answers"].append({key: called(result)[key] for key in ("isError", "text")})
    return heard


def typescript(plan: Mapping[str, Any]) -> Heard:
    """The client `@modelcontextprotocol/client`."""
    done = subprocess.run(
        javascript("client_ts_talk.mjs"),
        input=json.dumps(plan),
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    heard: Heard = json.loads(done.stdout)
    return heard


CLIENTS: Final[Mapping[str, Callable[[Mapping[str, Any]], Heard]]] = {
    "mcp 2": python,
    "TypeScript client": typescript,
}

# What is heard

WATCHED: Final = [[step, 3, f"step {step}"] for step in (1, 2, 3)]
LOGGED: Final = [["info", "drafts", {"step": step}] for step in (1, 2, 3)]
FIRST, LAST = [1, 2, None], [2, 2, None]
# The TypeScript client reports each round of its own.
ROUND: Final = [1, None, "Fulfilling input required by 'tools/call' (round 1)"]
ROWS: Final[Met] = {
    "isError": False,
    "text": '{"rows":[{"id":"d1","title":null},{"id":"d2","title":null}]}',
}
SILENT: Final[Met] = {
    "isError": True,
    "text": "X_MCP_CLIENT_SILENT: the work needs an answer from the client, which cannot be asked, left, "
    "or did not answer in time\nfix: call with `Accept: text/event-stream` and a client that answers "
    "questions, and stay for the answer",
}


def rating(name: str, era: str) -> list[Any]:
    """In revision 2026-07-28 a tool that asked runs again from its start."""
    if era == "legacy":
        return [FIRST, LAST]
    return [FIRST, *([ROUND] if name == "TypeScript client" else []), FIRST, LAST]


def incapable(name: str, era: str) -> Met:
    if era == "legacy":
        return SILENT
    fix = "use a client that declares what `requiredCapabilities` lists"
    told = {"code": "X_MCP_CAPABILITY_MISSING", "fix": fix}
    more = {} if name == "TypeScript client" else told  # whose class of this error has no place for them
    message = "the client does not declare what this work asks of it"
    return {"code": -32021, "message": message, "data": {**more, "requiredCapabilities": {"elicitation": {}}}}


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_hears_a_running_tool_and_answers_it(name: str, era: str, service: Service) -> None:
    token = fresh("editor")
    plan = {"url": service.url, "token": token, "era": era, "asks": True, "calls": CALLS}
    assert CLIENTS[name](plan) == {
        "progress": [*WATCHED, *rating(name, era)],
        "logs": LOGGED,
        "asked": ["How many stars?"],
        "answers": [{"isError": False, "text": "watched"}, {"isError": False, "text": "accept 5"}, ROWS],
    }
    spoken = {each["version"] for each in service.seen("request", token)} - {None}
    assert spoken == {MODERN if era == "modern" else LEGACY}


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_that_cannot_be_asked_is_told_and_goes_on(name: str, era: str, service: Service) -> None:
    token = fresh("editor")
    plan = {"url": service.url, "token": token, "era": era, "asks": False, "calls": CALLS}
    assert CLIENTS[name](plan) == {
        "progress": [*WATCHED, FIRST],
        "logs": LOGGED,
        "asked": [],
        "answers": [{"isError": False, "text": "watched"}, incapable(name, era), ROWS],
    }
