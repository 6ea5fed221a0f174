"""One judge: over every surface a call comes to what `rules.py` says, and all surfaces agree.

Worlds, callers, policies and traces are random, and one dense world is walked whole.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from nonsuch.kernel import cedar, cedar_text
from nonsuch.kernel.audit import ToolCall, tool_call

from .. import rules
from ..rules import Caller, Over, Published, Raised, Row, Rule, SameOrg, Says, Tool, Twice, Verdict, World
from ..world import MODERN, REVISIONS, Answer, call, http, mcp, principal
from ..world import World as Served
from .drawn import ARGUMENTS, NAMES, agents, callers, traces, worlds

# what the wire says -> a verdict


def told_by_mcp(answer: Answer) -> tuple[str, str | None]:
    """The outcome and the code that an MCP answer tells. A result that is an error names its code first."""
    if answer.status in (401, 403) and answer.value.get("error", {}).get("data", {}).get("scope") is None:
        return "unauthenticated", answer.value["error"]["data"]["code"]
    value = answer.value
    if "error" in value:
        data = value["error"].get("data")
        if data is None:
            return "hidden", "X_MCP_TOOL_UNKNOWN"
        return "scope-denied", code_in(data)
    if value["result"].get("isError"):
        return "refused", value["result"]["content"][0]["text"].partition(":")[0]
    return "ok", None


def code_in(data: Any) -> str | None:
    """The code in an error's data, if it is there."""
    return cast("dict[str, str]", data).get("code") if isinstance(data, dict) else None


def told_by_http(answer: Answer) -> tuple[str, str | None]:
    """The outcome and the code that an HTTP answer tells."""
    if answer.status == 200:
        return "ok", None
    code: str = answer.value["code"]
    words = {"X_ROUTE_NOT_FOUND": "hidden", "X_MCP_SCOPE_DENIED": "scope-denied"}
    return words.get(code, "refused"), code


def plain(verdict: Verdict) -> tuple[str, str | None]:
    """A verdict as a caller can tell it: only the operator tells one refusal from another of its code."""
    shown = ("ok", "hidden", "scope-denied", "unauthenticated")
    return (verdict.outcome if verdict.outcome in shown else "refused", verdict.code)


STATUS: Final = {
    "ok": 200,
    "hidden": 404,
    "scope-denied": 403,
    "policy-denied": 403,
    "policy-error": 403,
    "invalid-args": 422,
}
FAILED: Final = {"X_NOT_FOUND": 404, "X_INTERNAL": 500, "X_OUTPUT_INVALID": 500, "X_DEMO": 409}


class Bench:
    """One served world and the oracle beside it."""

    def __init__(self, world: World, everybody: tuple[Caller, ...]) -> None:
        self.world, self.everybody = world, everybody
        self.served = Served(world, {str(at): principal(each) for at, each in enumerate(everybody)})

    def over_mcp(self, who: int, name: str, given: Mapping[str, object]) -> None:
        """Three revisions: one verdict, audited as what it was, and the handler ran for a permit only."""
        verdict = rules.outcome(self.world, self.everybody[who], "mcp", name, given)
        for revision in REVISIONS:
            before = len(self.served.ran)
            answer = self.served.send(call(str(who), revision, name, given))
            assert told_by_mcp(answer) == plain(verdict)
            assert answer.status == self.mcp_status(verdict, revision)
            assert len(self.served.ran) - before == verdict.ran
            self.audited(verdict)

    def mcp_status(self, verdict: Verdict, revision: str) -> int:
        """Refusals are results of the protocol, but for a scope in the newest revision."""
        scope = verdict.outcome == "scope-denied" and revision == MODERN
        return 403 if scope or verdict.outcome == "unauthenticated" else 200

    def over_http(self, who: int, name: str, given: Mapping[str, object]) -> None:
        """The same action by its path."""
        path = f"do/{name}"
        verdict = rules.outcome(self.world, self.everybody[who], "http", path, given)
        before = len(self.served.ran)
        if not path.isascii():
            return
        answer = self.served.send(http(str(who), path, given))
        assert told_by_http(answer) == plain(verdict)
        assert answer.status == STATUS.get(verdict.outcome, FAILED.get(verdict.code or ""))
        assert len(self.served.ran) - before == verdict.ran
        self.audited(verdict)

    def in_process(self, who: int, name: str, given: Mapping[str, object]) -> None:
        """The same tool from inside the app: the outcome itself."""
        verdict = rules.outcome(self.world, self.everybody[who], "agent", name, given)
        before = len(self.served.ran)
        caller = principal(self.everybody[who])
        event = tool_call(caller, name, "agent", self.served.invoke(caller, name, given))
        assert (event.outcome, event.code) == (verdict.outcome, verdict.code)
        assert len(self.served.ran) - before == verdict.ran
        self.audited(verdict)

    def audited(self, verdict: Verdict) -> None:
        """The last event of the audit is this outcome."""
        event = self.served.audit[-1]
        if verdict.outcome == "unauthenticated" or not isinstance(event, ToolCall):
            assert event.kind == "auth-refused"
            return
        code = "X_MCP_TOOL_UNKNOWN" if verdict.outcome == "hidden" else verdict.code
        assert (event.outcome, event.code) == (verdict.outcome, code)

    def listed(self, who: int) -> None:
        """`tools/list` shows what the rules show, in every revision."""
        caller = self.everybody[who]
        for revision in REVISIONS if caller.kind == "agent" else ():
            shown = self.served.send(mcp(str(who), revision, "tools/list")).value["result"]["tools"]
            assert [tool["name"] for tool in shown] == sorted(rules.visible(self.world, caller))

    def agreed(self, who: int, name: str, given: Mapping[str, object]) -> None:
        """All surfaces that serve a tool to a caller say one thing."""
        caller, tool = self.everybody[who], {each.name: each for each in self.world.tools}.get(name)
        if tool is None or not tool.path or not tool.exposed or caller.kind == "human":
            return
        heard = {
            told_by_mcp(self.served.send(call(str(who), revision, name, given))) for revision in REVISIONS
        }
        heard.add(told_by_http(self.served.send(http(str(who), tool.path, given))))
        aliases = {"X_ROUTE_NOT_FOUND": "X_MCP_TOOL_UNKNOWN"}
        assert len({(outcome, aliases.get(code or "", code)) for outcome, code in heard}) == 1


