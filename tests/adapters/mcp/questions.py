"""What handlers ask of their clients, as each revision spells it; what is an answer, and what is none.

Knows no test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from nonsuch import App, Context, Elicit, ElicitUrl, Image, ListRoots, Message, Roots, Sample, Sampled
from nonsuch.kernel.asks import Ask, Elicited, Given, Root
from nonsuch.kernel.strict_json import Json as Plain

from .live import MODERN, Json, Live, Stream, request
from .stage import stage


class Person(BaseModel):
    name: str
    age: int = 30


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name"},
        "age": {"type": "integer", "title": "Age", "default": 30},
    },
    "required": ["name"],
}
ASKS: Mapping[str, Ask] = {
    "form": Elicit("Who are you?", Person),
    "schema": Elicit("When?", {"type": "object", "properties": {"when": {"type": "string"}}}),
    "url": ElicitUrl("Sign in", "https://x.example/sign-in"),
    "model": Sample([Message("user", "Hi")], 100),
    "model, whole": Sample(
        [Message("user", "Hi"), Message("assistant", Image(b"\xff", "image/png"))],
        7,
        "Be kind",
        0.5,
        ["stop"],
    ),
    "roots": ListRoots(),
}
REQUESTS: Mapping[str, Json] = {
    "form": {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Who are you?", "requestedSchema": FORM},
    },
    "schema": {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "When?",
            "requestedSchema": {"type": "object", "properties": {"when": {"type": "string"}}},
        },
    },
    "url": {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Sign in", "url": "https://x.example/sign-in"},
    },
    "model": {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
            "maxTokens": 100,
        },
    },
    "model, whole": {
        "method": "sampling/createMessage",
        "params": {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Hi"}},
                {"role": "assistant", "content": {"type": "image", "data": "/w==", "mimeType": "image/png"}},
            ],
            "maxTokens": 7,
            "systemPrompt": "Be kind",
            "temperature": 0.5,
            "stopSequences": ["stop"],
        },
    },
    "roots": {"method": "roots/list"},
}
BLOCK: Plain = {"type": "text", "text": "hello"}
BLOCKS: Plain = [BLOCK]
GOOD: tuple[tuple[str, Json, Given], ...] = (
    ("form", {"action": "accept", "content": {"name": "Al"}}, Elicited("accept", {"name": "Al"})),
    (
        "form",
        {"action": "accept", "content": {"name": "Al", "age": 7, "x": 1}},
        Elicited("accept", {"name": "Al", "age": 7, "x": 1}),
    ),
    ("form", {"action": "decline"}, Elicited("decline")),
    ("form", {"action": "cancel", "content": {"name": 7}}, Elicited("cancel")),
    ("schema", {"action": "accept"}, Elicited("accept")),
    ("schema", {"action": "accept", "content": {"when": "now"}}, Elicited("accept", {"when": "now"})),
    ("url", {"action": "accept"}, Elicited("accept")),
    ("url", {"action": "accept", "content": {"token": "x"}}, Elicited("accept")),
    ("url", {"action": "decline"}, Elicited("decline")),
    ("model", {"role": "assistant", "content": BLOCK, "model": "m"}, Sampled("assistant", BLOCK, "m")),
    (
        "model",
        {"role": "user", "content": [BLOCK], "model": "m", "stopReason": "x"},
        Sampled("user", BLOCKS, "m"),
    ),
    ("roots", {"roots": []}, Roots(())),
    (
        "roots",
        {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "B", "_meta": {}}]},
        Roots((Root("file:///a"), Root("file:///b", "B"))),
    ),
)
_NONE: tuple[object, ...] = (None, [], "accept", 7, True, {}, {"action": "agree"}, {"action": None})
BAD: tuple[tuple[str, object], ...] = (
    *((key, answer) for key in ASKS for answer in _NONE),
    ("form", {"action": "accept"}),
    ("form", {"action": "accept", "content": {}}),
    ("form", {"action": "accept", "content": {"name": 7}}),
    ("form", {"action": "accept", "content": {"name": "Al", "age": "7"}}),
    ("form", {"action": "accept", "content": [{"name": "Al"}]}),
    ("form", {"action": "accept", "content": None}),
    ("form", {"Action": "accept", "content": {"name": "Al"}}),
    ("schema", {"action": "accept", "content": {"when": 7}}),
    ("model", {"role": "assistant", "content": BLOCK}),
    ("model", {"role": "system", "content": BLOCK, "model": "m"}),
    ("model", {"role": "assistant", "content": "hello", "model": "m"}),
    ("model", {"role": "assistant", "content": BLOCK, "model": 7}),
    ("roots", {"roots": {}}),
    ("roots", {"roots": ["file:///a"]}),
    ("roots", {"roots": [{"uri": 7}]}),
    ("roots", {"roots": [{"uri": "file:///a", "name": 7}]}),
    ("roots", {"roots": [{"uri": "file:///a"}, None]}),
)
EVERYTHING: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


def asker(*keys: str, state: Any = None, **given: Any) -> tuple[App, list[Any]]:
    """An app that asks, and what its handler was given: the state it found, and the answers."""
    heard: list[Any] = []

    async def handle(ctx: Context[None]) -> str:
        heard.append(ctx.client.state)
        heard.append(await ctx.client.ask({key: ASKS[key] for key in keys}, state=state))
        return "done"

    handle.__annotations__ = {"ctx": Context[None], "return": str}
    return stage(handle, **given), heard


def call(revision: str = MODERN, caller: str = "t", capabilities: Json | None = None, **more: Any) -> Any:
    held = EVERYTHING if capabilities is None else capabilities
    return request(revision, "tools/call", caller, name="t", capabilities=held, **more)


async def plainly(ctx: Context[None]) -> str:
    await ctx.client.ask({"roots": ListRoots()}, state={"n": 1})
    return "done"


async def questioned(live: Live, revision: str, caller: str = "t") -> tuple[Stream, Json]:
    """A call that waits, and the question that it waits with."""
    stream = live.open(call(revision, caller))
    question = await stream.message()
    assert question["jsonrpc"] == "2.0"
    return stream, question


async def answered(live: Live, sent: Any) -> None:
    """Send an answer; whatever it is, it is taken with 202 and no word."""
    stream = live.open(sent)
    assert await stream.rest() == []
    assert (stream.status, stream.raw, stream.headers) == (202, b"", {"content-length": "0"})
