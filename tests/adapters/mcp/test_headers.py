"""`x-mcp-header`: arguments that headers repeat must agree, for who sees the tool and in the newest revision.

Also `needs`: what a tool asks of its client before anything runs, and what boot says of headers.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from pydantic import BaseModel, Field

from nonsuch import App, BootError, grant, tool

from .live import LEGACY, MODERN, REVISIONS, Json, mirrored, request
from .stage import stage
from .wire import Answer, Request, sans_io

RAN: list[Json] = []


def header(name: Any) -> Any:
    return Field(default=None, json_schema_extra={"x-mcp-header": name})


class Inner(BaseModel):
    zone: str = "z"


class Place(BaseModel):
    region: str = Field(json_schema_extra={"x-mcp-header": "Region"})
    count: int = Field(default=1, json_schema_extra={"x-mcp-header": "Count"})
    dry: bool = Field(default=False, json_schema_extra={"x-mcp-header": "Dry-Run"})
    note: str = ""


def place(input: Place) -> str:
    RAN.append(input.model_dump())
    return "done"


def words() -> str:
    RAN.append({})
    return "words"


def for_nobody(_who: object) -> bool:
    return False


APP = stage(
    place,
    tools={
        "hidden": tool("H", place, policy="a:b", visible_to=for_nobody),
        "denied": tool("D", place, policy="c:d"),
        "sampler": tool("S", words, policy="a:b", needs=["sampling", "roots"]),
        "secret": tool("S", words, policy="a:b", needs=["sampling"], visible_to=for_nobody),
    },
    grants=[grant("r", "a:b")],
)


def call(
    revision: str, name: str = "t", arguments: Any = None, headers: Any = (), app: App = APP, **more: Any
) -> Answer:
    sent, body = request(
        revision, "tools/call", name=name, arguments=arguments or {}, headers=tuple(headers), **more
    )
    return sans_io(app, Request("POST", "/mcp", tuple(sent), body))


def mirror(**held: str) -> list[tuple[str, str]]:
    """`dry_run="x"` is the header `mcp-param-dry-run`."""
    return [("mcp-param-" + name.replace("_", "-"), value) for name, value in held.items()]


def coded(text: str | bytes) -> str:
    raw = text if isinstance(text, bytes) else text.encode()
    return f"=?base64?{base64.b64encode(raw).decode()}?="


AGREE: tuple[tuple[Json, dict[str, str]], ...] = (
    ({"region": "eu"}, {"region": "eu"}),
    ({"region": "eu"}, {"region": " eu\t"}),
    ({"region": "eu"}, {"region": coded("eu")}),
    ({"region": ""}, {"region": ""}),
    ({"region": " eu "}, {"region": coded(" eu ")}),
    ({"region": "\u00fc\n"}, {"region": coded("\u00fc\n")}),
    ({"region": "a, b"}, {"region": "a, b"}),
    ({"region": "=?base64?x?="}, {"region": coded("=?base64?x?=")}),
    ({"region": "eu", "count": 7}, {"region": "eu", "count": "7"}),
    ({"region": "eu", "count": -7}, {"region": "eu", "count": "-7"}),
    ({"region": "eu", "count": 7}, {"region": "eu", "count": "7.0"}),
    ({"region": "eu", "count": 0}, {"region": "eu", "count": "-0"}),
    ({"region": "eu", "dry": True}, {"region": "eu", "dry_run": "true"}),
    ({"region": "eu", "dry": False}, {"region": "eu", "dry_run": "false"}),
    ({"region": "eu", "note": "x"}, {"region": "eu", "note": "y"}),
    ({"region": "eu"}, {"region": "eu", "nothing": "x"}),
)
DISAGREE: tuple[tuple[str, str, Json, list[tuple[str, str]]], ...] = (
    ("Region", "region", {"region": "eu"}, []),
    ("Region", "region", {"region": "eu"}, mirror(region="us")),
    ("Region", "region", {"region": "eu"}, mirror(region="EU")),
    ("Region", "region", {"region": "eu"}, mirror(region="")),
    ("Region", "region", {"region": "eu"}, [*mirror(region="eu"), *mirror(region="eu")]),
    ("Region", "region", {"region": "eu"}, mirror(region=coded("us"))),
    ("Region", "region", {"region": "eu"}, mirror(region="=?base64?ZXV?=")),
    ("Region", "region", {"region": "eu"}, mirror(region="=?base64?ZXV=?=")),
    ("Region", "region", {"region": "eu"}, mirror(region="=?base64?%%?=")),
    ("Region", "region", {"region": "\u00ff"}, mirror(region=coded(b"\xff"))),
    ("Region", "region", {"region": "\u00ff"}, mirror(region="\u00ff")),
    ("Region", "region", {}, mirror(region="eu")),
    ("Region", "region", {"region": None}, mirror(region="eu")),
    ("Region", "region", {"region": ["eu"]}, mirror(region="eu")),
    ("Region", "region", {"region": {"eu": 1}}, mirror(region="eu")),
    ("Count", "count", {"region": "eu"}, mirror(region="eu", count="7")),
    ("Count", "count", {"region": "eu", "count": 7}, mirror(region="eu")),
    ("Count", "count", {"region": "eu", "count": 7}, mirror(region="eu", count="8")),
    ("Count", "count", {"region": "eu", "count": 7}, mirror(region="eu", count="7.5")),
    ("Count", "count", {"region": "eu", "count": 7}, mirror(region="eu", count="07x")),
    ("Count", "count", {"region": "eu", "count": 7}, mirror(region="eu", count="0x7")),
    ("Count", "count", {"region": "eu", "count": 7}, mirror(region="eu", count="+7")),
    ("Count", "count", {"region": "eu", "count": 7}, mirror(region="eu", count="7e0")),
    ("Count", "count", {"region": "eu", "count": 7}, mirror(region="eu", count="\u0667")),
    ("Count", "count", {"region": "eu", "count": 10**20}, mirror(region="eu", count="1" + "0" * 20)),
    ("Count", "count", {"region": "eu", "count": True}, mirror(region="eu", count="1")),
    ("Dry-Run", "dry", {"region": "eu", "dry": True}, mirror(region="eu", dry_run="True")),
    ("Dry-Run", "dry", {"region": "eu", "dry": True}, mirror(region="eu", dry_run="1")),
    ("Dry-Run", "dry", {"region": "eu", "dry": 1}, mirror(region="eu", dry_run="true")),
)


@pytest.mark.parametrize(("arguments", "headers"), AGREE, ids=str)
def test_a_call_whose_headers_agree_is_made(arguments: Json, headers: dict[str, str]) -> None:
    RAN.clear()
    answer = call(MODERN, arguments=arguments, headers=mirror(**headers))
    assert (answer.status, len(RAN)) == (200, 1)


@pytest.mark.parametrize(("name", "argument", "arguments", "headers"), DISAGREE, ids=str)
def test_a_call_whose_headers_disagree_is_not_made(
    name: str, argument: str, arguments: Json, headers: list[tuple[str, str]]
) -> None:
    RAN.clear()
    answer = call(MODERN, arguments=arguments, headers=headers)
    told = json.loads(answer.body)["error"]
    assert (answer.status, told["code"], RAN) == (400, -32020, [])
    assert told["message"] == f"the `Mcp-Param-{name}` header and the argument `{argument}` disagree"


@pytest.mark.parametrize("revision", LEGACY)
def test_the_older_revisions_read_no_such_header(revision: str) -> None:
    for headers in ([], mirror(region="us"), mirror(region="eu")):
        assert b'"done"' in call(revision, arguments={"region": "eu"}, headers=headers).body


DECLARED: tuple[Json, ...] = ({}, {"sampling": {}})
HEADERS: tuple[list[tuple[str, str]], ...] = (
    [],
    mirror(region="eu"),
    mirror(region="us"),
    mirror(region="=?base64?%?="),
    mirror(dry_run="x"),
)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("hidden", ["hidden", "secret"])
def test_a_header_tells_nothing_of_a_hidden_tool(revision: str, hidden: str) -> None:
    absent = "x" * len(hidden)
    for headers in HEADERS:
        for capabilities in DECLARED:
            held: Json = {"arguments": {"region": "eu"}, "headers": headers, "capabilities": capabilities}
            theirs, nobodys = (call(revision, name, **held) for name in (hidden, absent))
            assert theirs.body.replace(hidden.encode(), absent.encode()) == nobodys.body
            assert (theirs.status, theirs.headers) == (nobodys.status, nobodys.headers)


def test_headers_are_compared_after_scope_and_before_arguments_and_policy() -> None:
    app = stage(place, scopes={"s": ["t"]}, tools={})
    assert json.loads(call(MODERN, app=app).body)["error"]["data"]["code"] == "X_MCP_SCOPE_DENIED"
    assert call(MODERN, "denied", {"region": "eu"}).status == 400
    assert call(MODERN, arguments={"region": 7}).status == 400
    told = json.loads(call(MODERN, "denied", {"region": "eu"}, mirror(region="eu")).body)
    assert told["result"]["content"][0]["text"].startswith("X_FORBIDDEN: ")


# an argument inside of another


class Deep(BaseModel):
    @classmethod
    def model_json_schema(cls, *_: object, **__: object) -> Json:
        inner = {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}}
        return {"type": "object", "properties": {"at": inner}}

    at: Inner = Inner()


def deep(input: Deep) -> str:
    return input.at.zone


@pytest.mark.parametrize(
    ("arguments", "headers", "status"),
    [
        ({}, [], 200),
        ({"at": {}}, [], 200),
        ({"at": {"zone": "a"}}, mirror(zone="a"), 200),
        ({"at": {"zone": "a"}}, [], 400),
        ({"at": {"zone": "a"}}, mirror(zone="b"), 400),
        ({"at": {}}, mirror(zone="a"), 400),
        ({"at": 7}, mirror(zone="a"), 400),
    ],
    ids=str,
)
def test_an_argument_inside_of_another_is_repeated_too(arguments: Json, headers: Any, status: int) -> None:
    assert call(MODERN, arguments=arguments, headers=headers, app=stage(deep)).status == status


# what boot says


class Twice(BaseModel):
    one: str = header("Region")
    two: str = header("region")


class Spaced(BaseModel):
    one: str = header("a b")


class Underscored(BaseModel):
    one: str = header("a_b")


class Numbered(BaseModel):
    one: str = header(7)


class Listed(BaseModel):
    one: list[str] = header("One")


class Real(BaseModel):
    one: float = header("One")


class Optional_(BaseModel):
    one: str | None = header("One")


REFUSED: dict[type[BaseModel], str] = {
    Twice: "`t` gives two arguments the header `region`",
    Spaced: "`one` of `t` has an `x-mcp-header` outside of A-Z a-z 0-9 -",
    Underscored: "`one` of `t` has an `x-mcp-header` outside of A-Z a-z 0-9 -",
    Numbered: "`one` of `t` has an `x-mcp-header` outside of A-Z a-z 0-9 -",
    Listed: "`one` of `t` has an `x-mcp-header` and is no string, integer or boolean",
    Real: "`one` of `t` has an `x-mcp-header` and is no string, integer or boolean",
    Optional_: "`one` of `t` has an `x-mcp-header` and is no string, integer or boolean",
}


@pytest.mark.parametrize("model", REFUSED)
def test_a_header_that_clients_would_drop_the_tool_for_is_refused(model: type[BaseModel]) -> None:
    def handle(input: Any) -> str:
        return "done"

    handle.__annotations__ = {"input": model, "return": str}
    with pytest.raises(BootError) as told:
        stage(handle)
    assert [(each.code, each.cause) for each in told.value.faults] == [
        ("X_DECLARATION_INVALID", REFUSED[model])
    ]


def test_the_keyword_is_published_where_it_was_declared() -> None:
    headers, body = request(MODERN, "tools/list")
    told = json.loads(sans_io(APP, Request("POST", "/mcp", tuple(headers), body)).body)["result"]["tools"]
    (shown,) = [each for each in told if each["name"] == "t"]
    properties = shown["inputSchema"]["properties"]
    assert {name: held.get("x-mcp-header") for name, held in properties.items()} == {
        "region": "Region",
        "count": "Count",
        "dry": "Dry-Run",
        "note": None,
    }


# what a tool needs of its client

BOTH: Json = {"sampling": {}, "roots": {}}


@pytest.mark.parametrize(
    ("capabilities", "lacking"),
    [
        ({}, {"sampling": {}, "roots": {}}),
        ({"sampling": {}}, {"roots": {}}),
        ({"sampling": True, "roots": {}}, {"sampling": {}}),
        ({"elicitation": {}}, {"sampling": {}, "roots": {}}),
        ({"sampling": {}, "roots": {}}, None),
        ({"sampling": {"tools": {}}, "roots": {"listChanged": True}, "x": 1}, None),
    ],
    ids=str,
)
def test_a_tool_is_not_run_for_a_client_that_lacks_what_it_needs(
    capabilities: Json, lacking: Json | None
) -> None:
    RAN.clear()
    answer = call(MODERN, "sampler", capabilities=capabilities)
    if lacking is None:
        assert (answer.status, len(RAN)) == (200, 1)
        return
    told = json.loads(answer.body)["error"]
    assert (answer.status, told["code"], RAN) == (400, -32021, [])
    assert told["data"]["requiredCapabilities"] == lacking
    assert told["data"]["code"] == "X_MCP_CAPABILITY_MISSING"


@pytest.mark.parametrize("revision", LEGACY)
def test_in_the_older_revisions_a_need_is_found_out_by_asking(revision: str) -> None:
    RAN.clear()
    assert (call(revision, "sampler").status, len(RAN)) == (200, 1)


def test_a_header_value_of_the_tests_is_read_as_it_was_meant() -> None:
    """The control of the spellings above."""
    assert [mirrored(each) for each in ("eu", " eu", "\u00fc", "")] == [
        "eu",
        coded(" eu"),
        coded("\u00fc"),
        coded(""),
    ]