# one dense world: every kind of rule beside every kind of caller

_EDITOR: Final = frozenset({"editor"})
_ALL_SCOPES: Final = frozenset({"docs", "docs:read", "docs:write"})
_PAULA: Final = Caller("paula", "human", _EDITOR, "acme", None)
_VERA: Final = Caller("vera", "human", frozenset({"viewer"}), "acme", frozenset({"docs:read"}))
CALLERS: Final = (
    Caller("own", "agent", _EDITOR, "acme", _ALL_SCOPES),
    Caller("prefix", "agent", _EDITOR, "acme", frozenset({"docs"})),
    Caller("more", "agent", _EDITOR | {"staff"}, "acme", _ALL_SCOPES, _VERA),
    Caller("less", "agent", frozenset({"viewer"}), None, _ALL_SCOPES, _PAULA),
    Caller("equal", "agent", _EDITOR, "acme", _ALL_SCOPES, _PAULA),
    Caller("foreign", "agent", frozenset(), "hq", _ALL_SCOPES),
    _PAULA,
    _VERA,
)
DENSE: Final = World(
    tools=(
        Tool("readDoc", "do/readDoc", permission="doc:read", acts_on="Doc", arguments=ARGUMENTS),
        Tool("write", "do/write", permission="doc:write", acts_on="Doc", arguments=ARGUMENTS),
        Tool("open_box", "do/open_box", "single", permission="box:open", acts_on="Box", arguments=ARGUMENTS),
        Tool("a.b", "do/a.b", "query", True, rules.Roles(("editor",)), "app:use", None, ARGUMENTS),
        Tool("silent", "do/silent", permission="app:none", arguments=ARGUMENTS),
        Tool("a", kind="tool", audience=rules.Asked(frozenset({"own", "paula"}), frozenset({"foreign"}))),
    ),
    scopes={"docs:read": ("readDoc", "open_box"), "docs:write": ("write", "a.b", "silent"), "docs": ("a",)},
    grants=(("editor", "doc:write"), ("editor", "app:use"), ("viewer", "box:open"), ("editor", "box:open")),
    rules=(
        Rule("permit", "doc:read", SameOrg()),
        Rule("forbid", "readDoc", Published(), code="X_STOP"),
        Rule("forbid", "write", Twice("amount", 100), code="X_STOP"),
        Rule("forbid", "box:open", Raised(), "editor", code="X_STOP"),
        Rule("permit", "a.b", Says("note", "go"), "viewer"),
        Rule("forbid", "a.b", Over("amount", 5), "editor", code="X_STOP"),
    ),
    rows={
        "Doc": {"r0": Row("acme"), "r1": Row("hq"), "r2": Row("acme", published=True)},
        "Box": {"r0": Row("acme"), "r1": Row("hq", level=1)},
    },
)
SENT: Final[tuple[dict[str, object], ...]] = (
    {"id": "r0"},
    {"id": "r1"},
    {"id": "r2"},
    {"id": "gone"},
    {"id": "r0", "amount": 60},
    {"id": "r0", "amount": 2**62},
    {"id": "r0", "amount": 2**63},
    {"id": "gone", "amount": 60},
    {"amount": 6.0, "note": "go"},
    {"amount": 4, "note": "go"},
    {"note": "no"},
    {},
    {"id": 7},
    {"id": "r0", "idempotencyKey": "k"},
)


