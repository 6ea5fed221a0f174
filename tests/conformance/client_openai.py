"""Walks a plan with the OpenAI Agents SDK; `run` gives a tool to an agent whose model calls it once."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import client_walk
from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)
logging.getLogger("openai.agents").setLevel(logging.CRITICAL)  # a refused call is no fault of the program's


class OneCall(Model):
    """A model that calls one tool, and then repeats what it was told."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self._call = ResponseFunctionToolCall(
            type="function_call", call_id="1", name=name, arguments=json.dumps(arguments)
        )

    async def get_response(
        self, system_instructions: Any, input: Any, *rest: Any, **more: Any
    ) -> ModelResponse:
        """Call, or repeat."""
        told = [each["output"] for each in input if each.get("type") == "function_call_output"]
        return ModelResponse([self._said(told[0]) if told else self._call], Usage(), None)

    def stream_response(self, *rest: Any, **more: Any) -> Any:
        """Nobody streams here."""
        raise NotImplementedError

    def _said(self, told: Any) -> ResponseOutputMessage:
        text = ResponseOutputText(type="output_text", text=json.dumps(told), annotations=[])
        return ResponseOutputMessage(
            id="2", type="message", role="assistant", status="completed", content=[text]
        )


@asynccontextmanager
async def connect(url: str, token: str, era: str) -> AsyncGenerator[MCPServerStreamableHttp]:
    """Connect one server."""
    async with MCPServerStreamableHttp(
        {"url": url, "headers": {"Authorization": f"Bearer {token}"}}
    ) as server:
        yield server


async def take(server: MCPServerStreamableHttp, step: client_walk.Step) -> client_walk.Met:
    """Take one step."""
    what, name, arguments = step
    if what != "run":
        return await client_walk.take(server, step)
    agent = Agent("tester", model=OneCall(name, arguments), mcp_servers=[server])
    return {"ran": json.loads((await Runner.run(agent, "go")).final_output)}


client_walk.run(connect, take)
