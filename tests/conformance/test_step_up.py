"""OAuth clients against a served app: each signs in, steps up when a scope is missing, and its call succeeds.

The authorization server is the tests' own; nobody is asked, so every step-up is the client's alone.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pytest

from .clients import javascript, program, python
from .environment import HERE
from .plan import ALL as ALL_TOOLS
from .plan import LEGACY, MODERN, PUBLISHED, ROWS, Row, always, answered, ask, call, no_tool, refused
from .watched import Service, fresh, serving

LEFT: Final = {"rows": [{"id": "d2", "title": None}]}
STEPS: Final[Sequence[Row]] = (
    Row(ask("tools"), always(ALL_TOOLS)),
    Row(call("listDrafts"), answered(ROWS), "ok"),
    Row(call("purgeDrafts"), no_tool("purgeDrafts"), "hidden"),  # whose scope is missing too: nobody is told
    Row(call("publishDraft", draftId="d1"), answered({"id": "d1", "published": True}), "ok"),
    Row(call("listDrafts"), answered(ROWS), "ok"),
    Row(call("deleteDraft", draftId="d1"), answered({"id": "d1", "published": True}), "ok"),
    Row(call("listDrafts"), answered(LEFT), "ok"),
    Row(call("publishDraft", draftId="d2"), refused(*PUBLISHED), "policy-denied"),
    Row(call("listDrafts"), answered(LEFT), "ok"),
)
# The scopes of each token that a client was issued: it asks for the missing one, and keeps those it had.
KEPT: Final = [["read"], ["read", "write"], ["delete", "read", "write"]]


@dataclass(frozen=True, slots=True)
class Client:
    """A client, how it names its era, the revision it must speak, and the tokens it comes to hold."""

    command: Callable[[], Sequence[str]]
    era: str
    revision: str
    tokens: Sequence[Sequence[str]] = tuple(KEPT)
    prefix: str = ""


def python_sdk() -> Sequence[str]:
    return [sys.executable, str(HERE / "client_step_up.py")]


TS, TS_SDK = (partial(javascript, f"client_{each}_step_up.mjs") for each in ("ts", "ts_sdk"))
CLIENTS: Final = {
    "mcp 2, legacy": Client(python_sdk, "legacy", LEGACY),
    "mcp 2, modern": Client(python_sdk, MODERN, MODERN),
    "mcp 1": Client(partial(python, "mcp1", "client_step_up.py"), "", LEGACY),
    "TypeScript client, legacy": Client(TS, "legacy", LEGACY),
    "TypeScript client, modern": Client(TS, "modern", MODERN),
    "TypeScript sdk": Client(TS_SDK, "", LEGACY, prefix="MCP error -32601: "),
}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """The drafts app behind OAuth."""
    with serving("oauth") as running:
        yield running


@pytest.mark.parametrize("name", CLIENTS)
def test_an_oauth_client_steps_up_and_its_call_succeeds(name: str, service: Service) -> None:
    client, caller = CLIENTS[name], fresh("client")
    sessions = [{"token": caller, "steps": [row.step for row in STEPS]}]
    [walked] = program(client.command, {"url": service.url, "era": client.era, "sessions": sessions})
    expected = [row.met(client.revision) for row in STEPS]
    expected[2] = {**expected[2], "message": client.prefix + expected[2]["message"]}
    assert walked == expected
    assert [each["scopes"] for each in service.seen("token", caller)] == list(client.tokens)
    refusals = len(client.tokens) - 1
    events = service.events(caller, sum(row.outcome is not None for row in STEPS) + refusals)
    assert [each["outcome"] for each in events if each["outcome"] != "scope-denied"] == [
        row.outcome for row in STEPS if row.outcome is not None
    ]
    requests = [each for each in service.seen("request", caller) if each["method"] == "POST"]
    assert [each["status"] for each in requests if each["status"] >= 400] == [403] * refusals
    assert {each["version"] for each in requests} - {None} == {client.revision}
