"""Parameters of any shape, to every method of every revision: an answer of the protocol, and never a fault.

Three rules are the oracle: an answer is one JSON-RPC object that has a result or an error, the error is
none of ours (-32603), and the same junk about something hidden and something absent is answered with the
same bytes.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from nonsuch import App, Context, Elicit, Principal, group, prompt, resource, tool
from nonsuch.kernel.strict_json import Json

from .live import MODERN, REVISIONS
from .stage import stage
from .wire import Answer, Request, sans_io


class Ident(BaseModel):
    id: str


def words() -> str:
    return "words"


def by_id(input: Ident) -> str:
    return input.id


def never(who: Principal) -> bool:
    return False


async def asks(ctx: Context[None]) -> str:
    await ctx.client.ask({"k": Elicit("?", Ident)})
    return "asked"


def ids(_: Any) -> list[str]:
    return ["a", "b"]


def build(**given: Any) -> App:
    """Everything twice: once for all, once for nobody (`hidden`); what is `absent` is nowhere."""
    return stage(
        tools={
            "seen": tool("S", by_id, policy="a:b"),
            "hidden": tool("H", by_id, policy="a:b", visible_to=never, task="optional"),
        },
        prompts=[
            prompt(by_id, name="seen", description="S", complete={"id": ["a"]}),
            prompt(by_id, name="hidden", description="H", complete={"id": ["a"]}, visible_to=never),
        ],
        resources=[
            resource("s:seen", "seen", "S", words),
            resource("h:hidden", "hidden", "H", words, visible_to=never),
            resource("s:{id}/x", "one", "S", by_id, complete={"id": ["a"]}),
            resource("h:{id}/x", "two", "H", by_id, visible_to=never, complete={"id": ["a"]}),
        ],
        secret=b"k" * 32,
        **given,
    )


APPS: Final = {
    "flat": build(),
    "pages": build(page_size=1),
    "meta": build(surface="meta", groups={"g": group("G", ["seen", "hidden"])}),
}
METHODS: Final = (
    "initialize",
    "ping",
    "logging/setLevel",
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "completion/complete",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "tasks/list",
    "tasks/result",
    "roots/list",
    "sampling/createMessage",
    "elicitation/create",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "",
    "rpc.discover",
)
KEYS: Final = (
    *("name", "uri", "arguments", "cursor", "level", "ref", "argument", "context", "notifications", "taskId"),
    *("inputResponses", "requestState", "protocolVersion", "capabilities", "clientInfo", "task", "requestId"),
    *("resources", "resource", "action", "params", "id", "type", "value", "resourceSubscriptions", "taskIds"),
    *("toolsListChanged", "progressToken", "_meta", "extensions", "elicitation"),
)
NAMES: Final = (
    *("seen", "s:seen", "s:1/x", "s:{id}/x", "list_resources", "describe_resource", "manage_resource"),
    *("ref/prompt", "ref/resource", "debug", "g", "x" * 32, "", "\u0000", "\U0001f600", MODERN, "2025-11-25"),
)
MARK: Final = "THE-NAME"  # stands where the hidden and the absent name go

leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False)
) | st.sampled_from((*NAMES, MARK))
values = st.recursive(
    leaves,
    lambda held: st.lists(held, max_size=3) | st.dictionaries(st.sampled_from(KEYS), held, max_size=4),
    max_leaves=10,
)
ANSWER: Final = {"action": "accept", "content": {"id": "a"}}
SOUND: Final[dict[str, list[dict[str, Any]]]] = {
    "initialize": [{"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c"}}],
    "logging/setLevel": [{"level": "info"}],
    "tools/list": [{}, {"cursor": "x"}],
    "tools/call": [
        {"name": MARK, "arguments": {"id": "a"}},
        {"name": "seen", "arguments": {"id": "a"}},
        {"name": MARK, "arguments": {}, "inputResponses": {"k": ANSWER}, "requestState": "x"},
        {"name": "describe_resource", "arguments": {"resources": [MARK, "g"]}},
        {"name": "manage_resource", "arguments": {"resource": "g", "action": MARK, "params": {"id": "a"}}},
        {"name": "manage_resource", "arguments": {"resource": MARK, "action": "seen", "params": {}}},
        {"name": "list_resources", "arguments": {}},
    ],
    "prompts/list": [{"cursor": ""}],
    "prompts/get": [{"name": MARK, "arguments": {"id": "a"}}, {"name": "seen", "arguments": {"id": "a"}}],
    "resources/list": [{}],
    "resources/templates/list": [{}],
    "resources/read": [{"uri": MARK}, {"uri": "s:1/x"}],
    "resources/subscribe": [{"uri": MARK}],
    "resources/unsubscribe": [{"uri": MARK}],
    "subscriptions/listen": [
        {"notifications": {"toolsListChanged": True, "resourceSubscriptions": [MARK], "taskIds": ["x" * 32]}}
    ],
    "completion/complete": [
        {
            "ref": {"type": kind, key: MARK},
            "argument": {"name": "id", "value": "a"},
            "context": {"arguments": {}},
        }
        for kind, key in (("ref/prompt", "name"), ("ref/resource", "uri"))
    ],
    "tasks/get": [{"taskId": "x" * 32}],
    "tasks/update": [{"taskId": "x" * 32, "inputResponses": {"k": ANSWER}}],
    "tasks/cancel": [{"taskId": "x" * 32}],
}


def inner(held: Json) -> list[tuple[Any, Any]]:
    """The places in a value and what stands there."""
    if isinstance(held, dict):
        return list(held.items())
    return list(enumerate(held)) if isinstance(held, list) else []


def places(held: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value, however deep."""
    return [path, *(each for key, value in inner(held) for each in places(value, (*path, key)))]


