"""What holds of every answer over MCP, whichever the tool, the caller and the revision."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterable, MutableMapping
from typing import Any, cast

import jsonschema_rs
import pytest
from pydantic import BaseModel

from nonsuch import App, Registry, asgi, can, define_app_mcp, expose, grant, tool
from nonsuch.kernel.view import View

from .asking import (
    APP,
    EVERYONE,
    LEGACY,
    MODERN,
    REVISIONS,
    ask,
    caller,
    declared,
    nothing,
    request,
    result,
    served,
    tools,
)
from .press import DESCRIBED, RAN
from .vectors import cases_of
from .wire import Answer, Request, in_process, sans_io

# Refusals


def test_a_scope_refusal_is_one_body_in_every_revision_and_a_challenge_in_the_newest() -> None:
    answers = [
        ask(each, "tools/call", "reader", name="publishPost", arguments={"postId": "p1"})
        for each in REVISIONS
    ]
    assert len({answer.body for answer in answers}) == 1
    assert [answer.status for answer in answers] == [200, 200, 403]
    challenged = [[name for name, _ in answer.headers if name == "www-authenticate"] for answer in answers]
    assert challenged == [[], [], ["www-authenticate"]]
    told = json.loads(answers[0].body)["error"]["data"]
    assert (told["code"], told["scope"]) == ("X_MCP_SCOPE_DENIED", "posts:write")
    assert "posts:write" in told["fix"]


ARGUMENTS: tuple[dict[str, Any], ...] = ({}, {"arguments": {"postId": "p1"}}, {"arguments": {"x": None}})


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("more", ARGUMENTS, ids=str)
@pytest.mark.parametrize("hidden", ["publishPost", "purgePosts", "seatReport"])
def test_a_hidden_tool_is_answered_as_no_tool(revision: str, more: dict[str, Any], hidden: str) -> None:
    absent = "x" * len(hidden)
    theirs = ask(revision, "tools/call", "viewer", name=hidden, **more)
    nobodys = ask(revision, "tools/call", "viewer", name=absent, **more)
    assert theirs.body.replace(hidden.encode(), absent.encode()) == nobodys.body
    assert (theirs.status, theirs.headers) == (nobodys.status, nobodys.headers)


@pytest.mark.parametrize("revision", REVISIONS)
def test_no_message_but_a_request_that_every_gate_permits_runs_a_handler(revision: str) -> None:
    refused = [
        ask(revision, "tools/call", "reader", name="publishPost", arguments={"postId": "p1"}),
        ask(revision, "tools/call", "viewer", name="publishPost", arguments={"postId": "p1"}),
        ask(revision, "tools/call", name="publishPost", arguments={"postId": "p2"}),
        ask(revision, "tools/call", name="publishPost", arguments={"postId": 1}),
        ask(revision, "tools/call", "nobody", name="listPosts"),
    ]
    whole = request(revision, "tools/call", name="publishPost", arguments={"postId": "p1"})
    silent = Request("POST", "/mcp", whole.headers, whole.body.replace(b'"id": 1, ', b""))
    RAN.clear()
    assert sans_io(APP, silent) == Answer(202, frozenset({("content-length", "0")}), b"")
    assert RAN == []
    result(sans_io(APP, whole))
    assert RAN == ["publishPost"]
    assert b"hunter2" not in b"".join(answer.body for answer in refused)


def test_the_developer_is_told_what_the_developer_can_do() -> None:
    registry = Registry()
    registry.query(policy=can("a:b"), mcp=expose("d"))(nothing)
    app = define_app_mcp(
        registry,
        name="x",
        include="exposed",
        scopes={"s": ["nothing"]},
        resolve_token=caller,
        error_audience="developer",
        rate_limits=None,
    )
    told = json.loads(ask("2025-11-25", "tools/call", app=app, name="nothing").body)["error"]["data"]
    assert told["fix"] == "let `resolve_token` return the scope `s` for this token"


def test_a_request_with_a_foreign_host_gets_no_body_or_an_error_without_id() -> None:
    foreign = Request("POST", "/mcp", (("Host", "evil.example"),), b"{}")
    body = sans_io(APP, foreign).body
    assert body == b"" or sorted(json.loads(body)) == ["error", "jsonrpc"]


# Members


def nulls(value: object, path: str = "") -> Iterable[str]:
    """Yield the paths of protocol members that are null; the app's own data may hold null."""
    if value is None:
        yield path
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from nulls(each, path)
    elif isinstance(value, dict):
        for name, each in cast("dict[str, object]", value).items():
            if name not in ("structuredContent", "inputSchema", "outputSchema"):
                yield from nulls(each, f"{path}/{name}")


