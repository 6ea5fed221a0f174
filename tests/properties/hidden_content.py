"""Resources, templates and prompts of the two worlds, and tools that read more of a request than arguments.

Values only.
"""

from __future__ import annotations

from typing import Final

from ..rules import Argument, Asked, Content, OfOrg, Roles, Tool

_STAFF: Final = Roles(("staff",))
_SOME: Final = Asked(frozenset({"edit", "vera", "part"}))
_ROOT: Final = Asked(frozenset({"root", "over"}), frozenset({"nobody", "edit"}), frozenset({"vera", "part"}))
_REGION: Final = (Argument("region", default="eu", header="Region"),)
NO_TOOLS: Final[tuple[Tool, ...]] = ()

# tools that read more of a request than its arguments

PARTICULAR: Final = (
    Tool("putDoc", "docs/put", permission="app:use", arguments=_REGION, behaves="speaks"),
    Tool("askDoc", kind="tool", permission="app:use", behaves="asks"),
    Tool("needDoc", kind="tool", permission="app:use", needs=("sampling",)),
)
HIDDEN_PARTICULAR: Final = (
    Tool("putDocs", "docs/puts", "action", True, _STAFF, "seat:count", None, _REGION, "speaks"),
    Tool("askDocs", kind="tool", audience=_STAFF, permission="seat:count", behaves="asks"),
    Tool("needDocs", kind="tool", audience=_STAFF, permission="seat:count", needs=("sampling", "roots")),
)

# resources, templates, prompts

_VALUES: Final = ("d1", "d2", "x1")
VISIBLE_CONTENT: Final = (
    Content("guide", "resource", "app://guide", behaves="speaks"),
    Content("plans", "resource", "app://plans", Roles(("editor",)), "docs:read"),
    Content("doc", "template", "app://docs/{id}", completes=_VALUES),
    Content("draft", "template", "app://drafts/{id}.txt", OfOrg("acme"), None, "doc:list", _VALUES),
    Content("greet", "prompt", completes=("ann", "bob")),
    Content("plan", "prompt", "", Roles(("editor",)), "docs:write", completes=("ann", "art")),
    Content("sum", "prompt", "", _SOME, None, "doc:list", ("ann",), "asks"),
)
HIDDEN_CONTENT: Final = (
    Content("guides", "resource", "app://guides", OfOrg("hq"), "vault", "vault:list"),
    Content("aaaPage", "resource", "app://aaa", _STAFF),
    Content("vault", "template", "app://vault/{id}", _STAFF, completes=("d1", "v2")),
    Content("docx", "template", "app://docs/x/{id}", _ROOT, None, "doc:list", ("d1",)),
    Content("greets", "prompt", "", _STAFF, completes=("ann", "zed")),
    Content("planB", "prompt", "", OfOrg("hq"), "vault", "vault:list", ("ann",), "speaks"),
    Content("nobodySays", "prompt", "", Roles(())),
)
HIDDEN_CONTENT_NAMES: Final = tuple(each.name for each in HIDDEN_CONTENT)
CONTENT: Final = {each.name: each for each in (*VISIBLE_CONTENT, *HIDDEN_CONTENT)}

URIS: Final = (
    *(each.uri for each in CONTENT.values() if each.kind == "resource"),
    "app://docs/d1",
    "app://docs/x/d1",
    "app://docs/x%2Fd1",
    "app://drafts/d1.txt",
    "app://vault/d1",
    "app://vault/",
    "app://nothing",
)
TEMPLATES: Final = tuple(each.uri for each in CONTENT.values() if each.kind == "template")
PROMPTS: Final = tuple(each.name for each in CONTENT.values() if each.kind == "prompt")
HEADERS: Final[tuple[tuple[tuple[str, str], ...], ...]] = (
    (),
    (("mcp-param-region", "eu"),),
    (("mcp-param-region", "us"),),
    (("mcp-param-region", "eu"), ("mcp-param-region", "eu")),
    (("mcp-param-region", "=?base64?%?="),),
    (("mcp-param-other", "eu"),),
)
CAPABILITIES: Final[tuple[dict[str, object], ...]] = (
    {},
    {"sampling": {}},
    {"sampling": {}, "roots": {}, "elicitation": {}},
)
CONDITIONS: Final = (
    ("if-none-match", "*"),
    ("if-none-match", '"x"'),
    ("if-modified-since", "Tue, 28 Jul 2026 12:00:00 GMT"),
    ("range", "bytes=0-9"),
    ("cache-control", "only-if-cached"),
    ("mcp-session-id", "x"),
    ("last-event-id", "1"),
)
PROMPT_ARGUMENTS: Final[tuple[object, ...]] = (
    {"id": "ann"},
    {},
    {"id": 7},
    {"id": None},
    {"id": "ann", "extra": "x"},
    {"Id": "ann"},
    [],
    None,
    "id",
)