def put(held: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The value with another one at a place."""
    if not path:
        return value
    copy: Any = deepcopy(held)
    copy[path[0]] = put(held[path[0]], path[1:], value)
    return copy


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, Any]:
    """A method and what is nearly right for it: sound parameters, of which a place or two became junk."""
    method = draw(st.sampled_from([*SOUND, *METHODS]))
    held = draw(st.sampled_from(SOUND.get(method, [{}])))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.sampled_from(places(held)[1:] or [()]))
        held = (
            put(held, place, draw(values)) if place else draw(st.dictionaries(st.sampled_from(KEYS), values))
        )
    if draw(st.booleans()):
        held = {**held, draw(st.sampled_from(KEYS)): draw(values)}
    return method, held


def asked(app: App, revision: str, method: str, given_params: Any, accept: str) -> Answer:
    """Send it as the revision wants it, with headers that mirror what can be mirrored."""
    headers = [
        ("host", "127.0.0.1"),
        ("content-type", "application/json"),
        ("authorization", "Bearer t"),
        ("accept", accept),
        ("mcp-protocol-version", revision),
    ]
    if revision == MODERN:
        headers.append(("mcp-method", method))
        key = {"resources/read": "uri"}.get(method, "taskId" if method.startswith("tasks/") else "name")
        named = given_params.get(key)
        if isinstance(named, str) and named.isascii() and named.isprintable():
            headers.append(("mcp-name", named))
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": given_params}).encode()
    return sans_io(app, Request("POST", "/mcp", tuple(headers), body))


def with_meta(revision: str, held: Any) -> Any:
    """What the newest revision demands of every request, unless the junk brought a `_meta` of its own."""
    if revision != MODERN or "_meta" in held:
        return held
    able: Any = {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}}
    key = "io.modelcontextprotocol/"
    return {**held, "_meta": {f"{key}protocolVersion": MODERN, f"{key}clientCapabilities": able}}


def named(held: Any, name: str) -> Any:
    """Put a name where the mark is: as it is, and within addresses."""
    return json.loads(json.dumps(held).replace(MARK, name))


def told(answer: Answer) -> list[Any]:
    text = answer.body.decode()
    if dict(answer.headers).get("content-type") == "text/event-stream":
        return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]
    return [json.loads(text)] if text else []


def proper(answer: Answer) -> None:
    *before, last = told(answer)
    assert all("method" in each and "id" not in each for each in before)
    assert ("result" in last) != ("error" in last)
    if "error" in last:
        assert last["error"]["code"] != -32603, last
        assert isinstance(last["error"]["message"], str)
    assert answer.status in (200, 400, 404)


PAIRS: Final = (("hidden", "absent"), ("h:hidden", "h:absent"), ("h:1/x", "g:1/x"), ("h:{id}/x", "g:{id}/x"))


@pytest.mark.parametrize("surface", APPS)
@pytest.mark.parametrize("revision", REVISIONS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sent=requests(), accept=st.sampled_from(["application/json", "*/*"]), pair=st.sampled_from(PAIRS))
def test_junk_is_answered(
    surface: str, revision: str, sent: tuple[str, Any], accept: str, pair: tuple[str, str]
) -> None:
    method, junk = sent
    held = with_meta(revision, junk)
    one, other = (asked(APPS[surface], revision, method, named(held, name), accept) for name in pair)
    proper(one)
    assert named_out(one, pair[0]) == named_out(other, pair[1])


def named_out(answer: Answer, name: str) -> tuple[int, Any, str]:
    """An answer but for the name that was sent, and for the length that it has with it."""
    headers = {each for each in answer.headers if each[0] != "content-length"}
    return answer.status, headers, answer.body.decode().replace(name, MARK)
