"""What every client does with the drafts app, what it meets in each revision, and what is audited of it.

The oracle is this table. Knows no client: how one shows what it met is said in `clients.py`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .client_walk import Met

LEGACY, MODERN = "2025-11-25", "2026-07-28"
Step = tuple[str, str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Row:
    """A step, what it meets in a revision, and the outcome that is audited.

    ``brief`` rows are enough for a client that starts anew for each of them.
    """

    step: Step
    met: Callable[[str], Met]
    outcome: str | None = None
    brief: bool = False

    @property
    def event(self) -> tuple[str, str] | None:
        """What is audited: the name that was sent, and the outcome."""
        return None if self.outcome is None else (self.step[1], self.outcome)


# What is met


def always(met: Met) -> Callable[[str], Met]:
    return lambda revision: met


def answered(value: object, *, structured: bool = True) -> Callable[[str], Met]:
    text = json.dumps(value, separators=(",", ":"))
    return always({"isError": False, "text": text, "structured": value if structured else None})


def refused(code: str, cause: str, fix: str) -> Callable[[str], Met]:
    return always({"isError": True, "text": f"{code}: {cause}\nfix: {fix}", "structured": None})


def no_tool(name: str) -> Callable[[str], Met]:
    message = f"tool not found: {name} - call tools/list to read the catalog this caller may use"
    return lambda revision: {
        "code": -32602 if revision == MODERN else -32601,
        "message": message,
        "data": None,
    }


def no_prompt(revision: str) -> Met:
    message = "prompt not found - call prompts/list to read what there is"
    return {"code": -32602, "message": message, "data": None}


def no_resource(uri: str) -> Callable[[str], Met]:
    message = "resource not found - call resources/list and resources/templates/list to read what there is"
    return lambda revision: {
        "code": -32602 if revision == MODERN else -32002,
        "message": message,
        "data": {"uri": uri},
    }


SCOPE_FIX: Final = "ask for a token with the scope `delete`"
SCOPE_CAUSE: Final = "`deleteDraft` needs the scope `delete`, which this connection's token does not carry"
SCOPE: Final[Met] = {
    "code": -32600,
    "message": SCOPE_CAUSE,
    "data": {"code": "X_MCP_SCOPE_DENIED", "fix": SCOPE_FIX, "scope": "delete"},
}
FEW: Final = {"tools": ["countDrafts", "listDrafts", "rateDrafts", "watchDrafts"]}
ALL: Final = {
    "tools": ["countDrafts", "deleteDraft", "listDrafts", "publishDraft", "rateDrafts", "watchDrafts"]
}
ROWS: Final = {"rows": [{"id": "d1", "title": None}, {"id": "d2", "title": None}]}
PUBLISHED: Final = ("X_FORBIDDEN", "the draft is published already", "choose another draft")
ABSENT: Final = (
    "X_FORBIDDEN",
    "no policy permits `draft:publish` here",
    "ask the account owner for the permission `draft:publish`, or name one that you may act on",
)
INVALID: Final = (
    "X_INPUT_INVALID",
    "input for tool `publishDraft` failed validation: "
    "draftId: must be of type string; extra: not an argument",
    "correct the named fields and send the call again",
)

# What is done


def call(name: str, **arguments: Any) -> Step:
    return ("call", name, arguments)


def ask(what: str, name: str = "", **arguments: Any) -> Step:
    return (what, name, arguments)


LIST: Final = Row(ask("tools"), always(ALL), brief=True)
READ: Final = Row(call("listDrafts"), answered(ROWS), "ok")
EDITOR: Final[Sequence[Row]] = (
    LIST,
    Row(call("listDrafts"), answered(ROWS), "ok", brief=True),
    Row(call("purgeDrafts"), no_tool("purgeDrafts"), "hidden", brief=True),
    READ,
    Row(call("noSuchTool"), no_tool("noSuchTool"), "hidden", brief=True),
    READ,
    Row(call("deleteDraft", draftId="d1"), always(SCOPE), "scope-denied", brief=True),
    READ,
    Row(call("publishDraft", draftId="d2"), refused(*PUBLISHED), "policy-denied", brief=True),
    READ,
    Row(call("publishDraft", draftId="d1"), answered({"id": "d1", "published": True}), "ok"),
    Row(call("publishDraft", draftId="d1"), refused(*PUBLISHED), "policy-denied"),
    Row(call("publishDraft", draftId=7, extra=True), refused(*INVALID), "invalid-args"),
    Row(call("publishDraft", draftId="none"), refused(*ABSENT), "policy-denied"),
    Row(call("countDrafts"), answered(2, structured=False), "ok"),
    Row(ask("prompts"), always({"prompts": ["summarizeDraft"]})),
    Row(
        ask("prompt", "summarizeDraft", draftId="d1"),
        always({"messages": [["user", "Summarize the draft d1."]]}),
        "ok",
        brief=True,
    ),
    Row(ask("prompt", "briefOwner"), no_prompt, "hidden", brief=True),
    Row(ask("prompt", "noSuchPrompt"), no_prompt, "hidden"),
    Row(ask("resources"), always({"resources": ["drafts://all"]})),
    Row(ask("read", "drafts://all"), always({"read": '["d1","d2"]'}), "ok"),
    Row(ask("read", "drafts://one/d2"), always({"read": '{"id":"d2","published":true}'}), "ok", brief=True),
    Row(ask("read", "drafts://ledger"), no_resource("drafts://ledger"), "hidden", brief=True),
    Row(ask("read", "drafts://none"), no_resource("drafts://none"), "hidden"),
    READ,
    Row(ask("tools"), always(ALL)),
)
VIEWER: Final[Sequence[Row]] = (
    Row(ask("tools"), always(FEW), brief=True),
    Row(call("publishDraft", draftId="d1"), no_tool("publishDraft"), "hidden", brief=True),
    READ,
)

# What a framework's own agent does for its model: its steps, and nothing else of it, are in no specification
RUNS: Final[Sequence[Step]] = (
    ask("run", "listDrafts"),
    ask("run", "publishDraft", draftId="d2"),
    ask("run", "deleteDraft", draftId="d1"),
    ask("run", "listDrafts"),
)
