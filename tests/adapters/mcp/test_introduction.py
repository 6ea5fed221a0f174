"""What a server says of itself: in `initialize`, in `server/discover`, and on every newer result."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types.methods import validate_server_result

from nonsuch import App, BootError, Icon, Registry, define_app_mcp, tool

from .asking import result
from .live import LEGACY, MODERN, REVISIONS, Json, request
from .stage import stage
from .wire import Request, sans_io

ICONS = (
    Icon("https://x.example/i.png", "image/png", ["48x48", "any"]),
    Icon("data:image/svg+xml;base64,AA=="),
)
DRAWN = [
    {"src": "https://x.example/i.png", "mimeType": "image/png", "sizes": ["48x48", "any"]},
    {"src": "data:image/svg+xml;base64,AA=="},
]
WHOLE = {
    "name": "stage",
    "version": "7",
    "title": "The stage",
    "websiteUrl": "https://x.example/",
    "icons": DRAWN,
}


def words() -> str:
    return "words"


def told(app: App, revision: str, method: str, **params: Any) -> Json:
    headers, body = request(revision, method, **params)
    return result(sans_io(app, Request("POST", "/mcp", tuple(headers), body)))


def dressed(**given: Any) -> App:
    return stage(
        words, version="7", title="The stage", website_url="https://x.example/", icons=ICONS, **given
    )


@pytest.mark.parametrize("revision", LEGACY)
def test_initialize_says_who_the_server_is(revision: str) -> None:
    answer = told(dressed(), revision, "initialize", protocolVersion=revision)
    assert answer["serverInfo"] == WHOLE
    validate_server_result("initialize", revision, answer)
    bare = told(stage(words), revision, "initialize", protocolVersion=revision)
    assert bare["serverInfo"] == {"name": "stage", "version": "0"}


@pytest.mark.parametrize(
    ("method", "params"),
    [("server/discover", {}), ("tools/list", {}), ("prompts/list", {}), ("tools/call", {"name": "t"})],
)
def test_every_result_of_the_newest_revision_says_who_the_server_is(method: str, params: Json) -> None:
    answer = told(dressed(), MODERN, method, **params)
    assert answer["_meta"] == {"io.modelcontextprotocol/serverInfo": WHOLE}
    validate_server_result(method, MODERN, answer)


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize(
    ("method", "params"), [("tools/list", {}), ("ping", {}), ("tools/call", {"name": "t"})]
)
def test_no_result_of_the_older_revisions_does(revision: str, method: str, params: Json) -> None:
    assert "_meta" not in told(dressed(), revision, method, **params)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_tool_has_its_title_and_its_pictures(revision: str) -> None:
    app = stage(tools={"t": tool("T", words, policy="a:b", title="A tool", icons=ICONS)})
    answer = told(app, revision, "tools/list")
    (listed,) = answer["tools"]
    assert (listed["title"], listed["icons"]) == ("A tool", DRAWN)
    validate_server_result("tools/list", revision, answer)
    (bare,) = told(stage(words), revision, "tools/list")["tools"]
    assert {"title", "icons"}.isdisjoint(bare)


@pytest.mark.parametrize(
    ("given", "cause", "fix"),
    [
        (
            {"secret": b"k" * 31},
            "`secret` is too short to seal anything",
            "give 32 random bytes or more, the same to every process",
        ),
        (
            {"secret": b""},
            "`secret` is too short to seal anything",
            "give 32 random bytes or more, the same to every process",
        ),
        ({"page_size": 0}, "`page_size` is no number of names", "give 1 or more, or None"),
        ({"page_size": -1}, "`page_size` is no number of names", "give 1 or more, or None"),
    ],
)
def test_what_seals_nothing_and_cuts_nothing_is_refused_at_boot(given: Json, cause: str, fix: str) -> None:
    with pytest.raises(BootError) as refused:
        define_app_mcp(Registry(), name="x", **given)
    assert [(each.code, each.cause, each.fix) for each in refused.value.faults] == [
        ("X_DECLARATION_INVALID", cause, fix)
    ]