@pytest.mark.parametrize("file", ["mcp_ladder.json", "mcp_results.json"])
def test_a_member_without_a_value_is_left_out(file: str) -> None:
    for case in cases_of(file):
        answer = sans_io(APP, case.request)
        newer = dict(case.request.headers).get("MCP-Protocol-Version") in ("2025-11-25", MODERN)
        allowed = set[str]() if newer or answer.status < 400 else {"/id"}
        body = answer.body.removeprefix(b"event: message\ndata: ")
        assert set(nulls(json.loads(body or b"{}"))) <= allowed, case.name


@pytest.mark.parametrize("revision", REVISIONS)
def test_structured_content_is_there_for_an_output_schema_and_never_for_an_error(revision: str) -> None:
    schemas = {each["name"]: each.get("outputSchema") for each in tools(revision)}
    posts: tuple[dict[str, Any], ...] = tuple(
        {"postId": each} for each in ("p1", "p2", "locked", "broken", "strange", "none")
    )
    seen: set[tuple[bool, bool]] = set()
    for name, arguments in itertools.product(schemas, ({}, {"bad": 1}, *posts)):
        told = result(ask(revision, "tools/call", name=name, arguments=arguments))
        failed, schema = told.get("isError", False), schemas[name]
        assert ("structuredContent" in told) == (schema is not None and not failed)
        if "structuredContent" in told and schema is not None:
            assert jsonschema_rs.is_valid(schema, told["structuredContent"])
            assert json.loads(told["content"][0]["text"]) == told["structuredContent"]
        seen.add((failed, schema is not None))
    assert len(seen) == 4


class Held(BaseModel):
    """A list that a tool of any kind can answer as structured content."""

    rows: list[int]


def listed() -> list[int]:
    return [1, 2]


def act() -> list[int]:
    return [1, 2]


def held() -> Held:
    return Held(rows=[1, 2])


def test_the_list_of_a_query_is_structured_and_that_of_another_tool_is_text() -> None:
    """As README says: whoever returns a list from an action or a hand-written tool holds it in a model."""
    registry = Registry()
    query = registry.query(policy=can("a:b"), mcp=expose("d"))(listed)
    app = define_app_mcp(
        registry,
        name="x",
        actions=[registry.action(policy=can("a:b"), mcp=expose("d"))(act)],
        queries=[query],
        tools={"hand": tool("d", listed, policy="a:b"), "model": tool("d", held, policy="a:b")},
        resolve_token=caller,
        grants=[grant("r", "any")],
        rate_limits=None,
    )
    told = {
        name: result(ask(MODERN, "tools/call", app=app, name=name))
        for name in ("listed", "act", "hand", "model")
    }
    rows = {"rows": [1, 2]}
    assert {name: each.get("structuredContent") for name, each in told.items()} == {
        "listed": rows,
        "act": None,
        "hand": None,
        "model": rows,
    }
    assert [json.loads(told[name]["content"][0]["text"]) for name in ("act", "hand")] == [[1, 2], [1, 2]]


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
def test_what_depends_on_the_caller_is_private_and_as_old_for_everyone(method: str) -> None:
    hints = {
        (told["cacheScope"], told["ttlMs"])
        for told in (result(ask(MODERN, method, caller)) for caller in EVERYONE)
    }
    assert {scope for scope, _ in hints} == {"private"}
    assert len({ttl for _, ttl in hints}) == 1
    assert all(type(ttl) is int and ttl >= 0 for _, ttl in hints)


@pytest.mark.parametrize("revision", LEGACY)
def test_older_revisions_see_no_member_of_the_newest(revision: str) -> None:
    told = {
        *result(ask(revision, "tools/list")),
        *result(ask(revision, "ping")),
        *result(ask(revision, "tools/call", name="listPosts")),
    }
    assert told == {"tools", "content", "structuredContent"}


def test_capabilities_do_not_depend_on_the_caller() -> None:
    discovered = [result(ask(MODERN, "server/discover", caller)) for caller in EVERYONE]
    opened = [result(ask("2025-11-25", "initialize", caller)) for caller in EVERYONE]
    for told in (discovered, opened):
        assert len({json.dumps(each["capabilities"]) for each in told}) == 1
    extensions = discovered[0]["capabilities"].pop("extensions")
    assert discovered[0]["capabilities"] == opened[0]["capabilities"]
    assert set(extensions) == {"io.modelcontextprotocol/tasks"}


