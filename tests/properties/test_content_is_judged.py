"""Resources, prompts and completions come to what `content_rules.py` says, in every revision and for all."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any, Final, cast

from hypothesis import given
from hypothesis import strategies as st

from nonsuch.kernel.audit import PromptGet, ResourceRead

from .. import content_rules, rules
from ..content_rules import completing, reading, rendering, shown, values
from ..rules import Asked, Caller, Content, OfOrg, Roles, Rule, Verdict, World
from ..world import MODERN, REVISIONS, WIRES, Answer, Request, mcp, over, principal
from ..world import World as Served
from . import two_contents as sent
from .drawn import agents

ROLES: Final = ("viewer", "editor", "staff")
SCOPES: Final = ("docs", "docs:read")
URIS: Final = (
    "app://a",
    "app://a/",
    "app://b/x",
    "app://b/",
    "app://b/x/y",
    "app://b/%78",
    "app://b/%FF",
    "app://c/x.txt",
    "app://c/.txt",
    "app://c/x",
    "APP://A",
    "",
)
NAMES: Final = ("say", "says", "Say", "prompts/say", "")
GIVEN: Final[tuple[dict[str, object], ...]] = (
    {"id": "x"},
    {},
    {"id": 7},
    {"id": "x", "more": "y"},
    {"id": None},
)
LISTS: Final = {
    "resources/list": ("resource", "resources", "uri"),
    "resources/templates/list": ("template", "resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompt", "prompts", "name"),
}


# what the wire says -> a verdict


def told(answer: Answer) -> tuple[str, str | None]:
    """The outcome and the code that an answer tells."""
    if "result" in answer.value:
        return "ok", None
    error = answer.value["error"]
    data: Any = error.get("data")
    if not isinstance(data, dict) or "code" not in data:
        return "hidden", None
    held = cast("dict[str, str]", data)
    return ("scope-denied" if "scope" in held else "refused"), held["code"]


def plain(verdict: Verdict) -> tuple[str, str | None]:
    """A verdict as a caller can tell it."""
    if verdict.outcome in ("ok", "scope-denied"):
        return verdict.outcome, verdict.code
    return ("hidden", None) if verdict.outcome == "hidden" else ("refused", verdict.code)


def found(answer: Answer) -> Any:
    return answer.value["result"]


class Bench:
    """One served world and the oracle beside it."""

    def __init__(self, world: World, everybody: tuple[Caller, ...]) -> None:
        self.world, self.everybody = world, everybody
        self.served = Served(world, {str(at): principal(each) for at, each in enumerate(everybody)})

    def judged(self, request: Request, verdict: Verdict) -> Answer:
        """Send over every wire: what comes of it is what the oracle says, audited once, and run if it ran."""
        answers: list[Answer] = []
        for wire in WIRES:
            before = len(self.served.ran)
            answer = self.served.send(over(request, wire))
            event = self.served.audit[-1]
            assert isinstance(event, (ResourceRead, PromptGet))
            assert (told(answer), event.outcome, event.code) == (
                plain(verdict),
                verdict.outcome,
                verdict.code,
            )
            assert len(self.served.ran) - before == (1 if verdict.ran else 0)
            answers.append(answer)
        assert len({json.dumps(each.value) for each in answers}) == 1
        return answers[0]

    def everything(self, who: int) -> None:
        """Every list, URI, prompt and completion of one caller."""
        for revision in REVISIONS:
            self.listed(who, revision)
            for uri in URIS:
                self.read(who, revision, uri)
            for name in NAMES:
                for given_arguments in GIVEN:
                    request = sent.getting(str(who), revision, name, given_arguments)
                    self.judged(request, rendering(self.world, self.everybody[who], name, given_arguments))
        for name in (*NAMES, *(each.uri for each in self.world.content)):
            self.completed(who, "template" if "://" in name else "prompt", name)

    def listed(self, who: int, revision: str) -> None:
        for method, (kind, member, key) in LISTS.items():
            names = [each[key] for each in found(self.served.send(mcp(str(who), revision, method)))[member]]
            assert names == shown(self.world, self.everybody[who], kind)

    def read(self, who: int, revision: str, uri: str) -> None:
        verdict = reading(self.world, self.everybody[who], uri)
        answer = self.judged(sent.reading(str(who), revision, uri), verdict)
        if verdict.outcome == "hidden":
            code = -32602 if revision == MODERN else -32002
            assert (answer.status, answer.value["error"]["code"]) == (200, code)
            assert answer.value["error"]["data"] == {"uri": uri}

    def completed(self, who: int, kind: str, name: str) -> None:
        caller = self.everybody[who]
        verdict = completing(self.world, caller, kind, name)
        for argument, value in (("id", ""), ("id", "d"), ("id", "zz"), ("other", "d")):
            request = sent.completing(str(who), MODERN, kind, name, value, argument)
            before = len(self.served.ran)
            answer = self.served.send(request)
            assert told(answer) == plain(verdict)
            if verdict.outcome == "ok":
                assert found(answer)["completion"]["values"] == values(
                    self.world, caller, kind, name, argument, value
                )
            else:
                assert len(self.served.ran) == before


# one dense world

_EDITOR: Final = frozenset({"editor"})
_PAULA: Final = Caller("paula", "human", _EDITOR, "acme", None)
CALLERS: Final = (
    Caller("own", "agent", _EDITOR, "acme", frozenset(SCOPES)),
    Caller("prefix", "agent", _EDITOR, "acme", frozenset({"docs"})),
    Caller("less", "agent", frozenset({"viewer"}), None, frozenset(SCOPES), _PAULA),
    Caller("more", "agent", _EDITOR | {"staff"}, "acme", frozenset(SCOPES), _PAULA),
    Caller("foreign", "agent", frozenset(), "hq", frozenset(SCOPES)),
)
_EDITORS: Final = Roles(("editor",))
_ONE_OF: Final = Asked(frozenset({"own", "paula"}), frozenset({"foreign"}), frozenset({"more"}))
DENSE: Final = World(
    tools=(),
    content=(
        Content("open", "resource", "app://a", completes=()),
        Content("ours", "resource", "app://a/", _EDITORS, "docs:read"),
        Content("asked", "template", "app://b/{id}", _ONE_OF, None, "doc:read", ("d1", "dx", "e")),
        Content("files", "template", "app://c/{id}.txt", OfOrg("acme"), None, None, ("d1",), "refuses"),
        Content("say", "prompt", "", _EDITORS, "docs:read", "doc:say", ("d1", "zz")),
        Content("says", "prompt", "", OfOrg("hq"), "docs", None, ("d1",), "raises"),
    ),
    grants=(("editor", "doc:read"), ("editor", "doc:say")),
    rules=(Rule("forbid", "doc:say", role="staff"), Rule("forbid", "resources/open", role="viewer")),
)


def walk() -> None:
    """Every caller, every name and URI and their spellings, every argument."""
    bench = Bench(DENSE, CALLERS)
    for who in range(len(CALLERS)):
        bench.everything(who)


def test_every_outcome_of_a_dense_world_is_the_one_that_the_rules_give() -> None:
    walk()


def test_the_rules_import_nothing_of_nonsuch() -> None:
    tree = ast.parse(Path(content_rules.__file__).read_text("utf-8"))
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert set(imported) == {"__future__", "urllib.parse", "rules"}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))


# chance


def _audiences() -> st.SearchStrategy[rules.Audience]:
    ids = st.frozensets(st.sampled_from(("ann", "bob", "cy")))
    return st.one_of(
        st.just(rules.Everyone()),
        st.builds(Roles, st.lists(st.sampled_from(ROLES), max_size=2, unique=True).map(tuple)),
        st.builds(OfOrg, st.sampled_from(("acme", "hq"))),
        st.builds(Asked, ids, ids, ids),
    )


@st.composite
def _worlds(draw: st.DrawFn) -> World:
    """Any audience, scope, permission, grant and forbid for the content of the dense world."""
    permissions = st.none() | st.sampled_from(("doc:read", "doc:say"))
    scopes = st.none() | st.sampled_from(SCOPES)
    content = [
        Content(
            each.name,
            each.kind,
            each.uri,
            draw(_audiences()),
            draw(scopes),
            draw(permissions),
            each.completes,
            draw(st.sampled_from(("ok", "ok", "refuses", "raises", "speaks"))),
        )
        for each in DENSE.content
    ]
    named = sorted({each.permission for each in content if each.permission is not None})
    grants = st.lists(st.tuples(st.sampled_from(ROLES), st.sampled_from(named or ["-"])), max_size=4)
    about = [*named, *(each.action for each in content)]
    forbids = st.builds(
        Rule, st.just("forbid"), st.sampled_from(about), role=st.none() | st.sampled_from(ROLES)
    )
    return World(
        tools=(),
        content=tuple(content),
        grants=tuple(draw(grants)) if named else (),
        rules=tuple(draw(st.lists(forbids, max_size=2))),
    )


@given(_worlds(), st.tuples(agents(), agents()))
def test_every_outcome_is_the_one_that_the_rules_give(world: World, everybody: tuple[Caller, ...]) -> None:
    bench = Bench(world, everybody)
    for who in range(len(everybody)):
        for revision in REVISIONS:
            bench.listed(who, revision)
        for uri in URIS:
            bench.read(who, MODERN, uri)
        for name in ("say", "says", "Say"):
            request = sent.getting(str(who), MODERN, name, {"id": "x"})
            bench.judged(request, rendering(world, everybody[who], name, {"id": "x"}))
            bench.completed(who, "prompt", name)
        bench.completed(who, "template", "app://b/{id}")
