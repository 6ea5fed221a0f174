"""Two apps, A with things that some callers may not see and B in which these were never declared.

What a low caller does happens in both and every byte is compared; others act on the hidden tools in A alone.
Who may see what is taken from `rules.py`, never from the kernel.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterable, Sequence
from typing import Final

from nonsuch.kernel.audit import Event, ToolCall

from .. import rules
from ..content_rules import sees
from ..rules import Argument, Asked, Caller, OfOrg, Published, Roles, Row, Rule, SameOrg, Says, Tool, Twice
from ..world import (
    HOST,
    MODERN,
    REVISIONS,
    TYPED,
    WIRES,
    Answer,
    Request,
    World,
    bearer,
    call,
    http,
    mcp,
    over,
    principal,
)
from .hidden_content import CONTENT, HIDDEN_CONTENT, HIDDEN_PARTICULAR, PARTICULAR, VISIBLE_CONTENT

# who calls

_DOCS: Final = frozenset({"docs:read", "docs:write"})
_PERSON: Final = Caller("paula", "human", frozenset({"editor"}), "acme", None)
LOW: Final = {
    "none": Caller("nobody"),
    "edit": Caller("edit", "agent", frozenset({"editor"}), "acme", _DOCS),
    "part": Caller("part", "agent", frozenset({"editor", "viewer"}), "acme", frozenset({"docs:read"})),
    # an agent that may do more than its human: what it shows is what both may see
    "over": Caller("over", "agent", frozenset({"staff", "editor"}), "hq", _DOCS | {"vault"}, _PERSON),
    "view": Caller("vera", "human", frozenset({"viewer"}), "acme", None),
}
SWING_BEFORE: Final = Caller("swing", "agent", frozenset({"staff", "editor"}), "hq", _DOCS | {"vault"})
SWING_AFTER: Final = dataclasses.replace(SWING_BEFORE, roles=frozenset({"editor"}), org="acme")
HIGH: Final = {
    "root": Caller("root", "agent", frozenset({"staff", "editor"}), "hq", _DOCS | {"vault"}),
    "boss": Caller("boss", "human", frozenset({"staff", "viewer"}), "hq", None),
}

# what is declared

_AMOUNT: Final = (Argument("amount", "int", default=3), Argument("note", optional=True))
_STAFF: Final = Roles(("staff",))
VISIBLE: Final = (
    Tool("readDoc", "docs/read", permission="doc:read", acts_on="Doc", arguments=_AMOUNT),
    Tool("writeDoc", "docs/write", "action", True, Roles(("editor",)), "doc:write", "Doc", _AMOUNT),
    Tool("listDocs", "docs/list", "query", permission="doc:list"),
    Tool("acmeDocs", "docs/acme", "query", True, OfOrg("acme"), "doc:list"),
    Tool("someDocs", "docs/some", "single", True, Asked(frozenset({"edit", "vera", "part"})), "doc:list"),
    Tool("seatCount", kind="tool", permission="app:use"),
    Tool("quiet", "docs/quiet", exposed=False, permission="doc:list"),
    Tool("sendDoc", "docs/send", permission="doc:list", acts_on="Doc", arguments=_AMOUNT, confirms=True),
    *PARTICULAR,
)
HIDDEN: Final = (
    Tool("readDocs", "docs/reads", "action", True, _STAFF, "doc:read", "Doc", _AMOUNT),
    Tool("writeDo", "docs/writ", "action", True, OfOrg("hq"), "vault:open", "Vault", _AMOUNT, confirms=True),
    Tool("aaaFirst", "aaa", "query", True, _STAFF, "vault:list"),
    Tool(
        "zzzLast",
        "zzz",
        "single",
        True,
        Asked(frozenset({"root", "over"}), frozenset({"nobody", "edit"}), frozenset({"vera", "part"})),
        "doc:list",
    ),
    Tool("nobodys", "docs/nobodys", "action", True, Roles(()), "doc:read", "Doc"),
    Tool(
        "docs",
        "docs",
        "action",
        True,
        OfOrg("hq"),
        "doc:write",
        "Doc",
        (Argument("amount", "int"),),
        confirms=True,
    ),
    Tool("seatCounts", kind="tool", audience=_STAFF, permission="seat:count"),
    *HIDDEN_PARTICULAR,
)
HIDDEN_NAMES: Final = tuple(tool.name for tool in HIDDEN)
_SCOPE_OF: Final = {
    "readDoc": "docs:read",
    "listDocs": "docs:read",
    "acmeDocs": "docs:read",
    "someDocs": "docs:write",
    "writeDoc": "docs:write",
    "readDocs": "docs:read",
    "docs": "docs:write",
    "seatCount": "docs:read",
    "putDoc": "docs:read",
    "askDoc": "docs:write",
    "needDoc": "docs:read",
    "sendDoc": "docs:read",
    "putDocs": "docs:read",
}
_RULES: Final = (
    Rule("permit", "doc:write", SameOrg(), "editor"),
    Rule("forbid", "doc:write", Twice("amount", 100), None, "X_TOO_MUCH", "that is too much"),
    Rule("permit", "vault:open", Published(), "staff"),
    Rule("forbid", "readDoc", Says("note", "stop")),
    Rule("forbid", "readDocs", Says("note", "halt")),
    Rule("permit", "any", role="root"),
)
_GRANTS: Final = (
    ("viewer", "doc:read"),
    ("viewer", rules.DECIDE),
    ("editor", "doc:list"),
    ("editor", "vault:list"),
    ("staff", "doc:read"),
    ("staff", "seat:count"),
    ("editor", "app:use"),
)
_ROWS: Final = {
    "Doc": {"d1": Row("acme"), "d2": Row("hq", published=True)},
    "Vault": {"d1": Row("hq", published=True)},
}


def declared(names: Iterable[str], *, scoped: bool) -> rules.World:
    """The world of some tools and some content: with what speaks of these, and without the rest."""
    everything = rules.World(
        tools=(*HIDDEN[:4], *VISIBLE, *HIDDEN[4:]),
        grants=_GRANTS,
        rules=_RULES,
        rows=_ROWS,
        content=(*HIDDEN_CONTENT[:3], *VISIBLE_CONTENT, *HIDDEN_CONTENT[3:]),
    )
    chosen = {*names, "sendDoc", *(each.name for each in VISIBLE_CONTENT)}  # in both people decide something
    known = [*(tool.name for tool in everything.tools), *CONTENT]
    world = rules.purge(everything, [name for name in known if name not in chosen])
    scopes: dict[str, tuple[str, ...]] = {}
    for tool in world.tools:
        scope = _SCOPE_OF.get(tool.name, "vault")
        if tool.exposed:
            scopes[scope] = (*scopes.get(scope, ()), tool.name)
    return dataclasses.replace(world, scopes=scopes if scoped else None)


# what is sent

ARGUMENTS: Final[Sequence[dict[str, object]]] = (
    {"id": "d1"},
    {"id": "d2", "note": "stop"},
    {"id": "nothing"},
    {},
    {"id": 7},
    {"id": None},
    {"id": "d1", "extra": 1},
    {"id": "d1", "idempotencyKey": "k1"},
    {"id": "d1", "amount": 10.0},
    {"id": "d1", "amount": 2**62},
    {"id": "d1", "amount": 2**64},
    {"id": "d1", "amount": True},
    {"idempotencyKey": "k1"},
)
NO_OBJECTS: Final[Sequence[object]] = ([], None, "id", 7)
MALFORMED: Final = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'{"id":"d1","id":"d1"}',
    b'{"id":NaN}',
    b'{"id":"\\ud800"}',
    b"\xef\xbb\xbf{}",
    b"{}{}",
    b"[" * 70 + b"]" * 70,
)
LARGE: Final = b'{"id":"' + b"x" * 2**20
PASSIVE: Final = (
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "logging/setLevel",
    "subscriptions/listen",
    "nothing",
)
METHODS: Final = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE")


def spellings(name: str) -> list[str]:
    """A name in its own spelling and in spellings that somebody might fold into it."""
    return [
        name,
        name.upper(),
        name.lower(),
        name[0].swapcase() + name[1:],
        f" {name}",
        f"{name} ",
        f"{name[0]}\u200b{name[1:]}",
        "".join(chr(ord(char) + 0xFEE0) for char in name),
        f"world.{name}",
        f"{name}%20",
        f"{name}/",
        name + "x" * 120,
    ]


def near(name: str) -> list[str]:
    """Names at distance one and two."""
    return [name[:-1], name + "x", name[1:], name[:2] + name[3:], "x" + name[1:] + "x"]


def absent(name: str) -> str:
    """A name of the same length that no world declares."""
    return name[::-1].swapcase()


class Two:
    """The two worlds, and what a low caller does in both."""

    def __init__(
        self, visible: Iterable[str], hidden: Iterable[str], *, scoped: bool, page_size: int | None = None
    ) -> None:
        self.hidden = sorted(hidden)
        names = [*visible, *self.hidden]
        everybody = {**LOW, **HIGH, "swing": SWING_BEFORE}
        tokens = {token: principal(caller) for token, caller in everybody.items()}
        self.a = World(declared(names, scoped=scoped), dict(tokens), None, page_size)
        self.b = World(rules.purge(self.a.declared, self.hidden), dict(tokens), None, page_size)
        self.low = dict(LOW)
        self._chance = random.Random(0)  # noqa: S311 - the same order of wires in every run
        self._premise()

    def _premise(self) -> None:
        for caller in self.low.values():
            for surface in ("mcp", "http", "agent"):
                assert rules.visible(self.a.declared, caller, surface).isdisjoint(self.hidden)
            seen = {each.name for each in self.a.declared.content if sees(each, caller)}
            assert seen.isdisjoint(self.hidden)

    # low actions: in both worlds, everything compared

    def same(self, request: Request) -> Answer:
        """Send to both worlds, over any wire; answers, handlers that ran and audit events are equal.

        But for `declared`. A request that says how it is to be answered is sent as it is.
        """
        if "accept" not in dict(request.headers):
            request = over(request, self._chance.choice(WIRES))
        seen: list[tuple[Answer, list[tuple[str, str]], list[Event]]] = []
        for world in (self.a, self.b):
            ran, heard = len(world.ran), len(world.audit)
            answer = world.send(request)
            seen.append((answer, world.ran[ran:], [undeclared(each) for each in world.audit[heard:]]))
        assert seen[0] == seen[1], f"{request} shows what is hidden"
        return seen[0][0]

    def passive(self, token: str | None) -> None:
        """Everything that is there without naming a tool."""
        for revision in REVISIONS:
            for method in PASSIVE:
                self.same(mcp(token, revision, method, {"protocolVersion": revision}))
                self.same(mcp(token, revision, method, ident=None))
            self.same(mcp(token, revision, "tools/list", {"cursor": "0"}))
        for path in ("", "openapi.json", "docs/", "nothing"):
            for method in METHODS:
                self.same(http(token, path, b"", method))
        self.same(Request("GET", "/", (HOST, *bearer(token))))
        self.same(Request("GET", "/mcp", (HOST, *bearer(token))))

    def calls(self, token: str | None, name: str, arguments: dict[str, object]) -> None:
        """One call through every door: three revisions, the notification form, HTTP."""
        for revision in REVISIONS:
            self.same(call(token, revision, name, arguments))
            self.same(call(token, revision, name, arguments, ident=None))
        for path in self.paths(name):
            self.same(http(token, path, arguments))

    def paths(self, name: str) -> list[str]:
        """The HTTP paths of a name: as declared, and as if it were one."""
        return sorted({name, *(tool.path or name for tool in (*VISIBLE, *HIDDEN) if tool.name == name)})

    def arguments(self, token: str | None, name: str) -> None:
        """Every kind of argument."""
        for arguments in ARGUMENTS:
            self.calls(token, name, arguments)
        for wrong in NO_OBJECTS:
            for revision in REVISIONS:
                self.same(mcp(token, revision, "tools/call", {"name": name, "arguments": wrong}))
        for revision in REVISIONS:
            self.same(mcp(token, revision, "tools/call", {"name": name}))
            self.same(mcp(token, revision, "tools/call", {"name": [name]}))

    def spelled(self, token: str | None, name: str) -> None:
        """Every spelling, as a tool and as a path."""
        for spelling in (*spellings(name), *near(name)):
            self.same(call(token, REVISIONS[1], spelling, {"id": "d1"}))
            self.same(call(token, MODERN, spelling, {"id": "d1"}))
        for path in self.paths(name):
            for spelling in (*spellings(path), *near(path)):
                self.same(http(token, spelling, {"id": "d1"}))

    def doors(self, token: str | None, name: str) -> None:
        """The method matrix, bodies that cannot be read, headers that contradict."""
        for path in self.paths(name):
            for method in METHODS:
                self.same(http(token, path, b"", method))
            for body in MALFORMED:
                self.same(http(token, path, body))
            self.same(Request("POST", f"/api/{path}", (HOST, *bearer(token)), b"{}"))
            self.same(Request("POST", f"/api/{path}", (HOST, *bearer(token), TYPED), LARGE))
        for revision in REVISIONS:
            honest = call(token, revision, name, {"id": "d1"})
            for header in (("mcp-name", name), ("mcp-name", "other"), ("mcp-param-id", "d2")):
                self.same(dataclasses.replace(honest, headers=(*honest.headers, header)))
            kept = tuple(each for each in honest.headers if each[0] != "mcp-name")
            self.same(dataclasses.replace(honest, headers=kept))
            self.same(dataclasses.replace(honest, body=honest.body[:-1]))
            self.same(dataclasses.replace(honest, body=b"[" + honest.body + b"]"))

    def relabelled(self, token: str, name: str) -> None:
        """In A alone: a hidden name answers as an absent one of its length, once its name is replaced."""
        other = absent(name)
        for revision in REVISIONS:
            for arguments in ARGUMENTS:
                real = self.a.send(call(token, revision, name, arguments))
                none = self.a.send(call(token, revision, other, arguments))
                body = real.body.replace(name.encode(), other.encode())
                assert dataclasses.replace(real, body=body) == none
        for path in self.paths(name):
            for body in MALFORMED:
                assert self.a.send(http(token, path, body)) == self.a.send(http(token, absent(path), body))

    # high actions: on what is hidden, in A only

    def confirmed(self, token: str, decision: str, arguments: dict[str, object]) -> None:
        """A call that waits, what a person of the caller's organisation does with it, and the call again."""
        asked = self.same(call(token, MODERN, "sendDoc", arguments))
        found = re.search(rb"confirmation `([0-9a-f]{32})`", asked.body)
        ident = "0" * 32 if found is None else found[1].decode()
        for who in ("view", "part", None):
            told = {"id": ident, "decision": decision, "arguments": arguments}
            self.same(http(who, "decide", {"id": ident, "decision": "view"}))
            self.same(http(who, "decide", told))
        self.same(call(token, MODERN, "sendDoc", arguments))
        self.same(http(token, "docs/send", arguments))

    def burst(self, token: str, names: Sequence[str]) -> None:
        """Somebody who sees the hidden tools uses them."""
        for revision in REVISIONS:
            for method in ("tools/list", "initialize", "resources/list", "prompts/list"):
                self.a.send(mcp(token, revision, method))
            for name in names:
                for arguments in ARGUMENTS[:8]:
                    self.a.send(call(token, revision, name, arguments))
        for name in names:
            for path in self.paths(name):
                self.a.send(http(token, path, {"id": "d1"}))

    def shared(self, token: str, name: str, arguments: dict[str, object]) -> None:
        """Somebody else uses what both worlds have; what they see is not compared."""
        for world in (self.a, self.b):
            world.send(call(token, MODERN, name, arguments))
            world.send(mcp(token, REVISIONS[0], "tools/list"))

    def demote(self) -> None:
        """A caller who saw the hidden tools loses that right, and is low from now on."""
        for world in (self.a, self.b):
            world.tokens["swing"] = principal(SWING_AFTER)
        self.low["swing"] = SWING_AFTER
        self._premise()

    def operator(self) -> None:
        """Whoever reads the audit is told hidden from absent."""
        for event in self.a.audit:
            if isinstance(event, ToolCall) and event.outcome == "hidden" and event.surface == "mcp":
                assert event.declared is any(
                    event.tool == tool.name and tool.exposed for tool in self.a.declared.tools
                )


def undeclared(event: Event) -> Event:
    """An event without the one member that may tell hidden from absent."""
    return dataclasses.replace(event, declared=None) if isinstance(event, ToolCall) else event
