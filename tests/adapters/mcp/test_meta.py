"""The constant surface over MCP: who is served it, what its three tools answer, how they are audited."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, Final, cast

import pytest
from mcp_types.methods import validate_server_result
from pydantic import BaseModel, Field

from nonsuch import (
    Agent,
    App,
    Context,
    Elicit,
    ListParams,
    Principal,
    Registry,
    can,
    define_app_mcp,
    expose,
    grant,
    group,
    render_catalog,
    tool,
)
from nonsuch.kernel.audit import Event, ToolCall
from nonsuch.kernel.declare import Group
from nonsuch.kernel.meter import Limits, Rate

from .asking import META, MODERN, REVISIONS, ask, request, result
from .wire import Answer, Request, in_process, sans_io

registry: Final = Registry()
META_TOOLS: Final = ("describe_resource", "list_resources", "manage_resource")
RAN: Final[list[str]] = []


class Batch(BaseModel):
    batchId: str = Field(json_schema_extra={"x-mcp-header": "Batch"})
    note: str | None = None


class Batches(BaseModel):
    status_eq: str | None = None
    secret_eq: str | None = None
    cursor: str | None = None
    limit: int = 20


class Total(BaseModel):
    batchId: str
    cents: int


class Name(BaseModel):
    name: str


WHITELIST: Final = ListParams({"status": ["_eq"]}, max_limit=50)


@registry.query(policy=can("payout:read"), mcp=expose("Batches, newest first", list_params=WHITELIST))
def listPayoutBatches(input: Batches) -> list[Total]:
    RAN.append("listPayoutBatches")
    return [Total(batchId="b1", cents=5)]


@registry.action(policy=can("payout:write"), mcp=expose("What a batch would pay", confirms=True))
def previewPayoutBatch(input: Batch) -> Total:
    RAN.append("previewPayoutBatch")
    return Total(batchId=input.batchId, cents=5)


@registry.action(policy=can("payout:write"), mcp=expose("Asks first", needs=["elicitation"]))
async def namePayout(ctx: Context[Any]) -> str:
    told = await ctx.client.ask({"name": Elicit("Which name?", Name)}, state={"round": 1})
    return json.dumps([dataclasses.asdict(each) for each in told.values()]) + json.dumps(ctx.client.state)


@registry.query(policy=can("payout:read"), mcp=expose("For staff", visible_to=["staff"]), single=True)
def audits() -> Total | None:
    return None


@registry.query(policy=can("payout:read"), mcp=expose("What this is"))
def docs() -> list[Total]:
    return []


PRINCIPALS: Final = {
    "agent": Agent("agent", roles={"reader"}, scopes={"payouts:read", "payouts:write"}),
    "staff": Agent("staff", roles={"reader", "staff"}, scopes={"payouts:read", "payouts:write"}),
    "bare": Agent("bare", roles={"reader"}),
}
AUDIT: Final[list[Event]] = []


GROUPS: Final = {
    "audits": group("What staff reads", ["audits"]),
    "payouts": group("Affiliate payouts", ["listPayoutBatches", "previewPayoutBatch", "namePayout"]),
}


def payouts(surface: Any = "meta", groups: dict[str, Group] = GROUPS, **given: Any) -> App:
    return define_app_mcp(
        registry,
        name="payouts",
        include="exposed",
        surface=surface,
        groups={} if surface == "flat" else groups,
        scopes={
            "payouts:read": ["listPayoutBatches", "docs", "audits"],
            "payouts:write": ["previewPayoutBatch", "namePayout"],
        },
        grants=[grant("reader", "any")],
        resolve_token=lambda token: PRINCIPALS.get(token),
        on_audit=AUDIT.append,
        **{"rate_limits": cast(Any, None), **given},
    )


APP, FLAT = payouts(), payouts("flat")


def call(revision: str, name: str, caller: str = "agent", app: App = APP, **arguments: Any) -> Answer:
    return ask(revision, "tools/call", caller, app, name=name, arguments=arguments)


def text(answer: Answer) -> str:
    told: str = result(answer)["content"][0]["text"]
    return told


def names(app: App, caller: str, revision: str = MODERN) -> list[str]:
    told = result(ask(revision, "tools/list", caller, app))
    validate_server_result("tools/list", revision, told)
    return [each["name"] for each in told["tools"]]


# who is served it


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_caller_is_served_three_tools_beside_those_of_no_resource(revision: str) -> None:
    assert names(APP, "agent", revision) == ["describe_resource", "docs", "list_resources", "manage_resource"]


def test_reading_tools_say_that_they_read_and_the_third_that_it_writes() -> None:
    told = {
        each["name"]: each["annotations"] for each in result(ask(MODERN, "tools/list", "agent", APP))["tools"]
    }
    assert [told[name]["readOnlyHint"] for name in META_TOOLS] == [True, True, False]
    assert told["manage_resource"]["destructiveHint"] is True


def only_agent(who: Principal) -> object:
    return who.id == "agent"


def named(who: Principal) -> object:
    return who.id


SURFACES: dict[str, tuple[Any, set[str]]] = {
    "roles": (["staff"], {"staff"}),
    "a function": (only_agent, {"agent"}),
    "a function that is merely truthy": (named, set()),
    "flat": ("flat", set()),
    "meta": ("meta", {"agent", "staff"}),
}


@pytest.mark.parametrize("case", SURFACES)
def test_a_surface_is_its_callers(case: str) -> None:
    surface, served = SURFACES[case]
    app = payouts(surface)
    flat = {"agent": names(FLAT, "agent"), "staff": names(FLAT, "staff")}
    for caller in ("agent", "staff"):
        constant = names(app, caller) == ["describe_resource", "docs", "list_resources", "manage_resource"]
        assert constant is (caller in served)
        assert constant or names(app, caller) == flat[caller]
        assert (app.mcp.catalog(PRINCIPALS[caller]) is not None) is (caller in served)


# what is told


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_list_is_the_catalog_of_its_caller_as_text(revision: str) -> None:
    for caller in ("agent", "staff"):
        catalog = APP.mcp.catalog(PRINCIPALS[caller])
        assert catalog is not None
        told = call(revision, "list_resources", caller)
        validate_server_result("tools/call", revision, result(told))
        assert text(told) == render_catalog(catalog)
        assert [each.name for each in catalog] == ["payouts"] if caller == "agent" else ["audits", "payouts"]


def test_the_list_of_a_caller() -> None:
    assert text(call(MODERN, "list_resources")).splitlines() == [
        "payouts (query scope payouts:read; action scope payouts:write) — Affiliate payouts",
        "  listPayoutBatches {status_eq?: string, cursor?: string, limit?: integer} — Batches, newest first",
        "  namePayout (action) {} — Asks first",
        "  previewPayoutBatch (action; confirms) {batchId: string, note?: string} — What a batch would pay",
    ]


def test_the_catalog_keeps_the_scope_of_each_action() -> None:
    catalog = APP.mcp.catalog(PRINCIPALS["agent"]) or ()
    assert {each.name: each.scope for held in catalog for each in held.actions} == {
        "listPayoutBatches": "payouts:read",
        "namePayout": "payouts:write",
        "previewPayoutBatch": "payouts:write",
    }


def test_a_caller_who_sees_no_resource_is_told_of_none() -> None:
    app = payouts(groups={"audits": GROUPS["audits"]})
    assert app.mcp.catalog(PRINCIPALS["agent"]) == ()
    assert text(call(MODERN, "list_resources", app=app)) == "no resources"


KINDS: dict[str, tuple[dict[str, Any], bool]] = {
    "a query": ({"kind": "query"}, False),
    "an action": ({"kind": "action"}, True),
    "an action that destroys nothing": ({"kind": "action", "destructive": False}, True),
    "a written tool": ({"kind": "tool"}, True),
    "a written tool that only reads": ({"kind": "tool", "destructive": False}, False),
    "a query that says it writes": ({"kind": "query", "hints": {"readOnlyHint": False}}, True),
    "an action that says it reads": ({"kind": "action", "hints": {"readOnlyHint": True}}, False),
    "a hint that is another": ({"kind": "action", "hints": {"destructiveHint": False}}, True),
}


@pytest.mark.parametrize("name", ["getAll", "deleteAll"])
@pytest.mark.parametrize("case", KINDS)
def test_what_is_tagged_is_declared_and_never_guessed_from_a_name(case: str, name: str) -> None:
    told, tagged = KINDS[case]
    face: dict[str, Any] = {"destructive": told["destructive"]} if "destructive" in told else {}
    other, written = Registry(), dict[str, Any]()

    def handle() -> str:
        return ""

    handle.__name__ = name
    if told["kind"] == "tool":
        written[name] = tool("Does", handle, policy="a:b", annotations=told.get("hints"), **face)
    else:
        declare = other.query if told["kind"] == "query" else other.action
        declare(policy=can("a:b"), mcp=expose("Does", annotations=told.get("hints")), **face)(handle)
    app = define_app_mcp(
        other, name="x", include="exposed", tools=written, surface="meta", groups={"r": group("R", [name])}
    )
    catalog = app.mcp.catalog(PRINCIPALS["agent"]) or ()
    kinds = [each.kind for held in catalog for each in held.actions]
    assert kinds == ["action" if tagged else "query"]
    assert ("(action)" in render_catalog(catalog)) is tagged


def test_a_description_holds_the_input_schemas_of_the_flat_list_and_the_whitelist() -> None:
    told = json.loads(text(call(MODERN, "describe_resource", "staff", resources=["payouts", "audits"])))
    flat = {each["name"]: each for each in result(ask(MODERN, "tools/list", "staff", FLAT))["tools"]}
    assert [each["resource"] for each in told["resources"]] == ["payouts", "audits"]
    for each in (action for held in told["resources"] for action in held["actions"]):
        assert each["inputSchema"] == flat[each["action"]]["inputSchema"]
        assert each["description"] == flat[each["action"]]["description"]
    whitelists = {each["action"]: each.get("listParams") for each in told["resources"][0]["actions"]}
    assert whitelists == {
        "listPayoutBatches": {"filters": {"status": ["_eq"]}, "maxLimit": 50},
        "namePayout": None,
        "previewPayoutBatch": None,
    }


class Search(BaseModel):
    status_eq: str | None = None
    sort: str | None = None
    fields: list[str] | None = None
    cursor: str | None = None
    limit: int = 20


WHITELISTS: tuple[tuple[ListParams, dict[str, Any]], ...] = (
    (ListParams(), {}),
    (ListParams(sort=("at",)), {"sort": ["at"]}),
    (
        ListParams({"status": ("_eq",)}, ["at"], ["id", "at"], 50),
        {"filters": {"status": ["_eq"]}, "sort": ["at"], "fields": ["id", "at"], "maxLimit": 50},
    ),
)


@pytest.mark.parametrize(("params", "told"), WHITELISTS)
def test_a_whitelist_is_told_by_what_it_admits(params: ListParams, told: dict[str, Any]) -> None:
    other = Registry()

    def search(input: Search) -> list[Total]:
        raise AssertionError(input)

    other.query(policy=can("a:b"), mcp=expose("Finds", list_params=params))(search)
    app = define_app_mcp(
        other,
        name="x",
        include="exposed",
        surface="meta",
        groups={"r": group("R", ["search"])},
        resolve_token=lambda token: PRINCIPALS.get(token),
        rate_limits=None,
    )
    (held,) = json.loads(text(call(MODERN, "describe_resource", app=app, resources=["r"])))["resources"]
    assert [each["listParams"] for each in held["actions"]] == [told]


def test_a_resource_is_described_once_and_an_unknown_name_is_said_back() -> None:
    asked = ["nothing", "payouts", "audits", "payouts", "nothing"]
    told = json.loads(text(call(MODERN, "describe_resource", resources=asked)))
    assert [each["resource"] for each in told["resources"]] == ["payouts"]
    assert told["unknown"] == ["nothing", "audits"]


INVALID: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("list_resources", {"x": 1}, "x: not an argument"),
    ("describe_resource", {}, "resources: required"),
    ("describe_resource", {"resources": "payouts"}, "resources: must be of type array"),
    ("describe_resource", {"resources": []}, "resources: breaks `minItems` 1"),
    ("describe_resource", {"resources": [1]}, "resources.0: must be of type string"),
    ("manage_resource", {"resource": "payouts"}, "action: required"),
    ("manage_resource", {"resource": 1, "action": "docs"}, "resource: must be of type string"),
    (
        "manage_resource",
        {"resource": "payouts", "action": "x", "params": "{}"},
        "params: must be of type object",
    ),
    (
        "manage_resource",
        {"resource": "payouts", "action": "x", "arguments": {}},
        "arguments: not an argument",
    ),
)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(("name", "arguments", "issue"), INVALID)
def test_arguments_of_the_three_tools_are_refused_as_those_of_any(
    revision: str, name: str, arguments: dict[str, Any], issue: str
) -> None:
    answer = call(revision, name, **arguments)
    assert result(answer)["isError"] is True
    assert text(answer).startswith(f"X_INPUT_INVALID: input for tool `{name}` failed validation: {issue}\n")


# the call


@pytest.mark.parametrize("revision", REVISIONS)
def test_params_may_be_left_out_where_none_are_required(revision: str) -> None:
    managed = call(revision, "manage_resource", resource="payouts", action="listPayoutBatches")
    headed = call(revision, "listPayoutBatches", app=FLAT)
    assert managed == headed
    assert result(managed)["structuredContent"] == {"rows": [{"batchId": "b1", "cents": 5}]}


def test_the_whitelist_is_held_to_before_the_query_runs() -> None:
    RAN.clear()
    answer = call(
        MODERN,
        "manage_resource",
        resource="payouts",
        action="listPayoutBatches",
        params={"secret_eq": "x", "limit": 51},
    )
    assert text(answer).startswith("X_INPUT_INVALID: input for tool `listPayoutBatches` failed validation: ")
    assert RAN == []


def test_a_scope_is_asked_for_as_by_name() -> None:
    for revision in REVISIONS:
        managed = call(
            revision,
            "manage_resource",
            "bare",
            resource="payouts",
            action="previewPayoutBatch",
            params={"batchId": "b1"},
        )
        headed = with_header("Mcp-Param-Batch", "b1", revision, "previewPayoutBatch", "bare", batchId="b1")
        assert managed == sans_io(FLAT, headed)
        assert json.loads(managed.body)["error"]["data"]["scope"] == "payouts:write"


def with_header(
    name: str, value: str, revision: str, tool: str, caller: str = "agent", **arguments: Any
) -> Request:
    plain = request(revision, "tools/call", caller, name=tool, arguments=arguments)
    return dataclasses.replace(plain, headers=(*plain.headers, (name, value)))


def test_headers_that_the_published_schema_does_not_ask_for_are_not_asked_for() -> None:
    """Its arguments are inside of `params`, which no header repeats."""
    bare = call(MODERN, "previewPayoutBatch", app=FLAT, batchId="b1")
    assert json.loads(bare.body)["error"]["code"] == -32020
    arguments: dict[str, Any] = {
        "resource": "payouts",
        "action": "previewPayoutBatch",
        "params": {"batchId": "b1"},
    }
    managed = call(MODERN, "manage_resource", **arguments)
    assert managed == sans_io(
        FLAT, with_header("Mcp-Param-Batch", "b1", MODERN, "previewPayoutBatch", batchId="b1")
    )
    assert managed == sans_io(
        APP, with_header("Mcp-Param-Batch", "other", MODERN, "manage_resource", **arguments)
    )


def test_a_capability_that_the_action_needs_is_asked_for_as_by_name() -> None:
    managed = call(MODERN, "manage_resource", resource="payouts", action="namePayout")
    assert json.loads(managed.body)["error"]["code"] == -32021
    assert managed == call(MODERN, "namePayout", app=FLAT)


def asked_of_able(name: str, **more: Any) -> Request:
    """A modern call of a client that can be asked."""
    plain = request(MODERN, "tools/call", "agent", name=name)
    message = json.loads(plain.body)
    able: dict[str, Any] = {"elicitation": {"form": {}}}
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": able}
    message["params"] = {"name": name, "_meta": meta, **more}
    return dataclasses.replace(plain, body=json.dumps(message).encode())


def test_a_round_is_taken_up_where_it_began_and_nowhere_else() -> None:
    arguments = {"resource": "payouts", "action": "namePayout"}
    first = result(in_process(APP, asked_of_able("manage_resource", arguments=arguments)))
    assert first["resultType"] == "input_required"
    again = {
        "requestState": first["requestState"],
        "inputResponses": {"name": {"action": "accept", "content": {"name": "Al"}}},
    }
    told = text(in_process(APP, asked_of_able("manage_resource", arguments=arguments, **again)))
    assert told == '[{"action": "accept", "content": {"name": "Al"}}]{"round": 1}'
    other = {**arguments, "resource": "audits"}
    for elsewhere in (
        in_process(APP, asked_of_able("manage_resource", arguments=other, **again)),
        in_process(FLAT, asked_of_able("namePayout", arguments={}, **again)),
    ):
        assert (
            json.loads(elsewhere.body)["error"]["data"]["fix"]
            == "send the request again without `requestState`"
        )


# what is audited and metered


def audited(act: Callable[[], object]) -> list[tuple[str, str, str | None]]:
    AUDIT.clear()
    act()
    events = cast("list[ToolCall]", AUDIT)
    return [(each.tool, each.outcome, each.code) for each in events]


def by_name(name: str, **arguments: Any) -> list[tuple[str, str, str | None]]:
    plain = request(MODERN, "tools/call", "agent", name=name, arguments=arguments)
    return audited(lambda: in_process(APP, plain))


def test_a_call_is_audited_under_the_name_of_what_it_runs() -> None:
    manage = "manage_resource"
    assert by_name(manage, resource="payouts", action="listPayoutBatches") == [
        ("listPayoutBatches", "ok", None)
    ]
    assert by_name(manage, resource="payouts", action="audits") == [
        ("audits", "hidden", "X_MCP_TOOL_UNKNOWN")
    ]
    assert by_name(manage, resource="payouts") == [(manage, "invalid-args", "X_INPUT_INVALID")]
    assert by_name("list_resources") == [("list_resources", "ok", None)]
    assert by_name("describe_resource", resources=["payouts"]) == [("describe_resource", "ok", None)]
    assert by_name("describe_resource", resources=["payouts", "audits"]) == [
        ("describe_resource", "hidden", "X_MCP_TOOL_UNKNOWN")
    ]
    assert by_name("docs") == [("docs", "ok", None)]


MANAGED: dict[str, dict[str, Any]] = {
    "a query": {"resource": "payouts", "action": "listPayoutBatches"},
    "a write": {"resource": "payouts", "action": "previewPayoutBatch", "params": {"batchId": "b"}},
    "a hidden one": {"resource": "audits", "action": "audits"},
    "an absent one": {"resource": "audits", "action": "nothing"},
    "one of another resource": {"resource": "audits", "action": "listPayoutBatches"},
    "no call": {"resource": "audits"},
}


@pytest.mark.parametrize("case", MANAGED)
def test_a_call_is_counted_as_what_it_runs(case: str) -> None:
    app = payouts(rate_limits=Limits(read=Rate(100), write=Rate(1)))
    asked = request(MODERN, "tools/call", "agent", name="manage_resource", arguments=MANAGED[case])
    statuses = [in_process(app, asked).status for _ in range(3)]
    assert statuses == ([200, 200, 200] if case == "a query" else [200, 429, 429])


@pytest.mark.parametrize("name", ["list_resources", "describe_resource"])
def test_reading_tools_are_counted_as_reading(name: str) -> None:
    app = payouts(rate_limits=Limits(read=Rate(1), write=Rate(100)))
    asked = request(MODERN, "tools/call", "agent", name=name, arguments={"resources": ["payouts"]})
    assert [in_process(app, asked).status for _ in range(2)] == [200, 429]