def test_capabilities_do_not_depend_on_what_an_app_declares() -> None:
    """One that came with a tool, a resource or a prompt would show that something hidden is there."""
    for revision, method in ((MODERN, "server/discover"), ("2025-11-25", "initialize")):
        bare = result(ask(revision, method, app=served(declared(nothing), "t")))["capabilities"]
        assert bare == result(ask(revision, method))["capabilities"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_list_is_the_same_bytes_for_everyone_who_sees_the_same(revision: str) -> None:
    answers = [ask(revision, "tools/list", caller) for caller in ("editor", "reader", "editor")]
    assert len(set(answers)) == 1
    names = [each["name"] for each in tools(revision)]
    assert names == sorted(names)


# Instructions


def instructed(instructions: Any) -> App:
    registry = Registry()
    registry.query(policy=can("a:b"), mcp=expose("d"))(nothing)
    return define_app_mcp(
        registry,
        name="x",
        include="exposed",
        resolve_token=caller,
        instructions=instructions,
        rate_limits=None,
    )


def failing(_view: object) -> str:
    raise KeyError("secret")


def absent(_view: object) -> None:
    return None


def blank(_view: object) -> str:
    return " "


@pytest.mark.parametrize("given", [None, "", " \n", failing, absent, blank])
def test_instructions_without_a_text_are_not_sent(given: Any) -> None:
    app = instructed(given)
    assert "instructions" not in result(ask(MODERN, "server/discover", app=app))
    assert "instructions" not in result(ask("2025-11-25", "initialize", app=app))


def names_of(view: View) -> str:
    return ", ".join(view.table.tools)


def test_instructions_may_be_a_function_of_the_view() -> None:
    app = instructed(names_of)
    assert result(ask(MODERN, "server/discover", app=app))["instructions"] == "nothing"


# Answers that cannot be


class Measure(BaseModel):
    value: float


def infinite() -> Measure:
    return Measure(value=float("inf"))


def test_a_number_that_json_cannot_hold_is_no_answer() -> None:
    told = result(ask("2025-11-25", "tools/call", app=served(declared(infinite), "t"), name="t"))
    assert told["isError"] is True
    assert told["content"][0]["text"].startswith("X_OUTPUT_INVALID: ")


# The body, while it arrives


def arriving(headers: tuple[tuple[str, str], ...], *messages: dict[str, Any]) -> tuple[list[Any], int]:
    """Return what the application sent, and how many messages it took."""
    sent: list[Any] = []
    waiting = list(messages)

    async def receive() -> MutableMapping[str, Any]:
        assert waiting, "the application reads on"
        return waiting.pop(0)

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    whole = request("2025-11-25", "tools/call", name="listPosts")
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(name.lower().encode(), value.encode()) for name, value in (*whole.headers, *headers)],
        "client": None,
    }
    asyncio.run(asgi(APP)(scope, receive, send))
    return sent, len(messages) - len(waiting)


LIMIT: int = DESCRIBED["bodyLimitBytes"]


def chunk(size: int, *, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": b" " * size, "more_body": more}


@pytest.mark.parametrize("length", [str(LIMIT + 1), "9" * 40])
def test_a_body_announced_as_too_large_is_not_read(length: str) -> None:
    sent, taken = arriving((("Content-Length", length),), chunk(1, more=False))
    assert (sent[0]["status"], taken) == (413, 0)


@pytest.mark.parametrize("length", [(), (("Content-Length", "5"),), (("Content-Length", "-1"),)])
def test_a_body_that_grows_too_large_is_read_no_further(length: tuple[tuple[str, str], ...]) -> None:
    endless = [chunk(LIMIT // 2, more=True)] * 9
    sent, taken = arriving(length, *endless)
    assert (sent[0]["status"], taken) == (413, 3)


def test_a_caller_who_leaves_early_is_answered_nothing_and_ran_nothing() -> None:
    whole = request("2025-11-25", "tools/call", name="listPosts").body
    RAN.clear()
    sent, _ = arriving(
        (), {"type": "http.request", "body": whole, "more_body": True}, {"type": "http.disconnect"}
    )
    assert (sent, RAN) == ([], [])


def test_bytes_arrive_in_any_pieces() -> None:
    whole = request(MODERN, "tools/call", name="listPosts")
    answers = {in_process(APP, whole, size) for size in (None, 1, 2, 3, 7, 64)}
    assert answers == {sans_io(APP, whole)}