def walk() -> None:
    """Every caller, every name and its folded spellings, every argument, through every door."""
    bench = Bench(DENSE, CALLERS)
    folded = [spelling for tool in DENSE.tools for spelling in (tool.name.upper(), wide(tool.name))]
    for who in range(len(CALLERS)):
        bench.listed(who)
        for name in [*(tool.name for tool in DENSE.tools), *folded]:
            for sent in SENT if name not in folded else SENT[:1]:
                bench.over_mcp(who, name, sent)
                bench.over_http(who, name, sent)
                bench.in_process(who, name, sent)


def wide(name: str) -> str:
    """A name in full-width letters, whose compatibility form is the name."""
    return "".join(chr(ord(char) + 0xFEE0) for char in name)


def judged_when_it_cannot_be() -> cedar.Decision:
    """Ask about a context that is not of the schema's type, under a policy that permits everything."""
    of = cedar.schema("entity U; action a appliesTo { principal: [U], resource: [U], context: { n: Long } };")
    permit = 'permit (principal, action == Action::"a", resource);'
    policies = cedar.policy_set(cedar_text.parse(permit, "all"))
    one = {"type": "U", "id": "u"}
    return cedar.decide(one, "a", one, '{"n": "x"}', policies, cedar.entities("[]", of), of)


def test_the_rules_import_nothing_of_nonsuch() -> None:
    tree = ast.parse(Path(rules.__file__).read_text("utf-8"))
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert set(imported) == {"__future__", "collections.abc", "dataclasses", "typing"}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))


def test_every_outcome_of_a_dense_world_is_the_one_that_the_rules_give() -> None:
    walk()


def test_a_request_that_cannot_be_judged_is_denied_as_an_error() -> None:
    assert judged_when_it_cannot_be() == cedar.Decision(allow=False, errors=("<request>",))


def test_a_row_whose_policies_err_and_a_missing_row_are_one_answer() -> None:
    """Whoever may not act on a row is not told, by an error of its policies, that it exists."""
    world = dataclasses.replace(DENSE, rules=(*DENSE.rules[:1], Rule("forbid", "readDoc", Raised())))
    world = dataclasses.replace(world, rows={**world.rows, "Doc": {"r1": Row("acme", level=1)}})
    served = Served(world, {"foreign": principal(CALLERS[5])})
    for revision in REVISIONS:
        there = served.send(call("foreign", revision, "readDoc", {"id": "r1"}))
        assert there == served.send(call("foreign", revision, "readDoc", {"id": "gone"}))


# chance

Trace = list[tuple[int, str, dict[str, object]]]


@given(worlds(), callers, traces)
def test_every_outcome_is_the_one_that_the_rules_give(
    world: World, everybody: tuple[Caller, ...], trace: Trace
) -> None:
    bench = Bench(world, everybody)
    for who, name, given_arguments in trace:
        bench.over_mcp(who, name, given_arguments)
        bench.over_http(who, name, given_arguments)
        bench.in_process(who, name, given_arguments)
        bench.listed(who)


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(worlds(), callers, traces)
def test_all_surfaces_agree(world: World, everybody: tuple[Caller, ...], trace: Trace) -> None:
    bench = Bench(world, everybody)
    for who, name, given_arguments in trace:
        bench.agreed(who, name, given_arguments)


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(worlds(), agents(), st.sampled_from(NAMES))
def test_a_missing_row_and_a_foreign_row_are_one_answer(world: World, caller: Caller, name: str) -> None:
    """Where no policy has words of its own, a row that exists and one that does not are refused alike."""
    world = dataclasses.replace(
        world, rules=tuple(dataclasses.replace(rule, code=None) for rule in world.rules)
    )
    bench = Bench(world, (caller,))
    foreign = rules.outcome(world, caller, "mcp", name, {"id": "r0"})
    missing = rules.outcome(world, caller, "mcp", name, {"id": "gone"})
    if (foreign.outcome, missing.outcome) == ("policy-denied", "policy-denied"):
        for revision in REVISIONS:
            one = bench.served.send(call("0", revision, name, {"id": "r0"}))
            assert one == bench.served.send(call("0", revision, name, {"id": "gone"}))
